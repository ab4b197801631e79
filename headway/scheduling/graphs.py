"""The latency graphs of all units as arrays, so that they are evaluated at once: slopes, slacks and good zones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from headway.catalog import Topology
from headway.columns import Int64s, Mask
from headway.network.qos import Graph
from headway.scheduling.snapshot import Floats, Unit

DEFAULT_GOOD = 1.0
"""Seconds until which an output without a latency graph, or with one that never falls, counts as good.

Somebody who looks at results takes half a second for at once, and half a second of arrivals shares out the
fixed costs even of steps that take tens of milliseconds to start.
"""


@dataclass(frozen=True)
class UnitGraphs:
    """One row for each pair of a unit and an output of it that has a latency graph, in the order of the units."""

    units: tuple[Unit, ...]
    unit: npt.NDArray[np.intp]
    """By row: its unit."""
    first: npt.NDArray[np.intp]
    """Where the rows of a unit begin, for the units that have some."""
    points: Floats
    """By point, then by row: the x of the graph's points, padded with infinity."""
    slopes: Floats
    """By segment, then by row: the slope before the first point (0), between the points, and after the last (0)."""
    critical: Floats
    """By segment, then by row: the next critical point or end of the good zone, infinite where there is none."""

    @cached_property
    def single(self) -> bool:
        """Whether each unit has just one row."""
        return np.array_equal(self.unit, np.arange(len(self.units)))

    def slopes_and_slacks(self, latency: Floats) -> tuple[Floats, Floats]:
        """Return by unit, at a latency in seconds each: the utility lost per second, and the seconds to the next point.

        Summed over the outputs, and the least of them; 0 and infinity for units without graphs. Several latencies of
        each unit may be given at once, as rows.
        """
        rows = len(self.unit)
        if self.single:
            x = latency
        elif not rows:
            return np.zeros(latency.shape), np.full(latency.shape, np.inf)
        else:
            x = latency[..., self.unit]
        place = np.arange(rows) + np.zeros(x.shape, np.intp)
        for points in self.points:  # few, and faster one after the other than row by row
            place += (points <= x) * rows
        slope = self.slopes.take(place)
        slack: Floats = self.critical.take(place) - x
        if self.single:
            return np.negative(slope, slope), slack
        slopes: Floats = np.zeros(latency.shape)
        slacks: Floats = np.full(latency.shape, np.inf)
        some = self.unit[self.first]
        slopes[..., some] = np.add.reduceat(-slope, self.first, axis=-1)
        slacks[..., some] = np.minimum.reduceat(slack, self.first, axis=-1)
        return slopes, slacks


def unit_graphs(topology: Topology, units: tuple[Unit, ...]) -> UnitGraphs:
    """Lay the graphs out, once for a network."""
    rows = [
        (at, graph)
        for at, unit in enumerate(units)
        for output in unit.outputs
        if (graph := topology.qos[output].latency) is not None
    ]
    unit = np.array([at for at, _ in rows], np.intp)
    distinct = {graph for _, graph in rows}
    said = {graph: ([x for x, _ in graph.points], slopes(graph), _following(graph)) for graph in distinct}
    points, slope, critical = ([said[graph][at] for _, graph in rows] for at in range(3))
    return UnitGraphs(
        units,
        unit,
        np.flatnonzero(np.diff(unit, prepend=-1)),
        padded(points, np.inf),
        padded(slope, 0.0),
        padded(critical, np.inf),
    )


def slopes(graph: Graph) -> list[float]:
    """Return the slope before the first point (0), between the points, and after the last (0)."""
    # Single precision, so that lines that are meant to be equally steep are.
    between = [float(np.float32((y1 - y0) / (x1 - x0))) for (x0, y0), (x1, y1) in pairwise(graph.points)]
    return [0.0, *between, 0.0]


def critical_latencies(graph: Graph) -> list[float]:
    """Return the critical points, and the end of the good zone, which may be infinite; ascending."""
    return sorted({*graph.critical_points, graph.good_until})


def _following(graph: Graph) -> list[float]:
    """Return by segment the next critical latency."""
    critical = critical_latencies(graph)
    begins = (-math.inf, *[x for x, _ in graph.points])
    return [min([x for x in critical if x > begin], default=math.inf) for begin in begins]


def padded(rows: Sequence[Sequence[float]], padding: float) -> Floats:
    """Return rows of different lengths as the columns of an array, filled up at their ends."""
    made: Floats = np.full((len(rows), max(map(len, rows), default=0)), padding)
    for at, row in enumerate(rows):
        made[at, : len(row)] = row
    return np.ascontiguousarray(made.T)


@dataclass(frozen=True, slots=True)
class Zones:
    """How long the units' outputs are good, in seconds, by unit."""

    units: tuple[Unit, ...]
    good: Floats
    """How long the unit's tuples may take: the end of the shortest good zone among its outputs, less the time for
    which its windows hold them anyway; no longer than its windows take to time out."""
    others: Floats
    """The same among all other units, infinite where there is none."""
    held: Floats
    """By output: how long its windows hold tuples, of which that is so."""
    ends: Floats
    """By output, and once more for units without any: the end of the good zone as its graph has it."""
    graded: Mask
    """By output, and once more: whether it has a graph."""
    outputs: Int64s
    """The outputs of all units, one unit after the other."""
    starts: Int64s
    """By unit: where its outputs begin there."""
    bound: Floats
    """By unit: the shortest time after which its windows time out."""

    def with_held(self, held: Floats) -> Zones:
        """Return the zones for somebody who waits, where windows hold tuples for so long anyway; also timeouts count.

        What is late whatever one does (held for longer than it is good) is not hurried.
        """
        inside = np.zeros(len(self.ends))
        inside[: len(held)] = held
        ends = np.where(self.graded & (inside < self.ends), self.ends - inside, self.ends)
        good: Floats = np.minimum.reduceat(ends[self.outputs], self.starts) if self.units else np.zeros(0)
        good = np.minimum(good, self.bound)
        return replace(self, good=good, others=_others(good), held=held)


def unit_zones(topology: Topology, units: tuple[Unit, ...]) -> Zones:
    """Return the good zones of all units, as they stand in the graphs."""
    ends = []
    for qos in topology.qos:
        end = float("inf") if qos.latency is None else qos.latency.good_until
        ends.append(DEFAULT_GOOD if end == float("inf") else max(0.0, end))
    found: Floats = np.array([*ends, DEFAULT_GOOD])
    graded = np.array([*(qos.latency is not None for qos in topology.qos), False], np.bool_)
    outputs = [list(unit.outputs) or [len(ends)] for unit in units]
    flat = np.array([output for some in outputs for output in some], np.int64)
    starts = np.cumsum([0, *(len(some) for some in outputs[:-1])])[: len(units)]
    good: Floats = np.minimum.reduceat(found[flat], starts) if units else np.zeros(0)
    times = topology.timeouts
    # A policy may ask for outputs as if they were units: these have no boxes.
    bound = np.array([min([math.inf, *(times[box] for box in unit.boxes if times)]) for unit in units], np.float64)
    return Zones(units, good, _others(good), np.zeros(0), found, graded, flat, starts, bound)


def _others(good: Floats) -> Floats:
    """Return by unit the shortest good zone among all others, infinite where there is none."""
    others: Floats = np.full(len(good), np.inf)
    if len(good) > 1:
        shortest = int(np.argmin(good))
        others[:] = good[shortest]
        others[shortest] = np.partition(good, 1)[1]
    return others
