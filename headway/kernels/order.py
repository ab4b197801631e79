"""Order at run time: which tuples are out of order, and how far each partition is settled.

The frontier of a partition with slack n is the (n+1)-th largest value seen. One pass of a bubble sort (keep the larger,
pass on the smaller) gives the running maximum; the same pass over what it passes on gives the second largest, and so
on: n+1 passes, each one vectorised. BSort uses the same passes. They need slack + 1 values for each partition. Where
the slack is large, that would waste memory, since most partitions never see as many tuples: there a heap per partition
holds the values seen, and its root is the frontier.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import heappush, heapreplace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headway.boxes.order import Order
from headway.columns import Indices, Int64s, Mask, Values
from headway.kernels.partitions import Partitions, grown
from headway.network.schema import Schema
from headway.trains import Train

DEEP = 24
"""Up to this slack, passes over whole trains are faster than a heap."""


def is_deep(slack: int) -> bool:
    """Whether a slack is better served by heaps."""
    return slack > DEEP


_SHORT = 32
"""Trains up to this length are admitted tuple by tuple; the limit rises with the slack."""


_LOWEST = int(np.iinfo(np.int64).min)


def lowest(dtype: npt.DTypeLike) -> Any:
    """Return the value below all others of an order field's type."""
    return -np.inf if np.dtype(dtype).kind == "f" else _LOWEST


class Frontiers:
    """The largest slack+1 values of every partition, in descending order; the last is the frontier."""

    __slots__ = ("dtype", "highest", "largest", "slack")

    def __init__(self, slack: int, dtype: npt.DTypeLike) -> None:
        """Start without partitions; `dtype` is int64 or float64."""
        self.slack = slack
        self.dtype = np.dtype(dtype)
        self.largest: Values = np.zeros((0, slack + 1), self.dtype)
        self.highest: Any = lowest(self.dtype)
        """The largest value of all partitions; not maintained where the slack is large."""

    @staticmethod
    def of(slack: int, dtype: npt.DTypeLike) -> Frontiers:
        """Return frontiers without partitions, of the best kind for this slack."""
        return (_Heaps if is_deep(slack) else Frontiers)(slack, dtype)

    def __len__(self) -> int:
        """Return the number of partitions that there is room for."""
        return len(self.largest)

    def dump(self, partitions: int) -> dict[str, Values]:
        """Return the values of the first `partitions` partitions, as named arrays."""
        return {"largest": self.largest[:partitions]}

    def restore(self, arrays: Mapping[str, Any]) -> None:
        """Restore what `dump` returned."""
        self.largest = arrays["largest"]
        self.highest = self.largest.max() if self.largest.size else lowest(self.dtype)

    def grow(self, partitions: int) -> None:
        """Make room for partitions; a new one has seen nothing."""
        self.largest = grown(self.largest, partitions, lowest(self.dtype))

    def frontier(self) -> Values:
        """Return the frontier of every partition."""
        values: Values = self.largest[:, -1]
        return values

    def note(self, codes: Int64s, values: Values) -> None:
        """Record, without slack, one value per partition that is not below any that it has seen."""
        self.largest[codes, 0] = values
        self.highest = max(self.highest, values.max())

    def admit(self, codes: Int64s, values: Values) -> tuple[Mask | None, Values]:
        """Admit tuples (partition, value) in arrival order.

        Returns a mask of those in order (None: all are) and the partition's frontier after each tuple.
        """
        count = len(values)
        if count == 0:
            return None, values
        if self.slack == 0 and values[0] >= self.highest and (count == 1 or bool((values[1:] >= values[:-1]).all())):
            # The common case: the whole train ascends, so every partition's does.
            if count <= 8 * len(self):
                self.largest[codes, 0] = values  # the last write is the last value
            else:
                places = last_places(codes, len(self))
                seen = np.flatnonzero(places >= 0)
                self.largest[seen, 0] = values[places[seen]]
            self.highest = values[-1]
            return None, values
        if count <= _SHORT * (1 + self.slack // 8):  # there are as many passes over arrays as the slack
            return self._admit_each(codes, values)
        return self._admit_sorted(codes, values)

    def _admit_each(self, codes: Int64s, values: Values) -> tuple[Mask | None, Values]:
        """Admit a short train tuple by tuple: passes over arrays would cost a hundred times their actual work."""
        listed = codes.tolist()
        heaps = {code: self.largest[code, ::-1].tolist() for code in set(listed)}  # an ascending list is a heap
        admitted = self._push(heaps, listed, values)
        for code, heap in heaps.items():
            self.largest[code] = sorted(heap, reverse=True)
        self.highest = max(self.highest, values.max())
        return admitted

    def _push(
        self, heaps: Mapping[int, list[Any]] | Sequence[list[Any]], codes: list[int], values: Values
    ) -> tuple[Mask | None, Values]:
        """Push tuples into heaps of the largest values, by partition."""
        depth, bottom = self.slack + 1, lowest(self.dtype)
        after: list[Any] = []
        for code, value in zip(codes, values.tolist(), strict=True):
            heap = heaps[code]
            if len(heap) < depth:
                heappush(heap, value)
                after.append(heap[0] if len(heap) == depth else bottom)
                continue
            if value > heap[0]:
                heapreplace(heap, value)
            after.append(heap[0])
        frontiers = np.array(after, self.dtype)
        late = values < frontiers  # an in-order tuple is not below the frontier after it, a late one does not move it
        return (~late if late.any() else None), frontiers

    def _admit_sorted(self, codes: Int64s, values: Values) -> tuple[Mask | None, Values]:
        depth = self.slack + 1
        order, starts, lengths = by_code(codes)
        touched = codes[order[starts]]
        # Each partition's tuples, headed by the largest values it has seen, smallest first.
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
        first = heads[:, 0]
        ends = first + depth + lengths - 1
        handed_on = ranks
        for level in range(depth):
            # The first passes on itself: that cannot exceed what later passes see, as the known values ascend.
            largest, handed_on = bubble_pass(handed_on, first, handed_on[first])
            self.largest[touched, level] = back(largest[ends])
        frontier_after = largest[places]
        in_order_sorted = ranks[places] >= largest[places - 1]
        self.highest = max(self.highest, values.max())
        frontiers = np.empty(len(codes), self.dtype)
        frontiers[order] = back(frontier_after)
        if in_order_sorted.all():
            return None, frontiers
        in_order = np.empty(len(codes), np.bool_)
        in_order[order] = in_order_sorted
        return in_order, frontiers


class _Heaps(Frontiers):
    """The same for a large slack: heaps of up to slack + 1 largest values; `largest` stays empty."""

    __slots__ = ("_frontier", "_heaps", "_resting")

    def __init__(self, slack: int, dtype: npt.DTypeLike) -> None:
        super().__init__(slack, dtype)
        self._heaps: list[list[Any]] = []
        self._frontier: Values = np.zeros(0, self.dtype)
        # Values of restored partitions that have had no tuples since: arrays are smaller than lists.
        self._resting: dict[int, Values] = {}

    def __len__(self) -> int:
        return len(self._heaps)

    def grow(self, partitions: int) -> None:
        self._frontier = grown(self._frontier, partitions, lowest(self.dtype))
        self._heaps += [[] for _ in range(len(self._frontier) - len(self._heaps))]

    def frontier(self) -> Values:
        return self._frontier

    def admit(self, codes: Int64s, values: Values) -> tuple[Mask | None, Values]:
        if len(values) == 0:
            return None, values
        listed = codes.tolist()
        if self._resting:
            for code in set(listed) & self._resting.keys():
                self._heaps[code] = self._resting.pop(code).tolist()
        in_order, frontiers = self._push(self._heaps, listed, values)
        self._frontier[codes] = frontiers  # the last write is the last tuple's
        return in_order, frontiers

    def dump(self, partitions: int) -> dict[str, Values]:
        """Return the values of the partitions, one after the other, each ascending, and how many each has."""
        kept: list[Values] = []
        for code, heap in enumerate(self._heaps[:partitions]):
            heap.sort()  # a sorted list is still a heap
            resting = self._resting.get(code)
            kept.append(np.array(heap, self.dtype) if resting is None else resting)
        lengths = np.array([len(one) for one in kept], np.int64)
        return {"largest": np.concatenate([np.zeros(0, self.dtype), *kept]), "lengths": lengths}

    def restore(self, arrays: Mapping[str, Any]) -> None:
        """Restore what `dump` returned, or a table, as version 0.2.0 wrote it."""
        values = arrays["largest"]
        if values.ndim == 1:
            lengths = arrays["lengths"]
        else:
            ascending = values[:, ::-1]
            held = ascending != lowest(self.dtype)
            values, lengths = ascending[held], held.sum(axis=1)
        self._heaps = [[] for _ in lengths]
        ends = np.cumsum(lengths)
        self._frontier = np.full(len(lengths), lowest(self.dtype), self.dtype)
        full = lengths == self.slack + 1
        self._frontier[full] = values[(ends - lengths)[full]]
        parts = np.split(values, ends[:-1]) if len(lengths) else []
        self._resting = {code: part for code, part in enumerate(parts) if len(part)}


def last_places(codes: Int64s, count: int, width: int = 1, present: Mask | None = None) -> Int64s:
    """Return the last place of each of `count` codes, which are the numbers divided by `width`; -1: none.

    Most occur near the end, so the search starts there. `present` says which occur, if known.
    """
    piece = 8 * count
    while True:
        start = max(0, len(codes) - piece)
        at = np.full(count, -1, np.int64)
        at[codes[start:] // width if width > 1 else codes[start:]] = np.arange(start, len(codes))
        if start == 0 or bool((at >= 0 if present is None else (at >= 0) == present).all()):
            return at
        piece *= 8


def stable_order(codes: Int64s) -> Indices:
    """Return the stable sorting order of small non-negative numbers; 16 bits sort by radix, five times faster."""
    if len(codes) and codes.max() < 65536:
        return np.argsort(codes.astype(np.uint16), kind="stable")
    return np.argsort(codes, kind="stable")


def by_code(codes: Int64s) -> tuple[Indices, Int64s, Int64s]:
    """Return the stable order of codes, and where in it each code that occurs starts, and how often it occurs."""
    order = stable_order(codes)
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    return order, starts, np.diff(starts, append=len(codes))


def segment_ranks(segments: Int64s, values: Values) -> tuple[Int64s, Any]:
    """Map values to numbers that keep their order within a segment and grow from segment to segment.

    A running maximum over the numbers then never crosses a segment. Also returns a function back to values.
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


def bubble_pass(numbers: Int64s, starts: Int64s, before_first: Int64s) -> tuple[Int64s, Int64s]:
    """Run one pass of a bubble sort over segments with these starts; `before_first` stands before each one's first.

    Returns the running maximum, and what is passed on: at each place the smaller of the tuple and the maximum before.
    """
    largest = np.maximum.accumulate(numbers)
    before = np.empty_like(largest)
    before[1:] = largest[:-1]
    before[starts] = before_first
    return largest, np.minimum(numbers, before)


def number_in_partition(counted: Int64s, codes: Int64s) -> Int64s:
    """Return each tuple's number in its partition, and update `counted`."""
    order, starts, lengths = by_code(codes)
    seen = codes[order[starts]]
    numbers = np.empty(len(codes), np.int64)
    numbers[order] = np.arange(len(codes)) + np.repeat(counted[seen] - starts, lengths)
    counted[seen] += lengths
    return numbers


class Admitted(NamedTuple):
    """The tuples of a train that are in order: partition, order value, and the partition's frontier after each.

    `at` are their places in the train, None for all; `late` counts the other tuples.
    """

    codes: Int64s
    values: Values
    frontiers: Values
    at: Indices | None
    late: int


@dataclass(slots=True)
class OrderState:
    """The state of an ordered input: its partitions, their frontiers, and how many tuples each has seen.

    `born` is the arrival number of each partition's first tuple: it orders partitions by their first appearance, even
    across shards.
    """

    partitions: Partitions
    frontiers: Frontiers
    counted: Int64s
    born: Int64s

    def grow(self) -> None:
        """Make room for new partitions."""
        count = self.partitions.count
        if count > len(self.born):  # checked twice per call
            self.frontiers.grow(count)
            self.counted, self.born = grown(self.counted, count, 0), grown(self.born, count, 0)

    def meet(self, known: int, codes: Int64s, numbers: Int64s) -> None:
        """Make room for partitions beyond the first `known`, and record each one's first arrival number."""
        self.grow()
        if self.partitions.count > known:
            new = np.flatnonzero(codes >= known)[::-1]
            self.born[codes[new]] = numbers[new]  # the last write is the first tuple

    def dump(self) -> dict[str, Any]:
        """Return everything as named arrays."""
        self.grow()
        count = self.partitions.count
        return {
            **self.frontiers.dump(count),
            "counted": self.counted[:count],
            "born": self.born[:count],
            **self.partitions.dump(),
        }

    def restore(self, arrays: dict[str, Any]) -> None:
        """Restore what `dump` returned."""
        self.partitions.restore(arrays)
        self.frontiers.restore(arrays)
        self.counted = arrays["counted"]
        self.born = arrays["born"]


class OrderedInput:
    """An order specification, compiled for a schema."""

    def __init__(self, schema: Schema, order: Order, dtype: npt.DTypeLike | None = None) -> None:
        """Compile; `dtype` is the type of the order values, by default what the field needs."""
        self.numbered = order.on == "#"
        self.slack = 0 if self.numbered else order.slack
        self.by = tuple(schema.index(name) for name in order.by)
        self.by_types = tuple(schema.types[at] for at in self.by)
        self.on = -1 if self.numbered else schema.index(order.on)
        self.dtype = np.dtype(dtype if dtype is not None else order_dtype((schema, order)))

    def initial(self) -> OrderState:
        """Return the state before the first tuple."""
        none = np.zeros(0, np.int64)
        return OrderState(Partitions(self.by_types), Frontiers.of(self.slack, self.dtype), none, none)

    def codes(self, state: OrderState, train: Train) -> Int64s:
        """Return each tuple's partition; a partition is known from its first tuple, in order or not."""
        known = state.partitions.count
        codes = state.partitions.codes([train.columns[at] for at in self.by], len(train))
        state.meet(known, codes, train.numbers)
        return codes

    def usable(self, train: Train) -> Mask | None:
        """Return where tuples have an order value (NULL and NaN do not count); None: all have."""
        if self.numbered:
            return None
        column = train.columns[self.on]
        usable = column.valid
        if column.values.dtype.kind == "f":
            numbers = ~np.isnan(column.values)
            usable = numbers if usable is None else usable & numbers
        return None if usable is None or usable.all() else usable

    def admit(self, state: OrderState, train: Train) -> Admitted:
        """Admit a train and return its tuples that are in order."""
        codes = self.codes(state, train)
        if self.numbered:
            values: Values = number_in_partition(state.counted, codes).astype(self.dtype, copy=False)
            state.frontiers.largest[:, 0][codes] = values
            return Admitted(codes, values, values, None, 0)
        values = train.columns[self.on].values.astype(self.dtype, copy=False)
        usable = self.usable(train)
        at: Indices | None = None
        if usable is not None:
            at = np.flatnonzero(usable)
            codes, values = codes[at], values[at]
        in_order, frontiers = state.frontiers.admit(codes, values)
        if in_order is not None:
            kept = np.flatnonzero(in_order)
            at = kept if at is None else at[kept]
            codes, values, frontiers = codes[kept], values[kept], frontiers[kept]
        return Admitted(codes, values, frontiers, at, len(train) - len(values))


def order_dtype(*inputs: tuple[Schema, Order | None]) -> np.dtype[Any]:
    """Return the type in which the order values of inputs are compared: float64 if a field is floating, else int64."""
    floating = [
        pa.types.is_floating(schema.field(order.on).type)
        for schema, order in inputs
        if order is not None and order.on != "#"
    ]
    return np.dtype(np.float64 if any(floating) else np.int64)
