"""Readings of a run on Spark: snapshots for policies, the status for people, and the summary at the end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from headway.catalog import BoxReadings, Floats, Topology
from headway.checking import CheckedNetwork
from headway.clock import SECOND, Clock, stopwatch
from headway.columns import Int64s
from headway.costs import CostModel, UnitCostModel, UnitCosts, shares_of
from headway.engines.base import OutputStatus, RunSettings, Status
from headway.engines.delivery import output_readings
from headway.engines.ingest import Feed, Ingest
from headway.engines.letters import DeadLetters
from headway.engines.readings import Moment
from headway.engines.spark.driver.arrivals import Arrivals
from headway.engines.spark.driver.delivery import Collector, OutputResults
from headway.engines.spark.driver.units import RunningUnit
from headway.engines.summaries import summarise_boxes
from headway.scheduling.snapshot import Layout, Occupation, OutputReadings, QueueReadings, Snapshot, Unit, Waits
from headway.storage.log import Log

_NEVER = int(np.iinfo(np.int64).max)


@dataclass
class Spent:
    """Where the scheduler's time went, in nanoseconds, and how often it planned."""

    begun: int = field(default_factory=stopwatch)
    scheduling: int = 0
    reading: int = 0
    plans: int = 0
    peak_queued: int = 0


@dataclass
class Overview:
    """Looks at all parts of a run; changes none."""

    checked: CheckedNetwork
    topology: Topology
    units: Sequence[RunningUnit]
    log: Log
    arrivals: Arrivals
    ingest: Ingest
    feeds: Sequence[Feed]
    results: Mapping[str, OutputResults]
    letters: DeadLetters
    takings: Collector
    settings: RunSettings
    clock: Clock
    spent: Spent
    workers: int
    held: Callable[[], Floats]

    def __post_init__(self) -> None:
        """Give the units' boxes and outputs their numbers."""
        boxes = {name: at for at, name in enumerate(self.topology.boxes)}
        outputs = {name: at for at, name in enumerate(self.topology.outputs)}
        self.views = tuple(
            Unit(one.cut.name, tuple(boxes[name] for name in one.cut.boxes), tuple(outputs[o] for o in one.cut.outputs))
            for one in self.units
        )
        reading = {box for some in self.topology.readers for box in some}
        self._entries = [np.array([box for box in view.boxes if box in reading], np.intp) for view in self.views]
        self._layout = Layout(self.topology, self.views, exclusive=False)
        self.looks = 0
        self.model = CostModel(self.topology, shares_of(self.checked))
        self._unit_model = UnitCostModel(self.model, [view.boxes for view in self.views])

    @property
    def queued(self) -> int:
        """Bytes that have arrived and that somebody still has to read.

        The log holds more: what it keeps on purpose, its newest commit, and what only waits for a query to commit that
        reads other sources. Sources that waited for that would wait for ever.
        """
        reached: dict[str, int] = {}
        for unit in self.units:
            for source in unit.cut.sources:
                reached[source] = min(unit.committed, reached.get(source, unit.committed))
        return self.log.bytes_after(reached) + self.arrivals.bytes

    def waiting(self, unit: RunningUnit) -> tuple[int, int, float]:
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
        return max((self.waiting(unit)[0] for unit in self.units), default=0)

    def snapshot(self, more: bool) -> Snapshot:
        """Return what a policy may look at; `more` says whether tuples may still arrive."""
        readings = [self.waiting(unit) for unit in self.units]
        sealed = self.log.issued
        marked = [self.arrivals.marked or self.log.marks(unit.position, sealed) != ((), None) for unit in self.units]
        now = self.clock.now()
        counts = np.array([count for count, _, _ in readings], np.int64)
        means = np.array([mean for _, _, mean in readings])
        asking = np.array([unit.asking for unit in self.units], np.bool_)
        oldest = np.array([oldest for _, oldest, _ in readings], np.int64)
        box_waiting, box_oldest = self._box_readings(counts, oldest)
        free = max(0, self.workers - int((~asking).sum()))
        self.looks += 1
        self._counts, self._means, self._box_waiting, self._box_oldest = counts, means, box_waiting, box_oldest
        none = np.zeros(len(self.units), np.int64)
        return Snapshot(
            now=now,
            layout=self._layout,
            by_unit=Waits(asking & ((counts > 0) | np.array(marked, np.bool_)), counts, oldest),
            by_box=Waits(box_waiting > 0, box_waiting, box_oldest),
            occupation=Occupation(self.workers, free, ~asking, np.zeros(len(self.units)), none),
            memory=self.queued,
            train=self.settings.schedule.most,
            room=free,
            measures=Moment(self, now),
            more=more,
            planning=self.spent.scheduling / 1e9 / max(1, self.spent.plans),
        )

    # What a policy may ask of the latest snapshot

    def rates(self, now: int) -> Floats:
        """Return by source the tuples per second that arrived lately."""
        return self.ingest.rates(now)

    def boxes(self, now: int) -> BoxReadings:
        """Return the statistics of the boxes."""
        return self.takings.statistics.readings()

    def outputs(self) -> OutputReadings:
        """Return how the outputs do."""
        return output_readings([one.delivery for one in self.results.values()])

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
        overhead = np.array([unit.cost.overhead for unit in self.units])
        yields = self._unit_model.read(self.boxes(now), self._box_waiting).yields
        return UnitCosts(overhead, np.array([unit.cost.cost for unit in self.units]), yields)

    def box_costs(self, now: int) -> UnitCosts:
        """Return by box what it would cost; nothing is scheduled by box here, and nobody asks."""
        raise NotImplementedError

    def _box_readings(self, counts: Int64s, oldest: Int64s) -> tuple[Int64s, Int64s]:
        """Return by box what waits: at the boxes that read sources, what waits for their units."""
        waiting = np.zeros(len(self.topology.boxes), np.int64)
        stamps = np.full(len(self.topology.boxes), _NEVER)
        for at, entries in enumerate(self._entries):
            np.maximum.at(waiting, entries, counts[at])
            np.minimum.at(stamps, entries, oldest[at])
        return waiting, stamps

    @property
    def seconds(self) -> float:
        """How long the run has taken so far."""
        return (stopwatch() - self.spent.begun) / 1e9

    @property
    def tuples_out(self) -> int:
        """Tuples delivered to all outputs."""
        return sum(one.delivery.tuples for one in self.results.values())

    def status(self, outputs: Mapping[str, OutputStatus]) -> Status:
        """Return how far the run is, and with it how its outputs do."""
        queued = self.queued
        paused = queued > self.settings.memory
        return Status(
            self.seconds,
            self.ingest.tuples,
            self.tuples_out,
            self.longest,
            queued,
            self.letters.total,
            paused,
            outputs,
            tuples_before=self.ingest.before,
        )

    def summary(self, network: str, master: str, stopped_by: str | None) -> dict[str, Any]:
        """Return everything that was measured."""
        readings = self.takings.statistics.readings()
        counts = self.letters.counts
        in_boxes, in_steps = float(readings.busy.sum()) / 1e9, sum(unit.seconds for unit in self.units)
        seconds = self.seconds
        return {
            "network": network,
            "engine": "spark",
            "policy": self.settings.policy_text,
            "workers": self.workers,
            "master": master,
            "seconds": seconds,
            "interrupted": stopped_by is not None,
            "stopped_by": stopped_by,
            "tuples_in": self.ingest.tuples,
            "tuples_out": self.tuples_out,
            "tuples_before": self.ingest.before,
            "tuples_per_second": (self.ingest.tuples - self.ingest.before) / seconds if seconds else 0.0,
            "sources": {feed.name: {"tuples": feed.tuples, "malformed": counts[feed.name]} for feed in self.feeds},
            "outputs": {name: one.delivery.summary() for name, one in self.results.items()},
            "boxes": summarise_boxes(self.topology.boxes, readings, self.takings.ignored, counts),
            "units": {
                unit.cut.name: {
                    "batches": unit.batches,
                    "tuples": unit.tuples,
                    "seconds": unit.seconds,
                    "cost_per_batch": unit.cost.overhead,
                    "cost_per_tuple": unit.cost.cost,
                    "restarts": unit.restarts,
                }
                for unit in self.units
            },
            "dead_letters": self.letters.summary(),
            "time": {
                "scheduler": self.spent.scheduling / 1e9,
                "boxes": in_boxes,
                "storage": max(0.0, in_steps - in_boxes),
                "sources": self.spent.reading / 1e9,
                "sinks": self.takings.spent / 1e9,
            },
            "plans": self.spent.plans,
            "box_calls": int(readings.calls.sum()),
            "peak_queued_bytes": self.spent.peak_queued,
        }
