"""Rewards of single turns, measured against their neighbours."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.adaptive.scoring import ORDER, Past, Specification, Synopsis, rewarded

LATENCY = Specification.parse("latency")


def turns(*latencies: float, algorithms: str = "") -> list[Past]:
    return [
        Past(int(algorithm), Synopsis.of([(latency,) * len(ORDER)]))
        for algorithm, latency in zip(algorithms or "0" * len(latencies), latencies, strict=True)
    ]


def test_by_hand() -> None:
    made = rewarded(turns(1, 2, 3, algorithms="010"), LATENCY, 1)
    # 1 of (1, 2): 0.5 below, range 1. 2 of (1, 2, 3): the mean. 3 of (2, 3): 0.5 above.
    assert made == ((0, 1.5), (1, 1.0), (0, 0.5))


def test_against_all() -> None:
    made = rewarded(turns(1, 2, 6), LATENCY, None)
    assert [turn.reward for turn in made] == pytest.approx([1 + 2 / 5, 1 + 1 / 5, 1 - 3 / 5])


def test_a_burst_does_not_hide_who_is_better() -> None:
    # Algorithm 1 takes half as long as 0 at any moment, but had its turns in the burst.
    burst = (20, 20, 10, 20, 20)
    past = turns(*burst, *[2] * 15, *burst, algorithms="00100" + "0" * 15 + "00100")

    def apart(neighbours: int | None) -> float:
        made = rewarded(past, LATENCY, neighbours)
        means = [[turn.reward for turn in made if turn.algorithm == at] for at in (0, 1)]
        return sum(means[1]) / len(means[1]) - sum(means[0]) / len(means[0])

    assert apart(2) > 0.5
    assert apart(None) < 0


@settings(deadline=None)
@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=20), st.sampled_from([None, 1, 2, 5]))
def test_rewards_stay_in_their_bounds(latencies: list[float], neighbours: int | None) -> None:
    assert all(0 < turn.reward < 2 for turn in rewarded(turns(*latencies), LATENCY, neighbours))
