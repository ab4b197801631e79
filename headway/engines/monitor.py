"""The QoS monitor at work: how a run does, what flows through it, and how it went."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from headway.catalog import Floats, Topology
from headway.clock import SECOND
from headway.columns import Int64s
from headway.engines.reading import Reading
from headway.engines.traces import ChangeLog
from headway.fading import Faded, Rates
from headway.shedding.diagnosis import Diagnosis, Load, Observation, diagnose, good_zones
from headway.shedding.sites import Entry, Site
from headway.sieves import DropBox, Sieve
from headway.storage.queues import FAR
from headway.totals import Totals
from headway.trains import Train

_LATELY = 1.0
"""Half-life of rates (seconds): an overload has to be seen soon."""
_USUALLY = 60.0
"""Half-life of what is taken for a source's usual rate."""
_ACQUAINTED = 5 * SECOND
"""How long a source is watched until anything counts as usual."""
_RECENT, _SURGE = 4, 5.0
"""Looks within which a rate must have been seen twice if it is so many times the others."""
_FADE = 0.5
"""How much of what was delivered before a look counts at the next."""


class Sheddable(Protocol):
    """What an engine offers to load shedding beyond its reading. Used by the scheduler thread."""

    sites: tuple[Site, ...]
    """Where drop boxes can stand."""
    nested: tuple[tuple[int, ...], ...]
    measures: bool
    """Whether what boxes cost and what can be done is found out while it runs, neither known nor told."""

    def look(self, now: int, rates: Floats, keep: Floats) -> Load:
        """Return what tuples that arrive at these rates (by source) cause; `keep` is what is kept now, by site.

        What has been done counts from the look before, or from the start.
        """

    def drop(self, entry: Entry) -> DropBox:
        """Return the drop box for an entry, which need not stand there now."""

    def put(self, site: int, entry: Entry, sieve: Sieve | None) -> None:
        """Insert or adjust the drop box at an entry of a site; None removes it."""

    def seen(self, entry: Entry) -> int:
        """Return how many tuples have come to an entry, dropped ones included."""

    def way(self, entry: Entry) -> Entry | str:
        """Return the way into a box that an entry is, or the arc before all whose readers it stands."""

    def sample(self, entry: Entry) -> Train | None:
        """Return some of the latest tuples that came to an entry, if there are any at hand."""


class Monitor:
    """Looks at a run about twice a second. Used by the scheduler thread."""

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

    def look(self, now: int, keep: Floats, forced: frozenset[int]) -> Observation:
        """Return what is read; `keep` is what drop boxes keep now, by site.

        Outputs in `forced` count as late whatever their graphs say: somebody has stricter goals for them.
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
        """Return by source the tuples that have arrived, of those that came all at once only what else is usual.

        What comes within one look, and not before and after it, is a backlog and no rate: a source that could not be
        read for a while brings what it has kept.
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
            oldest=np.where(oldest < FAR, (now - oldest) / SECOND, 0.0),
            source_rates=rates,
            usual=usual,
            utility=np.where(delivered > 0, totals.utility[:-1] / np.maximum(delivered, 1.0), 1.0),
        )

    def _diagnose(self, observation: Observation, now: int) -> None:
        topology, before = self._reading.topology, self.diagnosis
        found = diagnose(observation, topology, self._last, self._headroom, self._zones)
        if not self._reading.ingest.pressing:  # sources that wait until they are asked cannot bring too much
            found = replace(found, overloaded=False)
        was = self._is_overloaded
        if was and self._last is not None:
            self._overloaded += now - self._last.now
        # One look may be wrong: two of the same opinion count.
        if found.overloaded != was and before is not None and before.overloaded == found.overloaded:
            self._is_overloaded = found.overloaded
            self._spells += found.overloaded
            what = "begins" if found.overloaded else "ends"
            cause = "" if found.culprit is None else f"; cause: {found.culprit}"
            self._log.add(now, "overload", "run", what, found.because + cause)
        self._last, self.diagnosis = observation, found

    def summary(self) -> dict[str, Any]:
        """Return what a summary says of overloads."""
        return {
            "seconds": self._overloaded / SECOND,
            "spells": self._spells,
            "changes": self._log.summary("overload"),
            "history": self._history.summary(),
        }


def _noise(rates: Floats, work: Floats) -> float:
    """Return the standard deviation of the load as it is read, if tuples arrive by chance (a Poisson process).

    A mean that fades with a half-life of h sees about as many tuples as come in 2 h / ln 2.
    """
    return math.sqrt(float((rates * work**2).sum()) * math.log(2) / (2 * _LATELY))


def _arrived(totals: Totals) -> Floats:
    """Return by source the tuples that have arrived, whether they have been let in or not."""
    return (totals.arrived + totals.overdue).astype(np.float64)


class Reach:
    """Boxes by output, made ready to be reduced at once."""

    def __init__(self, topology: Topology) -> None:
        """Lay the boxes that lead to each output one after the other."""
        boxes = [np.array(sorted(topology.upstream(root)) if root >= 0 else [], np.int64) for root in topology.roots]
        lengths = np.array([len(some) for some in boxes], np.int64)
        self._count = len(boxes)
        self._filled = np.flatnonzero(lengths)
        self._flat: Int64s = np.concatenate([np.zeros(0, np.int64), *boxes]).astype(np.int64)
        self._starts = (np.cumsum(lengths) - lengths)[self._filled]

    def least(self, readings: Int64s) -> Int64s:
        """Return by output the least of its boxes' readings; the largest number where it has no box."""
        found: Int64s = np.full(self._count, FAR)
        if len(self._filled):
            found[self._filled] = np.minimum.reduceat(readings[self._flat], self._starts)
        return found

    def sums(self, readings: Floats) -> Floats:
        """Return by output the sum of its boxes' readings, and then the sum of all boxes'."""
        found: Floats = np.zeros(self._count + 1)
        if len(self._filled):
            found[self._filled] = np.add.reduceat(readings[self._flat], self._starts)
        found[-1] = readings.sum()
        return found


_NONE: Floats = np.zeros(0)
FEW = 64
"""Outputs up to which each has a history of its own."""
MOST = 512
"""Looks that are kept; when there are more, every second one goes, and fewer are taken from then on."""


class Look(NamedTuple):
    """What was seen at one look; counts are since the look before."""

    moment: int
    load: float
    """Seconds of work per second that arrived, before anything was dropped."""
    kept: float
    """What was left of it."""
    capacity: float
    """Seconds of work per second that could be done."""
    backlog: float
    """Seconds of work that waited."""
    delivered: Floats
    """By output."""
    late: Floats
    """By output: how many of those were outside of the good zone."""
    latency: Floats
    """By output: their latencies, summed, in seconds."""


class History:
    """Looks in their order. Used by the scheduler thread."""

    def __init__(self, start: int, outputs: Sequence[str], most: int = MOST) -> None:
        """Begin without looks; moments are told from `start` on."""
        self._start = start
        self._outputs = tuple(outputs)
        self._most = most
        self._looks: list[Look] = []
        self._every = 1
        self._skipped = 0

    def add(self, look: Look) -> None:
        """Take a look down, or leave it out if the history is long."""
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
        """Return it column by column, as a plot or a table wants it; moments in seconds since the start.

        In networks with many outputs, only the columns of the whole run are there. Latencies and shares are None where
        nothing was delivered.
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
