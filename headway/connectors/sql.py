"""Tables of databases as sources: ``{sql: {url: URL, table: NAME}}`` streams a table once, in the order of its key."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pyarrow as pa

from headway.connectors.protocol import SourceRequest
from headway.connectors.readers import CastingReader
from headway.connectors.registry import check_keys, register_source
from headway.errors import HeadwayError, InputError
from headway.tables import DataSet, connect, read_data
from headway.tables.addresses import read_address

_KEYS = ("table", "url")


class _SqlReader(CastingReader):
    """Reads a table or view as it is when the first tuples are read, cast to the source's schema without loss.

    Opened again, it gives the same tuples in the same order only if the table is the same and has a primary key.
    """

    def __init__(self, request: SourceRequest) -> None:
        """Connect; raises InputError if that fails, or if the columns do not fit."""
        with _as_input():
            rows = connect(_data(request))
        try:
            super().__init__(request, rows.schema.to_arrow(), f"table '{rows.name}'")
        except BaseException:
            rows.close()
            raise
        self.file = rows
        self._fetched = rows.batches(self.caster.names)

    def next_batch(self, limit: int) -> pa.RecordBatch | None:
        """Fetch and cast the next rows."""
        with _as_input():
            batch = next(self._fetched, None)
        self.batches = iter(() if batch is None else (batch,))
        return super().next_batch(limit)

    def identity(self) -> None:
        """Return None: it is not a file."""


@contextlib.contextmanager
def _as_input() -> Iterator[None]:
    """Make what is wrong with a data set an error of the source, whose name the message has already."""
    try:
        yield
    except HeadwayError as error:
        raise InputError(str(error)) from None


def _data(request: SourceRequest) -> DataSet:
    settings = check_keys(request.settings, _KEYS, f"{request.who}: sql")
    for key in _KEYS:
        if not isinstance(settings.get(key), str) or not settings[key]:
            raise InputError(f"{request.who}: sql: needs the text '{key}': {{sql: {{url: URL, table: NAME}}}}")
    data = {"sql": settings["url"], "table": settings["table"]}
    return read_data(data, request.who, request.base, request.trust)


def _permit(request: SourceRequest) -> None:
    data = _data(request)
    read_address(data.place, data.base, data.trust, f"{request.who}: sql", InputError)


register_source("sql", _SqlReader, permit=_permit)
