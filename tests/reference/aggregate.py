"""Aggregate over windows of a grid, one tuple at a time."""

from __future__ import annotations

from typing import Any

from tests.reference.order import NUMBER, Axis, Order, Partition, Partitions, from_axis
from tests.reference.tuples import Emitted, Operator, Row, Tuple, emit
from tests.reference.windows import Select, Window

TUPLE = "tuple"
"""What the order field is called in results on the tuple number."""


class AggregateBase(Operator):
    """What both kinds of Aggregate share: partitions, results, the order at the end."""

    def __init__(self, select: Select, order: Order) -> None:
        super().__init__()
        self.select = select
        self.order = order
        self.partitions = Partitions(order)
        self.arrivals = 0
        self.like: Any = 0

    def result(self, window: Window, number: int) -> Emitted:
        """Return a window's tuple: A, the `by` fields, the results; its timestamp is the window's oldest."""
        name = TUPLE if self.order.on == NUMBER else self.order.on
        row: Row = {name: from_axis(window.start, self.like)}
        row |= dict(zip(self.order.by, window.partition.key, strict=True))
        return emit(row | window.results(self.select), window.stamp, number)

    def closing(self, windows: list[Window], number: int) -> list[Emitted]:
        """Return the results of windows of several partitions that leave together.

        Decision: in ascending (a, first appearance of the partition).
        """
        ordered = sorted(windows, key=lambda window: (window.start, window.partition.place))
        return [self.result(window, number) for window in ordered]

    def remember_type(self, row: Row) -> None:
        """Keep one order value, to give results the same type."""
        if self.order.on != NUMBER and row[self.order.on] is not None:
            self.like = row[self.order.on]


class Aggregate(AggregateBase):
    """Windows [a, a + size) with `a` on a grid of `advance`.

    Decisions: windows closed by one tuple leave in ascending a. `first` starts the grid at the
    partition's first A that is not NULL. Negative values floor towards minus infinity. A tuple that
    belongs to several windows, some of which have timed out, counts in the others; it counts as ignored
    when none is left. Windows that a tick emits leave in ascending (a, first appearance).
    """

    def __init__(
        self,
        select: Select,
        order: Order,
        size: Axis,
        advance: Axis | None = None,
        align_first: bool = False,
        timeout: int | None = None,
    ) -> None:
        super().__init__(select, order)
        self.size = size
        self.advance = size if advance is None else advance
        self.align_first = align_first
        self.timeout = timeout
        self.open: dict[tuple[tuple[Any, ...], Axis], Window] = {}
        self.gone: set[tuple[tuple[Any, ...], Axis]] = set()

    def starts(self, partition: Partition, value: Axis) -> list[Axis]:
        """Return the starts of all windows that hold a value, ascending."""
        origin = partition.first if self.align_first and partition.first is not None else 0
        lowest = int((value - origin - self.size) // self.advance) - 1
        highest = int((value - origin) // self.advance) + 1
        grid = [origin + step * self.advance for step in range(lowest, highest + 1)]
        if self.order.on == NUMBER:
            grid = [start for start in grid if start >= 0]
        return [start for start in grid if start <= value < start + self.size]

    def push(self, at: int, arrived: Tuple) -> list[Emitted]:
        """Add a tuple to its windows; return those that the frontier has reached."""
        self.remember_type(arrived.row)
        partition = self.partitions.of(arrived.row)
        value, in_order = partition.take(arrived.row)
        self.arrivals += 1
        if value is None or not in_order:
            self.ignored += 1
        else:
            starts = self.starts(partition, value)
            left = [start for start in starts if (partition.key, start) not in self.gone]
            self.ignored += bool(starts) and not left
            for start in left:
                at_key = (partition.key, start)
                window = self.open.setdefault(at_key, Window(partition, start, self.now))
                window.held.append((value, self.arrivals, arrived))
        ready = [window for window in self.open.values() if self.closes(window, partition)]
        return self.leave(ready, arrived.number)

    def closes(self, window: Window, partition: Partition) -> bool:
        """Say whether a window of this partition is complete."""
        if window.partition is not partition:
            return False
        if self.order.on == NUMBER:
            return partition.count >= window.start + self.size
        frontier = partition.frontier
        return frontier is not None and frontier >= window.start + self.size

    def leave(self, windows: list[Window], number: int) -> list[Emitted]:
        """Take windows out and return their results."""
        for window in windows:
            del self.open[window.partition.key, window.start]
        return self.closing(windows, number)

    def tick(self, number: int) -> list[Emitted]:
        """Emit the windows that have been open for the timeout; later tuples of theirs are ignored."""
        if self.timeout is None:
            return []
        late = [window for window in self.open.values() if window.opened + self.timeout <= self.now]
        self.gone |= {(window.partition.key, window.start) for window in late}
        return self.leave(late, number)

    def end(self, number: int) -> list[Emitted]:
        """Close all windows; one on the tuple number that is not full is dropped."""
        windows = [] if self.order.on == NUMBER else list(self.open.values())
        self.open = {}
        return self.closing(windows, number)
