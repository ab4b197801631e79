"""Load shedding on Spark: drop boxes where queries read sources from the log.

A dropped tuple never reaches a box, a shard or a result: it has cost nothing but its place in the log.

The shares that drop boxes keep, and the arrival numbers from which they apply, are stored in ``sieves.json`` in the
state directory. A query that loses a process, or a run that was killed, repeats its last micro-batch and must then drop
the same tuples, so the current sieves are written before a grant that they apply to is given.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Mapping
from typing import Any

import numpy as np

from headway.catalog import Topology
from headway.clock import SECOND
from headway.columns import Floats
from headway.engines.spark.driver.journal import SIEVES
from headway.engines.spark.driver.queries import RunningUnit
from headway.engines.spark.driver.reading import QueryReading
from headway.shedding.diagnosis import Load
from headway.shedding.sites import Entry, Site
from headway.shedding.strategies import work_saved
from headway.sieves import DropBox, Sieve
from headway.storage.checked import intact, seal, unseal
from headway.storage.filesystems import Place
from headway.trains import Train

_BATCH = 1.0
"""Least duration (s) that a micro-batch is allowed; where half of the good zone is longer, that counts."""
_LONGEST = 10.0
_PART = 0.85
"""The share of the cores assumed to be left for work besides Spark itself and the driver."""
_PRESSED = 0.5
"""The backlog, in seconds of full capacity, above which the engine counts as fully occupied."""
_LEAST = 0.1
"""Least share of a query's time that is left for work, however large the fixed part of a micro-batch is."""
_MOST = 256
"""Most steps remembered per query; the grants of older ones have long been committed."""


class SieveHistory:
    """By query a list of steps: an arrival number, and the sieves by source that apply above it."""

    def __init__(self, place: Place) -> None:
        """Read the steps written by an earlier process of this run."""
        self._place = place
        self._lock = threading.Lock()
        self._steps: dict[str, list[tuple[int, dict[str, Any]]]] = {}
        self._dirty = False
        self.written = SIEVES in place.files("")
        """Whether the file exists."""
        if self.written:
            with intact(f"'{place.name(SIEVES)}'"):
                saved = unseal(place.read(SIEVES))["steps"]
                self._steps = {unit: [(int(at), dict(sieves)) for at, sieves in steps] for unit, steps in saved.items()}

    def put(self, unit: str, position: int, source: str, sieve: Sieve | None) -> None:
        """Apply a sieve to a source's tuples above an arrival number; None: all pass."""
        with self._lock:
            steps = self._steps.setdefault(unit, [])
            sieves = dict(steps[-1][1]) if steps else {}
            if sieve is None:
                sieves.pop(source, None)
            else:
                sieves[source] = sieve.to_mapping()
            if (steps[-1][1] if steps else {}) == sieves:
                return
            while steps and steps[-1][0] >= position:
                steps.pop()  # nothing was granted since
            steps.append((position, sieves))
            del steps[:-_MOST]
            self._dirty = True

    def clear(self, unit: str, position: int) -> None:
        """Let all tuples above an arrival number pass."""
        with self._lock:
            steps = self._steps.get(unit)
            if not steps:
                return
            while steps and steps[-1][0] >= position:
                steps.pop()  # written for a grant that was never given
            if steps and steps[-1][1]:
                steps.append((position, {}))
            self._dirty = True

    def write(self, sync: bool) -> None:
        """Write changes to the file, before they apply."""
        with self._lock:
            if self._dirty:
                self._place.write(SIEVES, seal({"steps": self._steps}), sync=sync)
                self._dirty, self.written = False, True

    def at(self, unit: str, after: int) -> dict[str, Any]:
        """Return by source the sieves of a micro-batch that begins after an arrival number."""
        with self._lock:
            steps = self._steps.get(unit, [])
            place = bisect_right([position for position, _ in steps], after)
            return steps[place - 1][1] if place else {}

    def share(self, unit: str, after: int) -> float:
        """Return the share of a query's tuples that passes in a micro-batch that begins after an arrival number."""
        return _share(self.at(unit, after))

    def kept(self, unit: str) -> list[tuple[int, float]]:
        """Return the shares kept of a query's tuples, each with the arrival number from which it applies."""
        with self._lock:
            return [(position + 1, _share(sieves)) for position, sieves in self._steps.get(unit, [])]


def _share(sieves: Mapping[str, Any]) -> float:
    """Return the share that a site's drop boxes keep, which is the same for all its sources."""
    return float(min((sieve["keep"] for sieve in sieves.values()), default=1.0))


class QueryDrops:
    """The places for drop boxes in a run's streaming queries. Used by the scheduler thread."""

    def __init__(self, reading: QueryReading, sifting: SieveHistory, cores: int) -> None:
        """Create a site for each unit with outputs; `cores` is how many tasks run at once."""
        self._reading = reading
        self._units = units = reading.queries
        self._sifting = sifting
        self._topology: Topology = reading.topology
        self._sources = {name: at for at, name in enumerate(self._topology.sources)}
        self._numbers = {unit.id: unit.number for unit in units}
        self._site_units = [unit for unit in units if unit.cut.outputs and self._read_by(unit)]
        self.sites = tuple(self._site(unit) for unit in self._site_units)
        self.nested: tuple[tuple[int, ...], ...] = ((),) * len(self.sites)
        self._drops: dict[Entry, DropBox] = {}
        self.measures = False
        self._lasting = np.array([self._batch(site) for site in self.sites])
        self._cores = cores

    def _read_by(self, unit: RunningUnit) -> list[int]:
        """Return the sources of a unit, without what it reads from relays."""
        return [self._sources[name] for name in unit.inputs.from_main if name in self._sources]

    def _site(self, unit: RunningUnit) -> Site:
        numbers = self._read_by(unit)
        entries = tuple(Entry(unit.number, number, -1 - number) for number in numbers)
        names = ", ".join(self._topology.sources[number] for number in numbers)
        return Site(f"{names} -> {unit.cut.name}", self._reading.units[unit.number].outputs, entries)

    def _batch(self, site: Site) -> float:
        """Return how long a micro-batch of the site's unit may take (s), by the latency graphs of its outputs."""
        graphs = [self._topology.qos[output].latency for output in site.outputs]
        good = min((graph.good_until for graph in graphs if graph is not None), default=_LONGEST)
        return min(_LONGEST, max(_BATCH, good / 2))

    def _capacity(self) -> float:
        """Return the seconds of work that can be done per second.

        The share of time that queries have for work depends on the length of micro-batches, which grow under load. So
        capacity is estimated, not measured.
        """
        shares = [
            max(_LEAST, 1.0 - unit.cost.fixed / longest)
            for unit, longest in zip(self._site_units, self._lasting.tolist(), strict=True)
        ]
        return _PART * self._cores * (sum(shares) / len(shares) if shares else 1.0)

    def look(self, now: int, rates: Floats, keep: Floats) -> Load:
        """Return the load caused by these arrival rates, at the measured costs of micro-batches.

        Without a backlog queries keep up, and are as busy as arrivals demand.
        """
        readings, model = self._reading.statistics.readings(now), self._reading.model
        work = model.work(readings.cost, readings.selectivity)
        waiting, _ = self._reading.backlog()
        costs = np.array([unit.cost.work for unit in self._site_units])
        counts = np.array([self._reading.waiting_for(unit)[0] for unit in self._site_units], np.float64)
        site_rates = np.array([sum(rates[entry.place] for entry in site.entries) for site in self.sites], np.float64)
        works = site_rates * costs
        load = float(works.sum())
        under_way = np.array([self._under_way(unit, now) for unit in self._site_units])
        # Tuples that arrive during a micro-batch wait for the next one: that is no backlog.
        usual = works * keep * self._lasting
        backlog = float(np.maximum(counts * costs * keep + under_way - usual, 0.0).sum())
        kept, capacity = load - work_saved(works, keep, self.nested), self._capacity()
        sources = np.zeros(len(rates))
        for site, cost in zip(self.sites, costs.tolist(), strict=True):
            for entry in site.entries:
                sources[entry.place] += cost
        return Load(
            sites=self.sites,
            qos=self._topology.qos,
            rates=site_rates,
            costs=costs,
            nested=self.nested,
            load=load,
            capacity=capacity,
            waiting=counts,
            kept=kept,
            backlog=backlog,
            busy=1.0 if backlog > _PRESSED * capacity else min(1.0, kept / capacity),
            source_work=sources,
            box_load=model.rates(rates, readings.selectivity) * readings.cost,
            box_backlog=waiting * work,
        )

    def _under_way(self, unit: RunningUnit, now: int) -> float:
        """Return the estimated seconds of work left in a step under way."""
        if not unit.busy or not unit.granted:
            return 0.0
        passed = (now - unit.granted_at) / SECOND
        whole = unit.expected * unit.cost.work
        expected = unit.cost.fixed + whole
        return whole * max(0.0, 1.0 - passed / expected) if expected > 0 else 0.0

    # Drop boxes

    def drop(self, entry: Entry) -> DropBox:
        """Return the drop box for an entry, which only counts here."""
        return self._drops.setdefault(entry, DropBox())

    def put(self, site: int, entry: Entry, sieve: Sieve | None) -> None:
        """Apply a sieve to a unit's grants from now on."""
        unit = self._units[entry.consumer]
        self._sifting.put(unit.id, unit.position, self._topology.sources[entry.place], sieve)

    def count(self, unit: str, source: str, seen: int, dropped: int, reason: str) -> None:
        """Add a task's report of its drop box. Called from Spark's callback threads."""
        number, at = self._sources.get(source), self._numbers.get(unit)
        if number is None or at is None:
            return  # of the network before a seam
        drop = self.drop(Entry(at, number, -1 - number))
        drop.passed += seen - dropped
        drop.dropped[reason] += dropped

    def seen(self, entry: Entry) -> int:
        """Return how many tuples of a source have been logged, or 0 if the unit has processed none."""
        unit, source = self._units[entry.consumer], self._topology.sources[entry.place]
        return self._reading.log.positions.get(source, 0) if unit.tuples else 0

    def sample(self, entry: Entry) -> Train | None:
        """Return some of the latest tuples of a source."""
        return self._reading.arrivals.latest.get(self._topology.sources[entry.place])

    def way(self, entry: Entry) -> Entry | str:
        """Return the entry's source: its drop box precedes all boxes of the unit."""
        return self._topology.sources[entry.place]
