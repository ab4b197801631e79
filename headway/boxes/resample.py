"""Resample: what one stream's windows hold around each tuple of another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headway import expressions
from headway.boxes.durations import Size, pair_size, parse_size, write_size
from headway.boxes.keys import Key, Settings, inside, parse_flag, parse_select
from headway.boxes.operator import Operator, register, result_schema
from headway.boxes.order import Order, parse_orders
from headway.boxes.scopes import fields_of, scope_of
from headway.boxes.union import ORDERED
from headway.schema import Schema

if TYPE_CHECKING:
    from headway.expressions import AggregateSelect, Functions


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
        Key("select", "select", "the results over the second input, such as `avg(pos) as pos`", required=True),
        Key("size", "size", "the largest distance of the order fields", required=True),
        Key("order", "orders", "a list of two orders, one per input", required=True),
        ORDERED,
    )
    inputs = (2, 2)

    @classmethod
    def read(cls, settings: Settings) -> Resample:
        """Read all keys."""
        return cls(
            settings.need("select", parse_select),
            settings.need("size", parse_size),
            settings.need("order", parse_orders),
            settings.get("ordered", parse_flag, True),
        )

    @property
    def orderings(self) -> tuple[Order, ...]:
        """The orders of both streams."""
        return self.orders

    def to_mapping(self) -> dict[str, Any]:
        """Return the keys that are not at their default."""
        mapping: dict[str, Any] = {
            "select": self.select,
            "size": write_size(self.size),
            "order": [order.to_mapping() for order in self.orders],
        }
        if not self.ordered:
            mapping["ordered"] = False
        return mapping

    def schemas(self, inputs: Sequence[Schema], functions: Functions | None) -> tuple[Schema, ...]:
        """Return the second input's by fields, the first input's order field and the results."""
        first, second = inputs
        self.distance(first, second)
        results = self.results(second, functions)
        fields = (*self.orders[1].by_fields(second), self.orders[0].field(first), *fields_of(results.results))
        with inside("select"):
            return (result_schema(fields),)

    def distance(self, first: Schema, second: Schema) -> int | float:
        """Return the size in the unit that both order fields share."""
        with inside("order: 1"):
            self.orders[0].check(first)
        with inside("order: 2"):
            self.orders[1].check(second)
        with inside("size"):
            return pair_size(self.size, self.orders[0].field(first).type, self.orders[1].field(second).type)

    def results(self, second: Schema, functions: Functions | None = None) -> AggregateSelect:
        """Return the compiled select list over the second input; its by fields are the `extra` fields."""
        with inside("order: 2"):
            by = self.orders[1].by_fields(second)
        with inside("select"):
            return expressions.compile_aggregates(self.select, scope_of(second, functions), Schema(by))
