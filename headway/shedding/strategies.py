"""Strategies decide what to drop: demand in, shares to keep out.

Everything here is immutable and independent of engines. An engine provides its sites and the flows there; a strategy
returns the share to keep at each site; the engine places sieves there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Protocol, runtime_checkable

import numpy as np

from headway.columns import Floats
from headway.errors import PolicyError
from headway.network.qos import Graph, QoS
from headway.plugins import Registry
from headway.shedding.sites import Site


def _unknown() -> Floats:
    return np.zeros(0)


@dataclass(frozen=True)
class Demand:
    """The flows at the sites as if nothing were dropped, and the capacity; arrays by site.

    Work is counted in seconds by the cost model: a load of 1.5 keeps one and a half processors busy. The arrays must
    not be changed.
    """

    sites: tuple[Site, ...]
    qos: tuple[QoS, ...]
    """By output: its QoS graphs."""
    rates: Floats
    """Tuples per second that reach the site's entries."""
    costs: Floats
    """Mean seconds of work that a tuple causes from there on."""
    nested: tuple[tuple[int, ...], ...]
    """By site: other sites whose tuples have all passed this one, so that dropping here thins them out, too."""
    load: float
    """Seconds of work per second that all arrivals cause."""
    capacity: float
    """Seconds of work that can be done per second."""
    late: Floats = field(default_factory=_unknown)
    """By output: the share of recent results outside the good zone, or outside stricter goals."""
    noise: float = 0.0
    """The standard deviation of the load, from random arrivals."""
    waiting: Floats = field(default_factory=_unknown)
    """Tuples waiting at the site's entries, which a drop box there thins out, too. Empty if unknown."""
    losses: Mapping[int, Graph] = field(default_factory=dict)
    """By output: the loss graph to use instead of its own, if tuples are dropped by value."""


def work_saved(works: Floats, keep: Floats, nested: Sequence[Sequence[int]]) -> float:
    """Return the work saved by the shares to keep, given the work at each site.

    Tuples dropped at an outer site do not reach the inner ones.
    """
    dropping = np.flatnonzero(keep < 1.0)
    if not len(dropping):
        return 0.0
    passing = np.ones(len(keep))
    counts = [len(nested[site]) for site in dropping.tolist()]
    if any(counts):
        inner = np.fromiter(chain.from_iterable(nested[site] for site in dropping.tolist()), np.int64, sum(counts))
        np.multiply.at(passing, inner, np.repeat(keep[dropping], counts))
    return float((works * passing * (1.0 - keep)).sum())


@runtime_checkable
class Strategy(Protocol):
    """Decides what to drop. Pure.

    If it has an attribute `by_value` that is false, tuples are dropped at random also where value graphs are.
    """

    def shares(self, demand: Demand, excess: float, most: Sequence[float]) -> Floats:
        """Return by site the share to keep, so that `excess` seconds of work per second are saved, or the most allowed.

        `most` is by output the largest share that may be dropped, over all sites upstream of the output together.
        """
        ...


_strategies = Registry[Callable[[], Strategy]]("shedding strategy", PolicyError)

register_strategy, registered_strategies = _strategies.register, _strategies.entries


def make_strategy(name: str) -> Strategy:
    """Make the strategy with this name. Raises a PolicyError if there is none."""
    return _strategies[name].make()
