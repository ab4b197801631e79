"""Order specifications: by which field a stream is ordered, with how much disorder, in which partitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from headway.boxes.keys import TEXT, Key, Keyed, KeyKind, check_keys, inside
from headway.boxes.sizes import Size, pair_size
from headway.errors import NetworkError
from headway.network.schema import Field, Schema, type_name

TUPLE_NUMBER = "#"
"""``on: "#"`` orders by the tuple's number in its partition."""
TUPLE_FIELD = "tuple"
"""The order field's name in the results of ``on: "#"``."""
MAX_SLACK = 1_000_000


def _parse_on(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise NetworkError(f'must be the name of a field, or "#" for the tuple number, not {value!r}')
    return value


def _parse_slack(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise NetworkError(f"counts tuples, so it must be a whole number, zero or more, not {value!r}")
    if value > MAX_SLACK:
        raise NetworkError(f"{value} is too large; the largest slack is {MAX_SLACK}")
    return value


_SLACK = KeyKind({"type": "integer", "minimum": 0}, _parse_slack)


@dataclass(frozen=True, slots=True)
class Order(Keyed):
    """Order on a field (or ``#``, the tuple number), with slack, in partitions by the values of fields."""

    on: str
    slack: int = 0
    by: tuple[str, ...] = ()

    keys = (
        Key("on", KeyKind(TEXT, _parse_on), 'the order field, or "#" for the tuple number', required=True),
        Key("slack", _SLACK, "how many larger values may come before a tuple that still counts (default 0)"),
        Key("by", "names", "the fields whose values make the partitions (default none)"),
    )

    @classmethod
    def parse(cls, value: object) -> Order:
        """Read ``{on: time, slack: 1, by: [sid]}``."""
        if isinstance(value, Order):
            return value
        if not isinstance(value, Mapping):
            raise NetworkError(f"an order is a mapping such as {{on: time, slack: 1, by: [sid]}}, not {value!r}")
        check_keys(value, cls.keys)
        return cls.read(value)

    @property
    def numbered(self) -> bool:
        """Whether the order is that of the tuple numbers."""
        return self.on == TUPLE_NUMBER

    def field(self, schema: Schema) -> Field:
        """Return the order field as in results (``tuple bigint`` for ``#``); raise a NetworkError if it is unfit."""
        if self.numbered:
            return Field(TUPLE_FIELD, pa.int64())
        with inside("on"):
            field = schema.field(self.on)
            if not orderable(field.type):
                raise NetworkError(
                    f"field '{field.name}' is a {type_name(field.type)}; order needs a tinyint, smallint, int, bigint, "
                    "float, double, date, timestamp or timestamp_ntz"
                )
        return field

    def by_fields(self, schema: Schema) -> tuple[Field, ...]:
        """Return the fields that define the partitions; check that they exist and can be compared."""
        with inside("by"):
            fields = tuple(schema.field(name) for name in self.by)
            for field in fields:
                if pa.types.is_nested(field.type):
                    raise NetworkError(
                        f"field '{field.name}' is a {type_name(field.type)}, which cannot make partitions"
                    )
        return fields

    def check(self, schema: Schema) -> None:
        """Raise a NetworkError unless the order fits the schema."""
        self.field(schema)
        self.by_fields(schema)


def shared_size(size: Size, left: tuple[Order, Schema], right: tuple[Order, Schema]) -> int | float:
    """Return a size in the unit that the order fields of two inputs share; raise a NetworkError if one is unfit."""
    types = []
    for number, (order, schema) in enumerate((left, right), 1):
        with inside(f"order: {number}"):
            order.check(schema)
            types.append(order.field(schema).type)
    with inside("size"):
        return pair_size(size, *types)


def orderable(type_: pa.DataType) -> bool:
    """Return whether a stream can be ordered by a field of this type."""
    return bool(
        pa.types.is_signed_integer(type_)
        or pa.types.is_floating(type_)
        or pa.types.is_date(type_)
        or pa.types.is_timestamp(type_)
    )


def parse_orders(value: object) -> tuple[Order, Order]:
    """Read the orders of two inputs: a list of two, or one for both."""
    if isinstance(value, list | tuple):
        if len(value) != 2:
            raise NetworkError(f"must be a list of two orders, one per input, not of {len(value)}")
        with inside("1"):
            first = Order.parse(value[0])
        with inside("2"):
            return first, Order.parse(value[1])
    order = Order.parse(value)
    return order, order


def _write_orders(orders: Sequence[Order | None]) -> list[dict[str, Any]]:
    return [order.to_mapping() for order in orders if order is not None]


_ONE = {"$ref": "#/$defs/order"}
_TWO = {"type": "array", "items": _ONE, "minItems": 2, "maxItems": 2}
_ORDER = KeyKind(_ONE, Order.parse, Order.to_mapping)
_ORDERS = KeyKind({"oneOf": [_ONE, _TWO]}, parse_orders, _write_orders)
ORDER = Key("order", _ORDER, "the order field, the slack and the partitions", True)


def orders_key(doc: str, required: bool = False) -> Key:
    """Return the key for the orders of two inputs."""
    return Key("order", _ORDERS, doc, required, field="orders")
