"""Static tables: small data by reference, or given in Python, to join streams with."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from headway.errors import NetworkError, first_line
from headway.network import Table
from headway.network.schema import Schema
from headway.network.trust import OWN, Trust
from headway.tables.datasets import DataSet, data_schema, data_table, is_data, read_data
from headway.tables.references import find_table, with_types


def load_table(
    ref: str | Table, tables: Mapping[str, Any] | None = None, folder: Path | None = None, trust: Trust = OWN
) -> pa.Table:
    """Return a static table with Headway's types: one of `tables` by name, a data set, a file, or what a loader finds.

    A relative path is resolved against `folder`, the network file's, or else the current one. A CSV file has a header,
    and its types are inferred. Raises a NetworkError that says what is missing, or what `trust` does not allow.
    """
    data = _described(ref, tables, folder, trust)
    if data is not None:
        return data_table(data)
    ref = ref.ref if isinstance(ref, Table) else ref
    given, who = dict(tables or {}), f"table '{ref}'"
    if ref not in given:
        return find_table(ref, folder, trust, who, given)
    table = given[ref]
    if isinstance(table, str | Path):  # given in Python: any file, from the current folder
        return find_table(str(table), None, OWN, f"table '{table}'")
    data = _stored(table, who, trust)
    return with_types(_given(table, ref), who, lenient=False) if data is None else data_table(data)


def table_schema(
    ref: str | Table, tables: Mapping[str, Any] | None = None, folder: Path | None = None, trust: Trust = OWN
) -> Schema:
    """Return a static table's schema; `tables` may hold schemas instead of tables."""
    name = ref.ref if isinstance(ref, Table) else ref
    given = (tables or {}).get(name)
    if isinstance(given, Schema):
        return given
    data = _described(ref, tables, folder, trust)
    if data is None:
        data = _stored(given, f"table '{name}'", trust)
    return Schema.from_arrow(load_table(ref, tables, folder, trust).schema) if data is None else data_schema(data)


def _described(ref: str | Table, tables: Mapping[str, Any] | None, folder: Path | None, trust: Trust) -> DataSet | None:
    """Return the data set that a box's input describes, unless the run gives a table in its place."""
    if not isinstance(ref, Table) or ref.data is None or ref.ref in (tables or {}):
        return None
    return read_data(ref.data, f"table '{ref.ref}'", folder, trust)


def _stored(given: object, who: str, trust: Trust) -> DataSet | None:
    """Return a stored data set that was given as a table; None for anything else.

    One that a network file describes has the file's own trust; in a mere check it contacts nobody, either.
    """
    if isinstance(given, DataSet):
        return given.contacting_nobody() if trust.offline else given
    return read_data(given, who) if is_data(given) else None


def _given(table: object, ref: str) -> pa.Table:
    """Return a table that was given in Python in one of the usual forms."""
    try:
        found = _as_table(table)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise NetworkError(f"table '{ref}': {first_line(error)}") from None
    if found is not None and found.num_columns:
        return found
    kind = f"{type(table).__name__}{'' if found is None else ' without columns'}"
    if isinstance(table, pa.RecordBatchReader):
        kind += ", which can be read only once"
    raise NetworkError(
        f"table '{ref}': a table is a path, a pyarrow.Table, a DataFrame (pandas, polars), a mapping of columns or "
        f"a list of rows such as {{'a': 1}}, not {kind}"
    )


def _as_table(table: Any) -> pa.Table | None:
    if isinstance(table, pa.Table):
        return table
    if isinstance(table, Mapping):
        return pa.table(dict(table))
    if isinstance(table, list | tuple):
        if not all(isinstance(row, Mapping) for row in table):
            return None
        names = dict.fromkeys([name for row in table for name in row])
        return pa.table({name: [row.get(name) for row in table] for name in names})
    if isinstance(table, pa.RecordBatchReader) or not hasattr(table, "__arrow_c_stream__"):
        return pa.table(table) if isinstance(table, pa.RecordBatch) else None
    found = pa.table(table)
    return found.select([name for name in found.column_names if not name.startswith("__index_level_")])
