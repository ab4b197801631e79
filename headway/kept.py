"""How much of a stream was kept, by arrival number: what an estimate over the tuples that are left must know.

A drop box that keeps the share p of its tuples at random leaves each tuple with the chance p. Drop boxes are adjusted
while the network runs, so p is a step function of the arrival number; a tuple that came through stands for 1/p of those
that arrived with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
import numpy.typing as npt

from headway.columns import Int64s

Floats = npt.NDArray[np.float64]

MOST_STEPS = 4096
"""Steps that are remembered; beyond, the older half of them becomes one."""


class Shares(Protocol):
    """Says how much was kept of the tuples with some arrival numbers."""

    def shares(self, numbers: Int64s) -> Floats:
        """Return for each arrival number the share that was kept of the tuples about it."""
        ...


class Kept:
    """The share of a stream that was kept, as steps over arrival numbers; everything before the first note.

    One thread may note while others read: the steps are replaced as a whole.
    """

    __slots__ = ("_steps",)

    def __init__(self) -> None:
        """Start with everything kept."""
        self._steps: tuple[Int64s, Floats] = (np.zeros(1, np.int64), np.ones(1))

    def __repr__(self) -> str:
        """Show the steps."""
        return f"Kept.of({self.to_list()})"

    def note(self, first_number: int, share: float) -> None:
        """From this arrival number on, `share` is kept; what was noted for it and for later numbers is void."""
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
        """Return for each arrival number the share that was kept of the tuples about it."""
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
        """Return what `to_list` wrote, or what notes of these pairs, one after the other, would give."""
        kept = cls()
        kept._note(steps)
        return kept


@dataclass(frozen=True, slots=True)
class Together:
    """Several drop boxes in a row, as they are whenever somebody asks.

    With seeds of their own they decide independently, so their shares are multiplied. With one seed the finest of them
    decides for all (see `headway.sieves`), so the least share counts.
    """

    parts: tuple[Shares, ...]
    same_seed: bool = False

    def shares(self, numbers: Int64s) -> Floats:
        """Return for each arrival number the share that came through all of them."""
        found = np.ones(len(numbers))
        for part in self.parts:
            shares = part.shares(numbers)
            found = np.minimum(found, shares) if self.same_seed else found * shares
        return found


def product(parts: Sequence[Kept], same_seed: bool = False) -> Kept:
    """Return what came through several drop boxes in a row, as it is now; see `Together` for `same_seed`."""
    firsts = sorted({int(first) for part in parts for first, _ in part.to_list()})
    numbers = np.array(firsts, np.int64)
    shares = Together(tuple(parts), same_seed).shares(numbers)
    return Kept.of(list(zip(firsts, shares.tolist(), strict=True)))


def _bounded(firsts: Int64s, shares: Floats) -> tuple[Int64s, Floats]:
    """Make one step of the older half if there are too many: it has the mean share of the numbers that it covers."""
    if len(firsts) <= MOST_STEPS:
        return firsts, shares
    half = len(firsts) // 2
    widths = np.diff(firsts[: half + 1])
    mean = float((shares[:half] * widths).sum() / (firsts[half] - firsts[0]))
    return np.append(firsts[:1], firsts[half:]), np.append(mean, shares[half:])
