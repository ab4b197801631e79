"""Preemptive rate-based: what is left of a step counts, and without any work done it is rate-based."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.errors import PolicyError
from headway.scheduling.policy import STEPS, make_policy
from headway.scheduling.preemptive_rate_based import PreemptiveRateBased
from headway.scheduling.rate_based import RateBased
from headway.scheduling.snapshot import Snapshot
from tests.scheduling.chains import Row, order, readings, row, rows, seen
from tests.scheduling.snapshots import measured, replace


def under_way(at: Snapshot, unit: int, spent: float, held: int, busy: bool = True) -> Snapshot:
    """Return a snapshot in which a unit has a step under way, or a preempted one."""
    count = len(at.units)
    mine = np.arange(count) == unit
    return replace(at, spent=np.where(mine, spent, 0.0), held=np.where(mine, held, 0), busy=mine & busy)


def test_it_is_asked_while_steps_are_under_way() -> None:
    assert PreemptiveRateBased().preemptive
    assert not RateBased().preemptive


def test_what_was_spent_is_taken_off_the_cost() -> None:
    # b0: 40 s for a tuple, b1: 30 s. After 9 s b0 still has 31 s to go and gives way; after 11 s it goes on.
    at = measured([[]] * 2, [0, 0], cost=[40, 30])
    assert order(PreemptiveRateBased(), at) == ["b1"]
    early, late = under_way(at, 0, 9, 1), under_way(at, 0, 11, 1)
    assert PreemptiveRateBased().terms(early, None)[0].values.tolist() == pytest.approx([1 / 31, 1 / 30])
    assert PreemptiveRateBased().terms(late, None)[0].values.tolist() == pytest.approx([1 / 29, 1 / 30])
    assert order(PreemptiveRateBased(), early) == ["b1"]
    assert order(PreemptiveRateBased(), late) == ["b0"]


def test_what_a_preempted_step_did_is_not_lost() -> None:
    at = under_way(measured([[]] * 2, [0, 0], cost=[40, 30]), 0, 11, 1, busy=False)
    assert order(PreemptiveRateBased(), at) == ["b0"]


def test_a_step_of_several_tuples() -> None:
    # 4 tuples of 10 s and 2 s of overhead, 22 s done: 20 s for 4 half results, 2 / 20.
    at = measured([[]] * 2, [0, 0], cost=[10, 10], overhead=[2, 2], yields=[0.5, 0.5], waiting=[100, 4], train=50)
    at = under_way(at, 0, 22, 4)
    assert PreemptiveRateBased().terms(at, None)[0].values.tolist() == pytest.approx([2 / 20, 2 / 42])


def test_a_step_that_takes_longer_than_expected_goes_on() -> None:
    at = under_way(measured([[]] * 2, [0, 0], cost=[1, 1e-6]), 0, 5, 1)
    assert order(PreemptiveRateBased(), at) == ["b0"]
    assert np.isfinite(PreemptiveRateBased().terms(at, None)[0].values).all()


def test_equals_do_not_replace_each_other() -> None:
    at = measured([[]] * 2, [0, 0], cost=[1, 1], yields=[0, 0], oldest=[9, 3])
    assert order(PreemptiveRateBased(), at) == ["b1"]
    assert order(PreemptiveRateBased(), under_way(at, 0, 0.5, 1)) == ["b0"]


def test_a_plan_names_what_should_run_on_all_workers() -> None:
    at = measured([[]] * 4, [0] * 4, cost=[4, 3, 2, 1], workers=2, free=0)
    assert order(PreemptiveRateBased(), under_way(at, 0, 0.5, 1)) == ["b3", "b2"]
    assert order(PreemptiveRateBased(), under_way(at, 0, 2.5, 1)) == ["b3", "b0"]


@settings(deadline=None)
@given(boxes=row, waiting=st.lists(st.integers(1, 30), min_size=64, max_size=64), oldest=st.permutations(range(64)))
def test_with_nothing_spent_it_orders_as_rate_based(boxes: Row, waiting: list[int], oldest: list[int]) -> None:
    boxes = boxes[:STEPS]
    count = len(boxes)
    overhead = [cost * 3 for cost, _ in boxes]
    at = seen(rows(boxes), readings(boxes, overhead=overhead), waiting=waiting[:count], oldest=oldest[:count])
    every = replace(at, workers=count, free=count)
    assert order(PreemptiveRateBased(), every) == order(RateBased(), every)


@settings(deadline=None)
@given(row, st.floats(0, 1e-4), st.floats(0, 1e-4))
def test_the_longer_a_step_runs_the_higher_its_rate(boxes: Row, one: float, other: float) -> None:
    at = seen(rows(boxes), readings(boxes))
    less, more = sorted((one, other))
    rates = [PreemptiveRateBased().terms(under_way(at, 0, spent, 1), None)[0].values for spent in (0.0, less, more)]
    assert rates[0][0] <= rates[1][0] <= rates[2][0]
    assert rates[0][1:].tolist() == rates[2][1:].tolist()


def test_no_argument() -> None:
    assert make_policy("preemptive-rate-based") == PreemptiveRateBased()
    with pytest.raises(PolicyError, match="takes no argument, not 'x'"):
        make_policy("preemptive-rate-based:x")
