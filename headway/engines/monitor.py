"""The QoS monitor at run time: it measures load and lateness, detects overload, and keeps the history."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from headway.catalog import Topology
from headway.clock import SECOND
from headway.columns import NEVER, Floats, Int64s
from headway.engines.reading import Reading
from headway.engines.traces import ChangeLog
from headway.fading import Faded, Rates
from headway.shedding.diagnosis import Diagnosis, Observation, diagnose, good_zones
from headway.shedding.sites import Entry, Site
from headway.shedding.strategies import Demand
from headway.sieves import DropBox, Sieve
from headway.totals import Totals
from headway.trains import Train

_LATELY = 1.0
"""Half-life of recent rates (seconds), short so that an overload is detected soon."""
_USUALLY = 60.0
"""Half-life of a source's usual rate (seconds)."""
_ACQUAINTED = 5 * SECOND
"""How long a source is observed before any rate counts as usual."""
_NEEDED = 0.2
"""Least share of busy time that still counts after the extra cost of short trains is subtracted."""
_SHOWN = 2
"""Consecutive looks under pressure before a measured capacity is trusted."""
_PRESSED = 0.1
"""Least backlog (seconds of work) at which an engine counts as fully occupied."""
_RECENT, _SURGE = 4, 5.0
"""A rate above _SURGE times the second highest of the last _RECENT looks counts only as that one."""
_FADE = 0.5
"""The weight at the next look of what was delivered before this one."""


class Effort(NamedTuple):
    """Work done by all processors since the start."""

    busy: int
    """Nanoseconds, summed over processors, that were not spent waiting."""
    capacity: float | None = None
    """Seconds of work that can be done per second, if the engine knows it better than measurements show."""
    share: float = 0.0
    """With `capacity`: the share of recent time in which the engine had to work."""
    under_way: int = 0
    """Nanoseconds of `busy` in calls under way, whose results are not counted yet."""


class Flow(NamedTuple):
    """The work that arriving tuples would cause if none were dropped."""

    load: float
    """Seconds of work per second."""
    kept: float
    """The same after current drops."""
    backlog: float
    """Seconds of work in all waiting tuples that will not be dropped."""
    done: float
    """Seconds of work done since the previous reading of the flow, at the same costs."""
    usable: float
    """How many workers can be used at once, given how the work is divided over units."""
    source_work: Floats
    """By source: seconds of work caused by one tuple."""
    box_rates: Floats
    box_loads: Floats
    box_backlogs: Floats
    site_rates: Floats
    site_costs: Floats
    site_waiting: Floats
    """Tuples waiting in front of each site."""
    before: float | None = None
    """Seconds of work that waited at the previous reading, at current costs."""
    warming: int = 0
    """Nanoseconds since then in the first calls of boxes, which say nothing about capacity."""
    avoidable: float = 0.0
    """Seconds since then that short trains took beyond what long ones would have."""
    exact: bool = False
    """Whether costs are known rather than measured."""


class Sheddable(Protocol):
    """What an engine provides for load shedding beyond its reading. Used by the scheduler thread."""

    sites: tuple[Site, ...]
    """Where drop boxes can stand."""
    nested: tuple[tuple[int, ...], ...]
    measures: bool
    """Whether costs and capacity have to be measured during the run."""

    def effort(self) -> Effort:
        """Return the work done by processors since the start."""

    def flow(self, now: int, rates: Floats, keep: Floats) -> Flow:
        """Return the flow caused by these arrival rates (by source); `keep` is the share now kept, by site."""

    def drop(self, entry: Entry) -> DropBox:
        """Return the drop box for an entry, whether or not it is inserted now."""

    def put(self, site: int, entry: Entry, sieve: Sieve | None) -> None:
        """Insert or adjust the drop box at an entry of a site; a sieve of None removes it."""

    def seen(self, entry: Entry) -> int:
        """Return how many tuples have reached an entry, dropped ones included."""

    def way(self, entry: Entry) -> Entry | str:
        """Return the input of a box that the entry is, or the arc if the drop box precedes all readers of it."""

    def sample(self, entry: Entry) -> Train | None:
        """Return some of the latest tuples that reached an entry, or None if none are at hand."""


class Monitor:
    """Observes a run about twice a second. Used by the scheduler thread."""

    def __init__(self, reading: Reading, drops: Sheddable, log: ChangeLog, now: int, headroom: float) -> None:
        self._reading, self._drops = reading, drops
        self._log = log
        self._headroom = headroom
        topology = reading.topology
        count = len(topology.outputs)
        self._start = self._moment = now
        self._lately = Rates(len(topology.sources), now, _LATELY)
        self._usually = Rates(len(topology.sources), now, _USUALLY)
        self._added: Floats = np.zeros((3, count))  # tuples, late ones, their latencies, since the last look
        self._before: Floats = np.zeros((3, count))  # the same since the start
        self._delivered = Faded(3, count)  # tuples, late ones, their latencies, faded
        self._busy, self._under_way = drops.effort().busy, 0
        self._backlog = 0.0
        self._pressed = 0  # consecutive looks with work waiting all the time
        self._done = Faded(2)  # work and busy time, faded
        self._instants: deque[Floats] = deque(maxlen=_RECENT)  # rates from one look to the next
        self._arrived = _arrived(reading.totals(now))
        self._counted: Floats = np.zeros(len(topology.sources))
        self._reach = Reach(topology)
        self._zones = good_zones(topology.qos)
        self._last: Observation | None = None
        self.diagnosis: Diagnosis | None = None
        self._history = History(now, topology.outputs)
        self._overloaded = 0  # nanoseconds
        self._is_overloaded = False
        self._spells = 0

    def look(self, now: int, keep: Floats, forced: frozenset[int]) -> tuple[Observation, Demand]:
        """Return the observation, and the demand at each site; `keep` is the share now kept, by site.

        Outputs in `forced` count as late whatever their graphs say: an adaptive layer has stricter goals for them.
        """
        drops, totals = self._drops, self._reading.totals(now)
        counts = _arrived(totals)
        rates = self._lately.read(self._without_surges(counts, now), now).copy()
        usual = self._usually.read(counts, now).copy()
        if now - self._start < _ACQUAINTED:
            usual[:] = np.nan
        flow = drops.flow(now, rates, keep)
        observation = self._observe(totals, rates, usual, flow, forced)
        demand = Demand(
            drops.sites,
            self._reading.topology.qos,
            flow.site_rates,
            flow.site_costs,
            drops.nested,
            flow.load,
            observation.capacity,
            observation.late,
            _noise(rates, flow),
            flow.site_waiting,
        )
        self._diagnose(observation, now)
        seen = now, observation.load, observation.kept, observation.capacity, observation.backlog
        self._history.add(Look(*seen, *self._added))
        return observation, demand

    def _without_surges(self, counts: Floats, now: int) -> Floats:
        """Return arrivals by source, with bursts reduced to what is otherwise usual.

        A burst within a single look is a backlog, not a rate: a source that could not be read for a while delivers what
        it has buffered.
        """
        seconds = (now - self._moment) / SECOND
        if seconds > 0:
            self._instants.append((counts - self._arrived) / seconds)
            self._arrived = counts
            known = np.sort(np.array(self._instants), axis=0)
            second, latest = known[-2 if len(known) > 1 else -1], self._instants[-1]
            self._counted = self._counted + np.where(latest > _SURGE * second, second, latest) * seconds
        return self._counted

    def _observe(self, totals: Totals, rates: Floats, usual: Floats, flow: Flow, forced: frozenset[int]) -> Observation:
        now, delivered = totals.now, totals.delivered[:-1].astype(np.float64)
        sums: Floats = np.array((delivered, totals.late[:-1], totals.latency[:-1]), np.float64)
        self._added, self._before = sums - self._before, sums
        tuples, tardy, latency = self._delivered.add(self._added, _FADE)
        some = np.maximum(tuples, 1e-9)
        late = np.where(tuples > 0, tardy / some, 0.0)
        late[list(forced)] = 1.0
        waiting, stamps = self._reading.backlog()
        oldest = self._reach.least(stamps)
        capacity, busy, pressed = self._efforts(now, flow)
        return Observation(
            now,
            tuples,
            late,
            latency / some,
            np.where(oldest < NEVER, (now - oldest) / SECOND, 0.0),
            rates,
            usual,
            flow.box_rates,
            flow.box_loads,
            waiting,
            flow.box_backlogs,
            flow.load,
            flow.kept,
            flow.backlog,
            capacity,
            busy,
            flow.before,
            pressed,
            np.where(delivered > 0, totals.utility[:-1] / np.maximum(delivered, 1.0), 1.0),
        )

    def _efforts(self, now: int, flow: Flow) -> tuple[float, float, bool]:
        """Return capacity (seconds of work per second), the share of time needed, and whether capacity can be trusted.

        Capacity is measurable only under a backlog; until then, full capacity is assumed. An engine without a backlog
        keeps up, however busy it is: it has the time for short trains, which cost more per tuple. So its busy time is
        converted to what the same work would take under load.
        """
        effort, workers = self._drops.effort(), self._reading.workers
        spent, busy = max(1, (now - self._moment) * workers), effort.busy - self._busy
        ended = busy - flow.warming - (0 if flow.exact else effort.under_way - self._under_way)
        self._busy, self._under_way, self._moment = effort.busy, effort.under_way, now
        if effort.capacity is not None:
            return effort.capacity, effort.share, True
        share = min(1.0, busy / spent)
        pressed = min(flow.backlog, self._backlog) > _PRESSED
        self._pressed = self._pressed + 1 if pressed else 0
        self._backlog = flow.backlog
        if pressed and ended > 0:
            # The extra cost of short trains is no lack of time: under load, trains are long.
            spent_on = ended / SECOND
            if flow.avoidable > 0:
                spent_on = max(spent_on - flow.avoidable, flow.done, _NEEDED * spent_on)
            self._done.add((flow.done, spent_on), _FADE)
        # Busy time that is not work in boxes is the engine's own overhead.
        done, took = self._done.sums.tolist()
        part = min(1.0, done / took) if done > 0 else 1.0
        needed = share if pressed else min(share, flow.done / part * SECOND / spent)
        # Workers that cannot be used are idle however much work there is. With measured costs, a single look may hit a
        # moment of short trains or of a slow box, so two are needed.
        shows = flow.exact or self._pressed >= _SHOWN
        return flow.usable * part, min(1.0, needed * workers / flow.usable), shows

    def _diagnose(self, observation: Observation, now: int) -> None:
        topology, before = self._reading.topology, self.diagnosis
        found = diagnose(observation, topology, self._last, self._headroom, self._zones)
        if not self._reading.ingest.pressing:  # sources that wait to be asked cannot cause overload
            found = replace(found, overloaded=False)
        was = self._is_overloaded
        if was and self._last is not None:
            self._overloaded += now - self._last.now
        # A single look may be wrong: the state changes after two that agree.
        if found.overloaded != was and before is not None and before.overloaded == found.overloaded:
            self._is_overloaded = found.overloaded
            self._spells += found.overloaded
            what = "begins" if found.overloaded else "ends"
            cause = "" if found.culprit is None else f"; cause: {found.culprit}"
            self._log.add(now, "overload", "run", what, found.because + cause)
        self._last, self.diagnosis = observation, found

    def summary(self) -> dict[str, Any]:
        """Return the summary of overloads."""
        return {
            "seconds": self._overloaded / SECOND,
            "spells": self._spells,
            "changes": self._log.summary("overload"),
            "history": self._history.summary(),
        }


def _noise(rates: Floats, flow: Flow) -> float:
    """Return the standard deviation of the measured load if arrivals are a Poisson process.

    A mean that fades with half-life h effectively averages over 2 h / ln 2.
    """
    return math.sqrt(float((rates * flow.source_work**2).sum()) * math.log(2) / (2 * _LATELY))


def _arrived(totals: Totals) -> Floats:
    """Return arrived tuples by source, including those that are due but not let in."""
    return (totals.arrived + totals.overdue).astype(np.float64)


def upstream(topology: Topology, box: int) -> set[int]:
    """Return a box and all boxes that lead to it."""
    pending, boxes = [box], set[int]()
    while pending:
        one = pending.pop()
        if one not in boxes:
            boxes.add(one)
            pending += topology.producers[one]
    return boxes


class Reach:
    """Reduces readings of boxes to readings of outputs, over all boxes that lead to each output."""

    def __init__(self, topology: Topology) -> None:
        """Concatenate the boxes that lead to each output."""
        boxes = [np.array(sorted(upstream(topology, root)) if root >= 0 else [], np.int64) for root in topology.roots]
        lengths = np.array([len(some) for some in boxes], np.int64)
        self._count = len(boxes)
        self._filled = np.flatnonzero(lengths)
        self._flat: Int64s = np.concatenate([np.zeros(0, np.int64), *boxes]).astype(np.int64)
        self._starts = (np.cumsum(lengths) - lengths)[self._filled]

    def least(self, readings: Int64s) -> Int64s:
        """Return by output the minimum of its boxes' readings; `FAR` where it has no box."""
        found: Int64s = np.full(self._count, NEVER)
        if len(self._filled):
            found[self._filled] = np.minimum.reduceat(readings[self._flat], self._starts)
        return found

    def sums(self, readings: Floats) -> Floats:
        """Return by output the sum of its boxes' readings, followed by the sum over all boxes."""
        found: Floats = np.zeros(self._count + 1)
        if len(self._filled):
            found[self._filled] = np.add.reduceat(readings[self._flat], self._starts)
        found[-1] = readings.sum()
        return found


_NONE: Floats = np.zeros(0)
FEW = 64
"""Most outputs for which each has a history of its own."""
MOST = 512
"""Looks that are kept; beyond that, every second one is removed, and half as many are added from then on."""


class Look(NamedTuple):
    """What one look saw; counts are since the previous look."""

    moment: int
    load: float
    """Seconds of work per second that arrived, before anything was dropped."""
    kept: float
    """The same after drops."""
    capacity: float
    """Seconds of work per second that could be done."""
    backlog: float
    """Seconds of work that waited."""
    delivered: Floats
    """By output."""
    late: Floats
    """By output: tuples delivered outside of the good zone."""
    latency: Floats
    """By output: the sum of latencies, in seconds."""


class History:
    """Looks in order. Used by the scheduler thread."""

    def __init__(self, start: int, outputs: Sequence[str], most: int = MOST) -> None:
        """Start empty; moments are relative to `start`."""
        self._start = start
        self._outputs = tuple(outputs)
        self._most = most
        self._looks: list[Look] = []
        self._every = 1
        self._skipped = 0

    def add(self, look: Look) -> None:
        """Record a look, or skip it if the history has been thinned."""
        self._skipped += 1
        if self._skipped < self._every:
            return
        self._skipped = 0
        few = len(self._outputs) <= FEW
        self._looks.append(look if few else look._replace(delivered=_NONE, late=_NONE, latency=_NONE))
        if len(self._looks) > self._most:
            del self._looks[::2]
            self._every *= 2

    def summary(self) -> dict[str, Any]:
        """Return the history as columns, for plots and tables; moments in seconds since the start.

        In networks with many outputs, only the columns of the whole run are included. Latencies and shares are None
        where nothing was delivered.
        """
        looks, outputs = self._looks, list(enumerate(self._outputs if len(self._outputs) <= FEW else ()))
        told: dict[str, Any] = {"moment": [(look.moment - self._start) / SECOND for look in looks]}
        for name in ("load", "kept", "capacity", "backlog"):
            told[name] = [getattr(look, name) for look in looks]
        told["delivered"] = {output: [int(look.delivered[at]) for look in looks] for at, output in outputs}
        told["latency"] = {output: [_mean(look, look.latency[at], at) for look in looks] for at, output in outputs}
        told["outside"] = {output: [_mean(look, look.late[at], at) for look in looks] for at, output in outputs}
        return told


def _mean(look: Look, total: float, at: int) -> float | None:
    return float(total / look.delivered[at]) if look.delivered[at] else None
