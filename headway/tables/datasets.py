"""Stored data sets: a file, a table of a database or of Spark, with nothing upstream.

A data set is described by a path, by ``{csv: path}``, ``{jsonl: path}``, ``{parquet: path}``, ``{spark: NAME}`` or
``{sql: URL, table: NAME}``. It is read as a whole (a static table), by key, or streamed once
(`headway.connectors.stored`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from headway.errors import NetworkError, check_known, choices, first_line
from headway.network.schema import Schema, type_name
from headway.network.secrets import mask, masked
from headway.network.trust import OWN, Trust
from headway.paths import unusable
from headway.plugins import Registry
from headway.tables.addresses import read_address
from headway.tables.databases import DatabaseTable
from headway.tables.parquets import ParquetData
from headway.tables.references import SUFFIXES, find_table, permit_reference, read_file

FORMS = "a path, {csv: path}, {jsonl: path}, {parquet: path}, {sql: URL, table: NAME} or {spark: NAME}"
"""How a data set is written, for messages."""
FILES = tuple(suffix[1:] for suffix in SUFFIXES)
"""The kinds that are one file."""


@dataclass(frozen=True, slots=True, repr=False)
class DataSet:
    """A stored data set: what it is and where, with the folder for relative paths and what its file may name.

    `kind` is csv, jsonl, parquet, sql, spark, or ``path`` for what a path alone does not decide (a directory, a name).
    Its text and its repr hold no password.
    """

    kind: str
    place: str
    table: str = ""
    base: Path | None = None
    trust: Trust = OWN
    who: str = field(default="data", compare=False)
    """The prefix of messages about it."""

    def __str__(self) -> str:
        shown = f"{self.kind} {mask(self.place)}" if self.kind == "sql" else self.place
        return f"{shown} {self.table}" if self.table else shown

    def __repr__(self) -> str:
        return f"DataSet({str(self)!r})"

    def contacting_nobody(self) -> DataSet:
        """Return the data set for a mere check, which contacts no host unless the trust names it."""
        return replace(self, trust=self.trust.contacting_nobody())


class Opened(Protocol):
    """An open data set."""

    def schema(self) -> Schema:
        """Return its fields, without reading all of it where the format has them."""

    def table(self) -> pa.Table:
        """Return all of it."""

    def lookup(self, key: str, values: pa.Array) -> pa.Table:
        """Return the rows whose field `key` is one of the values, which are distinct and of its type."""


Opener = Callable[[DataSet], contextlib.AbstractContextManager[Opened]]


def is_data(value: object) -> bool:
    """Whether a value describes a data set by a mapping, such as ``{sql: URL, table: NAME}``."""
    if isinstance(value, DataSet):
        return True
    if not isinstance(value, Mapping) or not all(isinstance(one, str | Path) for one in value.values()):
        return False
    return any(key in _kinds() for key in value)


def read_data(data: object, who: str, base: Path | None = None, trust: Trust = OWN) -> DataSet:
    """Return the data set that a description names; `who` begins messages. Looks at nothing but the description."""
    if isinstance(data, DataSet):
        return data
    if isinstance(data, str | Path) and str(data):
        suffix = Path(data).suffix.lower()
        kind = suffix[1:] if suffix in SUFFIXES and "`" not in str(data) else "path"
        return DataSet(kind, str(data), "", base, trust, who)
    if not isinstance(data, Mapping) or not data:
        raise NetworkError(f"{who}: a data set is {FORMS}, not {masked(data)!r}")
    kinds = [key for key in data if key != "table"]
    check_known("kind of data", kinds, _kinds(), NetworkError, who)
    if len(kinds) != 1:
        raise NetworkError(f"{who}: a data set is one of {choices(_kinds())}, not {choices(map(str, kinds))}")
    kind, place, table = kinds[0], data[kinds[0]], data.get("table", "")
    if not isinstance(place, str | Path) or not str(place):
        raise NetworkError(f"{who}: {kind}: expected {_WANTED.get(kind, 'a path')}, not {masked(place)!r}")
    if (kind == "sql") != bool(table) or not isinstance(table, str):
        needed = "needs the name of a table: {sql: URL, table: NAME}" if kind == "sql" else "has no key 'table'"
        raise NetworkError(f"{who}: {kind} {needed}")
    return DataSet(kind, str(place), table, base, trust, who)


_WANTED = {"sql": "the URL of a database", "spark": "the name of a table"}


def data_schema(data: DataSet) -> Schema:
    """Return the fields of a data set with Headway's types.

    Parquet's footer and databases have them; the types of CSV and JSON lines depend on all values, which are read.
    """
    with _open(data) as opened:
        return opened.schema()


def data_table(data: DataSet) -> pa.Table:
    """Return the contents of a data set with Headway's types, in an order that does not depend on the moment."""
    with _open(data) as opened:
        return opened.table()


def lookup(data: DataSet, key: str, values: Sequence[Any] | pa.Array | pa.ChunkedArray) -> pa.Table:
    """Return the rows of a data set whose field `key` is one of the values; NULL equals nothing.

    A database looks them up itself, and in Parquet only the row groups are read whose statistics allow one of the
    values. The order of the rows is not defined. Raises a NetworkError for an unknown field, or for values that can
    never be in it.
    """
    with _open(data) as opened:
        field = opened.schema().field(key)
        keys = _keys(values, field.type, f"{data.who}: field '{field.name}'")
        return opened.lookup(field.name, keys)


@contextlib.contextmanager
def open_database(data: DataSet) -> Iterator[DatabaseTable]:
    """Open a data set of the kind sql for reading."""
    with contextlib.closing(connect(data)) as table:
        yield table


def connect(data: DataSet) -> DatabaseTable:
    """Connect to the table of a data set of the kind sql, which the caller closes; checks what its file may name."""
    address = read_address(data.place, data.base, data.trust, f"{data.who}: sql", NetworkError)
    return DatabaseTable(address, data.table, f"{data.who}: sql")


def permit_data(data: DataSet) -> None:
    """Raise a NetworkError unless a file may name the data set; opens and contacts nothing."""
    if data.kind == "path":
        permit_reference(data.place, data.base, data.trust, data.who)
    elif data.kind == "sql":
        read_address(data.place, data.base, data.trust, f"{data.who}: sql", NetworkError)
    elif data.kind in FILES:
        _permit_file(data)
    else:
        data.trust.check_table(data.place, data.who, NetworkError)


def register_data_kind(kind: str, opener: Opener) -> None:
    """Register a kind of data set, named by ``{kind: place}``; the opener checks what the data set's trust allows."""
    _openers.register(kind, opener)


def _kinds() -> tuple[str, ...]:
    """Return the kinds that a description may name, whatever has been imported."""
    return tuple(sorted({*_openers.names(), "spark"}))


def _open(data: DataSet) -> contextlib.AbstractContextManager[Opened]:
    if data.kind == "path" or (data.kind in FILES and is_folder(data)):
        return contextlib.nullcontext(_Loaded(lambda: find_table(data.place, data.base, data.trust, data.who)))
    if data.kind not in _openers.names():  # Spark's, which comes with the connectors
        raise NetworkError(f"{data.who}: '{data.place}' is a table of Spark, and no Spark session runs in this process")
    opened: contextlib.AbstractContextManager[Opened] = _openers[data.kind].make(data)
    return opened


def is_folder(data: DataSet) -> bool:
    """Whether the path of a data set is a directory, whose files are read as one; checks what its file may name."""
    return _permit_file(data).is_dir()


def _permit_file(data: DataSet) -> Path:
    path = Path(data.place) if data.base is None else data.base / data.place
    data.trust.check_path(data.place, data.base, data.who, NetworkError)
    wrong = unusable(path)
    if wrong:
        raise NetworkError(f"{data.who}: '{path}' is not a valid path: {wrong}")
    return path


def _keys(values: Sequence[Any] | pa.Array | pa.ChunkedArray, type_: pa.DataType, who: str) -> pa.Array:
    """Return distinct values with the type of a field, without NULL; integers too large for it cannot be found."""
    if pa.types.is_nested(type_):
        raise NetworkError(f"{who} is {type_name(type_)}, and rows are looked up by plain values")
    try:
        array = values if isinstance(values, pa.Array | pa.ChunkedArray) else pa.array(values)
        array = pc.drop_null(array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array)
        if pa.types.is_integer(array.type) and pa.types.is_integer(type_):
            most = 1 << type_.bit_width - 1
            wide = array.cast(pa.int64())
            array = wide.filter(pc.and_(pc.greater_equal(wide, -most), pc.less_equal(wide, most - 1)))
        array = pc.unique(array.cast(type_))
        if pa.types.is_floating(type_) and pc.any(pc.equal(array, 0.0)).as_py():  # Arrow tells 0.0 from -0.0
            array = pc.unique(pa.concat_arrays([array, pa.array([0.0, -0.0], type_)]))
    except (pa.ArrowException, TypeError, OverflowError) as error:
        raise NetworkError(f"{who} is {type_name(type_)}, and a value to look up is not: {first_line(error)}") from None
    return array


class _Loaded:
    """A data set whose fields are known only after all of it has been read."""

    def __init__(self, load: Callable[[], pa.Table]) -> None:
        self._load, self._table = load, None

    def schema(self) -> Schema:
        return Schema.from_arrow(self.table().schema)

    def table(self) -> pa.Table:
        if self._table is None:
            self._table = self._load()
        return self._table

    def lookup(self, key: str, values: pa.Array) -> pa.Table:
        table = self.table()
        return table.filter(pc.is_in(table[key], value_set=values))


class _Sql:
    """A table of a database."""

    def __init__(self, table: DatabaseTable) -> None:
        self._table = table
        self.table, self.lookup = table.table, table.lookup

    def schema(self) -> Schema:
        return self._table.schema


@contextlib.contextmanager
def _open_sql(data: DataSet) -> Iterator[Opened]:
    with open_database(data) as table:
        yield _Sql(table)


@contextlib.contextmanager
def _open_file(data: DataSet) -> Iterator[Opened]:
    path = _permit_file(data)
    yield (
        ParquetData(path, data.who) if data.kind == "parquet" else _Loaded(lambda: read_file(path, data.kind, data.who))
    )


_openers = Registry[Opener]("kind of data", NetworkError)
for _kind in FILES:
    register_data_kind(_kind, _open_file)
register_data_kind("sql", _open_sql)
