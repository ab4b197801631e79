"""Shared parts of readers: slicing and casting batches, converting rows, handover between threads, wrappers."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headway.clock import SECOND
from headway.columns import Int64s
from headway.connectors.casting import Caster
from headway.connectors.protocol import (
    PENDING_LIMIT,
    TEXT_LIMIT,
    Chunk,
    Identity,
    Malformed,
    Reader,
    SourceRequest,
    begins_anew,
    identify,
)
from headway.connectors.texts import parse_texts
from headway.connectors.values import Bad, show, to_array, without
from headway.errors import InputError, did_you_mean

LONGEST = 2**62
"""The latest time in nanoseconds, and the largest tuple count; sums of two still fit into 64 bits."""

LOOKED_AT = 1000
"""How many rows of a source are checked for missing fields."""

_KEYS = 1000
_log = logging.getLogger("headway")

_SKIPPED = 65_536
"""How many tuples are read at a time while skipping."""

_Item = TypeVar("_Item")


class BatchReader:
    """Base of readers over batches: a subclass supplies batches, this class slices them and collects malformed rows."""

    timed = False
    finite = True
    live = False
    file: Any = None
    """The object to close, if the source is a file; `identify` asks it for the identity."""

    def __init__(self, request: SourceRequest) -> None:
        self.name = request.name
        self._who = request.who
        self._strict = request.strict
        self._malformed: list[Malformed] = []
        self._batch: pa.RecordBatch | None = None
        self._at = 0

    def next_batch(self, limit: int) -> pa.RecordBatch | None:
        """Return the next batch, of any size, or None at the end; `limit` is how many tuples the caller wants.

        An empty batch means: call again.
        """
        raise NotImplementedError

    def read(self, limit: int) -> Chunk | None:
        """Return the next tuples, at most `limit`, without copying."""
        batch = self._batch
        while batch is None or self._at >= batch.num_rows:
            if batch is not None and len(self._malformed) >= PENDING_LIMIT:
                return Chunk(batch.slice(0, 0))
            batch = self._batch = self.next_batch(limit)
            self._at = 0
            if batch is None:
                return None
        if self._at == 0 and batch.num_rows <= limit:
            self._batch = None
            return Chunk(batch)
        start = self._at
        self._at = min(start + limit, batch.num_rows)
        return Chunk(batch.slice(start, self._at - start))

    def refuse(self, where: str, text: str | bytes, reason: str) -> None:
        """Record a malformed row, or raise InputError if the source is strict."""
        if isinstance(text, bytes):
            text = text[: 4 * TEXT_LIMIT].decode("utf-8", "replace").rstrip("\r")
        row = Malformed(self.name, where, text[:TEXT_LIMIT], reason)
        if self._strict:
            raise InputError(str(row))
        self._malformed.append(row)

    def malformed(self) -> list[Malformed]:
        """Return the malformed rows found since the last call."""
        rows, self._malformed = self._malformed, []
        return rows

    def identity(self) -> tuple[Path, Identity] | None:
        """Return the file and its identity so far."""
        return identify(self.file)

    def close(self) -> None:
        """Close the file."""
        if self.file is not None:
            self.file.close()


class CastingReader(BatchReader):
    """A reader over Arrow batches, cast to the source's schema; rows that do not fit are malformed."""

    unreadable = "cannot be read"

    def __init__(self, request: SourceRequest, given: pa.Schema, place: str, short: str = "") -> None:
        """Match the columns; messages call the data `place`, or `short` when they are about a row."""
        super().__init__(request)
        self._place, self._short = place, short or place
        self.caster = Caster(request.schema, given, request.who, place)
        self.batches: Iterator[pa.RecordBatch] = iter(())
        self._row = 0

    def next_batch(self, limit: int) -> pa.RecordBatch | None:
        """Cast the next batch."""
        try:
            batch = next(self.batches, None)
        except Exception as error:  # an Arrow reader may wrap any Python iterator
            raise InputError(f"{self._who}: {self._place} {self.unreadable}: {error}") from error
        if batch is None:
            return None
        start, self._row = self._row, self._row + batch.num_rows
        made, misfits = self.caster.cast(batch)
        for at, (text, reason) in misfits.items():
            self.refuse(f"{self._short} row {start + at + 1}", text, reason)
        return made

    def close(self) -> None:
        """Drop the data."""
        self.batches = iter(())
        super().close()


class RowConverter:
    """Converts a source's Python rows to batches of its schema, and reports the rows that do not convert.

    It also checks the keys of the first rows, and warns once about each field that none of them has.
    """

    def __init__(self, request: SourceRequest) -> None:
        """Start without any row checked."""
        self._arrow, self._names = request.schema.to_arrow(), request.schema.names
        self._who = request.who
        self._unseen = set(self._names)
        self._keys: dict[str, None] = {}
        self._looked = self._rows = 0

    def batch(self, rows: Sequence[Any]) -> tuple[pa.RecordBatch, dict[int, str]]:
        """Return a batch of the rows that convert, in order, and the reasons for the others by position."""
        self.look(rows)
        bad: dict[int, str] = {}
        columns = self._columns(rows, bad)
        arrays = []
        for name, type_, values in zip(self._names, self._arrow.types, columns, strict=True):
            array, wrong = _column(values, type_)
            arrays.append(array)
            for position, reason in wrong.items():
                bad.setdefault(position, f"field '{name}': {reason}")
        return without(pa.RecordBatch.from_arrays(arrays, schema=self._arrow), bad), bad

    def _columns(self, rows: Sequence[Any], bad: dict[int, str]) -> Sequence[Sequence[Any]]:
        if set(map(type, rows)) == {dict}:
            return [[row.get(name) for row in rows] for name in self._names]
        width = len(self._names)
        if set(map(type, rows)) <= {tuple, list} and all(len(row) == width for row in rows):
            return list(zip(*rows, strict=True)) if rows else [()] * width
        table = []
        for position, row in enumerate(rows):
            values: tuple[Any, ...] = (None,) * width
            if isinstance(row, Mapping):
                values = tuple([row.get(name) for name in self._names])
            elif not isinstance(row, Sequence) or isinstance(row, str | bytes):
                bad[position] = f"expected a dict or a tuple, not {show(row)}"
            elif len(row) != width:
                bad[position] = f"expected {width} values ({', '.join(self._names)}), not {len(row)}"
            else:
                values = tuple(row)
            table.append(values)
        return list(zip(*table, strict=True))

    def look(self, rows: Iterable[Any]) -> None:
        """Check the keys of the next rows, as far as necessary; rows without keys are ignored."""
        if not self._unseen:
            return
        for row in islice(rows, LOOKED_AT - self._looked):
            self._looked += 1
            if isinstance(row, Mapping):
                self._rows += 1
                self._unseen.difference_update(row)
                if not self._unseen:
                    return
                if len(self._keys) < _KEYS:
                    self._keys.update(dict.fromkeys(row))
        if self._looked >= LOOKED_AT:
            self.warn(" so far")

    def warn(self, so_far: str = "") -> None:
        """Warn once about fields that no row had; call when there are no more rows."""
        others = [str(key) for key in self._keys if key not in self._names]
        for field in self._names:
            if field in self._unseen and self._rows:
                _log.warning("%s: no row%s has the field '%s'%s", self._who, so_far, field, did_you_mean(field, others))
        self._unseen = set()


def _column(values: Sequence[Any], type_: pa.DataType) -> tuple[pa.Array, Bad]:
    """Convert a column; if all dates or timestamps are text, as in JSON, they are parsed in bulk."""
    if pa.types.is_temporal(type_) and set(map(type, values)) <= {str, type(None)}:
        try:
            texts = pc.utf8_trim_whitespace(pa.array(values, pa.string()))
        except UnicodeError:
            return to_array(values, type_)
        if not pc.any(pc.equal(texts, "")).as_py():  # empty text means NULL only in CSV
            return parse_texts(texts, type_)
    return to_array(values, type_)


class Handover(Generic[_Item]):
    """A bounded queue between a producing thread, which blocks while it is full, and a consuming one."""

    def __init__(self, room: int, size: Callable[[_Item], int] | None = None) -> None:
        """Hold at most `room` in total size; a larger item is accepted when the queue is empty."""
        self._room, self._size, self.held = room, size, 0
        self._items: deque[_Item] = deque()
        self._change = threading.Condition()
        self._ended = False
        self.closed = False
        self.error: BaseException | None = None

    def put(self, item: _Item, wait: bool = True) -> bool:
        """Add an item once there is room; return False if the consumer has closed."""
        size = 1 if self._size is None else self._size(item)
        with self._change:
            while wait and self.held and self.held + size > self._room and not self.closed:
                self._change.wait()
            if self.closed:
                return False
            self._items.append(item)
            self.held += size
            if len(self._items) == 1:
                self._change.notify_all()
            return True

    def take(self, most: int = 1) -> list[_Item]:
        """Wait for an item, then return up to `most` available ones; empty after the end, an error or `close`."""
        with self._change:
            self._change.wait_for(lambda: self._items or self._ended or self.closed)
            taken = [self._items.popleft() for _ in range(min(most, len(self._items)))]
            self.held -= len(taken) if self._size is None else sum(map(self._size, taken))
            self._change.notify_all()
        return taken

    def end(self, error: BaseException | None = None) -> None:
        """Mark the end of items; the first error is kept, unless the consumer has closed."""
        with self._change:
            if self.error is None and not self.closed:
                self.error = error
            self._ended = True
            self._change.notify_all()

    def close(self) -> None:
        """Stop consuming; queued items are dropped."""
        with self._change:
            self.closed = True
            self._items.clear()
            self._change.notify_all()


class Wrapped:
    """A reader that wraps and closes another, and delegates to it unless a subclass overrides."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self.timed, self.finite, self.live = reader.timed, reader.finite, reader.live
        self.anew = begins_anew(reader)

    def identity(self) -> tuple[Path, Identity] | None:
        """Return the wrapped source's file and identity, if it has one."""
        return identify(self._reader)

    def read(self, limit: int) -> Chunk | None:
        """Return the next tuples of the wrapped source."""
        return self._reader.read(limit)

    def malformed(self) -> list[Malformed]:
        """Return the malformed rows of the wrapped source."""
        return self._reader.malformed()

    def close(self) -> None:
        """Close the wrapped source."""
        self._reader.close()


class PacedReader(Wrapped):
    """Makes tuple i of a source due i/rate seconds after the start of the run."""

    def __init__(self, reader: Reader, rate: float) -> None:
        super().__init__(reader)
        self.timed = True
        self._rate, self._count = rate, 0

    def read(self, limit: int) -> Chunk | None:
        """Return the next tuples with their due times."""
        chunk = self._reader.read(limit)
        if chunk is None:
            return None
        start, self._count = self._count, self._count + len(chunk)
        return Chunk(chunk.batch, constant_due(start, len(chunk), self._rate))


def constant_due(start: int, count: int, rate: float) -> Int64s:
    """Return the due times of tuples start, start+1, ... at `rate` tuples per second: i/rate for tuple i."""
    return whole_moments(np.arange(start, start + count, dtype=np.float64) * (SECOND / rate))


def whole_moments(moments: npt.NDArray[np.floating[Any]]) -> Int64s:
    """Round to whole nanoseconds, capped at LONGEST, 146 years."""
    due: Int64s = np.minimum(np.rint(moments), LONGEST).astype(np.int64)
    return due


class SkippingReader(Wrapped):
    """A source without the first tuples, which a saved run has taken, and without the malformed rows that it reported.

    Skipping happens in the first `read`, which raises an InputError that names the source if the input ends too early.
    The due times of a timed source are not shifted: all sources must be shifted together. Malformed rows come in input
    order, so their count tells which were reported.
    """

    def __init__(self, reader: Reader, source: str, tuples: int, refused: int = 0) -> None:
        super().__init__(reader)
        self._source, self._tuples, self._skipped = source, tuples, 0
        self._forget = refused
        self._malformed: list[Malformed] = []
        self._lock = threading.RLock()

    def read(self, limit: int) -> Chunk | None:
        """Return the next tuples after the skipped ones."""
        while self._skipped < self._tuples:
            chunk = self._reader.read(min(self._tuples - self._skipped, _SKIPPED))
            if chunk is None:
                raise InputError(
                    f"source '{self._source}' has fewer tuples ({self._skipped}) than the saved run took from it "
                    f"({self._tuples}): give the same input, or another --state"
                )
            self._collect()
            self._skipped += len(chunk)
        return self._reader.read(limit)

    def malformed(self) -> list[Malformed]:
        """Return the malformed rows found since the last call, without those that the saved run reported."""
        with self._lock:
            self._collect()
            kept, self._malformed = self._malformed, []
        return kept

    def _collect(self) -> None:
        # One thread may read a live source while another collects its malformed rows.
        with self._lock:
            met = self._reader.malformed()
            forgotten = min(self._forget, len(met))
            self._forget -= forgotten
            self._malformed += met[forgotten:]
