"""Which values an output has delivered lately, and how often: the histogram behind shedding by value.

A ring of the latest values is the whole memory; intervals are read from it when somebody asks. Their edges are
quantiles, so that each holds about as many values, together with the points of a graph, so that utility is a straight
line within each: the utility at an interval's mean value is then exactly the mean utility of its values.
(Aurora, section 4.5, semantic load shedding.)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headway.columns import Indices, Mask
from headway.qos import Graph

Floats = npt.NDArray[np.float64]

CAPACITY = 4096
"""Values that a histogram holds."""
INTERVALS = 64
"""Intervals of about as many values each, beside those that a graph's points cut off."""
_EACH = 8
"""Values that such an interval has at least: fewer say nothing."""
_LARGEST = 1e300


@dataclass(frozen=True, slots=True, eq=False)
class Bins:
    """Intervals of values as a sieve has them: below the first edge, from each edge to the next, from the last on."""

    edges: Floats
    """Ascending, each once, finite; there is one interval more than edges."""
    counts: Floats
    """By interval: how many values lie in it."""
    means: Floats
    """By interval: their mean, or a value of the interval where it has none."""
    unknown: float = 0.0
    """How many values were NULL or NaN."""

    @property
    def total(self) -> float:
        """All that was counted, the unknown too."""
        return float(self.counts.sum()) + self.unknown

    def places(self, values: Floats) -> Indices:
        """Return in which interval each value lies; NaN falls into the last."""
        return places(self.edges, values)

    def average(self, values: Floats, of: Floats) -> Floats:
        """Return by interval the mean of something that is known `of` each value; NaN where there is no value."""
        known = ~np.isnan(values)
        at = self.places(values[known])
        counts = np.bincount(at, minlength=len(self.counts))
        sums = np.bincount(at, weights=of[known], minlength=len(self.counts))
        averages: Floats = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
        return averages


def places(edges: Floats, values: Floats) -> Indices:
    """Return in which of the intervals between edges each value lies."""
    found: Indices = np.searchsorted(edges, values, side="right")
    return found


def bin_values(values: Floats, points: Floats | None = None) -> Bins:
    """Return intervals of some values: cut at their quantiles and at `points`. NaN counts as unknown."""
    # Infinite values would make a mean NaN where both signs meet; the largest numbers do as well.
    known = np.clip(values[~np.isnan(values)], -_LARGEST, _LARGEST)
    edges = quantile_edges(known)
    if points is not None:
        edges = np.union1d(edges, points)
    edges = edges[np.abs(edges) < _LARGEST]
    at = places(edges, known)
    counts = np.bincount(at, minlength=len(edges) + 1).astype(np.float64)
    sums = np.bincount(at, weights=known, minlength=len(edges) + 1)
    low, high = np.concatenate(([-_LARGEST], edges)), np.concatenate((np.nextafter(edges, -np.inf), [_LARGEST]))
    inner = low / 2 + high / 2
    if len(edges):  # an interval with an open end has its edge as a sample, or what is just below it
        inner[0], inner[-1] = high[0], low[-1]
    means = np.where(counts > 0, sums / np.maximum(counts, 1), inner)
    return Bins(edges, counts, np.clip(means, low, high), float(len(values) - len(known)))


def quantile_edges(known: Floats) -> Floats:
    """Return edges between which about as many values lie; a value that is very frequent has an interval of its own."""
    count = len(known)
    parts = min(INTERVALS, count // _EACH)
    if parts < 2:
        return np.zeros(0)
    ordered = np.sort(known)
    cuts, times = np.unique(ordered[np.arange(1, parts) * count // parts], return_counts=True)
    return np.union1d(cuts, np.nextafter(cuts[times > 1], np.inf))


class Histogram:
    """The latest values of an output's field. Older ones are forgotten, so that it follows the stream.

    What a drop box by value holds back never gets here, so what is seen while there is one is biased: shedding by it
    would hold back ever more. Whoever puts such a drop box before the output sets `paused` as long as it stands.
    """

    def __init__(self, capacity: int = CAPACITY) -> None:
        """Start without values."""
        self._ring: Floats = np.full(capacity, np.nan)
        self._next = 0
        self._held = 0
        self.paused = False
        """Whether what is added is not taken in, so that the histogram stays as it is."""

    def __len__(self) -> int:
        """Return how many values are held, NULL and NaN included."""
        return self._held

    @property
    def values(self) -> Floats:
        """The values held, in no particular order; NaN where they were NULL."""
        return self._ring[: self._held].copy()

    def add(self, values: npt.NDArray[np.number], valid: Mask | None = None) -> None:
        """Take in the values of a train; `valid` says which are not NULL (None: all, but for NaN).

        Of a train longer than the histogram, values from all over it are taken.
        """
        if self.paused:
            return
        capacity, count = len(self._ring), len(values)
        taken: Floats = values.astype(np.float64, copy=False)
        if valid is not None:
            taken = np.where(valid, taken, np.nan)
        if count > capacity:
            taken, count = taken[np.arange(capacity) * count // capacity], capacity
        fits = min(count, capacity - self._next)
        self._ring[self._next : self._next + fits] = taken[:fits]
        self._ring[: count - fits] = taken[fits:]
        self._next = (self._next + count) % capacity
        self._held = min(self._held + count, capacity)

    def bins(self, graph: Graph) -> Bins:
        """Return the values in intervals within which the graph's utility is a straight line."""
        return bin_values(self._ring[: self._held], np.array([x for x, _ in graph.points]))
