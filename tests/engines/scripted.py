"""A scripted carrier, with which tests step through the loop: its sources, steering and policy do as they are told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from headway.columns import NEVER
from headway.engines.control import Ask, Command
from headway.engines.instructions import Instruction, Manner, Renewed, Round, Started, Wait
from headway.engines.loop import Carrier, Loop
from headway.engines.steering import Steering
from headway.scheduling.policy import Plan, Policy, Step
from headway.scheduling.schedule import Schedule
from headway.scheduling.snapshot import Snapshot
from tests.scheduling.snapshots import replace, snapshot


@dataclass
class Steered:
    """Notes when it is asked to look."""

    next: int = 1_000
    looks: list[int] = field(default_factory=list)
    specified: list[Any] = field(default_factory=list)
    adapts: bool = False
    active: bool = False

    def begin(self, memory: Any) -> Any:
        return memory

    def look(self, now: int, memory: Any) -> Any:
        self.looks.append(now)
        self.next = now + 1_000
        return memory

    def takes(self, what: str, now: int, refused: str | None = None) -> bool:
        return not refused

    def shed(self, active: bool, now: int) -> None:
        self.specified.append(active)

    def specify(self, settings: Any, now: int) -> None:
        self.specified.append(settings)


@dataclass
class Arriving:
    """Sources of which somebody else says what they have issued, and what is still to come."""

    issued: int = -1
    ended: bool = False
    more_in_turn: bool = False
    due: int | None = None
    ends: bool = False

    def next_due(self) -> int | None:
        self.ended = self.ended or self.ends
        return self.due


@dataclass
class Scripted:
    """What the loop reads: as a test has set it."""

    sources: Arriving = field(default_factory=Arriving)
    full: bool = False
    hungry: bool = False
    attentive: bool = True
    free: int = 1
    busy: bool = False
    deadline: int | None = None
    waiting: Sequence[int] = (0, 0)
    ready: bool = False
    awaiting: bool = False
    next_command: int | None = None
    settled: bool = True
    drained: bool = True
    asked: list[Any] = field(default_factory=list)
    seen: list[bool] = field(default_factory=list)
    at_work: Sequence[bool] = (False, False)

    def answer(self, ask: Ask) -> None:
        self.asked.append(ask.question)

    def snapshot(self, seen: bool) -> Snapshot:
        self.seen.append(seen)
        made = snapshot([count > 0 for count in self.waiting])
        return replace(made, busy=np.array(self.at_work), waiting=np.array(self.waiting))


@dataclass
class First(Policy):
    """Plans the first unit that is ready, or what it was told to."""

    plans: list[Plan] = field(default_factory=list)
    preemptive: bool = False

    def start(self) -> int:
        return 0

    def plan(self, seen: Snapshot, memory: int) -> tuple[Plan, int]:
        if self.plans:
            return self.plans.pop(0), memory + 1
        return Plan((Step(int(np.flatnonzero(seen.ready)[0]), 10),)), memory + 1


FIRST = Schedule(policy=First(), wait=None)


class Script:
    """Sends events, and checks instructions one by one."""

    def __init__(self, policy: Any = None, manner: Manner | None = None, *, decides: bool = True, **more: Any) -> None:
        self.carrier, self.steering = Scripted(), Steered()
        made = cast(Policy, policy or First()) if decides else None
        self.loop = Loop(cast(Carrier, self.carrier), made, FIRST, cast(Steering, self.steering), None, manner, **more)
        self.now = 0

    def begin(self, *commands: Command) -> Instruction:
        self._rounds = self.loop.rounds(Round(0, 0, commands))
        return next(self._rounds)

    def send(self, answer: Started | Round | Renewed | None = None) -> Instruction:
        return self._rounds.send(answer)

    def later(self, by: int = 1, ended: int = 0, *commands: Command) -> Instruction:
        self.now += by
        return self.send(Round(self.now, ended, commands))


def wait(until: int = NEVER, look: int = NEVER) -> Wait:
    return Wait(until, look)
