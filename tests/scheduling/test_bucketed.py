"""Bucketed slope-slack: examples by hand; one bucket is round robin, many are slope and slack."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from headway.clock import SECOND
from headway.costs import UnitCosts
from headway.errors import PolicyError
from headway.scheduling.bucketed import Bucketed, Buckets, Index, Sweep, bucket_graphs
from headway.scheduling.graphs import unit_graphs
from headway.scheduling.policy import STEPS, Plan, make_policy, terms_of
from headway.scheduling.round_robin import RoundRobin
from headway.scheduling.slope_slack import SlopeSlack
from headway.scheduling.snapshot import Snapshot
from tests.scheduling.snapshots import Points, eighths, graphs, measured, replace, snapshot

STAIRS = ((0.0, 1.0), (1.0, 1.0), (3.0, 0.6), (4.0, 0.1), (5.0, 0.0))
"""Slopes 0, -0.2, -0.5, -0.1 and then 0; critical points at 1, 3 and 4."""
LOOSE = ((0.0, 1.0), (4.0, 1.0), (5.0, 0.0))
NOW = 100 * SECOND


def units_of(plan: Plan) -> list[int]:
    return [step.unit for step in plan.steps]


def order(policy: Bucketed, seen: Snapshot) -> list[int]:
    return units_of(policy.plan(seen, policy.start())[0])


def buckets(policy: Bucketed, seen: Snapshot) -> list[tuple[int, int]]:
    gradient, slack = terms_of(policy, seen, policy.start())
    assert (gradient.name, gradient.largest) == ("gradient bucket", True)
    assert (slack.name, slack.largest) == ("slack bucket", False)
    return list(zip(gradient.values.tolist(), slack.values.tolist(), strict=True))


# By hand


def test_the_buckets_of_a_graph_with_three_critical_points() -> None:
    # Gradients in fifths of 0.5; slacks in quarters of 4 s, and a fifth bucket for those without a point ahead.
    seen = measured([[STAIRS]] * 6, [0.5, 1.0, 1.5, 3.5, 4.5, 6.0])
    assert buckets(Bucketed(5, 5), seen) == [(0, 0), (2, 1), (2, 1), (4, 0), (1, 4), (0, 4)]
    assert order(Bucketed(5, 5), seen) == [3, 1, 2, 4, 0, 5]


def test_several_outputs_add_their_slopes_and_the_nearest_point_counts() -> None:
    # The steepest is 1.1 at 4 to 5 s, where both fall; at 3.5 s both have 0.5 s left.
    seen = measured([[STAIRS, LOOSE], [STAIRS, None], [LOOSE], [], [None]], [4.5, 3.5, 3.5, 9.0, 0.0])
    assert buckets(Bucketed(11, 5), seen) == [(10, 4), (4, 0), (0, 0), (0, 4), (0, 4)]
    assert order(Bucketed(11, 5), seen) == [0, 1, 2, 3, 4]


def test_how_long_a_unit_stays() -> None:
    seen = measured([[LOOSE], [STAIRS], []], [0.0] * 3)
    made = bucket_graphs(seen.topology, seen.units, 5, 5)
    assert made.width == 1.0
    assert made.place(0, 0.0) == (4 * 5 + 3, 1.0)  # 4 s of slack, until there are 3
    assert made.place(0, 0.75) == (4 * 5 + 3, 0.25)
    assert made.place(0, 1.0) == (4 * 5 + 2, 1.0)
    assert made.place(0, 3.5) == (4 * 5 + 0, 0.5)
    assert made.place(0, 4.0) == (0 * 5 + 4, 1.0)
    assert made.place(0, 5.0) == (4 * 5 + 4, math.inf)
    assert made.place(1, 0.0) == (4 * 5 + 0, 1.0)
    assert made.place(2, 0.0) == (4 * 5 + 4, math.inf)


@pytest.mark.parametrize("point", [0.1, 0.7, 1 / 3, 4.0, 1e-3])
def test_a_bucket_ends_where_the_next_begins_however_numbers_are_rounded(point: float) -> None:
    seen = measured([[((0.0, 1.0), (point, 1.0), (2 * point, 0.0))]], [0.0])
    for slacks in range(3, 60):
        made = bucket_graphs(seen.topology, seen.units, 1, slacks)
        for edge in range(1, slacks - 1):
            latency = point - edge * made.width
            before, seconds = made.place(0, np.nextafter(latency, -1.0))
            assert before == edge
            assert 0 < seconds < 1e-9
            after, seconds = made.place(0, latency)
            assert after == edge - 1
            assert seconds == pytest.approx(made.width)
            assert made.places(np.array([0]), np.array([latency])).tolist() == [after]


def test_with_one_bucket_nobody_ever_changes() -> None:
    seen = measured([[LOOSE], [STAIRS]], [0.0, 3.5])
    made = bucket_graphs(seen.topology, seen.units, 1, 1)
    assert [made.place(unit, x) for unit in (0, 1) for x in (0.0, 3.5, 9.0)] == [(0, math.inf)] * 6


def test_cost_moves_a_unit_along_its_graph() -> None:
    # 0.5 s old, 0.1 s + 10 tuples at 0.05 s: expected at 1.1 s, on the first slope; a train is at most 10.
    seen = measured([[STAIRS]] * 2, [0.5, 0.5], overhead=[0.1, 0], cost=[0.05, 0], waiting=[500, 500], train=10)
    assert buckets(Bucketed(5, 5), seen) == [(2, 1), (0, 0)]


def test_equals_take_turns() -> None:
    policy, seen = Bucketed(), measured([[LOOSE]] * 5, [1.0] * 5, room=2)
    memory, served = policy.start(), []
    for _ in range(5):
        plan, memory = policy.plan(seen, memory)
        served.append(units_of(plan))
    assert served == [[0, 1], [2, 3], [4, 0], [1, 2], [3, 4]]


def test_a_plan_is_about_two_milliseconds_of_work() -> None:
    policy = Bucketed()
    assert len(order(policy, measured([[]] * 100, [1] * 100))) == STEPS
    assert len(order(policy, measured([[]] * 100, [1] * 100, overhead=[0.0003] * 100))) == 7
    assert len(order(policy, measured([[]] * 100, [1] * 100, overhead=[3.0] * 100))) == 1
    assert len(order(policy, measured([[]] * 100, [1] * 100, room=5))) == 5
    assert order(policy, measured([[]] * 100, [1] * 100, room=0)) == []


def test_with_workers_a_step_for_each_free_one_and_no_box_twice() -> None:
    policy, seen = Bucketed(), measured([[LOOSE]] * 5, [4.5, 1, 2, 3, 3.5], workers=4, free=2)
    assert order(policy, seen) == [0, 4]
    busy = np.array([True, False, False, False, False])
    assert order(policy, replace(seen, busy=busy)) == [4, 3]
    assert order(policy, replace(seen, free=0)) == []
    units = (*seen.units[:4], replace(seen.units[4], boxes=(0, 4)))
    assert order(policy, replace(seen, units=units)) == [0, 3]


def test_who_was_passed_over_for_a_shared_box_is_next() -> None:
    seen = measured([[LOOSE]] * 3, [1.0] * 3, workers=2, free=2)
    units = (seen.units[0], replace(seen.units[1], boxes=(0, 1)), seen.units[2])
    seen, policy = replace(seen, units=units), Bucketed()
    memory, served = policy.start(), []
    for _ in range(4):
        plan, memory = policy.plan(seen, memory)
        served.append(units_of(plan))
    assert served == [[0, 2], [1, 2], [0, 2], [1, 2]]


def test_a_plan_reads_what_changed_and_nothing_else() -> None:
    asked: list[int] = []

    def read_latency(unit: int) -> float:
        asked.append(unit)
        return 4.5

    def read_latencies() -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        raise AssertionError("all were read")

    policy, seen = Bucketed(), measured([[LOOSE]] * 4, [1.0] * 4)
    _, memory = policy.plan(seen, policy.start())
    later = replace(seen, now=NOW + 1, changed=[2], read_latency=read_latency, read_latencies=read_latencies)
    plan, _ = policy.plan(later, memory)
    assert units_of(plan) == [2, 0, 1, 3]
    assert asked == [2]


def test_a_unit_that_is_not_ready_is_not_served_even_if_nobody_said_so() -> None:
    policy, seen = Bucketed(), measured([[LOOSE]] * 3, [1.0] * 3)
    _, memory = policy.plan(seen, policy.start())
    ready = np.array([True, False, True])
    plan, memory = policy.plan(replace(seen, ready=ready, changed=()), memory)
    assert units_of(plan) == [0, 2]
    plan, memory = policy.plan(replace(seen, changed=()), memory)
    assert units_of(plan) == [0, 2]
    plan, _ = policy.plan(replace(seen, changed=[1]), memory)
    assert units_of(plan) == [0, 1, 2]


def dated(memory: Buckets) -> list[int]:
    assert isinstance(memory.known, Index)
    return sorted([unit for unit, (_, _, _, date) in memory.known.placed.items() if date > NOW])


def test_only_units_that_are_ready_have_a_date() -> None:
    policy, seen = Bucketed(), measured([[LOOSE]] * 3, [1.0] * 3)
    _, memory = policy.plan(seen, policy.start())
    assert isinstance(memory.known, Sweep)  # dates are made when somebody says what changed
    _, memory = policy.plan(replace(seen, changed=()), memory)
    assert dated(memory) == [0, 1, 2]
    ready = np.array([True, False, True])
    _, memory = policy.plan(replace(seen, ready=ready, changed=[1]), memory)
    assert dated(memory) == [0, 2]


def test_a_busy_unit_keeps_its_place() -> None:
    policy, seen = Bucketed(), measured([[LOOSE]] * 3, [1.0] * 3)
    _, memory = policy.plan(seen, policy.start())
    busy = np.array([True, False, False])
    plan, memory = policy.plan(replace(seen, busy=busy, changed=[0]), memory)
    assert units_of(plan) == [1, 2]
    plan, _ = policy.plan(replace(seen, changed=()), memory)
    assert units_of(plan) == [0, 1, 2]


def test_time_alone_moves_units_that_wait() -> None:
    # Unit 1 has 0.5 s left and unit 0 has 3 s; 1.25 s later unit 1 loses, and 2 s after that it has lost all.
    short = ((0.0, 1.0), (2.0, 1.0), (4.0, 0.0))
    policy, seen = Bucketed(), measured([[LOOSE], [short]], [1.0, 1.5])
    plan, memory = policy.plan(seen, policy.start())
    assert units_of(plan) == [1, 0]
    for seconds, wanted in ((1.25, [1, 0]), (2.75, [0, 1]), (3.25, [0, 1]), (9.0, [0, 1])):
        later = replace(seen, now=NOW + int(seconds * SECOND), changed=())
        plan, memory = policy.plan(later, memory)
        assert sorted(wanted) == sorted(units_of(plan))
        if seconds < 9:  # then both are past everything, and it is somebody's turn
            assert units_of(plan) == wanted


def test_another_train_is_another_cost() -> None:
    policy = Bucketed()
    seen = measured([[LOOSE]] * 2, [2.0, 3.0], cost=[0.5, 0.0], waiting=[10, 1], train=1)
    plan, memory = policy.plan(seen, policy.start())
    assert units_of(plan)[0] == 1  # at 2.5 and 3.0 s
    plan, _ = policy.plan(replace(seen, train=5, changed=()), memory)
    assert units_of(plan)[0] == 0  # at 4.5 s it loses


def test_the_memory_follows_the_units() -> None:
    policy = Bucketed()
    first, second = measured([[LOOSE], [STAIRS]], [0.5, 0.5]), measured([[STAIRS], [LOOSE]], [0.5, 0.5])
    plan, memory = policy.plan(first, policy.start())
    assert units_of(plan) == [1, 0]
    assert policy.plan(first, memory)[1].graphs is memory.graphs
    plan, other = policy.plan(replace(second, changed=()), memory)
    assert units_of(plan) == [0, 1]
    assert other is not memory


def test_nothing_of_a_snapshot_is_kept_or_written() -> None:
    policy, seen = Bucketed(), measured([[LOOSE], [STAIRS]], [0.5, 0.5])
    arrays = (seen.waiting, seen.oldest, seen.latencies, seen.costs.overhead, seen.costs.cost)
    before = [array.copy() for array in arrays]
    _, memory = policy.plan(seen, policy.start())
    for array, old in zip(arrays, before, strict=True):
        assert (array == old).all()
        array.setflags(write=True)
        array[:] = 1000  # the engine's own may go on changing
    plan, _ = policy.plan(replace(seen, changed=()), memory)
    assert units_of(plan) == [1, 0]


def test_nothing_is_ready_and_nothing_is_there() -> None:
    assert order(Bucketed(), snapshot([False, False])) == []
    assert order(Bucketed(), measured([], [])) == []


def test_its_argument_is_one_number_or_two() -> None:
    assert make_policy("bucketed") == Bucketed(20, 20)
    assert make_policy("bucketed:7") == Bucketed(7, 7)
    assert make_policy("bucketed:20x10") == Bucketed(20, 10)


@pytest.mark.parametrize("argument", ["0", "", "x", "20x", "x20", "3x0", "1x2x3", "-1", "4097"])
def test_other_arguments_are_refused(argument: str) -> None:
    with pytest.raises(PolicyError, match=f"bucketed:{argument}.*1 to 4096"):
        make_policy(f"bucketed:{argument}")


# Laws


def utilities(seen: Snapshot) -> tuple[float, float]:
    """Return the least and the largest utility that any unit has at any latency."""
    made, count = unit_graphs(seen.layout), len(seen.units)
    every = [made.slopes_and_slacks(np.full(count, x))[0] for x in np.arange(-1, 81) / 8]
    return float(np.min(every)), float(np.max(every))


some_graphs = st.lists(st.lists(st.one_of(st.none(), graphs()), max_size=3), min_size=1, max_size=8)
partitions = st.tuples(st.integers(1, 9), st.integers(1, 9))


@settings(deadline=None)
@given(some=some_graphs, parts=partitions, data=st.data())
def test_the_bucket_is_the_one_of_utility_and_slack(
    some: list[list[Points | None]], parts: tuple[int, int], data: st.DataObject
) -> None:
    gradients, slacks = parts
    seen = measured(some, [data.draw(eighths) for _ in some])
    made = bucket_graphs(seen.topology, seen.units, gradients, slacks)
    exact = unit_graphs(seen.layout)
    least, most = utilities(seen)
    placed = made.places(np.arange(len(some)), seen.latencies)
    for unit, (utility, slack) in enumerate(zip(*exact.slopes_and_slacks(seen.latencies), strict=True)):
        bucket, seconds = made.place(unit, float(seen.latencies[unit]))
        assert bucket == placed[unit]
        assert seconds > 0
        down, along = divmod(bucket, slacks)
        if most > least:
            edge = (utility - least) / (most - least) * gradients
            assert gradients - 1 - down == min(int(edge), gradients - 1)
        if slacks > 1 and slack < np.inf:
            assert along * made.width < slack + 1e-9
            assert slack <= (along + 1) * made.width + 1e-9
        else:
            assert along == slacks - 1


@settings(deadline=None)
@given(some=some_graphs, parts=partitions, begin=eighths)
def test_a_unit_stays_as_long_as_is_said(some: list[list[Points | None]], parts: tuple[int, int], begin: float) -> None:
    seen = measured(some, [0.0] * len(some))
    made = bucket_graphs(seen.topology, seen.units, *parts)
    for unit in range(len(some)):
        latency = begin
        for _ in range(100):
            bucket, seconds = made.place(unit, latency)
            if seconds == math.inf:
                break
            assert made.place(unit, latency + seconds * 0.999)[0] == bucket
            latency += seconds + 1e-9
            assert made.place(unit, latency)[0] != bucket or made.place(unit, latency)[1] > 1e-9
        assert made.place(unit, 1000.0)[0] == made.place(unit, latency)[0]


def p_tuples(seen: Snapshot) -> list[tuple[float, float]]:
    made = unit_graphs(seen.layout).slopes_and_slacks(seen.latencies)
    return [(float(utility), float(slack)) for utility, slack in zip(*made, strict=True)]


@settings(deadline=None)
@given(some=some_graphs, data=st.data())
def test_many_buckets_choose_what_slope_and_slack_choose(some: list[list[Points | None]], data: st.DataObject) -> None:
    seen = measured(some, [data.draw(eighths) for _ in some])
    parts, tuples = 4096, p_tuples(seen)
    width = bucket_graphs(seen.topology, seen.units, parts, parts).width
    least, most = utilities(seen)
    utility, slack = tuples[units_of(SlopeSlack().plan(seen, None)[0])[0]]
    near = [
        one
        for one in tuples
        if utility - one[0] <= (most - least) / parts and (one[0] < utility or one[1] - slack <= width)
    ]  # those that may share the best one's bucket
    assert tuples[order(Bucketed(parts, parts), seen)[0]] in [(utility, slack), *near]


@settings(deadline=None)
@given(some=some_graphs, parts=partitions, data=st.data())
def test_the_plan_is_in_the_order_of_its_terms(
    some: list[list[Points | None]], parts: tuple[int, int], data: st.DataObject
) -> None:
    policy = Bucketed(*parts)
    seen = measured(some, [data.draw(eighths) for _ in some])
    placed = buckets(policy, seen)
    found = order(policy, seen)
    assert found == sorted(range(len(some)), key=lambda unit: (-placed[unit][0], placed[unit][1], unit))


@settings(deadline=None)
@given(
    masks=st.integers(1, 40).flatmap(lambda n: st.lists(st.lists(st.booleans(), min_size=n, max_size=n), max_size=25)),
    rooms=st.lists(st.integers(1, STEPS), min_size=25, max_size=25),
    told=st.lists(st.booleans(), min_size=25, max_size=25),
)
def test_one_bucket_is_round_robin(masks: list[list[bool]], rooms: list[int], told: list[bool]) -> None:
    assume(masks)
    base = measured([[LOOSE]] * len(masks[0]), [1.0] * len(masks[0]))
    one, other = Bucketed(1, 1), RoundRobin()
    bucketed, turn = one.start(), other.start()
    before = masks[0]
    for at, (mask, room, tell) in enumerate(zip(masks, rooms, told, strict=False)):
        changed = [unit for unit, ready in enumerate(mask) if ready != before[unit]] if tell else None
        seen = replace(base, now=NOW + at * SECOND, ready=np.array(mask, np.bool_), room=room, changed=changed)
        mine, bucketed = one.plan(seen, bucketed)
        wanted, turn = other.plan(seen, turn)
        assert mine == wanted
        before = mask


@dataclass
class Queues:
    """Units whose tuples arrived at some moment each, or that are empty."""

    base: Snapshot
    arrived: list[int | None]
    busy: list[bool]
    cost: list[float]

    def seen(self, now: int, changed: Sequence[int] | None, room: int) -> Snapshot:
        latencies = np.array([0.0 if one is None else (now - one) / SECOND for one in self.arrived])
        ready = np.array([one is not None for one in self.arrived], np.bool_)
        costs = UnitCosts(np.array(self.cost), np.zeros(len(ready)), np.ones(len(ready)))
        return replace(
            self.base,
            now=now,
            ready=ready,
            busy=np.array(self.busy, np.bool_),
            waiting=ready.astype(np.int64),
            room=room,
            changed=changed,
            read_latencies=lambda: latencies,
            read_latency=lambda unit: float(latencies[unit]),
            read_costs=lambda: costs,
        )


@settings(deadline=None)
@given(some=some_graphs, parts=partitions, data=st.data())
def test_to_be_told_what_changed_changes_nothing(
    some: list[list[Points | None]], parts: tuple[int, int], data: st.DataObject
) -> None:
    """Eighths of seconds and powers of two: everything is exact, so that plans are the same to the last unit."""
    policy, count = Bucketed(parts[0], 1 + 2 ** (parts[1] % 4)), len(some)
    queues = Queues(measured(some, [0.0] * count), [None] * count, [False] * count, [0.0] * count)
    told, untold, now = policy.start(), policy.start(), NOW
    for _ in range(data.draw(st.integers(1, 12))):
        now += data.draw(st.integers(0, 16)) * SECOND // 8
        changed = sorted(data.draw(st.sets(st.integers(0, count - 1))))
        for unit in changed:
            age = data.draw(st.one_of(st.none(), st.integers(0, 16)))
            queues.arrived[unit] = None if age is None else now - age * SECOND // 8
            queues.cost[unit] = data.draw(eighths) / 1024  # some fill a plan, some do not
        queues.busy = [data.draw(st.integers(0, 4)) == 0 for _ in some]  # which is not told
        room = data.draw(st.integers(1, 8))
        one, told = policy.plan(queues.seen(now, changed, room), told)
        other, untold = policy.plan(queues.seen(now, None, room), untold)
        assert one == other


def test_a_bucket_serves_everybody_as_often() -> None:
    policy = Bucketed(1, 1)
    count = 3 * STEPS + 17
    seen, memory = snapshot([True] * count), policy.start()
    served: Counter[int] = Counter()
    for _ in range(40):
        plan, memory = policy.plan(seen, memory)
        served.update(units_of(plan))
    assert set(served) == set(range(count))
    assert max(served.values()) - min(served.values()) <= 1


def test_the_calendar_is_cleared_of_dates_that_no_longer_hold() -> None:
    policy, seen = Bucketed(), measured([[LOOSE]] * 3, [1.0] * 3)
    memory = policy.start()
    for at in range(1000):
        _, memory = policy.plan(replace(seen, changed=[0, 1, 2], now=NOW + at), memory)
        assert not isinstance(memory.known, Index) or len(memory.known.calendar) < 100


def test_the_memory_is_made_for_a_network() -> None:
    seen = measured([[LOOSE]], [1.0])
    _, memory = Bucketed().plan(seen, None)
    assert memory.graphs.units is seen.units
    assert Bucketed().prepare(seen, memory) is memory
