"""Gradient- and slack-latency graphs: in which bucket a unit is at a latency, and how long it stays there.

After Carney et al., "Operator Scheduling in a Data Stream Manager" (VLDB 2003), section 6.2. The plane of
utility and slack (see `slope_slack`) is cut into buckets, `gradients` times `slacks`, which are numbered in the
order in which they are served: by utility from the largest down, then by slack from the least up.

- Utilities run from 0, or from the least where a graph rises, to the steepest of all graphs.
- Slacks run from 0 to the largest critical point. The last bucket is for units without one ahead (slack
  infinite), which have nothing left to miss, unless there is only one.

For each distinct set of graphs the latencies are laid out once at which the gradient's bucket or the next
critical point changes. Within such a range slack falls by a second a second, so that the slack's bucket, and
when it changes, follow from a division; a table of all changes would be as long as there are slacks, and no faster.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from headway.catalog import Topology
from headway.qos import Graph
from headway.scheduling.graphs import critical_latencies, padded, slopes
from headway.scheduling.snapshot import Floats, Unit

Places = npt.NDArray[np.intp]


class Ranges(NamedTuple):
    """What a set of graphs says, by range of latency: one more than there are ends between them."""

    ends: list[float]
    """The latencies at which a range ends, ascending; the range that begins there includes it."""
    first: list[int]
    """The first bucket of the gradient: the one of the least slack."""
    critical: list[float]
    """The next critical point, infinite where there is none."""


@dataclass(frozen=True)
class BucketGraphs:
    """The ranges of all units: one by one for `place`, and as padded arrays for `places`."""

    units: tuple[Unit, ...]
    slacks: int
    largest: int
    """The last of the buckets for finite slacks."""
    width: float
    """Seconds of slack in a bucket."""
    ranges: tuple[Ranges, ...]
    """By distinct set of graphs."""
    kind: list[int]
    """By unit: which of them is its own."""
    kinds: Places
    ends: Floats
    """By end, then by set of graphs: padded with infinity."""
    first: Places
    """By range, then by set of graphs; so is the next."""
    critical: Floats

    def place(self, unit: int, latency: float) -> tuple[int, float]:
        """Return a unit's bucket at an expected output latency, and in how many seconds it changes (may be never)."""
        ends, first, critical = self.ranges[self.kind[unit]]
        at = bisect_right(ends, latency)
        until = ends[at] if at < len(ends) else math.inf
        point = critical[at]
        if point == math.inf:
            return first[at] + self.slacks - 1, until - latency
        width, largest = self.width, self.largest
        slack = min(max(math.ceil((point - latency) / width) - 1, 0), largest)
        # The quotient may be off by a rounding: the edges decide, so that a bucket never ends before it begins.
        while slack > 0 and point - slack * width <= latency:
            slack -= 1
        while slack < largest and point - (slack + 1) * width > latency:
            slack += 1
        if slack > 0:
            until = min(until, point - slack * width)
        return first[at] + slack, until - latency

    def places(self, units: Places, latency: Floats) -> Places:
        """Return the buckets of some units at an expected output latency each."""
        kind = self.kinds[units]
        place = kind.copy()
        for ends in self.ends:
            place += (ends.take(kind) <= latency) * len(ends)
        point = self.critical.take(place)
        finite = point < np.inf
        point = np.where(finite, point, 0.0)
        width, largest = self.width, self.largest
        slack = np.clip(np.ceil((point - latency) / width) - 1, 0, largest)
        slack -= (slack > 0) & (point - slack * width <= latency)
        slack += (slack < largest) & (point - (slack + 1) * width > latency)
        placed: Places = self.first.take(place) + np.where(finite, slack, self.slacks - 1).astype(np.intp)
        return placed


def bucket_graphs(topology: Topology, units: tuple[Unit, ...], gradients: int, slacks: int) -> BucketGraphs:
    """Lay the ranges out, once for a network."""
    numbers: dict[tuple[Graph, ...], int] = {}
    kind = [numbers.setdefault(_graphs(topology, unit), len(numbers)) for unit in units]
    steps = [_steps(graphs) for graphs in numbers]
    utilities = [utility for _, some, _ in steps for utility in some]
    least, most = min(utilities, default=0.0), max(utilities, default=0.0)
    largest = max([point for _, _, points in steps for point in points if point < math.inf], default=0.0)
    width = largest / max(1, slacks - 1) or 1.0
    ranges = []
    for ends, some, points in steps:
        first = []
        for utility in some:
            bucket = int((utility - least) / (most - least) * gradients) if most > least else 0
            first.append((gradients - 1 - min(bucket, gradients - 1)) * slacks)
        ranges.append(_merged(ends, first, points if slacks > 1 else [math.inf] * len(points)))
    return BucketGraphs(
        units,
        slacks,
        max(0, slacks - 2),
        width,
        tuple(ranges),
        kind,
        np.array(kind, np.intp),
        padded([one.ends for one in ranges], np.inf),
        padded([one.first for one in ranges], 0).astype(np.intp),
        padded([one.critical for one in ranges], np.inf),
    )


def _graphs(topology: Topology, unit: Unit) -> tuple[Graph, ...]:
    found = [graph for output in unit.outputs if (graph := topology.qos[output].latency) is not None]
    return tuple(sorted(found, key=lambda graph: graph.points))


def _steps(graphs: tuple[Graph, ...]) -> tuple[list[float], list[float], list[float]]:
    """Return where ranges end, and by range the utility and the next critical point of some graphs together."""
    points = [[x for x, _ in graph.points] for graph in graphs]
    steep = [slopes(graph) for graph in graphs]
    critical = sorted({x for graph in graphs for x in critical_latencies(graph) if x < math.inf})
    ends = sorted({x for some in points for x in some} | set(critical))
    utilities, following = [], []
    for begin in (-math.inf, *ends):
        utilities.append(sum([-slope[bisect_right(xs, begin)] for xs, slope in zip(points, steep, strict=True)], 0.0))
        at = bisect_right(critical, begin)
        following.append(critical[at] if at < len(critical) else math.inf)
    return ends, utilities, following


def _merged(ends: list[float], first: list[int], critical: list[float]) -> Ranges:
    """Return the ranges without the ends at which nothing changes."""
    kept = [at for at in range(len(ends)) if (first[at], critical[at]) != (first[at + 1], critical[at + 1])]
    rest = [0, *(at + 1 for at in kept)]
    return Ranges([ends[at] for at in kept], [first[at] for at in rest], [critical[at] for at in rest])
