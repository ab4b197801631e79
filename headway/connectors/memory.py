"""Python objects as sources and sinks: Arrow data, iterables of rows, a table, a function, or a discarding sink."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from itertools import islice
from typing import Any

import pyarrow as pa

from headway.clock import Clock, WallClock
from headway.connectors.kept import Kept
from headway.connectors.output_files import ImmediateSink
from headway.connectors.protocol import Reader, SinkRequest, SourceRequest
from headway.connectors.readers import BatchReader, CastingReader, Handover, RowConverter
from headway.connectors.registry import permit_anyone, register_sink, register_source_object
from headway.connectors.values import show_whole
from headway.errors import HeadwayError, InputError, OutputError, raised
from headway.network.keep import Keep
from headway.network.schema import Schema

CHUNK = 1 << 17
"""How many tuples of a table are cast at a time, so that casting does not double the memory of a whole table."""

_PLACES = {pa.RecordBatch: "the record batch", pa.Table: "the table", pa.RecordBatchReader: "the Arrow reader"}
"""What messages call Arrow's own objects."""

AHEAD = 4096
"""How many rows of a live iterator are prefetched."""


def _open_arrow(request: SourceRequest) -> Reader:
    """Read existing batches, or those of an Arrow reader, in the calling thread."""
    what: Any = request.settings
    place = next((name for type_, name in _PLACES.items() if isinstance(what, type_)), f"the {type(what).__name__}")
    if isinstance(what, pa.RecordBatch):
        what = pa.Table.from_batches([what])
    elif not isinstance(what, pa.Table | pa.RecordBatchReader):
        what = pa.RecordBatchReader.from_stream(what)
    reader = CastingReader(request, what.schema, place)
    reader.batches = iter(what.to_batches(max_chunksize=CHUNK) if isinstance(what, pa.Table) else what)
    return reader


def _is_arrow(what: object) -> bool:
    return isinstance(what, tuple(_PLACES)) or hasattr(what, "__arrow_c_stream__")  # other libraries' data frames


class _RowReader(BatchReader):
    """Reads the rows of a collection; finite and never blocks."""

    def __init__(self, request: SourceRequest, rows: Iterable[Any]) -> None:
        super().__init__(request)
        self._converter = RowConverter(request)
        self._rows: Iterator[Any] = iter(rows)
        self._count = 0

    def next_batch(self, limit: int) -> pa.RecordBatch | None:
        rows = self.take(limit)
        if not rows:
            self._converter.warn()
            return None
        batch, bad = self._converter.batch(rows)
        for position in sorted(bad):
            self.refuse(f"index {self._count + position}", show_whole(rows[position]), bad[position])
        self._count += len(rows)
        return batch

    def take(self, limit: int) -> list[Any]:
        """Return the next rows, at most `limit`; none at the end."""
        try:
            return list(islice(self._rows, limit))
        except Exception as error:
            raise self.failed(error) from error

    def failed(self, error: BaseException) -> InputError:
        return InputError(f"{self._who}: the iterable raised {raised(error)}")


class _LiveRowReader(_RowReader):
    """Reads an iterator that may block, and returns the rows that are available.

    A thread, started by the first read, prefetches up to AHEAD rows: asking for the next row may block while earlier
    rows grow stale.
    """

    finite = False
    live = True
    anew = True
    """On resume, the same program creates the iterator again, and it yields the same rows."""

    def __init__(self, request: SourceRequest, rows: Iterable[Any]) -> None:
        super().__init__(request, rows)
        self._ready: Handover[Any] = Handover(AHEAD)
        self._thread: threading.Thread | None = None

    def take(self, limit: int) -> list[Any]:
        """Wait for one row, then return those available; after the last row, raise what the iterator raised."""
        if self._thread is None and not self._ready.closed:
            self._thread = threading.Thread(target=self._pump, name=f"headway-source-{self.name}", daemon=True)
            self._thread.start()
        rows = self._ready.take(limit)
        if not rows and self._ready.error is not None:
            raise self.failed(self._ready.error) from self._ready.error
        return rows

    def close(self) -> None:
        """Stop prefetching; if the iterator blocks, its thread ends at the next row."""
        self._ready.close()

    def _pump(self) -> None:
        error: BaseException | None = None
        try:
            for row in self._rows:
                if not self._ready.put(row):
                    break
        except BaseException as caught:  # even SystemExit: the reader is waiting and must be told
            error = caught
        self._ready.end(error)
        closing = getattr(self._rows, "close", None)
        if callable(closing):  # a generator cleans up in the thread that ran it
            closing()


def _open_rows(request: SourceRequest) -> Reader:
    rows: Any = request.settings
    known = isinstance(rows, Sized)  # a collection, not an iterator
    return _RowReader(request, rows) if known else _LiveRowReader(request, rows)


def _is_rows(what: object) -> bool:
    return isinstance(what, Iterable) and not isinstance(what, str | bytes | Mapping)


class TableSink(ImmediateSink):
    """Collects an output as an Arrow table, which can be read at any time, also while it is written.

    With `keep`, only the last tuples stay, or those that were delivered in the last duration by the clock.
    """

    def __init__(self, schema: Schema, keep: Keep | None = None, clock: Clock | None = None) -> None:
        self._schema = schema.to_arrow()
        self._keep = keep = keep or Keep()
        self._most, self._ages = keep.tuples, keep.span is not None
        self._kept: Kept[pa.RecordBatch] = Kept(
            keep, clock or WallClock(), lambda batch: int(batch.num_rows), self._joined
        )
        self.count = 0
        """The tuples written so far."""

    def limit(self, keep: Keep | None) -> None:
        """Keep another amount from now on."""
        keep = keep or Keep()
        if keep != self._keep:
            self._keep, self._most, self._ages = keep, keep.tuples, keep.span is not None
            self._kept.limit(keep, lambda batch, count: batch.slice(count))

    def write(self, batch: pa.RecordBatch) -> None:
        """Keep the batch."""
        self.count += batch.num_rows
        extra = 0 if self._most is None else batch.num_rows - self._most
        self._kept.add(batch.slice(extra).take(pa.array(range(batch.num_rows - extra))) if extra > 0 else batch)

    @property
    def ageing(self) -> bool:
        """Whether tuples grow too old."""
        return self._ages

    def look(self) -> None:
        """Drop what is too old."""
        self._kept.drop()

    def _joined(self, batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
        table = pa.Table.from_batches(batches, schema=self._schema).combine_chunks()
        return next(iter(table.to_batches()), batches[0])

    def abort(self) -> None:
        """Drop the collected tuples."""
        self._kept.clear()
        self.count = 0

    @property
    def table(self) -> pa.Table:
        """The tuples that are kept."""
        batches, extra = self._kept.items()
        return pa.Table.from_batches(batches, schema=self._schema).slice(extra)


class DiscardSink(ImmediateSink):
    """Drops the tuples of an output."""

    def write(self, batch: pa.RecordBatch) -> None:
        """Do nothing."""


class CallbackSink(ImmediateSink):
    """Hands each batch of an output to a function; the run waits until it returns."""

    def __init__(self, request: SinkRequest) -> None:
        """Take the function, or raise OutputError if it is not callable."""
        function: Any = request.settings
        if not callable(function):
            raise OutputError(f"{request.who}: a callback is a function of a record batch, not {function!r}")
        self._who, self._function = request.who, function

    def write(self, batch: pa.RecordBatch) -> None:
        """Call the function; exceptions become OutputErrors."""
        try:
            self._function(batch)
        except HeadwayError:
            raise
        except Exception as error:
            raise OutputError(f"{self._who}: the callback raised {type(error).__name__}: {error}") from error


register_source_object(_is_arrow, _open_arrow)
register_source_object(_is_rows, _open_rows)
register_sink("discard", lambda request: DiscardSink(), permit=permit_anyone)
register_sink("callback", CallbackSink, permit=permit_anyone)  # a network file cannot contain a function
