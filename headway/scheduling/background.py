"""Work in the background: units that nobody waits for are served while nothing else is to be done."""

from __future__ import annotations

from typing import Any

from headway.scheduling.policy import Plan, Policy, Step
from headway.scheduling.snapshot import Snapshot

SHORT = 0.002
"""Seconds that a step in the background may take: so long others may wait for its end."""
_FIRST = 256
"""Tuples of such a step while its costs are not known."""


def plan_behind(policy: Policy, snapshot: Snapshot, memory: Any) -> tuple[Plan, Any]:
    """Ask a policy about all units but those in the background; about these if it has nothing to start then."""
    behind, until = snapshot.background, None
    assert behind is not None
    front, back = snapshot.ready & ~behind, snapshot.ready & behind
    if front.any():
        plan, memory = policy.plan(snapshot.narrowed(front), memory)
        if plan.steps or not back.any():
            return plan, memory
        until = plan.until
    plan, memory = policy.plan(snapshot.narrowed(back), memory)
    moments = [moment for moment in (until, plan.until) if moment is not None]
    # One at a time, and a short one: what arrives meanwhile must not wait.
    steps = [Step(step.unit, min(step.tuples, _most(snapshot, step.unit))) for step in plan.steps[: snapshot.free or 1]]
    return Plan(tuple(steps), min(moments, default=None)), memory


def _most(snapshot: Snapshot, unit: int) -> int:
    """Return how many tuples a step in the background may take."""
    cost = float(snapshot.costs.cost[unit])
    return max(1, int(SHORT / cost)) if cost > 0 else _FIRST
