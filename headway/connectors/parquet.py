"""Parquet files, read and written by row groups."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from headway.connectors.base import (
    Reader,
    SinkRequest,
    SourceRequest,
    Writer,
    permit_file,
    permit_target,
    register_sink,
    register_source,
)
from headway.connectors.casting import Caster
from headway.connectors.cutting import BatchReader
from headway.connectors.files import PartialFile, input_path, open_input
from headway.connectors.heaps import GROUP_ROWS, Heap
from headway.connectors.identity import Identity, identify_whole
from headway.errors import InputError, OutputError

BATCH = 1 << 16
"""Tuples that are decoded at a time."""


class ParquetReader(BatchReader):
    """Reads the needed columns of a Parquet file in batches, cast to the source's schema where nothing is lost."""

    def __init__(self, request: SourceRequest) -> None:
        """Open the file; raises InputError if it is no Parquet or its columns do not fit."""
        super().__init__(request.name, request.strict)
        path = input_path(request)
        self._who, self._path = request.who, path
        self._known: Identity | None = None
        self._handle = open_input(path, request.who)
        try:
            self._file = pq.ParquetFile(self._handle, pre_buffer=False)
            given = self._file.schema_arrow
        except (pa.ArrowException, OSError, ValueError) as error:
            self._handle.close()
            raise self._unreadable(error) from error
        try:
            self._caster = Caster(request.schema, given, request.who, f"'{path}'")
        except InputError:
            self._handle.close()
            raise
        self._row = 0
        self._names = [given.names[at] for at in self._caster.columns]
        self._batches: Iterator[pa.RecordBatch] = self._file.iter_batches(BATCH, columns=self._names)

    def identity(self) -> tuple[Path, Identity] | None:
        """Return which file this is."""
        found = identify_whole(self._path) if self._known is None else self._known
        self._known = found
        return None if found is None else (self._path, found)

    def next_batch(self, limit: int) -> pa.RecordBatch | None:
        """Decode the next batch."""
        try:
            batch = next(self._batches, None)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise self._unreadable(error) from error
        if batch is None:
            return None
        start, self._row = self._row, self._row + batch.num_rows
        made, misfits = self._caster.cast_columns([batch.column(name) for name in self._names])
        for at, (text, reason) in misfits.items():
            self.refuse(f"{self._path.name} row {start + at + 1}", text, reason)
        return made

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        self._handle.close()

    def _unreadable(self, error: Exception) -> InputError:
        return InputError(f"{self._who}: '{self._path}' cannot be read as Parquet: {error}")


class ParquetSink:
    """Writes a Parquet file; small batches are gathered to row groups of a sensible size."""

    def __init__(self, request: SinkRequest) -> None:
        """Start the file beside its target."""
        self._target = PartialFile(request)
        self._schema = request.schema.to_arrow()
        try:
            self._writer = pq.ParquetWriter(self._target.file, self._schema)
        except (pa.ArrowException, OSError) as error:
            self._target.remove()
            raise OutputError(f"{request.who}: '{self._target.path}' cannot be written: {error}") from error
        self._heap = Heap()
        self._open = True

    def write(self, batch: pa.RecordBatch) -> None:
        """Gather the batch, and write a row group when there is enough."""
        if self._heap.add(batch):
            self._flush()

    def prepare(self) -> None:
        """Write the last row group and the footer."""
        if self._open:
            self._flush()
            with self._target.guard():
                self._writer.close()
            self._open = False
            self._target.prepare()

    def close(self) -> None:
        """Put the file in its place, with all that `prepare` writes."""
        self.prepare()
        self._target.complete()

    def abort(self) -> None:
        """Give up the file; does nothing once it is in its place."""
        if self._open:
            self._open = False
            with contextlib.suppress(OSError, pa.ArrowException):
                self._writer.close()
        self._target.remove()

    def _flush(self) -> None:
        batches = self._heap.take()
        if batches:
            table = pa.Table.from_batches(batches, schema=self._schema)
            with self._target.guard():
                self._writer.write_table(table, row_group_size=GROUP_ROWS)


def _open_source(request: SourceRequest) -> Reader:
    return ParquetReader(request)


def _open_sink(request: SinkRequest) -> Writer:
    return ParquetSink(request)


register_source("parquet", _open_source, (".parquet",), permit_file)
register_sink("parquet", _open_sink, (".parquet",), permit_target)
