"""The latency graphs of all units as arrays, for vectorised slopes, slacks and good zones."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from headway.columns import NEVER, Floats, Int64s, Mask, ReadOnly, frozen
from headway.costs import Places
from headway.network.qos import Graph
from headway.scheduling.snapshot import Layout

DEFAULT_GOOD = 1.0
"""The end of the good zone, in seconds, of an output without a latency graph, or with one that never falls.

Half of it is used for waiting: to people who watch results half a second is immediate, and half a second of arrivals
amortises even the fixed cost of steps that take tens of milliseconds to start.
"""


@dataclass(frozen=True, slots=True)
class UnitGraphs(ReadOnly):
    """One row for each pair of a unit and an output of it that has a latency graph, in the order of the units."""

    unit: Places
    """By row: its unit."""
    first: Places
    """The first row of each unit that has rows."""
    points: Floats
    """By point, then by row: the x of the graph's points, padded with infinity."""
    slopes: Floats
    """By segment, then by row: the slope before the first point (0), between the points, and after the last (0)."""
    critical: Floats
    """By segment, then by row: the next critical point or end of the good zone, infinite if there is none."""
    single: bool
    """Whether each unit has exactly one row."""

    def slopes_and_slacks(self, latency: Floats) -> tuple[Floats, Floats]:
        """Return the utility lost per second, and the seconds to the next critical point, by unit at its latency (s).

        The first is the sum over the unit's outputs, the second the minimum; 0 and infinity for units without graphs.
        `latency` may have several rows, each with one latency per unit.
        """
        rows = len(self.unit)
        if self.single:
            x = latency
        elif not rows:
            return np.zeros(latency.shape), np.full(latency.shape, np.inf)
        else:
            x = latency[..., self.unit]
        place = np.arange(rows) + np.zeros(x.shape, np.intp)
        for points in self.points:  # graphs have few points, so this is faster than a search per row
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


def unit_graphs(layout: Layout) -> UnitGraphs:
    """Build the arrays."""
    rows = [
        (at, graph)
        for at, unit in enumerate(layout.units)
        for output in unit.outputs
        if (graph := layout.topology.qos[output].latency) is not None
    ]
    unit = np.array([at for at, _ in rows], np.intp)
    distinct = {graph for _, graph in rows}
    said = {}
    for graph in distinct:
        xs = [x for x, _ in graph.points]
        said[graph] = xs, slopes(graph), following(critical_latencies(graph), xs)
    points, slope, critical = ([said[graph][at] for _, graph in rows] for at in range(3))
    return UnitGraphs(
        unit,
        np.flatnonzero(np.diff(unit, prepend=-1)),
        padded(points, np.inf),
        padded(slope, 0.0),
        padded(critical, np.inf),
        np.array_equal(unit, np.arange(len(layout.units))),
    )


def slopes(graph: Graph) -> list[float]:
    """Return the slope before the first point (0), between the points, and after the last (0)."""
    # Single precision, so that lines that are meant to be equally steep compare equal.
    between = [float(np.float32((y1 - y0) / (x1 - x0))) for (x0, y0), (x1, y1) in pairwise(graph.points)]
    return [0.0, *between, 0.0]


def critical_latencies(graph: Graph) -> list[float]:
    """Return the critical points and the end of the good zone, which may be infinite, in ascending order."""
    return sorted({*graph.critical_points, graph.good_until})


def following(critical: Sequence[float], ends: Iterable[float]) -> list[float]:
    """Return the next critical latency of each range between `ends`; infinite if there is none."""
    return [min([x for x in critical if x > begin], default=math.inf) for begin in (-math.inf, *ends)]


def padded(rows: Sequence[Sequence[float]], padding: float) -> Floats:
    """Return rows of different lengths as the columns of an array, filled up at their ends."""
    made: Floats = np.full((len(rows), max(map(len, rows), default=0)), padding)
    for at, row in enumerate(rows):
        made[at, : len(row)] = row
    return np.ascontiguousarray(made.T)


@dataclass(frozen=True, slots=True)
class Zones(ReadOnly):
    """The good zones of the units' outputs, in seconds."""

    ends: Floats
    """By output, with a last entry for units without outputs: the end of the good zone by its graph."""
    graded: Mask
    """By output, with the same last entry: whether it has a graph."""
    outputs: Int64s
    """The outputs of all units, unit by unit."""
    starts: Int64s
    """By unit: the index of its first output in `outputs`."""
    bound: Floats
    """By unit: the shortest timeout of its windows; infinite if they have none."""

    def reduce(self, how: np.ufunc, values: Floats) -> Floats:
        """Return by unit the values of its outputs, combined by a function; a last value is for units without any."""
        return how.reduceat(values[self.outputs], self.starts) if len(self.starts) else np.zeros(0)

    def oldest(self, stamps: Int64s) -> Int64s:
        """Return by output the smallest stamp of the units that lead to it; NEVER if no unit does."""
        oldest = np.full(len(self.ends), NEVER)
        np.minimum.at(oldest, self.outputs, np.repeat(stamps, np.diff(self.starts, append=len(self.outputs))))
        return oldest[:-1]

    def patience(self, held: Floats) -> tuple[Floats, Floats]:
        """Return by unit the seconds that its tuples may take, and the smallest such value among all other units.

        That is the end of the shortest good zone among its outputs, less the time for which windows hold tuples anyway
        (`held`, by output), and at most the timeout of its windows. Nothing is subtracted for outputs without a graph,
        or late regardless (held beyond their good zone), which need not be hurried.
        """
        inside = np.zeros(len(self.ends))
        inside[: len(held)] = held
        ends = np.where(self.graded & (inside < self.ends), self.ends - inside, self.ends)
        good = np.minimum(self.reduce(np.minimum, ends), self.bound)
        others: Floats = np.full(len(good), np.inf)
        if len(good) > 1:
            shortest = int(np.argmin(good))
            others[:] = good[shortest]
            others[shortest] = np.partition(good, 1)[1]
        return frozen(good), frozen(others)


def unit_zones(layout: Layout) -> Zones:
    """Return the good zones of all units."""
    topology, units = layout.topology, layout.units
    graphs, times = [qos.latency for qos in topology.qos], topology.timeouts
    good = [math.inf if graph is None else graph.good_until for graph in graphs]
    ends = [DEFAULT_GOOD if end == math.inf else max(0.0, end) for end in good]
    graded = np.array([*(graph is not None for graph in graphs), False], np.bool_)
    outputs = [list(unit.outputs) or [len(ends)] for unit in units]
    flat = np.array([output for some in outputs for output in some], np.int64)
    starts = np.cumsum([0, *(len(some) for some in outputs[:-1])])[: len(units)]
    bound = np.array([min([math.inf, *(times[box] for box in unit.boxes if times)]) for unit in units], np.float64)
    return Zones(np.array([*ends, DEFAULT_GOOD]), graded, flat, starts, bound)
