"""Files of history: Parquet, sorted by storage key, written without a store.

A file holds a contiguous part of its arc. Its row groups are small and of one page for each column, so their statistics
are those of pages. Pages carry checksums, which are verified when they are read; the footer's is in the file's record.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from headway.columns import Column, from_arrow, to_arrow
from headway.history.footers import TRAILER, Footers, leaves
from headway.history.kept import HIDDEN, NUMBER, PLACE, Kept
from headway.history.keys import Bound, sorting, to_bound
from headway.history.loading import load
from headway.history.records import HistoryFile, file_schema
from headway.history.rows import Rows, extent, moments
from headway.storage.checked import bulk_checksum
from headway.storage.filesystems import Place
from headway.trains import Train

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
    group = min(layout.most, max(layout.least, -(-count // layout.groups)))
    buffer = _encode(kept, table, group)
    footer = int.from_bytes(buffer[buffer.size - TRAILER : buffer.size - 4].to_pybytes(), "little")
    low, high, nulls, nans = _key_range(from_arrow(table.column(kept.key or NUMBER)), kept.key_type)
    place.write(name, buffer, sync=sync)
    return HistoryFile(
        name=name,
        rows=count,
        bytes=buffer.size,
        data=buffer.size - footer - TRAILER - 4,  # the file begins with Parquet's mark
        raw=raw,
        groups=-(-count // group),
        key_low=low,
        key_high=high,
        nulls=nulls,
        nans=nans,
        footer=footer,
        crc=bulk_checksum(buffer[buffer.size - TRAILER - footer :]),
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
        sorting_columns=[pq.SortingColumn(sum([leaves(field.type) for field in list(table.schema)[:key]]))],
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
