"""Rows for any schema, with the edges of every type."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa

from headway.connectors.jsonl import JsonLinesSink
from headway.connectors.protocol import SinkRequest
from headway.network.schema import Schema

_TEXTS = (
    "",
    "a",
    "b",
    "A b",
    "%",
    "_",
    "é",
    "\U0001f600",
    "12",
    "-1.5",
    "true",
    "2024-01-01",
    "x" * 50,
    "\0",
    "\n",
    "'",
    "(",
    "[a-",
)
_FLOATS = (0.0, -0.0, 1.0, 1.5, -2.5, 30.0, 45.0, 1e300, -1e300, 5e-324, math.inf, -math.inf, math.nan)


def make_rows(random: Random, schema: Schema, count: int) -> list[dict[str, Any]]:
    """Return rows that fit the schema."""
    edges = random.random() < 0.5
    return [{field.name: make_value(random, field.type, edges, at) for field in schema} for at in range(count)]


def as_text(table: pa.Table) -> list[str]:
    """Return the rows as a sink writes them: Python has no dates after the year 9999, and results may."""
    sink = JsonLinesSink(SinkRequest("fuzz", Schema.from_arrow(table.schema), "-"))
    return [line for batch in table.to_batches() for line in sink.lines(batch).to_pylist()]


def make_value(random: Random, type_: pa.DataType, edges: bool = True, at: int = 0) -> Any:
    """Return a value of a type; mostly plain ones that ascend with `at`, unless edges are wanted."""
    if random.random() < 0.08:
        return None
    if pa.types.is_boolean(type_):
        return random.random() < 0.5
    if pa.types.is_integer(type_):
        top = 2 ** (type_.bit_width - 1) - 1
        plain = min(top, at + random.randrange(3))
        return random.choice((0, 1, -1, top, -top - 1, top // 2)) if edges and random.random() < 0.3 else plain
    if pa.types.is_floating(type_):
        return random.choice(_FLOATS) if edges and random.random() < 0.4 else float(at + random.randrange(40))
    if pa.types.is_decimal(type_):
        whole = 10 ** (type_.precision - type_.scale)
        return Decimal(random.choice((0, 1, -1, whole - 1, 1 - whole))) if whole > 1 else Decimal(0)
    if pa.types.is_timestamp(type_):
        moment = datetime(2024, 1, 1, tzinfo=UTC if type_.tz else None)
        if edges and random.random() < 0.2:
            return random.choice((moment.replace(year=1), moment.replace(year=9999, month=12, day=31)))
        return moment + timedelta(seconds=at)
    if pa.types.is_date(type_):
        return random.choice((date(1, 1, 1), date(9999, 12, 31), date(2024, 2, 29))) if edges else date(2024, 1, 1)
    if pa.types.is_binary(type_):
        return random.randbytes(random.randrange(4))
    if pa.types.is_list(type_):
        return [make_value(random, type_.value_type, edges, at) for _ in range(random.randrange(3))]
    if pa.types.is_struct(type_):
        return {field.name: make_value(random, field.type, edges, at) for field in type_}
    return random.choice(_TEXTS) if edges else random.choice("abc")
