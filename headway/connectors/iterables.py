"""Python iterables of dicts or of tuples as sources."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headway.connectors.base import Reader, SourceRequest, register_source_object
from headway.connectors.cutting import BatchReader
from headway.connectors.sightings import Sightings
from headway.connectors.texts import parse_texts
from headway.connectors.values import Bad, show, show_whole, to_array
from headway.errors import InputError, raised
from headway.schema import Schema

AHEAD = 4096
"""Rows that are taken from a live iterator before somebody asks for them."""


class RowConverter:
    """Turns Python rows into batches of a schema and tells which rows do not convert."""

    def __init__(self, schema: Schema) -> None:
        """Prepare for rows of this schema."""
        self._arrow = schema.to_arrow()
        self._names = schema.names
        self._known = frozenset(schema.names)

    def batch(self, rows: Sequence[Any]) -> tuple[pa.RecordBatch, dict[int, str]]:
        """Return a batch of the rows that convert, in order, and the reasons why the others do not."""
        bad: dict[int, str] = {}
        columns = self._columns(rows, bad)
        arrays = []
        for name, type_, values in zip(self._names, self._arrow.types, columns, strict=True):
            array, wrong = _column(values, type_)
            arrays.append(array)
            for position, reason in wrong.items():
                bad.setdefault(position, f"field '{name}': {reason}")
        batch = pa.RecordBatch.from_arrays(arrays, schema=self._arrow)
        if bad:
            keep = np.ones(len(rows), np.bool_)
            keep[list(bad)] = False
            batch = batch.filter(pa.array(keep))
        return batch, bad

    def _columns(self, rows: Sequence[Any], bad: dict[int, str]) -> Sequence[Sequence[Any]]:
        if set(map(type, rows)) == {dict}:
            return [[row.get(name) for row in rows] for name in self._names]
        width = len(self._names)
        if set(map(type, rows)) <= {tuple, list} and all(len(row) == width for row in rows):
            return list(zip(*rows, strict=True)) if rows else [()] * width
        nothing = (None,) * width
        table = []
        for position, row in enumerate(rows):
            if isinstance(row, Mapping):
                table.append(tuple([row.get(name) for name in self._names]))
            elif isinstance(row, Sequence) and not isinstance(row, str | bytes):
                if len(row) == width:
                    table.append(tuple(row))
                    continue
                bad[position] = f"expected {width} values ({', '.join(self._names)}), not {len(row)}"
                table.append(nothing)
            else:
                bad[position] = f"expected a dict or a tuple, not {show(row)}"
                table.append(nothing)
        return list(zip(*table, strict=True))


def _column(values: Sequence[Any], type_: pa.DataType) -> tuple[pa.Array, Bad]:
    """Convert a column; times that all come as text, as in JSON, are parsed together."""
    if pa.types.is_temporal(type_) and set(map(type, values)) <= {str, type(None)}:
        try:
            texts = pc.utf8_trim_whitespace(pa.array(values, pa.string()))
        except UnicodeError:
            return to_array(values, type_)
        if not pc.any(pc.equal(texts, "")).as_py():  # NULL in CSV only
            return parse_texts(texts, type_)
    return to_array(values, type_)


class RowReader(BatchReader):
    """Reads the rows of a collection, whose end is known and which never blocks."""

    def __init__(self, request: SourceRequest, rows: Iterable[Any]) -> None:
        """Take rows from an iterable as they are asked for."""
        super().__init__(request.name, request.strict)
        self._who = request.who
        self._converter = RowConverter(request.schema)
        self._sightings = Sightings(request.who, request.schema.names)
        self._rows: Iterator[Any] = iter(rows)
        self._count = 0

    def next_batch(self, limit: int) -> pa.RecordBatch | None:
        """Convert at most `limit` rows."""
        rows = self.take(limit)
        if not rows:
            self._sightings.end()
            return None
        self._sightings.look(rows)
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
        """Return the error for an iterable that raised."""
        return InputError(f"{self._who}: the iterable raised {raised(error)}")


class LiveRowReader(RowReader):
    """Reads an iterator that may block, and hands over what is there.

    A thread takes rows ahead, at most AHEAD, because the next row of an iterator cannot be asked for without
    perhaps waiting for it while earlier rows grow old. It starts with the first read.
    """

    finite = False
    live = True
    anew = True
    """A run that continues gets its iterator from the program that made it before: it gives the same rows again."""

    def __init__(self, request: SourceRequest, rows: Iterable[Any]) -> None:
        """Prepare to take rows; nothing is taken before the first read."""
        super().__init__(request, rows)
        self._ready: deque[Any] = deque()
        self._change = threading.Condition()
        self._error: BaseException | None = None
        self._ended = False
        self._thread: threading.Thread | None = None

    def take(self, limit: int) -> list[Any]:
        """Wait for one row, then return those that are there; raises what the iterator raised after its last row."""
        if self._thread is None and not self._ended:
            self._thread = threading.Thread(target=self._pump, name=f"headway-source-{self.name}", daemon=True)
            self._thread.start()
        with self._change:
            self._change.wait_for(lambda: self._ready or self._ended)
            rows = [self._ready.popleft() for _ in range(min(limit, len(self._ready)))]
            self._change.notify_all()
            if not rows and self._error is not None:
                raise self.failed(self._error) from self._error
        return rows

    def close(self) -> None:
        """Stop taking rows; an iterator that blocks is left to its thread, which ends with its next row."""
        with self._change:
            self._ended = True
            self._ready.clear()
            self._change.notify_all()

    def _pump(self) -> None:
        error: BaseException | None = None
        try:
            for row in self._rows:
                if not self._offer(row):
                    break
        except BaseException as caught:  # also what would end a program: whoever waits for rows has to hear of it
            error = caught
        with self._change:
            if not self._ended:
                self._error = error
            self._ended = True
            self._change.notify_all()
        closing = getattr(self._rows, "close", None)
        if callable(closing):  # a generator's own clean-up, in the thread that ran it
            closing()

    def _offer(self, row: Any) -> bool:
        """Add a row once there is room; whether more are wanted."""
        with self._change:
            self._change.wait_for(lambda: len(self._ready) < AHEAD or self._ended)
            if self._ended:
                return False
            self._ready.append(row)
            if len(self._ready) == 1:
                self._change.notify_all()
            return True


def _open(request: SourceRequest) -> Reader:
    rows: Any = request.settings
    known = isinstance(rows, Sized)  # a collection, not an iterator
    return RowReader(request, rows) if known else LiveRowReader(request, rows)


def _is_rows(what: object) -> bool:
    return isinstance(what, Iterable) and not isinstance(what, str | bytes | Mapping)


register_source_object(_is_rows, _open)
