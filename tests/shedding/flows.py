"""Small networks with rates and costs, and their load by naive forward propagation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from hypothesis import strategies as st

from headway.catalog import Topology
from headway.columns import Floats
from headway.network.qos import Graph, QoS
from headway.shedding.sites import Site, find_sites, nested
from headway.shedding.strategies import Demand


def network(inputs: Sequence[Sequence[int]], roots: Sequence[int]) -> Topology:
    """Return boxes b0, b1... from what feeds their inputs, with outputs o0, o1... and sources s0, s1..."""
    producers = tuple(tuple(dict.fromkeys(one for one in some if one >= 0)) for some in inputs)
    count = 1 + max([-1 - one for some in inputs for one in some if one < 0], default=0)
    return Topology(
        tuple(f"b{at}" for at in range(len(inputs))),
        tuple(f"s{at}" for at in range(count)),
        tuple(f"o{at}" for at in range(len(roots))),
        (QoS(),) * len(roots),
        producers,
        tuple(tuple(at for at, some in enumerate(producers) if box in some) for box in range(len(inputs))),
        tuple(tuple(at for at, some in enumerate(inputs) if -1 - source in some) for source in range(count)),
        tuple(roots),
    )


def graph(*points: tuple[float, float]) -> Graph:
    return Graph(tuple((float(x), float(y)) for x, y in points))


@dataclass(frozen=True)
class Flow:
    """A network and what flows in it. By source its rate, by box its cost per tuple and selectivity."""

    inputs: tuple[tuple[int, ...], ...]
    roots: tuple[int, ...]
    rates: tuple[float, ...]
    costs: tuple[float, ...]
    selectivity: tuple[float, ...]

    @cached_property
    def topology(self) -> Topology:
        return network(self.inputs, self.roots)

    @cached_property
    def sites(self) -> tuple[Site, ...]:
        return find_sites(self.topology, self.inputs)

    @cached_property
    def nested(self) -> tuple[tuple[int, ...], ...]:
        return nested(self.sites, self.inputs)

    @property
    def forest(self) -> bool:
        """Whether of any two sites with a common output one is nested in the other."""
        return all(
            one in self.nested[other] or other in self.nested[one]
            for one, other in combinations(range(len(self.sites)), 2)
            if set(self.sites[one].outputs) & set(self.sites[other].outputs)
        )

    def arriving(self, keep: Sequence[float] | Floats | None = None) -> dict[tuple[int, int], float]:
        """Return by input of a box the tuples per second that reach it, before what is dropped there."""
        kept = self._kept(keep)
        rates: dict[tuple[int, int], float] = {}
        out: list[float] = []
        for box, some in enumerate(self.inputs):
            for place, one in enumerate(some):
                rates[box, place] = out[one] if one >= 0 else self.rates[-1 - one]
            taken = sum(rates[box, place] * kept.get((box, place), 1.0) for place in range(len(some)))
            out.append(taken * self.selectivity[box])
        return rates

    def load(self, keep: Sequence[float] | Floats | None = None) -> float:
        """Return the seconds of work per second with shares kept by site."""
        kept = self._kept(keep)
        return sum(rate * kept.get(at, 1.0) * self.costs[at[0]] for at, rate in sorted(self.arriving(keep).items()))

    def least_kept(self, keep: Sequence[float] | Floats) -> list[float]:
        """Return by output the least share kept on any way from a source; 1 where no way is."""
        kept = self._kept(keep)
        least: list[float] = []
        for box, some in enumerate(self.inputs):
            ways = [(least[one] if one >= 0 else 1.0) * kept.get((box, at), 1.0) for at, one in enumerate(some)]
            least.append(min(ways, default=1.0))
        return [least[root] if root >= 0 else 1.0 for root in self.roots]

    def demand(
        self,
        losses: Sequence[Graph | None] | None = None,
        late: Sequence[float] | None = None,
        instead: Mapping[int, Graph] | None = None,
    ) -> Demand:
        work = [0.0] * len(self.inputs)
        for box in reversed(range(len(self.inputs))):
            behind = sum(work[at] for at, some in enumerate(self.inputs) for one in some if one == box)
            work[box] = self.costs[box] + self.selectivity[box] * behind
        arriving = self.arriving()
        rates = [sum(arriving[one.consumer, one.place] for one in site.entries) for site in self.sites]
        works = [
            sum(arriving[one.consumer, one.place] * work[one.consumer] for one in site.entries) for site in self.sites
        ]
        qos = [QoS(loss=one) for one in losses] if losses is not None else [QoS()] * len(self.roots)
        return Demand(
            self.sites,
            tuple(qos),
            np.array(rates),
            np.array([one / rate if rate else 0.0 for one, rate in zip(works, rates, strict=True)]),
            self.nested,
            self.load(),
            1.0,
            np.array(late if late is not None else [0.0] * len(self.roots)),
            losses=instead or {},
        )

    def _kept(self, keep: Sequence[float] | Floats | None) -> dict[tuple[int, int], float]:
        if keep is None:
            return {}
        return {
            (one.consumer, one.place): float(share)
            for site, share in zip(self.sites, keep, strict=True)
            for one in site.entries
        }


def fork(shared: float, left: float, right: float, rate: float = 100.0) -> Flow:
    """Return s -> b0 -> b1 -> o0 and b0 -> b2 -> o1 with costs by box. Sites: {0, 1}, {0}, {1}."""
    return Flow(((-1,), (0,), (0,)), (1, 2), (rate,), (shared, left, right), (1.0,) * 3)


def rows(*costs: float, rate: float = 100.0) -> Flow:
    """Return a source, a box and an output of their own for each cost. Sites in the same order."""
    count = len(costs)
    return Flow(tuple((-1 - at,) for at in range(count)), tuple(range(count)), (rate,) * count, costs, (1.0,) * count)


def hundredths(least: int, most: int) -> st.SearchStrategy[float]:
    return st.integers(least, most).map(lambda number: number / 100)


@st.composite
def flows(draw: st.DrawFn, widest: int = 2, least_cost: int = 0) -> Flow:
    """Return any network of up to ten boxes with up to `widest` inputs each, and outputs on some of them."""
    count = draw(st.integers(1, 10))
    inputs = tuple(tuple(draw(st.lists(st.integers(-2, box - 1), min_size=1, max_size=widest))) for box in range(count))
    roots = draw(st.lists(st.integers(-1, count - 1), min_size=1, max_size=5))
    return Flow(
        inputs,
        tuple(roots),
        tuple(draw(st.lists(hundredths(0, 1000), min_size=2, max_size=2))),
        tuple(draw(st.lists(hundredths(least_cost, 100), min_size=count, max_size=count))),
        tuple(draw(st.lists(hundredths(0, 200), min_size=count, max_size=count))),
    )


@st.composite
def graphs(draw: st.DrawFn) -> Graph | None:
    """Return any loss graph, or none."""
    shares = sorted(draw(st.sets(st.integers(0, 100), max_size=4)))
    return graph(*((share, draw(hundredths(0, 100))) for share in shares)) if shares else None


@st.composite
def sagging(draw: st.DrawFn) -> Graph:
    """Return a loss graph that becomes steeper from 100 per cent downwards, and is never level."""
    inner = sorted(draw(st.sets(st.integers(1, 99), max_size=3)), reverse=True)
    slopes = sorted(draw(st.lists(st.integers(1, 1000), min_size=len(inner) + 1, max_size=len(inner) + 1)))
    points, utility = [(100.0, 0.0)], 0.0
    for share, slope in zip([*inner, 0], slopes, strict=True):
        utility -= slope * (points[-1][0] - share)
        points.append((float(share), utility))
    return graph(*((share, 1 - one / utility) for share, one in reversed(points)))
