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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from headway.catalog import Floats
from headway.network.qos import Graph, QoS
from headway.shedding.losses import loss_graph
from headway.shedding.strategies import Demand, work_saved

Mask = npt.NDArray[np.bool_]
_G = TypeVar("_G", bound="Graph | None")

POINTS = 12
"""Number of samples of the latency, each among waiting tuples and among arrivals."""
PAST = 60.0
"""Seconds of past deliveries that count besides the forecast: a loss graph is about a share of all tuples."""
MARGIN = 1.0
"""Dropping must gain 1 + MARGIN times its cost, because forecasts are rough."""
UNEVEN = 10.0
"""The largest factor by which an output may be served later than in order of arrival."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """The situation for given shares to keep."""

    load: float
    """Seconds of work per second that remain."""
    backlog: float
    """Seconds of waiting work that remain."""
    kept: Floats
    """By output: the share of its tuples that is kept."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """The current state of a run; arrays by output."""

    qos: tuple[QoS, ...]
    losses: tuple[Graph, ...]
    """The output's loss graph."""
    capacity: float
    """Seconds of work that can be done per second."""
    load: float
    """Seconds of work that arrive per second."""
    backlog: float
    """Seconds of waiting work, as if nothing were dropped."""
    ages: Floats
    """The age of the oldest tuple on the way to the output, in seconds."""
    beside: Floats
    """Seconds of latency that are not spent in queues, but in windows, for example."""
    past: float
    """Seconds since the run began."""
    utility: Floats
    """The mean utility, by latency, of its results so far."""
    kept: Floats
    """The share of its tuples that was kept so far."""
    horizon: float
    """Seconds of future arrivals that are included."""
    starved: Mask | None = None
    """Whether tuples wait on the way to the output and none were delivered recently."""

    def worth(self, option: Scenario, free: bool = False) -> float:
        """Return the mean worth of the outputs, over past deliveries and the forecast.

        If `free`, future dropping does not count as loss: for computing what it gains.
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
            # If a policy does not serve an output at all, nothing shows that dropping would help it.
            utility = np.where(self.starved, self._utilities((self.ages + self.horizon)[:, None]), utility)
        delivered, was = coming * option.kept, past * self.kept
        mean = (was * self.utility + delivered * utility) / np.maximum(was + delivered, 1e-12)
        share = self.kept if free else (was + delivered) / np.maximum(past + coming, 1e-12)
        loss = np.zeros(count)
        for graph, places in _alike(self.losses).items():
            loss[places] = graph.values(100 * share[places])
        return float((mean * loss).mean())

    def _utilities(self, seconds: Floats) -> Floats:
        """Return by output the mean utility of results with the given latencies."""
        found = np.ones(len(self.qos))
        for graph, places in _alike([graphs.latency for graphs in self.qos]).items():
            if graph is not None:
                found[places] = graph.values(seconds[places]).mean(axis=1)
        return found

    def gain(self, option: Scenario, nothing: Scenario, margin: float) -> float:
        """Return the gain in worth of an option over dropping nothing; its loss counts 1 + `margin` times."""
        worth = self.worth(option)
        cost = max(self.worth(option, free=True) - worth, 0.0)
        return worth - self.worth(nothing) - margin * cost


@dataclass(frozen=True, slots=True)
class Prospect:
    """Evaluates shares to keep by a forecast."""

    outlook: Outlook
    demand: Demand

    def gain(self, keep: Floats) -> float:
        """Return the gain in worth of shares over dropping nothing, less the required margin."""
        return self.outlook.gain(self._option(keep), self._option(np.ones(len(keep))), MARGIN)

    def worths(self, keep: Floats) -> tuple[float, float]:
        """Return the mean worth of the outputs with some shares, and without dropping."""
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
    """Return by output the share of its tuples that is kept, given the shares by site."""
    kept = np.ones(len(demand.qos))
    for at in np.flatnonzero(keep < 1.0).tolist():
        kept[list(demand.sites[at].outputs)] *= keep[at]
    return kept


_SHARES: Floats = (np.arange(POINTS) + 0.5) / POINTS


def losses_of(qos: Sequence[QoS], instead: Mapping[int, Graph] | None = None) -> tuple[Graph, ...]:
    """Return by output its loss graph, or the one in `instead`."""
    return tuple(loss_graph(qos, at, instead or {}) for at in range(len(qos)))


def _alike(graphs: Sequence[_G]) -> dict[_G, list[int]]:
    """Return by graph the outputs that have it: distinct graphs are few, even for many outputs."""
    places: dict[_G, list[int]] = {}
    for at, graph in enumerate(graphs):
        places.setdefault(graph, []).append(at)
    return places
