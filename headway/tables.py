"""Static tables: small data from CSV, JSON lines or Parquet files, or given in Python, to join streams with."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from headway.errors import NetworkError, SchemaError, choices, did_you_mean
from headway.tables import infer_csv, infer_json_lines
from headway.paths import unusable
from headway.schema import Schema, normalise
from headway.trust import OWN, Trust

SUFFIXES = (".csv", ".jsonl", ".parquet")

FORMATS = ("avro", "csv", "delta", "json", "orc", "parquet", "text", "xml")
"""What ``format.`path``` may name."""
_NAME = re.compile(r"\w+(?:\.\w+){0,2}")
_QUOTED = re.compile(r"(\w+)\.`([^`]+)`")
_SHOWN = 120

Loader = Callable[[str, Path | None], pa.Table | None]
_loaders: list[Loader] = []


def register_table_loader(loader: Loader) -> None:
    """Let a function find tables that are neither given nor files.

    It gets the reference and the folder from which relative paths are meant, and returns None for what it does
    not know. The first one registered that knows a table wins.
    """
    _loaders.append(loader)


def load_table(
    ref: str, tables: Mapping[str, Any] | None = None, folder: Path | None = None, trust: Trust = OWN
) -> pa.Table:
    """Return a static table with Headway's types: one of `tables` by name, a file, or what a loader finds.

    A relative path is meant from `folder`, the network file's, else from the current one. A CSV file has a
    header, and its types are inferred. Raises a NetworkError that says what is missing, or what `trust` does not
    allow.
    """
    given = dict(tables or {})
    if ref in given:
        table = given[ref]
        if isinstance(table, str | Path):
            return load_table(str(table), None, None)  # who gives a path in Python names any file, from where it runs
        return _convert(_given(table, ref), ref, lenient=False)
    path = Path(ref) if folder is None else folder / ref
    suffix = path.suffix.lower()
    wrong = unusable(path)
    if wrong and trust.own:  # a stranger is told nothing of files that it may not name
        raise NetworkError(f"table '{ref}': '{path}' is no path: {wrong}")
    _check_trust(ref, folder, trust)
    if wrong:
        raise NetworkError(f"table '{ref}': '{path}' is no path: {wrong}")
    if suffix not in SUFFIXES or not path.is_file():
        for loader in _loaders:
            found = loader(ref, folder)
            if found is not None:
                return _convert(found, ref, lenient=False)
    if suffix not in SUFFIXES:
        raise NetworkError(
            f"table '{ref}': no table of this name is given{did_you_mean(ref, given) or ';'} "
            f"tables: {choices(sorted(given))}; a file ends in {choices(SUFFIXES)}"
        )
    if not path.is_file():
        raise NetworkError(f"table '{ref}': no such file: {path}")
    try:
        table = _read(path, suffix)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise NetworkError(f"table '{ref}': cannot read {path}: {_first(error)}") from error
    return _convert(table, ref, lenient=suffix != ".parquet")


def _given(table: object, ref: str) -> pa.Table:
    """Return a table that was given in Python, in one of the forms that people have at hand."""
    try:
        found = _as_table(table)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise NetworkError(f"table '{ref}': {_first(error)}") from None
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


def table_schema(
    ref: str, tables: Mapping[str, Any] | None = None, folder: Path | None = None, trust: Trust = OWN
) -> Schema:
    """Return a static table's schema; `tables` may hold schemas instead of tables."""
    given = (tables or {}).get(ref)
    if isinstance(given, Schema):
        return given
    return Schema.from_arrow(load_table(ref, tables, folder, trust).schema)


def split_quoted(ref: str) -> tuple[str, str] | None:
    """Return format and path of ``format.`path```, as SQL names files, or None for another text with backticks."""
    found = _QUOTED.fullmatch(ref)
    return None if found is None else (found[1], found[2])


def is_name(ref: str) -> bool:
    """Whether a reference is a plain name, such as that of a view: nothing else is given to Spark's catalog."""
    return _NAME.fullmatch(ref) is not None


def _check_trust(ref: str, folder: Path | None, trust: Trust) -> None:
    """Raise a NetworkError unless a file may name this table, whichever of files, directories and catalog has it."""
    who = f"table '{ref[:_SHOWN]}'"
    if "`" in ref:
        parts = split_quoted(ref)
        if parts is None:
            raise NetworkError(f"{who}: expected a name, a path, or format.`path`")
        trust.check_format(parts[0], FORMATS, who, NetworkError)
        trust.check_pattern(parts[1], who, NetworkError)
        trust.check_path(parts[1], folder, who, NetworkError)
        return
    here = (folder or Path()) / ref
    if is_name(ref) and (unusable(here) or not here.exists()):
        trust.check_table(ref, who, NetworkError)
        return
    trust.check_pattern(ref, who, NetworkError)
    trust.check_path(ref, folder, who, NetworkError)


def _first(error: BaseException) -> str:
    """Return the first line of a reader's message; it may quote the file, so it is cut."""
    lines = str(error).splitlines() or [type(error).__name__]
    return lines[0] if len(lines[0]) <= _SHOWN else lines[0][:_SHOWN] + "…"


def _read(path: Path, suffix: str) -> pa.Table:
    """Return what a file holds; raise ArrowInvalid for text that is none, which Arrow itself reads or dies of."""
    if suffix == ".parquet":
        table = pyarrow.parquet.read_table(path)
        table.validate(full=True)
        return table
    data = path.read_bytes()
    try:
        data.decode()
    except UnicodeDecodeError as error:
        number = data.count(b"\n", 0, error.start) + 1
        raise pa.ArrowInvalid(f"line {number} is not valid UTF-8") from None
    return infer_csv(data) if suffix == ".csv" else infer_json_lines(data)


def _convert(table: pa.Table, ref: str, lenient: bool) -> pa.Table:
    """Cast to Headway's types; where types were only inferred, those without a Spark SQL name become text."""
    fields = []
    for field in table.schema:
        try:
            type_ = normalise(field.type, field.name)
        except SchemaError as error:
            if not lenient:
                raise SchemaError(f"table '{ref}': {error}") from error
            type_ = pa.string()
        fields.append((field.name, type_))
    try:
        Schema.from_arrow(pa.schema(fields))
        return table.cast(pa.schema(fields))
    except SchemaError as error:
        raise SchemaError(f"table '{ref}': {error}") from error
    except pa.ArrowException as error:
        raise NetworkError(f"table '{ref}': {_first(error)}") from error
