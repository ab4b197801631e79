"""The reading of a run on Spark: what waits in the log for each streaming query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from headway.catalog import BoxReadings, Floats, Topology
from headway.checking import CheckedNetwork
from headway.clock import SECOND, Clock, stopwatch
from headway.columns import Int64s
from headway.costs import UnitCosts
from headway.engines.base import RunSettings, Status
from headway.engines.reading import Moment, Reading
from headway.engines.spark.driver.arrivals import Arrivals
from headway.engines.spark.driver.delivery import Collector
from headway.engines.spark.driver.units import RunningUnit
from headway.engines.summary import status
from headway.scheduling.snapshot import QueueReadings, Snapshot, Unit
from headway.storage.log import Log
from headway.totals import Spent, Totals

_NEVER = int(np.iinfo(np.int64).max)


@dataclass
class Counters:
    """Where the scheduler's time went, in nanoseconds, and how often it planned."""

    begun: int = field(default_factory=stopwatch)
    scheduling: int = 0
    reading: int = 0
    plans: int = 0
    peak_queued: int = 0

    @property
    def seconds(self) -> float:
        """How long the run has taken so far."""
        return (stopwatch() - self.begun) / 1e9


class QueryReading(Reading):
    """Looks at all parts of a run; changes none."""

    def __init__(
        self,
        checked: CheckedNetwork,
        topology: Topology,
        queries: Sequence[RunningUnit],
        log: Log,
        arrivals: Arrivals,
        takings: Collector,
        counters: Counters,
        settings: RunSettings,
        clock: Clock,
    ) -> None:
        """Give the boxes and outputs of the queries, which are the units here, their numbers."""
        boxes = {name: at for at, name in enumerate(topology.boxes)}
        outputs = {name: at for at, name in enumerate(topology.outputs)}
        units = tuple(
            Unit(one.cut.name, tuple(boxes[name] for name in one.cut.boxes), tuple(outputs[o] for o in one.cut.outputs))
            for one in queries
        )
        super().__init__(checked, topology, units, takings.statistics, exclusive=False)
        self.queries, self.log, self.arrivals, self._takings, self._counters = queries, log, arrivals, takings, counters
        self._settings, self._clock = settings, clock
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
            number = sum(self.log.count(one, unit.position, issued) for one in sources)
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

    def snapshot(self, more: bool) -> Snapshot:
        """Return what a policy may look at; `more` says whether tuples may still arrive."""
        counts, oldest, means = self._read()
        sealed, now = self.log.issued, self._clock.now()
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
            planning=self._counters.scheduling / 1e9 / max(1, self._counters.plans),
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

    def spent(self) -> Spent:
        """Return what scheduling and micro-batches have taken."""
        counters = self._counters
        in_boxes = float(self.statistics.readings().busy.sum()) / 1e9
        time = {
            "scheduler": counters.scheduling / 1e9,
            "boxes": in_boxes,
            "storage": max(0.0, sum(unit.seconds for unit in self.queries) - in_boxes),
            "sources": counters.reading / 1e9,
            "sinks": self._takings.spent / 1e9,
        }
        return Spent(time, counters.plans, counters.peak_queued)

    def status(self, totals: Totals) -> Status:
        """Return how far the run is."""
        queued = self.queued
        return status(self, totals, self._counters.seconds, self.longest, queued, queued > self._settings.memory)

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
