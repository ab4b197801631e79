"""The runtime optimizer in a quick form: from the worst strategy to the best one's latency in three intervals."""

from __future__ import annotations

import pytest

from benchmarks.optimizer import STRATEGIES, measure, report, verdicts


def test_it_is_soon_as_good_as_the_best() -> None:
    courses = [measure(one, 1, 18.0) for one in (*STRATEGIES, "optimizer")]
    assert verdicts(courses) == []
    chosen = courses[-1]
    assert [switch.partition(": ")[2] for switch in chosen.switches] == ["segment -> path-capacity"]
    assert chosen.then < 0.7 * courses[1].then, "segment is clearly worse"
    assert "path-capacity" in report(courses)


@pytest.mark.slow
def test_over_ten_seeds() -> None:
    assert verdicts([measure(one, seed) for seed in range(1, 11) for one in (*STRATEGIES, "optimizer")]) == []
