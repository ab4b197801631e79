"""The master scheduler: several policies side by side, each for its own units.

After MavStream's paper on its runtime optimizer, section 4.14 and algorithm 3. Policies with ready units take turns,
and the length of a turn is proportional to the policy's ready units at its beginning::

    turn = quantum * ready units of the policy

A policy is free in how it uses its turn. If it has nothing left to do, the rest of the turn is passed on. The
assignment of units to policies may change between any two plans, because units keep their queues and a policy's memory
is about the units that it is shown.

A turn is counted in expected seconds of the planned steps; a step of unknown cost counts as one quantum. A step is not
cut off at the end of a turn, and may be longer than it. To keep time in proportion all the same, the excess is
subtracted from the policy's next turns, as in deficit round robin (Shreedhar and Varghese, SIGCOMM 1995); the paper
gives every turn in full. The debt is dropped when a policy has nothing ready, or is the only one with ready units: then
it did not delay any other.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from headway.clock import MILLISECOND, SECOND
from headway.columns import Floats, Mask, frozen
from headway.costs import Places
from headway.errors import PolicyError, choices
from headway.scheduling.policy import Plan, Policy, Step, Term, apart, terms_of
from headway.scheduling.snapshot import Snapshot

QUANTUM = 2 * MILLISECOND
"""Nanoseconds of a turn per ready unit: as long as the plan of most policies."""
MOST_OWED = 10 * SECOND
"""The limit of a policy's debt, in nanoseconds: costs are estimates, and an outlier must not shut it out for long."""

_NOBODY = -1


@dataclass(frozen=True, slots=True, eq=False)
class MasterMemory:
    """The memory of `Master`. Its arrays must not be changed."""

    inner: tuple[Any, ...]
    """By policy: its memory."""
    left: tuple[int, ...]
    """By policy: nanoseconds left of its turn; below 0 its debt, 0 if it has no turn."""
    turn: int
    """The policy that has its turn, or had the last one."""
    assigned: Places | None = None
    """By unit: its policy; None: all belong to policy 0."""
    sole: int | None = 0
    """The policy to which all units belong, if there is one."""
    asked: int = _NOBODY
    """The policy that got the last snapshot with all ready units, and so knows of all changes up to then."""


@dataclass(frozen=True)
class Master(Policy):
    """Policies that share an engine; a unit is served by the policy to which it is assigned.

    If all ready units belong to one policy, the plan is that policy's own plan. Otherwise a plan holds the steps of one
    or more turns. A policy sees only its own units as ready, and a room in which its turn would be used up; all other
    readings are unchanged. With one worker, a policy whose steps leave tuples waiting keeps its turn until it is used
    up: if it has no other unit to serve, the plan ends there, and the next plan continues with it.

    If any policy is preemptive, the master is preemptive, and a plan names what should be running now. A running step
    continues to its end if its policy is not preemptive; else that policy may preempt it for another of its own units,
    but no other policy may. Workers that become free are assigned by turns, and a step is charged when it begins, not
    when it is resumed.
    """

    policies: Sequence[Policy]
    names: Sequence[str]
    quantum: float = QUANTUM / SECOND
    """Seconds of a turn per ready unit."""

    def __post_init__(self) -> None:
        if not self.policies or len(self.policies) != len(self.names):
            raise PolicyError(
                f"a master needs policies and a name for each, not {len(self.policies)} with {len(self.names)} names"
            )
        if not 0 < self.quantum < math.inf:
            raise PolicyError(f"the quantum is a number of seconds above 0, not {self.quantum}")

    @cached_property
    def preemptive(self) -> bool:
        """Whether any of the policies is preemptive."""
        return any(self._preemptive)

    @cached_property
    def fair(self) -> bool:
        """Whether all policies are fair: turns themselves starve no policy."""
        return all(policy.fair for policy in self.policies)

    def size(self, snapshot: Snapshot, unit: int) -> int:
        """Return the smallest limit of all policies for a step of a unit."""
        return min([policy.size(snapshot, unit) for policy in self.policies])

    # Assignment of units

    def start(self) -> MasterMemory:
        """Return a memory with all units assigned to policy 0, before the first turn."""
        count = len(self.policies)
        return MasterMemory(tuple([policy.start() for policy in self.policies]), (0,) * count, count - 1)

    def assign(self, memory: MasterMemory, by_unit: Sequence[int]) -> MasterMemory:
        """Return the memory with each unit assigned to the policy given for it. Raises a PolicyError."""
        made = frozen(np.array(by_unit, np.intp))
        for policy in set(made.tolist()):
            if not 0 <= policy < len(self.policies):
                listed = choices([f"{at} ({name})" for at, name in enumerate(self.names)])
                raise PolicyError(f"there is no policy {policy}; the policies are {listed}")
        sole = int(made[0]) if len(made) and (made == made[0]).all() else None
        return replace(memory, assigned=made, sole=sole if len(made) else 0, asked=_NOBODY)

    # Plans

    def plan(self, snapshot: Snapshot, memory: MasterMemory) -> tuple[Plan, MasterMemory]:
        """Return the plan of the only policy with ready units, or one made of the policies' turns."""
        place, counts = self._ready(snapshot, memory)
        if place is None:
            if not counts.any():
                return Plan(()), memory
            return (self._by_slots if self.preemptive else self._by_turns)(snapshot, memory, counts)
        if self.preemptive and not self._preemptive[place]:
            return self._by_slots(snapshot, memory, counts)
        if snapshot.changed is not None and memory.asked != place:
            snapshot = snapshot.narrowed(snapshot.ready)  # it does not know of earlier changes
        before = memory.inner[place]
        plan, after = self.policies[place].plan(snapshot, before)
        if after is before and memory.asked == place:
            return plan, memory
        inner = (*memory.inner[:place], after, *memory.inner[place + 1 :])
        left = memory.left if not any(memory.left) else (0,) * len(inner)
        return plan, MasterMemory(inner, left, place, memory.assigned, memory.sole, place)

    def _by_turns(self, snapshot: Snapshot, memory: MasterMemory, counts: Places) -> tuple[Plan, MasterMemory]:
        """Let the policies plan in turns while there is room for steps."""
        draft = _Draft(self, snapshot, memory, counts)
        owner, turns = draft.owner, draft.turns
        ready, busy = snapshot.ready.copy(), snapshot.busy
        room, free, several = snapshot.room, snapshot.free, snapshot.workers > 1
        able = set(owner[ready & ~busy].tolist())
        rivals = set(able)  # policies that take turns, including those that can continue only with the next snapshot
        while able and room > 0 and free > 0:
            place = turns.next(rivals)
            if place not in able:
                break
            mine = ready & (owner == place)
            idle = mine & ~busy
            steps: list[Step] = []
            if idle.any():
                fits = max(1, -(-turns.left[place] // draft.mean_charge(idle)))
                steps = draft.ask(place, mine, min(room, fits), busy=busy, free=free)
            turns.charge(place, sum([draft.charge(step) for step in steps if not busy[step.unit]]))
            ready[[step.unit for step in steps]] = False
            room -= len(steps)
            if several:
                free -= len(steps)
                busy = snapshot.busy | draft.using(draft.steps)
            if steps and (ready & idle).any():
                continue
            able.discard(place)
            if several or not any(snapshot.waiting[unit] > tuples for unit, tuples in steps):
                turns.hand_on(place)
                rivals.discard(place)
        return draft.done(memory)

    def _by_slots(self, snapshot: Snapshot, memory: MasterMemory, counts: Places) -> tuple[Plan, MasterMemory]:
        """Return what should be running now: running steps, or what their policies prefer, and steps to start."""
        draft = _Draft(self, snapshot, memory, counts)
        owner, turns = draft.owner, draft.turns
        running = _under_way(snapshot)
        own: dict[int, list[int]] = {}  # by preemptive policy: its running units
        for unit in running:
            place = int(owner[unit])
            if self._preemptive[place]:
                own.setdefault(place, []).append(unit)
            else:
                draft.steps.append(Step(unit, int(snapshot.held[unit]) or snapshot.train))
        slots = min(snapshot.free, snapshot.workers - len(running))
        able = set(owner[snapshot.ready & ~snapshot.busy].tolist())
        while able and slots > 0:
            place = turns.next(able)
            planned = self._ask_for_slots(draft, place, own, slots)
            if planned < slots:
                turns.hand_on(place)
            slots -= planned
            able.discard(place)
            own.pop(place, None)
        for place in list(own):
            self._ask_for_slots(draft, place, own, 0)
        return draft.done(memory)

    def _ask_for_slots(self, draft: _Draft, place: int, own: dict[int, list[int]], slots: int) -> int:
        """Let a policy plan for the workers that it uses and `slots` more; return how many more it takes."""
        snapshot = draft.snapshot
        mine, running = snapshot.ready & (draft.owner == place), own.get(place, [])
        others = [Step(unit, 0) for some in own.values() if some is not running for unit in some]
        mine &= ~draft.using([*draft.steps, *others])
        if not self._preemptive[place]:
            mine &= ~snapshot.busy
        mine[running] = True
        count = len(running) + slots
        if not mine.any():
            return 0
        workers = count if self._preemptive[place] else snapshot.workers
        steps = draft.ask(place, mine, count, workers=workers, free=slots)
        fresh = [step for step in steps if not snapshot.busy[step.unit] and not snapshot.spent[step.unit] > 0]
        draft.turns.charge(place, sum([draft.charge(step) for step in fresh]))
        named = {step.unit for step in steps}
        # If the policy plans fewer steps than it has workers, running steps continue on the rest.
        rest = [unit for unit in running if unit not in named][: max(0, len(running) - len(steps))]
        draft.steps += [Step(unit, int(snapshot.held[unit]) or snapshot.train) for unit in rest]
        return max(0, len(steps) - len(running))

    # Explanations

    def terms(self, snapshot: Snapshot, memory: MasterMemory) -> tuple[Term, ...]:
        """Return the terms of the only policy with ready units; () if several have some."""
        place, _ = self._ready(snapshot, memory)
        return () if place is None else terms_of(self.policies[place], snapshot, memory.inner[place])

    def rule(self, snapshot: Snapshot, memory: MasterMemory, unit: int) -> str | None:
        """Return the rule of a unit's policy; if several policies have ready units, also that it has its turn."""
        place, counts = self._ready(snapshot, memory)
        if place is not None:
            return self.policies[place].rule(snapshot, memory.inner[place], unit)
        assert memory.assigned is not None
        place = int(memory.assigned[unit])
        told = f"{self.names[place]} has its turn: {counts[place]} of {counts.sum()} ready units"
        view = snapshot.narrowed(snapshot.ready & (memory.assigned == place))
        inner = self.policies[place].rule(view, memory.inner[place], unit)
        return f"{told}; {inner}" if inner else told

    @cached_property
    def _preemptive(self) -> tuple[bool, ...]:
        return tuple([policy.preemptive for policy in self.policies])

    def _ready(self, snapshot: Snapshot, memory: MasterMemory) -> tuple[int | None, Places]:
        """Return the only policy with ready units, or None, and the number of ready units by policy.

        If all units belong to one policy, they are counted only if the master is preemptive (see `plan`).
        """
        count = len(self.policies)
        if memory.sole is not None:
            ready = np.count_nonzero(snapshot.ready) if self.preemptive else 0
            return memory.sole, np.where(np.arange(count) == memory.sole, ready, 0)
        assert memory.assigned is not None
        if len(memory.assigned) != len(snapshot.units):
            raise PolicyError(
                f"policies are assigned to {len(memory.assigned)} units, but the network has {len(snapshot.units)}"
            )
        counts = np.bincount(memory.assigned[snapshot.ready], minlength=count)
        some = np.flatnonzero(counts)
        return int(some[0]) if len(some) == 1 else None, counts


class _Turns:
    """The policies' turns, and the time left of them, while a plan is made."""

    def __init__(self, memory: MasterMemory, counts: Places, quantum: int) -> None:
        """Continue after the last plan; policies without ready units lose their remaining time and their debt."""
        self.turn = memory.turn
        self.left = [left if count else 0 for left, count in zip(memory.left, counts, strict=True)]
        self._lengths = [quantum * count for count in counts.tolist()]

    def next(self, able: Collection[int]) -> int:
        """Return the policy whose turn it is, among `able`; the current one keeps it while it has time left."""
        left, lengths = self.left, self._lengths
        if self.turn in able and left[self.turn] > 0:
            return self.turn
        self.hand_on(self.turn)
        # Skip the rounds in which all policies would only reduce their debts.
        rounds = min([-left[place] // lengths[place] for place in able])
        for place in able:
            left[place] += rounds * lengths[place]
        count = len(left)
        for place in [(self.turn + 1 + at) % count for at in range(count)]:
            if place in able:
                left[place] += lengths[place]
                if left[place] > 0:
                    self.turn = place
                    break
        return self.turn

    def charge(self, place: int, time: int) -> None:
        """Subtract time (ns) from a policy's turn."""
        self.left[place] = max(-MOST_OWED, self.left[place] - time)

    def hand_on(self, place: int) -> None:
        """End a policy's turn; its debt remains."""
        self.left[place] = min(0, self.left[place])


class _Draft:
    """A plan under construction."""

    def __init__(self, master: Master, snapshot: Snapshot, memory: MasterMemory, counts: Places) -> None:
        self.snapshot = snapshot
        self.steps: list[Step] = []
        self.owner: Places = memory.assigned if memory.assigned is not None else np.zeros(len(snapshot.units), np.intp)
        self._master = master
        self._quantum = max(1, round(master.quantum * SECOND))
        self.turns = _Turns(memory, counts, self._quantum)
        self._inner = list(memory.inner)
        self._moments: list[int] = []
        self._members = snapshot.layout.members
        self._overhead, self._cost = _step_costs(snapshot)

    def ask(self, place: int, ready: Mask, room: int, **workers: Any) -> list[Step]:
        """Add the steps that a policy plans for some of its units, and return them."""
        view = self.snapshot.narrowed(ready, room=room, **workers)
        plan, self._inner[place] = self._master.policies[place].plan(view, self._inner[place])
        steps = [step for step in plan.steps if ready[step.unit]][: view.room]
        if plan.until is not None:
            waits = np.count_nonzero(ready) > len({step.unit for step in steps})
            if waits or self._master.policies[place].preemptive:
                self._moments.append(plan.until)
        self.steps += steps
        return steps

    def using(self, steps: Sequence[Step]) -> Mask:
        """Return by unit whether it cannot run alongside some steps: it is in them, or shares boxes with them."""
        units, snapshot = [step.unit for step in steps], self.snapshot
        found: Mask = np.zeros(len(snapshot.units), np.bool_)
        if units and snapshot.exclusive and self._members.lone is None:
            boxes: Mask = np.zeros(len(snapshot.topology.boxes), np.bool_)
            boxes[[box for unit in units for box in snapshot.units[unit].boxes]] = True
            found = self._members.any(boxes)
        found[units] = True
        return found

    def charge(self, step: Step) -> int:
        """Return the nanoseconds to charge for a step."""
        unit, tuples = step
        seconds = float(self._overhead[unit]) + float(self._cost[unit]) * min(int(self.snapshot.waiting[unit]), tuples)
        return max(1, round(min(seconds * SECOND, MOST_OWED))) if seconds > 0 else self._quantum

    def mean_charge(self, units: Mask) -> int:
        """Return the mean nanoseconds to charge for a step of some units."""
        tuples = np.minimum(self.snapshot.waiting[units], self.snapshot.train)
        times = (self._overhead[units] + self._cost[units] * tuples) * SECOND
        return max(1, round(float(np.where(times > 0, np.minimum(times, MOST_OWED), self._quantum).mean())))

    def done(self, before: MasterMemory) -> tuple[Plan, MasterMemory]:
        """Return the plan and the memory."""
        after = MasterMemory(tuple(self._inner), tuple(self.turns.left), self.turns.turn, before.assigned, before.sole)
        return Plan(tuple(self.steps), min(self._moments, default=None)), after


def _step_costs(snapshot: Snapshot) -> tuple[Floats, Floats]:
    """Return by unit the fixed seconds of a step, and the seconds per tuple.

    A snapshot's costs go up to the delivery of tuples. If units are single boxes of one network, that includes the work
    of later steps, which are charged themselves: then only the box's own costs count, once they are known.
    """
    overhead, cost, lone = snapshot.costs.overhead, snapshot.costs.cost, snapshot.layout.members.lone
    if lone is None or not snapshot.exclusive:
        return overhead, cost
    boxes = snapshot.boxes
    own_overhead, own_cost = boxes.overhead[lone], boxes.cost[lone]
    known = own_overhead + own_cost > 0
    return np.where(known, own_overhead, overhead), np.where(known, own_cost, cost)


def _under_way(snapshot: Snapshot) -> list[int]:
    """Return the ready units whose steps are running.

    Units that share a box with such a step are busy, too: so those known to hold tuples come first.
    """
    units = np.flatnonzero(snapshot.busy & snapshot.ready)
    if not len(units):
        return []
    holding = (snapshot.held[units] > 0) | (snapshot.spent[units] > 0)
    return apart(snapshot, np.concatenate([units[holding], units[~holding]]), snapshot.workers)
