"""Round robin: pure, fair, and never about units that have nothing to do."""

from __future__ import annotations

import copy
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import PolicyError
from headway.scheduling.base import make_policy
from headway.scheduling.round_robin import _STEPS, RoundRobin
from tests.scheduling.snapshots import snapshot


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
    first = RoundRobin().plan(seen, memory)
    assert RoundRobin().plan(seen, memory) == first
    assert (seen.ready == before).all()
    plan, after = first
    units = [step.unit for step in plan.steps]
    assert sorted(units) == [at for at, one in enumerate(ready) if one]
    assert all(step.tuples == seen.train for step in plan.steps)
    assert 0 <= after < len(ready)
    wanted = sorted(units, key=lambda unit: (unit - memory) % len(ready))
    assert units == wanted


def test_every_unit_is_served_as_often() -> None:
    policy, count = RoundRobin(), 3 * _STEPS + 17
    seen, memory = snapshot([True] * count), RoundRobin().start()
    served: Counter[int] = Counter()
    for _ in range(40):
        plan, memory = policy.plan(seen, memory)
        assert len(plan.steps) == _STEPS
        served.update(step.unit for step in plan.steps)
    assert set(served) == set(range(count))
    assert max(served.values()) - min(served.values()) <= 1


@given(masks=st.lists(st.lists(st.booleans(), min_size=5, max_size=5), min_size=5, max_size=20))
def test_a_ready_unit_never_waits_for_a_second_plan(masks: list[list[bool]]) -> None:
    memory = RoundRobin().start()
    for ready in masks:
        plan, memory = RoundRobin().plan(snapshot(ready), memory)
        assert {step.unit for step in plan.steps} == set(np.flatnonzero(ready).tolist())


def test_it_takes_no_argument() -> None:
    with pytest.raises(PolicyError, match="takes no argument"):
        make_policy("round-robin:3")
