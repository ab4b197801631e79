"""The QoS monitor at work: reads the instruments of an engine and says how the run does."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import replace
from typing import Any

import numpy as np

from headway.catalog import Floats
from headway.clock import SECOND
from headway.engines.changes import Change, ChangeLog
from headway.engines.delivery import Delivered
from headway.engines.history import History, Look
from headway.engines.instruments import Flow, Instruments, Reach, reach_of
from headway.fading import Faded, Rates
from headway.shedding.base import Demand
from headway.shedding.monitor import Diagnosis, Observation, diagnose, good_zones
from headway.storage.queues import FAR

_LATELY = 1.0
"""Half-life of rates (seconds): an overload has to be seen soon."""
_USUALLY = 60.0
"""Half-life of what is taken for a source's usual rate."""
_ACQUAINTED = 5 * SECOND
"""How long a source is watched until anything counts as usual."""
_NEEDED = 0.2
"""The least part of its time that an engine is taken to need, whatever short trains are said to cost."""
_SHOWN = 2
"""Looks in a row after which it shows what can be done, where costs are measured."""
_PRESSED = 0.1
"""Seconds of work that wait at least where an engine has as much to do as it can."""
_RECENT, _SURGE = 4, 5.0
"""Looks within which a rate must have been seen twice if it is so many times the others."""
_SUMMED = [Delivered._fields.index(name) for name in ("tuples", "late", "latency")]
_WORTH = [Delivered._fields.index(name) for name in ("tuples", "utility")]
_FADE = 0.5
"""How much of what was delivered before a look counts at the next."""


class Observer:
    """Looks at a run about twice a second. Used by the scheduler thread."""

    def __init__(self, instruments: Instruments, log: ChangeLog, now: int, headroom: float) -> None:
        """Start watching."""
        self._instruments = instruments
        self._log = log
        self._headroom = headroom
        topology = instruments.topology
        count = len(topology.outputs)
        self._start = self._moment = now
        self._lately = Rates(len(topology.sources), now, _LATELY)
        self._usually = Rates(len(topology.sources), now, _USUALLY)
        self._added: Floats = np.zeros((3, count))  # tuples, late ones, their latencies, since the last look
        self._before: Floats = np.zeros((3, count))  # the same since the start
        self._delivered = Faded(3, count)  # tuples, late ones, their latencies, faded
        self._busy, self._under_way = instruments.effort().busy, 0
        self._backlog = 0.0
        self._pressed = 0  # looks in a row with work waiting all the time
        self._done = Faded(2)  # work and busy time, faded
        self._instants: deque[Floats] = deque(maxlen=_RECENT)  # rates from one look to the next
        self._arrived: Floats = instruments.arrived()
        self._counted: Floats = np.zeros(len(topology.sources))
        self._reach = Reach(reach_of(topology))
        self._zones = good_zones(topology.qos)
        self._last: Observation | None = None
        self.diagnosis: Diagnosis | None = None
        self._history = History(now, topology.outputs)
        self._overloaded = 0  # nanoseconds
        self._is_overloaded = False
        self._spells = 0

    def look(self, now: int, keep: Floats, forced: frozenset[int]) -> tuple[Observation, Demand]:
        """Return what is read, and what flows where drop boxes can stand; `keep` is what they keep now, by site.

        Outputs in `forced` count as late whatever their graphs say: somebody has stricter goals for them.
        """
        instruments, topology = self._instruments, self._instruments.topology
        counts = instruments.arrived()
        rates = self._lately.read(self._without_surges(counts, now), now).copy()
        usual = self._usually.read(counts, now).copy()
        if now - self._start < _ACQUAINTED:
            usual[:] = np.nan
        flow = instruments.flow(now, rates, keep)
        observation = self._observe(now, rates, usual, flow, forced)
        demand = Demand(
            instruments.sites,
            topology.qos,
            flow.site_rates,
            flow.site_costs,
            instruments.nested,
            flow.load,
            observation.capacity,
            observation.late,
            _noise(rates, flow),
            flow.site_waiting,
        )
        self._diagnose(observation, now)
        self._note(observation)
        return observation, demand

    def _without_surges(self, counts: Floats, now: int) -> Floats:
        """Return by source the tuples that have arrived, of those that came all at once only what else is usual.

        What comes within one look, and not before and after it, is a backlog and no rate: a source that could not be
        read for a while brings what it has kept.
        """
        seconds = (now - self._moment) / SECOND
        if seconds > 0:
            self._instants.append((counts - self._arrived) / seconds)
            self._arrived = counts
            known = np.sort(np.array(self._instants), axis=0)
            second, latest = known[-2 if len(known) > 1 else -1], self._instants[-1]
            self._counted = self._counted + np.where(latest > _SURGE * second, second, latest) * seconds
        return self._counted

    def _observe(self, now: int, rates: Floats, usual: Floats, flow: Flow, forced: frozenset[int]) -> Observation:
        instruments = self._instruments
        delivered = instruments.delivered()
        sums = np.array(delivered, np.float64).reshape(-1, len(Delivered._fields))[:, _SUMMED].T
        self._added, self._before = sums - self._before, sums
        tuples, tardy, latency = self._delivered.add(self._added, _FADE)
        some = np.maximum(tuples, 1e-9)
        late = np.where(tuples > 0, tardy / some, 0.0)
        late[list(forced)] = 1.0
        waiting, stamps = instruments.waiting()
        oldest = self._reach.least(stamps)
        capacity, busy, pressed = self._efforts(now, flow)
        counts, utilities = (np.array([one[at] for one in delivered], np.float64) for at in _WORTH)
        return Observation(
            now,
            tuples,
            late,
            latency / some,
            np.where(oldest < FAR, (now - oldest) / SECOND, 0.0),
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
            np.where(counts > 0, utilities / np.maximum(counts, 1.0), 1.0),
        )

    def _note(self, observation: Observation) -> None:
        """Keep what was seen, as it was since the last look."""
        look = Look(
            observation.now,
            observation.load,
            observation.kept,
            observation.capacity,
            observation.backlog,
            *self._added,
        )
        self._history.add(look)

    def _efforts(self, now: int, flow: Flow) -> tuple[float, float, bool]:
        """Return the seconds of work that can be done per second, the share of the time needed, and if it shows.

        What can be done shows only where there is more to do than that; until then, all of it is expected. An engine
        without a backlog keeps up, however busy it is: it has the time for short trains, which cost more by the tuple.
        So what it was busy with counts as it would under load.
        """
        effort, workers = self._instruments.effort(), self._instruments.workers
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
            # What short trains cost more is no want of time: under load they are long.
            spent_on = ended / SECOND
            if flow.avoidable > 0:
                spent_on = max(spent_on - flow.avoidable, flow.done, _NEEDED * spent_on)
            self._done.add((flow.done, spent_on), _FADE)
        # What is not work in boxes is the engine's own.
        done, took = self._done.sums.tolist()
        part = min(1.0, done / took) if done > 0 else 1.0
        needed = share if pressed else min(share, flow.done / part * SECOND / spent)
        # Workers that can be of no use are idle however much there is to do.
        # One look may be a moment in which trains were short, or a box was slow: measured costs need two.
        shows = flow.exact or self._pressed >= _SHOWN
        return flow.usable * part, min(1.0, needed * workers / flow.usable), shows

    def _diagnose(self, observation: Observation, now: int) -> None:
        topology, before = self._instruments.topology, self.diagnosis
        found = diagnose(observation, topology, self._last, self._headroom, self._zones)
        if not self._instruments.pressing:  # sources that wait until they are asked cannot bring too much
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
            self._log.add(Change(now, "overload", "run", what, found.because + cause))
        self._last, self.diagnosis = observation, found

    def summary(self) -> dict[str, Any]:
        """Return what a summary says of overloads."""
        return {
            "seconds": self._overloaded / SECOND,
            "spells": self._spells,
            "changes": self._log.summary("overload"),
            "history": self._history.summary(),
        }


def _noise(rates: Floats, flow: Flow) -> float:
    """Return the standard deviation of the load as it is read, if tuples arrive by chance (a Poisson process).

    A mean that fades with a half-life of h sees about as many tuples as come in 2 h / ln 2.
    """
    return math.sqrt(float((rates * flow.source_work**2).sum()) * math.log(2) / (2 * _LATELY))
