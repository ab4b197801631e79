"""Round robin: every unit that has something to do, in turn.

``round-robin:1ms`` gives each a slice of time instead of a train (Sharaf et al., "Preemptive Rate-based Operator
Scheduling in a Data Stream Management System", 3.1): after it the step is preempted, and the next unit has its turn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from headway.boxes.durations import Duration
from headway.errors import NetworkError, PolicyError
from headway.scheduling.policy import Plan, Policy, Step, register_policy
from headway.scheduling.snapshot import Snapshot
from headway.scheduling.turns import Turn, in_turn, next_in_turn


class Slice(NamedTuple):
    """Whose turn it is, and until when."""

    turn: Turn = Turn()
    until: int | None = None


@dataclass(frozen=True, slots=True)
class RoundRobin:
    """Serve the ready units in their order, beginning after the one that was served last."""

    slice: int | None = None
    """Nanoseconds after which a step is preempted; None: it is not."""

    fair = True
    rule = "next in turn"

    @property
    def indifferent(self) -> bool:
        """Whether the turn is all there is to decide."""
        return self.slice is None

    @property
    def preemptive(self) -> bool:
        """Whether steps end with their slice."""
        return self.slice is not None

    def start(self) -> Turn | Slice:
        """Begin with the first unit."""
        return Turn() if self.slice is None else Slice()

    def plan(self, snapshot: Snapshot, memory: Any) -> tuple[Plan, Any]:
        """Return a step for each ready unit, or, with slices, for those whose turn it is."""
        if self.slice is not None:
            return self._plan_slices(snapshot, memory, self.slice)
        chosen, turn = next_in_turn(snapshot, memory)
        train = snapshot.train
        return Plan(tuple([Step(unit, train) for unit in chosen])), turn

    def _plan_slices(self, snapshot: Snapshot, memory: Slice, length: int) -> tuple[Plan, Slice]:
        ready = np.flatnonzero(snapshot.ready)
        running: list[int] = ready[snapshot.busy[ready]].tolist()
        within = memory.until is not None and snapshot.now < memory.until
        if within and len(running) == min(len(ready), snapshot.workers):
            return Plan(tuple([Step(unit, snapshot.train) for unit in running]), memory.until), memory
        chosen = in_turn(ready.tolist(), memory.turn)[: snapshot.workers]
        until = snapshot.now + length
        steps = tuple([Step(unit, snapshot.train) for unit in chosen])
        return Plan(steps, until), Slice(Turn((chosen[-1] + 1) % len(snapshot.units)), until)


def _make(argument: str | None) -> Policy:
    if argument is None:
        return RoundRobin()
    try:
        length = Duration.parse(argument)
    except NetworkError as error:
        raise PolicyError(f"policy 'round-robin:{argument}': a slice of time stands after the colon: {error}") from None
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
