"""Policies and adaptive layers of one's own that are wrong: one message that names them, and no endless run."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

import headway as hw
from headway.adaptive.layer import Action, ShedOutput, Switch
from headway.catalog import Topology
from headway.clock import SECOND
from headway.scheduling.policy import Plan, Policy, Ranked, Step, Term
from headway.scheduling.snapshot import Snapshot
from headway.totals import Totals

NETWORK = {
    "network": "n",
    "sources": {"s": {"schema": {"id": "bigint"}}},
    "boxes": {
        "even": {"op": "filter", "in": "s", "where": "id % 2 = 0"},
        "slow": {"op": "universal", "in": "even", "cost": "20us"},
    },
    "outputs": {"o": {"from": "slow"}, "all": {"from": "s"}},
}
ROWS = [(at,) for at in range(100)]
ENGINES = ["local", "sim"]


class Wrong(Policy):
    """A policy that returns what it is told to, given the first ready unit."""

    def __init__(self, made: Callable[[int], Any]) -> None:
        self.made = made

    def plan(self, snapshot: Snapshot, memory: Any) -> tuple[Plan, Any]:
        return self.made(int(np.flatnonzero(snapshot.ready)[0])), memory


CASES: Mapping[str, tuple[Callable[[int], Any], str]] = {
    "no tuples": (lambda unit: Plan((Step(unit, 0),)), r"a step is for one of units 0 to \d and at least 1 tuple"),
    "fewer than none": (lambda unit: Plan((Step(unit, -5),)), r"at least 1 tuple, not \(\d, -5\)"),
    "half a tuple": (lambda unit: Plan((Step(unit, 2.5),)), "TypeError"),  # type: ignore[arg-type]
    "no such unit": (lambda unit: Plan((Step(99, 5),)), r"not \(99, 5\)"),
    "a unit from behind": (lambda unit: Plan((Step(-1, 5),)), r"not \(-1, 5\)"),
    "a name": (lambda unit: Plan((Step("slow", 5),)), "TypeError"),  # type: ignore[arg-type]
    "no plan": (lambda unit: None, "it returned None instead of a Plan"),
    "a list": (lambda unit: [Step(unit, 5)], "instead of a Plan"),
    "no moment": (lambda unit: Plan((), float("nan")), "TypeError"),  # type: ignore[arg-type]
    "never": (lambda unit: Plan((), 1 << 70), "serves none of the units that are ready"),
    "nobody": (lambda unit: Plan(()), "serves none of the units that are ready"),
    "an error of its own": (lambda unit: Plan((Step(unit, 1 // 0),)), "ZeroDivisionError"),
    "the end of the process": (lambda unit: sys.exit(3), "SystemExit: 3"),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", CASES)
def test_a_wrong_plan_is_an_error_that_names_the_policy(engine: str, case: str) -> None:
    made, message = CASES[case]
    with pytest.raises(hw.HeadwayError, match=f"policy 'Wrong/.*{message}"):
        hw.run(NETWORK, {"s": ROWS}, engine=engine, policy=Wrong(made), wait="off")


class Idle(Policy):
    """Plans units that are not ready before one that is, every time."""

    def plan(self, snapshot: Snapshot, memory: Any) -> tuple[Plan, Any]:
        order = np.argsort(snapshot.ready, kind="stable").tolist()
        return Plan(tuple([Step(unit, 7) for unit in order])), memory


@pytest.mark.parametrize("how", [{"engine": "local"}, {"engine": "local", "workers": 2}, {"engine": "sim"}])
def test_steps_of_units_with_nothing_to_do_are_left_out(how: dict[str, Any]) -> None:
    result = hw.run(NETWORK, {"s": ROWS}, policy=Idle(), wait="off", **how)
    assert result.outputs["o"].num_rows == 50


class Nan(Ranked):
    """Ranks all units alike, by something that is not a number."""

    def terms(self, snapshot: Snapshot, memory: Any) -> tuple[Term, ...]:
        return (Term("nothing", np.full(len(snapshot.units), np.nan)),)


@pytest.mark.parametrize("engine", ENGINES)
def test_terms_that_are_no_numbers_starve_nobody(engine: str) -> None:
    many = {f"b{at}": {"op": "filter", "in": "s", "where": f"id % {at + 2} = 0"} for at in range(150)}
    made = {**NETWORK, "boxes": many, "outputs": {name: {"from": name} for name in many}}
    result = hw.run(made, {"s": ROWS}, engine=engine, policy=Nan(), wait="off")
    assert {name: table.num_rows for name, table in result.outputs.items()} == {
        f"b{at}": -(-100 // (at + 2)) for at in range(150)
    }


class Layer:
    """A layer that looks ten times a second and does what it is told to."""

    policies = ("round-robin", "fifo")

    def __init__(self, look: Callable[[], Any], period: Any = SECOND // 10) -> None:
        self.said, self.period = look, period

    def start(self, topology: Topology, now: int) -> tuple[tuple[int, ...], Any]:
        return (0, 0), now

    def next(self, memory: Any) -> Any:
        return memory + self.period

    def look(self, totals: Totals, memory: Any) -> tuple[tuple[Action, ...], Any]:
        made: tuple[Action, ...] = self.said()
        return made, totals.now

    def change(self, settings: Mapping[str, Any], memory: Any) -> Any:
        raise ZeroDivisionError


LOOKS: Mapping[str, tuple[Callable[[], Any], str]] = {
    "an error": (lambda: 1 // 0, "ZeroDivisionError"),
    "nothing": (lambda: None, "TypeError"),
    "the end of the process": (lambda: sys.exit(3), "SystemExit: 3"),
    "no such policy": (lambda: (Switch(0, 9, "why"),), "there is no policy 9 to switch to"),
    "a policy from behind": (lambda: (Switch(0, -1, "why"),), "there is no policy -1"),
    "no such output": (lambda: (ShedOutput(-1, True, "why"),), "there is no output -1"),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", LOOKS)
def test_a_wrong_layer_is_an_error_that_names_it(engine: str, case: str) -> None:
    look, message = LOOKS[case]
    with pytest.raises(hw.HeadwayError, match=f"adaptive layer 'Layer' failed: .*{message}"):
        hw.run(NETWORK, {"s": ROWS}, rates={"s": 200}, engine=engine, adaptive=Layer(look))


@pytest.mark.parametrize("engine", ENGINES)
def test_a_layer_whose_next_look_is_past_does_not_hold_up_the_run(engine: str) -> None:
    result = hw.run(NETWORK, {"s": ROWS}, engine=engine, adaptive=Layer(tuple, -SECOND))
    assert result.outputs["o"].num_rows == 50


def test_a_layer_that_fails_at_a_specification_has_refused_it() -> None:
    control = hw.Control()
    control.specify({"any": "thing"})
    result = hw.run(NETWORK, {"s": ROWS}, engine="sim", adaptive=Layer(tuple), control=control)
    [change] = result.summary["adaptive"]["changes"]
    assert change["change"] == "specification refused"
    assert change["reason"].startswith("adaptive layer 'Layer' failed: ZeroDivisionError")
