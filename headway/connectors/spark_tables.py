"""Static tables from Spark's catalog or that only Spark can read; directories also without Spark."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headway.connectors.spark import find_session, first_line
from headway.errors import NetworkError
from headway.storage.filesystems import FAILURES, Place, is_uri, locate, reason
from headway.tables import csv_options, is_name, keep_texts, register_table_loader, split_quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MOST_ROWS = 5_000_000
"""The most rows of a static table; every process holds all of it in memory."""

_FORMATS = {".csv": "csv", ".json": "json", ".jsonl": "json", ".orc": "orc", ".parquet": "parquet"}


def load_from_spark(ref: str, folder: Path | None) -> pa.Table | None:
    """Return a table, view or path from the live session; None without a session, or if it has no such table."""
    session = find_session()
    if session is None:
        return None
    try:
        frame = _find(session, ref, folder)
        if frame is None:
            return None
        table = frame.limit(MOST_ROWS + 1).toArrow()
    except Exception as error:
        raise NetworkError(f"table '{ref}': Spark cannot read it: {first_line(error)}") from error
    return _check_size(table, ref)


def load_directory(ref: str, folder: Path | None) -> pa.Table | None:
    """Read a directory of files as one table with Arrow; None if there is no such directory."""
    name = _full(ref, folder)
    try:
        if not _is_data(name):
            return None
        place = locate(name)
        format_ = _FORMATS.get(Path(place.base).suffix.lower(), "parquet")
        return _read_files(place, format_, ref)
    except (*FAILURES, ValueError) as error:
        raise NetworkError(f"table '{ref}': cannot read '{name}': {reason(error)}") from error


def _read_files(place: Place, format_: str, ref: str) -> pa.Table:
    """Read all files of a directory as one table; CSV and JSON keep every value as written."""
    import pyarrow.dataset as datasets  # rarely needed, and slow to import

    kind: Any = format_
    if format_ == "csv":
        kind = datasets.CsvFileFormat(default_fragment_scan_options=datasets.CsvFragmentScanOptions(csv_options()))

    def files(schema: pa.Schema | None) -> datasets.Dataset:
        return datasets.dataset(place.base, schema, kind, place.filesystem, partitioning="hive")

    def read(schema: pa.Schema | None) -> pa.Table:
        return _check_size(files(schema).head(MOST_ROWS + 1), ref)

    if format_ == "json":
        guessed = files(None).schema
        return read(_with_text(guessed, [field.name for field in guessed if pa.types.is_timestamp(field.type)]))
    table = read(None)
    return keep_texts(table, lambda names: read(_with_text(table.schema, names))) if format_ == "csv" else table


def _with_text(schema: pa.Schema, names: Sequence[str]) -> pa.Schema:
    return pa.schema([field.with_type(pa.string()) if field.name in names else field for field in schema])


def _find(session: SparkSession, ref: str, folder: Path | None) -> DataFrame | None:
    quoted = split_quoted(ref)  # SQL's form for files, format.`path`; loaded by name, never as SQL
    if quoted is not None:
        return session.read.format(quoted[0]).load(_full(quoted[1], folder))
    name = _full(ref, folder)
    if _is_data(name):
        reader = session.read.format(_FORMATS.get(Path(name).suffix.lower(), "parquet"))
        return reader.options(header="true", inferSchema="true").load(name)
    if not is_name(ref) or not session.catalog.tableExists(ref):
        return None
    return session.table(ref)


def _full(ref: str, folder: Path | None) -> str:
    return ref if is_uri(ref) or folder is None else str(folder / ref)


def _is_data(name: str) -> bool:
    """Whether a name is a non-empty local directory, or a URI that may be a directory."""
    return is_uri(name) or (Path(name).is_dir() and any(Path(name).iterdir()))


def _check_size(table: pa.Table, ref: str) -> pa.Table:
    if table.num_rows > MOST_ROWS:
        raise NetworkError(
            f"table '{ref}' has more than {MOST_ROWS} rows; every process holds a static table in memory: "
            "name a smaller view of it, or make it a stream"
        )
    return table


register_table_loader(load_from_spark)
register_table_loader(load_directory)
