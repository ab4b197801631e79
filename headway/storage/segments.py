"""Segments: the tuples of one source that entered together, as an Arrow file that any Arrow tool can read.

The user's fields stand first, under their own names. Arrival numbers and timestamps are hidden columns behind
them, or, where they are regular (each is the one before plus a step), two numbers in the schema's metadata.
"""

from __future__ import annotations

import json
import re
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from headway.columns import Int64s
from headway.errors import RunError
from headway.schema import Schema
from headway.storage.checksums import bulk_checksum
from headway.storage.filesystems import FAILURES, Stat, open_input, reason, stat
from headway.trains import Train, constant

NUMBER = "__number"
STAMP = "__stamp"
"""The hidden columns. They are found by position, so a user's field may have the same name."""

_KEY = b"headway"
_LARGEST_STEP = 1 << 62
_OPEN_FILES = 64
_OPEN_BYTES = 256 << 20
_MEND = "restore the file, or start anew with another --state"


@dataclass(frozen=True, slots=True)
class Segment:
    """What the log knows about a segment without opening it.

    Arrival numbers are first, first + step, ...; with `step` None they stand in the file. The same holds for
    `stamp` and `stamp_step`. `stamp_sum` is exact, and so may be longer than 64 bits. `crc` is the file's checksum.
    """

    file: str
    rows: int
    first: int
    last: int
    bytes: int
    step: int | None
    stamp: int
    stamp_step: int | None
    stamp_sum: int
    crc: int


@dataclass(frozen=True, slots=True)
class Slice:
    """Rows `start` to `stop` of one segment, numbered from `first` to `last`. It travels to executors.

    `crc` is the checksum of the whole segment; None: nobody knows it.
    """

    source: str
    path: str
    first: int
    last: int
    start: int
    stop: int
    crc: int | None = None

    def __len__(self) -> int:
        """Return the number of tuples."""
        return self.stop - self.start

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Slice:
        """Read what `to_json` returned."""
        return cls(**values)


def quote_name(source: str) -> str:
    """Return a source's name as one that every file system and URI takes; different names stay different."""

    def escape(found: re.Match[str]) -> str:
        return "".join(f"~{byte:02x}" for byte in found[0].encode("utf-8", "surrogatepass"))

    return re.sub(r"[^A-Za-z0-9_-]", escape, source)


def regular_step(values: Int64s) -> int | None:
    """Return the step of values that are first, first + step, ..., or None if they are not; at least one value."""
    count = len(values)
    if count == 1 or values.strides[0] == 0:
        return 0
    first, step = int(values[0]), int(values[1]) - int(values[0])
    if abs(step) > _LARGEST_STEP or int(values[-1]) != first + (count - 1) * step:
        return None
    return step if bool((values[1:] - values[:-1] == step).all()) else None


def exact_sum(values: Int64s) -> int:
    """Return a sum that does not overflow: two million of today's timestamps already would."""
    return (int((values >> 32).sum()) << 32) + int((values & 0xFFFFFFFF).sum())


def regular_values(first: int, step: int, start: int, stop: int) -> Int64s:
    """Return values `start` to `stop` of a regular row of values."""
    if step == 0:
        return constant(first, stop - start)
    return np.arange(start, stop, dtype=np.int64) * step + first


def encode(source: str, train: Train, schema: Schema, file: str) -> tuple[Segment, pa.Buffer]:
    """Return a train of at least one tuple as the bytes of a segment, and what there is to know about it."""
    numbers, stamps = train.numbers, train.stamps
    step, stamp_step = regular_step(numbers), regular_step(stamps)
    batch = train.to_batch(schema.to_arrow())
    arrays, fields = list(batch.columns), list(batch.schema)
    for name, values, regular in ((NUMBER, numbers, step), (STAMP, stamps, stamp_step)):
        if regular is None:
            arrays.append(pa.array(np.ascontiguousarray(values), pa.int64()))
            fields.append(pa.field(name, pa.int64(), nullable=False))
    first, stamp, rows = int(numbers[0]), int(stamps[0]), len(numbers)
    hidden = {
        "source": source,
        "rows": rows,
        "number": None if step is None else [first, step],
        "stamp": None if stamp_step is None else [stamp, stamp_step],
    }
    whole = pa.schema(fields, {_KEY: json.dumps(hidden).encode()})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, whole) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=whole))
    data = sink.getvalue()
    if stamp_step is None:
        total = exact_sum(stamps)
    else:
        total = rows * stamp + stamp_step * (rows * (rows - 1) // 2)
    crc = bulk_checksum(data)
    segment = Segment(file, rows, first, int(numbers[-1]), data.size, step, stamp, stamp_step, total, crc)
    return segment, data


class Opened:
    """An open segment: its batch, and its hidden values row by row."""

    __slots__ = ("_number", "_stamp", "batch", "bytes", "crc", "rows", "stat")

    def __init__(self, name: str, found: Stat, crc: int | None) -> None:
        """Open a file that `Place.name` named; a ValueError if its checksum is not `crc`."""
        data = open_input(name).read_buffer()
        if crc is not None and bulk_checksum(data) != crc:
            raise ValueError("it is damaged: its checksum is wrong")
        self.crc = crc
        reader = pa.ipc.open_file(pa.BufferReader(data))
        hidden = json.loads(reader.schema.metadata[_KEY])
        batch = reader.get_batch(0)
        width = batch.num_columns
        self._stamp = self._number = None
        if hidden["stamp"] is None:
            width -= 1
            self._stamp = _int64s(batch.column(width))
        if hidden["number"] is None:
            width -= 1
            self._number = _int64s(batch.column(width))
        self._stamp = hidden["stamp"] if self._stamp is None else self._stamp
        self._number = hidden["number"] if self._number is None else self._number
        self.batch = batch.select(range(width))
        self.rows = int(batch.num_rows)
        self.bytes = found.size
        self.stat = found

    def numbers(self, start: int, stop: int) -> Int64s:
        """Return the arrival numbers of some rows."""
        return _values(self._number, start, stop)

    def stamps(self, start: int, stop: int) -> Int64s:
        """Return the timestamps of some rows."""
        return _values(self._stamp, start, stop)


class _Cache:
    """The segments opened last. A file of the same name that is another one is seen as such."""

    def __init__(self) -> None:
        self._opened: OrderedDict[str, Opened] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def open(self, name: str, crc: int | None) -> Opened:
        found = stat(name)
        with self._lock:
            opened = self._opened.get(name)
            if opened is not None and opened.stat == found and crc in (None, opened.crc):
                self._opened.move_to_end(name)
                return opened
        opened = Opened(name, found, crc)
        with self._lock:
            before = self._opened.pop(name, None)
            self._bytes += opened.bytes - (0 if before is None else before.bytes)
            self._opened[name] = opened
            while len(self._opened) > 1 and (len(self._opened) > _OPEN_FILES or self._bytes > _OPEN_BYTES):
                self._bytes -= self._opened.popitem(last=False)[1].bytes
        return opened


_cache = _Cache()


def open_segment(name: str, source: str, crc: int | None = None) -> Opened:
    """Open a segment, or return it open; a RunError that names the file if it is not there or damaged."""
    try:
        return _cache.open(name, crc)
    except FileNotFoundError as error:
        raise RunError(f"source '{source}': the log's segment '{name}' is missing; {_MEND}") from error
    except (*FAILURES, ValueError, KeyError, TypeError, IndexError) as error:
        raise RunError(
            f"source '{source}': the log's segment '{name}' cannot be read: {reason(error)}; {_MEND}"
        ) from error


def check_schema(opened: Opened, name: str, source: str, schema: Schema) -> None:
    """Refuse a segment that holds other fields than the network's source, with a RunError."""
    found = opened.batch.schema
    if found.names != list(schema.names) or found.types != list(schema.types):
        held = ", ".join(f"{field.name} {field.type}" for field in found)
        raise RunError(
            f"source '{source}': the log's segment '{name}' has the fields ({held}), the network's source has "
            f"({schema}); run the network that wrote it, or start anew with another --state"
        )


def read_slice(slice: Slice, schema: Schema) -> Train:
    """Return the tuples of a slice, in any process; columns of local files are mapped, not copied.

    The train's progress is its last number. Raises a RunError for a file that is missing, damaged or another's.
    """
    opened = open_segment(slice.path, slice.source, slice.crc)
    check_schema(opened, slice.path, slice.source, schema)
    if not 0 <= slice.start <= slice.stop <= opened.rows:
        raise RunError(
            f"source '{slice.source}': the log's segment '{slice.path}' has {opened.rows} rows, "
            f"not rows {slice.start} to {slice.stop}; {_MEND}"
        )
    return Train.from_batch(
        opened.batch.slice(slice.start, slice.stop - slice.start),
        opened.stamps(slice.start, slice.stop),
        opened.numbers(slice.start, slice.stop),
        slice.last,
    )


def _int64s(array: pa.Array) -> Int64s:
    values: Int64s = array.to_numpy(zero_copy_only=True)
    return values


def _values(held: Any, start: int, stop: int) -> Int64s:
    if isinstance(held, np.ndarray):
        return held[start:stop]
    first, step = held
    return regular_values(first, step, start, stop)
