"""Does dropping pay? What outputs will be worth if so much is dropped, by what waits and what has been measured.

Aurora sheds load when there is more than fits (section 4.4). But a queue that grows is nobody's loss as long as
results are in time, and one that is a little late may be worth more than one that never comes. So before anything is
dropped, both are compared by the graphs that users have drawn: all that waits, and what arrives in the next while,
delivered later and later or thinned out. The next while is short and grows with the time that the overload has lasted.
So a burst that ends just when dropping begins has cost little, and an overload that stays is believed.

The model is a queue in the order of arrival. A tuple that arrives when work for W seconds waits is delivered after W; a
policy that lets some outputs go first shows in how old their waiting tuples are, and scales W for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np

from headway.catalog import Floats
from headway.network.qos import Graph
from headway.shedding.diagnosis import Observation
from headway.shedding.losses import loss_graph
from headway.shedding.strategies import Demand, work_saved

_G = TypeVar("_G", bound="Graph | None")

POINTS = 12
"""Moments at which latencies are looked at, among what waits and among what comes."""
PAST = 60.0
"""Seconds of what has been delivered that count beside what is to come: a loss graph is about a share of all tuples."""
MARGIN = 1.0
"""By which part more than it costs dropping has to gain: forecasts are rough."""
UNEVEN = 10.0
"""The most by which an output may be served later than in turn."""


@dataclass(frozen=True)
class Outlook:
    """Where a run stands, and by that what its outputs will be worth; arrays by output."""

    seen: Observation
    capacity: float
    """Seconds of work that can be done per second."""
    backlog: float
    """Seconds of work that wait, as if nothing were dropped."""
    ages: Floats
    """The age of the oldest tuple on the way to it, in seconds."""
    past: float
    """Seconds since the run began."""
    kept: Floats
    """The share of its tuples that was kept so far."""
    horizon: float
    """Seconds of arrivals that are looked ahead."""

    def gain(self, keep: Floats) -> float:
        """Return what is gained by shares to keep, by site, compared with dropping nothing.

        What they cost counts once more by MARGIN.
        """
        worth = self.worth(keep)
        cost = max(self.worth(keep, free=True) - worth, 0.0)
        return worth - self.worth(np.ones(len(keep))) - MARGIN * cost

    def worth(self, keep: Floats, free: bool = False) -> float:
        """Return what outputs are worth in the end, as a mean, by what was delivered and what is to come.

        If `free`, what is dropped costs nothing: that tells what is gained by it.
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
        # Latency that is not waiting in queues: windows, for example.
        beside = np.where(known, np.maximum(seen.latency - seen.oldest, 0.0), 0.0)[:, None]
        of_waits, of_comes = self._utilities(waits + beside), self._utilities(comes + beside)
        past, coming = min(self.past, PAST), self.ages + self.horizon
        utility = (of_waits * self.ages + of_comes * self.horizon) / np.maximum(coming, 1e-12)
        # Nobody knows when a policy that does not serve an output at all will do so: no dropping is known to help it.
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
        """Return the work that is left to do with such shares: what arrives per second, and what waits."""
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
        """Return by output the mean utility of results of so many latencies."""
        found = np.ones(len(self.seen.qos))
        for graph, places in self._latencies.items():
            if graph is not None:
                found[places] = graph.values(seconds[places]).mean(axis=1)
        return found


def kept_of(demand: Demand, keep: Floats) -> Floats:
    """Return by output the share of its tuples that such shares by site leave."""
    kept = np.ones(len(demand.qos))
    for at in np.flatnonzero(keep < 1.0).tolist():
        kept[list(demand.sites[at].outputs)] *= keep[at]
    return kept


_SHARES: Floats = (np.arange(POINTS) + 0.5) / POINTS


def _alike(graphs: Sequence[_G]) -> dict[_G, list[int]]:
    """Return by graph the places that have it: there are few different ones, however many outputs."""
    places: dict[_G, list[int]] = {}
    for at, graph in enumerate(graphs):
        places.setdefault(graph, []).append(at)
    return places
