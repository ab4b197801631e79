"""Files of history: Parquet, sorted by storage key, written and read without a store.

A file holds a contiguous part of its arc. Its row groups are small and of one page for each column, so their statistics
are those of pages. Pages carry checksums, which are verified when they are read; the footer's is in the file's record.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from headway.columns import UNREAD, Column, from_arrow, to_arrow
from headway.history.kept import HIDDEN, LAST_PLACE, NUMBER, PLACE, STAMP, START, Kept, Moment, Position
from headway.history.keys import Bound, Keys, from_statistic, sorting, to_bound
from headway.history.rows import Rows, extent, moments
from headway.storage.checked import bulk_checksum, intact
from headway.storage.filesystems import Place
from headway.trains import Train

END = Position(2**63 - 1, LAST_PLACE)
"""The position after every tuple."""
ADVICE = "restore the file, or delete this history"
_TRAILER = 8
"""Bytes after the footer: its length and Parquet's mark."""
_LONGEST_BOUND = 256
"""Bytes of a bound in a record: longer ones are only in the file's statistics."""
_DELTA = {pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.date32()}


@dataclass(frozen=True, slots=True)
class Layout:
    """How tuples are laid out in files. Bytes are those of columns in memory."""

    flush: int = 24 << 20
    """So many bytes make a file."""
    largest: int = 128 << 20
    """Files are merged into files of at most so many bytes: they are sorted in memory."""
    merge: int = 4
    """So many neighbouring files are merged, at least."""
    groups: int = 256
    """Row groups of a file: looking up a key reads one or two of them."""
    least: int = 4096
    most: int = 65_536
    """Rows of a row group, at least and at most."""


@dataclass(frozen=True, slots=True)
class HistoryFile:
    """What is known of a file without opening it; goes through JSON.

    `data` are the bytes of its pages, `raw` those of its columns in memory. `dense` says that every arrival number from
    the first to the last has one tuple. `low` and `high` are times, without those that are NULL or NaN, of which there
    are `untimed`. `key_low` and `key_high` are None if there are none, or too long. `footer` is the footer's length,
    `crc` its checksum.
    """

    name: str
    rows: int
    bytes: int
    data: int
    raw: int
    groups: int
    first: Position
    last: Position
    dense: bool
    low: Moment | None
    high: Moment | None
    untimed: int
    key_low: Bound | None
    key_high: Bound | None
    nulls: int
    nans: bool
    footer: int
    crc: int

    def to_json(self) -> dict[str, Any]:
        """Return the record as JSON has it."""
        return {
            name: {"hex": value.hex()} if isinstance(value, bytes) else value for name, value in asdict(self).items()
        }

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> HistoryFile:
        """Read what `to_json` returned; raises a LookupError, TypeError or ValueError if it is something else."""
        read: dict[str, Any] = {
            name: bytes.fromhex(value["hex"]) if isinstance(value, dict) else value for name, value in values.items()
        }
        if read.keys() != {field.name for field in fields(cls)}:
            raise ValueError("a file's record does not have the members that it should have")
        return cls(**{**read, "first": Position(*read["first"]), "last": Position(*read["last"])})


def write_file(
    place: Place, name: str, kept: Kept, rows: Rows | Train, layout: Layout | None = None, sync: bool = True
) -> HistoryFile:
    """Write tuples, at least one, which are in the order of arrival, as a file; it appears complete or not at all.

    A train's first tuple has place 0. Raises what the file system raises.
    """
    rows = Rows.of([rows]) if isinstance(rows, Train) else rows
    count = len(rows)
    times = moments(kept, rows)
    low, high = extent(times) or (None, None)
    timed = int(times.is_valid().sum())
    if times.values.dtype.kind == "f":
        timed -= int((np.isnan(times.values) & times.is_valid()).sum())
    first, last = rows.position(0), rows.position(count - 1)
    dense = last.number - first.number == count - 1 and bool((rows.numbers[1:] > rows.numbers[:-1]).all())
    known = {"first": first, "last": last, "dense": dense, "low": low, "high": high, "untimed": count - timed}
    return _write(place, name, kept, rows, known, layout or Layout(), sync)


def merge_files(
    place: Place,
    name: str,
    kept: Kept,
    files: Sequence[HistoryFile],
    layout: Layout | None = None,
    sync: bool = True,
    footers: Footers | None = None,
) -> HistoryFile:
    """Write neighbouring files as one, which is sorted in memory; the files stay."""
    parts = [load(place, file, kept, footers=footers, ordered=False).rows for file in files]
    rows = Rows.joined(parts)
    del parts
    first, last = files[0].first, files[-1].last
    lows = [file.low for file in files if file.low is not None]
    highs = [file.high for file in files if file.high is not None]
    known = {
        "first": first,
        "last": last,
        "dense": all(file.dense for file in files) and last.number - first.number == len(rows) - 1,
        "low": min(lows, default=None),
        "high": max(highs, default=None),
        "untimed": sum([file.untimed for file in files]),
    }
    return _write(place, name, kept, rows, known, layout or Layout(), sync)


def _write(
    place: Place, name: str, kept: Kept, rows: Rows, known: dict[str, Any], layout: Layout, sync: bool
) -> HistoryFile:
    """Write tuples whose equal keys are in the order of arrival."""
    count = len(rows)
    raw = 20 * count + sum([column.nbytes for column in rows.columns])
    if kept.key is not None:
        order = sorting(rows.columns[kept.schema.index(kept.key)])
        rows = rows if order is None else rows.take(order)
    table = _to_table(kept, rows)
    buffer = _encode(kept, table, min(layout.most, max(layout.least, -(-count // layout.groups))))
    footer = int.from_bytes(buffer[buffer.size - _TRAILER : buffer.size - 4].to_pybytes(), "little")
    metadata = pq.read_metadata(pa.BufferReader(buffer))
    low, high, nulls, nans = _key_range(from_arrow(table.column(kept.key or NUMBER)), kept.key_type)
    place.write(name, buffer, sync=sync)
    return HistoryFile(
        name=name,
        rows=count,
        bytes=buffer.size,
        data=_page_bytes(metadata, range(metadata.num_row_groups), range(metadata.num_columns)),
        raw=raw,
        groups=metadata.num_row_groups,
        key_low=low,
        key_high=high,
        nulls=nulls,
        nans=nans,
        footer=footer,
        crc=bulk_checksum(buffer[buffer.size - _TRAILER - footer :]),
        **known,
    )


def _to_table(kept: Kept, rows: Rows) -> pa.Table:
    arrays = [to_arrow(column, type_) for column, type_ in zip(rows.columns, kept.schema.types, strict=True)]
    hidden = (rows.numbers, rows.places, rows.stamps)
    arrays += [
        pa.array(np.ascontiguousarray(values).astype(type_.to_pandas_dtype(), copy=False), type_)
        for values, (_, type_) in zip(hidden, HIDDEN, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=file_schema(kept))


def file_schema(kept: Kept) -> pa.Schema:
    """Return the fields of a file: the user's, then the hidden ones."""
    hidden = [pa.field(name, type_, nullable=False) for name, type_ in HIDDEN]
    return pa.schema([*kept.schema.to_arrow(), *hidden])


def _encode(kept: Kept, table: pa.Table, group: int) -> pa.Buffer:
    """Return a table as a Parquet file.

    Keys are sorted and places repeat, so they are coded as runs. Other whole numbers are coded as differences, since
    times and arrival numbers ascend within a key.
    """
    texts = [field.name for field in kept.schema if pa.types.is_string(field.type) or pa.types.is_binary(field.type)]
    runs = [*texts, PLACE, *([kept.key] if kept.key and not pa.types.is_boolean(kept.key_type) else [])]
    deltas = {
        field.name: "DELTA_BINARY_PACKED"
        for field in table.schema
        if field.name not in runs and (field.type in _DELTA or pa.types.is_timestamp(field.type))
    }
    sink = pa.BufferOutputStream()
    key = table.schema.get_field_index(kept.key or NUMBER)
    with pq.ParquetWriter(
        sink,
        table.schema,
        compression="lz4",
        use_dictionary=runs,
        column_encoding=deltas,
        write_page_checksum=True,
        sorting_columns=[pq.SortingColumn(sum([_leaves(field.type) for field in list(table.schema)[:key]]))],
    ) as writer:
        writer.write_table(table, row_group_size=group)
    return sink.getvalue()


def _key_range(keys: Column, type_: pa.DataType) -> tuple[Bound | None, Bound | None, int, bool]:
    """Return the smallest and the largest of sorted keys, how many are NULL, and whether some are NaN."""
    count = int(keys.is_valid().sum())
    nulls, numbers = len(keys) - count, count
    if not keys.is_arrow and keys.values.dtype.kind == "f":
        numbers = count - int(np.isnan(keys.values[:count]).sum())
    if numbers == 0:
        return None, None, nulls, numbers < count
    low, high = (to_bound(to_arrow(keys.slice(at, at + 1), type_)[0]) for at in (0, numbers - 1))
    if isinstance(low, bytes) and isinstance(high, bytes) and max(len(low), len(high)) > _LONGEST_BOUND:
        return None, None, nulls, numbers < count
    return low, high, nulls, numbers < count


def _leaves(type_: pa.DataType) -> int:
    """Return how many columns a field has in Parquet."""
    if pa.types.is_list(type_):
        return _leaves(type_.value_type)
    return sum([_leaves(field.type) for field in type_]) if pa.types.is_struct(type_) else 1


def _page_bytes(metadata: Any, groups: Collection[int], leaves: Collection[int]) -> int:
    total = 0
    for at in groups:
        group = metadata.row_group(at)
        total += sum([group.column(leaf).total_compressed_size for leaf in leaves])
    return total


class _Range(NamedTuple):
    """The keys of a row group."""

    low: Bound | None
    high: Bound | None
    nulls: int | None
    nans: bool


class Footer:
    """A file's footer, and the ranges of keys of its row groups, which are read when they are needed first."""

    def __init__(self, metadata: Any, kept: Kept) -> None:
        self.metadata = metadata
        self._kept = kept
        self._ranges: list[_Range] | None = None

    def groups(self, keys: Keys | None, after: Position, upto: Position) -> list[int]:
        """Return the row groups that may have wanted keys; where the key is the arrival number, also by position."""
        whole = range(self.metadata.num_row_groups)
        if keys is None and self._kept.key is not None:
            return list(whole)
        ranges = self.ranges()
        chosen = [at for at in whole if keys is None or keys.overlaps(*ranges[at])]
        if self._kept.key is None:
            chosen = [at for at in chosen if _reaches(ranges[at], after.number, upto.number)]
        return chosen

    def ranges(self) -> list[_Range]:
        """Return the ranges of keys of the row groups."""
        if self._ranges is None:
            schema = self._kept.schema
            key = len(schema) if self._kept.key is None else schema.index(self._kept.key)
            leaf = sum([_leaves(type_) for type_ in schema.types[:key]])
            found = [self._range(self.metadata.row_group(at), leaf) for at in range(self.metadata.num_row_groups)]
            if pa.types.is_floating(self._kept.key_type):
                # Statistics are silent about NaN, but it comes after the numbers: not before the last group with one.
                last = max([at for at, one in enumerate(found) if one.low is not None], default=0)
                found = [one._replace(nans=at >= last) for at, one in enumerate(found)]
            self._ranges = found
        return self._ranges

    def _range(self, group: Any, leaf: int) -> _Range:
        statistics, type_ = group.column(leaf).statistics, self._kept.key_type
        if statistics is None:
            return _Range(None, None, None, False)
        nulls = statistics.null_count if statistics.has_null_count else None
        if not statistics.has_min_max:
            return _Range(None, None, nulls, False)
        low, high = from_statistic(statistics.min_raw, type_), from_statistic(statistics.max_raw, type_)
        return _Range(low, high, nulls, False)

    def page_bytes(self, groups: Collection[int], fields: Collection[int]) -> int:
        """Return the bytes of the pages of some row groups in some fields, hidden ones included."""
        types = file_schema(self._kept).types
        starts = np.cumsum([0, *[_leaves(type_) for type_ in types]])
        wanted = [leaf for at in (*fields, *range(len(types) - len(HIDDEN), len(types))) for leaf in _span(starts, at)]
        return _page_bytes(self.metadata, groups, wanted)


def _span(starts: Any, at: int) -> range:
    return range(int(starts[at]), int(starts[at + 1]))


def _reaches(found: _Range, after: int, upto: int) -> bool:
    if found.low is None or found.high is None:
        return True
    return bool(found.high >= after and found.low <= upto)  # type: ignore[operator]


class Footers:
    """The footers used last, each verified when it is read from its file. Used by any threads."""

    def __init__(self, most: int = 128) -> None:
        self._most = most
        self._held: OrderedDict[str, Footer] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, place: Place, file: HistoryFile, kept: Kept) -> Footer:
        """Return a file's footer; a RunError names a file that is missing or damaged."""
        name = place.name(file.name)
        with self._lock:
            held = self._held.get(name)
            if held is not None:
                self._held.move_to_end(name)
                return held
        with told(place, file), _open(place, file) as opened:
            size = opened.size()
            if size != file.bytes:
                raise ValueError(f"it has {size:,} bytes instead of {file.bytes:,}")
            opened.seek(size - _TRAILER - file.footer)
            if bulk_checksum(opened.read_buffer(_TRAILER + file.footer)) != file.crc:
                raise ValueError("its footer's checksum is wrong")
            opened.seek(0)
            footer = Footer(pq.read_metadata(opened), kept)
        with self._lock:
            self._held[name] = footer
            while len(self._held) > self._most:
                self._held.popitem(last=False)
        return footer


def told(place: Place, file: HistoryFile) -> Any:
    """Return a context in which a missing or damaged file raises a RunError that names it."""
    return intact(f"history file '{place.name(file.name)}'", ADVICE)


def _open(place: Place, file: HistoryFile) -> Any:
    # Not mapped: a mapped file that is truncated meanwhile would end the process.
    return place.filesystem.open_input_file(f"{place.base}/{file.name}")


class Loaded(NamedTuple):
    """Tuples read from a file, and the bytes of the pages that this took."""

    rows: Rows
    bytes: int


def load(
    place: Place,
    file: HistoryFile,
    kept: Kept,
    after: Position = START,
    upto: Position = END,
    keys: Keys | None = None,
    columns: Collection[int] | None = None,
    footers: Footers | None = None,
    ordered: bool = True,
) -> Loaded:
    """Read the tuples of a file after a position and up to another, with these keys; other columns stay unread.

    They are in the order of arrival, or in that of the file if it does not matter.
    A RunError names a file that is missing or damaged.
    """
    footer = (footers or Footers()).get(place, file, kept)
    groups = footer.groups(keys, after, upto)
    schema = kept.schema
    wanted = range(len(schema)) if columns is None else sorted(set(columns))
    if not groups:
        return Loaded(Rows.none(kept), 0)
    by_key = keys is not None and kept.key is not None
    read = sorted({*wanted, schema.index(kept.key)}) if by_key and kept.key is not None else wanted
    every = len(groups) == file.groups and len(read) == len(schema)
    size = file.data if every else footer.page_bytes(groups, read)
    names = [*[schema.names[at] for at in read], NUMBER, PLACE, STAMP]
    with told(place, file), _open(place, file) as opened:
        parquet = pq.ParquetFile(opened, metadata=footer.metadata, page_checksum_verification=True)
        table = parquet.read_row_groups(groups, names, use_threads=False)
        if table.num_rows != sum([footer.metadata.row_group(at).num_rows for at in groups]):
            raise ValueError("it does not have the tuples that its footer says")
        found: list[Column] = [UNREAD] * len(schema)
        for at in read:
            found[at] = from_arrow(table.column(schema.names[at]))
        numbers, places, stamps = (from_arrow(table.column(name)).values for name in (NUMBER, PLACE, STAMP))
    rows = Rows(numbers, places, stamps, tuple(found))
    if keys is not None:
        column, type_ = (Column(numbers), pa.int64()) if not by_key else (found[schema.index(kept.key)], kept.key_type)  # type: ignore[arg-type]
        rows = rows.keep(keys.mask(column, type_))
    at = rows.within(after, upto) if after >= file.first or upto < file.last else None
    if at is not None:
        rows = rows.take(at)
    return Loaded(rows.in_order() if ordered else rows, size)


def read_files(
    place: Place,
    files: Sequence[HistoryFile],
    kept: Kept,
    *,
    after: Position | int = START,
    upto: Position | int = END,
    key: object = None,
    columns: Sequence[str] | None = None,
    footers: Footers | None = None,
) -> Iterator[Train]:
    """Yield the tuples of files in the order of arrival, a train for each file that has some.

    Numbers are those after `after` and up to `upto`; `key` is a value, `NULL` or a pair of inclusive bounds of the
    storage key. Other columns than `columns` stay unread. Memory holds one file. Files and row groups without such
    tuples are not read.
    """
    wanted = None if columns is None else [kept.schema.index(name) for name in columns]
    keys = Keys.parse(key, kept.key_type)
    span = position(after), position(upto)
    for file in sorted(files, key=lambda one: one.first):
        if overlaps(file, *span, keys):
            rows = load(place, file, kept, *span, keys, wanted, footers).rows
            if len(rows):
                yield rows.train(wanted)


def position(value: Position | int | tuple[int, int]) -> Position:
    """Return a position; a number alone means all of its tuples."""
    return Position(value, LAST_PLACE) if isinstance(value, int) else Position(*value)


def overlaps(file: HistoryFile, after: Position, upto: Position, keys: Keys | None) -> bool:
    """Return whether a file may have wanted tuples."""
    if file.last <= after or file.first > upto:
        return False
    return keys is None or keys.overlaps(file.key_low, file.key_high, file.nulls, file.nans)
