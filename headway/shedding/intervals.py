"""Intervals of values: their utility, which of them to drop first, and sets of values made of them.

The expected utility of an interval is its frequency times the utility of its values (Aurora, section 4.5, semantic load
shedding). A tuple costs the same whatever its value, so the loss per tuple is its utility alone: the interval of the
lowest utility goes first, then the next, and of the last one only as much as is needed.

A histogram says which values an output has delivered recently, and how often. It stores only a ring of the latest
values, from which intervals are computed on demand. Their edges are quantiles, so that each holds about as many values,
plus the points of a graph, so that utility is linear within each: the utility at an interval's mean value is then
exactly the mean utility of its values.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from headway.columns import Floats, Indices, Mask
from headway.network.qos import Graph

_DIGITS = 9
"""Decimals to which utilities are compared: intervals with equal utility are dropped alike."""
_WHOLE = 1e-12
"""The relative tolerance within which an edge is a whole number, because of rounding errors."""
CAPACITY = 4096
"""Values that a histogram holds."""
INTERVALS = 64
"""The most intervals of about as many values each, besides those cut off by a graph's points."""
_EACH = 8
"""The fewest values of such an interval: with fewer it is not significant."""
_LARGEST = 1e300


@dataclass(frozen=True, slots=True, eq=False)
class Bins:
    """Intervals of values as in a sieve: below the first edge, from each edge to the next, and from the last on."""

    edges: Floats
    """Ascending, distinct, finite; there is one interval more than edges."""
    counts: Floats
    """By interval: the number of values in it."""
    means: Floats
    """By interval: their mean, or some value of the interval if it is empty."""
    unknown: float = 0.0
    """The number of values that were NULL or NaN."""

    @property
    def total(self) -> float:
        """The number of all values, including unknown ones."""
        return float(self.counts.sum()) + self.unknown

    def places(self, values: Floats) -> Indices:
        """Return the interval of each value; NaN is in the last."""
        return places(self.edges, values)

    def average(self, values: Floats, of: Floats) -> Floats:
        """Return by interval the mean of `of`, which has an entry per value; NaN if there is no value."""
        known = ~np.isnan(values)
        at = self.places(values[known])
        counts = np.bincount(at, minlength=len(self.counts))
        sums = np.bincount(at, weights=of[known], minlength=len(self.counts))
        averages: Floats = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
        return averages


def places(edges: Floats, values: Floats) -> Indices:
    """Return by value the index of its interval between edges."""
    found: Indices = np.searchsorted(edges, values, side="right")
    return found


def bin_values(values: Floats, points: Floats | None = None) -> Bins:
    """Return intervals of some values, cut at their quantiles and at `points`. NaN counts as unknown."""
    # Infinite values of both signs would make a mean NaN, so they are limited to the largest numbers.
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
    if len(edges):  # for an interval with an open end use the value at its edge
        inner[0], inner[-1] = high[0], low[-1]
    means = np.where(counts > 0, sums / np.maximum(counts, 1), inner)
    return Bins(edges, counts, np.clip(means, low, high), float(len(values) - len(known)))


def quantile_edges(known: Floats) -> Floats:
    """Return edges with about as many values between them; a very frequent value has an interval of its own."""
    count = len(known)
    parts = min(INTERVALS, count // _EACH)
    if parts < 2:
        return np.zeros(0)
    ordered = np.sort(known)
    cuts, times = np.unique(ordered[np.arange(1, parts) * count // parts], return_counts=True)
    return np.union1d(cuts, np.nextafter(cuts[times > 1], np.inf))


class Histogram:
    """The latest values of an output's field. Older ones are overwritten, so that it follows the stream.

    Tuples dropped by value upstream never get here, so the values seen meanwhile are biased: shedding by them would
    drop more and more. The shedder sets `paused` while such a drop box is upstream of the output.
    """

    def __init__(self, capacity: int = CAPACITY) -> None:
        """Start empty."""
        self._ring: Floats = np.full(capacity, np.nan)
        self._next = 0
        self._held = 0
        self.paused = False
        """Whether `add` is ignored, so that the histogram does not change."""

    def __len__(self) -> int:
        """Return the number of values held, including NULL and NaN."""
        return self._held

    @property
    def values(self) -> Floats:
        """The values held, in no particular order; NaN for NULL."""
        return self._ring[: self._held].copy()

    def add(self, values: npt.NDArray[np.number], valid: Mask | None = None) -> None:
        """Add the values of a train; `valid` says which are not NULL (None: all but NaN).

        A train longer than the histogram is sampled evenly.
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
        """Return intervals of the values within which the graph's utility is linear."""
        return bin_values(self._ring[: self._held], np.array([x for x, _ in graph.points]))


def utilities(bins: Bins, graph: Graph) -> Floats:
    """Return by interval the mean utility of a tuple; exact if the graph's points are among the edges."""
    return graph.values(bins.means)


def expected(bins: Bins, utility: Floats) -> float:
    """Return the expected utility of a tuple: frequency times utility, summed; unknown values are worth nothing."""
    return float(bins.counts @ np.nan_to_num(utility)) / bins.total if bins.total else 0.0


def lowest_first(bins: Bins, utility: Floats, keep: float) -> Floats:
    """Return by interval the share to keep, so that `keep` of all counted tuples remain, the most useful ones.

    Intervals of equal utility have the same share. An empty interval is kept or not according to its utility: a value
    that was never seen may be the most important of all. An interval of unknown utility (NaN) has the share `keep`.
    With a smaller `keep` no share is larger.
    """
    if keep >= 1.0 or keep <= 0.0:
        return np.full(len(utility), min(max(keep, 0.0), 1.0))
    levels, level = np.unique(np.round(utility, _DIGITS), return_inverse=True)
    weights = np.bincount(level, weights=bins.counts, minlength=len(levels))
    blank = np.isnan(levels)
    weights[blank] = 0.0
    above = weights[::-1].cumsum()[::-1] - weights
    budget = keep * weights.sum()
    some = np.clip((budget - above) / np.where(weights > 0, weights, 1.0), 0.0, 1.0)
    shares: Floats = np.where(weights > 0, some, budget >= above)
    shares[blank] = keep
    return shares[level]


def loss_graph(bins: Bins, utility: Floats) -> Graph:
    """Return the expected utility over per cent delivered, if the least useful tuples are dropped first.

    It is per tuple that would be delivered if nothing were dropped: the mean utility at 100 per cent, 0 at 0. So its
    slope is the utility of the tuples that are dropped next, and it gets steeper the less is delivered. If nothing was
    observed, all tuples count alike.
    """
    total = bins.total
    if not total:
        return Graph(((0.0, 0.0), (100.0, 1.0)))
    levels, level = np.unique(np.round(np.nan_to_num(utility), _DIGITS), return_inverse=True)
    weights = np.bincount(level, weights=bins.counts, minlength=len(levels))
    seen = weights > 0
    weights, levels = weights[seen][::-1], levels[seen][::-1]
    if not len(weights):
        return Graph(((0.0, 0.0), (100.0, 0.0)))
    # Unknown values have utility 0, but no interval to drop: they are thinned out like all others.
    xs, ys = 100.0 * weights.cumsum() / weights.sum(), (weights * levels).cumsum() / total
    xs[-1] = 100.0
    return Graph(((0.0, 0.0), *zip(xs.tolist(), ys.tolist(), strict=True)))


class Cuts(NamedTuple):
    """Cuts in the real numbers, ascending: each just before a number, or just after it if `after` is set."""

    at: Floats
    after: Mask

    @property
    def edges(self) -> Floats:
        """The cuts as edges, each of which belongs to the interval above it."""
        edges: Floats = np.where(self.after, np.nextafter(self.at, np.inf), self.at)
        return edges


def cuts_at(numbers: Floats) -> Cuts:
    """Return cuts just before numbers."""
    return Cuts(numbers, np.zeros(len(numbers), np.bool_))


class Domain:
    """A set of numbers: for each interval between cuts, whether its numbers belong to it. NaN never does."""

    __slots__ = ("cuts", "edges", "inside")

    def __init__(self, cuts: Cuts, inside: Mask) -> None:
        """Make a set from cuts and one flag per interval, one more than there are cuts."""
        self.cuts = cuts
        self.inside = inside
        self.edges = cuts.edges

    def has(self, values: Floats) -> Mask:
        """Return by value whether it belongs to the set."""
        found: Mask = self.inside[places(self.edges, values)] & ~np.isnan(values)
        return found

    def __and__(self, other: Domain) -> Domain:
        """Return the intersection."""
        return _combine(self, other, np.logical_and)

    def __or__(self, other: Domain) -> Domain:
        """Return the union."""
        return _combine(self, other, np.logical_or)

    def __invert__(self) -> Domain:
        """Return the complement."""
        return Domain(self.cuts, ~self.inside)

    def before(self, step: Monotone) -> Domain:
        """Return the preimage of this set under a step."""
        return Domain(step.cut(self.cuts), self.inside[::-1] if step.falls else self.inside)


EVERYTHING = Domain(cuts_at(np.zeros(0)), np.array([True]))
NOTHING = ~EVERYTHING


def below(bound: float) -> Domain:
    """Return all numbers less than a bound."""
    return Domain(Cuts(np.array([bound]), np.array([False])), np.array([True, False]))


def upto(bound: float) -> Domain:
    """Return all numbers not greater than a bound."""
    return Domain(Cuts(np.array([bound]), np.array([True])), np.array([True, False]))


def _combine(one: Domain, other: Domain, how: np.ufunc) -> Domain:
    at = np.concatenate((one.cuts.at, other.cuts.at))
    after = np.concatenate((one.cuts.after, other.cuts.after))
    edges, first = np.unique(np.concatenate((one.edges, other.edges)), return_index=True)
    starts = np.concatenate(([-np.inf], edges))
    inside = how(one.has(starts), other.has(starts))
    changes = np.flatnonzero(inside[1:] != inside[:-1])
    chosen = first[changes]
    return Domain(Cuts(at[chosen], after[chosen]), np.concatenate((inside[:1], inside[changes + 1])))


class Monotone(ABC):
    """A monotone function of one number, so that the preimage of an interval is an interval."""

    __slots__ = ()

    @property
    def falls(self) -> bool:
        """Whether the function is decreasing."""
        return False

    @abstractmethod
    def apply(self, values: Floats) -> Floats:
        """Return the function's results for values."""

    def invert(self, values: Floats) -> Floats:
        """Return for each result a number that the function maps to it: by default the result itself."""
        return values

    @abstractmethod
    def cut(self, cuts: Cuts) -> Cuts:
        """Return cuts of the argument such that the function maps the intervals between them to those between `cuts`.

        If the function is decreasing, the order of the intervals is reversed.
        """


@dataclass(frozen=True, slots=True)
class Linear(Monotone):
    """``a * x + b``; a is not 0."""

    a: float = 1.0
    b: float = 0.0

    @property
    def falls(self) -> bool:
        """Whether a is negative."""
        return self.a < 0

    def apply(self, values: Floats) -> Floats:
        """Return ``a * x + b``."""
        with np.errstate(over="ignore"):  # results that are too large become infinite
            return values * self.a + self.b

    def invert(self, values: Floats) -> Floats:
        """Return ``(y - b) / a``."""
        with np.errstate(over="ignore"):
            return snap((values - self.b) / self.a)

    def cut(self, cuts: Cuts) -> Cuts:
        """Return the cuts at the inverses; if the function is decreasing, "before" becomes "after"."""
        at = self.invert(cuts.at)
        return Cuts(at[::-1], ~cuts.after[::-1]) if self.falls else Cuts(at, cuts.after)


@dataclass(frozen=True, slots=True)
class Truncated(Monotone):
    """Truncation to a whole number."""

    def apply(self, values: Floats) -> Floats:
        """Truncate towards 0."""
        return np.trunc(values)

    def cut(self, cuts: Cuts) -> Cuts:
        """Return where results above each cut begin: at the next whole number, or, if <= 0, after the previous one."""
        first = _first_whole(cuts.at, cuts.after)
        return Cuts(np.where(first > 0, first, first - 1), first <= 0)


@dataclass(frozen=True, slots=True)
class Rounded(Monotone):
    """Rounding to a number of decimals, halves away from 0."""

    digits: int

    def apply(self, values: Floats) -> Floats:
        """Round."""
        unit = 10.0**self.digits
        return np.sign(values) * np.floor(np.abs(values) * unit + 0.5) / unit

    def cut(self, cuts: Cuts) -> Cuts:
        """Return for each cut where results above it begin: half a unit before the next rounded number."""
        unit = 10.0**self.digits
        first = _first_whole(snap(cuts.at * unit), cuts.after)
        return Cuts((first - 0.5) / unit, first <= 0)


def _first_whole(at: Floats, after: Mask) -> Floats:
    """Return the first whole number above each cut."""
    first: Floats = np.where(after, np.floor(at) + 1, np.ceil(at))
    return first


def snap(numbers: Floats) -> Floats:
    """Return the numbers, rounded to whole ones where they differ from them only by a rounding error."""
    whole = np.rint(numbers)
    with np.errstate(invalid="ignore"):  # infinite ones stay as they are
        near = np.abs(numbers - whole) <= _WHOLE * np.maximum(np.abs(whole), 1.0)
    snapped: Floats = np.where(near, whole, numbers)
    return snapped
