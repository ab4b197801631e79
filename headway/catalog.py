"""The catalog: a network's topology as numbers, and running statistics of its boxes as arrays.

Boxes, sources and outputs are numbered, so that policies work on arrays whatever the size of the network.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headway.columns import Int64s
from headway.qos import QoS

Floats = npt.NDArray[np.float64]


_FOLD_AFTER = 4096
"""Calls that may wait to be folded in, so that reports cost little and memory does not grow."""


@dataclass(frozen=True, slots=True)
class Topology:
    """Who feeds whom. Boxes stand in topological order: each after those it reads."""

    boxes: tuple[str, ...]
    sources: tuple[str, ...]
    outputs: tuple[str, ...]
    qos: tuple[QoS, ...]
    """By output: what its results are worth."""
    producers: tuple[tuple[int, ...], ...]
    """By box: the boxes that it reads."""
    consumers: tuple[tuple[int, ...], ...]
    """By box: the boxes that read it."""
    readers: tuple[tuple[int, ...], ...]
    """By source: the boxes that read it."""
    roots: tuple[int, ...]
    """By output: the box that feeds it, -1 where it is a source."""

    def downstream(self, box: int) -> tuple[tuple[int, ...], ...]:
        """Return every path from a box to an output, as boxes, itself included."""
        paths: list[tuple[int, ...]] = []
        pending: list[tuple[int, ...]] = [(box,)]
        while pending:
            path = pending.pop()
            if path[-1] in self.roots:
                paths.append(path)
            pending += [(*path, consumer) for consumer in reversed(self.consumers[path[-1]])]
        return tuple(paths)


@dataclass(frozen=True, slots=True)
class BoxReadings:
    """Statistics of all boxes at one moment, as arrays by box; what a box never did counts as nothing."""

    calls: Int64s
    tuples_in: Int64s
    tuples_out: Int64s
    busy: Int64s
    """Nanoseconds spent in the box."""
    tuple_size: Floats
    """Bytes per tuple that came in."""
    overhead: Floats
    """Seconds that one call costs before any tuple, by the running cost model."""
    cost: Floats
    """Seconds that one tuple costs, by the running cost model."""

    @property
    def selectivity(self) -> Floats:
        """Tuples out per tuple in; 1 for a box that has seen none."""
        return np.where(self.tuples_in > 0, self.tuples_out / np.maximum(self.tuples_in, 1), 1.0)


class Statistics:
    """Gathers what steps report: a list append per box call, folded into arrays when somebody looks.

    The cost model ``overhead + cost * tuples`` is a running least-squares fit over box calls; older calls
    fade, so that it follows the box.
    """

    MEMORY = 0.999
    """How much of a call's weight is left after the next call of its box."""

    def __init__(self, boxes: int) -> None:
        """Start without readings."""
        self._calls: list[tuple[int, int, int, int, int]] = []
        self._lock = threading.Lock()
        self.calls: Int64s = np.zeros(boxes, np.int64)
        self.tuples_in: Int64s = np.zeros(boxes, np.int64)
        self.tuples_out: Int64s = np.zeros(boxes, np.int64)
        self.busy: Int64s = np.zeros(boxes, np.int64)
        self.bytes_in: Int64s = np.zeros(boxes, np.int64)
        self._sized: Int64s = np.zeros(boxes, np.int64)
        self._sums: Floats = np.zeros((5, boxes))  # weight, n, t, n*n, n*t

    def report(self, box: int, tuples_in: int, tuples_out: int, nanoseconds: int, bytes_in: int) -> None:
        """Note one box call; may come from any thread. `bytes_in` is -1 where nobody measured it."""
        self._calls.append((box, tuples_in, tuples_out, nanoseconds, bytes_in))
        if len(self._calls) >= _FOLD_AFTER:
            self.fold()

    def fold(self) -> None:
        """Take what was reported into the arrays."""
        with self._lock:
            self._fold()

    def _fold(self) -> None:
        count = len(self._calls)
        if count == 0:
            return
        rows = np.array(self._calls[:count], np.int64)
        del self._calls[:count]  # others may have appended in the meantime
        box, n_in, n_out, spent, size = rows.T
        sized = size >= 0
        per_box = np.bincount(box, minlength=len(self.calls))
        self.calls += per_box
        for total, values in (
            (self.tuples_in, n_in),
            (self.tuples_out, n_out),
            (self.busy, spent),
            (self.bytes_in, np.where(sized, size, 0)),
            (self._sized, np.where(sized, n_in, 0)),
        ):
            np.add.at(total, box, values)
        self._sums *= self.MEMORY**per_box
        n, t = n_in.astype(np.float64), spent / 1e9
        for total, values in zip(self._sums, (np.ones(len(n)), n, t, n * n, n * t), strict=True):
            np.add.at(total, box, values)

    def readings(self) -> BoxReadings:
        """Return the statistics as they are now; the caller may keep them."""
        self.fold()
        overhead, cost = self._model()
        return BoxReadings(
            self.calls.copy(),
            self.tuples_in.copy(),
            self.tuples_out.copy(),
            self.busy.copy(),
            self.bytes_in / np.maximum(self._sized, 1),
            overhead,
            cost,
        )

    def _model(self) -> tuple[Floats, Floats]:
        weight, n, t, nn, nt = self._sums
        safe = np.maximum(weight, 1e-300)
        spread = nn - n * n / safe
        varied = spread > 1e-9 * np.maximum(nn, 1.0)
        slope = np.where(varied, (nt - n * t / safe) / np.where(varied, spread, 1.0), t / np.maximum(n, 1.0))
        slope = np.clip(slope, 0.0, t / np.maximum(n, 1e-300))
        return np.maximum(t - slope * n, 0.0) / safe, np.where(n > 0, slope, 0.0)


def paths_to_outputs(topology: Topology, boxes: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """Return the outputs that some boxes lead to, by box."""
    reach: list[set[int]] = [set() for _ in topology.boxes]
    for output, root in enumerate(topology.roots):
        if root >= 0:
            reach[root].add(output)
    for box in range(len(topology.boxes) - 1, -1, -1):
        for consumer in topology.consumers[box]:
            reach[box] |= reach[consumer]
    return tuple(tuple(sorted(reach[box])) for box in boxes)
