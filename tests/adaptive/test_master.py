"""The master scheduler: turns worked out by hand, and what holds whatever the policies are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.adaptive.master import MOST_OWED, Master, MasterMemory
from headway.catalog import Statistics
from headway.clock import MILLISECOND, SECOND
from headway.costs import UnitCosts
from headway.errors import PolicyError
from headway.scheduling.bounded import Bounded
from headway.scheduling.policy import Plan, Policy, Step, make_policy, terms_of
from headway.scheduling.round_robin import RoundRobin
from headway.scheduling.slope_slack import SlopeSlack
from headway.scheduling.snapshot import OutputReadings, Snapshot
from headway.scheduling.trains import parse_train
from tests.policies import RandomPolicy
from tests.scheduling.snapshots import Points, graphs, measured, replace, snapshot
from tests.searching import examples

QUANTUM = 2 * MILLISECOND
TEXTS = (
    "round-robin",
    "weighted-round-robin",
    "fifo",
    "most-tuples",
    "slope-slack",
    "bucketed",
    "chain",
    "path-capacity",
    "segment",
    "simplified-segment",
    "rate-based",
    "earliest-deadline",
    "feedback",
    "random:5",
)
PREEMPTIVE = ("preemptive-rate-based", "round-robin:1ms")
SLICES = make_policy("round-robin:1ms")


@dataclass(frozen=True)
class Says(Policy):
    """The same steps each time, whoever is ready; the memory is all that it was shown."""

    steps: tuple[Step, ...] = ()
    until: int | None = None
    preemptive: bool = False

    def start(self) -> tuple[Snapshot, ...]:
        return ()

    def plan(self, snapshot: Snapshot, memory: tuple[Snapshot, ...]) -> tuple[Plan, tuple[Snapshot, ...]]:
        return Plan(self.steps, self.until), (*memory, snapshot)


def master(*policies: Policy, quantum: float = 0.002) -> Master:
    return Master(policies, [f"p{at}" for at in range(len(policies))], quantum)


def begun(policy: Master, by_unit: Sequence[int]) -> MasterMemory:
    return policy.assign(policy.start(), by_unit)


def changed(policy: Master, memory: MasterMemory, some: Sequence[int], place: int) -> MasterMemory:
    """Return the memory in which some units have another policy."""
    assert memory.assigned is not None
    by_unit = memory.assigned.tolist()
    return policy.assign(memory, [place if unit in some else one for unit, one in enumerate(by_unit)])


def units(plan: Plan) -> list[int]:
    return [step.unit for step in plan.steps]


def plans(policy: Policy, seen: Snapshot, memory: Any, count: int) -> list[list[int]]:
    """Ask several times, with the same readings; return the units of each plan."""
    made = []
    for _ in range(count):
        plan, memory = policy.plan(seen, memory)
        made.append(units(plan))
    return made


def costing(milliseconds: Sequence[float], waiting: int = 1000, **more: Any) -> Snapshot:
    """Return a snapshot of single boxes that all are ready, with tuples for many steps of so many milliseconds each."""
    count = len(milliseconds)
    return measured(
        [[]] * count,
        [0.0] * count,
        overhead=[one / 1000 for one in milliseconds],
        waiting=[waiting] * count,
        **more,
    )


# Turns


def test_nothing_is_known_of_costs_so_every_ready_unit_has_a_step_in_each_round() -> None:
    policy = master(RoundRobin(), RoundRobin())
    memory = begun(policy, [0, 1, 0, 1, 1])
    plan, memory = policy.plan(snapshot([True] * 5, train=10), memory)
    assert plan == Plan(tuple(Step(unit, 10) for unit in (0, 2, 1, 3, 4)))
    assert memory.left == (0, 0), "2 and 3 steps of a quantum each, in turns of 2 and 3 quanta"
    assert memory.turn == 1


def test_a_turn_is_a_quantum_for_each_ready_unit() -> None:
    # Units 0 to 2 have a turn of 6 ms, unit 3 one of 2 ms; a step takes 1 ms, and the engine asks after each.
    policy = master(RoundRobin(), RoundRobin())
    seen = costing([1.0] * 4, room=1)
    made = plans(policy, seen, begun(policy, [0, 0, 0, 1]), 16)
    assert made == [[0], [1], [2], [0], [1], [2], [3], [3]] * 2


def test_a_plan_goes_on_with_the_next_turn_while_there_is_room() -> None:
    policy = master(RoundRobin(), RoundRobin())
    seen = costing([2.0] * 4, room=256)
    plan, memory = policy.plan(seen, begun(policy, [0, 0, 0, 1]))
    assert units(plan) == [0, 1, 2, 3]
    assert memory.left == (0, 0)
    assert plans(policy, replace(seen, room=3), begun(policy, [0, 0, 0, 1]), 3) == [[0, 1, 2], [3, 0, 1], [2, 3, 0]]


def test_a_turn_that_is_not_used_up_goes_on_with_the_next_plan() -> None:
    # Each has one unit and turns of 2 ms: two steps of 1 ms, and then one of 2 ms.
    policy = master(RoundRobin(), RoundRobin())
    seen = costing([1.0, 2.0])
    assert plans(policy, seen, begun(policy, [0, 1]), 4) == [[0], [0, 1], [0], [0, 1]]


def test_who_has_nothing_left_to_do_hands_on_its_turn() -> None:
    # As before, but a step takes all that waits.
    policy = master(RoundRobin(), RoundRobin())
    seen = costing([1.0, 2.0], waiting=10)
    assert plans(policy, seen, begun(policy, [0, 1]), 2) == [[0, 1], [0, 1]]
    policy = master(Says(), RoundRobin())
    plan, memory = policy.plan(seen, begun(policy, [0, 1]))
    assert plan == Plan((Step(1, 10),)), "who lets its units wait does, too"
    assert memory.left[0] == 0


def test_what_was_taken_too_much_is_taken_off_the_next_turns() -> None:
    # Turns of 2 ms: a step of 5 ms uses two and a half, which the other has meanwhile.
    policy = master(RoundRobin(), RoundRobin())
    seen = costing([5.0, 1.0], room=1)
    made = plans(policy, seen, begun(policy, [0, 1]), 13)
    assert made == [[0], *[[1]] * 4, [0], *[[1]] * 6, [0]]
    _, memory = policy.plan(seen, begun(policy, [0, 1]))
    assert memory.left == (-3 * MILLISECOND, 0)


def test_rounds_in_which_all_only_pay_are_skipped() -> None:
    policy = master(RoundRobin(), RoundRobin())
    seen = costing([5000.0, 3000.0], room=1)
    made = plans(policy, seen, begun(policy, [0, 1]), 8)
    assert made == [[0], [1], [1], [0], [1], [1], [0], [1]], "15 seconds each"


def test_a_wild_estimate_does_not_shut_out_for_long() -> None:
    policy = master(RoundRobin(), RoundRobin())
    _, memory = policy.plan(costing([1e9, 1.0], room=1), begun(policy, [0, 1]))
    assert memory.left == (QUANTUM - MOST_OWED, 0)


def test_what_is_owed_is_forgiven_when_nobody_waits_for_it() -> None:
    policy = master(RoundRobin(), RoundRobin())
    seen = costing([500.0, 1.0], room=1)
    _, memory = policy.plan(seen, begun(policy, [0, 1]))
    assert memory.left[0] < 0
    alone, after = policy.plan(replace(seen, ready=np.array([False, True])), memory)
    assert units(alone) == [1]
    assert after.left == (0, 0)
    assert units(policy.plan(seen, after)[0]) == [0], "the other has had its turn"


def test_a_step_counts_for_its_box_and_not_for_what_follows() -> None:
    # Both units take 1 ms a step, but what follows the first takes another 9.
    seen = costing([10.0, 1.0], room=1)
    boxes = replace(Statistics(2).readings(), overhead=np.array([0.001] * 2))
    policy = master(RoundRobin(), RoundRobin())
    made = plans(policy, replace(seen, read_boxes=lambda: boxes), begun(policy, [0, 1]), 8)
    assert made == [[0], [0], [1], [1]] * 2
    made = plans(policy, replace(seen, read_boxes=lambda: boxes, exclusive=False), begun(policy, [0, 1]), 3)
    assert made == [[0], [1], [1]], "on Spark the costs of a unit are its own"


def test_a_policy_has_room_for_its_turn_only() -> None:
    policy, inner = master(Says((Step(0, 1),)), Says((Step(1, 1),))), costing([1.0] * 8, room=100)
    _, memory = policy.plan(inner, begun(policy, [0] + [1] * 7))
    first = memory.inner[0][0]
    assert (first.room, first.ready.tolist(), first.changed) == (2, [True] + [False] * 7, None)


def test_only_what_is_its_own_is_taken_of_a_policys_plan() -> None:
    policy = master(Says((Step(1, 1), Step(0, 1))), RoundRobin())
    plan, _ = policy.plan(snapshot([True] * 3), begun(policy, [0, 1, 1]))
    assert units(plan) == [0, 1, 2]


def test_the_earliest_moment_of_those_who_let_units_wait() -> None:
    seen = snapshot([True] * 3)
    policy = master(Says((), 70), Says((), 50), Says((Step(2, 1),), 20))
    assert policy.plan(seen, begun(policy, [0, 1, 2]))[0] == Plan((Step(2, 1),), 50)
    assert policy.plan(seen, begun(policy, [0, 1, 1]))[0] == Plan((), 50)
    assert policy.plan(seen, begun(policy, [0, 0, 0]))[0] == Plan((), 70)
    assert policy.plan(seen, begun(policy, [2, 2, 2]))[0] == Plan((Step(2, 1),), 20), "as that policy alone"


def test_nobody_is_ready() -> None:
    policy = master(RandomPolicy(0), RandomPolicy(1))
    assert policy.plan(snapshot([False] * 2), begun(policy, [0, 1]))[0] == Plan(())


# Workers


def test_workers_go_by_turns_and_boxes_are_used_once() -> None:
    seen = replace(costing([2.0] * 4), workers=3, free=3)
    policy = master(RoundRobin(), SlopeSlack())
    plan, _ = policy.plan(replace(seen, room=3), begun(policy, [0, 1, 1, 1]))
    assert units(plan) == [0, 1, 2], "a worker for the turn of 2 ms, and two for that of 6 ms"
    shared = (seen.units[0], replace(seen.units[1], boxes=(0, 1)), *seen.units[2:])
    plan, _ = policy.plan(replace(seen, units=shared, room=3), begun(policy, [0, 1, 1, 1]))
    assert units(plan) == [0, 2, 3], "1 shares a box with 0"
    plan, _ = policy.plan(replace(seen, units=shared, room=3, exclusive=False), begun(policy, [0, 1, 1, 1]))
    assert units(plan) == [0, 1, 2]


def test_who_is_busy_does_not_hold_up_others() -> None:
    seen = replace(costing([1.0] * 3), workers=2, free=1, busy=np.array([True, False, False]))
    policy = master(RoundRobin(), RoundRobin())
    plan, memory = policy.plan(replace(seen, room=1), begun(policy, [0, 1, 1]))
    assert units(plan) == [1]
    assert policy.plan(replace(seen, busy=np.array([True] * 3)), memory)[0] == Plan(())


# Preemption


def test_preemptive_if_one_is() -> None:
    assert master(RoundRobin(), SLICES).preemptive
    assert not master(RoundRobin(), SlopeSlack()).preemptive


def running(unit: int, count: int, held: int = 7, **more: Any) -> Snapshot:
    """Return a snapshot in which one unit's step is under way."""
    at = np.arange(count) == unit
    spent, holds = np.where(at, 0.5, 0.0), np.where(at, held, 0)
    return replace(snapshot([True] * count), busy=at, spent=spent, held=holds, free=0, room=1, **more)


def test_a_step_goes_on_unless_its_own_policy_preempts_it() -> None:
    policy = master(RoundRobin(), Says((Step(2, 3), Step(1, 3)), 40, preemptive=True))
    memory = begun(policy, [0, 1, 1])
    plan, _ = policy.plan(running(0, 3), memory)
    assert plan == Plan((Step(0, 7),)), "it belongs to a policy that does not preempt"
    plan, after = policy.plan(running(1, 3), memory)
    assert plan == Plan((Step(2, 3),), 40), "what its policy prefers; there is one worker"
    seen = after.inner[1][0]
    assert (seen.workers, seen.free, seen.room, seen.ready.tolist()) == (1, 0, 1, [False, True, True])
    silent = master(RoundRobin(), Says(preemptive=True))
    assert silent.plan(running(1, 3), begun(silent, [0, 1, 1]))[0] == Plan((Step(1, 7),)), "it says nothing"


def test_a_policy_that_does_not_preempt_is_not_asked_about_busy_units() -> None:
    policy = master(Says((Step(1, 3), Step(2, 3), Step(3, 3))), SLICES)
    seen = replace(running(1, 4), workers=2, free=1, room=1)
    for by_unit in ([0, 0, 0, 0], [0, 0, 0, 1]):
        plan, memory = policy.plan(seen, begun(policy, by_unit))
        assert plan == Plan((Step(1, 7), Step(2, 3)))
        assert not memory.inner[0][0].ready[1]
    plan, memory = policy.plan(replace(seen, workers=1, free=0), begun(policy, [0] * 4))
    assert plan == Plan((Step(1, 7),))
    assert memory.inner[0] == ()


def test_free_workers_go_by_turns_and_a_step_counts_when_it_begins() -> None:
    policy = master(RoundRobin(), Says((Step(1, 10), Step(2, 10)), preemptive=True))
    seen = replace(costing([2.0] * 3), room=1)
    memory = begun(policy, [0, 1, 1])
    plan, memory = policy.plan(seen, memory)
    assert (units(plan), memory.left) == ([0], (0, 0))
    plan, memory = policy.plan(replace(running(0, 3)), memory)
    assert (units(plan), memory.left) == ([0], (0, 0))
    plan, memory = policy.plan(seen, memory)
    assert (units(plan), memory.left) == ([1], (0, QUANTUM))
    plan, memory = policy.plan(replace(seen, busy=np.array([False, True, False]), free=0), memory)
    assert (units(plan), memory.left) == ([1], (0, QUANTUM)), "it is under way"
    plan, memory = policy.plan(replace(seen, spent=np.array([0.0, 0.5, 0.0])), memory)
    assert (units(plan), memory.left) == ([1], (0, QUANTUM)), "it is resumed"
    plan, memory = policy.plan(seen, memory)
    assert (units(plan), memory.left) == ([1], (0, 0))
    plan, memory = policy.plan(seen, memory)
    assert units(plan) == [0]


def test_several_workers_of_preemptive_policies() -> None:
    seen = replace(running(1, 5), workers=3, free=2, room=2)
    policy = master(RoundRobin(), Says((Step(4, 1), Step(3, 1), Step(2, 1)), 30, preemptive=True))
    plan, _ = policy.plan(seen, begun(policy, [0, 1, 1, 1, 1]))
    assert plan == Plan((Step(0, 10), Step(4, 1), Step(3, 1)), 30), "one of the free two, and what runs is replaced"
    shared = (replace(seen.units[0], boxes=(0, 4)), *seen.units[1:])
    plan, _ = policy.plan(replace(seen, units=shared), begun(policy, [0, 1, 1, 1, 1]))
    assert plan == Plan((Step(0, 10), Step(3, 1), Step(2, 1)), 30), "4 shares a box with 0"


# Who belongs to whom


def test_all_units_belong_to_the_first_policy_until_somebody_says_otherwise() -> None:
    policy = master(Says((Step(0, 1),)), Says((Step(1, 1),)))
    memory, seen = policy.start(), snapshot([True] * 2)
    assert memory.assigned is None
    assert units(policy.plan(seen, memory)[0]) == [0]
    told = policy.assign(memory, [0, 1])
    moved = policy.assign(told, [1, 1])
    for one, expected, planned in ((told, [0, 1], [0, 1]), (moved, [1, 1], [1])):
        assert one.assigned is not None
        assert one.assigned.tolist() == expected
        assert units(policy.plan(seen, one)[0]) == planned
    assert memory.assigned is None, "memories do not change"


def test_assignments_that_do_not_fit() -> None:
    policy = Master([RoundRobin(), SlopeSlack()], ["round-robin", "slope-slack"])
    memory = policy.start()
    with pytest.raises(PolicyError, match="no policy 2; the policies are 0 \\(round-robin\\), 1 \\(slope-slack\\)"):
        policy.assign(memory, [0, 2])
    memory = policy.assign(memory, [0, 1])
    with pytest.raises(PolicyError, match="no policy -1"):
        policy.assign(memory, [-1, 1])
    seen = snapshot([True] * 3)
    with pytest.raises(PolicyError, match="assigned to 2 units, but the network has 3"):
        policy.plan(seen, memory)
    with pytest.raises(PolicyError, match="a name for each, not 1 with 2 names"):
        Master([RoundRobin()], ["a", "b"])
    with pytest.raises(PolicyError, match="above 0, not 0"):
        master(RoundRobin(), quantum=0)


def test_what_has_changed_is_told_only_to_who_was_asked_last() -> None:
    policy = master(Says(), Says())
    memory, seen = begun(policy, [0, 0, 1]), replace(snapshot([True] * 3), changed=[1])
    first, second = having(seen, True, True, False), having(seen, False, False, True)
    for one in (first, first, second, first, first, seen, first):
        _, memory = policy.plan(one, memory)
    _, memory = policy.plan(first, changed(policy, memory, [2], 1))
    told = [one.changed for one in memory.inner[0]]
    assert told == [None, [1], None, [1], None, None, None], "the first time, after others, after a shared plan, anew"
    assert memory.inner[0][1] is first, "and it is shown the snapshot itself"


def having(seen: Snapshot, *ready: bool) -> Snapshot:
    return replace(seen, ready=np.array(ready))


# Explanations, and what is said about it


def test_it_explains_itself() -> None:
    graph = ((0.0, 1.0), (1.0, 1.0), (3.0, 0.0))
    seen = measured([[graph]] * 3, [2.0, 0.5, 0.5])
    policy = Master([SlopeSlack(), RoundRobin()], ["slope-slack", "round-robin"])
    memory = begun(policy, [0, 1, 1])
    assert terms_of(policy, seen, memory) == ()
    assert policy.rule(seen, memory, 0) == "slope-slack has its turn: 1 of 3 ready units"
    assert policy.rule(seen, memory, 1) == "round-robin has its turn: 2 of 3 ready units; next in turn"
    alone = having(seen, True, False, False)
    assert [term.name for term in terms_of(policy, alone, memory)][:2] == ["utility", "slack"]
    assert policy.rule(alone, memory, 0) is None
    assert policy.rule(having(seen, False, True, True), memory, 1) == "next in turn"


def test_fair_if_all_are_and_never_indifferent() -> None:
    assert master(RoundRobin(), make_policy("weighted-round-robin")).fair
    assert not master(RoundRobin(), SlopeSlack()).fair
    assert not master(RoundRobin()).indifferent


def test_sizes_of_trains_inside_hold_for_a_policy_around_it() -> None:
    seen = measured([[]] * 2, [0.0] * 2, waiting=[100, 40], train=1000, now=0)
    inner = parse_train("10%").wrap(Says((Step(0, 1000),)))
    policy = Bounded(master(inner, RoundRobin()), SECOND)
    memory = policy.start()
    for now in (0, SECOND):
        plan, memory = policy.plan(replace(seen, now=now), memory)
    assert plan.steps == (Step(1, 4), Step(0, 10))
    assert master(RoundRobin()).size(seen, 0) == 1000


# Laws


@st.composite
def networks(draw: st.DrawFn, count: int) -> Snapshot:
    """Return a snapshot with graphs and costs, of which some readings change from plan to plan."""
    shapes: list[list[Points | None]] = [draw(st.lists(graphs(), max_size=1)) for _ in range(count)]
    numbers = st.lists(st.integers(0, 40), min_size=count, max_size=count)
    eighths = [one / 8 for one in draw(numbers)]
    overhead, cost = ([one / 1024 for one in draw(numbers)] for _ in range(2))
    waiting = [1 + one for one in draw(numbers)]
    made = measured(shapes, eighths, overhead=overhead, cost=cost, waiting=waiting)
    none, some = np.zeros(len(made.topology.outputs), np.int64), np.zeros(len(made.topology.outputs))
    return replace(made, read_outputs=lambda: OutputReadings(none, some, some, some))


def moved(data: st.DataObject, seen: Snapshot, now: int, preemptive: bool) -> Snapshot:
    """Return the snapshot of the same network a little later."""
    count = len(seen.units)
    flags = st.lists(st.booleans(), min_size=count, max_size=count).map(np.array)
    ready = data.draw(flags.filter(lambda one: bool(one.any())))
    workers = data.draw(st.integers(1, 3))
    busy = np.zeros(count, np.bool_)
    if workers > 1 or preemptive:
        at_work = data.draw(st.permutations(range(count)))[: data.draw(st.integers(0, workers))]
        busy[at_work] = True
        if preemptive:
            ready = ready | busy
    free = workers - int(busy.sum())
    room = (free or workers) if preemptive else data.draw(st.integers(1, 8))
    return replace(seen, now=seen.now + now, ready=ready, busy=busy, workers=workers, free=free, room=room)


@pytest.mark.parametrize("text", [*TEXTS, *PREEMPTIVE])
@given(data=st.data())
@examples(20)
def test_with_all_units_it_plans_as_the_policy_alone(text: str, data: st.DataObject) -> None:
    policy, inner = master(SlopeSlack(), make_policy(text)), make_policy(text)
    seen = data.draw(networks(4))
    memory, plain = begun(policy, [1] * 4), inner.start()
    for at in range(5):
        now = moved(data, seen, at * data.draw(st.sampled_from([1, SECOND // 8])), inner.preemptive)
        if at:
            now = replace(now, changed=data.draw(st.sampled_from([None, list(range(4))])))
        made, memory = policy.plan(now, memory)
        expected, plain = inner.plan(now, plain)
        assert made == expected


@pytest.mark.parametrize("text", ["bucketed", "round-robin", "fifo"])
@given(data=st.data())
@examples(20)
def test_with_all_that_is_ready_it_plans_as_the_policy_alone(text: str, data: st.DataObject) -> None:
    policy, inner = master(make_policy(text), RoundRobin()), make_policy(text)
    seen = data.draw(networks(5))
    memory, plain = begun(policy, [0, 0, 1, 0, 0]), inner.start()
    for at in range(5):
        now = moved(data, seen, at, False)
        ready = now.ready.copy()
        ready[2], ready[0] = False, True
        now = replace(now, ready=ready, changed=list(range(5)) if at else None)
        made, memory = policy.plan(now, memory)
        expected, plain = inner.plan(now, plain)
        assert made == expected


@given(data=st.data())
@examples(150)
def test_only_what_is_ready_and_no_more_than_there_is_room(data: st.DataObject) -> None:
    preemptive = data.draw(st.booleans())
    names = data.draw(st.lists(st.sampled_from(TEXTS), min_size=1, max_size=3))
    names += [data.draw(st.sampled_from(PREEMPTIVE))] if preemptive else []
    policy = Master([make_policy(name) for name in names], names)
    owners = st.integers(0, len(names) - 1)
    seen = data.draw(networks(6))
    memory = begun(policy, data.draw(st.lists(owners, min_size=6, max_size=6)))
    for at in range(5):
        now = moved(data, seen, at, preemptive)
        ready, owner = now.ready.copy(), memory.assigned
        assert owner is not None
        before = owner.copy()
        plan, after = policy.plan(now, memory)
        named = units(plan)
        assert (now.ready == ready).all()
        assert set(named) <= set(np.flatnonzero(ready).tolist())
        alone = len(set(owner[ready].tolist())) == 1
        if preemptive:
            assert len(named) == len(set(named)) <= now.workers
            kept = [unit for unit in np.flatnonzero(now.busy) if not policy.policies[owner[unit]].preemptive]
            assert set(kept) <= set(named)
            assert not plan.steps or set(named[: len(kept)]) == set(kept)
            for place, inner in enumerate(policy.policies):
                if inner.preemptive and not alone:
                    holds = np.count_nonzero(now.busy & (owner == place))
                    has = sum(owner[unit] == place for unit in named)
                    assert has >= holds, "nobody else takes its workers"
        elif not alone:
            assert len(named) == len(set(named)) <= now.room
        memory = changed(policy, after, [data.draw(st.integers(0, 5))], data.draw(owners))
        assert (owner == before).all()


def simulate(
    policy: Master, memory: MasterMemory, seen: Snapshot, costs: Sequence[float], length: float
) -> list[float]:
    """Carry out plans with one worker, all units always ready; return by unit the time that it had, in seconds."""
    served, now = [0.0] * len(costs), 0.0
    while now < length:
        plan, memory = policy.plan(replace(seen, now=round(now * SECOND)), memory)
        assert plan.steps
        for unit in units(plan)[: seen.room]:
            served[unit] += costs[unit]
            now += costs[unit]
    return served


@given(data=st.data(), room=st.sampled_from([1, 3, 256]))
@examples(30)
def test_time_is_in_proportion_to_ready_units(data: st.DataObject, room: int) -> None:
    names = data.draw(st.lists(st.sampled_from(TEXTS), min_size=2, max_size=3))
    policy = Master([make_policy(name) for name in names], names)
    counts = [data.draw(st.integers(1, 4)) for _ in names]
    steps = [data.draw(st.sampled_from([0.0003, 0.001, 0.002, 0.007])) for _ in names]
    owner = [place for place, count in enumerate(counts) for _ in range(count)]
    costs = [steps[place] for place in owner]
    # What a step costs does not hang on its tuples, because some policies take fewer.
    seen = measured([[]] * len(owner), [0.0] * len(owner), overhead=costs, waiting=[10**6] * len(owner), room=room)
    served = simulate(policy, begun(policy, owner), seen, costs, 0.15)
    had = [sum(one for one, place in zip(served, owner, strict=True) if place == at) for at in range(len(names))]
    rounds = [time / (0.002 * count) for time, count in zip(had, counts, strict=True)]
    late = [step / (0.002 * count) for step, count in zip(steps, counts, strict=True)]
    assert max(rounds) - min(rounds) <= 1 + max(late) + 1e-6, "a turn, and a step that is longer"


@given(data=st.data(), room=st.sampled_from([1, 2, 256]), several=st.booleans())
@examples(60)
def test_whoever_is_moved_where_nobody_starves(data: st.DataObject, room: int, several: bool) -> None:
    count = data.draw(st.integers(1, 8))
    names = data.draw(st.lists(st.sampled_from(["round-robin", "weighted-round-robin"]), min_size=1, max_size=3))
    policy = Master([make_policy(name) for name in names], names)
    assert policy.fair
    places = len(names)
    memory = begun(policy, data.draw(st.lists(st.integers(0, places - 1), min_size=count, max_size=count)))
    waiting = data.draw(st.sampled_from([1, 1000]))
    milliseconds = data.draw(st.lists(st.sampled_from([0.0, 0.5, 1.0, 4.0]), min_size=count, max_size=count))
    seen = costing(milliseconds, waiting, room=room)
    if several:
        seen = replace(seen, workers=2, free=2, room=max(2, room))
    for _ in range(4):
        missing = set(range(count))
        for _ in range(60 * count):
            plan, memory = policy.plan(seen, memory)
            missing -= set(units(plan)[: seen.room])
            if not missing:
                break
        assert not missing
        moving = data.draw(st.lists(st.integers(0, count - 1), unique=True))
        memory = changed(policy, memory, moving, data.draw(st.integers(0, places - 1)))


@given(data=st.data())
@examples(30)
def test_it_is_pure(data: st.DataObject) -> None:
    # Buckets are the one memory that plans change.
    names = data.draw(st.lists(st.sampled_from([one for one in TEXTS if one != "bucketed"]), min_size=2, max_size=3))
    policy = Master([make_policy(name) for name in names], names)
    seen = data.draw(networks(4))
    memory = begun(policy, data.draw(st.lists(st.integers(0, len(names) - 1), min_size=4, max_size=4)))
    for at in range(4):
        now = moved(data, seen, at, False)
        (first, _), (second, after) = policy.plan(now, memory), policy.plan(now, memory)
        assert first == second
        memory = after


def test_costs_of_tuples_count_as_many_as_a_step_takes() -> None:
    # 10 tuples of 0.1 ms each are 1 ms: two steps in a turn of 2 ms; the other takes 20 of them at once.
    costs = UnitCosts(np.zeros(2), np.array([0.0001] * 2), np.ones(2))
    seen = replace(costing([1.0] * 2, room=1), read_costs=lambda: costs)
    policy = master(Says((Step(0, 10),)), Says((Step(1, 20),)))
    assert plans(policy, seen, begun(policy, [0, 1]), 6) == [[0], [0], [1]] * 2
