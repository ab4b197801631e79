"""Aggregate over data-driven windows (`advance: {when: …}`), one tuple at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.reference.aggregate import AggregateBase
from tests.reference.order import NUMBER, Axis, Order, Partition
from tests.reference.tuples import Emitted, Row, Tuple
from tests.reference.windows import Select, Window

When = Callable[[Row, Row, Row], bool | None]
"""Whether a tuple starts a new window: (the tuple, the window's first, the window's last)."""

Waiting = tuple[Axis, int, Tuple]


class Sessions(AggregateBase):
    """Where the predicate holds for a tuple, the window closes and a new one starts with this tuple.

    Decisions: A in the result is the A of the window's first tuple. With `size`, a tuple with
    A >= first.A + size starts a new window too; on the tuple number the window closes as soon as it has
    `size` tuples. With slack n the windows see the tuples as BSort(n) would emit them; late ones are
    ignored. At the end the waiting tuples come in first, in ascending (A, arrival) as from BSort, and
    windows that they close leave; then all open windows leave, in ascending (a, first appearance), also
    an unfinished one on the tuple number: a data-driven window may end at any tuple.
    """

    def __init__(self, select: Select, order: Order, when: When, size: Axis | None = None) -> None:
        super().__init__(select, order)
        self.when = when
        self.size = size
        self.open: dict[tuple[Any, ...], Window] = {}
        self.waiting: dict[tuple[Any, ...], list[Waiting]] = {}

    def push(self, at: int, arrived: Tuple) -> list[Emitted]:
        """Sort a tuple in; let the one that leaves the buffer into the window."""
        self.remember_type(arrived.row)
        partition = self.partitions.of(arrived.row)
        value, in_order = partition.take(arrived.row)
        self.arrivals += 1
        if value is None or not in_order:
            self.ignored += 1
            return []
        if self.order.on == NUMBER:
            return self.closing(self.step(partition, (value, self.arrivals, arrived)), arrived.number)
        waiting = self.waiting.setdefault(partition.key, [])
        waiting.append((value, self.arrivals, arrived))
        if len(waiting) <= self.order.slack:
            return []
        smallest = min(waiting, key=lambda held: held[:2])
        waiting.remove(smallest)
        return self.closing(self.step(partition, smallest), arrived.number)

    def step(self, partition: Partition, held: Waiting) -> list[Window]:
        """Put a tuple into the window or into a new one; return the windows that close."""
        closed = []
        window = self.open.get(partition.key)
        if window is not None and self.starts_new(window, held):
            closed.append(self.open.pop(partition.key))
            window = None
        if window is None:
            window = self.open[partition.key] = Window(partition, held[0], self.now)
        window.held.append(held)
        if self.order.on == NUMBER and self.size is not None and len(window.held) >= self.size:
            closed.append(self.open.pop(partition.key))
        return closed

    def starts_new(self, window: Window, held: Waiting) -> bool:
        """Say whether a tuple starts a new window."""
        if self.order.on != NUMBER and self.size is not None and held[0] >= window.start + self.size:
            return True
        tuples = window.tuples
        return self.when(held[2].row, tuples[0].row, tuples[-1].row) is True

    def end(self, number: int) -> list[Emitted]:
        """Let in all that waits, in ascending (A, arrival) as BSort would, then close every window."""
        rest = [(held, key) for key, waiting in self.waiting.items() for held in waiting]
        emitted = []
        for held, key in sorted(rest, key=lambda pair: pair[0][:2]):
            emitted += self.closing(self.step(self.partitions.known[key], held), number)
        emitted += self.closing(list(self.open.values()), number)
        self.open, self.waiting = {}, {}
        return emitted
