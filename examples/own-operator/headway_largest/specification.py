"""What a network file says of the operator `largest`, and what Headway must know of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from headway.boxes.keys import Key, KeyKind, inside
from headway.boxes.operator import Operator
from headway.boxes.order import ORDER, Order
from headway.boxes.sizes import Size, native_size
from headway.errors import NetworkError
from headway.network.schema import Schema, type_name

if TYPE_CHECKING:
    from headway.expressions import Functions


MOST = 1_000_000
"""The largest `k`: all of a window's best tuples are in memory."""


def _parse_k(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST:
        raise NetworkError(f"must be a whole number from 1 to {MOST}, not {value!r}")
    return value


K = KeyKind({"type": "integer", "minimum": 1, "maximum": MOST}, _parse_k)
"""A kind of value that Headway does not know: its JSON Schema, and how it is read."""


@dataclass(frozen=True, slots=True)
class Largest(Operator):
    """The `k` tuples with the largest values of a field, of each window of `size` and each partition."""

    of: str
    k: int
    order: Order
    size: Size

    op = "largest"
    doc = "The k tuples of each window and partition with the largest values of a field."
    keys = (
        Key("of", "field", "the integer, float or double field whose largest values are wanted", True),
        Key("k", K, "how many tuples of a window", True),
        ORDER,
        Key("size", "size", "the width of a window", True),
    )
    passes = True
    for_strangers = True

    def schemas(self, inputs: Sequence[Schema], functions: Functions | None) -> tuple[Schema, ...]:
        """Return the input's schema: tuples leave as they came."""
        schema = inputs[0]
        with inside("order"):
            if self.order.numbered:
                raise NetworkError("on: largest needs a field, not '#'")
            self.order.check(schema)
        with inside("size"):
            native_size(self.size, self.order.field(schema).type)
        with inside("of"):
            field = schema.field(self.of)
            if not (pa.types.is_integer(field.type) or pa.types.is_floating(field.type)):
                raise NetworkError(
                    f"field '{field.name}' is a {type_name(field.type)}; an integer, a float or a double is needed"
                )
        return (schema,)

    @property
    def orderings(self) -> tuple[Order, ...]:
        """The order of its windows: tuples wait in it, and late ones are ignored."""
        return (self.order,)

    @property
    def partitions(self) -> tuple[str, ...]:
        """Windows of different partitions never meet, so several shards can each do some of them."""
        return self.order.by
