"""What is taken as a policy, and what is said of anything else."""

from __future__ import annotations

from typing import Any

import pytest

from headway.errors import PolicyError
from headway.scheduling import Plan, Policy, Snapshot, Step
from headway.scheduling.policy import as_policy, terms_of
from headway.scheduling.round_robin import RoundRobin
from tests.scheduling.snapshots import snapshot


class Plain:
    """Just what is needed, and no subclass."""

    def start(self) -> int:
        return 7

    def plan(self, snapshot: Snapshot, memory: int) -> tuple[Plan, int]:
        return Plan((Step(0, memory),)), memory + 1


class Eager(Plain):
    preemptive = True


class Smallest(Policy):
    def plan(self, snapshot: Snapshot, memory: Any) -> tuple[Plan, Any]:
        return Plan(()), memory


class Texts(Smallest):
    rule = "a text"  # type: ignore[assignment]


def test_an_object_with_start_and_plan_is_adopted() -> None:
    policy, seen = as_policy(Plain()), snapshot([True])
    assert policy.start() == 7
    assert policy.plan(seen, 7) == (Plan((Step(0, 7),)), 8)
    assert (policy.preemptive, policy.fair, policy.indifferent) == (False, False, False)


def test_a_policy_needs_a_plan_only() -> None:
    policy, seen = Smallest(), snapshot([True], train=5)
    assert as_policy(policy) is policy
    assert policy.start() is None
    assert (terms_of(policy, seen, None), policy.rule(seen, None, 0), policy.size(seen, 0)) == ((), None, 5)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (Eager(), "Eager has preemptive: a policy with more than start and plan must subclass Policy"),
        (object(), r"object is not a policy \(missing: start, plan\): subclass headway.scheduling.Policy"),
        (RoundRobin, "a policy is an object, not the class RoundRobin: make one"),
        (Texts(), "the rule of Texts is a method that returns a text, not 'a text'"),
    ],
)
def test_anything_else_is_refused(given: object, message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        as_policy(given)
