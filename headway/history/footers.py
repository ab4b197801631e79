"""Footers of files of history: which row groups may have wanted keys, and how many bytes they take."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Collection
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from headway.history.kept import HIDDEN, Kept, Position
from headway.history.keys import Bound, Keys, from_statistic
from headway.history.records import HistoryFile, file_schema
from headway.storage.checked import bulk_checksum, intact
from headway.storage.filesystems import Place

ADVICE = "restore the file, or delete this history"
TRAILER = 8
"""Bytes after the footer: its length and Parquet's mark."""


def leaves(type_: pa.DataType) -> int:
    """Return how many columns a field has in Parquet."""
    if pa.types.is_list(type_):
        return leaves(type_.value_type)
    return sum([leaves(field.type) for field in type_]) if pa.types.is_struct(type_) else 1


def page_bytes_of(metadata: Any, groups: Collection[int], leaves: Collection[int]) -> int:
    """Return the bytes of the pages of some row groups in some of Parquet's columns."""
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
            leaf = sum([leaves(type_) for type_ in schema.types[:key]])
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
        starts = np.cumsum([0, *[leaves(type_) for type_ in types]])
        wanted = [leaf for at in (*fields, *range(len(types) - len(HIDDEN), len(types))) for leaf in _span(starts, at)]
        return page_bytes_of(self.metadata, groups, wanted)


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
        with told(place, file), open_file(place, file) as opened:
            size = opened.size()
            if size != file.bytes:
                raise ValueError(f"it has {size:,} bytes instead of {file.bytes:,}")
            opened.seek(size - TRAILER - file.footer)
            if bulk_checksum(opened.read_buffer(TRAILER + file.footer)) != file.crc:
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


def open_file(place: Place, file: HistoryFile) -> Any:
    """Open a file for reads at any place."""
    # Not mapped: a mapped file that is truncated meanwhile would end the process.
    return place.filesystem.open_input_file(f"{place.base}/{file.name}")
