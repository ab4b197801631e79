"""Static tables that Spark knows by name, or that only Spark reads; directories also without it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from headway.connectors.sessions import find_session, first_line
from headway.errors import NetworkError
from headway.storage.filesystems import FAILURES, is_uri, locate, reason
from headway.tables import is_name, register_table_loader, split_quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MOST_ROWS = 5_000_000
"""A static table may not be longer: every process holds all of it in memory."""

_FORMATS = {".csv": "csv", ".json": "json", ".jsonl": "json", ".orc": "orc", ".parquet": "parquet"}


def load_from_spark(ref: str, folder: Path | None) -> pa.Table | None:
    """Return a table, view or path of the live session, or None if there is no session or it has none such."""
    session = find_session()
    if session is None:
        return None
    try:
        frame = _find(session, ref, folder)
        if frame is None:
            return None
        table = frame.limit(MOST_ROWS + 1).toArrow()
    except NetworkError:
        raise
    except Exception as error:
        raise NetworkError(f"table '{ref}': Spark cannot read it: {first_line(error)}") from error
    return _check_size(table, ref)


def load_directory(ref: str, folder: Path | None) -> pa.Table | None:
    """Return a directory of files as one table, read with Arrow, or None if there is no such directory."""
    import pyarrow.dataset  # seldom needed, and slow to load

    name = _full(ref, folder)
    try:
        if not _is_data(name):
            return None
        place = locate(name)
        format_ = _FORMATS.get(Path(place.base).suffix.lower(), "parquet")
        data = pyarrow.dataset.dataset(place.base, filesystem=place.filesystem, format=format_, partitioning="hive")
        return _check_size(data.head(MOST_ROWS + 1), ref)
    except (*FAILURES, ValueError) as error:
        raise NetworkError(f"table '{ref}': cannot read '{name}': {reason(error)}") from error


def _find(session: SparkSession, ref: str, folder: Path | None) -> DataFrame | None:
    quoted = split_quoted(ref)  # format.`path`, as SQL names files; read by name, never as SQL
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
    """Whether a name is that of a directory with something in it, or may be one elsewhere."""
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
