"""Parquet files as data sets: fields from the footer, and rows by key from the row groups that may have it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from headway.errors import NetworkError, first_line
from headway.network.schema import Schema
from headway.tables.references import read_file, with_types


class ParquetData:
    """A Parquet file: its footer has the fields, and statistics by row group."""

    def __init__(self, path: Path, who: str) -> None:
        self._path, self._who = path, who

    def schema(self) -> Schema:
        """Return the fields, from the footer."""
        with self._guard():
            return self._schema(pq.read_schema(self._path))

    def table(self) -> pa.Table:
        """Return all of it."""
        return read_file(self._path, "parquet", self._who)

    def lookup(self, key: str, values: pa.Array) -> pa.Table:
        """Return the rows with one of the values; a row group is read only if its statistics and its keys allow one."""
        with self._guard(), pq.ParquetFile(self._path) as file:
            empty = file.schema_arrow.empty_table()
            parts = [with_types(empty, self._who, lenient=False)]
            for at in groups_with(file, key, values):
                keys = self._read(file, at, [key])
                if pc.any(pc.is_in(keys[key], value_set=values)).as_py():
                    table = self._read(file, at, None)
                    parts.append(table.filter(pc.is_in(table[key], value_set=values)))
            return pa.concat_tables(parts)

    def _schema(self, schema: pa.Schema) -> Schema:
        return Schema.from_arrow(with_types(schema.empty_table(), self._who, lenient=False).schema)

    def _read(self, file: pq.ParquetFile, group: int, columns: list[str] | None) -> pa.Table:
        table = file.read_row_group(group, columns)
        table.validate(full=True)
        return with_types(table, self._who, lenient=False)

    @contextlib.contextmanager
    def _guard(self) -> Iterator[None]:
        if not self._path.is_file():
            raise NetworkError(f"{self._who}: no such file: {self._path}")
        try:
            yield
        except (pa.ArrowException, OSError, ValueError) as error:
            raise NetworkError(f"{self._who}: cannot read {self._path}: {first_line(error)}") from error


def groups_with(file: pq.ParquetFile, key: str, values: pa.Array) -> list[int]:
    """Return the row groups in which a column may have one of the values, by their statistics."""
    meta = file.metadata
    leaf = next((at for at in range(meta.num_columns) if meta.schema.column(at).path == key), None)
    if not len(values):
        return []
    if leaf is None or (pa.types.is_floating(values.type) and pc.any(pc.is_nan(values)).as_py()):
        return list(range(meta.num_row_groups))  # statistics leave NaN out
    return [at for at in range(meta.num_row_groups) if _may_have(meta.row_group(at).column(leaf).statistics, values)]


def _may_have(statistics: Any, values: pa.Array) -> bool:
    if statistics is None or not statistics.has_min_max:
        return True
    try:
        low, high = (pa.scalar(one, values.type) for one in (statistics.min, statistics.max))
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return True
    return bool(pc.any(pc.and_(pc.greater_equal(values, low), pc.less_equal(values, high))).as_py())
