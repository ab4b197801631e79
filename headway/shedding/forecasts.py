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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from headway.columns import Floats
from headway.network.qos import Graph, QoS
from headway.shedding.losses import loss_graph
from headway.shedding.strategies import Demand, work_saved

Mask = npt.NDArray[np.bool_]
_G = TypeVar("_G", bound="Graph | None")

POINTS = 12
"""Moments at which latencies are looked at, among what waits and among what comes."""
PAST = 60.0
"""Seconds of what has been delivered that count beside what is to come: a loss graph is about a share of all tuples."""
MARGIN = 1.0
"""By which part more than it costs dropping has to gain: forecasts are rough."""
UNEVEN = 10.0
"""The most by which an output may be served later than in turn."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """What happens if shares are kept so."""

    load: float
    """Seconds of work per second that are left to do."""
    backlog: float
    """Seconds of work that wait and will be done."""
    kept: Floats
    """By output: the share of its tuples that is kept."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """Where a run stands; arrays by output."""

    qos: tuple[QoS, ...]
    losses: tuple[Graph, ...]
    """What a share of its tuples is worth."""
    capacity: float
    """Seconds of work that can be done per second."""
    load: float
    """Seconds of work per second that arrive."""
    backlog: float
    """Seconds of work that wait, as if nothing were dropped."""
    ages: Floats
    """The age of the oldest tuple on the way to it, in seconds."""
    beside: Floats
    """Seconds of latency that are not waiting in queues: windows, for example."""
    past: float
    """Seconds since the run began."""
    utility: Floats
    """What it has delivered so far was worth by latency."""
    kept: Floats
    """The share of its tuples that was kept so far."""
    horizon: float
    """Seconds of arrivals that are looked ahead."""
    starved: Mask | None = None
    """Whether tuples wait on the way to it and none was delivered lately."""

    def worth(self, option: Scenario, free: bool = False) -> float:
        """Return what outputs are worth in the end, as a mean, by what was delivered and what is to come.

        If `free`, what is dropped costs nothing: that tells what is gained by it.
        """
        count = len(self.qos)
        if not count or self.capacity <= 0:
            return 0.0
        wait = self.backlog / self.capacity
        in_turn = wait * min(1.0, self.capacity / self.load) if self.load > 0 else wait
        uneven = np.clip(self.ages / max(in_turn, 1e-9), 0.0, UNEVEN) if in_turn > 0 else np.zeros(count)
        behind = uneven * option.backlog / self.capacity  # the latency of what arrives now
        slope = uneven * (option.load / self.capacity - 1.0)
        waits = np.outer(self.ages, _SHARES) + np.outer(behind, 1 - _SHARES)
        comes = np.maximum(behind[:, None] + np.outer(slope * self.horizon, _SHARES), 0.0)
        of_waits, of_comes = (self._utilities(one + self.beside[:, None]) for one in (waits, comes))
        past, coming = min(self.past, PAST), self.ages + self.horizon
        utility = (of_waits * self.ages + of_comes * self.horizon) / np.maximum(coming, 1e-12)
        if self.starved is not None:
            # Nobody knows when a policy that does not serve it at all will do so: no dropping is known to help it.
            utility = np.where(self.starved, self._utilities((self.ages + self.horizon)[:, None]), utility)
        delivered, was = coming * option.kept, past * self.kept
        mean = (was * self.utility + delivered * utility) / np.maximum(was + delivered, 1e-12)
        share = self.kept if free else (was + delivered) / np.maximum(past + coming, 1e-12)
        loss = np.zeros(count)
        for graph, places in _alike(self.losses).items():
            loss[places] = graph.values(100 * share[places])
        return float((mean * loss).mean())

    def _utilities(self, seconds: Floats) -> Floats:
        """Return by output the mean utility of results of so many latencies."""
        found = np.ones(len(self.qos))
        for graph, places in _alike([graphs.latency for graphs in self.qos]).items():
            if graph is not None:
                found[places] = graph.values(seconds[places]).mean(axis=1)
        return found

    def gain(self, option: Scenario, nothing: Scenario, margin: float) -> float:
        """Return by how much more an option is worth than dropping nothing; what it costs counts 1 + `margin` times."""
        worth = self.worth(option)
        cost = max(self.worth(option, free=True) - worth, 0.0)
        return worth - self.worth(nothing) - margin * cost


@dataclass(frozen=True, slots=True)
class Prospect:
    """What would come of shares to keep."""

    outlook: Outlook
    demand: Demand

    def gain(self, keep: Floats) -> float:
        """Return what is gained by such shares, compared with dropping nothing, if dropping has to gain MARGIN more."""
        return self.outlook.gain(self._option(keep), self._option(np.ones(len(keep))), MARGIN)

    def worths(self, keep: Floats) -> tuple[float, float]:
        """Return what outputs are worth on average with such shares, and if nothing is dropped."""
        return self.outlook.worth(self._option(keep)), self.outlook.worth(self._option(np.ones(len(keep))))

    def _option(self, keep: Floats) -> Scenario:
        demand, outlook = self.demand, self.outlook
        saved = work_saved(demand.rates * demand.costs, keep, demand.nested)
        if len(demand.waiting) == len(keep):
            thinned = work_saved(demand.waiting * demand.costs, keep, demand.nested)
        else:
            thinned = outlook.backlog * saved / outlook.load if outlook.load > 0 else 0.0
        return Scenario(max(outlook.load - saved, 0.0), max(outlook.backlog - thinned, 0.0), kept_of(demand, keep))


def kept_of(demand: Demand, keep: Floats) -> Floats:
    """Return by output the share of its tuples that such shares by site leave."""
    kept = np.ones(len(demand.qos))
    for at in np.flatnonzero(keep < 1.0).tolist():
        kept[list(demand.sites[at].outputs)] *= keep[at]
    return kept


_SHARES: Floats = (np.arange(POINTS) + 0.5) / POINTS


def losses_of(qos: Sequence[QoS], instead: Mapping[int, Graph] | None = None) -> tuple[Graph, ...]:
    """Return by output what a share of its tuples is worth; `instead` stands in for its own graph."""
    return tuple(loss_graph(qos, at, instead or {}) for at in range(len(qos)))


def _alike(graphs: Sequence[_G]) -> dict[_G, list[int]]:
    """Return by graph the places that have it: there are few different ones, however many outputs."""
    places: dict[_G, list[int]] = {}
    for at, graph in enumerate(graphs):
        places.setdefault(graph, []).append(at)
    return places
