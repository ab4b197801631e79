"""Read a source to its end, write a whole output, and random tables."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from headway.connectors import Malformed, Reader, open_sink, open_source
from headway.network.schema import Schema


def drain(reader: Reader, limits: Sequence[int] = (1000,)) -> tuple[pa.Table | None, list[int], list[Malformed]]:
    """Return all tuples, their due moments and the malformed rows; reads take the limits in turn."""
    batches, due, malformed, turn = [], [], [], 0
    try:
        while (chunk := reader.read(limits[turn % len(limits)])) is not None:
            assert 1 <= len(chunk) <= limits[turn % len(limits)]
            turn += 1
            batches.append(chunk.batch)
            assert (chunk.due is not None) == reader.timed
            if chunk.due is not None:
                assert len(chunk.due) == len(chunk)
                due += chunk.due.tolist()
            malformed += reader.malformed()
        malformed += reader.malformed()
        assert reader.read(10) is None
    finally:
        reader.close()
        reader.close()
    return (pa.Table.from_batches(batches) if batches else None), due, malformed


def rows(reader: Reader, limits: Sequence[int] = (1000,)) -> list[dict[str, Any]]:
    """Return all tuples of a source that has no malformed rows."""
    table, _, malformed = drain(reader, limits)
    assert malformed == []
    return [] if table is None else table.to_pylist()


def write(path: Path, table: pa.Table, size: int = 1000) -> None:
    """Write a table to a file through a sink."""
    sink = open_sink("out", Schema.from_arrow(table.schema), path)
    for batch in table.to_batches(max_chunksize=size):
        sink.write(batch)
    sink.close()


def read_text(path: Path, content: str | bytes, schema: str, strict: bool = False) -> Reader:
    """Write a file and open it as a source called `s`."""
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return open_source("s", Schema.parse(schema), path, strict=strict)


EVERY_TYPE = Schema.parse(
    {
        "b": "boolean",
        "i8": "tinyint",
        "i16": "smallint",
        "i32": "int",
        "i64": "bigint",
        "f": "float",
        "d": "double",
        "s": "string",
        "y": "binary",
        "day": "date",
        "t": "timestamp",
        "n": "timestamp_ntz",
        "m": "decimal(12,3)",
        "l": "array<int>",
        "r": "struct<x:int,y:string>",
        "q": "array<timestamp>",
    }
)

_moments = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30))
_texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
_integers = {bits: st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (8, 16, 32, 64)}
_decimals = st.decimals("-999999999.999", "999999999.999", places=3, allow_nan=False)
_zoned = _moments.map(lambda moment: moment.replace(tzinfo=UTC))
_structs = st.fixed_dictionaries({"x": _integers[32] | st.none(), "y": _texts | st.none()})

_values: list[st.SearchStrategy[Any]] = [
    st.booleans(),
    _integers[8],
    _integers[16],
    _integers[32],
    _integers[64],
    st.floats(width=32),
    st.floats(),
    _texts,
    st.binary(max_size=8),
    st.dates(date(1, 1, 1), date(9999, 12, 31)),
    _zoned,
    _moments,
    _decimals,
    st.lists(_integers[32] | st.none(), max_size=3),
    _structs,
    st.lists(_zoned, max_size=2),
]


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    """Draw a table with a column of every type, NULLs and all."""
    count = draw(st.integers(0, 12))
    columns = [draw(st.lists(st.none() | values, min_size=count, max_size=count)) for values in _values]
    arrays = [pa.array(column, type_) for column, type_ in zip(columns, EVERY_TYPE.types, strict=True)]
    return pa.Table.from_arrays(arrays, schema=EVERY_TYPE.to_arrow())


def same(left: pa.Table, right: pa.Table) -> bool:
    """Whether two tables are equal; NaN equals NaN."""
    return repr(left.to_pylist()) == repr(right.to_pylist()) and bool(left.schema.equals(right.schema))
