"""BSort: an approximate sort with a bounded buffer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headway.boxes.keys import Key, Settings, inside
from headway.boxes.operator import Operator, register
from headway.boxes.order import Order
from headway.schema import Schema

if TYPE_CHECKING:
    from headway.expressions import Functions


@register
@dataclass(frozen=True, slots=True)
class BSort(Operator):
    """Per partition a buffer of slack + 1 tuples; when it is full, the smallest leaves it."""

    order: Order

    op = "bsort"
    doc = "Sort approximately: per partition a buffer of slack + 1 tuples, from which the smallest leaves."
    keys = (Key("order", "order", "the order field, the slack and the partitions", required=True),)
    passes = True
    traceable = True
    selectivity = 1.0

    @classmethod
    def read(cls, settings: Settings) -> BSort:
        """Read ``order``."""
        return cls(settings.need("order", Order.parse))

    @property
    def orderings(self) -> tuple[Order, ...]:
        """The order by which it sorts."""
        return (self.order,)

    def to_mapping(self) -> dict[str, Any]:
        """Return ``order``."""
        return {"order": self.order.to_mapping()}

    def schemas(self, inputs: Sequence[Schema], functions: Functions | None) -> tuple[Schema, ...]:
        """Return the input's schema."""
        with inside("order"):
            self.order.check(inputs[0])
        return (inputs[0],)
