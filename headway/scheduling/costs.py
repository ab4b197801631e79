"""What a step costs until its tuples are delivered: the paper's cost(D(b)), for all units at once.

A tuple at a box costs what the box takes for it, and then, at every box that reads this one, what a tuple
costs there, times the tuples that this box emits for it (its selectivity). The box that emits through
several ports counts with all its tuples at each of its readers, because readings do not tell ports apart:
an upper bound.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from headway.catalog import BoxReadings, Topology
from headway.columns import Int64s, Mask
from headway.scheduling.snapshot import Floats, Unit, UnitCosts

_NARROW = 12
"""Nodes per level below which one by one is faster than level by level with arrays."""

Places = npt.NDArray[np.intp]


class CostModel:
    """Follows the tuples of every unit to its outputs.

    A unit of several boxes is a superbox: it brings tuples to its outputs by itself, so that only its own
    boxes count. Where every unit is a single box, all boxes downstream count.
    """

    def __init__(self, topology: Topology, units: Sequence[Unit]) -> None:
        """Lay out what follows what, once for a network."""
        self._plain = all(len(unit.boxes) == 1 for unit in units)
        if self._plain:
            self._box: Places = np.arange(len(topology.boxes))
            self._followers: list[tuple[int, ...]] = list(topology.consumers)
            self._own: Places = np.array([unit.boxes[0] for unit in units], np.intp)
        else:
            self._box, self._followers, self._own = _expanded(topology, units)
        self._boxless: Mask = np.array([not unit.boxes for unit in units], np.bool_)
        outputs = np.bincount([root for root in topology.roots if root >= 0], minlength=len(topology.boxes))
        self._delivers: Floats = outputs.astype(np.float64)[self._box]
        # A call's overhead is shared by those who feed it, so that a box behind two branches is not counted twice.
        feeders = np.zeros(len(self._box))
        for some in self._followers:
            for one in some:
                feeders[one] += 1
        self._share: Floats = 1.0 / np.maximum(feeders, 1.0)
        self._seen: BoxReadings | None = None  # and what followed from it:
        self._of_boxes: UnitCosts | None = None
        self._tuple: Floats = np.zeros(0)
        self._yield: Floats = np.zeros(0)
        self._call: Floats = np.zeros(0)
        self._levels = _levels(self._followers)
        self._deep = len(self._levels) * _NARROW > len(self._box)

    def read(self, boxes: BoxReadings, waiting: Int64s) -> UnitCosts:
        """Return the costs of all units; a unit's tuple costs the mean over those that wait at its boxes (`waiting`).

        Where none waits, all its boxes count alike.
        """
        if boxes is not self._seen:
            self._follow(boxes)
        if self._plain:
            assert self._of_boxes is not None
            return self._of_boxes
        weight = waiting[self._box].astype(np.float64)
        total = self._sums(weight)
        if not total.all():
            weight += np.repeat(total == 0, np.diff(self._own, append=len(weight)))
            total = self._sums(weight)
            total[self._boxless] = 1.0
        return UnitCosts(self._call, self._sums(weight * self._tuple) / total, self._sums(weight * self._yield) / total)

    def _sums(self, values: Floats) -> Floats:
        """Return by unit the sum over its boxes; 0 for a unit without boxes, which only hands a source's tuples on."""
        gaps = bool(self._boxless.any())
        sums: Floats = np.add.reduceat(np.append(values, 0.0) if gaps else values, self._own)
        if gaps:
            sums[self._boxless] = 0.0
        return sums

    def _follow(self, boxes: BoxReadings) -> None:
        """Follow tuples to the outputs, once for all plans that see the same statistics."""
        overhead, cost = boxes.overhead[self._box], boxes.cost[self._box]
        selectivity = boxes.selectivity[self._box]
        follow = self._one_by_one if self._deep else self._by_level
        overhead_down, self._tuple, self._yield = follow(overhead, cost, selectivity)
        self._seen = boxes
        if self._plain:
            own = self._own
            self._of_boxes = UnitCosts(overhead_down[own], self._tuple[own], self._yield[own])
        else:
            self._call = self._sums(overhead)

    def _by_level(self, overhead: Floats, cost: Floats, selectivity: Floats) -> tuple[Floats, Floats, Floats]:
        overhead, cost, share, yields = overhead.copy(), cost.copy(), self._share, self._delivers * selectivity
        for nodes, starts, followers in self._levels:
            cost[nodes] += selectivity[nodes] * np.add.reduceat(cost[followers], starts)
            yields[nodes] += selectivity[nodes] * np.add.reduceat(yields[followers], starts)
            if self._plain:
                overhead[nodes] += np.add.reduceat(overhead[followers] * share[followers], starts)
        return overhead, cost, yields

    def _one_by_one(self, overhead: Floats, cost: Floats, selectivity: Floats) -> tuple[Floats, Floats, Floats]:
        calls, tuples, passing = overhead.tolist(), cost.tolist(), selectivity.tolist()
        yields: list[float] = (self._delivers * selectivity).tolist()
        share: list[float] = self._share.tolist()
        for at in range(len(tuples) - 1, -1, -1):
            for follower in self._followers[at]:
                tuples[at] += passing[at] * tuples[follower]
                yields[at] += passing[at] * yields[follower]
                calls[at] += share[follower] * calls[follower]
        return np.array(calls, np.float64), np.array(tuples, np.float64), np.array(yields, np.float64)


def _expanded(topology: Topology, units: Sequence[Unit]) -> tuple[Places, list[tuple[int, ...]], Places]:
    """Return every box of every unit as a node of its own: its box, the nodes that follow it, and where units begin."""
    boxes: list[int] = []
    followers: list[tuple[int, ...]] = []
    starts: list[int] = []
    for unit in units:
        first = len(boxes)
        starts.append(first)
        node = {box: first + place for place, box in enumerate(unit.boxes)}
        boxes += unit.boxes
        followers += [tuple(node[one] for one in topology.consumers[box] if one in node) for box in unit.boxes]
    return np.array(boxes, np.intp), followers, np.array(starts, np.intp)


def _levels(followers: Sequence[tuple[int, ...]]) -> list[tuple[Places, Places, Places]]:
    """Return the nodes that have followers by their distance from the end, with the followers laid end to end."""
    distance = [0] * len(followers)
    levels: dict[int, list[int]] = {}
    for at in range(len(followers) - 1, -1, -1):
        if followers[at]:
            distance[at] = 1 + max([distance[one] for one in followers[at]])
            levels.setdefault(distance[at], []).append(at)
    made = []
    for level in sorted(levels):
        nodes = levels[level]
        lengths = [len(followers[at]) for at in nodes]
        starts = np.cumsum([0, *lengths[:-1]])
        flat = [one for at in nodes for one in followers[at]]
        made.append((np.array(nodes, np.intp), starts, np.array(flat, np.intp)))
    return made
