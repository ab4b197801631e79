"""Trains that follow from slack and cost: by hand, and as laws."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headway.clock import SECOND
from headway.scheduling.graphs import DEFAULT_GOOD
from headway.scheduling.policy import Plan, Policy, Step
from headway.scheduling.round_robin import RoundRobin
from headway.scheduling.slope_slack import SlopeSlack
from headway.scheduling.snapshot import Snapshot
from headway.scheduling.trains import FIRST, MOST, SHARE, Patient
from tests.policies import RandomPolicy
from tests.scheduling.snapshots import Points, graphs, measured, replace

NOW = 100 * SECOND
INNER = (RoundRobin(), SlopeSlack(), RandomPolicy(3))


def until_two(end: float = 2.0) -> Points:
    return ((0.0, 1.0), (end, 1.0), (2 * end, 0.0))


def plan(seen: Snapshot, policy: Policy | None = None) -> Plan:
    patient = Patient(policy or RoundRobin())
    return patient.plan(seen, patient.start())[0]


def test_a_unit_waits_until_half_of_its_good_zone_is_used() -> None:
    # 0.3 s old, and 0.1 s + 50 * 0.002 s to do: 0.5 s of the 1 s that may be used.
    seen = measured([[until_two()]], [0.3], overhead=[0.1], cost=[0.002], waiting=[50])
    assert plan(seen) == Plan((), NOW + SECOND // 2)
    later = replace(seen, now=NOW + SECOND // 2)
    assert plan(later) == Plan((Step(0, MOST),))


def test_the_oldest_tuple_counts() -> None:
    seen = measured([[until_two()]], [0.3], oldest=[NOW - SECOND], overhead=[0.1])
    assert [step.unit for step in plan(seen).steps] == [0]


def test_the_shortest_good_zone_of_its_outputs_counts() -> None:
    seen = measured([[until_two(), until_two(0.5), None]], [0.1], overhead=[0.05])
    assert plan(seen) == Plan((), NOW + SECOND // 10)


def test_without_a_graph_or_with_one_that_never_falls_half_a_second_is_waited() -> None:
    for graph in (None, ((0.0, 1.0), (9.0, 1.0))):
        seen = measured([[graph]], [0.0], overhead=[0.1])
        assert plan(seen).until == NOW + round((SHARE * DEFAULT_GOOD - 0.1) * SECOND)


def outputs(seen: Snapshot, held: float) -> Snapshot:
    inside = np.full(len(seen.topology.outputs), held)
    return replace(seen, read_held=lambda: inside)


def test_what_windows_hold_is_not_there_to_wait() -> None:
    seen = measured([[until_two(22.0)]], [0.0], overhead=[0.1])
    assert plan(seen).until == NOW + round((11 - 0.1) * SECOND)
    assert plan(outputs(seen, 20.0)).until == NOW + round((1 - 0.1) * SECOND)
    assert plan(outputs(seen, 30.0)).until == plan(seen).until, "what is late anyway is not hurried"


def test_how_long_windows_hold_is_looked_at_in_every_plan() -> None:
    patient = Patient(RoundRobin())
    seen = measured([[until_two(22.0)]], [0.0], overhead=[0.1])
    first, memory = patient.plan(seen, patient.start())
    held, memory = patient.plan(outputs(seen, 20.0), memory)
    assert (first.until, held.until) == (NOW + round(10.9 * SECOND), NOW + round(0.9 * SECOND))
    assert patient.plan(seen, memory)[0] == first


def test_windows_that_time_out_are_not_kept_waiting() -> None:
    seen = measured([[until_two(22.0)]], [0.0], overhead=[0.1])
    timed = replace(seen.topology, timeouts=(4.0,) * len(seen.topology.boxes))
    assert plan(replace(seen, topology=timed)).until == NOW + round((2 - 0.1) * SECOND)


def test_it_does_not_wait_for_nothing() -> None:
    held = measured([[until_two()]], [0.0], overhead=[0.1], cost=[1e-9])
    assert plan(held).steps == ()
    assert plan(replace(held, more=False)).steps, "nothing more will come"
    assert plan(replace(held, waiting=np.array([MOST]))).steps, "enough have come"
    assert plan(replace(held, waiting=np.array([0]))).steps, "only marks wait"
    assert plan(measured([[until_two()]], [0.0])).steps == (Step(0, FIRST),), "its cost is to be learnt"
    assert plan(measured([[((0.0, 1.0), (1.0, 0.0))]], [0.0], overhead=[0.1])).steps, "every moment counts"


def test_what_else_there_is_to_do_is_foreseen() -> None:
    # Three units of 0.4 s each: 1.2 s of work is more than 1 s, so the work begins; two of them could wait.
    three = measured([[until_two()]] * 3, [0.0] * 3, overhead=[0.4] * 3)
    assert len(plan(three).steps) == 3
    two = measured([[until_two()]] * 2, [0.0] * 2, overhead=[0.4] * 2)
    assert plan(two) == Plan((), NOW + SECOND // 5)
    assert plan(replace(three, workers=2, free=2)).until == NOW + SECOND // 5


def test_only_those_that_are_due_are_shown_to_the_policy() -> None:
    seen = measured([[until_two()], [until_two(0.2)], [until_two()]], [0.0, 0.0, 0.99], overhead=[0.1] * 3)
    made = plan(seen)
    assert [step.unit for step in made.steps] == [1, 2]
    assert made.until == NOW + round((1 - 0.3) * SECOND)


def test_a_step_leaves_others_their_slack() -> None:
    seen = measured([[until_two()], [until_two(1.0)]], [5, 5], overhead=[0.1, 0.1], cost=[0.01, 0.01])
    # The first may use half of the other's 1 s, the second half of 2 s, both less 0.1 s that a call costs.
    assert plan(seen).steps == (Step(0, 40), Step(1, 90))
    alone = measured([[until_two()]], [5], overhead=[0.1], cost=[0.01])
    assert plan(alone).steps == (Step(0, MOST),)
    assert plan(replace(seen, workers=3, free=3)).steps == (Step(0, MOST), Step(1, MOST)), "nobody has to wait"
    assert plan(replace(seen, workers=2, free=1)).steps[0] == Step(0, MOST), "each unit has a worker of its own"


def test_a_step_is_at_least_half_useful() -> None:
    seen = measured([[until_two()], [((0.0, 1.0), (1.0, 0.0))]], [5, 5], overhead=[0.1, 0.1], cost=[0.003, 0.003])
    assert plan(seen).steps[0] == Step(0, 34)


def test_a_policy_may_take_fewer() -> None:
    seen = measured([[until_two()]], [5], overhead=[0.1], cost=[0.01])
    assert plan(seen, RandomPolicy(1)).steps[0].tuples <= 1000


class _Later(Policy):
    def plan(self, snapshot: Snapshot, memory: None) -> tuple[Plan, None]:
        return Plan((), snapshot.now + 5), None


def test_the_earlier_moment_counts() -> None:
    seen = measured([[until_two()], []], [0.0, 9.0], overhead=[0.1, 0.1])
    assert plan(seen, _Later()).until == NOW + 5
    assert plan(measured([[]], [9.0]), _Later()).until == NOW + 5


def test_readings_are_read_once() -> None:
    asked: list[str] = []
    seen = measured([[until_two()]] * 2, [0.0, 1.5], overhead=[0.1, 0.1])
    costs, latencies = seen.costs, seen.latencies

    def read(name: str, value: Any) -> Any:
        asked.append(name)
        return value

    seen = replace(seen, read_costs=lambda: read("costs", costs), read_latencies=lambda: read("latencies", latencies))
    plan(seen, SlopeSlack())
    assert asked == ["costs", "latencies"]


@st.composite
def situations(draw: st.DrawFn) -> Snapshot:
    some = draw(st.lists(st.lists(st.one_of(st.none(), graphs()), max_size=2), min_size=1, max_size=6))
    count = len(some)

    def each(values: st.SearchStrategy[Any]) -> list[Any]:
        return [draw(values) for _ in range(count)]

    seen = measured(
        some,
        each(st.floats(0, 12)),
        overhead=each(st.sampled_from([0.0, 0.0001, 0.01, 0.3])),
        cost=each(st.sampled_from([0.0, 1e-6, 1e-3])),
        waiting=each(st.sampled_from([0, 1, 100, MOST, 2 * MOST])),
        more=draw(st.booleans()),
    )
    return replace(seen, ready=np.array(each(st.booleans()), np.bool_))


@given(seen=situations(), inner=st.sampled_from(INNER))
def test_pure_a_subset_of_ready_and_until_is_in_the_future(seen: Snapshot, inner: Policy) -> None:
    ready, train = seen.ready.copy(), seen.train
    made = plan(seen, inner)
    assert plan(seen, inner) == made
    assert (seen.ready == ready).all()
    assert seen.train == train
    assert {step.unit for step in made.steps} <= set(np.flatnonzero(ready).tolist())
    assert all(1 <= step.tuples <= MOST for step in made.steps)
    assert made.until is None or made.until > seen.now
    if ready.any() and not made.steps:
        assert made.until is not None, "somebody has to be asked again"


@given(seen=situations())
def test_nobody_waits_beyond_a_share_of_its_good_zone(seen: Snapshot) -> None:
    """Round robin serves everybody whom it sees; so who is not served by then was kept waiting too long."""
    ends = [
        1.0 if q.latency is None or q.latency.good_until == np.inf else q.latency.good_until for q in seen.topology.qos
    ]
    for unit in np.flatnonzero(seen.ready & (seen.waiting > 0)).tolist():
        good = min([ends[at] for at in seen.units[unit].outputs], default=1.0)
        due = max(seen.now, int(seen.oldest[unit]) + round(SHARE * good * SECOND) + 1)
        assert unit in [step.unit for step in plan(replace(seen, now=due)).steps]


@given(seen=situations())
def test_asking_again_when_it_said_grants_somebody(seen: Snapshot) -> None:
    moment, rounds = seen.now, 0
    while seen.ready.any():
        made = plan(replace(seen, now=moment))
        if made.steps:
            break
        assert made.until is not None
        moment, rounds = made.until, rounds + 1
        assert rounds < 4, "rounding costs at most a nanosecond or two"


class _Preemptive(Policy):
    """Serve whatever is ready."""

    preemptive = True

    def start(self) -> None:
        return None

    def plan(self, snapshot: Snapshot, memory: None) -> tuple[Plan, None]:
        return Plan(tuple([Step(int(unit), 1) for unit in np.flatnonzero(snapshot.ready)])), None


def test_what_has_begun_is_not_kept_from_going_on() -> None:
    seen = measured([[until_two()]] * 3, [0.0] * 3, overhead=[0.1] * 3)
    begun = replace(seen, busy=np.array([True, False, False]), spent=np.array([0.0, 0.01, 0.0]))
    assert plan(begun).steps == ()
    assert [step.unit for step in plan(begun, _Preemptive()).steps] == [0, 1]


def test_its_terms_are_those_by_which_the_inner_policy_decides() -> None:
    # All 100 tuples are taken, whatever the train of the snapshot: 5 s + 100 * 0.01 s.
    seen = measured([[until_two()], [until_two(4.0)]], [5.0, 5.0], cost=[0.01, 0.01], waiting=[100, 100], train=1)
    patient = Patient(SlopeSlack())
    utility, slack, _ = patient.terms(seen, patient.start())
    assert (utility.values.tolist(), slack.values.tolist()) == ([0, 0.25], [np.inf, np.inf])
    seen = measured([[until_two(8.0)]], [5.0], cost=[0.01], waiting=[100], train=1)
    assert patient.terms(seen, patient.start())[1].values.tolist() == [2.0]
