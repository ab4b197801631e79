"""Runs in this process, in real or virtual time: sources, queues, boxes, outputs and readings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, NoReturn

from headway.clock import SECOND, stopwatch
from headway.connectors.protocol import Reader
from headway.engines.carrier import Given, Run
from headway.engines.opening import Outlet, Outlets, open_readers
from headway.engines.process.reading import RuntimeReading
from headway.engines.process.runtime import Runtime
from headway.errors import HeadwayError, RunError, raised

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


class Process(Run):
    """One run in this process, as far as it does not depend on the carrier."""

    engine = "local"
    virtual: ClassVar[bool] = False
    """Whether time is virtual."""
    readings: RuntimeReading

    def __init__(self, given: Given) -> None:
        checked, settings, clock, stack, stopping = given
        self.started, self.train = clock.now(), settings.schedule.most
        readers = open_readers(checked, settings, stack)
        outlets = Outlets(checked, settings, stack, stopping, lambda to: Outlet(to, clock, settings.half_life), clock)
        letters = outlets.letters
        self.runtime = Runtime(checked, outlets.deliveries, settings.tables, letters, clock, *settings.fading)
        self.units = settings.schedule.units(self.runtime.topology)
        self.traversal = settings.schedule.make_traversal(self.runtime.topology)
        self.feeds = [
            self.runtime.feed(source.name, self.wrap(given, source.name, reader))
            for source, reader in zip(checked.network.sources, readers, strict=True)
        ]
        chunk = min(max(16 * self.train, _LEAST_READ), _MOST_READ)
        readings = RuntimeReading(checked, self.runtime, self.units)
        full = (lambda: True) if self.virtual else self.filled  # in virtual time, a pull reads once
        super().__init__(given, readings, outlets, self.feeds, letters.refuse, chunk=chunk, enough=chunk, full=full)
        self._timed = [box for box in self.runtime.boxes if box.timed]

    def wrap(self, given: Given, source: str, reader: Reader) -> Reader:
        """Return a source's reader as this carrier needs it."""
        return reader

    @property
    def queued(self) -> int:
        """The bytes in queues."""
        return self.runtime.board.bytes

    @property
    def deadline(self) -> int | None:
        """The moment at which the next window times out."""
        if not self._timed:
            return None
        return min([box.deadline for box in self._timed if box.deadline is not None], default=None)

    def tick(self) -> None:
        """Let a clock tick arrive for windows that have timed out."""
        now = self.clock.now()
        for box in self._timed:
            if box.deadline is not None and box.deadline <= now:
                box.deadline = None  # until the tick has reached the box
        super().tick()

    def admit(self, asks: bool) -> None:
        """Let tuples arrive."""
        begun = stopwatch()
        if self.sources.pull(asks):
            self.entered()
        self.intake += stopwatch() - begun

    @property
    def waiting(self) -> int:
        """The tuples in all queues."""
        board = self.runtime.board
        return int((board.arrived - board.taken).sum())

    def flows(self) -> Mapping[str, int]:
        """Return the tuples by arc so far."""
        return self.runtime.flows()

    def time(self) -> Mapping[str, float]:
        """Return the seconds spent so far, by activity."""
        runtime = self.runtime
        return {
            "scheduler": self.loop.planning / 1e9,
            "boxes": float(runtime.statistics.readings().busy.sum()) / 1e9,
            "storage": runtime.storage / 1e9,
            "sources": self.intake / 1e9,
            "sinks": runtime.delivering / 1e9,
        }


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
