"""Runs in this process, in real or in virtual time: their sources, queues, boxes and outputs, and how they are read."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from headway.checking import CheckedNetwork
from headway.clock import SECOND, Clock
from headway.connectors.protocol import Reader
from headway.engines.base import RunResult, RunSettings
from headway.engines.control import Command, Stop
from headway.engines.delivery import Outlets
from headway.engines.ingest import Ingest
from headway.engines.interrupts import Stopping
from headway.engines.loop import Loop, Manner
from headway.engines.monitor import Effort
from headway.engines.opening import open_readers
from headway.engines.runtime import Runtime
from headway.engines.runtime_drops import RuntimeDrops
from headway.engines.runtime_reading import RuntimeReading
from headway.engines.steering import Steering
from headway.engines.summary import status, summarise
from headway.engines.traces import Recorder
from headway.scheduling.policy import Policy
from headway.totals import Spent, Totals

LOOK_AGAIN = SECOND // 4
"""How often the status is told, and how long a run may sleep without looking whether somebody wants it to end."""
_MOST_READ = 65_536
_LEAST_READ = 1024


class Process:
    """One run, as far as its carrier makes no difference."""

    engine: str

    def __init__(
        self,
        checked: CheckedNetwork,
        settings: RunSettings,
        clock: Clock,
        stack: contextlib.ExitStack,
        stopping: Stopping,
    ) -> None:
        """Open sources and outputs, and lay the queues between the boxes."""
        self.checked = checked
        self.settings = settings
        self.clock = clock
        self.stack = stack
        self.stopping = stopping
        self.started = clock.now()
        self.schedule = settings.schedule
        self.train = self.schedule.most
        self.chunk = min(max(16 * self.train, _LEAST_READ), _MOST_READ)
        readers = open_readers(checked, settings, stack)
        self.outlets = Outlets(checked, settings, clock, stack, stopping)
        self.runtime = Runtime(
            checked, self.outlets.deliveries, settings.tables, self.outlets.letters, clock, *settings.fading
        )
        self.units = self.schedule.units(self.runtime.topology)
        self.readings = RuntimeReading(checked, self.runtime, self.units)
        self.traversal = self.schedule.make_traversal(self.runtime.topology)
        self.recorder: Recorder | None = None
        if settings.trace:
            names = [unit.name for unit in self.units]
            boxes, described = self.runtime.topology.boxes, checked.network.to_mapping()
            self.recorder = Recorder(
                checked.network.name, names, boxes, settings.policy_text, start=clock.now(), description=described
            )
        self.feeds = [
            self.runtime.feed(source.name, self.wrap(source.name, reader))
            for source, reader in zip(checked.network.sources, readers, strict=True)
        ]
        if self.recorder is not None:
            self.recorder.hear(self.feeds)
        self.sources = Ingest(
            self.feeds,
            clock,
            self.chunk,
            self.outlets.letters.refuse,
            half_life=settings.half_life,
            full=self.read_until(),
        )
        stack.callback(self.sources.stop)
        outputs = list(self.outlets.deliveries.values())
        self.readings.attach(self.sources, self.feeds, outputs, self.outlets.letters, self.schedule)
        self.peak = 0
        """The most bytes that were queued."""
        self._timed = [box for box in self.runtime.boxes if box.timed]
        self._next_status = 0

    def wrap(self, source: str, reader: Reader) -> Reader:
        """Return a source's reader as this carrier wants it."""
        return reader

    def read_until(self) -> Callable[[], bool]:
        """Return when reading what is due stops, because there is enough of it."""
        return self.filled

    def steer(
        self, workers: int, policy: Policy | None, effort: Callable[[], Effort], manner: Manner | None = None
    ) -> None:
        """Make what decides: the loop, and what steers it."""
        asked, now = policy or self.settings.make_policy(), self.clock.now()
        self.readings.workers = workers
        drops = RuntimeDrops(self.readings, self.train, effort)
        self.steering = Steering(self.settings, asked, self.readings, drops, now, self.recorder)
        self.loop = Loop(self, policy, self.schedule, self.steering, self.recorder, manner)  # type: ignore[arg-type]

    # What the loop reads

    def filled(self) -> bool:
        """Return whether queues hold as much as they may."""
        return self.runtime.board.bytes > self.settings.memory

    @property
    def full(self) -> bool:
        """Whether they held so much when this round began."""
        return self.filled()

    @property
    def deadline(self) -> int | None:
        """The moment at which the next window times out."""
        if not self._timed:
            return None
        return min([box.deadline for box in self._timed if box.deadline is not None], default=None)

    @property
    def hungry(self) -> bool:
        """Whether sources without rates should give more: when the slowest reader has little left."""
        return self.sources.more_in_turn and self.readings.longest < self.chunk

    def commands(self) -> Sequence[Command]:
        """Return what somebody outside has asked for since the last time."""
        control, by = self.settings.control, self.stopping.by
        if control is None and by is None:
            return ()
        wanted: list[Command] = [] if control is None else control.commands()
        return wanted if by is None else [*wanted, Stop(by)]

    # What the loop has done

    def close(self) -> None:
        """Read no more from sources."""
        self.sources.stop()

    def tick(self) -> None:
        """Let a clock tick arrive, for the windows that have timed out."""
        now = self.clock.now()
        for box in self._timed:
            if box.deadline is not None and box.deadline <= now:
                box.deadline = None  # until the tick has reached it
        self.sources.tick()

    def end(self) -> None:
        """Let the end arrive."""
        self.sources.end()

    # What is said of the run

    def report(self, moment: int, seconds: float) -> None:
        """Tell the status if it is time, by the clock that `moment` is of."""
        if self.settings.on_status is None or moment < self._next_status:
            return
        self._next_status = moment + LOOK_AGAIN
        board, totals = self.runtime.board, self.totals({})
        waiting = int((board.arrived - board.taken).sum())
        self.settings.on_status(status(self.readings, totals, seconds, waiting, board.bytes, self.full))

    def totals(self, time: Mapping[str, float]) -> Totals:
        """Return the running totals; `time` are seconds by what they were spent on."""
        return self.steering.totals(self.clock.now(), Spent(time, self.loop.plans, self.peak))

    def result(self, seconds: float, time: Mapping[str, float], of_engine: Mapping[str, Any]) -> RunResult:
        """Complete the outputs and return what the run gave; the summary has what only this engine says."""
        tables, totals = self.outlets.complete(), self.totals(time)
        trace = None if self.recorder is None else self.recorder.trace(self.runtime.flows())
        by = self.stopping.by
        summary = summarise(self.engine, self.settings, self.readings, totals, self.steering, seconds, by, of_engine)
        return RunResult(tables, summary, self.outlets.letters.table(), trace)
