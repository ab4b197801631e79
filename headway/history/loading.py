"""Reading files of history without a store: only the row groups that may have what is wanted."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from headway.columns import UNREAD, Column, from_arrow
from headway.history.footers import Footers, open_file, told
from headway.history.kept import NUMBER, PLACE, STAMP, START, Kept, Position
from headway.history.keys import Keys
from headway.history.records import END, HistoryFile, overlaps, position
from headway.history.rows import Rows
from headway.storage.filesystems import Place
from headway.trains import Train


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
    with told(place, file), open_file(place, file) as opened:
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
