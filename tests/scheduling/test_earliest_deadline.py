"""Earliest deadline: worked examples, and the law that makes it classical."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.clock import SECOND
from headway.errors import PolicyError
from headway.scheduling.earliest_deadline import EarliestDeadline
from headway.scheduling.graphs import DEFAULT_GOOD
from headway.scheduling.policy import make_policy
from headway.scheduling.snapshot import Snapshot, Unit
from tests.scheduling.snapshots import Points, measured, replace

NEVER = int(np.iinfo(np.int64).max)
NOW = 100 * SECOND


def good(seconds: float) -> Points:
    return ((0.0, 1.0), (seconds, 1.0), (seconds + 1, 0.0))


def order(seen: Snapshot) -> list[int]:
    plan, _ = EarliestDeadline().plan(seen, EarliestDeadline().start())
    return [step.unit for step in plan.steps]


def deadlines(seen: Snapshot) -> list[int]:
    policy = EarliestDeadline()
    values: list[int] = policy.terms(seen, policy.prepare(seen, None))[0].values.tolist()
    return values


def test_a_deadline_is_the_stamp_and_the_good_zone() -> None:
    # 3 s old of 4: at 101 s. 0.5 s old of 1: at 100.5 s. 8 s old of 20: at 112 s.
    seen = measured([[good(4)], [good(1)], [good(20)]], [3, 0.5, 8])
    assert deadlines(seen) == [101 * SECOND, 100 * SECOND + SECOND // 2, 112 * SECOND]
    assert order(seen) == [1, 0, 2]


def test_the_shortest_zone_of_several_outputs_counts() -> None:
    seen = measured([[good(9), good(2), None], [good(3)]], [1, 1])
    assert deadlines(seen) == [100 * SECOND + SECOND * DEFAULT_GOOD - SECOND, 102 * SECOND]
    assert order(measured([[good(9), good(2)], [good(3)]], [1, 1])) == [0, 1]
    assert order(measured([[good(9), good(4)], [good(3)]], [1, 1])) == [1, 0]


def test_without_a_graph_or_an_output_the_usual_zone_counts() -> None:
    flat = ((0.0, 1.0), (5.0, 1.0))
    seen = measured([[None], [], [flat]], [0, 0, 0])
    assert deadlines(seen) == [NOW + round(DEFAULT_GOOD * SECOND)] * 3


def test_late_tuples_come_first() -> None:
    assert order(measured([[good(1)], [good(1)], [good(1)]], [0.9, 50, 2])) == [1, 2, 0]


def test_equals_go_from_the_outputs_backwards() -> None:
    assert order(measured([[good(2)]] * 3, [1, 1, 1])) == [2, 1, 0]


def test_where_only_marks_wait_comes_last_however_long_the_zone() -> None:
    seen = measured([[good(1e12)], [good(1)], [good(1e12)]], [0] * 3, oldest=[NEVER, NOW, 0], waiting=[0, 1, 1])
    assert deadlines(seen)[0] == NEVER
    assert order(seen) == [1, 2, 0]


def test_stamps_before_the_epoch_are_stamps() -> None:
    seen = measured([[good(1)], [good(3)]], [0, 0], oldest=[-SECOND, -4 * SECOND])
    assert deadlines(seen) == [0, -SECOND]


def test_nanoseconds_are_told_apart_today() -> None:
    today = 1_700_000_000 * SECOND  # a float of it is off by hundreds of nanoseconds
    assert order(measured([[good(1)]] * 3, [0] * 3, oldest=[today + 1, today, today + 2])) == [1, 0, 2]


def test_the_memory_follows_the_units() -> None:
    policy = EarliestDeadline()
    first = measured([[good(1)], [good(5)]], [0, 0])
    _, memory = policy.plan(first, policy.start())
    assert policy.plan(first, memory)[1] is memory
    swapped = replace(first, units=(Unit("x", (0,), (1,)), Unit("y", (1,), (0,))))
    plan, _ = policy.plan(swapped, memory)
    assert [step.unit for step in plan.steps] == [1, 0]


Job = tuple[int, int]


def lateness(jobs: list[Job], seen: Snapshot, chosen: list[int]) -> int:
    """Return the lateness of the latest job if they are served in this order, a second each."""
    ends = {unit: (place + 1) * SECOND for place, unit in enumerate(chosen)}
    return max(NOW + ends[at] - deadlines(seen)[at] for at in range(len(jobs)))


@settings(deadline=None)
@given(jobs=st.lists(st.tuples(st.integers(0, 5), st.integers(1, 9)), min_size=1, max_size=7), data=st.data())
def test_no_other_order_makes_the_latest_less_late(jobs: list[Job], data: st.DataObject) -> None:
    seen = measured([[good(zone)] for _, zone in jobs], [age for age, _ in jobs])
    other = data.draw(st.permutations(range(len(jobs))))
    assert lateness(jobs, seen, order(seen)) <= lateness(jobs, seen, list(other))


@pytest.mark.parametrize("argument", ["", "3s"])
def test_it_takes_no_argument(argument: str) -> None:
    assert make_policy("earliest-deadline") == EarliestDeadline()
    with pytest.raises(PolicyError, match=f"'earliest-deadline' takes no argument, not '{argument}'"):
        make_policy(f"earliest-deadline:{argument}")
