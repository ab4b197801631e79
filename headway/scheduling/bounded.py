"""The longest wait: wraps any policy so that no ready unit waits for ever.

A policy that prefers some units may starve others. With a longest wait, a unit that has been ready for that long
without being served comes before anything else, the longest waiting first; otherwise the policy decides.

Waits are updated for all units at once, but only 16 times per longest wait, and when a unit becomes overdue; so even
in a large network this adds little to the cost of the policy. A wait that began between two of these checks counts
from the second, so that a unit is served at the latest 17/16 of the longest wait after it became ready, if steps
are short: the running step, and steps of other overdue units, add to that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from headway.clock import SECOND
from headway.columns import NEVER, Int64s, frozen
from headway.errors import PolicyError
from headway.scheduling.policy import STEPS, Plan, Step, Term, Wrapper, apart, foremost, terms_of
from headway.scheduling.snapshot import Snapshot, Unit

LOOKS = 16
"""How often per longest wait all units are checked."""
_FEW = 4096
"""Steps that may collect in `served` before a check, in a network with fewer units than that."""

Served = tuple[tuple[Step, ...], Any]
"""A linked list of the steps of each plan since the last check, the newest first; ends with None.

A pure policy's memory is immutable, and copying an array for each plan would cost more than some plans.
"""


class WaitMemory(NamedTuple):
    """The memory of `Bounded`."""

    units: tuple[Unit, ...] | None
    since: Int64s
    """By unit: the moment since which it has been ready and not served, as of the last check; otherwise NEVER."""
    look: int
    """The moment of the next check."""
    inner: Any
    served: Served | None = None
    many: int = 0
    """How many steps are in `served`."""
    favoured: tuple[int, ...] = ()
    """Units that were overdue and whose step may still be running: a preemptive policy must not preempt it."""


@dataclass(frozen=True, slots=True)
class Bounded(Wrapper):
    """Serve first the units that have been ready but not served for `longest` ns, then follow the inner policy.

    An overdue unit gets the snapshot's train, or less if the policy has a `size` of its own. A unit counts as
    served when a plan names it; its wait also ends when it is no longer ready, or is busy.

    The inner policy is asked for every plan, and its steps follow those for overdue units. Some of its steps may be
    cut off, which it must tolerate anyway, because an engine may refuse steps. If it is preemptive, the step of an
    overdue unit comes first in every plan until it ends.
    """

    longest: int

    def __post_init__(self) -> None:
        if self.longest < 1:
            raise PolicyError(f"the longest wait is a time above 0, not {self.longest} ns")

    def start(self) -> WaitMemory:
        """Return a memory without any waits."""
        return _begun(None, self.policy.start())

    def plan(self, snapshot: Snapshot, memory: WaitMemory) -> tuple[Plan, WaitMemory]:
        """Return steps for overdue units, followed by the inner policy's plan."""
        if memory.units is not snapshot.units:
            memory = _begun(snapshot.units, memory.inner)
        plan, inner = self.policy.plan(snapshot, memory.inner)
        memory, preemptive = memory._replace(inner=inner), self.preemptive
        # If the policy makes all units wait, there may be no event; the plan must end when a unit becomes overdue.
        idle = not plan.steps and (preemptive or snapshot.free > 0)
        if not idle and not memory.favoured and not self._looks(snapshot, memory):
            served, many = (plan.steps, memory.served), memory.many + len(plan.steps)
            plan = self._asking_again(snapshot, plan, memory.look) if preemptive else plan
            return plan, memory._replace(served=served, many=many)
        since = _looked(snapshot, memory)
        urgent = self._first(snapshot, memory, since)
        plan = self._with(urgent, plan, snapshot)
        since[[step.unit for step in plan.steps]] = NEVER  # safe to change: the array is new
        due = int(frozen(since).min(initial=NEVER)) + self.longest
        favoured = tuple([step.unit for step in plan.steps if step.unit in urgent]) if preemptive else ()
        memory = WaitMemory(snapshot.units, since, min(due, snapshot.now + self._pause), inner, favoured=favoured)
        if preemptive:
            plan = self._asking_again(snapshot, plan, memory.look)
        elif idle and not plan.steps and due < NEVER:
            plan = self._asking_again(snapshot, plan, due)
        return plan, memory

    def inner(self, memory: WaitMemory) -> Any:
        """Return the inner policy's memory."""
        return memory.inner

    def told(self, memory: WaitMemory, change: Callable[[Any], Any]) -> WaitMemory:
        """Return the memory with the inner policy's memory replaced by `change` of it."""
        return memory._replace(inner=change(memory.inner))

    def terms(self, snapshot: Snapshot, memory: WaitMemory) -> tuple[Term, ...]:
        """Return how long overdue units have waited (s), then the inner policy's terms; () if it has none."""
        told = terms_of(self.policy, snapshot, memory.inner)
        if not told:
            return ()
        waited = np.zeros(len(snapshot.units))
        urgent = self._urgent(snapshot, memory)
        if urgent:
            waits = snapshot.now - np.minimum(_looked(snapshot, memory)[urgent], snapshot.now - self.longest)
            waited[urgent] = waits / SECOND
        return Term("overdue", waited, largest=True), *told

    def rule(self, snapshot: Snapshot, memory: WaitMemory, unit: int) -> str | None:
        """Return "longest wait" for an overdue unit, otherwise the inner policy's rule."""
        if unit in self._urgent(snapshot, memory):
            return "longest wait"
        return self.policy.rule(snapshot, memory.inner, unit)

    @property
    def _pause(self) -> int:
        return max(1, self.longest // LOOKS)

    def _looks(self, snapshot: Snapshot, memory: WaitMemory) -> bool:
        """Return whether it is time to check all units."""
        return snapshot.now >= memory.look or memory.many >= max(_FEW, len(snapshot.units))

    def _urgent(self, snapshot: Snapshot, memory: WaitMemory) -> list[int]:
        """Return the units that come before the inner policy's steps."""
        if memory.units is not snapshot.units or not (memory.favoured or self._looks(snapshot, memory)):
            return []
        return self._first(snapshot, memory, _looked(snapshot, memory))

    def _first(self, snapshot: Snapshot, memory: WaitMemory, since: Int64s) -> list[int]:
        """Return the favoured units whose step continues, then the overdue ones, the longest waiting first."""
        late = np.flatnonzero(since <= snapshot.now - self.longest)
        return list(dict.fromkeys([*_going_on(snapshot, memory), *foremost(late, [since], STEPS).tolist()]))

    def _with(self, urgent: list[int], plan: Plan, snapshot: Snapshot) -> Plan:
        """Return a plan with steps for the urgent units first."""
        if not urgent:
            return plan
        sizes = dict(plan.steps)
        train = snapshot.train
        own = [Step(unit, sizes.get(unit) or min(train, self.policy.size(snapshot, unit))) for unit in urgent]
        if self.preemptive:
            sizes |= dict(own)
            units = apart(snapshot, [*urgent, *dict(plan.steps)], snapshot.workers)
            return Plan(tuple([Step(unit, sizes[unit]) for unit in units]), plan.until)
        most = snapshot.room
        if snapshot.workers > 1:  # no more steps than the policy's own plan has, or than workers are free
            most = min(most, max(snapshot.free, len(plan.steps)))
            free = apart(snapshot, urgent, snapshot.free)
            own = [step for step in own if step.unit in free]
        named = {step.unit for step in own}
        return Plan((*own, *[step for step in plan.steps if step.unit not in named])[:most], plan.until)

    def _asking_again(self, snapshot: Snapshot, plan: Plan, moment: int) -> Plan:
        """Return the plan with `until` at most at a moment, or, if that has passed, at the next regular check."""
        until = moment if moment > snapshot.now else snapshot.now + self._pause
        return Plan(plan.steps, until if plan.until is None else min(until, plan.until))


def _begun(units: tuple[Unit, ...] | None, inner: Any) -> WaitMemory:
    """Return a memory without any waits; the next plan checks all units."""
    return WaitMemory(units, frozen(np.full(len(units or ()), NEVER, np.int64)), -NEVER, inner)


def _looked(snapshot: Snapshot, memory: WaitMemory) -> Int64s:
    """Return by unit the moment since which it has been waiting, as of this snapshot; a new array."""
    since, served = memory.since.copy(), memory.served
    while served is not None:
        steps, served = served
        since[[step.unit for step in steps]] = NEVER
    return np.where(snapshot.ready & ~snapshot.busy, np.minimum(since, snapshot.now), NEVER)


def _going_on(snapshot: Snapshot, memory: WaitMemory) -> list[int]:
    """Return the favoured units whose step is running or was preempted."""
    ready, busy, spent = snapshot.ready, snapshot.busy, snapshot.spent
    return [unit for unit in memory.favoured if ready[unit] and (busy[unit] or spent[unit] > 0)]
