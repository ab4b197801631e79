"""Join: pairs of tuples of two streams that lie close together, or of a stream and a static table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headway.boxes.keys import Key, inside
from headway.boxes.operator import Operator, register, result_schema
from headway.boxes.order import Order, orders_key, shared_size
from headway.boxes.sizes import Size
from headway.boxes.union import ORDERED
from headway.errors import NetworkError
from headway.expressions import Expression, Functions, JoinCondition
from headway.expressions.compiling import compile_join, compile_select
from headway.expressions.model import Scope
from headway.network.schema import Field, Schema

PREFIX = "right_"
"""Prefix for the name of a right field that the left already has."""


@register
@dataclass(frozen=True, slots=True)
class Join(Operator):
    """Pairs within `size` for which the predicate holds. With a static table, `size` and both orders are None."""

    on: str
    size: Size | None = None
    orders: tuple[Order | None, Order | None] = (None, None)
    select: str | None = None
    ordered: bool = True

    op = "join"
    doc = "Pairs of tuples that lie within `size` of each other and fulfil a predicate."
    keys = (
        Key("on", "text", "the predicate, such as `left.pos = right.pos`", True),
        Key("size", "size", "the largest distance of the order fields; not with a static table"),
        orders_key("a list of two orders, left and right; not with a static table"),
        Key("select", "select", "the fields of the result (default: all, right ones prefixed where the name is taken)"),
        ORDERED,
    )
    inputs = (2, 2)
    takes_tables = True

    @classmethod
    def check_settings(cls, settings: Mapping[str, Any]) -> None:
        """Check that `size` and `order` belong to two streams, not to a static table."""
        inputs = settings.get("in")
        listed = inputs if isinstance(inputs, list | tuple) else [inputs]
        tables = [isinstance(item, Mapping) and item.get("as") != "stream" for item in listed]
        if all(tables):
            raise NetworkError("in: at least one input must be a stream, not a static table")
        for key in ("size", "order"):
            if not any(tables) and key not in settings:
                raise NetworkError(
                    f"{key}: is missing; a join of two streams needs size and order, for a bounded window"
                )
            if any(tables) and key in settings:
                raise NetworkError(
                    f"{key}: has no meaning in a join with a static table, which is a window without bounds"
                )

    @property
    def stateful(self) -> bool:
        """Whether it joins two streams: a static table never changes."""
        return self.size is not None

    @property
    def tuplewise(self) -> bool:
        """Whether it joins a stream with a static table."""
        return self.size is None

    @property
    def orderings(self) -> tuple[Order, ...]:
        """The orders of both streams."""
        return tuple(order for order in self.orders if order is not None)

    def schemas(self, inputs: Sequence[Schema], functions: Functions | None) -> tuple[Schema, ...]:
        """Return left fields and right fields, or the fields of ``select``."""
        left, right = inputs
        self.distance(left, right)
        self.condition(left, right, functions)
        results = self.results(left, right, functions)
        if results is None:
            return (joined(left, right),)
        with inside("select"):
            return (result_schema((), results),)

    def distance(self, left: Schema, right: Schema) -> int | float | None:
        """Return the size in the unit that both order fields share; None in a join with a static table."""
        one, two = self.orders
        if self.size is None or one is None or two is None:
            return None
        return shared_size(self.size, (one, left), (two, right))

    def condition(self, left: Schema, right: Schema, functions: Functions | None = None) -> JoinCondition:
        """Return the compiled predicate."""
        with inside("on"):
            return compile_join(self.on, left, right, functions)

    def results(
        self, left: Schema, right: Schema, functions: Functions | None = None
    ) -> tuple[tuple[str, Expression], ...] | None:
        """Return the compiled ``select`` over the slots of left, then of right; None: all fields."""
        if self.select is None:
            return None
        with inside("select"):
            return compile_select(self.select, Scope([("left", left), ("right", right)], functions))


def joined(left: Schema, right: Schema) -> Schema:
    """Return the fields of both; a right field whose name is taken gets the prefix ``right_``.

    Where that name is taken too, as after a join of a join, it gets the prefix again.
    """
    taken = {name.lower() for name in left.names}
    kept = {name.lower() for name in right.names} - taken
    fields = list(left)
    for field in right:
        name = field.name
        if name.lower() in taken:
            while name.lower() in taken or name.lower() in kept:
                name = PREFIX + name
        taken.add(name.lower())
        fields.append(Field(name, field.type))
    return Schema(tuple(fields))
