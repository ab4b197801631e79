"""Tables of databases, through SQLAlchemy: their schemas, all rows as a stream of batches, and rows by key."""

from __future__ import annotations

import contextlib
import sqlite3
import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc

from headway.errors import NetworkError, choices, did_you_mean, first_line
from headway.network.schema import Field, Schema
from headway.tables.addresses import Address
from headway.tables.sqltypes import TYPES, arrow_type, pushable, to_column

if TYPE_CHECKING:
    from sqlalchemy import ColumnClause, Connection, Engine
    from sqlalchemy.engine import CursorResult

ROWS = 1 << 14
"""How many rows are fetched at a time."""
KEYS = 1000
"""How many keys one statement looks up."""
TIMEOUT = 10
"""How many seconds connecting to a server may take, unless the address says otherwise."""
_LISTED = 30


class DatabaseTable:
    """One table or view, over one connection: what it reads is the table as it was at the first read.

    Used by one thread at a time, except that `close` may come from another. Raises NetworkErrors, none of which ever
    holds a password.
    """

    def __init__(self, address: Address, table: str, who: str) -> None:
        """Connect, and find the table and its columns; an unknown table is an error that lists those there are."""
        import sqlalchemy as sa

        self._sa, self._address, self._who = sa, address, who
        self._connection: Connection | None = None
        try:
            with self._guard("cannot be reached"):
                self._connection = self._connect(self._engine())
            with self._guard("cannot be read"), warnings.catch_warnings():
                warnings.simplefilter("ignore", sa.exc.SAWarning)  # of types that it does not know, which are refused
                self._find(table)
        except BaseException:
            self.close()
            raise

    @property
    def name(self) -> str:
        """The table's name."""
        return self._name

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Yield all columns or some in batches, by the primary key if there is one; only one batch is in memory."""
        statement = self._select(columns).order_by(*[self._sa.column(name) for name in self._key])
        return self._fetch(statement.execution_options(yield_per=ROWS), columns)

    def table(self) -> pa.Table:
        """Return all rows."""
        return pa.Table.from_batches(list(self.batches()), self.schema.to_arrow())

    def lookup(self, key: str, values: pa.Array) -> pa.Table:
        """Return the rows whose key is one of the values, which have the key's type; the database finds them."""
        field = self.schema.field(key)
        if not pushable(field.type, self._address.kind):
            parts = [batch.filter(_among(batch[field.name], values)) for batch in self.batches()]
            return pa.Table.from_batches(parts, self.schema.to_arrow())
        column = self._sa.column(field.name, self._types[field.name])
        found: list[pa.RecordBatch] = []
        for start in range(0, len(values), KEYS):
            wanted = values.slice(start, KEYS).to_pylist()
            found += self._fetch(self._select(None).where(column.in_(wanted)), None)
        parts = [batch.filter(_among(batch[field.name], values)) for batch in found]  # collations may find more
        return pa.Table.from_batches(parts, self.schema.to_arrow())

    def close(self) -> None:
        """Close the connection; what is being read ends with an error. May be called twice."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(Exception):
                connection.invalidate()  # closes the driver's connection at once, also under a running statement
            with contextlib.suppress(Exception):
                connection.close()

    def _engine(self) -> Engine:
        create, pool = self._sa.create_engine, self._sa.pool.NullPool
        file = self._address.file
        if file is not None:
            if not file.is_file():
                raise self._failed(f"there is no file '{file}'")
            uri = f"file:{quote(str(file.absolute()))}?mode=ro"
            return create(
                "sqlite://",
                creator=lambda: sqlite3.connect(uri, uri=True, check_same_thread=False, isolation_level=None),
                poolclass=pool,
            )
        settings: dict[str, Any] = {}
        if self._address.kind == "postgresql" and "connect_timeout" not in self._address.url.query:
            settings["connect_timeout"] = TIMEOUT
        try:
            return create(self._address.url, poolclass=pool, connect_args=settings)
        except ImportError as error:
            name = getattr(error, "name", None) or first_line(error)
            raise self._failed(f"the driver {name} is not installed: pip install 'headway[sql]'") from None

    def _connect(self, engine: Engine) -> Connection:
        if self._address.kind == "postgresql":
            engine = engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
        connection = engine.connect()
        if self._address.kind == "postgresql":
            connection.execute(self._sa.text("SET LOCAL TIME ZONE 'UTC'"))
        elif self._address.kind == "sqlite":
            connection.execute(self._sa.text("BEGIN"))
        return connection

    def _find(self, name: str) -> None:
        inspector = self._sa.inspect(self._connection)
        assert inspector is not None
        schema: str | None = None
        known = [*inspector.get_table_names(), *inspector.get_view_names()]
        if name not in known and "." in name:
            schema, _, inner = name.partition(".")
            within = [*inspector.get_table_names(schema), *inspector.get_view_names(schema)]
            known, name = [*known, *(f"{schema}.{one}" for one in within)], inner if inner in within else name
            schema = schema if inner in within else None
        if schema is None and name not in known:
            listed = f"{did_you_mean(name, known) or ';'} tables: {choices(sorted(known), _LISTED)}"
            raise self._failed(f"there is no table '{name}'{listed}")
        self._types = {column["name"]: column["type"] for column in inspector.get_columns(name, schema)}
        types = {column: self._arrow(name, column, type_) for column, type_ in self._types.items()}
        self.schema = Schema.from_arrow(pa.schema(list(types.items())))
        self._key = inspector.get_pk_constraint(name, schema)["constrained_columns"]
        self._name, self._schema = name, schema

    def _arrow(self, table: str, column: str, type_: Any) -> pa.DataType:
        found = arrow_type(type_, self._address.kind)
        if found is not None:
            return found
        shown = "of a type that SQLAlchemy does not know" if isinstance(type_, self._sa.types.NullType) else f"{type_}"
        raise self._failed(f"table '{table}': column '{column}' is {shown}; types: {TYPES}; cast it in a view")

    def _select(self, names: Sequence[str] | None) -> Any:
        """Return the statement for columns as the driver gives them, without SQLAlchemy's conversions."""
        columns: list[ColumnClause[Any]] = [self._sa.column(name) for name in (self._types if names is None else names)]
        return self._sa.select(*columns).select_from(self._sa.table(self._name, schema=self._schema))

    def _fetch(self, statement: Any, names: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
        fields = self.schema.fields if names is None else tuple(self.schema.field(name) for name in names)
        with self._guard("cannot be read"):
            if self._connection is None:
                raise self._failed("is closed")
            result: CursorResult[Any] = self._connection.execute(statement)
        try:
            while True:
                with self._guard("cannot be read"):
                    part = result.fetchmany(ROWS)
                if not part:
                    return
                yield self._batch(fields, part)
        finally:
            _leave(result, self._connection)

    def _batch(self, fields: Sequence[Field], rows: Any) -> pa.RecordBatch:
        arrays = []
        for field, values in zip(fields, zip(*rows, strict=True), strict=True):
            try:
                arrays.append(to_column(values, field.type, self._address.kind))
            except ValueError as error:
                where = f"table '{self._name}': column '{field.name}'"
                raise self._failed(f"{where}: {first_line(error)}") from None
        return pa.RecordBatch.from_arrays(arrays, schema=Schema(tuple(fields)).to_arrow())

    @contextlib.contextmanager
    def _guard(self, what: str) -> Iterator[None]:
        """Turn what the driver raises into a NetworkError, without its context, which may hold the address."""
        try:
            yield
        except _errors() as error:
            cause = getattr(error, "orig", None) or error
            raise self._failed(f"{what}: {self._hidden(first_line(cause))}") from None

    def _hidden(self, text: str) -> str:
        for secret in self._address.secrets:
            text = text.replace(secret, "***")
        return text

    def _failed(self, message: str) -> NetworkError:
        colon = "" if message.startswith(("cannot", "is ")) else ":"
        return NetworkError(f"{self._who}: '{self._address.shown}'{colon} {message}")


def _errors() -> tuple[type[Exception], ...]:
    """Return what SQLAlchemy raises, and drivers beneath it, as when a connection is closed by another thread."""
    from sqlalchemy.exc import SQLAlchemyError

    with contextlib.suppress(ImportError):
        import psycopg

        return SQLAlchemyError, sqlite3.Error, psycopg.Error
    return SQLAlchemyError, sqlite3.Error


def _among(column: pa.Array, values: pa.Array) -> pa.Array:
    return pc.is_in(column, value_set=values)


def _leave(result: CursorResult[Any], connection: Connection | None) -> None:
    """Close what was read; if its connection is closed already, without SQLAlchemy, which would log an error."""
    with contextlib.suppress(Exception):
        if connection is not None:
            result.close()
        elif result.cursor is not None:
            result.cursor.close()
