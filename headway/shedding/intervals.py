"""Intervals of values: what they are worth, which of them to drop first, and sets of values made of them.

The expected utility of an interval is its frequency times the utility of its values (Aurora, section 4.5). A tuple
costs the same wherever its value lies, so what is given up per tuple is the utility alone: the interval of the lowest
utility goes first, then the next, and of the last one only as much as is needed.

Which values an output has delivered lately, and how often, its histogram says.
A ring of the latest values is the whole memory; intervals are read from it when somebody asks. Their edges are
quantiles, so that each holds about as many values, together with the points of a graph, so that utility is a straight
line within each: the utility at an interval's mean value is then exactly the mean utility of its values.
(Aurora, section 4.5, semantic load shedding.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from headway.columns import Floats, Indices, Mask
from headway.network.qos import Graph

_DIGITS = 9
"""Utilities that agree in so many digits are the same: what is dropped of them is dropped of all alike."""
_WHOLE = 1e-12
"""An edge as near to a whole number as this is that number: it is off by rounding alone."""
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


def utilities(bins: Bins, graph: Graph) -> Floats:
    """Return the mean utility of a tuple by interval; exact if the graph's points are among the edges."""
    return graph.values(bins.means)


def expected(bins: Bins, utility: Floats) -> float:
    """Return the expected utility of a tuple: frequency times utility, summed; unknown values are worth nothing."""
    return float(bins.counts @ np.nan_to_num(utility)) / bins.total if bins.total else 0.0


def lowest_first(bins: Bins, utility: Floats, keep: float) -> Floats:
    """Return by interval which share to keep, so that `keep` of all is kept, by the counts, and the least useful go.

    Intervals of the same utility have the same share. An interval without tuples is kept or not as its utility
    demands: a value that was never seen may be the most important of all. Where the utility is NaN nothing is known,
    and `keep` is its share. A smaller `keep` has nowhere a larger share.
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
    """Return the expected utility over per cent delivered, if what is least useful is dropped first.

    It is that of a tuple that would be delivered if nothing were dropped: at 100 per cent the mean utility, at 0
    nothing. So its slope is the utility of the tuples that go next, and it is the steeper the less is delivered.
    Where nothing was observed, all tuples count alike.
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
    # What is unknown is worth nothing, but cannot be told apart: it is thinned out like all the rest.
    xs, ys = 100.0 * weights.cumsum() / weights.sum(), (weights * levels).cumsum() / total
    xs[-1] = 100.0
    return Graph(((0.0, 0.0), *zip(xs.tolist(), ys.tolist(), strict=True)))


class Cuts(NamedTuple):
    """Places where the numbers are cut, ascending: just before a number, or just after it where `after` says so."""

    at: Floats
    after: Mask

    @property
    def edges(self) -> Floats:
        """The same as edges, each of which belongs to what is above it."""
        edges: Floats = np.where(self.after, np.nextafter(self.at, np.inf), self.at)
        return edges


def cuts_at(numbers: Floats) -> Cuts:
    """Return cuts just before numbers."""
    return Cuts(numbers, np.zeros(len(numbers), np.bool_))


class Domain:
    """A set of numbers: for each interval between cuts, whether its numbers belong to it. NaN never does."""

    __slots__ = ("cuts", "edges", "inside")

    def __init__(self, cuts: Cuts, inside: Mask) -> None:
        """Take over cuts and one more truth value than there are cuts."""
        self.cuts = cuts
        self.inside = inside
        self.edges = cuts.edges

    def has(self, values: Floats) -> Mask:
        """Return which values belong to the set."""
        found: Mask = self.inside[places(self.edges, values)] & ~np.isnan(values)
        return found

    def __and__(self, other: Domain) -> Domain:
        """Return what belongs to both."""
        return _combine(self, other, np.logical_and)

    def __or__(self, other: Domain) -> Domain:
        """Return what belongs to one or the other."""
        return _combine(self, other, np.logical_or)

    def __invert__(self) -> Domain:
        """Return what does not belong to it."""
        return Domain(self.cuts, ~self.inside)

    def before(self, step: Monotone) -> Domain:
        """Return the values that a step turns into values of this set."""
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


class Monotone:
    """A function of one number that goes nowhere up and down again, so that intervals come from intervals."""

    falls: bool = False
    """Whether larger numbers give smaller ones."""

    def apply(self, values: Floats) -> Floats:
        """Return the function of the values."""
        raise NotImplementedError

    def invert(self, values: Floats) -> Floats:
        """Return a number for each value that the function turns into it."""
        raise NotImplementedError

    def cut(self, cuts: Cuts) -> Cuts:
        """Return cuts before the function so that the intervals between them become those between `cuts`.

        Where the function falls, the intervals come in the opposite order.
        """
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Linear(Monotone):
    """``a * x + b`` with a not 0."""

    a: float = 1.0
    b: float = 0.0

    @property
    def falls(self) -> bool:  # type: ignore[override]
        """Whether a is negative."""
        return self.a < 0

    def apply(self, values: Floats) -> Floats:
        """Return ``a * x + b``."""
        with np.errstate(over="ignore"):  # what is too large is infinite
            return values * self.a + self.b

    def invert(self, values: Floats) -> Floats:
        """Return ``(y - b) / a``."""
        with np.errstate(over="ignore"):
            return snap((values - self.b) / self.a)

    def cut(self, cuts: Cuts) -> Cuts:
        """Return the numbers' inverses; where it falls, what was before a number is after its inverse."""
        at = self.invert(cuts.at)
        return Cuts(at[::-1], ~cuts.after[::-1]) if self.falls else Cuts(at, cuts.after)


@dataclass(frozen=True, slots=True)
class Truncated(Monotone):
    """A whole number: what is behind the point is cut off."""

    def apply(self, values: Floats) -> Floats:
        """Cut towards 0."""
        return np.trunc(values)

    def invert(self, values: Floats) -> Floats:
        """Return the same: a whole number is its own inverse."""
        return values

    def cut(self, cuts: Cuts) -> Cuts:
        """Return where the whole numbers above a cut begin: above 0 at themselves, below after the one before."""
        first = _first_whole(cuts.at, cuts.after)
        return Cuts(np.where(first > 0, first, first - 1), first <= 0)


@dataclass(frozen=True, slots=True)
class Rounded(Monotone):
    """Rounded to so many digits after the point, halves away from 0."""

    digits: int

    def apply(self, values: Floats) -> Floats:
        """Round."""
        unit = 10.0**self.digits
        return np.sign(values) * np.floor(np.abs(values) * unit + 0.5) / unit

    def invert(self, values: Floats) -> Floats:
        """Return the same: a rounded number is its own inverse."""
        return values

    def cut(self, cuts: Cuts) -> Cuts:
        """Return from where on numbers are rounded to what is above a cut: half a unit before it."""
        unit = 10.0**self.digits
        first = _first_whole(snap(cuts.at * unit), cuts.after)
        return Cuts((first - 0.5) / unit, first <= 0)


def _first_whole(at: Floats, after: Mask) -> Floats:
    """Return the first whole number above each cut."""
    first: Floats = np.where(after, np.floor(at) + 1, np.ceil(at))
    return first


def snap(numbers: Floats) -> Floats:
    """Return numbers with those that miss a whole one by rounding put there."""
    whole = np.rint(numbers)
    with np.errstate(invalid="ignore"):  # infinite ones stay as they are
        near = np.abs(numbers - whole) <= _WHOLE * np.maximum(np.abs(whole), 1.0)
    snapped: Floats = np.where(near, whole, numbers)
    return snapped
