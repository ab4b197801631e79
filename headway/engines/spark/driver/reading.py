"""Arrivals and backlog on Spark: arrivals on their way into the log, the tasks that read it, and the run's reading.

Tuples from sources are sealed in the log when they are needed. What waits in the log, or to be sealed, for each
streaming query is what policies, load shedding and the status read.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from headway.catalog import BoxReadings
from headway.clock import SECOND, Clock
from headway.columns import NEVER, Floats, Int64s, frozen
from headway.connectors.protocol import Malformed, Reader, Resumable, begins_anew
from headway.connectors.readers import SkippingReader
from headway.costs import UnitCosts
from headway.engines.dead_letters import LetterRow
from headway.engines.reading import Reading
from headway.engines.runs import RunSettings
from headway.engines.spark.driver.delivery import Collector
from headway.engines.spark.driver.queries import RunningUnit
from headway.engines.spark.driver.relays import Inputs
from headway.program import Program
from headway.scheduling.snapshot import Moment, QueueReadings, Snapshot, Unit
from headway.storage.log import Commit, Log
from headway.storage.segments import quote_name
from headway.trains import Tick, Train, join_trains

_log = logging.getLogger("headway")
_LONGEST = SECOND // 2
"""How long a tuple may wait (ns) to become durable if no query asks for it."""
_LARGEST = 64 << 20


class Arrivals:
    """Collects the trains that ingest pushes. Used by the scheduler thread."""

    def __init__(self, log: Log, clock: Clock) -> None:
        """Collect for a log."""
        self.log = log
        self.kept: Callable[[str, Train], None] = lambda *what: None
        """Called with a source and what was made durable of it."""
        self.clock = clock
        self._trains: dict[str, list[Train]] = {}
        self._ticks: list[Tick] = []
        self._end: int | None = None
        self._malformed: list[Malformed] = []
        self._since: int | None = None
        self.bytes = 0
        self.latest: dict[str, Train] = {}
        """By source: the latest train."""

    def feeder(self, source: str) -> Callable[[Train], None]:
        """Return the function to which ingest pushes a source's trains."""

        def push(train: Train) -> None:
            if len(train):
                self._trains.setdefault(source, []).append(train)
                self.latest[source] = train
                self.bytes += train.nbytes
            for tick in train.ticks:
                if tick not in self._ticks:  # every source passes it on
                    self._ticks.append(tick)
            if train.end:
                self._end = train.progress
            if self._since is None:
                self._since = self.clock.now()

        return push

    def refuse(self, rows: Sequence[Malformed]) -> None:
        """Collect malformed rows: they become part of the log, so that a replay reports each once."""
        self._malformed += rows
        if rows and self._since is None:
            self._since = self.clock.now()

    @property
    def due(self) -> bool:
        """Whether it is time to seal even if no query asks."""
        if self._since is None:
            return False
        return self.bytes > _LARGEST or self.clock.now() - self._since >= _LONGEST

    def waiting(self, sources: Sequence[str]) -> tuple[int, int, int]:
        """Return of these sources' unsealed tuples the count, the oldest stamp, and the sum of the stamps."""
        trains = [train for source in sources for train in self._trains.get(source, ())]
        count = sum(len(train) for train in trains)
        oldest = min((int(train.stamps[0]) for train in trains), default=0)
        total = sum(len(train) * (int(train.stamps[0]) + int(train.stamps[-1])) // 2 for train in trains)
        return count, oldest, total

    @property
    def ended(self) -> bool:
        """Whether the end has arrived."""
        return self._end is not None or self.log.end is not None

    @property
    def marked(self) -> bool:
        """Whether a tick or the end waits to be sealed."""
        return bool(self._ticks) or self._end is not None

    def seal(
        self,
        issued: int,
        positions: dict[str, int],
        reached: int,
        inputs: Mapping[str, Any] | None = None,
        seam: Mapping[str, Any] | None = None,
    ) -> Commit | None:
        """Make everything durable: arrivals, how long the run has lasted (ns), and what identifies its inputs.

        With `seam`, the network changes at the number `issued`. Returns None if there is nothing to seal.
        """
        if self._since is None and seam is None:
            return None
        joined = {source: join_trains(trains) for source, trains in self._trains.items()}
        commit = self.log.append(
            joined,
            issued,
            self.clock.now(),
            ticks=self._ticks,
            end=self._end,
            positions=positions,
            reached=reached,
            malformed=[(row.source, row.where, row.text, row.reason) for row in self._malformed],
            inputs=inputs,
            seam=seam,
        )
        self._trains, self._ticks, self._malformed, self._since, self.bytes = {}, [], [], None, 0
        self._end = None
        for source, train in joined.items():
            self.kept(source, train)
        return commit


def commit_letters(commit: Commit) -> list[LetterRow]:
    """Return the malformed rows of a commit as dead letters."""
    return [(source, reason, text, where) for source, where, text, reason in commit.malformed]


def read_on(reader: Reader, source: str, log: Log, feeds: str | None) -> Reader:
    """Return a reader that continues a source after what the log has; in `feeds` sources keep their own positions.

    Malformed rows count as well, even if the log has no tuple of the source yet. A source that neither starts over nor
    keeps its own position, such as a pipe, continues with what comes.
    """
    if log.end is not None:
        return reader
    tuples, refused = log.positions.get(source, 0), log.refused.get(source, 0)
    if feeds is not None and isinstance(reader, Resumable):
        reader.resume(f"{feeds}/{quote_name(source)}", tuples, refused)
        return reader
    if not begins_anew(reader) or not (tuples or refused):
        return reader
    if reader.live and tuples:  # it cannot be verified that it starts over, so the user is told what is assumed
        _log.warning("source '%s': its first %s tuples are passed over: the saved run has them", source, f"{tuples:,}")
    return SkippingReader(reader, source, tuples, refused)


_SMALL = 4096
"""Tuples below which a second task costs more than it gains."""
_LARGE = 1_000_000
"""The most tuples of a task, which bounds its memory."""


def split_tasks(
    inputs: Inputs,
    after: int,
    upto: int,
    parallelism: int,
    marks: list[Any],
    sieves: Mapping[str, Any] | None = None,
) -> list[list[Any]]:
    """Return the tasks of (after, upto]: slices, the time, the marks (first task only), and the sieves of drop boxes.

    All sources are cut at the same numbers, so that a task can merge them. The time is the moment at which the last of
    these arrivals was logged, so that a replay sees the same.
    """
    total = inputs.count(after, upto)
    count = 1 if total < _SMALL else max(parallelism, -(-total // _LARGE))
    now = inputs.moment_at(upto)
    tasks: list[list[Any]] = []
    low = after
    for at in range(count):
        high = upto if at + 1 == count else min(upto, inputs.cut(low, -(-total // count)))
        slices = [
            [one.source, one.path, one.first, one.last, one.start, one.stop, one.crc]
            for one in inputs.slices(low, high)
        ]
        if slices or not tasks:
            tasks.append([slices, now, None if tasks else marks, sieves or None])
        low = high
    return tasks


class QueryReading(Reading):
    """Observes all parts of a run and changes nothing."""

    def __init__(
        self,
        program: Program,
        queries: Sequence[RunningUnit],
        arrivals: Arrivals,
        takings: Collector,
        settings: RunSettings,
    ) -> None:
        """Prepare for these queries, which are the run's units."""
        topology = program.topology
        boxes = {name: at for at, name in enumerate(topology.boxes)}
        outputs = {name: at for at, name in enumerate(topology.outputs)}
        units = tuple(
            Unit(one.cut.name, tuple(boxes[name] for name in one.cut.boxes), tuple(outputs[o] for o in one.cut.outputs))
            for one in queries
        )
        super().__init__(program.checked, topology, units, takings.statistics, exclusive=False)
        self.queries, self.log, self.arrivals, self._takings = queries, arrivals.log, arrivals, takings
        self._settings = settings
        reading = {box for some in topology.readers for box in some}
        self._entries = [
            np.array(
                [box for box in unit.boxes if box in reading or set(topology.producers[box]) - set(unit.boxes)], np.intp
            )
            for unit in units
        ]

    @property
    def queued(self) -> int:
        """Bytes that have arrived and are still to be read by some query.

        The log holds more: what it keeps on purpose, its newest commit, and tuples waiting for a commit of a query that
        reads other sources. Sources that waited for those would wait forever.
        """
        reached: dict[str, int] = {}
        for unit in self.queries:
            for source in unit.inputs.from_main:
                reached[source] = min(unit.committed, reached.get(source, unit.committed))
        relayed = sum(unit.inputs.bytes_after(unit.committed) for unit in self.queries if not unit.inputs.plain)
        return self.log.bytes_after(reached) + self.arrivals.bytes + relayed

    def waiting_for(self, unit: RunningUnit) -> tuple[int, int, float]:
        """Return the count of a unit's waiting tuples, their oldest stamp, and their mean stamp."""
        inputs = unit.inputs
        count, oldest, total = self.arrivals.waiting(inputs.from_main) if unit.limit == NEVER else (0, 0, 0)
        issued = min(unit.limit, inputs.issued)
        logged = inputs.stamps(unit.position, issued) if unit.position < issued else None
        if logged is not None:
            number = inputs.count(unit.position, issued)
            oldest = logged[0]
            total += logged[1] * number
            count += number
        return count, oldest if count else NEVER, total / count if count else 0.0

    @property
    def longest(self) -> int:
        """The number of tuples waiting for the unit that is furthest behind."""
        return max((self.waiting_for(unit)[0] for unit in self.queries), default=0)

    def _read(self) -> tuple[Int64s, Int64s, Floats]:
        """Return the values of `waiting_for` by unit."""
        rows = [self.waiting_for(unit) for unit in self.queries]
        counts, oldest = (np.array([row[at] for row in rows], np.int64) for at in (0, 1))
        return counts, oldest, np.array([row[2] for row in rows], np.float64)

    def snapshot(self, more: bool, planning: float) -> Snapshot:
        """Return the current snapshot.

        `more` says whether tuples may still arrive, `planning` is the mean duration of a plan in seconds.
        """
        counts, oldest, means = self._read()
        now = self.arrivals.clock.now()
        marked = [self._marked(one) for one in self.queries]
        asking = np.array([unit.asking for unit in self.queries], np.bool_)
        box_waiting, box_oldest = self._by_box(counts, oldest)
        held = np.array([unit.held for unit in self.queries], np.bool_)
        starting = np.array([unit.starting for unit in self.queries], np.bool_)
        free = max(0, self.workers - int((~asking & ~starting).sum()))
        self.looks += 1
        self._counts, self._means, self._box_waiting, self._box_oldest = counts, means, box_waiting, box_oldest
        return Snapshot(
            now=now,
            layout=self.layout,
            ready=frozen(asking & ~held & ((counts > 0) | np.array(marked, np.bool_))),
            waiting=frozen(counts),
            oldest=frozen(oldest),
            box_ready=frozen(box_waiting > 0),
            box_waiting=frozen(box_waiting),
            box_oldest=frozen(box_oldest),
            workers=self.workers,
            free=free,
            busy=frozen(~asking),
            spent=frozen(np.zeros(len(self.units))),
            held=frozen(np.zeros(len(self.units), np.int64)),
            memory=self.queued,
            train=self._settings.schedule.most,
            room=free,
            measures=Moment(self, now),
            more=more,
            planning=planning,
        )

    def _marked(self, unit: RunningUnit) -> bool:
        """Return whether a tick, the end or a seam waits for a unit."""
        issued = unit.inputs.issued
        if unit.limit < NEVER:
            return unit.position < min(unit.limit, issued)
        marked = unit.inputs.plain and self.arrivals.marked
        return marked or unit.inputs.marks(unit.position, max(unit.position, issued)) != ((), None)

    # What policies may ask, as of the latest snapshot

    def boxes(self, now: int) -> BoxReadings:
        """Return the statistics of the boxes."""
        return self.statistics.readings()

    def queues(self, now: int) -> QueueReadings:
        """Return what waits at each box; the mean latency is taken as half of the oldest, as nothing finer is kept."""
        waiting = self._box_waiting
        age = np.where(waiting > 0, (now - self._box_oldest) / SECOND, 0.0)
        return QueueReadings(waiting, (waiting * self.boxes(now).tuple_size).astype(np.int64), age / 2, age)

    def latencies(self, now: int) -> Floats:
        """Return by unit the mean latency of its waiting tuples."""
        return np.where(self._counts > 0, (now - self._means) / SECOND, 0.0)

    def latency(self, now: int, unit: int) -> float:
        """Return the mean latency of one unit's waiting tuples."""
        return float(now - self._means[unit]) / SECOND if self._counts[unit] else 0.0

    def unit_costs(self, now: int) -> UnitCosts:
        """Return the measured costs of micro-batches, and yields as given by the statistics of boxes."""
        overhead = np.array([unit.cost.overhead for unit in self.queries])
        yields = self.follow_units(self.boxes(now), self._box_waiting).yields
        return UnitCosts(overhead, np.array([unit.cost.cost for unit in self.queries]), yields)

    # For monitor, adaptive layers, status and summary

    def carried(self, box: int, arc: str) -> float:
        """Return how many of its box's tuples went to an arc, scaled to those reported by the unit that owns the box.

        Other units may run the box as well, and the owner need not read the arc.
        """
        taken, carried = self._takings.carried.get(arc, (0, 0))
        return carried / taken * int(self.statistics.readings().tuples_in[box]) if taken else 0.0

    def backlog(self) -> tuple[Int64s, Int64s]:
        """Return what waits for each unit, by box: at the boxes that read sources."""
        counts, oldest, _ = self._read()
        return self._by_box(counts, oldest)

    @property
    def ignored(self) -> Mapping[str, int]:
        """By box: the tuples that arrived too late for it."""
        return self._takings.ignored

    def summary(self) -> dict[str, Any]:
        """Return the summary entries that only Spark has: streaming queries, and tuples of earlier processes."""
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
        """Return what waits by box: at the boxes that read sources, the tuples waiting for their units."""
        waiting = np.zeros(len(self.topology.boxes), np.int64)
        stamps = np.full(len(self.topology.boxes), NEVER)
        for at, entries in enumerate(self._entries):
            np.maximum.at(waiting, entries, counts[at])
            np.minimum.at(stamps, entries, oldest[at])
        return waiting, stamps
