"""Paths from the sources to the last boxes, as flat arrays: the common part of Chain and MavStream's policies.

Such a policy considers a path as a whole. A tuple that enters it costs ``C1 + S1 C2 + S1 S2 C3 + ...`` seconds on its
way, and shrinks at each box from its input to its output size, until it leaves the system at the last box. Tuples that
a routing filter sends elsewhere are not on the path: its S is the selectivity times the share of the path's route. Size
over cost is the path's progress chart. A policy cuts the path into stretches and assigns a value to each; a box's
priority is the value of its stretch, the largest if it is on several.

Priorities change slowly and networks may be large, so they are cached for a while (`PathPriorities`) instead of being
computed for every plan.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import ClassVar

import numpy as np

from headway.catalog import BoxReadings, Topology
from headway.clock import SECOND
from headway.columns import Floats, Mask, ReadOnly
from headway.costs import CostModel, Places
from headway.scheduling.policy import Ranked, Term
from headway.scheduling.snapshot import Layout, Snapshot

TINY = 1e-12
"""The minimum cost of a tuple in seconds, so that boxes that were never measured count as very fast."""
PAUSE = SECOND // 20
"""Nanoseconds for which priorities are cached."""
_PLACE = 5_000
"""Nanoseconds per place for which they are cached, if that is longer: computing them must stay a small share."""
_MOST = 1_000_000
"""Places in all paths after which a new path ends where it meets an older one."""
MANY = 1e100
"""The most results per tuple, so that products along long paths stay finite."""


@dataclass(frozen=True, slots=True)
class Stretches:
    """Paths cut into stretches, in their order. All values are per tuple that enters the stretch.

    This keeps precision on long paths where tuples become very few or very many; and slopes are the same as per tuple
    that enters the path, because the cost and the freed memory scale by the same factor.
    """

    first: Places
    """By stretch: its first place."""
    begins: Mask
    """By stretch: whether a path begins with it."""
    cost: Floats
    """Seconds of work; above 0."""
    passing: Floats
    """Tuples that it emits."""
    size_in: Floats
    """Bytes of the tuple."""
    size_out: Floats
    """Bytes of a tuple that it emits; 0 where tuples leave the system."""

    @property
    def slope(self) -> Floats:
        """Bytes freed per second of work, by stretch; below 0 where tuples grow."""
        return (self.size_in - self.passing * self.size_out) / self.cost

    def steeper(self) -> Mask:
        """Return by stretch whether it frees more per second than the one before it on its path."""
        slope = self.slope
        found: Mask = np.zeros(len(slope), np.bool_)
        found[1:] = (slope[1:] > slope[:-1]) & ~self.begins[1:]
        return found

    def joined(self, joins: Mask) -> Stretches:
        """Return the stretches with some joined to the one before, which must be on the same path."""
        heads = np.flatnonzero(~joins)
        if len(heads) == len(joins):
            return self
        lengths = np.diff(heads, append=len(joins))
        ends = heads + lengths - 1
        left = self._left(np.arange(len(joins)) - np.repeat(heads, lengths), int(lengths.max()))
        return Stretches(
            self.first[heads],
            self.begins[heads],
            np.add.reduceat(left * self.cost, heads),
            np.minimum(left[ends] * self.passing[ends], MANY),
            self.size_in[heads],
            self.size_out[ends],
        )

    def _left(self, place: Places, longest: int) -> Floats:
        """Return how many tuples reach each stretch, given its position (`place`) among those joined to one."""
        left: Floats = np.append(1.0, self.passing[:-1])
        left[place == 0] = 1.0
        # Products over 1, 2, 4, ... places: few rounds even on long paths, and equal results for equal paths.
        stride = 1
        while stride < longest:
            some = np.flatnonzero(place >= stride)
            left[some] = np.minimum(left[some] * left[some - stride], MANY)
            stride *= 2
        return left


class Paths:
    """The paths of a network, concatenated; a place is a box on a path.

    From every box that reads a source a path leads to a box without consumers. At a fork it takes the first branch
    that no path has taken yet, or else the first; branches that are left over are paths of their own, from their
    first box on. So every box is on a path, and all paths together have no more places than entries times depth.
    """

    def __init__(self, topology: Topology, most: int = _MOST) -> None:
        """Find the paths, once per network. Beyond `most` places a path ends where it meets an older one."""
        self.routes = tuple(_routes(topology, most))
        lengths = np.array([len(route) for route in self.routes], np.intp)
        self.box: Places = np.array([box for route in self.routes for box in route], np.intp)
        """By place: its box."""
        starts = np.cumsum(lengths) - lengths
        self.begins: Mask = np.zeros(len(self.box), np.bool_)
        """By place: whether a path begins there."""
        self.begins[starts] = True
        self._last = starts + lengths - 1
        self._by_box = np.argsort(self.box, kind="stable")
        self._box_starts = np.searchsorted(self.box[self._by_box], np.arange(len(topology.boxes)))
        self.level: Floats = _levels(topology)
        """By box: the most boxes that a tuple can have passed before it."""
        arc = {pair: at for at, pair in enumerate(topology.arcs)}
        arcs = [at for route in self.routes for at in (*(arc[pair] for pair in pairwise(route)), -1)]
        self._arcs: Places = np.array(arcs, np.intp)  # by place: the arc to the next place of its path, -1 at its end

    def stretches(self, boxes: BoxReadings, model: CostModel | None = None) -> Stretches:
        """Return every place as a stretch of its own, from readings of the boxes and the shares of a cost model.

        Without a model all tuples of a box stay on each path. A call's overhead is left out, because it is not known
        how many tuples will share it; but it replaces a measured cost of 0. A tuple of unknown size counts as one of
        mean size, or of size 1 if no size is known.
        """
        cost = np.maximum(np.where(boxes.cost > 0, boxes.cost, boxes.overhead), TINY)[self.box]
        known = boxes.tuple_size > 0
        mean = float(boxes.tuple_size[known].mean()) if known.any() else 1.0
        size = np.where(known, boxes.tuple_size, mean)[self.box]
        after: Floats = np.append(size[1:], 0.0)
        after[self._last] = 0.0  # results leave the system
        passing = np.minimum(boxes.selectivity, MANY)[self.box]
        if model is not None:
            passing *= np.append(model.weights, 1.0)[self._arcs]
        return Stretches(np.arange(len(size)), self.begins, cost, passing, size, after[: len(size)])

    def largest(self, stretches: Stretches, values: Floats) -> Floats:
        """Return by box the largest value among the stretches that it is on."""
        if not len(self.box):
            return np.zeros(0)
        by_place = np.repeat(values, np.diff(stretches.first, append=len(self.box)))
        return np.maximum.reduceat(by_place[self._by_box], self._box_starts)


@dataclass(frozen=True, slots=True)
class PathPriorities(ReadOnly):
    """The memory of a policy over paths: the network's paths, and the priorities of its boxes as of one moment."""

    paths: Paths
    moment: int
    boxes: Floats
    """By box: its priority, above -infinity."""


class ByPath(Ranked):
    """Orders units by the largest priority of their boxes with waiting tuples; priorities derive from the boxes' paths.

    A box that has not processed a tuple yet comes before all others, so that it gets measured, unless its cost is
    declared. Ties go by how far downstream they are and by their oldest tuple.
    """

    priority: ClassVar[str]
    """The name of the priority's term."""
    oldest_first: ClassVar[bool] = False
    """Whether the oldest tuple takes precedence over how far downstream a unit is."""

    @abstractmethod
    def cut(self, single: Stretches) -> tuple[Stretches, Floats]:
        """Return the stretches of paths given box by box, and the value of each; finite, the largest comes first."""

    def priorities(self, paths: Paths, boxes: BoxReadings, model: CostModel | None = None) -> Floats:
        """Return by box its priority, as a new array."""
        return paths.largest(*self.cut(paths.stretches(boxes, model)))

    def prepare(self, snapshot: Snapshot, memory: PathPriorities | None) -> PathPriorities:
        """Return the cached priorities, or new ones if they are too old."""
        paths = snapshot.layout.once(_paths)
        pause = max(PAUSE, _PLACE * len(paths.box))
        if memory is not None and memory.paths is paths and 0 <= snapshot.now - memory.moment < pause:
            return memory
        boxes = snapshot.boxes
        priorities = self.priorities(paths, boxes, snapshot.measures.model)
        made = np.where((boxes.tuples_in > 0) | (boxes.cost > 0), priorities, np.inf)
        return PathPriorities(paths, snapshot.now, made)

    def terms(self, snapshot: Snapshot, memory: PathPriorities) -> tuple[Term, ...]:
        """Return the priority, how far downstream, and the oldest timestamp."""
        members, waiting = snapshot.layout.members, snapshot.box_waiting
        priority = Term(self.priority, members.largest(memory.boxes, waiting), largest=True)
        level = Term("level", members.largest(memory.paths.level, waiting), largest=True)
        oldest = Term("oldest", snapshot.oldest)
        return (priority, oldest, level) if self.oldest_first else (priority, level, oldest)


def _paths(layout: Layout) -> Paths:
    return Paths(layout.topology)


def _routes(topology: Topology, most: int) -> Iterator[tuple[int, ...]]:
    entries = sorted({box for some in topology.readers for box in some})
    covered = bytearray(len(topology.boxes))
    taken = [0] * len(topology.boxes)  # by box: how many of its first consumers are known to be covered
    places = 0
    for at, entry in enumerate(chain(entries, range(len(topology.boxes)))):
        if covered[entry] and (at >= len(entries) or places >= most):
            continue
        route: list[int] = []
        box = entry
        while True:
            route.append(box)
            covered[box] = 1
            consumers = topology.consumers[box]
            if not consumers:
                break
            while taken[box] < len(consumers) and covered[consumers[taken[box]]]:
                taken[box] += 1
            fresh = taken[box] < len(consumers)
            if not fresh and places + len(route) >= most:
                break
            box = consumers[taken[box] if fresh else 0]
        places += len(route)
        yield tuple(route)


def _levels(topology: Topology) -> Floats:
    level = [0] * len(topology.boxes)
    for box, producers in enumerate(topology.producers):
        level[box] = 1 + max([level[one] for one in producers], default=-1)
    return np.array(level, np.float64)
