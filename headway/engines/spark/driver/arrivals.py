"""Arrivals: read from sources, sealed in the log when they are needed, divided into the tasks of micro-batches."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from headway.clock import SECOND, Clock
from headway.connectors.protocol import Malformed, Reader, Resumable, begins_anew
from headway.connectors.readers import SkippingReader
from headway.engines.letters import LetterRow
from headway.storage.log import Commit, Log
from headway.storage.segments import quote_name
from headway.trains import Tick, Train, join_trains

_LONGEST = SECOND // 2
"""How long a tuple may wait to become durable when nobody asks for it."""
_LARGEST = 64 << 20


class Arrivals:
    """Gathers the trains that ingest pushes. Used by the scheduler thread."""

    def __init__(self, log: Log, clock: Clock) -> None:
        """Write to a log."""
        self._log = log
        self._clock = clock
        self._trains: dict[str, list[Train]] = {}
        self._ticks: list[Tick] = []
        self._end: int | None = None
        self._malformed: list[Malformed] = []
        self._since: int | None = None
        self.bytes = 0
        self.latest: dict[str, Train] = {}
        """By source: the train that entered last."""

    def feeder(self, source: str) -> Callable[[Train], None]:
        """Return where ingest pushes the trains of a source."""

        def push(train: Train) -> None:
            if len(train):
                self._trains.setdefault(source, []).append(train)
                self.latest[source] = train
                self.bytes += train.nbytes
            for tick in train.ticks:
                if tick not in self._ticks:  # it comes along on every source
                    self._ticks.append(tick)
            if train.end:
                self._end = train.progress
            if self._since is None:
                self._since = self._clock.now()

        return push

    def refuse(self, rows: Sequence[Malformed]) -> None:
        """Take rows that are no tuples: they become part of the log, so that a replay reports each once."""
        self._malformed += rows
        if rows and self._since is None:
            self._since = self._clock.now()

    @property
    def due(self) -> bool:
        """Whether it is time to seal although nobody asks."""
        if self._since is None:
            return False
        return self.bytes > _LARGEST or self._clock.now() - self._since >= _LONGEST

    def waiting(self, sources: Sequence[str]) -> tuple[int, int, int]:
        """Return of these sources: the tuples not sealed yet, their oldest stamp, and the sum of their stamps."""
        trains = [train for source in sources for train in self._trains.get(source, ())]
        count = sum(len(train) for train in trains)
        oldest = min((int(train.stamps[0]) for train in trains), default=0)
        total = sum(len(train) * (int(train.stamps[0]) + int(train.stamps[-1])) // 2 for train in trains)
        return count, oldest, total

    @property
    def marked(self) -> bool:
        """Whether a tick or the end waits to be sealed."""
        return bool(self._ticks) or self._end is not None

    def seal(
        self, issued: int, positions: dict[str, int], reached: int, inputs: Mapping[str, Any] | None = None
    ) -> Commit | None:
        """Make everything durable: arrivals, how far the run has come in nanoseconds, and which inputs they are from.

        Returns None if there is nothing.
        """
        if self._since is None:
            return None
        commit = self._log.append(
            {source: join_trains(trains) for source, trains in self._trains.items()},
            issued,
            self._clock.now(),
            ticks=self._ticks,
            end=self._end,
            positions=positions,
            reached=reached,
            malformed=[(row.source, row.where, row.text, row.reason) for row in self._malformed],
            inputs=inputs,
        )
        self._trains, self._ticks, self._malformed, self._since, self.bytes = {}, [], [], None, 0
        self._end = None
        return commit


def commit_letters(commit: Commit) -> list[LetterRow]:
    """Return the malformed rows that a commit logged, as dead letters."""
    return [(source, reason, text, where) for source, where, text, reason in commit.malformed]


_log = logging.getLogger("headway")


def read_on(reader: Reader, source: str, log: Log, feeds: str | None) -> Reader:
    """Return a reader of what follows in a source behind what the log has; `feeds` is where sources keep their place.

    Malformed rows are followed up, too, also those that the log has of a source without any tuple yet. A source
    that neither begins anew nor keeps its own place, such as a pipe, goes on with what comes.
    """
    if log.end is not None:
        return reader
    tuples, refused = log.positions.get(source, 0), log.refused.get(source, 0)
    if feeds is not None and isinstance(reader, Resumable):
        reader.resume(f"{feeds}/{quote_name(source)}", tuples, refused)
        return reader
    if not begins_anew(reader) or not (tuples or refused):
        return reader
    if reader.live and tuples:  # nobody can see whether it begins anew, so the user hears what that would mean
        _log.warning("source '%s': its first %s tuples are passed over: the saved run has them", source, f"{tuples:,}")
    return SkippingReader(reader, source, tuples, refused)


_SMALL = 4096
"""Tuples below which a second task costs more than it helps."""
_LARGE = 1_000_000
"""The most tuples of a task, so that what it holds in memory is bounded."""


def split_tasks(
    log: Log,
    sources: Sequence[str],
    after: int,
    upto: int,
    parallelism: int,
    marks: list[Any],
    sieves: Mapping[str, Any] | None = None,
) -> list[list[Any]]:
    """Return the tasks of (after, upto]: slices, the clock, for the first one the marks, and what drop boxes keep.

    All sources are cut at the same numbers, so that a task can merge them. The clock is the moment at which the
    last of these arrivals was logged, so that a replay sees the same.
    """
    total = log.count(sources, after, upto)
    count = 1 if total < _SMALL else max(parallelism, -(-total // _LARGE))
    now = log.moment_at(upto)
    tasks: list[list[Any]] = []
    low = after
    for at in range(count):
        high = upto if at + 1 == count else min(upto, log.cut(sources, low, -(-total // count)))
        slices = [
            [one.source, one.path, one.first, one.last, one.start, one.stop, one.crc]
            for one in log.slices(sources, low, high)
        ]
        if slices or not tasks:
            tasks.append([slices, now, None if tasks else marks, sieves or None])
        low = high
    return tasks
