"""The master scheduler: several policies side by side, each over its own units.

After MavStream's paper on its runtime optimizer, section 4.14 and algorithm 3. Policies that have something ready have
turns, one after the other, and a turn is as long as the policy has ready units when it begins::

    turn = quantum * ready units of the policy

What a policy does with its turn is its own affair. If nothing is left for it to do, it hands on what is left of it;
and who belongs to which policy may change between any two plans, because units keep their queues and a policy's
memory is about the units that it is shown.

A turn is counted in expected seconds of the steps planned, and a step counts a quantum as long as nothing is known of
its costs. Steps are not ended with a turn, and may be longer than it. So that time is in proportion all the same,
what a policy takes too much is taken off its next turns, as in deficit round robin (Shreedhar and Varghese, SIGCOMM
1995); the paper gives every turn in full. What is owed is forgiven when a policy has nothing ready, or is alone: then
nobody was kept waiting by it.
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
"""Nanoseconds of a turn for each ready unit: as long as the plan of most policies."""
MOST_OWED = 10 * SECOND
"""Nanoseconds that a policy owes at most: costs are only estimates, and a wild one must not shut it out for long."""

_NOBODY = -1


@dataclass(frozen=True, slots=True, eq=False)
class MasterMemory:
    """What is remembered from plan to plan. Nobody writes to its arrays."""

    inner: tuple[Any, ...]
    """By policy: its memory."""
    left: tuple[int, ...]
    """By policy: nanoseconds that are left of its turn; below 0 what it has taken too much, 0 where it has none."""
    turn: int
    """The policy that has its turn, or had the last one."""
    assigned: Places | None = None
    """By unit: its policy; None: all belong to policy 0."""
    sole: int | None = 0
    """The policy to which all units belong, if there is one."""
    asked: int = _NOBODY
    """The policy that was shown all that was ready when the last plan was made: it knows what had changed by then."""


@dataclass(frozen=True)
class Master(Policy):
    """Policies that share an engine; a unit is served by the policy to which it is assigned.

    If all that is ready belongs to one policy, the plan is that policy's own plan. Otherwise a plan holds the steps
    of one or more turns. A policy is shown only its own units as ready, and a room in which its turn would be used
    up; all other readings are as they are. With one worker, a policy whose steps leave tuples waiting keeps its turn
    until it is used up: if it has no other unit to serve, the plan ends there, and the next one goes on with it.

    With a preemptive policy among them, all of it is preemptive, and a plan names what should be running now. A step
    under way goes on until it ends if its policy is not preemptive, else its policy may replace it by another of
    its own units; nobody else's unit takes its place. What becomes free goes by turns, and a step counts when it
    begins, not when it is resumed.
    """

    policies: Sequence[Policy]
    names: Sequence[str]
    quantum: float = QUANTUM / SECOND
    """Seconds of a turn for each ready unit."""

    def __post_init__(self) -> None:
        if not self.policies or len(self.policies) != len(self.names):
            raise PolicyError(
                f"a master needs policies and a name for each, not {len(self.policies)} with {len(self.names)} names"
            )
        if not 0 < self.quantum < math.inf:
            raise PolicyError(f"the quantum is a number of seconds above 0, not {self.quantum}")

    @cached_property
    def preemptive(self) -> bool:
        """Whether one of the policies is."""
        return any(self._preemptive)

    @cached_property
    def fair(self) -> bool:
        """Whether all policies are: the turns starve nobody."""
        return all(policy.fair for policy in self.policies)

    def size(self, snapshot: Snapshot, unit: int) -> int:
        """Return how large a step of a unit may be for all policies."""
        return min([policy.size(snapshot, unit) for policy in self.policies])

    # Who belongs to whom

    def start(self) -> MasterMemory:
        """All units belong to policy 0, and nobody has had a turn."""
        count = len(self.policies)
        return MasterMemory(tuple([policy.start() for policy in self.policies]), (0,) * count, count - 1)

    def assign(self, memory: MasterMemory, by_unit: Sequence[int]) -> MasterMemory:
        """Return the memory in which each unit has the policy given for it."""
        made = frozen(np.array(by_unit, np.intp))
        for policy in set(made.tolist()):
            if not 0 <= policy < len(self.policies):
                listed = choices([f"{at} ({name})" for at, name in enumerate(self.names)])
                raise PolicyError(f"there is no policy {policy}; the policies are {listed}")
        sole = int(made[0]) if len(made) and (made == made[0]).all() else None
        return replace(memory, assigned=made, sole=sole if len(made) else 0, asked=_NOBODY)

    # Plans

    def plan(self, snapshot: Snapshot, memory: MasterMemory) -> tuple[Plan, MasterMemory]:
        """Return the plan of the only policy with ready units, or what the policies plan in their turns."""
        place, counts = self._ready(snapshot, memory)
        if place is None:
            if not counts.any():
                return Plan(()), memory
            return (self._by_slots if self.preemptive else self._by_turns)(snapshot, memory, counts)
        if self.preemptive and not self._preemptive[place]:
            return self._by_slots(snapshot, memory, counts)
        if snapshot.changed is not None and memory.asked != place:
            snapshot = snapshot.narrowed(snapshot.ready)  # it has not heard of earlier changes
        before = memory.inner[place]
        plan, after = self.policies[place].plan(snapshot, before)
        if after is before and memory.asked == place:
            return plan, memory
        inner = (*memory.inner[:place], after, *memory.inner[place + 1 :])
        left = memory.left if not any(memory.left) else (0,) * len(inner)
        return plan, MasterMemory(inner, left, place, memory.assigned, memory.sole, place)

    def _by_turns(self, snapshot: Snapshot, memory: MasterMemory, counts: Places) -> tuple[Plan, MasterMemory]:
        """Let policies plan in their turns while there is room."""
        draft = _Draft(self, snapshot, memory, counts)
        owner, turns = draft.owner, draft.turns
        ready, busy = snapshot.ready.copy(), snapshot.busy
        room, free, several = snapshot.room, snapshot.free, snapshot.workers > 1
        able = set(owner[ready & ~busy].tolist())
        rivals = set(able)  # who takes part in the turns: also who can go on, but only another snapshot tells how
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
        """Say what should be running now: what is under way, or what its policy prefers to it, and what may begin."""
        draft = _Draft(self, snapshot, memory, counts)
        owner, turns = draft.owner, draft.turns
        running = _under_way(snapshot)
        own: dict[int, list[int]] = {}  # by preemptive policy: its units under way
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
        """Let a policy plan for as many workers as it uses and some more; return how many more it wants."""
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
        # Where it does not say what to do with a worker, its step goes on.
        rest = [unit for unit in running if unit not in named][: max(0, len(running) - len(steps))]
        draft.steps += [Step(unit, int(snapshot.held[unit]) or snapshot.train) for unit in rest]
        return max(0, len(steps) - len(running))

    # Explanations

    def terms(self, snapshot: Snapshot, memory: MasterMemory) -> tuple[Term, ...]:
        """Return the terms of the only policy with ready units; nothing where several have some."""
        place, _ = self._ready(snapshot, memory)
        return () if place is None else terms_of(self.policies[place], snapshot, memory.inner[place])

    def rule(self, snapshot: Snapshot, memory: MasterMemory, unit: int) -> str | None:
        """Return the rule of a unit's policy, and, where several have ready units, that it has its turn."""
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
        """Return the only policy with ready units, if there is one, and by policy how many it has.

        If all units belong to one policy, nothing is counted unless it has to share with itself (see `plan`).
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
    """Whose turn it is, and what is left of it, while a plan is made."""

    def __init__(self, memory: MasterMemory, counts: Places, quantum: int) -> None:
        """Go on where the last plan ended; who has nothing ready owes nothing, and has nothing left."""
        self.turn = memory.turn
        self.left = [left if count else 0 for left, count in zip(memory.left, counts, strict=True)]
        self._lengths = [quantum * count for count in counts.tolist()]

    def next(self, able: Collection[int]) -> int:
        """Return who has its turn among some that have something ready, as far as they have not used it up."""
        left, lengths = self.left, self._lengths
        if self.turn in able and left[self.turn] > 0:
            return self.turn
        self.hand_on(self.turn)
        # Rounds in which all only pay what they owe need not be gone through one by one.
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
        """Take time off a policy's turn."""
        self.left[place] = max(-MOST_OWED, self.left[place] - time)

    def hand_on(self, place: int) -> None:
        """End a policy's turn; what it owes stays."""
        self.left[place] = min(0, self.left[place])


class _Draft:
    """A plan in the making."""

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
        """Add what a policy plans for some units of its own; return it."""
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
        """Return by unit whether it cannot run while some steps do, because it is in them or shares boxes with them."""
        units, snapshot = [step.unit for step in steps], self.snapshot
        found: Mask = np.zeros(len(snapshot.units), np.bool_)
        if units and snapshot.exclusive and self._members.lone is None:
            boxes: Mask = np.zeros(len(snapshot.topology.boxes), np.bool_)
            boxes[[box for unit in units for box in snapshot.units[unit].boxes]] = True
            found = self._members.any(boxes)
        found[units] = True
        return found

    def charge(self, step: Step) -> int:
        """Return the nanoseconds that a step counts."""
        unit, tuples = step
        seconds = float(self._overhead[unit]) + float(self._cost[unit]) * min(int(self.snapshot.waiting[unit]), tuples)
        return max(1, round(min(seconds * SECOND, MOST_OWED))) if seconds > 0 else self._quantum

    def mean_charge(self, units: Mask) -> int:
        """Return the nanoseconds that a step of some units counts on average."""
        tuples = np.minimum(self.snapshot.waiting[units], self.snapshot.train)
        times = (self._overhead[units] + self._cost[units] * tuples) * SECOND
        return max(1, round(float(np.where(times > 0, np.minimum(times, MOST_OWED), self._quantum).mean())))

    def done(self, before: MasterMemory) -> tuple[Plan, MasterMemory]:
        """Return the plan, and what is remembered."""
        after = MasterMemory(tuple(self._inner), tuple(self.turns.left), self.turns.turn, before.assigned, before.sole)
        return Plan(tuple(self.steps), min(self._moments, default=None)), after


def _step_costs(snapshot: Snapshot) -> tuple[Floats, Floats]:
    """Return by unit the seconds that a step takes before any tuple, and for each tuple.

    A snapshot's costs count until tuples are delivered. Where units are single boxes of one network, that is also the
    work of later steps, which count themselves: then only what the box takes counts, as soon as that is known.
    """
    overhead, cost, lone = snapshot.costs.overhead, snapshot.costs.cost, snapshot.layout.members.lone
    if lone is None or not snapshot.exclusive:
        return overhead, cost
    boxes = snapshot.boxes
    own_overhead, own_cost = boxes.overhead[lone], boxes.cost[lone]
    known = own_overhead + own_cost > 0
    return np.where(known, own_overhead, overhead), np.where(known, own_cost, cost)


def _under_way(snapshot: Snapshot) -> list[int]:
    """Return the units whose steps are under way, among the ready ones.

    Units that share a box with such a step are busy, too: those that are known to hold tuples are looked at first.
    """
    units = np.flatnonzero(snapshot.busy & snapshot.ready)
    if not len(units):
        return []
    holding = (snapshot.held[units] > 0) | (snapshot.spent[units] > 0)
    return apart(snapshot, np.concatenate([units[holding], units[~holding]]), snapshot.workers)
