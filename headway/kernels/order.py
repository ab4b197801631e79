"""Order at run time: which tuples are out of order, and how far each partition is settled.

The frontier of a partition with slack n is the (n+1)-th largest value seen. One pass of a bubble sort
(keep the larger, hand on the smaller) gives the running maximum; the same pass over what it hands on gives
the second largest, and so on: n+1 passes, each one vectorised. BSort's buffer is the same passes. Large slacks have
heaps instead (heaps.py).
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from headway.columns import Indices, Int64s, Mask, Values
from headway.kernels import heaps
from headway.kernels.heaps import Heaps

_SHORT = 32
"""Trains up to this length are taken in tuple by tuple; longer ones too where the slack is larger."""


_LOWEST = int(np.iinfo(np.int64).min)


def lowest(dtype: npt.DTypeLike) -> Any:
    """Return the value below all others of an order field's type."""
    return -np.inf if np.dtype(dtype).kind == "f" else _LOWEST


class Frontiers:
    """The largest slack+1 values of every partition, in descending order; the last is the frontier.

    Where the slack is large, `largest` stays empty, and heaps hold what has come.
    """

    __slots__ = ("_heaps", "_highest", "dtype", "largest", "slack")

    def __init__(self, slack: int, dtype: npt.DTypeLike) -> None:
        """Start without partitions; `dtype` is int64 or float64."""
        self.slack = slack
        self.dtype = np.dtype(dtype)
        self.largest: Values = np.zeros((0, slack + 1), self.dtype)
        self._highest: Any = lowest(self.dtype)
        self._heaps = Heaps(slack, self.dtype, lowest(self.dtype)) if slack > heaps.DEEP else None

    def __len__(self) -> int:
        """Return the number of partitions that there is room for."""
        return len(self.largest) if self._heaps is None else len(self._heaps)

    def dump(self, partitions: int) -> dict[str, Values]:
        """Return what so many partitions hold, as named arrays."""
        if self._heaps is None:
            return {"largest": self.largest[:partitions]}
        values, lengths = self._heaps.dump(partitions)
        return {"largest": values, "lengths": lengths}

    def restore(self, arrays: Mapping[str, Any]) -> None:
        """Take over what `dump` returned; also a table where there are heaps now, as earlier versions wrote it."""
        largest = arrays["largest"]
        if self._heaps is None:
            self.largest = largest
            self._highest = largest.max() if largest.size else lowest(self.dtype)
        elif largest.ndim == 1:
            self._heaps.restore(largest, arrays["lengths"])
        else:
            ascending = largest[:, ::-1]
            held = ascending != lowest(self.dtype)
            self._heaps.restore(ascending[held], held.sum(axis=1))

    def grow(self, partitions: int) -> None:
        """Make room for partitions; a new one has seen nothing."""
        if self._heaps is not None:
            self._heaps.grow(partitions)
            return
        missing = partitions - len(self.largest)
        if missing > 0:
            fresh = np.full((max(missing, len(self.largest)), self.slack + 1), lowest(self.dtype), self.dtype)
            self.largest = np.concatenate([self.largest, fresh])

    def frontier(self) -> Values:
        """Return the frontier of every partition."""
        if self._heaps is not None:
            return self._heaps.frontier()
        values: Values = self.largest[:, -1]
        return values

    @property
    def highest(self) -> Any:
        """The largest value of all partitions; not kept where the slack is large."""
        return self._highest

    def note(self, codes: Int64s, values: Values) -> None:
        """Note, without slack, one value of each partition that is not below any that it has seen."""
        self.largest[codes, 0] = values
        self._highest = max(self._highest, values.max())

    def admit(self, codes: Int64s, values: Values) -> tuple[Mask | None, Values]:
        """Take in tuples (partition, value) in arrival order.

        Returns where they are in order (None: all are) and the partition's frontier after each tuple.
        """
        count = len(values)
        if count == 0:
            return None, values
        if self._heaps is not None:
            return self._heaps.admit(codes, values)
        if self.slack == 0 and values[0] >= self._highest and (count == 1 or bool((values[1:] >= values[:-1]).all())):
            # The common case: the whole train ascends, so every partition's does.
            self._note_last(codes, values)
            self._highest = values[-1]
            return None, values
        if count <= _SHORT * (1 + self.slack // 8):  # the passes over arrays are as many as the slack
            return self._admit_each(codes, values)
        return self._admit_sorted(codes, values)

    def _note_last(self, codes: Int64s, values: Values) -> None:
        """Take the last value of every partition in an ascending train as its largest.

        The partitions' last tuples mostly stand near the train's end, so that is where they are looked for first.
        """
        largest = self.largest[:, 0]
        piece = 8 * len(largest)
        while piece < len(codes):
            last = np.full(len(largest), lowest(self.dtype), self.dtype)
            last[codes[-piece:]] = values[-piece:]  # the last write is the last value
            if (last != lowest(self.dtype)).all():
                np.maximum(largest, last, out=largest)
                return
            piece *= 8
        largest[codes] = values

    def _admit_each(self, codes: Int64s, values: Values) -> tuple[Mask | None, Values]:
        """Take in a short train tuple by tuple: the passes over arrays cost a hundred times what they would do."""
        largest = self.largest
        in_order = np.ones(len(values), np.bool_)
        frontiers = np.empty(len(values), self.dtype)
        known: dict[int, list[Any]] = {}
        for at, (code, value) in enumerate(zip(codes.tolist(), values.tolist(), strict=True)):
            tops = known.get(code)
            if tops is None:
                tops = known[code] = largest[code, ::-1].tolist()  # ascending here
            if value < tops[0]:
                in_order[at] = False
            else:
                insort(tops, value)
                del tops[0]
            frontiers[at] = tops[0]
        for code, tops in known.items():
            largest[code] = tops[::-1]
        self._highest = max(self._highest, values.max())
        return (None if in_order.all() else in_order), frontiers

    def _admit_sorted(self, codes: Int64s, values: Values) -> tuple[Mask | None, Values]:
        depth = self.slack + 1
        order = stable_order(codes)
        sorted_codes = codes[order]
        starts = np.flatnonzero(np.diff(sorted_codes, prepend=-1))
        touched = sorted_codes[starts]
        lengths = np.diff(np.append(starts, len(codes)))
        # Each partition's tuples, headed by what it knows already, smallest first.
        segment = np.repeat(np.arange(len(touched)), lengths)
        places = np.arange(len(codes)) + (segment + 1) * depth
        heads = (np.arange(len(touched)) * depth + starts)[:, None] + np.arange(depth)
        sequence = np.empty(len(codes) + len(touched) * depth, self.dtype)
        sequence[places] = values[order]
        sequence[heads] = self.largest[touched][:, ::-1]
        segments = np.empty(len(sequence), np.int64)
        segments[places] = segment
        segments[heads] = np.arange(len(touched))[:, None]
        ranks, back = segment_ranks(segments, sequence)
        first = np.zeros(len(sequence), np.bool_)
        first[heads[:, 0]] = True
        ends = np.append(heads[1:, 0], len(sequence)) - 1
        handed_on = ranks
        for level in range(depth):
            largest, handed_on = bubble_pass(handed_on, first)
            self.largest[touched, level] = back(largest[ends])
        frontier_after = largest[places]
        in_order_sorted = ranks[places] >= largest[places - 1]
        self._highest = max(self._highest, values.max())
        frontiers = np.empty(len(codes), self.dtype)
        frontiers[order] = back(frontier_after)
        if in_order_sorted.all():
            return None, frontiers
        in_order = np.empty(len(codes), np.bool_)
        in_order[order] = in_order_sorted
        return in_order, frontiers


def stable_order(codes: Int64s) -> Indices:
    """Return the stable sorting order of small non-negative numbers; 16 bits sort by radix, five times faster."""
    if len(codes) and codes.max() < 65536:
        return np.argsort(codes.astype(np.uint16), kind="stable")
    return np.argsort(codes, kind="stable")


def segment_ranks(segments: Int64s, values: Values) -> tuple[Int64s, Any]:
    """Map values to numbers that keep their order within a segment and grow from segment to segment.

    A running maximum over the numbers then never crosses a segment. Also returns the way back to values.
    """
    bottom = lowest(values.dtype)
    if values.dtype.kind == "i":
        real = values[values != bottom]
        least = int(real.min()) - 1 if len(real) else 0
        span = (int(real.max()) - least + 1) if len(real) else 1
        if span * (int(segments[-1]) + 1) < 1 << 62 and least > bottom:
            offsets = np.where(values == bottom, 0, values - least)

            def back_from_offset(some: Int64s) -> Values:
                offset = some % span
                return np.where(offset == 0, bottom, offset + least)

            return segments * span + offsets, back_from_offset
    distinct, ranks = np.unique(values, return_inverse=True)
    width = len(distinct)

    def back_from_rank(some: Int64s) -> Values:
        result: Values = distinct[some % width]
        return result

    return segments * width + ranks, back_from_rank


def bubble_pass(numbers: Int64s, first: Mask) -> tuple[Int64s, Int64s]:
    """Run one pass of a bubble sort over each segment; `first` marks where segments begin.

    Returns the running maximum, and what the pass hands on: at each place the smaller of the tuple and the
    maximum before it. The first of a segment hands on nothing, which is itself here: it cannot exceed what
    the later passes see anyway, because segments are headed by their known values in ascending order.
    """
    largest = np.maximum.accumulate(numbers)
    before = np.empty_like(largest)
    before[0] = largest[0]
    before[1:] = largest[:-1]
    before[first] = numbers[first]
    return largest, np.minimum(numbers, before)


def number_in_partition(counted: Int64s, codes: Int64s) -> Int64s:
    """Return each tuple's number in its partition, and count on."""
    order = stable_order(codes)
    sorted_codes = codes[order]
    starts = np.flatnonzero(np.diff(sorted_codes, prepend=-1))
    lengths = np.diff(np.append(starts, len(codes)))
    within = np.arange(len(codes)) - np.repeat(starts, lengths)
    numbers = np.empty(len(codes), np.int64)
    numbers[order] = within + np.repeat(counted[sorted_codes[starts]], lengths)
    counted[sorted_codes[starts]] += lengths
    return numbers
