"""What arrives and what waits: arrivals on their way into the log, the tasks that read it, and the run's reading.

Sources are read, and what they bring is sealed in the log when somebody needs it. What waits there, or before it, for
each streaming query is what policies, load shedding and the user read of a run.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from headway.catalog import BoxReadings, Floats
from headway.clock import SECOND, Clock, stopwatch
from headway.columns import Int64s
from headway.connectors.protocol import Malformed, Reader, Resumable, begins_anew
from headway.connectors.readers import SkippingReader
from headway.costs import UnitCosts
from headway.engines.dead_letters import LetterRow
from headway.engines.reading import Moment, Reading, status
from headway.engines.runs import RunSettings, Status
from headway.engines.spark.driver.delivery import Collector
from headway.engines.spark.driver.queries import RunningUnit
from headway.program import Program
from headway.scheduling.snapshot import QueueReadings, Snapshot, Unit
from headway.storage.log import Commit, Log
from headway.storage.segments import quote_name
from headway.totals import Spent, Totals
from headway.trains import Tick, Train, join_trains

_log = logging.getLogger("headway")
_NEVER = int(np.iinfo(np.int64).max)
_LONGEST = SECOND // 2
"""How long a tuple may wait to become durable when nobody asks for it."""
_LARGEST = 64 << 20


class Arrivals:
    """Gathers the trains that ingest pushes. Used by the scheduler thread."""

    def __init__(self, log: Log, clock: Clock) -> None:
        """Write to a log."""
        self.log = log
        self.clock = clock
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
                self._since = self.clock.now()

        return push

    def refuse(self, rows: Sequence[Malformed]) -> None:
        """Take rows that are no tuples: they become part of the log, so that a replay reports each once."""
        self._malformed += rows
        if rows and self._since is None:
            self._since = self.clock.now()

    @property
    def due(self) -> bool:
        """Whether it is time to seal although nobody asks."""
        if self._since is None:
            return False
        return self.bytes > _LARGEST or self.clock.now() - self._since >= _LONGEST

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
        commit = self.log.append(
            {source: join_trains(trains) for source, trains in self._trains.items()},
            issued,
            self.clock.now(),
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


class QueryReading(Reading):
    """Looks at all parts of a run; changes none."""

    def __init__(
        self,
        program: Program,
        queries: Sequence[RunningUnit],
        arrivals: Arrivals,
        takings: Collector,
        settings: RunSettings,
        begun: int,
    ) -> None:
        """Give the boxes and outputs of the queries, which are the units here, their numbers."""
        topology = program.topology
        boxes = {name: at for at, name in enumerate(topology.boxes)}
        outputs = {name: at for at, name in enumerate(topology.outputs)}
        units = tuple(
            Unit(one.cut.name, tuple(boxes[name] for name in one.cut.boxes), tuple(outputs[o] for o in one.cut.outputs))
            for one in queries
        )
        super().__init__(program.checked, topology, units, takings.statistics, exclusive=False)
        self.queries, self.log, self.arrivals, self._takings = queries, arrivals.log, arrivals, takings
        self._settings, self._begun = settings, begun
        self.sources_spent = 0
        """Nanoseconds that reading sources took."""
        self.peak_queued = 0
        reading = {box for some in topology.readers for box in some}
        self._entries = [np.array([box for box in unit.boxes if box in reading], np.intp) for unit in units]

    @property
    def queued(self) -> int:
        """Bytes that have arrived and that somebody still has to read.

        The log holds more: what it keeps on purpose, its newest commit, and what only waits for a query to commit that
        reads other sources. Sources that waited for that would wait for ever.
        """
        reached: dict[str, int] = {}
        for unit in self.queries:
            for source in unit.cut.sources:
                reached[source] = min(unit.committed, reached.get(source, unit.committed))
        return self.log.bytes_after(reached) + self.arrivals.bytes

    def waiting_for(self, unit: RunningUnit) -> tuple[int, int, float]:
        """Return a unit's waiting tuples, the oldest stamp of them, and their mean stamp."""
        sources = unit.cut.sources
        count, oldest, total = self.arrivals.waiting(sources)
        issued = self.log.issued
        logged = self.log.stamps(sources, unit.position, issued) if unit.position < issued else None
        if logged is not None:
            number = self.log.count(sources, unit.position, issued)
            oldest = logged[0]
            total += logged[1] * number
            count += number
        return count, oldest if count else _NEVER, total / count if count else 0.0

    @property
    def longest(self) -> int:
        """The tuples that wait for the unit that is furthest behind."""
        return max((self.waiting_for(unit)[0] for unit in self.queries), default=0)

    def _read(self) -> tuple[Int64s, Int64s, Floats]:
        """Return by unit what `waiting_for` says."""
        rows = [self.waiting_for(unit) for unit in self.queries]
        counts, oldest = (np.array([row[at] for row in rows], np.int64) for at in (0, 1))
        return counts, oldest, np.array([row[2] for row in rows], np.float64)

    @property
    def seconds(self) -> float:
        """How long the run has taken so far."""
        return (stopwatch() - self._begun) / 1e9

    def snapshot(self, more: bool, planning: float) -> Snapshot:
        """Return what a policy may look at.

        `more` says whether tuples may still arrive, `planning` how many seconds a plan takes on average.
        """
        counts, oldest, means = self._read()
        sealed, now = self.log.issued, self.arrivals.clock.now()
        marked = [self.arrivals.marked or self.log.marks(one.position, sealed) != ((), None) for one in self.queries]
        asking = np.array([unit.asking for unit in self.queries], np.bool_)
        box_waiting, box_oldest = self._by_box(counts, oldest)
        free = max(0, self.workers - int((~asking).sum()))
        self.looks += 1
        self._counts, self._means, self._box_waiting, self._box_oldest = counts, means, box_waiting, box_oldest
        return Snapshot(
            now=now,
            layout=self.layout,
            ready=asking & ((counts > 0) | np.array(marked, np.bool_)),
            waiting=counts,
            oldest=oldest,
            box_ready=box_waiting > 0,
            box_waiting=box_waiting,
            box_oldest=box_oldest,
            workers=self.workers,
            free=free,
            busy=~asking,
            spent=np.zeros(len(self.units)),
            held=np.zeros(len(self.units), np.int64),
            memory=self.queued,
            train=self._settings.schedule.most,
            room=free,
            measures=Moment(self, now),
            more=more,
            planning=planning,
        )

    # What a policy may ask of the latest snapshot

    def boxes(self, now: int) -> BoxReadings:
        """Return the statistics of the boxes."""
        return self.statistics.readings()

    def queues(self, now: int) -> QueueReadings:
        """Return what waits before each box; a mean latency is half of the oldest's, for nothing finer is kept."""
        waiting = self._box_waiting
        age = np.where(waiting > 0, (now - self._box_oldest) / SECOND, 0.0)
        return QueueReadings(waiting, (waiting * self.boxes(now).tuple_size).astype(np.int64), age / 2, age)

    def latencies(self, now: int) -> Floats:
        """Return by unit the mean latency of what waits."""
        return np.where(self._counts > 0, (now - self._means) / SECOND, 0.0)

    def latency(self, now: int, unit: int) -> float:
        """Return the mean latency of what waits for one unit."""
        return float(now - self._means[unit]) / SECOND if self._counts[unit] else 0.0

    def unit_costs(self, now: int) -> UnitCosts:
        """Return what micro-batches cost, as measured; what they yield is told by their boxes."""
        overhead = np.array([unit.cost.overhead for unit in self.queries])
        yields = self.follow_units(self.boxes(now), self._box_waiting).yields
        return UnitCosts(overhead, np.array([unit.cost.cost for unit in self.queries]), yields)

    # What everybody else reads

    def carried(self, box: int, arc: str) -> float:
        """Return how many of its box's tuples an arc has got, of those that the unit counts which owns the box.

        Other units run the box, too, and one of those may be the only one that reads the arc.
        """
        taken, carried = self._takings.carried[arc]
        return carried / taken * int(self.statistics.readings().tuples_in[box]) if taken else 0.0

    def backlog(self) -> tuple[Int64s, Int64s]:
        """Return by box what waits for its unit, at the boxes that read sources."""
        counts, oldest, _ = self._read()
        return self._by_box(counts, oldest)

    @property
    def ignored(self) -> Mapping[str, int]:
        """By box: the tuples that came too late for it."""
        return self._takings.ignored

    def overdue(self) -> Int64s:
        """Return nothing: the log takes all that arrives."""
        return np.zeros(len(self.topology.sources), np.int64)

    def spent(self, planning: int, plans: int) -> Spent:
        """Return what scheduling and micro-batches have taken; so many plans took so many nanoseconds."""
        in_boxes = float(self.statistics.readings().busy.sum()) / 1e9
        time = {
            "scheduler": planning / 1e9,
            "boxes": in_boxes,
            "storage": max(0.0, sum(unit.seconds for unit in self.queries) - in_boxes),
            "sources": self.sources_spent / 1e9,
            "sinks": self._takings.spent / 1e9,
        }
        return Spent(time, plans, self.peak_queued)

    def status(self, totals: Totals) -> Status:
        """Return how far the run is."""
        queued = self.queued
        return status(self, totals, self.seconds, self.longest, queued, queued > self._settings.memory)

    def summary(self) -> dict[str, Any]:
        """Return what a summary says on Spark only: of each streaming query, and of earlier processes."""
        units = {
            unit.cut.name: {
                "batches": unit.batches,
                "tuples": unit.tuples,
                "seconds": unit.seconds,
                "cost_per_batch": unit.cost.overhead,
                "cost_per_tuple": unit.cost.cost,
                "restarts": unit.restarts,
            }
            for unit in self.queries
        }
        return {"units": units, "tuples_before": self.ingest.before}

    def _by_box(self, counts: Int64s, oldest: Int64s) -> tuple[Int64s, Int64s]:
        """Return by box what waits: at the boxes that read sources, what waits for their units."""
        waiting = np.zeros(len(self.topology.boxes), np.int64)
        stamps = np.full(len(self.topology.boxes), _NEVER)
        for at, entries in enumerate(self._entries):
            np.maximum.at(waiting, entries, counts[at])
            np.minimum.at(stamps, entries, oldest[at])
        return waiting, stamps
