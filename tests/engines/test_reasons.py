"""Why a step was chosen: terms, competitors and rules, worked out by hand."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.clock import SECOND
from headway.engines.reasons import COMPETITORS, Reason, reasons, span_text, why
from headway.scheduling.policy import Plan, Policy, Step, Term
from headway.scheduling.slope_slack import SlopeSlack
from headway.scheduling.snapshot import Snapshot
from tests.scheduling.snapshots import measured, replace, snapshot

STAIRS = ((0.0, 1.0), (1.0, 1.0), (3.0, 0.6), (4.0, 0.1), (5.0, 0.0))
"""Slopes 0, -0.2, -0.5, -0.1 and then 0; critical points at 1, 3 and 4."""
NAMES = ("a", "b", "c", "d", "e")


@dataclass(frozen=True)
class Given(Policy):
    """A policy that orders units by given terms."""

    told: tuple[Term, ...]

    def start(self) -> None:
        return None

    def plan(self, snapshot: Snapshot, memory: Any) -> tuple[Plan, Any]:
        return Plan(()), memory

    def terms(self, snapshot: Snapshot, memory: Any) -> tuple[Term, ...]:
        return self.told


def planned(policy: Policy, seen: Snapshot) -> dict[int, Reason]:
    memory = policy.start()
    plan, _ = policy.plan(seen, memory)
    return dict(reasons(seen, policy, memory, plan, "text"))


def for_steps(policy: Policy, seen: Snapshot, *units: int) -> list[Reason]:
    plan = Plan(tuple([Step(unit, 1) for unit in units]))
    return [reason for _, reason in reasons(seen, policy, None, plan)]


def test_the_terms_of_slope_and_slack() -> None:
    # As in test_slope_slack: (utility, slack) are (0, 0.5), (0.2, 1), (0.5, 0.5), (0.1, inf), (0, inf).
    seen = measured([[STAIRS]] * 5, [0.5, 2.0, 3.5, 4.5, 6.0])
    made = planned(SlopeSlack(), seen)
    assert list(made) == [2, 1, 3, 0, 4]
    assert made[2].policy == "text"
    assert made[2].rule == "largest utility"
    assert dict(made[2].terms) == pytest.approx({"utility": 0.5, "slack": 0.5, "oldest": -3.5})
    assert [unit for unit, _ in made[2].competitors] == [1, 3, 0]
    assert dict(made[2].competitors[0][1]) == pytest.approx({"utility": 0.2, "slack": 1, "oldest": -2.0})
    assert [unit for unit, _ in made[3].competitors] == [0, 4]
    assert made[0].rule == "smallest slack"
    assert made[4].rule == "the only one left"
    assert made[4].competitors == ()
    assert dict(made[4].terms)["slack"] == math.inf


def test_as_text() -> None:
    seen = measured([[STAIRS]] * 3, [2.0, 3.5, 4.5])
    made = planned(SlopeSlack(), seen)
    assert why(made[1], NAMES) == (
        "largest utility; utility 0.5, slack 0.5 s, oldest 3.5 s ago; "
        "before 'a' (utility 0.2, slack 1 s, oldest 2 s ago), 'c' (utility 0.1, slack inf, oldest 4.5 s ago)"
    )


def test_without_terms_the_plan_is_the_order() -> None:
    made = for_steps(Given(()), snapshot([True] * 6), 0, 2, 3, 4, 5)
    assert [[unit for unit, _ in one.competitors] for one in made] == [[2, 3, 4], [3, 4, 5], [4, 5], [5], []]
    assert {one.terms for one in made} == {()}
    assert why(made[2], "abcdef") == "in the policy's order; before 'e', 'f'"


def test_a_policy_may_tell_its_rule() -> None:
    class InTurn(Given):
        def rule(self, snapshot: Snapshot, memory: Any, unit: int) -> str | None:
            return "next in turn"

    class Waited(Given):
        def rule(self, snapshot: Snapshot, memory: Any, unit: int) -> str | None:
            return "longest wait" if unit == 1 else None

    seen = snapshot([True, True, True])
    assert [one.rule for one in for_steps(InTurn(()), seen, 0, 1)] == ["next in turn"] * 2
    assert [one.rule for one in for_steps(Waited(()), seen, 0, 1)] == ["in the policy's order", "longest wait"]


def test_the_rule_is_the_first_term_that_differs() -> None:
    policy = Given(
        (
            Term("bucket", np.array([3, 3, 3, 3])),
            Term("tuples", np.array([5, 5, 7, 5]), largest=True),
            Term("deadline", np.array([4, 3, 9, 4], np.int64) * SECOND),
        )
    )
    seen = replace(snapshot([True] * 4), now=5 * SECOND)
    made = for_steps(policy, seen, 2, 1, 0, 3)
    rules = [one.rule for one in made]
    assert rules == ["largest tuples", "earliest deadline", "first among equals", "the only one left"]
    assert list(made[0].terms) == [("bucket", 3), ("tuples", 7), ("deadline", 4.0)]
    assert why(made[1], NAMES).startswith("earliest deadline; bucket 3, tuples 5, deadline 2 s ago; before 'a' (")
    assert why(made[0], NAMES).startswith("largest tuples; bucket 3, tuples 7, deadline in 4 s; ")


def test_a_step_that_the_terms_did_not_put_first() -> None:
    policy = Given((Term("cost", np.array([0.1, 0.2, 0.3])),))
    [reason] = for_steps(policy, snapshot([True] * 3), 2)
    assert reason.rule == "the first that could run"
    assert [unit for unit, _ in reason.competitors] == [0, 1]


def test_competitors_are_ready_and_not_busy() -> None:
    policy = Given((Term("rate", np.arange(6.0), largest=True),))
    seen = snapshot([True, True, True, False, True, True])
    seen = replace(seen, busy=np.array([False, False, False, False, True, False]))
    [reason] = for_steps(policy, seen, 5)
    assert [unit for unit, _ in reason.competitors] == [2, 1, 0]


def test_a_preempted_step_is_resumed_and_one_under_way_goes_on() -> None:
    class Preemptive(Given):
        preemptive: ClassVar[bool] = True

    policy = Preemptive((Term("rate", np.array([1.0, 3.0, 2.0]), largest=True),))
    seen = replace(
        snapshot([True] * 3), busy=np.array([False, True, False]), spent=np.array([0.1, 0.2, 0.0]), workers=2
    )
    made = reasons(seen, policy, None, Plan((Step(1, 1), Step(0, 1))))
    assert [(unit, reason.rule) for unit, reason in made] == [(0, "resumed")]
    assert [unit for unit, _ in made[0][1].competitors] == [2]


def test_a_unit_without_tuples_has_no_oldest_one() -> None:
    policy = Given((Term("oldest", np.array([7 * SECOND, np.iinfo(np.int64).max])),))
    seen = replace(snapshot([True, True]), now=8 * SECOND)
    [reason] = for_steps(policy, seen, 0)
    assert why(reason, NAMES) == "oldest tuple; oldest 1 s ago; before 'b' (oldest none)"


def test_truth_values_and_counts_can_be_largest_first() -> None:
    flags = Given((Term("late", np.array([False, True]), largest=True),))
    counts = Given((Term("n", np.array([1, 2], np.uint8), largest=True),))
    for policy in (flags, counts):
        [reason] = for_steps(policy, snapshot([True, True]), 1)
        assert [unit for unit, _ in reason.competitors] == [0]
        assert reason.rule.startswith("largest")


def test_what_holds_only_now_and_then_is_mentioned_then() -> None:
    policy = Given((Term("overdue", np.array([0.0, 0.25]), largest=True), Term("rate", np.array([2.0, -0.0]))))
    made = for_steps(policy, snapshot([True, True]), 1, 0)
    assert [why(one, NAMES) for one in made] == [
        "largest overdue; overdue 0.25 s, rate 0; before 'a' (rate 2)",
        "the only one left; rate 2",
    ]


def test_nothing_of_the_snapshot_is_kept() -> None:
    values = np.array([1.0, 2.0])
    made = for_steps(Given((Term("cost", values),)), snapshot([True, True]), 0)
    values[:] = 9.0
    assert made[0].terms == (("cost", 1.0),)
    assert made[0].competitors == ((1, (("cost", 2.0),)),)
    assert type(made[0].values[0]) is float


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (2e-9, "0.002 µs"), (5e-5, "50 µs"), (0.0008, "0.8 ms"), (0.0999, "99.9 ms"), (0.1, "0.1 s")],
)
def test_spans(seconds: float, text: str) -> None:
    assert span_text(seconds) == text


@settings(deadline=None)
@given(
    keys=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.booleans()), min_size=1, max_size=12),
    data=st.data(),
)
def test_competitors_are_the_best_that_are_left(keys: list[tuple[int, int, bool]], data: st.DataObject) -> None:
    steps = data.draw(st.permutations(range(len(keys))))[: data.draw(st.integers(1, len(keys)))]
    policy = Given(
        (Term("x", np.array([key[0] for key in keys])), Term("y", np.array([key[1] for key in keys]), largest=True))
    )
    made = for_steps(policy, snapshot([key[2] for key in keys]), *steps)
    in_order = sorted((at for at, key in enumerate(keys) if key[2]), key=lambda at: (keys[at][0], -keys[at][1], at))
    for place, reason in enumerate(made):
        left = [unit for unit in in_order if unit not in steps[: place + 1]]
        assert [unit for unit, _ in reason.competitors] == left[:COMPETITORS]
