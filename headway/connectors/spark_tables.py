"""Static tables from Spark's catalog or that only Spark can read; directories also without Spark."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from headway.connectors.spark import find_session, first_line
from headway.errors import NetworkError, choices
from headway.network.schema import Schema
from headway.storage.filesystems import FAILURES, Place, is_uri, locate, reason
from headway.tables import (
    DataSet,
    Opened,
    csv_options,
    is_name,
    keep_texts,
    register_data_kind,
    register_table_loader,
    split_quoted,
    with_types,
)

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


class _SparkData:
    """A table of Spark's catalog, read by Spark."""

    def __init__(self, session: SparkSession, data: DataSet) -> None:
        self._session, self._data = session, data

    def schema(self) -> Schema:
        """Return the fields, from the catalog."""
        return Schema.from_arrow(self._fetch(lambda frame: frame.limit(0)).schema)

    def table(self) -> pa.Table:
        """Return all rows."""
        return self._fetch(lambda frame: frame.limit(MOST_ROWS + 1))

    def lookup(self, key: str, values: pa.Array) -> pa.Table:
        """Return the rows with one of the values; Spark finds them."""
        wanted = values.to_pylist()
        found = self._fetch(lambda frame: frame.filter(frame[f"`{key}`"].isin(wanted)).limit(MOST_ROWS + 1))
        return found.filter(pc.is_in(found[key], value_set=values))

    def _fetch(self, what: Callable[[DataFrame], DataFrame]) -> pa.Table:
        ref, who = self._data.place, self._data.who
        try:
            table = what(self._session.table(ref)).toArrow()
        except Exception as error:
            raise NetworkError(f"{who}: Spark cannot read '{ref}': {first_line(error)}") from error
        return with_types(_check_size(table, ref), who, lenient=False)


@contextlib.contextmanager
def _open_spark(data: DataSet) -> Iterator[Opened]:
    ref = data.place
    if not is_name(ref):
        raise NetworkError(f"{data.who}: '{ref}' is not the name of a table of Spark, such as sectors or db.sectors")
    data.trust.check_table(ref, data.who, NetworkError)
    session = find_session()
    if session is None:
        raise NetworkError(f"{data.who}: '{ref}' is a table of Spark, and no Spark session runs in this process")
    if not session.catalog.tableExists(ref):
        raise NetworkError(f"{data.who}: Spark has no table '{ref}'; tables: {_listed(session)}")
    yield _SparkData(session, data)


def _listed(session: SparkSession) -> str:
    return choices(sorted(table.name for table in session.catalog.listTables()), 30)


register_data_kind("spark", _open_spark)
register_table_loader(load_from_spark)
register_table_loader(load_directory)
