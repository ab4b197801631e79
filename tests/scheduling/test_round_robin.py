"""Round robin: pure, fair, and never about units that have nothing to do."""

from __future__ import annotations

import copy
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import PolicyError
from headway.scheduling.policy import Plan, Step, make_policy
from headway.scheduling.round_robin import LONGEST, RoundRobin, Turn
from headway.scheduling.schedule import Schedule
from headway.scheduling.snapshot import Unit
from tests.scheduling.snapshots import replace, snapshot


def test_the_policy_has_no_state_of_its_own() -> None:
    policy = RoundRobin()
    assert not hasattr(policy, "__dict__")
    assert policy == RoundRobin()
    assert policy.start() == RoundRobin().start()


@given(ready=st.lists(st.booleans(), min_size=1, max_size=30), memory=st.integers(0, 29))
def test_same_snapshot_same_plan(ready: list[bool], memory: int) -> None:
    seen = snapshot(ready)
    memory %= len(ready)
    before = copy.deepcopy(seen.ready)
    first = RoundRobin().plan(seen, Turn(memory))
    assert RoundRobin().plan(seen, Turn(memory)) == first
    assert (seen.ready == before).all()
    plan, after = first
    units = [step.unit for step in plan.steps]
    assert sorted(units) == [at for at, one in enumerate(ready) if one]
    assert all(step.tuples == seen.train for step in plan.steps)
    assert 0 <= after.first < len(ready)
    wanted = sorted(units, key=lambda unit: (unit - memory) % len(ready))
    assert units == wanted


def test_every_unit_is_served_as_often() -> None:
    policy, count = RoundRobin(), 3 * LONGEST + 17
    seen, memory = snapshot([True] * count), RoundRobin().start()
    served: Counter[int] = Counter()
    for _ in range(40):
        plan, memory = policy.plan(seen, memory)
        assert len(plan.steps) == LONGEST
        served.update(step.unit for step in plan.steps)
    assert set(served) == set(range(count))
    assert max(served.values()) - min(served.values()) <= 1


@given(masks=st.lists(st.lists(st.booleans(), min_size=5, max_size=5), min_size=5, max_size=20))
def test_a_ready_unit_never_waits_for_a_second_plan(masks: list[list[bool]]) -> None:
    memory = RoundRobin().start()
    for ready in masks:
        plan, memory = RoundRobin().plan(snapshot(ready), memory)
        assert {step.unit for step in plan.steps} == set(np.flatnonzero(ready).tolist())


def test_a_busy_unit_is_passed_over_and_comes_first_afterwards() -> None:
    policy = RoundRobin()
    seen = replace(snapshot([True] * 4), workers=2, free=1, room=1, busy=np.array([False, True, False, False]))
    plan, memory = policy.plan(seen, Turn(1))
    assert [step.unit for step in plan.steps] == [2]
    plan, memory = policy.plan(replace(snapshot([True] * 4), workers=2, free=2, room=1), memory)
    assert [step.unit for step in plan.steps] == [1]
    plan, memory = policy.plan(replace(snapshot([True] * 4), workers=2, free=2, room=1), memory)
    assert [step.unit for step in plan.steps] == [2]


def test_units_with_a_common_box_take_turns_too() -> None:
    units = (Unit("p", (0, 1), ()), Unit("q", (1, 2), ()), Unit("r", (3,), ()))
    seen = replace(snapshot([True] * 3), units=units, workers=2, free=2, room=2)
    plan, memory = RoundRobin().plan(seen, RoundRobin().start())
    assert [step.unit for step in plan.steps] == [0, 2]
    plan, memory = RoundRobin().plan(seen, memory)
    assert [step.unit for step in plan.steps] == [1, 2]


def test_a_slice_ends_and_the_next_has_its_turn() -> None:
    policy = make_policy("round-robin:1ms")
    assert policy.preemptive
    assert not RoundRobin().preemptive
    seen = snapshot([True] * 3)
    plan, memory = policy.plan(seen, policy.start())
    assert plan == Plan((Step(0, seen.train),), 1_000_000)
    within = replace(seen, now=400_000, busy=np.array([True, False, False]))
    plan, memory = policy.plan(within, memory)  # an arrival does not end a slice
    assert plan == Plan((Step(0, seen.train),), 1_000_000)
    plan, memory = policy.plan(replace(within, now=1_000_000), memory)
    assert plan == Plan((Step(1, seen.train),), 2_000_000)


def test_with_one_unit_there_is_nothing_to_decide() -> None:
    seen = snapshot([True])
    assert RoundRobin().indifferent
    assert RoundRobin().plan(seen, RoundRobin().start())[0] == Plan((Step(0, seen.train),))
    for text in ("round-robin:1ms", "weighted-round-robin", "slope-slack", "fifo"):
        assert not make_policy(text).indifferent, text
    assert not Schedule.parse("round-robin/50%").make_policy().indifferent


@pytest.mark.parametrize("argument", ["3", "0s", "often"])
def test_bad_slices(argument: str) -> None:
    with pytest.raises(PolicyError, match="slice"):
        make_policy(f"round-robin:{argument}")
