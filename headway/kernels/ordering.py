"""An ordered input of a box: its partitions, order values, and which tuples are in order.

Shared by all operators that are sensitive to order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headway.boxes.order import Order
from headway.columns import Indices, Int64s, Mask, Values
from headway.kernels.order import Frontiers, number_in_partition
from headway.kernels.partitions import Partitions
from headway.schema import Schema
from headway.trains import Train


class Admitted(NamedTuple):
    """The tuples of a train that are in order: partition, order value, and the partition's frontier after each.

    `at` are their places in the train, None for all; `late` is how many others there were.
    """

    codes: Int64s
    values: Values
    frontiers: Values
    at: Indices | None
    late: int


@dataclass(slots=True)
class OrderState:
    """What an ordered input remembers: its partitions, their frontiers, and how many tuples each has seen.

    `born` is the arrival number of each partition's first tuple: the order of their first appearance, also
    among partitions that other shards hold.
    """

    partitions: Partitions
    frontiers: Frontiers
    counted: Int64s
    born: Int64s

    def grow(self) -> None:
        """Make room for new partitions."""
        count = self.partitions.count
        self.frontiers.grow(count)
        missing = count - len(self.counted)
        if missing > 0:
            more = np.zeros(max(missing, len(self.counted)), np.int64)
            self.counted = np.concatenate([self.counted, more])
            self.born = np.concatenate([self.born, more])

    def meet(self, known: int, codes: Int64s, numbers: Int64s) -> None:
        """Make room for partitions beyond the first `known`, and note which of these tuples brought each."""
        self.grow()
        if self.partitions.count > known:
            new = np.flatnonzero(codes >= known)[::-1]
            self.born[codes[new]] = numbers[new]  # the last write is the first tuple

    def dump(self) -> dict[str, Any]:
        """Return everything as named arrays."""
        self.grow()
        count = self.partitions.count
        return {
            **self.frontiers.dump(count),
            "counted": self.counted[:count],
            "born": self.born[:count],
            **self.partitions.dump(),
        }

    def restore(self, arrays: dict[str, Any]) -> None:
        """Take over what `dump` returned."""
        self.partitions.restore(arrays)
        self.frontiers.restore(arrays)
        self.counted = arrays["counted"]
        self.born = arrays["born"]


class OrderedInput:
    """An order specification, compiled for a schema."""

    def __init__(self, schema: Schema, order: Order, dtype: npt.DTypeLike | None = None) -> None:
        """Compile; `dtype` is the type of the order values, by default what the field needs."""
        self.numbered = order.on == "#"
        self.slack = 0 if self.numbered else order.slack
        self.by = tuple(schema.index(name) for name in order.by)
        self.by_types = tuple(schema.types[at] for at in self.by)
        self.on = -1 if self.numbered else schema.index(order.on)
        self.dtype = np.dtype(dtype if dtype is not None else order_dtype((schema, order)))

    def initial(self) -> OrderState:
        """Return the state before the first tuple."""
        none = np.zeros(0, np.int64)
        return OrderState(Partitions(self.by_types), Frontiers(self.slack, self.dtype), none, none)

    def codes(self, state: OrderState, train: Train) -> Int64s:
        """Return each tuple's partition; a partition is known from its first tuple, in order or not."""
        known = state.partitions.count
        codes = state.partitions.codes([train.columns[at] for at in self.by], len(train))
        state.meet(known, codes, train.numbers)
        return codes

    def usable(self, train: Train) -> Mask | None:
        """Return where tuples have an order value (NULL and NaN are none); None: all have."""
        if self.numbered:
            return None
        column = train.columns[self.on]
        usable = column.valid
        if column.values.dtype.kind == "f":
            numbers = ~np.isnan(column.values)
            usable = numbers if usable is None else usable & numbers
        return None if usable is None or usable.all() else usable

    def admit(self, state: OrderState, train: Train) -> Admitted:
        """Take in a train and say which of its tuples are in order."""
        codes = self.codes(state, train)
        if self.numbered:
            values: Values = number_in_partition(state.counted, codes).astype(self.dtype, copy=False)
            state.frontiers.largest[:, 0][codes] = values
            return Admitted(codes, values, values, None, 0)
        values = train.columns[self.on].values.astype(self.dtype, copy=False)
        usable = self.usable(train)
        at: Indices | None = None
        if usable is not None:
            at = np.flatnonzero(usable)
            codes, values = codes[at], values[at]
        in_order, frontiers = state.frontiers.admit(codes, values)
        if in_order is not None:
            kept = np.flatnonzero(in_order)
            at = kept if at is None else at[kept]
            codes, values, frontiers = codes[kept], values[kept], frontiers[kept]
        return Admitted(codes, values, frontiers, at, len(train) - len(values))


def order_dtype(*inputs: tuple[Schema, Order | None]) -> np.dtype[Any]:
    """Return the type in which the order values of inputs are compared: float64 if a field is floating, else int64."""
    floating = [
        pa.types.is_floating(schema.field(order.on).type)
        for schema, order in inputs
        if order is not None and order.on != "#"
    ]
    return np.dtype(np.float64 if any(floating) else np.int64)
