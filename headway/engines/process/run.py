"""Runs in this process, in real or in virtual time: their sources, queues, boxes and outputs, and how they are read."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import numpy as np

from headway.checking import CheckedNetwork
from headway.clock import SECOND, Clock, WallClock, stopwatch
from headway.connectors.protocol import Reader
from headway.engines.control import Stopping
from headway.engines.ingest import Ingest
from headway.engines.loop import Loop, Manner
from headway.engines.opening import Outlets, open_readers
from headway.engines.process.capacity import Effort
from headway.engines.process.drops import RuntimeDrops
from headway.engines.process.reading import RuntimeReading
from headway.engines.process.runtime import Runtime
from headway.engines.reading import status
from headway.engines.runs import RunResult, RunSettings
from headway.engines.steering import Steering
from headway.engines.traces import Recorder
from headway.errors import HeadwayError, RunError, raised
from headway.scheduling.policy import Policy
from headway.totals import Spent, Totals

LOOK_AGAIN = SECOND // 4
"""How often the status is told, and how long a run may sleep without looking whether somebody wants it to end."""
_MOST_READ = 65_536
_LEAST_READ = 1024
STRETCH = SECOND // 4
"""Nanoseconds that a part should last, where a step is cut."""
LONG = 2 * STRETCH
"""Nanoseconds up to which a step is not cut."""
WHOLE = 1 << 22
"""Tuples of a step that is not cut: more than any."""
_GROW = 8
"""How many times longer than the last one a part may be."""
_DEARER = 1.2
"""How many times as much a tuple may cost in shorter parts."""


def quiet() -> np.errstate:
    """Return a context for boxes, in which numpy does not warn of infinities and NaN: they are values like others.

    It holds for the thread that enters it.
    """
    return np.errstate(over="ignore", invalid="ignore", divide="ignore")


def fail(name: str, error: BaseException) -> NoReturn:
    """Raise what a run fails with when a box or a unit has: our own errors as they are, others with the name."""
    if isinstance(error, HeadwayError | KeyboardInterrupt):
        raise error
    raise RunError(f"'{name}' failed: {raised(error)}") from error


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
        summary = self.steering.summary(self.engine, totals, seconds, by, of_engine)
        return RunResult(tables, summary, self.outlets.letters.table(), trace)


class InRealTime(Process):
    """What both ways to run boxes in real time share."""

    engine = "local"

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.reading = 0
        self.waited = 0
        self.begun = stopwatch()

    def sleep(self, until: int | None) -> None:
        """Sleep until something can happen: a tuple is due, a window times out, a live source speaks."""
        ended, due, before = self.sources.ended, self.sources.next_due(), self.clock.now()
        if self.sources.ended and not ended:  # reading on has found the end of an input
            return
        moments = [before + LOOK_AGAIN, until, *(() if ended else (due, self.deadline))]
        pause = min([one for one in moments if one is not None]) - before
        if pause <= 0:
            return
        if self.sources.listening or isinstance(self.clock, WallClock):
            self.sources.wake.wait(pause / SECOND)
            self.sources.wake.clear()
        else:
            self.clock.sleep(pause)
        self.waited += self.clock.now() - before

    def summed_up(self, more: dict[str, Any]) -> RunResult:
        """Complete the outputs and return what the run gave."""
        runtime, seconds = self.runtime, (stopwatch() - self.begun) / 1e9
        time = {
            "scheduler": self.loop.planning / 1e9,
            "boxes": float(runtime.statistics.readings().busy.sum()) / 1e9,
            "storage": runtime.storage / 1e9,
            "sources": self.reading / 1e9,
            "sinks": runtime.delivering / 1e9,
        }
        return self.result(seconds, time, {"preemptions": self.loop.preemptions, **more})


class Parts:
    """Parts of long steps, by unit: how many tuples are processed before somebody looks up, where load may be shed.

    A step that lasts no longer than a look may be away is never cut: as long as nothing is dropped, a run should be the
    same as without shedding. What a step lasts is measured, not foreseen: costs of first calls say little. One that
    lasted longer is cut the next time into parts of a stretch, but only as long as a tuple does not cost more in them:
    what is mostly calls must not be cut, or cutting makes the overload that it is to show.
    """

    def __init__(self) -> None:
        self._lengths: dict[int, int] = {}
        self._least: dict[int, int] = {}
        self._longer: dict[int, tuple[int, float]] = {}  # what was cut: its tuples, nanoseconds for each

    def length(self, unit: int) -> int:
        """Return how many tuples the next part may have."""
        return self._lengths.get(unit, WHOLE)

    def note(self, unit: int, tuples: int, nanoseconds: int) -> None:
        """Note how long a part or a whole step has lasted, and how many tuples it took."""
        if tuples <= 0:
            return
        length, each = self.length(unit), nanoseconds / tuples
        fitting = max(1, self._least.get(unit, 1), round(STRETCH / max(each, 1e-9)))
        if tuples < length // 2 and nanoseconds <= LONG:
            return  # there was not as much to do
        longer, less = self._longer.pop(unit, (0, 0.0))
        if longer and each > _DEARER * less:
            self._least[unit] = self._lengths[unit] = longer
        elif nanoseconds > LONG and fitting < tuples:
            self._lengths[unit] = fitting
            self._longer[unit] = tuples, each
        elif nanoseconds < STRETCH // 2 and length < WHOLE:
            self._lengths[unit] = min(fitting, _GROW * length, WHOLE)
