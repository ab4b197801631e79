"""Resample, one tuple at a time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.reference.aggregate import TUPLE
from tests.reference.order import NUMBER, Axis, Order, Partition, Partitions
from tests.reference.tuples import Emitted, Operator, Row, Tuple, emit
from tests.reference.windows import Select, Window

Key = tuple[Any, ...]


@dataclass
class Pending:
    """A tuple of the first input that waits for partitions; `answered` are those that have passed it."""

    value: Axis
    arrival: int
    origin: Tuple
    answered: set[Key] = field(default_factory=set)


class Resample(Operator):
    """For every in-order t of the first input, a window of the second input around it, per partition.

    Decisions: a partition has passed t when its frontier is larger than t.A + size. A tuple t that
    arrives is answered at once by the partitions that have already passed it, in the order of their
    first appearance. One tuple of the second input may release several t: in the order (t.A, t's
    arrival). A tuple t is dropped as soon as at least one partition is known and every known partition
    has passed it; a partition first seen later does not answer it. A partition is known from its first
    tuple, also if that has no A. At the end: in the order (t.A, t's arrival, first appearance).
    """

    def __init__(self, select: Select, size: Axis, left: Order, right: Order) -> None:
        super().__init__()
        self.select = select
        self.size = size
        self.left, self.right = left, right
        self.lefts, self.rights = Partitions(left), Partitions(right)
        self.arrivals = 0
        self.pending: list[Pending] = []
        self.held: list[tuple[Partition, tuple[Axis, int, Tuple]]] = []

    def push(self, at: int, arrived: Tuple) -> list[Emitted]:
        """Take a tuple of either input; answer what has been passed."""
        self.arrivals += 1
        known = (self.lefts if at == 0 else self.rights).of(arrived.row)
        value, in_order = known.take(arrived.row)
        if value is None or not in_order:
            self.ignored += 1
        elif at == 0:
            self.pending.append(Pending(value, self.arrivals, arrived))
        else:
            self.held.append((known, (value, self.arrivals, arrived)))
        emitted = []
        for waiting in sorted(self.pending, key=lambda waiting: (waiting.value, waiting.arrival)):
            for partition in self.rights.known.values():
                if partition.key not in waiting.answered and self.passed(waiting, partition):
                    emitted += self.answer(waiting, partition, arrived.number)
        self.pending = [waiting for waiting in self.pending if not self.settled(waiting)]
        return emitted

    def passed(self, waiting: Pending, partition: Partition) -> bool:
        """Say whether a partition has passed a waiting tuple."""
        frontier = partition.frontier
        return frontier is not None and frontier > waiting.value + self.size

    def settled(self, waiting: Pending) -> bool:
        """Say whether every known partition has passed a waiting tuple."""
        return bool(self.rights.known) and waiting.answered >= set(self.rights.known)

    def answer(self, waiting: Pending, partition: Partition, number: int) -> list[Emitted]:
        """Let a partition answer a waiting tuple; it says nothing if it has no tuple near it."""
        waiting.answered.add(partition.key)
        near = [held for owner, held in self.held if owner is partition and abs(held[0] - waiting.value) <= self.size]
        if not near:
            return []
        window = Window(partition, waiting.value, 0, near)
        row: Row = dict(zip(self.right.by, partition.key, strict=True))
        if self.left.on == NUMBER:
            row[TUPLE] = waiting.value
        else:
            row[self.left.on] = waiting.origin.row[self.left.on]
        return [emit(row | window.results(self.select), min(window.stamp, waiting.origin.stamp), number)]

    def end(self, number: int) -> list[Emitted]:
        """Answer all that is pending."""
        emitted = []
        for waiting in sorted(self.pending, key=lambda waiting: (waiting.value, waiting.arrival)):
            for partition in self.rights.known.values():
                if partition.key not in waiting.answered:
                    emitted += self.answer(waiting, partition, number)
        self.pending = []
        return emitted
