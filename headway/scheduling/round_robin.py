"""Round robin: every unit that has something to do, in turn."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

import numpy as np

from headway.errors import PolicyError
from headway.scheduling.base import Plan, Policy, Snapshot, Step, register_policy

_STEPS = 256
"""The most steps in a plan, so that a plan in a large network does not become stale."""


@dataclass(frozen=True, slots=True)
class RoundRobin:
    """Serve the ready units in their order, beginning after the one that was served last."""

    def start(self) -> int:
        """Begin with the first unit."""
        return 0

    def plan(self, snapshot: Snapshot, memory: int) -> tuple[Plan, int]:
        """Return a step for each ready unit."""
        ready: list[int] = np.flatnonzero(snapshot.ready).tolist()
        first = bisect_left(ready, memory)
        chosen = (ready[first:] + ready[:first])[: min(_STEPS, snapshot.room)]
        train = snapshot.train
        plan = Plan(tuple([Step(unit, train) for unit in chosen]))
        return plan, (chosen[-1] + 1) % len(snapshot.units) if chosen else memory


def _make(argument: str | None) -> Policy:
    if argument is not None:
        raise PolicyError(f"policy 'round-robin' takes no argument, not '{argument}'")
    return RoundRobin()


register_policy(
    "round-robin",
    _make,
    "every unit that has something to do, in turn",
    paper="the baseline of all five papers",
    use="throughput, or units of equal urgency: it costs least and starves nobody",
)
