"""Segments: the tuples of one source that entered together, as an Arrow file that any Arrow tool can read.

The user's fields come first, under their own names. Arrival numbers and timestamps are hidden columns after them, or,
where they are regular (each is the one before plus a step), two numbers in the schema's metadata. An index of a
source's segments answers queries about arrival numbers without opening files.
"""

from __future__ import annotations

import json
import re
import threading
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headway.columns import Int64s
from headway.errors import RunError
from headway.network.schema import Schema
from headway.storage.checked import bulk_checksum, intact
from headway.storage.filesystems import Place, Stat, open_input, stat
from headway.trains import Train, constant

NUMBER = "__number"
STAMP = "__stamp"
"""The hidden columns. They are found by position, so a user's field may have the same name."""

_KEY = b"headway"
_LARGEST_STEP = 1 << 62
_OPEN_FILES = 64
_OPEN_BYTES = 256 << 20
_RECENT = 8
"""Segments whose irregular numbers and stamps stay in memory: those that a cut usually falls into, the newest."""
MEND = "restore the file, or start over with another --state"


@dataclass(frozen=True, slots=True)
class LogSegment:
    """What the log knows about a segment without opening it.

    Arrival numbers are first, first + step, ...; with `step` None they are in the file. The same holds for
    `stamp` and `stamp_step`. `stamp_sum` is exact, so it may exceed 64 bits. `crc` is the file's checksum.
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
class LogSlice:
    """Rows `start` to `stop` of one segment, numbered from `first` to `last`; sent to executors.

    `crc` is the checksum of the whole segment.
    """

    source: str
    path: str
    first: int
    last: int
    start: int
    stop: int
    crc: int

    def __len__(self) -> int:
        return self.stop - self.start


def quote_name(source: str) -> str:
    """Return a source's name escaped for all file systems and URIs; different names stay different."""

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
    """Return a sum that does not overflow: six of today's timestamps in nanoseconds already would."""
    return (int((values >> 32).sum()) << 32) + int((values & 0xFFFFFFFF).sum())


def _regular_sum(first: int, step: int, count: int) -> int:
    return count * first + step * (count * (count - 1) // 2)


def regular_values(first: int, step: int, start: int, stop: int) -> Int64s:
    """Return values `start` to `stop` of a regular sequence."""
    if step == 0:
        return constant(first, stop - start)
    return np.arange(start, stop, dtype=np.int64) * step + first


def encode(source: str, train: Train, schema: Schema, file: str) -> tuple[LogSegment, pa.Buffer]:
    """Return a train of at least one tuple as the bytes of a segment, and the segment's record."""
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
    total = exact_sum(stamps) if stamp_step is None else _regular_sum(stamp, stamp_step, rows)
    crc = bulk_checksum(data)
    segment = LogSegment(file, rows, first, int(numbers[-1]), data.size, step, stamp, stamp_step, total, crc)
    return segment, data


class Opened:
    """An open segment: its batch, and its hidden values by row."""

    __slots__ = ("_hidden", "batch", "crc", "rows", "stat")

    def __init__(self, name: str, found: Stat, crc: int) -> None:
        """Open a file that `Place.name` named; raises a ValueError if its checksum is not `crc`."""
        data = open_input(name).read_buffer()
        if bulk_checksum(data) != crc:
            raise ValueError("its checksum is wrong")
        self.crc = crc
        reader = pa.ipc.open_file(pa.BufferReader(data))
        batch = reader.get_batch(0)
        self._hidden = json.loads(reader.schema.metadata[_KEY])
        width = batch.num_columns
        for name in ("stamp", "number"):
            if self._hidden[name] is None:
                width -= 1
                self._hidden[name] = batch.column(width).to_numpy(zero_copy_only=True)
        self.batch = batch.select(range(width))
        self.rows = int(batch.num_rows)
        self.stat = found

    def hidden(self, start: int, stop: int) -> tuple[Int64s, Int64s]:
        """Return the arrival numbers and the timestamps of some rows."""
        number, stamp = (
            one[start:stop] if isinstance(one, np.ndarray) else regular_values(one[0], one[1], start, stop)
            for one in (self._hidden["number"], self._hidden["stamp"])
        )
        return number, stamp


class OpenSegments:
    """Opens segments, and keeps those opened last. A file that was replaced under the same name is opened again."""

    def __init__(self) -> None:
        self._opened: OrderedDict[str, Opened] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def open(self, name: str, source: str, crc: int) -> Opened:
        """Return a segment; a RunError names a file that is missing or damaged."""
        with intact(f"source '{source}': the log's segment '{name}'", MEND):
            found = stat(name)
            with self._lock:
                opened = self._opened.get(name)
                if opened is not None and (opened.stat, opened.crc) == (found, crc):
                    self._opened.move_to_end(name)
                    return opened
            opened = Opened(name, found, crc)
        with self._lock:
            before = self._opened.pop(name, None)
            self._bytes += found.size - (0 if before is None else before.stat.size)
            self._opened[name] = opened
            while len(self._opened) > 1 and (len(self._opened) > _OPEN_FILES or self._bytes > _OPEN_BYTES):
                self._bytes -= self._opened.popitem(last=False)[1].stat.size
        return opened


_read = OpenSegments()
"""The segments whose slices this process has read: on Spark's workers, which do not see a run end."""


def check_schema(opened: Opened, name: str, source: str, schema: Schema) -> None:
    """Raise a RunError for a segment that has other fields than the network's source."""
    found = opened.batch.schema
    if found.names != list(schema.names) or found.types != list(schema.types):
        held = ", ".join(f"{field.name} {field.type}" for field in found)
        raise RunError(
            f"source '{source}': the log's segment '{name}' has the fields ({held}), the network's source has "
            f"({schema}); run the network that wrote it, or start over with another --state"
        )


def read_slice(slice: LogSlice, schema: Schema) -> Train:
    """Return the tuples of a slice, in any process; columns of local files are mapped, not copied.

    The train's progress is its last number. Raises a RunError for a file that is missing, damaged or of another source.
    """
    opened = _read.open(slice.path, slice.source, slice.crc)
    check_schema(opened, slice.path, slice.source, schema)
    if not 0 <= slice.start <= slice.stop <= opened.rows:
        raise RunError(
            f"source '{slice.source}': the log's segment '{slice.path}' has {opened.rows} rows, "
            f"not rows {slice.start} to {slice.stop}; {MEND}"
        )
    numbers, stamps = opened.hidden(slice.start, slice.stop)
    return Train.from_batch(opened.batch.slice(slice.start, len(slice)), stamps, numbers, slice.last)


class SourceIndex:
    """The segments of one source in order. Counts are cumulative, so that ranges are differences."""

    def __init__(self, source: str, place: Place, opened: OpenSegments) -> None:
        self.source = source
        self._place = place
        self._opened = opened
        self._segments: list[LogSegment] = []
        self._firsts: list[int] = []
        self._rows = [0]
        self._sums = [0]
        self._sizes = [0]
        self._recent: OrderedDict[str, tuple[Int64s, Int64s]] = OrderedDict()

    def add(self, segment: LogSegment, train: Train | None = None) -> None:
        """Add a segment; `train` holds its tuples, if they are in memory."""
        self._segments.append(segment)
        self._firsts.append(segment.first)
        self._rows.append(self._rows[-1] + segment.rows)
        self._sums.append(self._sums[-1] + segment.stamp_sum)
        self._sizes.append(self._sizes[-1] + segment.bytes)
        if train is not None and (segment.step is None or segment.stamp_step is None):
            self._recent[segment.file] = (train.numbers, train.stamps)
            if len(self._recent) > _RECENT:
                self._recent.popitem(last=False)

    def forget(self, segments: int) -> None:
        """Remove the `segments` oldest segments."""
        for segment in self._segments[:segments]:
            self._recent.pop(segment.file, None)
        del self._segments[:segments], self._firsts[:segments], self._rows[:segments], self._sums[:segments]
        del self._sizes[:segments]

    def before(self, number: int) -> int:
        """Return how many tuples have this arrival number or a smaller one, counted from some fixed start."""
        at, row = self._spot(number)
        return self._rows[at] + row

    def stamps_before(self, number: int) -> int:
        """Return the sum of the stamps of the tuples that `before` counts."""
        at, row = self._spot(number)
        total = self._sums[at]
        if row:
            segment = self._segments[at]
            if segment.stamp_step is None:
                total += exact_sum(self._hidden(segment)[1][:row])
            else:
                total += _regular_sum(segment.stamp, segment.stamp_step, row)
        return total

    def stamp_after(self, number: int) -> int | None:
        """Return the stamp of the first tuple with a larger arrival number, or None."""
        at, row = self._spot(number)
        if at == len(self._segments):
            return None
        segment = self._segments[at]
        if segment.stamp_step is None:
            return int(self._hidden(segment)[1][row])
        return segment.stamp + segment.stamp_step * row

    def bytes_after(self, number: int) -> int:
        """Return the bytes of the segments that hold anything with a larger arrival number."""
        at = bisect_right(self._firsts, number)
        at -= bool(at) and number < self._segments[at - 1].last
        return self._sizes[-1] - self._sizes[at]

    def slices(self, after: int, upto: int) -> Iterator[LogSlice]:
        """Return the slices in (after, upto]."""
        (begin, skipped), (end, rest) = self._spot(after), self._spot(upto)
        for at in range(begin, min(end + 1, len(self._segments))):
            segment = self._segments[at]
            start = skipped if at == begin else 0
            stop = rest if at == end else segment.rows
            if start < stop:
                first, last = self._number(segment, start), self._number(segment, stop - 1)
                yield LogSlice(self.source, self._place.name(segment.file), first, last, start, stop, segment.crc)

    def _spot(self, number: int) -> tuple[int, int]:
        """Return how many segments, and how many rows of the next one, have arrival numbers up to this one."""
        at = bisect_right(self._firsts, number) - 1
        if at < 0:
            return (0, 0)
        segment = self._segments[at]
        if number >= segment.last:
            return (at + 1, 0)
        if segment.step is None:
            return (at, int(np.searchsorted(self._hidden(segment)[0], number, side="right")))
        return (at, (number - segment.first) // segment.step + 1)

    def _number(self, segment: LogSegment, row: int) -> int:
        if row == 0:
            return segment.first
        if row == segment.rows - 1:
            return segment.last
        if segment.step is None:
            return int(self._hidden(segment)[0][row])
        return segment.first + segment.step * row

    def _hidden(self, segment: LogSegment) -> tuple[Int64s, Int64s]:
        """Return the numbers and the stamps of a segment."""
        held = self._recent.get(segment.file)
        if held is None:
            opened = self._opened.open(self._place.name(segment.file), self.source, segment.crc)
            held = opened.hidden(0, segment.rows)
        return held
