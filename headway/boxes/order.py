"""Order specifications: by which field a stream is ordered, with how much disorder, in which partitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from headway.boxes.keys import Key, KeyKind, check_keys, inside, parse_names
from headway.errors import NetworkError
from headway.network.schema import Field, Schema, type_name

TUPLE_NUMBER = "#"
"""``on: "#"`` orders by the tuple's number in its partition."""
TUPLE_FIELD = "tuple"
"""The order field's name in the results of ``on: "#"``."""
MAX_SLACK = 1_000_000


@dataclass(frozen=True, slots=True)
class Order:
    """Order on a field (or ``#``, the tuple number), with slack, in partitions by the values of fields."""

    on: str
    slack: int = 0
    by: tuple[str, ...] = ()

    keys = (
        Key("on", "field", 'the order field, or "#" for the tuple number', required=True),
        Key("slack", "count", "how many larger values may come before a tuple that still counts (default 0)"),
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
        on = value["on"]
        if not isinstance(on, str) or not on:
            raise NetworkError(f'on: must be the name of a field, or "#" for the tuple number, not {on!r}')
        slack = value.get("slack")
        slack = 0 if slack is None else slack
        if isinstance(slack, bool) or not isinstance(slack, int) or slack < 0:
            raise NetworkError(f"slack: counts tuples, so it must be a whole number, zero or more, not {slack!r}")
        if slack > MAX_SLACK:
            raise NetworkError(f"slack: {slack} is too large; the largest slack is {MAX_SLACK}")
        with inside("by"):
            by = parse_names(value.get("by"))
        return cls(on, slack, by)

    @property
    def numbered(self) -> bool:
        """Whether the order is that of the tuple numbers."""
        return self.on == TUPLE_NUMBER

    def to_mapping(self) -> dict[str, Any]:
        """Return the order as the file has it."""
        mapping: dict[str, Any] = {"on": self.on}
        if self.slack:
            mapping["slack"] = self.slack
        if self.by:
            mapping["by"] = list(self.by)
        return mapping

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
            second = Order.parse(value[1])
        return first, second
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
