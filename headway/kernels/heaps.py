"""The frontiers of large slacks: a heap of the largest values of every partition, as long as what has come.

A table of slack + 1 values for each partition is quick for small slacks (order.py), and memory that nobody needs for
large ones: most partitions never see as many tuples. The root of a heap that holds the slack + 1 largest values is the
frontier, so a tuple costs the logarithm of the slack instead of a share of slack + 1 passes over the train.
"""

from __future__ import annotations

from heapq import heappush, heapreplace
from typing import Any

import numpy as np
import numpy.typing as npt

from headway.columns import Int64s, Mask, Values

DEEP = 24
"""Up to this slack, passes over whole trains are quicker than a heap."""


class Heaps:
    """The up to slack + 1 largest values of every partition."""

    __slots__ = ("_bottom", "_depth", "_dtype", "_frontier", "_heaps", "_resting")

    def __init__(self, slack: int, dtype: npt.DTypeLike, bottom: Any) -> None:
        """Start without partitions; `bottom` stands for no frontier, below all values of the type."""
        self._depth = slack + 1
        self._dtype = np.dtype(dtype)
        self._bottom = bottom
        self._heaps: list[list[Any]] = []
        self._frontier: Values = np.zeros(0, self._dtype)
        # Values of partitions that nothing has come for since they were read back: numbers in an array are small.
        self._resting: dict[int, Values] = {}

    def __len__(self) -> int:
        """Return the number of partitions that there is room for."""
        return len(self._heaps)

    def grow(self, partitions: int) -> None:
        """Make room for partitions; a new one has seen nothing."""
        missing = partitions - len(self._heaps)
        if missing > 0:
            more = max(missing, len(self._heaps))
            self._heaps += [[] for _ in range(more)]
            self._frontier = np.concatenate([self._frontier, np.full(more, self._bottom, self._dtype)])

    def frontier(self) -> Values:
        """Return the frontier of every partition."""
        return self._frontier

    def admit(self, codes: Int64s, values: Values) -> tuple[Mask | None, Values]:
        """Take in tuples (partition, value) in arrival order.

        Returns where they are in order (None: all are) and the partition's frontier after each tuple.
        """
        heaps, depth, bottom = self._heaps, self._depth, self._bottom
        listed = codes.tolist()
        if self._resting:
            for code in set(listed) & self._resting.keys():
                heaps[code] = self._resting.pop(code).tolist()
        after: list[Any] = []
        for code, value in zip(listed, values.tolist(), strict=True):
            heap = heaps[code]
            if len(heap) < depth:
                heappush(heap, value)
                after.append(heap[0] if len(heap) == depth else bottom)
                continue
            if value > heap[0]:
                heapreplace(heap, value)
            after.append(heap[0])
        frontiers = np.array(after, self._dtype)
        self._frontier[codes] = frontiers  # the last write is the last tuple's
        late = values < frontiers  # a tuple in order is not below the frontier that it leaves, a late one changes none
        return (~late if late.any() else None), frontiers

    def dump(self, partitions: int) -> tuple[Values, Int64s]:
        """Return the values of so many partitions, one after the other, each ascending, and how many each has."""
        kept: list[Values] = []
        for code, heap in enumerate(self._heaps[:partitions]):
            heap.sort()  # what is sorted is still a heap
            resting = self._resting.get(code)
            kept.append(np.array(heap, self._dtype) if resting is None else resting)
        lengths = np.array([len(one) for one in kept], np.int64)
        return np.concatenate([np.zeros(0, self._dtype), *kept]), lengths

    def restore(self, values: Values, lengths: Int64s) -> None:
        """Take over what `dump` returned."""
        self._heaps = [[] for _ in lengths]
        ends = np.cumsum(lengths)
        self._frontier = np.full(len(lengths), self._bottom, self._dtype)
        full = lengths == self._depth
        self._frontier[full] = values[(ends - lengths)[full]]
        parts = np.split(values, ends[:-1]) if len(lengths) else []
        self._resting = {code: part for code, part in enumerate(parts) if len(part)}
