"""Loss: the greedy walk over loss graphs. Whoever loses the least utility gives way first.

Aurora paper, section 4.5: of all outputs take the one whose loss graph has the least slope at the point where it is, go
down along it until another one has a smaller slope there, put the drop box as far upstream as no other output is hurt,
see what that saves, and so on until it is enough::

    level of an output      the share of it that it would make do with, from 1 downwards, at the least 1 - most
    level of a site         the highest level of its outputs: more than that nobody behind it needs
    keep of a site          its level / all that the sites around it keep
    own work of a site      rate * cost of the site without those of the sites that are nested directly in it
    saved                   sum over sites of own work * (1 - level)

So dropping moves upstream by itself: what all outputs behind a site have given up is dropped there, before the boxes
that they share, and only what one of them gives beyond that in its own part. Nothing is dropped where it saves nothing:
an output that hangs on a box which others read, too, keeps as much as they do. Outputs that have all their boxes in
common give way together, with the sum of their slopes.

The walk is a row of steps, one for each piece of a loss graph, least slope first. A piece that is less steep than one
above it follows that one at once. Of equal slopes that of an output that is late goes first (of two that mind equally
it is the one whose results are spoilt already), then the one with more work to gain per share, then the one whose site
stands first. Stretches that nobody minds, slope 0, are given up site by site in the same order, so that what can be
saved for nothing is saved for all outputs of a shared box at once. What is saved grows with every step, and straight
within a step between the points where levels meet: so the step, and the point in it, where it is enough are found by
halving. Equal demands give equal shares, and a little more excess changes them a little.

What is saved is exact where any two sites with a common output are nested. Where a box mixes tuples that have passed a
site with others that have not, as a join of a shared and an own stream does, dropping at both saves less than the sum:
then the walk promises too much, shares may jump from one site to another where a little more is asked for, and who
asked sees it in the load and asks for more. No output loses more than it may there either, since the shares of all
sites that it lies behind are multiplied, nested or not.
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
"""An output is late if more than this share of what it delivered lately was outside of its good zone."""

_GRAIN = 1e9
"""Slopes are compared in parts of this: what differs by rounding is equal."""
_NOTHING = 1e-12
"""Own work below this part of a site's work is what is left of rounding."""


class Greedy:
    """Drop where the least utility is lost."""

    def __init__(self) -> None:
        # The arrays of the latest sites: they stay the same from look to look, and cost more than the walk.
        self._shape: _Shape | None = None

    def shares(self, demand: Demand, excess: float, most: Sequence[float]) -> Floats:
        """Return by site the share to keep, so that `excess` is saved, or all that may be."""
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
    """What groups of outputs lose step by step; they do so together, since none of them gains alone."""

    outputs: Int64s
    """All that are in a group."""
    groups: Int64s
    """By such output: its group."""
    leaders: Int64s
    """By group: its innermost site."""
    of: Int64s
    """By piece: its group; the pieces of a group stand in the order of its walk."""
    starts: Floats
    ends: Floats
    slopes: Floats
    """Rising within a group, in whole grains."""


class _Shape:
    """Sites as arrays, those with the most outputs first: a site comes after all that stand around it."""

    def __init__(self, sites: tuple[Site, ...], nested: tuple[tuple[int, ...], ...]) -> None:
        self.sites, self.nested = sites, nested
        sizes = np.array([len(site.outputs) for site in sites], np.int64)
        order = np.argsort(-sizes, kind="stable")
        listed = order.tolist()
        self.outputs = _joined([sites[at].outputs for at in listed])
        """The outputs of all sites, one site after the other."""
        self.owners = np.repeat(order, sizes[order])
        """The sites that they belong to."""
        self._inner = _joined([nested[at] for at in listed])
        self._outer = np.repeat(order, [len(nested[at]) for at in listed])
        self._rounds = _rounds(sites, listed)
        self._latest: tuple[tuple[QoS, ...], dict[int, Graph], Int64s, _Pieces] | None = None

    def own_work(self, gains: Floats) -> Floats:
        """Return by site the work that is done there and in no site that is nested in it; 0 where it gains nothing."""
        around = np.full(len(gains), -1)
        useful = gains[self._outer] > 0
        around[self._inner[useful]] = self._outer[useful]  # the innermost comes last, and stays
        inner = np.flatnonzero((around >= 0) & (gains > 0))
        own = np.maximum(gains, 0.0)
        np.subtract.at(own, around[inner], gains[inner])
        # Measured rates and costs do not always agree; nobody works less than not at all.
        return np.where(own > _NOTHING * gains, own, 0.0)

    def keep(self, useful: npt.NDArray[np.bool_], levels: Floats) -> Floats:
        """Return by site the share to keep, such that no output gets less than its level, all sites multiplied."""
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
        """Return what outputs with an innermost site lose, those with the same one together."""
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
    """One walk over the groups, with levels by group."""

    def __init__(self, demand: Demand, shape: _Shape, gains: Floats, own: Floats, most: Sequence[float]) -> None:
        gaining = own[shape.owners] > 0
        outputs, owners = shape.outputs[gaining], shape.owners[gaining]
        innermost = np.full(len(demand.qos), -1)
        innermost[outputs] = owners  # the last one stays
        pieces = shape.pieces(demand, innermost)
        self.outputs, leaders = pieces.outputs, pieces.leaders
        # By site that gains:
        self._firsts = np.flatnonzero(np.diff(owners, prepend=-1))
        self._sizes = np.diff(self._firsts, append=len(owners))
        sites = owners[self._firsts]
        self._own = own[sites]
        place = np.zeros(len(own), np.int64)
        place[sites] = np.arange(len(sites))
        self._innermost = place[innermost[self.outputs]]
        group_of = np.zeros(len(demand.qos), np.int64)
        group_of[self.outputs] = pieces.groups
        self._members = group_of[outputs]  # one site after the other

        in_time = ~(demand.late > LATE)
        timely = np.zeros(len(leaders), np.bool_)
        np.logical_or.at(timely, pieces.groups, in_time[self.outputs])
        floors = np.zeros(len(leaders))
        np.maximum.at(floors, pieces.groups, 1.0 - np.asarray(most, np.float64)[self.outputs])
        allowed = pieces.starts > floors[pieces.of]
        of, slopes = pieces.of[allowed], pieces.slopes[allowed]
        ends = np.maximum(pieces.ends[allowed], floors[of])

        # What nobody minds, site by site.
        self._free = np.ones(len(leaders))
        self._free[of[slopes == 0]] = ends[slopes == 0]
        self._down = self._heights(self._free)
        site_timely = np.logical_or.reduceat(in_time[outputs], self._firsts)
        moving = np.flatnonzero(self._down < 1.0)
        order = moving[np.lexsort((sites[moving], -gains[sites[moving]], site_timely[moving]))]
        self._turn = np.full(len(sites), len(order))
        self._turn[order] = np.arange(len(order))
        self._free_steps = len(order)

        # What somebody minds, piece by piece.
        of, ends, slopes = of[slopes > 0], ends[slopes > 0], slopes[slopes > 0]
        steps = np.lexsort((leaders[of], -gains[leaders[of]], timely[of], slopes))
        self._step_groups, self._step_ends = of[steps], ends[steps]

    def levels(self, excess: float) -> Floats:
        """Return by output, of those that can give way, the level at which the excess is saved, or the lowest."""
        free = self.saved(self._free) >= excess
        state, count = (self._after_free, self._free_steps) if free else (self._after, len(self._step_ends))
        step = bisect_left(range(count + 1), True, key=lambda at: self.saved(state(at)) >= excess)
        found = state(count) if step > count else self._between(state(step - 1), state(step), excess)
        levels: Floats = self._heights(found)[self._innermost]
        return levels

    def saved(self, levels: Floats) -> float:
        """Return the work that is saved with groups at certain levels."""
        return float(self._own @ (1.0 - self._heights(levels)))

    def _heights(self, levels: Floats) -> Floats:
        """Return by site the highest level of its groups."""
        heights: Floats = np.maximum.reduceat(levels[self._members], self._firsts)
        return heights

    def _after_free(self, count: int) -> Floats:
        """Return the levels of groups after so many sites have given up what nobody minds."""
        done = np.repeat(self._turn < count, self._sizes)
        levels = np.ones(len(self._free))
        np.minimum.at(levels, self._members[done], np.repeat(self._down, self._sizes)[done])
        return levels

    def _after(self, count: int) -> Floats:
        """Return the levels of groups after so many pieces that somebody minds, and all before."""
        levels = self._free.copy()
        levels[self._step_groups[:count]] = self._step_ends[:count]  # a group's lowest comes last, and stays
        return levels

    def _between(self, before: Floats, after: Floats, excess: float) -> Floats:
        """Return the levels between two steps at which exactly the excess is saved."""

        def at(level: float) -> Floats:
            lowered: Floats = np.clip(level, after, before)
            return lowered

        moving = before > after
        high, low = before[moving].max(), after[moving].min()
        # Between two levels at which anybody stands, what is saved is a straight line.
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
    """Return sites in rounds: in each no output twice, and every site after those before it with a common output.

    A round is its sites, their outputs one site after the other, how many each has, and where each begins.
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
