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
from headway.shedding.diagnosis import Diagnosis, Load, Observation, diagnose, good_zones
from headway.shedding.sites import Entry, Site
from headway.sieves import DropBox, Sieve
from headway.totals import Totals
from headway.trains import Train

_LATELY = 1.0
"""Half-life of recent rates (seconds), short so that an overload is detected soon."""
_USUALLY = 60.0
"""Half-life of a source's usual rate (seconds)."""
_ACQUAINTED = 5 * SECOND
"""How long a source is observed before any rate counts as usual."""
_RECENT, _SURGE = 4, 5.0
"""A rate above _SURGE times the second highest of the last _RECENT looks counts only as that one."""
_FADE = 0.5
"""The weight at the next look of what was delivered before this one."""


class Sheddable(Protocol):
    """What an engine provides for load shedding beyond its reading. Used by the scheduler thread."""

    sites: tuple[Site, ...]
    """Where drop boxes can stand."""
    nested: tuple[tuple[int, ...], ...]
    measures: bool
    """Whether costs and capacity have to be measured during the run."""

    def look(self, now: int, rates: Floats, keep: Floats) -> Load:
        """Return the load caused by these arrival rates (by source); `keep` is the share now kept, by site.

        Called once per look of the monitor: work done is counted since the previous call.
        """

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

    def count_on(self, before: Monitor) -> None:
        """Continue to count the overloads that the monitor before a seam has seen."""
        self._overloaded, self._spells = before._overloaded, before._spells
        if before._history.outputs == self._history.outputs:
            self._history = before._history

    def look(self, now: int, keep: Floats, forced: frozenset[int]) -> Observation:
        """Return the observation; `keep` is the share now kept, by site.

        Outputs in `forced` count as late whatever their graphs say: an adaptive layer has stricter goals for them.
        """
        totals = self._reading.totals(now)
        counts = _arrived(totals)
        rates = self._lately.read(self._without_surges(counts, now), now).copy()
        usual = self._usually.read(counts, now).copy()
        if now - self._start < _ACQUAINTED:
            usual[:] = np.nan
        self._reading.learn_shares()
        observation = self._observe(totals, rates, usual, self._drops.look(now, rates, keep), forced)
        self._diagnose(observation, now)
        seen = now, observation.load, observation.kept, observation.capacity, observation.backlog
        self._history.add(Look(*seen, *self._added))
        return observation

    def _without_surges(self, counts: Floats, now: int) -> Floats:
        """Return arrivals by source, with bursts reduced to what is otherwise usual.

        A burst within a single look is a backlog, not a rate: a source that could not be read for a while delivers what
        it has buffered.
        """
        seconds = (now - self._moment) / SECOND
        if seconds > 0:
            self._instants.append((counts - self._arrived) / seconds)
            self._arrived, self._moment = counts, now
            known = np.sort(np.array(self._instants), axis=0)
            second, latest = known[-2 if len(known) > 1 else -1], self._instants[-1]
            self._counted = self._counted + np.where(latest > _SURGE * second, second, latest) * seconds
        return self._counted

    def _observe(self, totals: Totals, rates: Floats, usual: Floats, load: Load, forced: frozenset[int]) -> Observation:
        now, delivered = totals.now, totals.delivered[:-1].astype(np.float64)
        sums: Floats = np.array((delivered, totals.late[:-1], totals.latency[:-1]), np.float64)
        self._added, self._before = sums - self._before, sums
        tuples, tardy, latency = self._delivered.add(self._added, _FADE)
        some = np.maximum(tuples, 1e-9)
        late = np.where(tuples > 0, tardy / some, 0.0)
        late[list(forced)] = 1.0
        _, stamps = self._reading.backlog()
        oldest = self._reach.least(stamps)
        return Observation(
            **vars(load) | {"late": late, "noise": _noise(rates, load.source_work)},
            now=now,
            delivered=tuples,
            latency=latency / some,
            oldest=np.where(oldest < NEVER, (now - oldest) / SECOND, 0.0),
            source_rates=rates,
            usual=usual,
            utility=np.where(delivered > 0, totals.utility[:-1] / np.maximum(delivered, 1.0), 1.0),
        )

    def _diagnose(self, observation: Observation, now: int) -> None:
        topology, before = self._reading.topology, self.diagnosis
        found = diagnose(observation, topology, self._last, self._headroom, self._zones)
        if not self._reading.ingest.pressing:  # sources that wait to be asked cannot cause overload
            found = replace(found, overloaded=False, culprit=None)
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


def _noise(rates: Floats, work: Floats) -> float:
    """Return the standard deviation of the measured load if arrivals are a Poisson process.

    A mean that fades with half-life h effectively averages over 2 h / ln 2.
    """
    return math.sqrt(float((rates * work**2).sum()) * math.log(2) / (2 * _LATELY))


def _arrived(totals: Totals) -> Floats:
    """Return arrived tuples by source, including those that are due but not let in."""
    return (totals.arrived + totals.overdue).astype(np.float64)


class Reach:
    """Reduces readings of boxes to readings of outputs, over all boxes that lead to each output."""

    def __init__(self, topology: Topology) -> None:
        """Concatenate the boxes that lead to each output."""
        boxes = [np.array(sorted(topology.upstream(root)) if root >= 0 else [], np.int64) for root in topology.roots]
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
        self.outputs = tuple(outputs)
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
        few = len(self.outputs) <= FEW
        self._looks.append(look if few else look._replace(delivered=_NONE, late=_NONE, latency=_NONE))
        if len(self._looks) > self._most:
            del self._looks[::2]
            self._every *= 2

    def summary(self) -> dict[str, Any]:
        """Return the history as columns, for plots and tables; moments in seconds since the start.

        In networks with many outputs, only the columns of the whole run are included. Latencies and shares are None
        where nothing was delivered.
        """
        looks, outputs = self._looks, list(enumerate(self.outputs if len(self.outputs) <= FEW else ()))
        told: dict[str, Any] = {"moment": [(look.moment - self._start) / SECOND for look in looks]}
        for name in ("load", "kept", "capacity", "backlog"):
            told[name] = [getattr(look, name) for look in looks]
        told["delivered"] = {output: [int(look.delivered[at]) for look in looks] for at, output in outputs}
        told["latency"] = {output: [_mean(look, look.latency[at], at) for look in looks] for at, output in outputs}
        told["outside"] = {output: [_mean(look, look.late[at], at) for look in looks] for at, output in outputs}
        return told


def _mean(look: Look, total: float, at: int) -> float | None:
    return float(total / look.delivered[at]) if look.delivered[at] else None
