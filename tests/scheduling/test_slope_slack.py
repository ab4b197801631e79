"""Slope and slack: worked examples by hand, and laws of the order."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.clock import SECOND
from headway.errors import PolicyError
from headway.scheduling.graphs import unit_graphs
from headway.scheduling.policy import STEPS, foremost, make_policy
from headway.scheduling.slope_slack import SlopeSlack
from headway.scheduling.snapshot import Snapshot
from tests.scheduling.snapshots import Points, eighths, graphs, measured, replace, snapshot

STAIRS = ((0.0, 1.0), (1.0, 1.0), (3.0, 0.6), (4.0, 0.1), (5.0, 0.0))
"""Slopes 0, -0.2, -0.5, -0.1 and then 0; critical points at 1, 3 and 4."""
TIGHT = ((0.0, 1.0), (0.001, 1.0), (1.0, 0.0))
LOOSE = ((0.0, 1.0), (4.0, 1.0), (5.0, 0.0))
NOW = 100 * SECOND


def order(seen: Snapshot) -> list[int]:
    plan, _ = SlopeSlack().plan(seen, SlopeSlack().start())
    return [step.unit for step in plan.steps]


def p_tuples(seen: Snapshot) -> list[tuple[float, float]]:
    expected = seen.costs.seconds(np.minimum(seen.waiting, seen.train))
    made = unit_graphs(seen.layout).slopes_and_slacks(seen.latencies + expected)
    return [(round(float(utility), 6), round(float(slack), 6)) for utility, slack in zip(*made, strict=True)]


def test_the_p_tuples_of_a_graph_with_three_critical_points() -> None:
    seen = measured([[STAIRS]] * 5, [0.5, 2.0, 3.5, 4.5, 6.0])
    assert p_tuples(seen) == [(0, 0.5), (0.2, 1), (0.5, 0.5), (0.1, np.inf), (0, np.inf)]
    assert order(seen) == [2, 1, 3, 0, 4]


def test_cost_moves_a_unit_along_its_graph() -> None:
    # 0.5 s old, 0.1 s + 10 tuples at 0.05 s: expected at 1.1 s, on the first slope; a train is at most 10.
    seen = measured([[STAIRS]] * 2, [0.5, 0.5], overhead=[0.1, 0], cost=[0.05, 0], waiting=[500, 500], train=10)
    assert p_tuples(seen) == [(0.2, 1.9), (0, 0.5)]
    assert order(seen) == [0]  # more than a plan's work


def test_a_critical_point_is_passed_when_it_is_reached() -> None:
    assert p_tuples(measured([[STAIRS]] * 2, [1.0, 3.0])) == [(0.2, 2), (0.5, 1)]


def test_several_outputs_add_their_slopes_and_the_nearest_point_counts() -> None:
    seen = measured([[STAIRS, LOOSE, None], [STAIRS], []], [3.9, 3.9, 3.9])
    assert p_tuples(seen) == [(0.5, 0.1), (0.5, 0.1), (0, np.inf)]
    seen = measured([[STAIRS, LOOSE], [LOOSE], [None]], [4.2, 4.2, 4.2])
    assert p_tuples(seen) == [(1.1, np.inf), (1, np.inf), (0, np.inf)]
    assert order(seen) == [0, 1, 2]


def test_in_the_good_zone_the_least_slack_comes_first() -> None:
    assert order(measured([[LOOSE], [TIGHT], [LOOSE]], [0.0005, 0.0005, 1.0])) == [1, 2, 0]


def test_tight_before_loose_as_in_the_paper() -> None:
    seen = measured([[LOOSE], [TIGHT], [LOOSE]], [0.5, 0.5, 4.5])
    assert p_tuples(seen) == [(0, 3.5), (1.001001, np.inf), (1, np.inf)]
    assert order(seen) == [1, 2, 0]


def test_graphs_that_draw_the_same_line_are_treated_alike() -> None:
    short, long = ((2.0, 1.0), (10.0, 0.0)), ((0.0, 1.0), (2.0, 1.0), (10.0, 0.0))
    for latency in (0.0, 1.5, 2.0, 5.0, 11.0):
        one, other = p_tuples(measured([[short], [long]], [latency] * 2))
        assert one == other


def test_lines_meant_to_be_equally_steep_are() -> None:
    # (0.9 - 0.8) / 0.1 and (0.3 - 0.2) / 0.1 differ in the last bits.
    early = ((0.0, 0.9), (0.1, 0.8), (5.0, 0.8))
    late = ((0.0, 0.3), (0.1, 0.2), (5.0, 0.2))
    assert order(measured([[early], [late]], [0.05, 0.06])) == [1, 0]
    assert order(measured([[early], [late]], [0.06, 0.05])) == [0, 1]


def test_equals_go_by_their_oldest_tuple_then_by_number() -> None:
    assert order(measured([[]] * 3, [1, 1, 1], oldest=[7, 5, 7])) == [1, 0, 2]


def test_a_plan_is_about_two_milliseconds_of_work() -> None:
    assert len(order(measured([[]] * 100, [1] * 100))) == STEPS
    assert len(order(measured([[]] * 100, [1] * 100, overhead=[0.0003] * 100))) == 7
    assert len(order(measured([[]] * 100, [1] * 100, overhead=[3.0] * 100))) == 1


def test_with_workers_a_step_for_each_free_one_and_no_box_twice() -> None:
    seen = measured([[LOOSE]] * 5, [4.5, 1, 2, 3, 3.5], workers=4, free=2)
    assert order(seen) == [0, 4]
    busy = np.array([True, False, False, False, False])
    assert order(replace(seen, busy=busy)) == [4, 3]
    assert order(replace(seen, free=0)) == []
    units = (*seen.units[:4], replace(seen.units[4], boxes=(0, 4)))
    assert order(replace(seen, units=units)) == [0, 3]


def test_units_that_are_not_ready_are_left_out() -> None:
    seen = measured([[LOOSE]] * 3, [4.5, 1, 2], ready=np.array([False, True, False]))
    assert order(seen) == [1]


def test_the_memory_follows_the_units() -> None:
    policy = SlopeSlack()
    first, second = measured([[LOOSE], [TIGHT]], [0.5, 0.5]), measured([[TIGHT], [LOOSE]], [0.5, 0.5])
    _, memory = policy.plan(first, policy.start())
    assert policy.plan(first, memory)[1] is memory
    plan, _ = policy.plan(second, memory)
    assert [step.unit for step in plan.steps] == [0, 1]


@pytest.mark.parametrize("argument", ["0", "x", "", "65", "-1"])
def test_its_argument_is_a_number_of_tuples(argument: str) -> None:
    assert make_policy("slope-slack:8") == SlopeSlack(8)
    with pytest.raises(PolicyError, match="1 to 64"):
        make_policy(f"slope-slack:{argument}")


def sampled(seen: Snapshot, samples: int) -> list[int]:
    plan, _ = SlopeSlack(samples).plan(seen, None)
    return [step.unit for step in plan.steps]


def test_a_queue_that_is_partly_late_is_urgent_before_its_mean_is() -> None:
    # Both means are in the good zone, TIGHT's nearer to its end; but LOOSE's oldest tuples are late already.
    seen = measured(
        [[((0.0, 1.0), (1.0, 1.0), (2.0, 0.0))], [LOOSE]], [0.5, 2.5], oldest=[NOW - SECOND, NOW - 5 * SECOND]
    )
    assert sampled(seen, 1) == [0, 1]
    assert sampled(seen, 8) == [1, 0]


def test_a_queue_whose_mean_is_past_everything_may_still_have_something_to_lose() -> None:
    seen = measured([[LOOSE], [LOOSE]], [6.0, 1.0], oldest=[NOW - 12 * SECOND, NOW - SECOND])
    assert sampled(seen, 1) == [1, 0]
    assert sampled(seen, 8) == [0, 1]


Case = tuple[list[list[Points | None]], list[float]]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    some = draw(st.lists(st.lists(st.one_of(st.none(), graphs()), max_size=3), min_size=1, max_size=8))
    return some, [draw(eighths) for _ in some]


@given(case=cases(), factor=st.sampled_from([0.25, 0.5, 2.0, 16.0]))
def test_scaling_all_utilities_does_not_change_the_order(case: Case, factor: float) -> None:
    def scaled(one: Points | None) -> Points | None:
        return None if one is None else tuple((x, y * factor) for x, y in one)

    some, latencies = case
    assert order(measured([[scaled(one) for one in each] for each in some], latencies)) == order(measured(*case))


@given(case=cases(), data=st.data())
def test_the_order_of_the_units_does_not_matter(case: Case, data: st.DataObject) -> None:
    some, latencies = case
    oldest = list(range(len(some)))  # all different, so that no tie is left to the number
    shuffled: Sequence[int] = data.draw(st.permutations(oldest))
    straight = order(measured(some, latencies, oldest=oldest))
    mixed = order(measured([some[at] for at in shuffled], [latencies[at] for at in shuffled], oldest=shuffled))
    assert [shuffled[at] for at in mixed] == straight


@given(case=cases(), ready=st.lists(st.booleans(), min_size=8, max_size=8))
def test_pure_and_about_ready_units_only(case: Case, ready: list[bool]) -> None:
    mask = np.array(ready[: len(case[0])])
    seen = measured(*case, ready=mask)
    before = copy.deepcopy(seen.ready)
    assert order(seen) == order(seen)
    assert (seen.ready == before).all()
    assert sorted(order(seen)) == np.flatnonzero(mask).tolist()


rough = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3)), max_size=40)


@given(keys=rough, count=st.integers(1, 12))
def test_the_foremost_are_the_first_of_all(keys: list[tuple[int, int, int]], count: int) -> None:
    columns = [np.array([key[at] for key in keys], np.float64) for at in range(3)]
    found = foremost(np.arange(len(keys)), columns, count)
    assert found.tolist() == sorted(range(len(keys)), key=lambda at: (*keys[at], at))[:count]


def test_nothing_is_ready() -> None:
    assert order(snapshot([False, False])) == []


@given(cases())
def test_with_tuples_of_one_age_samples_change_nothing(case: Case) -> None:
    assert sampled(measured(*case), 1) == sampled(measured(*case), 8)
