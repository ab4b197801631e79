"""Strategies, which decide what to drop: demand in, shares to keep out.

Everything here is frozen and knows no engine. An engine says where drop boxes can stand (its sites) and what flows
there; a strategy says how much of it to keep; the engine puts sieves there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Protocol, runtime_checkable

import numpy as np

from headway.catalog import Floats
from headway.errors import PolicyError, unknown
from headway.network.qos import Graph, QoS
from headway.shedding.sites import Site


def _unknown() -> Floats:
    return np.zeros(0)


@dataclass(frozen=True)
class Demand:
    """What flows at the sites, if nothing were dropped, and what can be done about it; arrays by site.

    Work is counted in seconds by the cost model: a load of 1.5 keeps one and a half processors busy. Nobody writes to
    the arrays.
    """

    sites: tuple[Site, ...]
    qos: tuple[QoS, ...]
    """By output: what late, lost and unimportant results are worth."""
    rates: Floats
    """Tuples per second that reach the site's entries."""
    costs: Floats
    """Seconds of work that a tuple causes from there on, on average."""
    nested: tuple[tuple[int, ...], ...]
    """By site: other sites whose tuples have all passed this one, so that dropping here thins them out, too."""
    load: float
    """Seconds of work per second that all that arrives causes."""
    capacity: float
    """Seconds of work that can be done per second."""
    late: Floats = field(default_factory=_unknown)
    """By output: the share of what was delivered lately that was outside of its good zone, or of stricter goals."""
    noise: float = 0.0
    """By how much the load may be read wrong (one standard deviation), because tuples come by chance."""
    waiting: Floats = field(default_factory=_unknown)
    """Tuples that wait at the site's entries: a drop box there thins them out, too. Empty: nobody knows."""
    losses: Mapping[int, Graph] = field(default_factory=dict)
    """By output: the loss graph to use instead of its own, where what is dropped is chosen by value."""


def work_saved(works: Floats, keep: Floats, nested: Sequence[Sequence[int]]) -> float:
    """Return the seconds of work per second that shares to keep save, where sites have so much work each.

    What an outer site drops does not come to the inner ones any more.
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
    """Decides what to drop. Pure. One with ``by_value = False`` drops at random also where value graphs are."""

    def shares(self, demand: Demand, excess: float, most: Sequence[float]) -> Floats:
        """Return by site the share to keep, so that `excess` seconds of work per second are saved, or as many as may.

        `most` is the largest share that may be dropped, by output; nowhere is more dropped, all sites that an output
        lies behind taken together.
        """
        ...


@dataclass(frozen=True, slots=True)
class StrategyEntry:
    """A registered strategy."""

    name: str
    make: Callable[[], Strategy]
    about: str


_strategies: dict[str, StrategyEntry] = {}


def register_strategy(name: str, make: Callable[[], Strategy], about: str) -> None:
    """Make a strategy known by name."""
    _strategies[name] = StrategyEntry(name, make, about)


def registered_strategies() -> tuple[StrategyEntry, ...]:
    """Return the strategies, by name."""
    return tuple(_strategies[name] for name in sorted(_strategies))


def make_strategy(name: str) -> Strategy:
    """Return a strategy by name."""
    if name not in _strategies:
        raise PolicyError(unknown("shedding strategy", name, _strategies))
    return _strategies[name].make()
