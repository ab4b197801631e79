"""Loss: a greedy walk over the loss graphs. Outputs that lose the least utility give way first.

Aurora paper, section 4.5: take the output whose loss graph has the least slope at its current point, descend along it
until another output has a smaller slope, place the drop box as far upstream as possible without hurting other outputs,
add up the savings, and repeat until they suffice::

    level of an output      the share of its tuples that it needs, from 1 downwards, at least 1 - most
    level of a site         the highest level of its outputs: none of them needs more
    keep of a site          its level / the product of the shares kept by the sites around it
    own work of a site      rate * cost of the site without those of the sites that are nested directly in it
    saved                   sum over sites of own work * (1 - level)

So dropping moves upstream by itself: what all outputs downstream of a site have given up is dropped there, before the
boxes that they share, and only what one of them gives up beyond that at its own site. Nothing is dropped where it saves
nothing: an output of a box that others read, too, keeps as much as they do. Outputs that share all their boxes give way
together, with the sum of their slopes.

The walk is a sequence of steps, one for each piece of a loss graph, least slope first. A piece that is less steep than
one above it directly follows that one. Among equal slopes late outputs go first (their results are spoilt already),
then the one with more work to save per share, then the one whose site comes first. Pieces with slope 0, which lose no
utility, are given up site by site in the same order, so that free savings are made for all outputs of a shared box at
once. Savings grow with every step, and linearly within a step between the points where levels meet: so the step at
which they suffice, and the point in it, are found by bisection. Equal demands give equal shares, and a small change of
the excess changes them a little.

Savings are exact if any two sites with a common output are nested. Where a box mixes tuples that have passed a site
with others that have not, as a join of a shared and an own stream does, dropping at both saves less than the sum: then
the walk overestimates the savings, shares may jump from one site to another for a small change of the excess, and the
controller sees the rest of the load and asks for more. Even then no output loses more than its limit, since the shares
of all sites upstream of it are multiplied, nested or not.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from headway.columns import Floats, Int64s
from headway.network.qos import Graph, QoS
from headway.shedding.losses import Walk, loss_graph, rising, together, walk
from headway.shedding.sites import Site
from headway.shedding.strategies import Demand, register_strategy

LATE = 0.5
"""An output is late if more than this share of its recent results was outside its good zone."""

_GRAIN = 1e9
"""Slopes are rounded to multiples of 1 / _GRAIN, so that rounding errors do not make them differ."""
_NOTHING = 1e-12
"""Own work below this share of a site's work is a rounding error."""


class Greedy:
    """Drop where the least utility is lost."""

    def __init__(self) -> None:
        # A cache of the sites' arrays: sites seldom change between calls, and their arrays cost more than a walk.
        self._shape: _Shape | None = None

    def shares(self, demand: Demand, excess: float, most: Sequence[float]) -> Floats:
        """Return by site the share to keep, so that `excess` is saved, or as much as limits allow."""
        gains = np.nan_to_num(demand.rates * demand.costs, nan=0.0)
        if not excess > 0 or not (gains > 0).any():
            return np.ones(len(demand.sites))
        shape = self._shape
        if shape is None or shape.sites is not demand.sites or shape.nested is not demand.nested:
            shape = self._shape = _Shape(demand.sites, demand.nested)
        own = shape.own_work(gains)
        levels = np.ones(len(demand.qos))
        if own.any():
            descent = _Descent(demand, shape, gains, own, most)
            levels[descent.outputs] = descent.levels(excess)
        return shape.keep(gains > 0, levels)


class _Pieces(NamedTuple):
    """The walks of groups of outputs. The outputs of a group give way together, since alone none would save work."""

    outputs: Int64s
    """All outputs that are in a group."""
    groups: Int64s
    """By entry of `outputs`: its group."""
    leaders: Int64s
    """By group: its innermost site."""
    of: Int64s
    """By piece: its group; the pieces of a group are in the order of its walk."""
    starts: Floats
    ends: Floats
    slopes: Floats
    """Ascending within a group, as multiples of 1 / _GRAIN."""


class _Shape:
    """Sites as arrays, those with the most outputs first: a site comes after all sites that it is nested in."""

    def __init__(self, sites: tuple[Site, ...], nested: tuple[tuple[int, ...], ...]) -> None:
        self.sites, self.nested = sites, nested
        sizes = np.array([len(site.outputs) for site in sites], np.int64)
        order = np.argsort(-sizes, kind="stable")
        listed = order.tolist()
        self.outputs = _joined([sites[at].outputs for at in listed])
        """The outputs of all sites, site by site."""
        self.owners = np.repeat(order, sizes[order])
        """By entry of `outputs`: its site."""
        self._inner = _joined([nested[at] for at in listed])
        self._outer = np.repeat(order, [len(nested[at]) for at in listed])
        self._rounds = _rounds(sites, listed)
        self._latest: tuple[tuple[QoS, ...], dict[int, Graph], Int64s, _Pieces] | None = None

    def own_work(self, gains: Floats) -> Floats:
        """Return by site the work that is not part of a site nested in it; 0 if dropping there saves nothing."""
        around = np.full(len(gains), -1)
        useful = gains[self._outer] > 0
        around[self._inner[useful]] = self._outer[useful]  # the innermost comes last and overwrites the others
        inner = np.flatnonzero((around >= 0) & (gains > 0))
        own = np.maximum(gains, 0.0)
        np.subtract.at(own, around[inner], gains[inner])
        # Measured rates and costs may be inconsistent, but work is never below 0.
        return np.where(own > _NOTHING * gains, own, 0.0)

    def keep(self, useful: npt.NDArray[np.bool_], levels: Floats) -> Floats:
        """Return by site the share to keep, such that for no output the product over its sites is below its level."""
        keep = np.ones(len(self.sites))
        so_far = np.ones(len(levels))
        for sites, outputs, sizes, firsts in self._rounds:
            before = so_far[outputs]
            wanted = np.divide(levels[outputs], before, out=np.ones(len(before)), where=before > 0)
            shares = np.minimum(np.maximum.reduceat(wanted, firsts), 1.0)
            shares[~useful[sites]] = 1.0
            keep[sites] = shares
            so_far[outputs] = before * np.repeat(shares, sizes)
        return keep

    def pieces(self, demand: Demand, innermost: Int64s) -> _Pieces:
        """Return the pieces for outputs that have an innermost site, grouped by that site; cached."""
        latest = self._latest
        if (
            latest is None
            or latest[0] is not demand.qos
            or latest[1] != demand.losses
            or not np.array_equal(latest[2], innermost)
        ):
            latest = self._latest = (demand.qos, dict(demand.losses), innermost, _pieces(demand, innermost))
        return latest[3]


class _Descent:
    """One walk over the groups; levels are by group."""

    def __init__(self, demand: Demand, shape: _Shape, gains: Floats, own: Floats, most: Sequence[float]) -> None:
        gaining = own[shape.owners] > 0
        outputs, owners = shape.outputs[gaining], shape.owners[gaining]
        innermost = np.full(len(demand.qos), -1)
        innermost[outputs] = owners  # the last one overwrites the others
        pieces = shape.pieces(demand, innermost)
        self.outputs, leaders = pieces.outputs, pieces.leaders
        # By site where dropping saves work:
        self._firsts = np.flatnonzero(np.diff(owners, prepend=-1))
        self._sizes = np.diff(self._firsts, append=len(owners))
        sites = owners[self._firsts]
        self._own = own[sites]
        place = np.zeros(len(own), np.int64)
        place[sites] = np.arange(len(sites))
        self._innermost = place[innermost[self.outputs]]
        group_of = np.zeros(len(demand.qos), np.int64)
        group_of[self.outputs] = pieces.groups
        self._members = group_of[outputs]  # site by site

        in_time = ~(demand.late > LATE)
        timely = np.zeros(len(leaders), np.bool_)
        np.logical_or.at(timely, pieces.groups, in_time[self.outputs])
        floors = np.zeros(len(leaders))
        np.maximum.at(floors, pieces.groups, 1.0 - np.asarray(most, np.float64)[self.outputs])
        allowed = pieces.starts > floors[pieces.of]
        of, slopes = pieces.of[allowed], pieces.slopes[allowed]
        ends = np.maximum(pieces.ends[allowed], floors[of])

        # Pieces of slope 0, site by site.
        self._free = np.ones(len(leaders))
        self._free[of[slopes == 0]] = ends[slopes == 0]
        self._down = self._heights(self._free)
        site_timely = np.logical_or.reduceat(in_time[outputs], self._firsts)
        moving = np.flatnonzero(self._down < 1.0)
        order = moving[np.lexsort((sites[moving], -gains[sites[moving]], site_timely[moving]))]
        self._turn = np.full(len(sites), len(order))
        self._turn[order] = np.arange(len(order))
        self._free_steps = len(order)

        # Pieces that lose utility, one by one.
        of, ends, slopes = of[slopes > 0], ends[slopes > 0], slopes[slopes > 0]
        steps = np.lexsort((leaders[of], -gains[leaders[of]], timely[of], slopes))
        self._step_groups, self._step_ends = of[steps], ends[steps]

    def levels(self, excess: float) -> Floats:
        """Return, by output that can give way, the level at which the excess is saved, or the lowest one allowed."""
        free = self.saved(self._free) >= excess
        state, count = (self._after_free, self._free_steps) if free else (self._after, len(self._step_ends))
        step = bisect_left(range(count + 1), True, key=lambda at: self.saved(state(at)) >= excess)
        found = state(count) if step > count else self._between(state(step - 1), state(step), excess)
        levels: Floats = self._heights(found)[self._innermost]
        return levels

    def saved(self, levels: Floats) -> float:
        """Return the work saved with the groups at these levels."""
        return float(self._own @ (1.0 - self._heights(levels)))

    def _heights(self, levels: Floats) -> Floats:
        """Return by site the highest level of its groups."""
        heights: Floats = np.maximum.reduceat(levels[self._members], self._firsts)
        return heights

    def _after_free(self, count: int) -> Floats:
        """Return the groups' levels after the first `count` sites have given up their pieces of slope 0."""
        done = np.repeat(self._turn < count, self._sizes)
        levels = np.ones(len(self._free))
        np.minimum.at(levels, self._members[done], np.repeat(self._down, self._sizes)[done])
        return levels

    def _after(self, count: int) -> Floats:
        """Return the groups' levels after all pieces of slope 0 and the first `count` others."""
        levels = self._free.copy()
        levels[self._step_groups[:count]] = self._step_ends[:count]  # a group's lowest comes last and overwrites others
        return levels

    def _between(self, before: Floats, after: Floats, excess: float) -> Floats:
        """Return the levels between two steps at which exactly the excess is saved."""

        def at(level: float) -> Floats:
            lowered: Floats = np.clip(level, after, before)
            return lowered

        moving = before > after
        high, low = before[moving].max(), after[moving].min()
        # Between neighbouring levels of any groups, savings are linear.
        marks = np.unique(np.concatenate([before, after]))
        marks = marks[(marks >= low) & (marks <= high)][::-1].tolist()
        enough: Callable[[float], bool] = lambda level: self.saved(at(level)) >= excess  # noqa: E731
        place = min(max(bisect_left(marks, True, key=enough), 1), len(marks) - 1)
        upper, lower = marks[place - 1], marks[place]
        least, most = self.saved(at(upper)), self.saved(at(lower))
        part = (excess - least) / (most - least) if most > least else 1.0
        return at(upper + (lower - upper) * min(max(part, 0.0), 1.0))


def _pieces(demand: Demand, innermost: Int64s) -> _Pieces:
    outputs = np.flatnonzero(innermost >= 0)
    leaders, groups = np.unique(innermost[outputs], return_inverse=True)
    walks: list[list[Walk]] = [[] for _ in leaders]
    for output, group in zip(outputs.tolist(), groups.tolist(), strict=True):
        walks[group].append(walk(loss_graph(demand.qos, output, demand.losses)))
    steps = [rising(together(some)) for some in walks]
    of = np.repeat(np.arange(len(steps)), [len(one) for one in steps])
    starts, ends, slopes = np.array(list(chain.from_iterable(steps)), np.float64).T
    return _Pieces(outputs, groups, leaders, of, starts, ends, np.round(slopes * _GRAIN))


def _rounds(sites: Sequence[Site], order: Sequence[int]) -> list[tuple[Int64s, Int64s, Int64s, Int64s]]:
    """Split sites into rounds without a repeated output; sites with a common output keep their order.

    A round is its sites, their outputs site by site, the number of outputs of each site, and the index of its first.
    """
    rounds: list[list[int]] = []
    depths: dict[int, int] = {}
    for at in order:
        outputs = sites[at].outputs
        depth = max([depths.get(one, 0) for one in outputs])
        depths.update(dict.fromkeys(outputs, depth + 1))
        if depth == len(rounds):
            rounds.append([])
        rounds[depth].append(at)
    made: list[tuple[Int64s, Int64s, Int64s, Int64s]] = []
    for some in rounds:
        sizes = np.array([len(sites[at].outputs) for at in some], np.int64)
        made.append((np.array(some), _joined([sites[at].outputs for at in some]), sizes, np.cumsum(sizes) - sizes))
    return made


def _joined(rows: Sequence[Sequence[int]]) -> Int64s:
    return np.fromiter(chain.from_iterable(rows), np.int64)


register_strategy("loss", Greedy, "outputs with the least slope of their loss graphs give way first (Aurora)")
