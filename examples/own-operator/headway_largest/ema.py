"""The operator `ema`, an exponential moving average per partition: a state, but no windows and no order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from headway.boxes.keys import Key, KeyKind, inside
from headway.boxes.operator import Operator
from headway.columns import Column, Int64s, Values, to_arrow
from headway.errors import NetworkError
from headway.expressions import Functions
from headway.kernels.codec import pack, unpack
from headway.kernels.kernel import Kernel, Result, Tables
from headway.network.schema import Field, Schema
from headway.trains import Train


def _share(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
        raise NetworkError(f"must be a number above 0, at most 1, not {value!r}")
    return float(value)


@dataclass(frozen=True, slots=True)
class Ema(Operator):
    """Adds to each tuple the moving average of a field in its partition; a tuple in which it is NULL is dropped."""

    of: str
    weight: float
    by: tuple[str, ...] = ()
    name: str = "ema"

    op = "ema"
    doc = "Add an exponential moving average of a field in each partition."
    keys = (
        Key("of", "field", "the double field to average", True),
        Key("weight", KeyKind({"type": "number", "exclusiveMinimum": 0, "maximum": 1}, _share), "of a new value", True),
        Key("by", "names", "the fields whose values make the partitions (default none)"),
        Key("as", "text", "the name of the result (default ema)", field="name"),  # `as` is a keyword of Python
    )
    traceable = True
    for_strangers = True

    def schemas(self, inputs: Sequence[Schema], functions: Functions | None) -> tuple[Schema, ...]:
        """Return the input's fields and the average."""
        (schema,) = inputs
        with inside("of"):
            if schema.field(self.of).type != pa.float64():
                raise NetworkError(f"field '{self.of}' must be a double")
        with inside("by"):
            for name in self.by:
                schema.field(name)
        with inside("as"):
            return (Schema((*schema.fields, Field(self.name, pa.float64()))),)

    @property
    def partitions(self) -> tuple[str, ...]:
        """Tuples of different partitions never meet."""
        return self.by

    def may_fail(self, schema: Schema, functions: Functions | None) -> bool:
        """Return False: no tuple becomes a dead letter."""
        return False


class EmaKernel(Kernel):
    """Its state is the last average of each partition, a plain dictionary."""

    def __init__(
        self, spec: Ema, box: str, schemas: Sequence[Schema], tables: Tables, functions: Functions | None
    ) -> None:
        """Compile for the schema of the input."""
        (self._schema,) = schemas
        self._weight, self._of = spec.weight, self._schema.index(spec.of)
        self._by = [self._schema.index(name) for name in spec.by]

    def initial(self) -> dict[Any, float]:
        """Return a state without partitions."""
        return {}

    def run(self, state: dict[Any, float], trains: Sequence[Train], now: int) -> tuple[dict[Any, float], Result]:
        """Average; the result keeps the input's numbers, stamps, progress, ticks and end."""
        (train,) = trains
        train = train.take(np.flatnonzero(train.columns[self._of].is_valid()))
        by = [to_arrow(train.columns[at], self._schema.types[at]).to_pylist() for at in self._by]
        keys = list(zip(*by, strict=True)) if by else [()] * len(train)
        averages = np.empty(len(train))
        for at, (key, value) in enumerate(zip(keys, train.columns[self._of].values.tolist(), strict=True)):
            last = state.get(key, value)
            averages[at] = state[key] = last + self._weight * (value - last)
        return state, Result((train.with_columns((*train.columns, Column(averages))),))

    def ranks(self, state: dict[Any, float], output: Train) -> tuple[Values, Int64s]:
        """Return nothing but ties: every result has an arrival number of its own."""
        return np.zeros(len(output), np.int64), np.zeros(len(output), np.int64)

    def dump(self, state: dict[Any, float]) -> bytes:
        """Write the averages and, for each field of `by`, the partitions' values."""
        by = {str(at): pa.array([key[i] for key in state], self._schema.types[at]) for i, at in enumerate(self._by)}
        return pack({"op": "ema"}, {"averages": np.array(list(state.values())), **by})

    def load(self, data: bytes) -> dict[Any, float]:
        """Read back what `dump` wrote."""
        _, arrays = unpack(data)
        by = [arrays[str(at)].to_pylist() for at in self._by]
        keys = list(zip(*by, strict=True)) if by else [()] * len(arrays["averages"])
        return dict(zip(keys, arrays["averages"].tolist(), strict=True))
