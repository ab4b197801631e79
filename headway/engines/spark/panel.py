"""The instruments of the Spark engine: a drop box stands where a query reads a source from the log.

What it drops is never read into a box, a shard or a result: it has cost nothing but its place in the log.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headway.catalog import BoxReadings, Floats, Topology
from headway.checking import CheckedNetwork
from headway.columns import Int64s
from headway.engines.delivery import Delivered, Delivery
from headway.engines.drops import DropBox
from headway.engines.instruments import Effort, Flow
from headway.engines.spark.overview import Overview
from headway.engines.spark.sifting import Sifting
from headway.engines.spark.units import RunningUnit
from headway.shedding.base import Entry, Site, work_saved
from headway.shedding.loads import LoadModel, shares_of
from headway.sieves import Sieve
from headway.trains import Train

_BATCH = 1.0
"""Seconds that a micro-batch may take at least; where latency graphs allow more, half of the good zone."""
_LONGEST = 10.0
_LEAST = 0.1
"""The part of a query's time that is left for work however large the fixed part of a micro-batch is."""


class Panel:
    """Looks at the units of a run. Used by the scheduler thread."""

    def __init__(
        self,
        checked: CheckedNetwork,
        overview: Overview,
        units: Sequence[RunningUnit],
        ids: Sequence[str],
        sifting: Sifting,
        deliveries: Sequence[Delivery],
    ) -> None:
        """Find out where drop boxes can stand: a site for each unit."""
        self._overview = overview
        self._units = units
        self._ids = ids
        self._sifting = sifting
        self._deliveries = deliveries
        self.topology: Topology = overview.topology
        self.workers = overview.workers
        self._sources = {name: at for at, name in enumerate(self.topology.sources)}
        self._outputs = {name: at for at, name in enumerate(self.topology.outputs)}
        self.sites = tuple(self._site(unit) for unit in units if unit.cut.outputs)
        self._site_units = [unit for unit in units if unit.cut.outputs]
        self.nested: tuple[tuple[int, ...], ...] = ((),) * len(self.sites)
        self._model = LoadModel(self.topology, shares_of(checked))
        self._drops: dict[Entry, DropBox] = {}
        self._lasting = [self._batch(site) for site in self.sites]

    def _site(self, unit: RunningUnit) -> Site:
        numbers = [self._sources[name] for name in unit.cut.sources]
        entries = tuple(Entry(unit.number, number, -1 - number) for number in numbers)
        names = ", ".join(unit.cut.sources)
        return Site(f"{names} -> {unit.cut.name}", tuple(self._outputs[name] for name in unit.cut.outputs), entries)

    def _batch(self, site: Site) -> float:
        """Return how long a micro-batch of a site's unit may take, by the latency graphs of its outputs."""
        graphs = [self.topology.qos[output].latency for output in site.outputs]
        good = min((graph.good_until for graph in graphs if graph is not None), default=_LONGEST)
        return min(_LONGEST, max(_BATCH, good / 2))

    @property
    def pressing(self) -> bool:
        """Whether no source only comes in turn."""
        return self._overview.ingest.pressing

    def effort(self) -> Effort:
        """Return what queries have done.

        How much of their time queries have for work depends on how long micro-batches are, and they become longer
        under load: so what could be done is told, not measured.
        """
        shares = [
            max(_LEAST, 1.0 - unit.cost.overhead / longest)
            for unit, longest in zip(self._site_units, self._lasting, strict=True)
        ]
        capacity = self.workers * (sum(shares) / len(shares) if shares else 1.0)
        return Effort(int(sum(unit.seconds for unit in self._units) * 1e9), capacity)

    def arrived(self) -> Floats:
        """Return by source the tuples that have arrived."""
        return np.array([feed.tuples for feed in self._overview.feeds], np.float64)

    def delivered(self) -> Sequence[Delivered]:
        """Return by output what was delivered."""
        return [one.delivered() for one in self._deliveries]

    def waiting(self) -> tuple[Int64s, Int64s]:
        """Return by box what waits for its unit, at the boxes that read sources."""
        snapshot = self._overview.snapshot(more=True)
        return snapshot.box_waiting, snapshot.box_oldest

    def boxes(self, now: int) -> BoxReadings:
        """Return the statistics of the boxes."""
        return self._overview.takings.statistics.readings(now)

    def flow(self, now: int, rates: Floats, keep: Floats) -> Flow:
        """Return what tuples that arrive at these rates cause, by what micro-batches have cost."""
        readings = self.boxes(now)
        box_rates = self._model.rates(rates, readings.selectivity)
        work = self._model.work(readings.cost, readings.selectivity)
        waiting, _ = self.waiting()
        costs = np.array([unit.cost.cost for unit in self._site_units])
        counts = np.array([self._overview.waiting(unit)[0] for unit in self._site_units], np.float64)
        site_rates = np.array([sum(rates[entry.place] for entry in site.entries) for site in self.sites], np.float64)
        works = site_rates * costs
        load = float(works.sum())
        backlog = float((counts * costs * keep).sum())
        box_loads = box_rates * readings.cost
        kept = load - work_saved(works, keep, self.nested)
        sources = np.zeros(len(rates))
        for site, cost in zip(self.sites, costs.tolist(), strict=True):
            for entry in site.entries:
                sources[entry.place] += cost
        return Flow(load, kept, backlog, 0.0, sources, box_rates, box_loads, waiting * work, site_rates, costs, counts)

    # Drop boxes

    def drop(self, entry: Entry) -> DropBox:
        """Return the drop box for an entry: here it only counts."""
        return self._drops.setdefault(entry, DropBox())

    def put(self, site: int, entry: Entry, sieve: Sieve | None) -> None:
        """Let a sieve count for the grants of a unit from now on."""
        unit = self._units[entry.consumer]
        self._sifting.put(self._ids[unit.number], unit.position, self.topology.sources[entry.place], sieve)

    def count(self, unit: int, source: str, seen: int, dropped: int, reason: str) -> None:
        """Take what a task reports of its drop box; from Spark's callback threads."""
        number = self._sources[source]
        drop = self.drop(Entry(unit, number, -1 - number))
        drop.passed += seen - dropped
        drop.dropped[reason] += dropped

    def seen(self, entry: Entry) -> int:
        """Return how many tuples of a source have been granted to a unit."""
        unit, source = self._units[entry.consumer], self.topology.sources[entry.place]
        return self._overview.log.positions.get(source, 0) if unit.tuples else 0

    def sample(self, entry: Entry) -> Train | None:
        """Return some of the latest tuples of a source."""
        return self._overview.arrivals.latest.get(self.topology.sources[entry.place])

    def way(self, entry: Entry) -> Entry | str:
        """Return the source that an entry reads: its drop box stands before all boxes of the unit."""
        return self.topology.sources[entry.place]
