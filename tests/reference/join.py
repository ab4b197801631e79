"""Join, one tuple at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.reference.order import Axis, Order, Partitions
from tests.reference.tuples import Emitted, Operator, Row, Tuple, emit

Condition = Callable[[Row, Row], bool | None]
Combine = Callable[[Row, Row], Row]


def side_by_side(left: Row, right: Row) -> Row:
    """Return left's fields, then right's, with the prefix `right_` where a name is taken."""
    return left | {(f"right_{name}" if name in left else name): value for name, value in right.items()}


class Join(Operator):
    """Every pair of in-order tuples within `size` for which the condition is true, once.

    Decisions: when a tuple arrives, its pairs leave in the order in which the other side's tuples
    arrived. Nothing is ever pruned here: that must not change results.
    """

    def __init__(self, on: Condition, size: Axis, left: Order, right: Order, combine: Combine = side_by_side) -> None:
        super().__init__()
        self.on = on
        self.size = size
        self.combine = combine
        self.sides = (Partitions(left), Partitions(right))
        self.held: tuple[list[tuple[Axis, Tuple]], list[tuple[Axis, Tuple]]] = ([], [])

    def push(self, at: int, arrived: Tuple) -> list[Emitted]:
        """Pair a tuple of one side with all of the other."""
        value, in_order = self.sides[at].of(arrived.row).take(arrived.row)
        if value is None or not in_order:
            self.ignored += 1
            return []
        self.held[at].append((value, arrived))
        emitted = []
        for other_value, other in self.held[1 - at]:
            left, right = (arrived, other) if at == 0 else (other, arrived)
            if abs(value - other_value) <= self.size and self.on(left.row, right.row) is True:
                stamp = min(left.stamp, right.stamp)
                emitted.append(emit(self.combine(left.row, right.row), stamp, arrived.number))
        return emitted


class TableJoin(Operator):
    """Every tuple with every row of a static table for which the condition is true, in the table's order."""

    def __init__(self, on: Condition, table: Sequence[Row], combine: Combine = side_by_side) -> None:
        super().__init__()
        self.on = on
        self.table = table
        self.combine = combine

    def push(self, at: int, arrived: Tuple) -> list[Emitted]:
        """Pair a tuple with the table."""
        return [
            emit(self.combine(arrived.row, row), arrived.stamp, arrived.number)
            for row in self.table
            if self.on(arrived.row, row) is True
        ]
