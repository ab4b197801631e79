"""BSort: an approximate sort with a bounded buffer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headway.boxes.keys import inside
from headway.boxes.operator import Operator, register
from headway.boxes.order import ORDER, Order
from headway.expressions import Functions
from headway.network.schema import Schema


@register
@dataclass(frozen=True, slots=True)
class BSort(Operator):
    """A buffer of slack + 1 tuples per partition; when it is full, the smallest leaves it."""

    order: Order

    op = "bsort"
    doc = "Sort approximately: per partition a buffer of slack + 1 tuples, from which the smallest leaves."
    keys = (ORDER,)
    passes = True
    traceable = True
    selectivity = 1.0

    @property
    def orderings(self) -> tuple[Order, ...]:
        """The order by which it sorts."""
        return (self.order,)

    def schemas(self, inputs: Sequence[Schema], functions: Functions | None) -> tuple[Schema, ...]:
        """Return the input's schema."""
        with inside("order"):
            self.order.check(inputs[0])
        return (inputs[0],)
