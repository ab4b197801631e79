"""What policies that put units in order share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from headway.scheduling.policy import STEPS, WORK, Ranked, Term, apart
from headway.scheduling.snapshot import Snapshot, Unit
from tests.scheduling.snapshots import measured, replace, snapshot


@dataclass(frozen=True)
class ByNumber(Ranked):
    """The last unit first."""

    def terms(self, snapshot: Snapshot, memory: None) -> tuple[Term, ...]:
        """Return the numbers of the units."""
        return (Term("number", np.arange(len(snapshot.units)), largest=True),)


@dataclass(frozen=True)
class ByNumberAtOnce(ByNumber):
    """The same, whatever is under way."""

    preemptive = True


def chosen(policy: Ranked, seen: Snapshot) -> list[int]:
    """Return the units of the plan."""
    plan, _ = policy.plan(seen, policy.start())
    return [step.unit for step in plan.steps]


def test_only_ready_units_that_are_not_busy() -> None:
    seen = replace(snapshot([True, False, True, True]), busy=np.array([False, False, True, False]))
    assert chosen(ByNumber(), seen) == [3, 0]


def test_no_more_steps_than_the_engine_will_carry_out() -> None:
    assert chosen(ByNumber(), replace(snapshot([True] * 5), room=2)) == [4, 3]
    assert chosen(ByNumber(), replace(snapshot([True] * 5), room=1)) == [4]
    assert len(chosen(ByNumber(), snapshot([True] * (STEPS + 9)))) == STEPS


def test_a_plan_is_a_little_work() -> None:
    graphs = [[None]] * 8
    assert len(chosen(ByNumber(), measured(graphs, [0.0] * 8, cost=[WORK / 3] * 8))) == 3
    assert len(chosen(ByNumber(), measured(graphs, [0.0] * 8, cost=[10 * WORK] * 8))) == 1


def test_with_several_workers_no_box_is_wanted_twice() -> None:
    units = (Unit("p", (0, 1), ()), Unit("q", (1, 2), ()), Unit("r", (3,), ()))
    seen = replace(snapshot([True] * 3), units=units, workers=3, free=3)
    assert chosen(ByNumber(), seen) == [2, 1]
    assert chosen(ByNumber(), replace(seen, exclusive=False)) == [2, 1, 0]
    assert chosen(ByNumber(), replace(seen, free=1)) == [2]
    assert apart(seen, np.array([0, 1, 2]), 2) == [0, 2]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_preemptive_policy_says_what_should_be_running(workers: int) -> None:
    seen = replace(snapshot([True] * 4), workers=workers, free=0, busy=np.array([False, True, False, True]))
    assert chosen(ByNumberAtOnce(), seen) == [3, 2][:workers]
