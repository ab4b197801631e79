"""A longest wait: by hand, and as a bound in simulated loops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.clock import MILLISECOND, SECOND
from headway.errors import PolicyError
from headway.scheduling import bounded as module
from headway.scheduling.bounded import LOOKS, Bounded, WaitMemory
from headway.scheduling.policy import Plan, Policy, Step, terms_of
from headway.scheduling.round_robin import RoundRobin
from headway.scheduling.slope_slack import SlopeSlack
from headway.scheduling.snapshot import Snapshot
from headway.scheduling.trains import Patient, parse_train
from tests.policies import RandomPolicy
from tests.scheduling.snapshots import measured, replace, snapshot
from tests.searching import examples

LONGEST = 1600 * MILLISECOND
LOOK = 100 * MILLISECOND


@dataclass(frozen=True)
class First(Policy):
    """Always the same steps, whoever is ready; the memory counts the plans."""

    steps: tuple[Step, ...] = (Step(0, 5),)
    until: int | None = None
    preemptive: bool = False

    def start(self) -> int:
        return 0

    def plan(self, snapshot: Snapshot, memory: int) -> tuple[Plan, int]:
        return Plan(self.steps, self.until), memory + 1


NOBODY = First(())
INNER: tuple[Policy, ...] = (RoundRobin(), SlopeSlack(), RandomPolicy(3))


def planned(policy: Policy, seen: Snapshot, moments: Sequence[int], memory: Any = None) -> tuple[Plan, Any]:
    """Ask at several moments, with the same readings; return the last plan."""
    memory = policy.start() if memory is None else memory
    plan = Plan(())
    for moment in moments:
        plan, memory = policy.plan(replace(seen, now=moment), memory)
    return plan, memory


def having(seen: Snapshot, *ready: bool) -> Snapshot:
    return replace(seen, ready=np.array(ready))


def units(plan: Plan) -> list[int]:
    return [step.unit for step in plan.steps]


def test_an_overdue_unit_comes_first() -> None:
    seen = snapshot([True] * 3, train=10)
    policy = Bounded(First(), LONGEST)
    plan, memory = planned(policy, seen, [0, LONGEST - 1])
    assert plan == Plan((Step(0, 5),))
    plan, memory = planned(policy, seen, [LONGEST], memory)
    assert plan == Plan((Step(1, 10), Step(2, 10), Step(0, 5)))
    plan, memory = planned(policy, seen, [LONGEST + 1], memory)
    assert plan == Plan((Step(0, 5),)), "they were served"
    assert memory.inner == 4, "the inner policy is asked each time"


def test_the_longest_waiting_first() -> None:
    seen = snapshot([True, False, True, False])
    later = replace(seen, ready=np.array([True, True, True, True]))
    policy = Bounded(First(), LONGEST)
    _, memory = planned(policy, seen, [0])
    _, memory = planned(policy, later, [2 * LOOK], memory)
    plan, memory = planned(policy, later, [LONGEST + 2 * LOOK], memory)
    assert units(plan) == [2, 1, 3, 0]


def test_a_wait_ends_when_a_unit_is_not_ready_or_busy_or_served() -> None:
    seen = snapshot([True] * 4)
    policy = Bounded(First(), LONGEST)
    _, memory = planned(policy, seen, [0])
    _, memory = planned(policy, replace(seen, ready=np.array([True, False, True, True])), [LOOK], memory)
    _, memory = planned(policy, replace(seen, busy=np.array([False, False, True, False])), [2 * LOOK], memory)
    # 1 waits since then again, 2 from the next look.
    plan, memory = planned(policy, seen, [3 * LOOK, LONGEST], memory)
    assert units(plan) == [3, 0]
    plan, memory = planned(policy, seen, [LONGEST + 2 * LOOK], memory)
    assert units(plan) == [1, 0]
    plan, memory = planned(policy, seen, [LONGEST + 3 * LOOK], memory)
    assert units(plan) == [2, 0]


def test_what_plans_between_two_looks_served_counts() -> None:
    seen = snapshot([True] * 3)
    policy, other = Bounded(First(), LONGEST), Bounded(First((Step(1, 1),)), LONGEST)
    _, memory = planned(policy, seen, [0])
    _, memory = planned(other, seen, [1], memory)
    plan, memory = planned(policy, seen, [2, 3, LONGEST], memory)
    assert units(plan) == [2, 0], "1 was served at 1, and waits from the look at 1600 ms"
    plan, memory = planned(policy, seen, [2 * LONGEST - 1], memory)
    assert units(plan) == [0]
    plan, memory = planned(policy, seen, [2 * LONGEST], memory)
    assert units(plan) == [1, 0], "2 was served at 1600 ms, and waits from the look after that"


def test_all_units_are_looked_at_only_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []
    looked = module._looked

    def counted(seen: Snapshot, memory: WaitMemory) -> Any:
        looks.append(seen.now)
        return looked(seen, memory)

    monkeypatch.setattr(module, "_looked", counted)
    seen = snapshot([True] * 3)
    planned(Bounded(First(), LONGEST), seen, range(0, LONGEST, MILLISECOND))
    assert looks == list(range(0, LONGEST, LOOK))
    assert len(looks) == LOOKS


def test_many_plans_without_time_do_not_pile_up() -> None:
    seen = snapshot([True] * 3)
    policy = Bounded(First((Step(0, 1),) * 100), LONGEST)
    memory, most = policy.start(), 0
    for _ in range(1000):
        _, memory = policy.plan(seen, memory)
        most = max(most, memory.many)
    assert most <= module._FEW + 100


def test_a_plan_is_no_longer_than_there_is_room() -> None:
    seen = replace(snapshot([True] * 5), room=2)
    policy = Bounded(First(), LONGEST)
    _, memory = planned(policy, seen, [0])
    for moment, expected in ((LONGEST, [1, 2]), (LONGEST + 1, [3, 4]), (LONGEST + 2, [0])):
        plan, memory = planned(policy, seen, [moment], memory)
        assert units(plan) == expected


def test_with_workers_a_step_for_each_free_one() -> None:
    seen = replace(snapshot([True] * 5), workers=3, free=2)
    policy = Bounded(First(), LONGEST)
    _, memory = planned(policy, seen, [0])
    plan, _ = planned(policy, seen, [LONGEST], memory)
    assert units(plan) == [1, 2]
    shared = (*seen.units[:2], replace(seen.units[2], boxes=(1, 2)), *seen.units[3:])
    _, memory = planned(policy, replace(seen, units=shared), [0])
    plan, memory = planned(policy, replace(seen, units=shared), [LONGEST], memory)
    assert units(plan) == [1, 3], "2 shares a box with 1"
    plan, memory = planned(policy, replace(seen, units=shared), [LONGEST + 1], memory)
    assert units(plan) == [2, 4], "and is not forgotten"
    plan, _ = planned(Bounded(NOBODY, LONGEST), replace(seen, free=0), [0, LONGEST])
    assert plan == Plan(()), "a worker's end is what is waited for"


def test_the_rest_of_the_policys_plan_follows_even_if_it_names_units_twice() -> None:
    seen = snapshot([True] * 3)
    policy = Bounded(First((Step(0, 1), Step(2, 7), Step(0, 1))), LONGEST)
    plan, _ = planned(policy, seen, [0, LONGEST])
    assert plan.steps == (Step(1, 10), Step(0, 1), Step(2, 7), Step(0, 1))


def test_it_asks_again_when_somebody_becomes_overdue() -> None:
    seen = snapshot([False, True, True])
    policy = Bounded(NOBODY, LONGEST)
    plan, memory = planned(policy, seen, [7])
    assert plan == Plan((), 7 + LONGEST)
    # One more becomes ready, between two looks: it is seen all the same, and waits from then.
    plan, memory = planned(policy, having(seen, True, True, True), [50], memory)
    assert plan == Plan((), 7 + LONGEST)
    plan, memory = planned(policy, having(seen, True, True, True), [7 + LONGEST], memory)
    assert plan.steps == (Step(1, 10), Step(2, 10))
    plan, memory = planned(policy, having(seen, True, False, False), [8 + LONGEST], memory)
    assert plan == Plan((), 50 + LONGEST)
    plan, memory = planned(policy, having(seen, False, False, False), [9 + LONGEST], memory)
    assert plan == Plan(())


def test_the_policys_own_moment_counts_if_it_is_earlier() -> None:
    seen = snapshot([True])
    assert planned(Bounded(First((), 100), LONGEST), seen, [7])[0].until == 100
    assert planned(Bounded(First((), 2 * LONGEST), LONGEST), seen, [7])[0].until == 7 + LONGEST
    assert planned(Bounded(First(until=99), LONGEST), seen, [7])[0] == Plan((Step(0, 5),), 99)


def test_units_that_a_patient_policy_lets_wait() -> None:
    graph = ((0.0, 1.0), (100.0, 1.0), (200.0, 0.0))
    seen = measured([[graph]] * 2, [0.0] * 2, overhead=[0.1] * 2, now=0)
    policy = Bounded(Patient(RoundRobin()), LONGEST)
    plan, memory = planned(policy, seen, [0])
    assert plan == Plan((), LONGEST)
    plan, memory = planned(policy, seen, [LONGEST], memory)
    assert units(plan) == [0, 1]


def test_trains_of_a_rule_hold_for_overdue_units_too() -> None:
    seen = measured([[]] * 2, [0.0] * 2, waiting=[100, 100], train=1000, now=0)
    policy = Bounded(parse_train("10%").wrap(First()), LONGEST)
    assert planned(policy, seen, [0, LONGEST])[0].steps == (Step(1, 10), Step(0, 5))


PREEMPTIVE = First((Step(0, 5),), preemptive=True)


def test_a_preemptive_policy_does_not_end_an_overdue_units_step() -> None:
    policy = Bounded(PREEMPTIVE, LONGEST)
    assert policy.preemptive
    seen = snapshot([True] * 3)
    running = replace(seen, busy=np.array([True, False, False]))
    plan, memory = planned(policy, running, [0])
    assert plan == Plan((Step(0, 5),), LOOK), "it looks while the step is under way"
    plan, memory = planned(policy, running, [1], memory)
    assert plan == Plan((Step(0, 5),), LOOK)
    plan, memory = planned(policy, running, [LONGEST], memory)
    assert units(plan) == [1], "one worker, one step"
    under_way = replace(seen, busy=np.array([False, True, False]), spent=np.array([1.0, 0.1, 0.0]))
    plan, memory = planned(policy, under_way, [LONGEST + 1, LONGEST + 2], memory)
    assert units(plan) == [1], "2 is overdue, too, but 1 goes on"
    halted = replace(seen, spent=np.array([1.0, 0.1, 0.0]))
    plan, memory = planned(policy, halted, [LONGEST + 3], memory)
    assert units(plan) == [1], "also if the engine halted it"
    plan, memory = planned(policy, seen, [LONGEST + 4], memory)
    assert units(plan) == [2]
    plan, memory = planned(policy, seen, [LONGEST + 5], memory)
    assert units(plan) == [0]
    assert plan.until is not None
    assert plan.until > LONGEST + 5


def test_other_units_start_anew() -> None:
    policy = Bounded(First(), LONGEST)
    _, memory = planned(policy, snapshot([True] * 3), [0])
    plan, memory = planned(policy, snapshot([True] * 2), [LONGEST], memory)
    assert units(plan) == [0]
    assert memory.since.shape == (2,)


def test_no_longest_wait() -> None:
    policy = RoundRobin()
    with pytest.raises(PolicyError, match="above 0, not 0 ns"):
        Bounded(policy, 0)


def test_it_explains_itself() -> None:
    graph = ((0.0, 1.0), (1.0, 1.0), (3.0, 0.0))
    seen = measured([[graph]] * 2, [2.0, 0.5], now=0)
    policy = Bounded(SlopeSlack(), LONGEST)
    memory = policy.start()
    told = terms_of(policy, seen, memory)
    assert [(term.name, term.values.tolist()) for term in told[:2]] == [("overdue", [0, 0]), ("utility", [0.5, 0])]
    _, memory = planned(Bounded(First(), LONGEST), seen, [0], replace_inner(memory, 0))
    late, memory = replace(seen, now=2 * LONGEST), replace_inner(memory, None)
    told = terms_of(policy, late, memory)
    assert (told[0].largest, told[0].values.tolist()) == (True, [0, 3.2])
    assert [policy.rule(late, memory, unit) for unit in (0, 1)] == [None, "longest wait"]
    plain = Bounded(RoundRobin(), LONGEST)
    assert terms_of(plain, seen, plain.start()) == ()
    assert not plain.preemptive


def replace_inner(memory: WaitMemory, inner: Any) -> WaitMemory:
    return memory._replace(inner=inner)


# Loops


def simulate(
    policy: Policy,
    count: int,
    length: int,
    step: Callable[[], int],
    ready: Callable[[int], np.typing.NDArray[np.bool_]],
) -> int:
    """Carry plans out with one worker until `length`; return the longest wait of a unit that stayed ready."""
    now, memory, longest = 0, policy.start(), 0
    waits = [-1] * count
    seen = snapshot([True] * count)
    while now < length:
        mask = ready(now)
        for unit in range(count):
            waits[unit] = -1 if not mask[unit] else now if waits[unit] < 0 else waits[unit]
        plan, memory = policy.plan(replace(seen, now=now, ready=mask), memory)
        if not plan.steps:
            assert plan.until is not None
            assert plan.until > now
            now = min(plan.until, now + 5 * MILLISECOND)  # something may happen earlier
        for unit, _ in plan.steps:
            if waits[unit] >= 0:
                longest = max(longest, now - waits[unit])
            waits[unit] = -1
            now += step()
    return max([longest, *[now - one for one in waits if one >= 0]])


@pytest.mark.parametrize("inner", [First(), NOBODY, Patient(RoundRobin()), SlopeSlack()])
def test_nobody_starves(inner: Policy) -> None:
    def all_ready(now: int) -> np.typing.NDArray[np.bool_]:
        return np.ones(20, np.bool_)

    # 20 units can be overdue at once, each with a step of 1 ms before the last comes.
    found = simulate(Bounded(inner, LONGEST), 20, 4 * SECOND, lambda: MILLISECOND, all_ready)
    assert found <= LONGEST * 17 // 16 + 21 * MILLISECOND


def test_without_the_bound_they_would_starve() -> None:
    found = simulate(First(), 3, 5 * SECOND, lambda: MILLISECOND, lambda now: np.ones(3, np.bool_))
    assert found >= 4 * SECOND


@given(data=st.data(), seed=st.integers(0, 1000), count=st.integers(1, 6))
@examples(25)
def test_the_bound_holds_whoever_becomes_ready_when(data: st.DataObject, seed: int, count: int) -> None:
    spans = data.draw(st.lists(st.integers(1, 400), min_size=count, max_size=count))
    offs = data.draw(st.lists(st.integers(0, 300), min_size=count, max_size=count))
    inner = data.draw(st.sampled_from([First(), NOBODY, First((Step(count - 1, 1),))]))
    chance = np.random.default_rng(seed)

    def ready(now: int) -> np.typing.NDArray[np.bool_]:
        at = now // MILLISECOND
        mask = np.array([at % (on + off) >= off for on, off in zip(spans, offs, strict=True)], np.bool_)
        mask[0] |= not mask.any()
        return mask

    longest = 160 * MILLISECOND
    found = simulate(Bounded(inner, longest), count, SECOND, lambda: int(chance.integers(1, 2 * MILLISECOND)), ready)
    assert found <= longest * 17 // 16 + (2 * count + 6) * 2 * MILLISECOND


@given(moments=st.lists(st.integers(0, 4 * LONGEST), max_size=12).map(sorted), data=st.data())
@settings(deadline=None)
def test_pure_and_about_ready_units_only(moments: list[int], data: st.DataObject) -> None:
    policy = Bounded(data.draw(st.sampled_from(INNER)), LONGEST)
    memory, seen = policy.start(), snapshot([True] * 4)
    for moment in moments:
        mask = np.array(data.draw(st.lists(st.booleans(), min_size=4, max_size=4).filter(any)))
        busy = np.array(data.draw(st.lists(st.booleans(), min_size=4, max_size=4)))
        now = replace(seen, now=moment, ready=mask.copy(), busy=busy.copy())
        since = memory.since.copy()
        plan, after = policy.plan(now, memory)
        assert policy.plan(now, memory)[0] == plan
        assert (memory.since == since).all()
        assert (now.ready == mask).all()
        assert (now.busy == busy).all()
        assert set(units(plan)) <= set(np.flatnonzero(mask).tolist())
        memory = after


@given(data=st.data())
@settings(deadline=None)
def test_with_a_wait_that_never_ends_it_is_the_policy(data: st.DataObject) -> None:
    inner = data.draw(st.sampled_from(INNER))
    policy = Bounded(inner, 10**18)
    memory, plain = policy.start(), inner.start()
    for now in range(5):
        mask = np.array(data.draw(st.lists(st.booleans(), min_size=4, max_size=4).filter(any)))
        seen = replace(snapshot([True] * 4), now=now, ready=mask)
        made, memory = policy.plan(seen, memory)
        expected, plain = inner.plan(seen, plain)
        assert made == expected
