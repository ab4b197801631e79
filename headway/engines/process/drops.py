"""Load shedding in this process: the flow at each site, and the drop boxes at the inputs of boxes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from headway.catalog import BoxReadings
from headway.columns import Floats, Int64s
from headway.engines.process.capacity import Capacity, Done, Effort
from headway.engines.process.reading import RuntimeReading
from headway.engines.process.runtime import Arc
from headway.fading import Faded
from headway.shedding.diagnosis import Load
from headway.shedding.sites import Entry, find_sites, nested
from headway.shedding.strategies import work_saved
from headway.sieves import CombinedShares, DropBox, KeptShares, Sieve
from headway.storage.queues import Cursor
from headway.trains import Train, join_trains

_FADE = 0.8
"""The weight that earlier box costs keep at each reading: an overload may change costs."""
_LONG, _LONGER = 64, 4096
"""Tuples in a long train, and the longer length used if the schedule allows it."""
_SAMPLE = 4096
"""Tuples in an entry's sample."""


class RuntimeDrops:
    """The places for drop boxes in a runtime. Used by the scheduler thread."""

    def __init__(self, reading: RuntimeReading, train: int, effort: Callable[[], Effort]) -> None:
        """Find the sites of drop boxes; `train` is the longest train that the schedule allows."""
        self._reading = reading
        self._runtime = runtime = reading.runtime
        self._units = [np.array(unit.boxes, np.intp) for unit in reading.units]
        self._train = min(train, _LONG) if train < _LONGER else _LONGER
        self._topology = runtime.topology
        self.measures = not runtime.statistics.exact
        self._capacity = Capacity(effort, runtime.clock.now(), not self.measures)
        inputs = self._inputs_of = [box.feeders for box in runtime.program.boxes]
        self.sites = find_sites(self._topology, inputs)
        self.nested = nested(self.sites, inputs)
        self._drops: dict[Entry, DropBox] = {}
        self._kept_at: Floats = np.ones(len(self._topology.boxes))  # by box: the share let through to it
        self._samples: dict[Entry, Train] = {}
        self._kept = self._estimates()
        count = len(self._topology.boxes)
        self._before: tuple[Int64s, Int64s] = np.zeros(count, np.int64), np.zeros(count, np.int64)
        self._spent = Faded(2, count)  # seconds, and the tuples they were spent on
        self._waited: Int64s | None = None  # by box, at the look before
        self._warmed = 0
        self._called: Int64s = np.zeros(count, np.int64)

    def _estimates(self) -> dict[int, KeptShares]:
        """Connect estimating boxes to the shares kept before them; return those shares by site before such a box."""
        kept: dict[int, KeptShares] = {}
        for box in self._runtime.boxes:
            if self._runtime.program.boxes[box.index].spec.approximate:
                above = self._topology.upstream(box.index)
                sites = [at for at, site in enumerate(self.sites) if any(one.consumer in above for one in site.entries)]
                box.kernel.weigh_by(CombinedShares(tuple([kept.setdefault(at, KeptShares()) for at in sites])))
        return kept

    def look(self, now: int, rates: Floats, keep: Floats) -> Load:
        """Return the load caused by these arrival rates, at the recent costs of boxes."""
        readings, model = self._runtime.statistics.readings(now), self._reading.model
        costs, done = self._costs(readings)
        selectivity = readings.selectivity
        box_rates, work = model.rates(rates, selectivity), model.work(costs, selectivity)
        box_loads = box_rates * costs
        waiting, _ = self._reading.backlog()
        backlogs = waiting * work * self._kept_at
        site_rates, site_costs, site_waiting = (np.zeros(len(self.sites)) for _ in range(3))
        made, overdue = box_rates * selectivity, self._reading.ingest.overdue()
        for at, site in enumerate(self.sites):
            caused = 0.0
            for entry in site.entries:
                producer = entry.producer
                rate = rates[-1 - producer] if producer < 0 else made[producer] * self._share_of(entry)
                site_rates[at] += rate
                site_waiting[at] += self._cursor(entry).waiting + (overdue[-1 - producer] if producer < 0 else 0)
                caused += rate * work[entry.consumer]
            site_costs[at] = caused / site_rates[at] if site_rates[at] > 0 else 0.0
        load = float(box_loads.sum())
        kept = load - work_saved(site_rates * site_costs, keep, self.nested)
        before = None if self._waited is None or readings.exact else float((self._waited * work * self._kept_at).sum())
        self._waited = waiting
        backlog, usable = float(backlogs.sum()), self._usable(box_loads)
        capacity, busy, pressed = self._capacity.look(now, self._reading.workers, usable, backlog, done)
        return Load(
            sites=self.sites,
            qos=self._topology.qos,
            rates=site_rates,
            costs=site_costs,
            nested=self.nested,
            load=load,
            capacity=capacity,
            waiting=site_waiting,
            kept=kept,
            backlog=backlog,
            busy=busy,
            source_work=model.source_work(work),
            box_load=box_loads,
            box_backlog=backlogs,
            before=before,
            pressed=pressed,
        )

    def _usable(self, box_loads: Floats) -> float:
        """Return how many workers can be used: a unit occupies only one at a time, however much work it has."""
        workers = float(self._reading.workers)
        if workers == 1:
            return 1.0
        most = max([float(box_loads[boxes].sum()) for boxes in self._units], default=0.0)
        return min(workers, max(1.0, float(box_loads.sum()) / most)) if most > 0 else workers

    def _share_of(self, entry: Entry) -> float:
        """Return the share of its producer's tuples that reaches an entry; a box may read a producer twice."""
        ways = self._inputs_of[entry.consumer].count(entry.producer)
        return self._reading.model.share(entry.producer, entry.consumer) / ways

    def _costs(self, readings: BoxReadings) -> tuple[Floats, Done]:
        """Return the recent cost per tuple under load, and the work done since the previous look.

        Where nothing was measured, it is the declared cost.

        The overhead per call is spread over a long train: under load trains are long, and an engine that merely has
        time for short trains must not appear overloaded.
        """
        early = readings.early
        settled = readings.busy - early[1], readings.tuples_in - early[0]
        busy, tuples = settled[0] - self._before[0], settled[1] - self._before[1]
        warming = int(early[1].sum())
        self._before = settled
        calls, self._called = readings.calls - self._called, readings.calls
        avoidable = (
            0.0 if readings.exact else float((readings.overhead * np.maximum(calls - tuples / self._train, 0.0)).sum())
        )
        spent, taken = self._spent.add((busy / 1e9, tuples.astype(np.float64)), _FADE)
        known = taken > 0.5
        amortised = readings.cost + readings.overhead / self._train
        # First calls are slow and take few tuples, so their time per tuple says nothing about the cost of a tuple.
        unknown = np.where((early[1] > 0) & (not readings.exact), 0.0, readings.cost)
        costs: Floats = np.where(known, np.minimum(spent / np.where(known, taken, 1.0), amortised), unknown)
        done = Done(float((tuples * costs).sum()), warming - self._warmed, avoidable)
        self._warmed = warming
        return costs, done

    # Drop boxes

    def _cursor(self, entry: Entry) -> Cursor:
        return self._runtime.boxes[entry.consumer].cursors[entry.place]

    def _arc(self, entry: Entry) -> Arc:
        return self._runtime.arcs[self._runtime.boxes[entry.consumer].inputs[entry.place]]

    def drop(self, entry: Entry) -> DropBox:
        """Return the drop box for an entry."""
        return self._drops.setdefault(entry, DropBox())

    def put(self, site: int, entry: Entry, sieve: Sieve | None) -> None:
        """Insert, adjust or remove the drop box at an entry."""
        cursor = self._cursor(entry)
        if site in self._kept:
            first = self._arc(entry).queue.progress + 1 if cursor.idle else cursor.next_number()
            self._kept[site].note(first, 1.0 if sieve is None else sieve.keep)
        if sieve is None:
            cursor.drop = None
        else:
            drop = self.drop(entry)
            drop.sieve = sieve
            cursor.drop = drop
        box = self._runtime.boxes[entry.consumer]
        stands = [one.drop for one in box.cursors]
        self._kept_at[entry.consumer] = np.mean([1.0 if one is None else one.sieve.keep for one in stands])

    def seen(self, entry: Entry) -> int:
        """Return how many tuples have been taken or handed on at an entry."""
        return int(self._runtime.board.taken[self._cursor(entry).number]) + self._arc(entry).handed

    def way(self, entry: Entry) -> Entry | str:
        """Return the entry itself: here, each drop box precedes a single input of a box."""
        return entry

    def sample(self, entry: Entry) -> Train | None:
        """Return tuples waiting at an entry, topped up with earlier ones to a full sample."""
        waiting, kept = self._cursor(entry).peek(_SAMPLE), self._samples.get(entry)
        if kept is not None and len(waiting):
            newer = np.flatnonzero(waiting.numbers > kept.numbers[-1])
            kept = join_trains([kept.slice(max(0, len(kept) + len(newer) - _SAMPLE), len(kept)), waiting.take(newer)])
        elif len(waiting):
            kept = waiting
        if kept is not None:
            self._samples[entry] = kept
        return kept
