"""Arrow tables, record batches and record batch readers as sources."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from headway.connectors.base import Reader, SourceRequest, register_source_object
from headway.connectors.casting import Caster
from headway.connectors.cutting import BatchReader
from headway.errors import InputError

CHUNK = 1 << 17
"""Tuples that are cast at a time, so that a table that needs a cast is not held twice."""


class ArrowReader(BatchReader):
    """Reads batches that already exist or that an Arrow reader hands over, cast to the source's schema.

    An Arrow reader is pulled like a file, in the thread of whoever reads it.
    """

    def __init__(
        self, request: SourceRequest, batches: Iterator[pa.RecordBatch], schema: pa.Schema, place: str
    ) -> None:
        """Match `schema` with the source's; raises InputError if it does not fit."""
        super().__init__(request.name, request.strict)
        self._who, self._place = request.who, place
        self._caster = Caster(request.schema, schema, request.who, place)
        self._batches: Iterator[pa.RecordBatch] | None = batches
        self._row = 0

    def next_batch(self, limit: int) -> pa.RecordBatch | None:
        """Return the next batch in the source's schema."""
        if self._batches is None:
            return None
        try:
            batch = next(self._batches, None)
        except Exception as error:  # behind a reader of Arrow's may be anybody's iterator
            raise InputError(f"{self._who}: {self._place} cannot be read: {error}") from error
        if batch is None:
            return None
        start, self._row = self._row, self._row + batch.num_rows
        made, misfits = self._caster.cast(batch)
        for at, (text, reason) in misfits.items():
            self.refuse(f"{self._place} row {start + at + 1}", text, reason)
        return made

    def close(self) -> None:
        """Let go of the data."""
        self._batches = None


def _slices(table: pa.Table) -> Iterator[pa.RecordBatch]:
    yield from table.to_batches(max_chunksize=CHUNK)


def _open(request: SourceRequest) -> Reader:
    what = request.settings
    if isinstance(what, pa.RecordBatch):
        return ArrowReader(request, _slices(pa.Table.from_batches([what])), what.schema, "the record batch")
    if isinstance(what, pa.Table):
        return ArrowReader(request, _slices(what), what.schema, "the table")
    if isinstance(what, pa.RecordBatchReader):
        return ArrowReader(request, iter(what), what.schema, "the Arrow reader")
    stream = pa.RecordBatchReader.from_stream(what)
    return ArrowReader(request, iter(stream), stream.schema, f"the {type(what).__name__}")


def _is_arrow(what: object) -> bool:
    arrow = isinstance(what, pa.Table | pa.RecordBatch | pa.RecordBatchReader)
    return arrow or hasattr(what, "__arrow_c_stream__")  # data frames of other libraries


register_source_object(_is_arrow, _open)
