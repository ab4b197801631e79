"""BSort, one tuple at a time."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from tests.reference.order import NUMBER, Axis, Order, Partitions, to_axis
from tests.reference.tuples import Emitted, Operator, Tuple, emit


class Held(NamedTuple):
    """A tuple in a buffer; it sorts by order value, then by arrival at this box."""

    value: Axis
    arrival: int
    tuple: Tuple


class BSort(Operator):
    """A buffer of slack + 1 tuples per partition; when it is full, the smallest leaves.

    Decisions: NULL counts as smaller than everything, so it leaves first. At the end all buffers are
    emptied together, in ascending (A, arrival), whatever the partition.
    """

    def __init__(self, order: Order) -> None:
        super().__init__()
        self.order = order
        self.partitions = Partitions(order)
        self.buffers: dict[tuple[Any, ...], list[Held]] = {}
        self.arrivals = 0

    def push(self, at: int, arrived: Tuple) -> list[Emitted]:
        """Take one tuple in and, if the buffer is full, let one out. It carries the number of the cause."""
        partition = self.partitions.of(arrived.row)
        value = partition.count if self.order.on == NUMBER else to_axis(arrived.row[self.order.on])
        partition.count += 1
        buffer = self.buffers.setdefault(partition.key, [])
        buffer.append(Held(-math.inf if value is None else value, self.arrivals, arrived))
        self.arrivals += 1
        if len(buffer) <= self.order.slack:
            return []
        smallest = min(buffer, key=lambda held: held[:2])
        buffer.remove(smallest)
        return [emit(smallest.tuple.row, smallest.tuple.stamp, arrived.number)]

    def end(self, number: int) -> list[Emitted]:
        """Empty all buffers."""
        rest = sorted((held for buffer in self.buffers.values() for held in buffer), key=lambda held: held[:2])
        self.buffers = {}
        return [emit(held.tuple.row, held.tuple.stamp, number) for held in rest]
