"""Units in the background are served while nothing else is to be done, in short steps."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from headway.scheduling.background import SHORT, plan_behind
from headway.scheduling.fifo import Fifo
from headway.scheduling.policy import Plan, Policy, Step
from headway.scheduling.snapshot import Snapshot
from tests.scheduling.snapshots import replace, snapshot


def seen(ready: list[bool], behind: list[bool], cost: float = 1e-6) -> Snapshot:
    made = snapshot(ready)
    costs = SimpleNamespace(cost=np.full(len(ready), cost), seconds=lambda tuples: tuples * cost)
    return replace(made, background=np.array(behind), waiting=np.array(ready) * 10_000, read_costs=lambda: costs)


def units(plan: Plan) -> list[int]:
    return [step.unit for step in plan.steps]


def test_what_is_not_in_the_background_comes_first() -> None:
    plan, _ = plan_behind(Fifo(), seen([True, True, True], [True, False, True]), Fifo().start())
    assert units(plan) == [1]


@pytest.mark.parametrize(("cost", "most"), [(1e-6, round(SHORT / 1e-6)), (1.0, 1), (0.0, 256)])
def test_the_background_is_served_in_short_steps_when_nothing_else_is_ready(cost: float, most: int) -> None:
    plan, _ = plan_behind(Fifo(), seen([True, False, True], [True, False, True], cost), Fifo().start())
    assert len(plan.steps) == 1
    assert set(units(plan)) <= {0, 2}
    assert plan.steps[0].tuples <= max(most, 1)


class Waiting(Policy):
    """Lets the unit in the foreground wait until its train is longer."""

    def start(self) -> int:
        return 0

    def plan(self, snapshot: Snapshot, memory: Any) -> tuple[Plan, Any]:
        if snapshot.ready[1]:
            return Plan((), until=77), memory + 1
        return Plan((Step(0, 10_000),)), memory + 1


def test_while_a_policy_makes_the_others_wait_there_is_time_for_the_background() -> None:
    plan, memory = plan_behind(Waiting(), seen([True, True], [True, False]), 0)
    assert units(plan) == [0]
    assert plan.until == 77, "the others are asked again in time"
    assert memory == 2


def test_without_work_in_the_background_the_policy_is_asked_once() -> None:
    plan, memory = plan_behind(Waiting(), seen([False, True], [True, False]), 0)
    assert (plan, memory) == (Plan((), until=77), 1)
