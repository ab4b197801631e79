"""The latency graphs of all units as padded arrays, so that they are evaluated at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from headway.catalog import Topology
from headway.qos import Graph
from headway.scheduling.base import Floats, Unit


@dataclass(frozen=True)
class UnitGraphs:
    """One row for each pair of a unit and an output of it that has a latency graph, in the order of the units."""

    units: tuple[Unit, ...]
    unit: npt.NDArray[np.intp]
    """By row: its unit."""
    first: npt.NDArray[np.intp]
    """Where the rows of a unit begin, for the units that have some."""
    points: Floats
    """By row: the x of the graph's points, padded with infinity."""
    slopes: Floats
    """By row: the slope before the first point (0), between the points, and after the last (0)."""
    critical: Floats
    """By row: the critical points, and the end of the good zone; padded with infinity."""

    def slopes_and_slacks(self, latency: Floats) -> tuple[Floats, Floats]:
        """Return by unit, at a latency in seconds each: the utility lost per second, and the seconds to the next point.

        Summed over the outputs, and the least of them; 0 and infinity for units without graphs.
        """
        count = len(self.units)
        slopes: Floats = np.zeros(count)
        slacks: Floats = np.full(count, np.inf)
        if not len(self.unit):
            return slopes, slacks
        x = latency[self.unit][:, None]
        segment = np.count_nonzero(self.points <= x, axis=1)
        slope = self.slopes[np.arange(len(self.unit)), segment]
        slack = np.where(self.critical > x, self.critical - x, np.inf).min(axis=1)
        some = self.unit[self.first]
        slopes[some] = np.add.reduceat(-slope, self.first)
        slacks[some] = np.minimum.reduceat(slack, self.first)
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
    # Single precision, so that lines that are meant to be equally steep are.
    slopes = [[0.0, *(float(np.float32(slope)) for slope in _slopes(graph)), 0.0] for _, graph in rows]
    critical = [sorted({*graph.critical_points, graph.good_until}) for _, graph in rows]
    return UnitGraphs(
        units,
        unit,
        np.flatnonzero(np.diff(unit, prepend=-1)),
        _padded([[x for x, _ in graph.points] for _, graph in rows], np.inf),
        _padded(slopes, 0.0),
        _padded(critical, np.inf),
    )


def _slopes(graph: Graph) -> list[float]:
    return [(y1 - y0) / (x1 - x0) for (x0, y0), (x1, y1) in pairwise(graph.points)]


def _padded(rows: Sequence[Sequence[float]], padding: float) -> Floats:
    made: Floats = np.full((len(rows), max(map(len, rows), default=0)), padding)
    for at, row in enumerate(rows):
        made[at, : len(row)] = row
    return made
