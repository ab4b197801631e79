"""Resample: results over the tuples of one stream around each tuple of another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headway.boxes.keys import Key, inside
from headway.boxes.operator import Operator, register, result_schema
from headway.boxes.order import Order, orders_key, shared_size
from headway.boxes.sizes import Size
from headway.boxes.union import ORDERED
from headway.expressions import AggregateSelect, Functions
from headway.expressions.compiling import compile_aggregates
from headway.expressions.model import Scope
from headway.network.schema import Schema


@register
@dataclass(frozen=True, slots=True)
class Resample(Operator):
    """For each tuple of the first input and each partition of the second: results over the tuples within `size`."""

    select: str
    size: Size
    orders: tuple[Order, Order]
    ordered: bool = True

    op = "resample"
    doc = "For each tuple of the first input: results over the tuples of the second within `size` of it."
    keys = (
        Key("select", "select", "the results over the second input, such as `avg(pos) as pos`", True),
        Key("size", "size", "the largest distance of the order fields", True),
        orders_key("a list of two orders, one per input", True),
        ORDERED,
    )
    inputs = (2, 2)

    @property
    def orderings(self) -> tuple[Order, ...]:
        """The orders of both streams."""
        return self.orders

    def schemas(self, inputs: Sequence[Schema], functions: Functions | None) -> tuple[Schema, ...]:
        """Return the second input's by fields, the first input's order field and the results."""
        first, second = inputs
        self.distance(first, second)
        results = self.results(second, functions)
        fields = (*self.orders[1].by_fields(second), self.orders[0].field(first))
        with inside("select"):
            return (result_schema(fields, results.results),)

    def distance(self, first: Schema, second: Schema) -> int | float:
        """Return the size in the unit that both order fields share."""
        return shared_size(self.size, (self.orders[0], first), (self.orders[1], second))

    def results(self, second: Schema, functions: Functions | None = None) -> AggregateSelect:
        """Return the compiled select list over the second input; its by fields are the `extra` fields."""
        with inside("order: 2"):
            by = self.orders[1].by_fields(second)
        with inside("select"):
            return compile_aggregates(self.select, Scope.of(second, functions), Schema(by))
