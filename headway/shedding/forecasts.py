"""Forecasts of whether dropping pays: the outputs' worth for given shares, from the backlog and measurements.

Aurora sheds load when it exceeds the capacity (section 4.4). But a growing queue does no harm as long as results are in
time, and a result that is a little late may be worth more than a dropped one. So before anything is dropped, two
options are compared by the users' graphs: the waiting tuples and the arrivals within a horizon are delivered with
growing latency, or thinned out. The horizon is short at first and grows with the duration of the overload, so that
little is lost if a burst ends just when dropping begins, and a lasting overload is acted on.

The model is a queue in the order of arrival. A tuple that arrives when W seconds of work are waiting is delivered after
W seconds; if a policy prefers some outputs, the age of their waiting tuples shows it, and W is scaled for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np

from headway.columns import Floats
from headway.network.qos import Graph
from headway.shedding.diagnosis import Observation
from headway.shedding.losses import loss_graph
from headway.shedding.strategies import Demand, work_saved

_G = TypeVar("_G", bound="Graph | None")

POINTS = 12
"""Number of samples of the latency, each among waiting tuples and among arrivals."""
PAST = 60.0
"""Seconds of past deliveries that count besides the forecast: a loss graph is about a share of all tuples."""
MARGIN = 1.0
"""Dropping must gain 1 + MARGIN times its cost, because forecasts are rough."""
UNEVEN = 10.0
"""The largest factor by which an output may be served later than in order of arrival."""


@dataclass(frozen=True)
class Outlook:
    """The current state of a run, and a forecast from it; arrays by output."""

    seen: Observation
    capacity: float
    """Seconds of work that can be done per second."""
    backlog: float
    """Seconds of waiting work, as if nothing were dropped."""
    ages: Floats
    """The age of the oldest tuple on the way to the output, in seconds."""
    past: float
    """Seconds since the run began."""
    kept: Floats
    """The share of its tuples that was kept so far."""
    horizon: float
    """Seconds of future arrivals that are included."""

    def gain(self, keep: Floats) -> float:
        """Return the gain in worth of shares over dropping nothing; what they lose counts 1 + MARGIN times."""
        worth = self.worth(keep)
        cost = max(self.worth(keep, free=True) - worth, 0.0)
        return worth - self.worth(np.ones(len(keep))) - MARGIN * cost

    def worth(self, keep: Floats, free: bool = False) -> float:
        """Return the mean worth of the outputs with shares to keep, over past deliveries and the forecast.

        If `free`, future dropping does not count as loss: for computing what it gains.
        """
        seen, count = self.seen, len(self.seen.qos)
        if not count or self.capacity <= 0:
            return 0.0
        load, backlog = self._left(keep)
        wait = self.backlog / self.capacity
        in_turn = wait * min(1.0, self.capacity / seen.load) if seen.load > 0 else wait
        uneven = np.clip(self.ages / max(in_turn, 1e-9), 0.0, UNEVEN) if in_turn > 0 else np.zeros(count)
        behind = uneven * backlog / self.capacity  # the latency of what arrives now
        slope = uneven * (load / self.capacity - 1.0)
        waits = np.outer(self.ages, _SHARES) + np.outer(behind, 1 - _SHARES)
        comes = np.maximum(behind[:, None] + np.outer(slope * self.horizon, _SHARES), 0.0)
        known = seen.delivered > 0
        # Latency that is not spent in queues, but in windows, for example.
        beside = np.where(known, np.maximum(seen.latency - seen.oldest, 0.0), 0.0)[:, None]
        of_waits, of_comes = self._utilities(waits + beside), self._utilities(comes + beside)
        past, coming = min(self.past, PAST), self.ages + self.horizon
        utility = (of_waits * self.ages + of_comes * self.horizon) / np.maximum(coming, 1e-12)
        # If a policy does not serve an output at all, nothing shows that dropping would help it.
        starved = ~known & (seen.oldest > 0)
        utility = np.where(starved, self._utilities((self.ages + self.horizon)[:, None]), utility)
        delivered, was = coming * kept_of(seen, keep), past * self.kept
        before = np.ones(count) if seen.utility is None else seen.utility
        mean = (was * before + delivered * utility) / np.maximum(was + delivered, 1e-12)
        share = self.kept if free else (was + delivered) / np.maximum(past + coming, 1e-12)
        loss = np.zeros(count)
        for graph, places in self._losses.items():
            loss[places] = graph.values(100 * share[places])
        return float((mean * loss).mean())

    def _left(self, keep: Floats) -> tuple[float, float]:
        """Return the seconds of work that remain with some shares: per second of arrivals, and waiting."""
        seen = self.seen
        saved = work_saved(seen.rates * seen.costs, keep, seen.nested)
        if len(seen.waiting) == len(keep):
            thinned = work_saved(seen.waiting * seen.costs, keep, seen.nested)
        else:
            thinned = self.backlog * saved / seen.load if seen.load > 0 else 0.0
        return max(seen.load - saved, 0.0), max(self.backlog - thinned, 0.0)

    @cached_property
    def _losses(self) -> dict[Graph, list[int]]:
        return _alike([loss_graph(self.seen.qos, at, self.seen.losses) for at in range(len(self.seen.qos))])

    @cached_property
    def _latencies(self) -> dict[Graph | None, list[int]]:
        return _alike([graphs.latency for graphs in self.seen.qos])

    def _utilities(self, seconds: Floats) -> Floats:
        """Return by output the mean utility of results with the given latencies."""
        found = np.ones(len(self.seen.qos))
        for graph, places in self._latencies.items():
            if graph is not None:
                found[places] = graph.values(seconds[places]).mean(axis=1)
        return found


def kept_of(demand: Demand, keep: Floats) -> Floats:
    """Return by output the share of its tuples that is kept, given the shares by site."""
    kept = np.ones(len(demand.qos))
    for at in np.flatnonzero(keep < 1.0).tolist():
        kept[list(demand.sites[at].outputs)] *= keep[at]
    return kept


_SHARES: Floats = (np.arange(POINTS) + 0.5) / POINTS


def _alike(graphs: Sequence[_G]) -> dict[_G, list[int]]:
    """Return by graph the outputs that have it: distinct graphs are few, even for many outputs."""
    places: dict[_G, list[int]] = {}
    for at, graph in enumerate(graphs):
        places.setdefault(graph, []).append(at)
    return places
