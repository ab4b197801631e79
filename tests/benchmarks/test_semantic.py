"""Semantic shedding in a quick form: what is useful survives, backward and by trial."""

from __future__ import annotations

import pytest

from benchmarks.semantic import WAYS, measure, report, verdicts


@pytest.mark.parametrize("way", WAYS)
def test_the_useful_tuples_survive(way: str) -> None:
    chosen = measure("sim", way, True, 50.0, 20.0)
    at_random = measure("sim", way, False, 50.0, 20.0)
    assert verdicts([chosen, at_random]) == []
    assert chosen.useful >= 0.95
    assert at_random.useful < 0.7
    assert chosen.kept == pytest.approx(at_random.kept, abs=0.1), "at about the same rate"
    assert "backward" in chosen.how if way == "backward" else "by trial" in chosen.how
    assert report([chosen]).count("| sim |") == 1


@pytest.mark.slow
def test_also_in_real_time() -> None:
    assert verdicts([measure("local", way, chosen, 200.0, 30.0) for way in WAYS for chosen in (True, False)]) == []
