"""Round robin: every ready unit in turn.

``round-robin:1ms`` gives each a time slice instead of a train (Sharaf et al., "Preemptive Rate-based Operator
Scheduling in a Data Stream Management System", 3.1): after it the step is preempted, and the next unit has its turn.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from headway.durations import Duration
from headway.errors import PolicyError, within
from headway.scheduling.policy import Plan, Policy, Step, apart, register_policy
from headway.scheduling.snapshot import Snapshot

LONGEST = 256
"""The most steps in a plan, so that a plan in a large network does not become stale."""
IN_TURN = "next in turn"


class Turn(NamedTuple):
    """The policy's memory: whose turn is next."""

    first: int = 0
    """The unit at which the search for the next ready one begins."""
    passed: tuple[int, ...] = ()
    """Units that were ready in their turn, but shared a box with a running or chosen step: they come first."""
    until: int | None = None
    """The end of the time slice (ns)."""


@dataclass(frozen=True, slots=True)
class RoundRobin(Policy):
    """Serve the ready units in order of their numbers, starting after the one served last."""

    slice: int | None = None
    """Nanoseconds after which a step is preempted; None: never."""

    fair = True

    @property
    def indifferent(self) -> bool:
        """Whether there are no time slices."""
        return self.slice is None

    @property
    def preemptive(self) -> bool:
        """Whether there are time slices."""
        return self.slice is not None

    def start(self) -> Turn:
        """Return a memory that starts with the first unit."""
        return Turn()

    def plan(self, snapshot: Snapshot, memory: Turn) -> tuple[Plan, Turn]:
        """Return a step for each ready unit, or, with slices, for those whose turn it is."""
        if self.slice is not None:
            return self._plan_slices(snapshot, memory, self.slice)
        chosen, turn = next_in_turn(snapshot, memory)
        train = snapshot.train
        return Plan(tuple([Step(unit, train) for unit in chosen])), turn

    def rule(self, snapshot: Snapshot, memory: Turn, unit: int) -> str:
        """Return the only rule."""
        return IN_TURN

    def _plan_slices(self, snapshot: Snapshot, memory: Turn, length: int) -> tuple[Plan, Turn]:
        ready = np.flatnonzero(snapshot.ready)
        running: list[int] = ready[snapshot.busy[ready]].tolist()
        within = memory.until is not None and snapshot.now < memory.until
        if within and len(running) == min(len(ready), snapshot.workers):
            return Plan(tuple([Step(unit, snapshot.train) for unit in running]), memory.until), memory
        chosen = in_turn(ready.tolist(), memory)[: snapshot.workers]
        until = snapshot.now + length
        steps = tuple([Step(unit, snapshot.train) for unit in chosen])
        return Plan(steps, until), Turn((chosen[-1] + 1) % len(snapshot.units), until=until)


def next_in_turn(snapshot: Snapshot, turn: Turn) -> tuple[list[int], Turn]:
    """Return the units whose turn it is, as many as the engine will serve, and the turn after them.

    The first ones, as many as there are free workers, share no boxes with each other or with running steps. If the
    engine serves more before it asks again, the others follow, and wait for their boxes.
    """
    order = in_turn(snapshot.ready.nonzero()[0].tolist(), turn)
    most = min(LONGEST, snapshot.room)
    if snapshot.workers == snapshot.free == 1:  # then no step is running
        chosen, passed = order[:most], tuple[int, ...]()
    else:
        now = min(most, snapshot.free)
        chosen = apart(snapshot, [unit for unit in order if not snapshot.busy[unit]], now)
        reached = order[: order.index(chosen[-1])] if 0 < len(chosen) == now else order
        passed = tuple([unit for unit in reached if unit not in chosen])
        if chosen and most > snapshot.free:
            first = set(chosen)
            chosen += [unit for unit in order if unit not in first][: most - len(chosen)]
            passed = tuple([unit for unit in passed if unit not in chosen])
    if not chosen:
        return [], turn
    return chosen, Turn((chosen[-1] + 1) % len(snapshot.units), passed)


def in_turn(ready: list[int], turn: Turn) -> list[int]:
    """Return the ready units in the order of their turns."""
    at = bisect_left(ready, turn.first)
    order = ready[at:] + ready[:at]
    if turn.passed:
        passed = set(turn.passed)
        order = [unit for unit in turn.passed if unit in passed.intersection(order)] + [
            unit for unit in order if unit not in passed
        ]
    return order


def _make(argument: str | None) -> Policy:
    if argument is None:
        return RoundRobin()
    with within(f"policy 'round-robin:{argument}': a slice of time stands after the colon"):
        length = Duration.parse(argument)
    if length.microseconds < 1:
        raise PolicyError(f"policy 'round-robin:{argument}': a slice is longer than 0")
    return RoundRobin(length.nanoseconds)


register_policy(
    "round-robin",
    _make,
    "every unit that has something to do, in turn; round-robin:1ms gives each a slice of time",
    formula="the next ready unit after the one that was served last",
    paper="the baseline of all five papers; slices: Sharaf et al. 3.1",
    use="throughput, or units of equal urgency: it costs least and starves nobody",
)
