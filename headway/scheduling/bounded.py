"""A longest wait: any policy, but nobody who is ready waits for ever.

A policy that prefers some units may never come to others. With a longest wait, a unit that has been ready for so
long without being served comes before anything else, the longest waiting first; all else is the policy's own choice.

Who waits since when is looked up for all units at once, but only 16 times in a longest wait, and when somebody
becomes overdue; so a large network costs little more than with the policy alone. A wait that began between two looks
counts from the second, so that a unit is served at the latest 17/16 of the longest wait after it became ready, if
steps are short: a step under way, and others that are overdue, come on top.
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
"""How often in a longest wait all units are looked at."""
_FEW = 4096
"""Steps that may be remembered before they are taken into the array, in a small network."""

Served = tuple[tuple[Step, ...], Any]
"""The steps of a plan, and the same of the plans before it, back to the last look; at the end None.

Memories of a pure policy do not change, and copying an array for each plan would cost more than some plans.
"""


class WaitMemory(NamedTuple):
    """What is remembered from plan to plan."""

    units: tuple[Unit, ...] | None
    since: Int64s
    """By unit: since when it has been ready and not served, as of the last look; the largest number where it is not."""
    look: int
    """The moment of the next look."""
    inner: Any
    served: Served | None = None
    many: int = 0
    """How many steps are in `served`."""
    favoured: tuple[int, ...] = ()
    """Units that were overdue and whose step may still be under way: a preemptive policy must not end it."""


@dataclass(frozen=True, slots=True)
class Bounded(Wrapper):
    """Serve first who has been ready and not served for `longest` ns, then as the policy says.

    An overdue unit is given the snapshot's train, or less where the policy has a `size` of its own. A unit counts as
    served when a plan names it, and its wait ends when it is not ready, or busy.

    The inner policy is asked for every plan, and its steps follow those for overdue units. An engine may refuse
    steps, so it bears it that some of its own come to nothing. If it is preemptive, the step of an overdue unit is
    named first until it ends.
    """

    longest: int

    def __post_init__(self) -> None:
        if self.longest < 1:
            raise PolicyError(f"the longest wait is a time above 0, not {self.longest} ns")

    def start(self) -> WaitMemory:
        """Nobody has been seen waiting."""
        return _begun(None, self.policy.start())

    def plan(self, snapshot: Snapshot, memory: WaitMemory) -> tuple[Plan, WaitMemory]:
        """Return the inner policy's plan, after the units that are overdue."""
        if memory.units is not snapshot.units:
            memory = _begun(snapshot.units, memory.inner)
        plan, inner = self.policy.plan(snapshot, memory.inner)
        memory, preemptive = memory._replace(inner=inner), self.preemptive
        # If it lets all wait, perhaps nothing happens by itself: it must be known when somebody becomes overdue.
        idle = not plan.steps and (preemptive or snapshot.free > 0)
        if not idle and not memory.favoured and not self._looks(snapshot, memory):
            served, many = (plan.steps, memory.served), memory.many + len(plan.steps)
            plan = self._asking_again(snapshot, plan, memory.look) if preemptive else plan
            return plan, memory._replace(served=served, many=many)
        since = _looked(snapshot, memory)
        urgent = self._first(snapshot, memory, since)
        plan = self._with(urgent, plan, snapshot)
        since[[step.unit for step in plan.steps]] = NEVER  # the array is new
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
        """Return the memory after somebody has changed that of the inner policy."""
        return memory._replace(inner=change(memory.inner))

    def terms(self, snapshot: Snapshot, memory: WaitMemory) -> tuple[Term, ...]:
        """Return for how long units are overdue, and the inner policy's terms; nothing where that tells none."""
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
        """Return whether a unit was overdue, or the inner policy's rule."""
        if unit in self._urgent(snapshot, memory):
            return "longest wait"
        return self.policy.rule(snapshot, memory.inner, unit)

    @property
    def _pause(self) -> int:
        return max(1, self.longest // LOOKS)

    def _looks(self, snapshot: Snapshot, memory: WaitMemory) -> bool:
        """Return whether it is time for a look."""
        return snapshot.now >= memory.look or memory.many >= max(_FEW, len(snapshot.units))

    def _urgent(self, snapshot: Snapshot, memory: WaitMemory) -> list[int]:
        """Return the units that come before anything else."""
        if memory.units is not snapshot.units or not (memory.favoured or self._looks(snapshot, memory)):
            return []
        return self._first(snapshot, memory, _looked(snapshot, memory))

    def _first(self, snapshot: Snapshot, memory: WaitMemory, since: Int64s) -> list[int]:
        """Return the units whose step goes on, and those that have waited for too long, the longest waiting first."""
        late = np.flatnonzero(since <= snapshot.now - self.longest)
        return list(dict.fromkeys([*_going_on(snapshot, memory), *foremost(late, [since], STEPS).tolist()]))

    def _with(self, urgent: list[int], plan: Plan, snapshot: Snapshot) -> Plan:
        """Return a plan with some units first."""
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
        if snapshot.workers > 1:  # no longer than the policy's own plan, or than workers are free
            most = min(most, max(snapshot.free, len(plan.steps)))
            free = apart(snapshot, urgent, snapshot.free)
            own = [step for step in own if step.unit in free]
        named = {step.unit for step in own}
        return Plan((*own, *[step for step in plan.steps if step.unit not in named])[:most], plan.until)

    def _asking_again(self, snapshot: Snapshot, plan: Plan, moment: int) -> Plan:
        """Return the plan with a moment at which it is looked again; one that has passed is no such moment."""
        until = moment if moment > snapshot.now else snapshot.now + self._pause
        return Plan(plan.steps, until if plan.until is None else min(until, plan.until))


def _begun(units: tuple[Unit, ...] | None, inner: Any) -> WaitMemory:
    """Return the memory in which nobody has been seen waiting; a look comes first."""
    return WaitMemory(units, frozen(np.full(len(units or ()), NEVER, np.int64)), -NEVER, inner)


def _looked(snapshot: Snapshot, memory: WaitMemory) -> Int64s:
    """Return by unit since when it has been waiting, as it is now, in a new array."""
    since, served = memory.since.copy(), memory.served
    while served is not None:
        steps, served = served
        since[[step.unit for step in steps]] = NEVER
    return np.where(snapshot.ready & ~snapshot.busy, np.minimum(since, snapshot.now), NEVER)


def _going_on(snapshot: Snapshot, memory: WaitMemory) -> list[int]:
    """Return the units that were overdue and whose step is under way, or was begun."""
    ready, busy, spent = snapshot.ready, snapshot.busy, snapshot.spent
    return [unit for unit in memory.favoured if ready[unit] and (busy[unit] or spent[unit] > 0)]
