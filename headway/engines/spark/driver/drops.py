"""Load shedding on Spark: a drop box stands where a query reads a source from the log.

What it drops is never read into a box, a shard or a result: it has cost nothing but its place in the log.

What drop boxes let through, and from which arrival number on, lies in ``sieves.json`` in the state directory. A query
that loses a process, or a run that was killed, repeats its last micro-batch. It must drop the same tuples then, so what
is in force is written down before a grant that it counts for is given.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Mapping
from typing import Any

import numpy as np

from headway.catalog import Floats, Topology
from headway.clock import SECOND
from headway.engines.spark.driver.journal import SIEVES
from headway.engines.spark.driver.queries import RunningUnit
from headway.engines.spark.driver.reading import QueryReading
from headway.errors import RunError
from headway.shedding.diagnosis import Load
from headway.shedding.sites import Entry, Site
from headway.shedding.strategies import work_saved
from headway.sieves import DropBox, Sieve
from headway.storage.checked import RESTORE, seal, unseal
from headway.storage.filesystems import Place
from headway.trains import Train

_BATCH = 1.0
"""Seconds that a micro-batch may take at least; where latency graphs allow more, half of the good zone."""
_LONGEST = 10.0
_PART = 0.85
"""The part of the cores that is left for work beside Spark itself and the driver, as far as nothing shows otherwise."""
_PRESSED = 0.5
"""Seconds of all that can be done that wait at least where there is as much to do as can be done."""
_LEAST = 0.1
"""The part of a query's time that is left for work however large the fixed part of a micro-batch is."""
_MOST = 256
"""Steps of a query that are remembered at most: long before that, what they are about is committed."""


class SieveHistory:
    """By query a row of steps: an arrival number, and by source the sieve that counts above it."""

    def __init__(self, place: Place) -> None:
        """Read what an earlier process of this run has written."""
        self._place = place
        self._lock = threading.Lock()
        self._steps: dict[str, list[tuple[int, dict[str, Any]]]] = {}
        self._dirty = False
        self.written = SIEVES in place.files("")
        """Whether there is a file of it."""
        if self.written:
            try:
                saved = unseal(place.read(SIEVES))["steps"]
                self._steps = {unit: [(int(at), dict(sieves)) for at, sieves in steps] for unit, steps in saved.items()}
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise RunError(f"'{place.name(SIEVES)}' is damaged; {RESTORE}") from error

    def put(self, unit: str, position: int, source: str, sieve: Sieve | None) -> None:
        """Let a sieve count for the tuples of a source above an arrival number; None: all pass."""
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
        """Let everything pass above an arrival number."""
        with self._lock:
            steps = self._steps.get(unit)
            if not steps:
                return
            while steps and steps[-1][0] >= position:
                steps.pop()  # written for a grant that never came
            if steps and steps[-1][1]:
                steps.append((position, {}))
            self._dirty = True

    def write(self, sync: bool) -> None:
        """Write down what has changed, before it counts."""
        with self._lock:
            if self._dirty:
                self._place.write(SIEVES, seal({"steps": self._steps}), sync=sync)
                self._dirty, self.written = False, True

    def at(self, unit: str, after: int) -> dict[str, Any]:
        """Return by source the sieves that count for a micro-batch that begins after an arrival number."""
        with self._lock:
            steps = self._steps.get(unit, [])
            place = bisect_right([position for position, _ in steps], after)
            return steps[place - 1][1] if place else {}

    def share(self, unit: str, after: int) -> float:
        """Return which share of a query's tuples passes in a micro-batch that begins after an arrival number."""
        return _share(self.at(unit, after))

    def kept(self, unit: str) -> list[tuple[int, float]]:
        """Return from which arrival numbers on which share of a query's tuples was kept."""
        with self._lock:
            return [(position + 1, _share(sieves)) for position, sieves in self._steps.get(unit, [])]


def _share(sieves: Mapping[str, Any]) -> float:
    """Return what drop boxes keep that a site has put at all its sources: the same share."""
    return float(min((sieve["keep"] for sieve in sieves.values()), default=1.0))


class QueryDrops:
    """The ways into the streaming queries of a run. Used by the scheduler thread."""

    def __init__(self, reading: QueryReading, sifting: SieveHistory, cores: int) -> None:
        """Find out where drop boxes can stand: a site for each unit; `cores` is how many tasks run at once."""
        self._reading = reading
        self._units = units = reading.queries
        self._sifting = sifting
        self._topology: Topology = reading.topology
        self._sources = {name: at for at, name in enumerate(self._topology.sources)}
        self._site_units = [unit for unit in units if unit.cut.outputs]
        self.sites = tuple(self._site(unit) for unit in self._site_units)
        self.nested: tuple[tuple[int, ...], ...] = ((),) * len(self.sites)
        self._drops: dict[Entry, DropBox] = {}
        self.measures = False
        self._lasting = np.array([self._batch(site) for site in self.sites])
        self._cores = cores

    def _site(self, unit: RunningUnit) -> Site:
        numbers = [self._sources[name] for name in unit.cut.sources]
        entries = tuple(Entry(unit.number, number, -1 - number) for number in numbers)
        names = ", ".join(unit.cut.sources)
        return Site(f"{names} -> {unit.cut.name}", self._reading.units[unit.number].outputs, entries)

    def _batch(self, site: Site) -> float:
        """Return how long a micro-batch of a site's unit may take, by the latency graphs of its outputs."""
        graphs = [self._topology.qos[output].latency for output in site.outputs]
        good = min((graph.good_until for graph in graphs if graph is not None), default=_LONGEST)
        return min(_LONGEST, max(_BATCH, good / 2))

    def _can_do(self) -> float:
        """Return the seconds of work that can be done per second.

        How much of their time queries have for work depends on how long micro-batches are, and they become longer
        under load: so what could be done is told, not measured.
        """
        shares = [
            max(_LEAST, 1.0 - unit.batch_work.fixed / longest)
            for unit, longest in zip(self._site_units, self._lasting.tolist(), strict=True)
        ]
        return _PART * self._cores * (sum(shares) / len(shares) if shares else 1.0)

    def look(self, now: int, rates: Floats, keep: Floats) -> Load:
        """Return what tuples that arrive at these rates cause, by what micro-batches have cost.

        Without a backlog queries keep up, and are as busy as what arrives demands.
        """
        readings, model = self._reading.statistics.readings(now), self._reading.model
        work = model.work(readings.cost, readings.selectivity)
        waiting, _ = self._reading.backlog()
        costs = np.array([unit.batch_work.cost for unit in self._site_units])
        counts = np.array([self._reading.waiting_for(unit)[0] for unit in self._site_units], np.float64)
        site_rates = np.array([sum(rates[entry.place] for entry in site.entries) for site in self.sites], np.float64)
        works = site_rates * costs
        load = float(works.sum())
        under_way = np.array([self._under_way(unit, now) for unit in self._site_units])
        # What comes while a micro-batch runs has to wait for the next: that is no backlog.
        usual = works * keep * self._lasting
        backlog = float(np.maximum(counts * costs * keep + under_way - usual, 0.0).sum())
        kept, capacity = load - work_saved(works, keep, self.nested), self._can_do()
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
        """Return the seconds of work that are left of a step under way, as far as one can tell from outside."""
        if not unit.busy or not unit.granted:
            return 0.0
        passed = (now - unit.granted_at) / SECOND
        whole = unit.expected * unit.batch_work.cost
        expected = unit.batch_work.fixed + whole
        return whole * max(0.0, 1.0 - passed / expected) if expected > 0 else 0.0

    # Drop boxes

    def drop(self, entry: Entry) -> DropBox:
        """Return the drop box for an entry: here it only counts."""
        return self._drops.setdefault(entry, DropBox())

    def put(self, site: int, entry: Entry, sieve: Sieve | None) -> None:
        """Let a sieve count for the grants of a unit from now on."""
        unit = self._units[entry.consumer]
        self._sifting.put(unit.id, unit.position, self._topology.sources[entry.place], sieve)

    def count(self, unit: int, source: str, seen: int, dropped: int, reason: str) -> None:
        """Take what a task reports of its drop box; from Spark's callback threads."""
        number = self._sources[source]
        drop = self.drop(Entry(unit, number, -1 - number))
        drop.passed += seen - dropped
        drop.dropped[reason] += dropped

    def seen(self, entry: Entry) -> int:
        """Return how many tuples of a source have been granted to a unit."""
        unit, source = self._units[entry.consumer], self._topology.sources[entry.place]
        return self._reading.log.positions.get(source, 0) if unit.tuples else 0

    def sample(self, entry: Entry) -> Train | None:
        """Return some of the latest tuples of a source."""
        return self._reading.arrivals.latest.get(self._topology.sources[entry.place])

    def way(self, entry: Entry) -> Entry | str:
        """Return the source that an entry reads: its drop box stands before all boxes of the unit."""
        return self._topology.sources[entry.place]
