"""Runs in this process, in real or virtual time: sources, queues, boxes, outputs and readings."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

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
"""Nanoseconds between status reports, and the longest sleep before a run checks for stop requests."""
_MOST_READ = 65_536
_LEAST_READ = 1024
STRETCH = SECOND // 4
"""Intended duration (ns) of a part of a step that is cut."""
LONG = 2 * STRETCH
"""Longest step (ns) that is not cut."""
WHOLE = 1 << 22
"""The part length of a step that is not cut: more tuples than any step has."""
_GROW = 8
"""How many times longer than the previous part a part may be."""
_DEARER = 1.2
"""Highest acceptable ratio of the cost per tuple in shorter parts to that in longer ones."""


def fail(name: str, error: BaseException) -> NoReturn:
    """Raise a run's error for a box or unit that failed: our own errors unchanged, others with its name."""
    if isinstance(error, HeadwayError | KeyboardInterrupt):
        raise error
    raise RunError(f"'{name}' failed: {raised(error)}") from error


class Process:
    """One run, as far as it does not depend on the carrier."""

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
        """Peak of queued bytes."""
        self._timed = [box for box in self.runtime.boxes if box.timed]
        self._next_status = 0

    def wrap(self, source: str, reader: Reader) -> Reader:
        """Return a source's reader as this carrier needs it."""
        return reader

    def read_until(self) -> Callable[[], bool]:
        """Return the condition at which a pull stops reading tuples that are due, because there are enough."""
        return self.filled

    def steer(
        self, workers: int, policy: Policy | None, effort: Callable[[], Effort], manner: Manner | None = None
    ) -> None:
        """Create the loop, and the steering for it."""
        asked, now = policy or self.settings.make_policy(), self.clock.now()
        self.readings.workers = workers
        drops = RuntimeDrops(self.readings, self.train, effort)
        self.steering = Steering(self.settings, asked, self.readings, drops, now, self.recorder)
        self.loop = Loop(self, policy, self.schedule, self.steering, self.recorder, manner)  # type: ignore[arg-type]

    # What the loop reads

    def filled(self) -> bool:
        """Return whether queues exceed the memory limit."""
        return self.runtime.board.bytes > self.settings.memory

    @property
    def full(self) -> bool:
        """Whether queues exceed the memory limit; the engine `local` reads that once per round."""
        return self.filled()

    @property
    def deadline(self) -> int | None:
        """The moment at which the next window times out."""
        if not self._timed:
            return None
        return min([box.deadline for box in self._timed if box.deadline is not None], default=None)

    @property
    def hungry(self) -> bool:
        """Whether sources without rates should be read: the consumer that is furthest behind has little left."""
        return self.sources.more_in_turn and self.readings.longest < self.chunk

    # Instructions of the loop

    def close(self) -> None:
        """Read no more from sources."""
        self.sources.stop()

    def tick(self) -> None:
        """Let a clock tick arrive for windows that have timed out."""
        now = self.clock.now()
        for box in self._timed:
            if box.deadline is not None and box.deadline <= now:
                box.deadline = None  # until the tick has reached the box
        self.sources.tick()

    def end(self) -> None:
        """Let the end of all inputs arrive."""
        self.sources.end()

    # Status and results

    def report(self, moment: int, seconds: float) -> None:
        """Report the status if it is due by the clock from which `moment` was read."""
        if self.settings.on_status is None or moment < self._next_status:
            return
        self._next_status = moment + LOOK_AGAIN
        board, totals = self.runtime.board, self.totals({})
        waiting = int((board.arrived - board.taken).sum())
        self.settings.on_status(status(self.readings, totals, seconds, waiting, board.bytes, self.full))

    def totals(self, time: Mapping[str, float]) -> Totals:
        """Return the running totals; `time` maps activities to the seconds spent on them."""
        return self.steering.totals(self.clock.now(), Spent(time, self.loop.plans, self.peak))

    def result(self, seconds: float, time: Mapping[str, float], of_engine: Mapping[str, Any]) -> RunResult:
        """Complete the outputs and return the run's result; `of_engine` extends the summary."""
        tables, totals = self.outlets.complete(), self.totals(time)
        trace = None if self.recorder is None else self.recorder.trace(self.runtime.flows())
        by = self.stopping.by
        summary = self.steering.summary(self.engine, totals, seconds, by, of_engine)
        return RunResult(tables, summary, self.outlets.letters.table(), trace)


class InRealTime(Process):
    """What the carriers `Local` and `Threads`, which run boxes in real time, share."""

    engine = "local"

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.reading = 0
        self.waited = 0
        self.begun = stopwatch()

    def sleep(self, until: int | None) -> None:
        """Sleep until something can happen: a tuple is due, a window times out, a live source delivers."""
        ended, due, before = self.sources.ended, self.sources.next_due(), self.clock.now()
        if self.sources.ended and not ended:  # looking for the next due tuple has found the end of an input
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
        """Complete the outputs and return the run's result."""
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
    """Lengths of the parts of long steps, by unit, for runs that may shed load: between parts, the loop may look.

    A step that is no longer than the allowed gap between looks is never cut: while nothing is dropped, a run should be
    the same as without shedding. Durations are measured, not predicted: the cost of first calls says little. A step
    that took longer is cut the next time into parts of length `STRETCH`, unless this makes tuples more expensive: work
    that is mostly overhead per call must not be cut, or the cutting itself would cause the overload.
    """

    def __init__(self) -> None:
        self._lengths: dict[int, int] = {}
        self._least: dict[int, int] = {}
        self._longer: dict[int, tuple[int, float]] = {}  # steps that were cut: their tuples, and nanoseconds per tuple

    def length(self, unit: int) -> int:
        """Return how many tuples the next part may have."""
        return self._lengths.get(unit, WHOLE)

    def note(self, unit: int, tuples: int, nanoseconds: int) -> None:
        """Record the duration and the tuples of a part or a whole step."""
        if tuples <= 0:
            return
        length, each = self.length(unit), nanoseconds / tuples
        fitting = max(1, self._least.get(unit, 1), round(STRETCH / max(each, 1e-9)))
        if tuples < length // 2 and nanoseconds <= LONG:
            return  # it was short only for lack of tuples
        longer, less = self._longer.pop(unit, (0, 0.0))
        if longer and each > _DEARER * less:
            self._least[unit] = self._lengths[unit] = longer
        elif nanoseconds > LONG and fitting < tuples:
            self._lengths[unit] = fitting
            self._longer[unit] = tuples, each
        elif nanoseconds < STRETCH // 2 and length < WHOLE:
            self._lengths[unit] = min(fitting, _GROW * length, WHOLE)
