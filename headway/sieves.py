"""Drop boxes: the sieves that decide what passes, and the share of a stream that was kept.

A drop box is a system box in front of a box or a unit: users cannot place one; the load shedder inserts, adjusts and
removes it while the network runs. Which tuples it keeps is a function of their arrival numbers and values alone, so a
replay drops the same ones, and of two drop boxes in a row with the same seed the one that keeps less decides.

A drop box that keeps the share p at random keeps each tuple with probability p. Drop boxes are adjusted while the
network runs, so p is a step function of the arrival number, and a tuple that passed stands for 1/p tuples that arrived.
Estimates over the remaining tuples must account for that.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt

from headway.columns import GOLDEN, Column, Floats, Int64s, Mask, as_floats, splitmix64
from headway.trains import Train

_BITS = 53
"""The bits that a double holds exactly."""
_APART = 0x94D049BB133111EB
_LONGEST = 64
"""The largest factor by which a train is lengthened to make up for drops: taking tuples is cheap, but not free."""
RANDOM, VALUE = "random", "value"
"""Reasons for dropping tuples: at random, and by the worth of their values."""

MOST_STEPS = 4096
"""Steps of a share that are remembered; beyond that, the older half of them becomes one."""


def chances(numbers: Int64s, seed: int) -> Floats:
    """Return for each arrival number a number in [0, 1), uniformly distributed and always the same."""
    spread: Floats = _draws(numbers, seed).astype(np.float64)
    return spread * 2.0**-_BITS


def _draws(numbers: Int64s, seed: int) -> npt.NDArray[np.uint64]:
    """Return the same as whole numbers below 2^53, drawn by SplitMix64 from a start that depends on the seed."""
    # Starts are far apart, or two drop boxes in a row with neighbouring seeds would drop much the same tuples.
    places = numbers.astype(np.uint64)
    places += np.uint64(((seed + 1) * _APART - 1) & 0xFFFFFFFFFFFFFFFF)
    places *= GOLDEN
    mixed = splitmix64(places)
    mixed >>= np.uint64(64 - _BITS)
    return mixed


@dataclass(frozen=True, slots=True)
class Sieve:
    """Keeps a share of tuples at random; with a `field`, a separate share for each interval of that field's values.

    `edges` are ascending; values below the first edge have ``shares[0]``, values from ``edges[i - 1]`` to below
    ``edges[i]`` have ``shares[i]``: there is one more share than edges. NULL and NaN have `unknown`.
    """

    keep: float
    """The share of all tuples that is kept; with a field, the expected share."""
    seed: int = 0
    field: int | None = None
    """The column whose values decide; None: no values do."""
    edges: tuple[float, ...] = ()
    shares: tuple[float, ...] = ()
    unknown: float | None = None
    """The share that is kept where the field is NULL or NaN; None: `keep`."""

    def kept(self, train: Train) -> Mask | None:
        """Return which tuples of a train pass; None if all do."""
        if self.field is None:
            if self.keep >= 1.0:
                return None
            return _draws(train.numbers, self.seed) < np.uint64(math.ceil(max(self.keep, 0.0) * 2.0**_BITS))
        shares = self._shares(train.columns[self.field])
        return chances(train.numbers, self.seed) < shares

    def _shares(self, column: Column) -> Floats:
        values = as_floats(column)
        places = np.searchsorted(np.array(self.edges), values, side="right")
        shares: Floats = np.array(self.shares)[np.minimum(places, len(self.edges))]
        shares[np.isnan(values)] = self.keep if self.unknown is None else self.unknown
        return shares

    def sift(self, train: Train) -> Train:
        """Return the tuples that pass, with the train's progress, ticks and end."""
        mask = self.kept(train)
        if mask is None or mask.all():
            return train
        return train.take(np.flatnonzero(mask))

    def to_mapping(self) -> dict[str, Any]:
        """Return the sieve as JSON can hold it."""
        mapping: dict[str, Any] = {"keep": self.keep, "seed": self.seed}
        if self.field is not None:
            mapping |= {"field": self.field, "edges": list(self.edges), "shares": list(self.shares)}
            mapping["unknown"] = self.unknown
        return mapping

    @classmethod
    def of(cls, mapping: Mapping[str, Any]) -> Sieve:
        """Return the sieve that `to_mapping` wrote."""
        return cls(
            float(mapping["keep"]),
            int(mapping["seed"]),
            mapping.get("field"),
            tuple(mapping.get("edges", ())),
            tuple(mapping.get("shares", ())),
            mapping.get("unknown"),
        )


class DropBox:
    """One drop box between a queue and a consumer: it thins out what the consumer takes, and counts.

    It acts when its consumer takes tuples, not when they are queued. So tuples that already wait are thinned out as
    soon as it is inserted, other consumers of the same arc can share the queue without losing anything, and a dropped
    tuple has cost nothing but its place in the queue. `sift` is called by the thread that runs the consumer, everything
    else by the scheduler.
    """

    __slots__ = ("dropped", "passed", "sieve")

    def __init__(self, sieve: Sieve | None = None) -> None:
        """Start with a sieve; None: everything passes."""
        self.sieve = sieve or Sieve(1.0)
        self.dropped: Counter[str] = Counter()
        """By reason: the tuples dropped."""
        self.passed = 0
        """Tuples that passed since it was inserted."""

    @property
    def reason(self) -> str:
        """Why it drops tuples: RANDOM or VALUE."""
        return RANDOM if self.sieve.field is None else VALUE

    def stretch(self, limit: int) -> int:
        """Return how many tuples to take so that about `limit` of them pass."""
        keep = max(self.sieve.keep, 1 / _LONGEST)
        return int(limit / keep)

    def sift(self, train: Train) -> Train:
        """Return the tuples that pass; count them and the others."""
        count = len(train.numbers)
        if not count:
            return train
        sifted = self.sieve.sift(train)
        left = len(sifted.numbers)
        self.passed += left
        if left < count:
            self.dropped[self.reason] += count - left
        return sifted


class ShareLookup(Protocol):
    """Tells which share of the tuples was kept, by arrival number."""

    def shares(self, numbers: Int64s) -> Floats:
        """Return for each arrival number the share that was kept of the tuples around it."""


class KeptShares:
    """The share of a stream that was kept, as a step function of arrival numbers; 1 before the first note.

    One thread may note while others read, because the steps are replaced as a whole.
    """

    __slots__ = ("_steps",)

    def __init__(self) -> None:
        self._steps: tuple[Int64s, Floats] = (np.zeros(1, np.int64), np.ones(1))

    def __repr__(self) -> str:
        return f"KeptShares.of({self.to_list()})"

    def note(self, first_number: int, share: float) -> None:
        """Record that `share` is kept from this arrival number on; replaces what was noted for it and later ones."""
        self._note([(first_number, share)])

    def _note(self, steps: Iterable[Sequence[int | float]]) -> None:
        firsts, shares = (array.tolist() for array in self._steps)
        for first, share in steps:
            if not 0 <= share <= 1:
                raise ValueError(f"a share is from 0 to 1, not {share}")
            first = max(int(first), 0)  # arrival numbers start at 0, and so does the first step
            while firsts and firsts[-1] >= first:
                del firsts[-1], shares[-1]
            if not shares or shares[-1] != share:
                firsts.append(first)
                shares.append(share)
        self._steps = _bounded(np.array(firsts, np.int64), np.array(shares, np.float64))

    def shares(self, numbers: Int64s) -> Floats:
        """Return for each arrival number the share that was kept of the tuples around it."""
        firsts, shares = self._steps
        if len(firsts) == 1:
            return np.full(len(numbers), shares[0])
        places = np.searchsorted(firsts, numbers, side="right") - 1
        found: Floats = shares[np.maximum(places, 0)]
        return found

    def to_list(self) -> list[list[int | float]]:
        """Return the steps as JSON can hold them: pairs of a first arrival number and a share."""
        firsts, shares = self._steps
        return [[int(first), float(share)] for first, share in zip(firsts, shares, strict=True)]

    @classmethod
    def of(cls, steps: Sequence[Sequence[int | float]]) -> Self:
        """Return the shares that `to_list` wrote, or that noting these pairs one after the other would give."""
        kept = cls()
        kept._note(steps)
        return kept


@dataclass(frozen=True, slots=True)
class CombinedShares:
    """Several drop boxes in a row, read as they are at each call.

    Their seeds differ, so they decide independently, and their shares are multiplied.
    """

    parts: tuple[ShareLookup, ...]

    def shares(self, numbers: Int64s) -> Floats:
        """Return for each arrival number the share that passed all of them."""
        found = np.ones(len(numbers))
        for part in self.parts:
            found = found * part.shares(numbers)
        return found


def _bounded(firsts: Int64s, shares: Floats) -> tuple[Int64s, Floats]:
    """Merge the older half into one step if there are too many; it gets the mean share of the numbers it covers."""
    if len(firsts) <= MOST_STEPS:
        return firsts, shares
    half = len(firsts) // 2
    widths = np.diff(firsts[: half + 1])
    mean = float((shares[:half] * widths).sum() / (firsts[half] - firsts[0]))
    return np.append(firsts[:1], firsts[half:]), np.append(mean, shares[half:])
