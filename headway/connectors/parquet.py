"""Parquet files, read in batches and written in row groups."""

from __future__ import annotations

import contextlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from headway.connectors.input_files import identify_whole, input_path, open_input
from headway.connectors.output_files import GROUP_ROWS, GatheringSink, PartialFile, register_files
from headway.connectors.protocol import Identity, SinkRequest, SourceRequest
from headway.connectors.readers import CastingReader
from headway.connectors.rolling import Rendered
from headway.errors import InputError, OutputError

BATCH = 1 << 16
"""How many tuples are decoded at a time."""


class _ParquetReader(CastingReader):
    """Reads the needed columns of a Parquet file in batches, cast to the source's schema without loss."""

    unreadable = "cannot be read as Parquet"

    def __init__(self, request: SourceRequest) -> None:
        """Open the file; raises InputError if it is not Parquet or its columns do not fit."""
        self._path = path = input_path(request)
        self._known: Identity | None = None
        with contextlib.ExitStack() as opened:
            handle = opened.enter_context(open_input(path, request.who))
            try:
                file = opened.enter_context(pq.ParquetFile(handle, pre_buffer=False))
                given = file.schema_arrow
            except (pa.ArrowException, OSError, ValueError) as error:
                raise InputError(f"{request.who}: '{path}' {self.unreadable}: {error}") from error
            super().__init__(request, given, f"'{path}'", path.name)
            self.batches = file.iter_batches(BATCH, columns=self.caster.names)
            self.file = opened.pop_all()

    def identity(self) -> tuple[Path, Identity] | None:
        self._known = identify_whole(self._path) if self._known is None else self._known
        return None if self._known is None else (self._path, self._known)


class _ParquetSink(GatheringSink):
    """Writes a Parquet file; small batches are combined into row groups of reasonable size."""

    def __init__(self, request: SinkRequest) -> None:
        super().__init__()
        self._target = PartialFile(request)
        self._schema = request.schema.to_arrow()
        try:
            self._writer = pq.ParquetWriter(self._target.file, self._schema)
        except (pa.ArrowException, OSError) as error:
            self._target.abort()
            raise OutputError(f"{request.who}: '{self._target.path}' cannot be written: {error}") from error

    def save(self, batches: list[pa.RecordBatch]) -> None:
        with self._target.guard():
            self._writer.write_table(pa.Table.from_batches(batches, schema=self._schema), row_group_size=GROUP_ROWS)

    @property
    def path(self) -> Path:
        """Where the file is, once it is closed."""
        return self._target.path

    @property
    def size(self) -> int:
        """The bytes written so far, and those in memory."""
        return self._target.file.tell() + self.buffered

    def render(self, batch: pa.RecordBatch) -> Rendered:
        """Return tuples; each counts with its share of their size in memory."""
        return Rendered(np.linspace(0, batch.nbytes, batch.num_rows + 1).astype(np.int64), batch)

    def put(self, rendered: Rendered, start: int, stop: int) -> None:
        """Write some of the tuples."""
        self.write(rendered.data.slice(start, stop - start))

    def prepare(self) -> None:
        """Write the last row group and the footer."""
        if self._writer.is_open:
            self.flush()
            with self._target.guard():
                self._writer.close()
            self._target.prepare()

    def close(self) -> None:
        self.prepare()
        self._target.close()

    def abort(self) -> None:
        with contextlib.suppress(OSError, pa.ArrowException):
            self._writer.close()
        self._target.abort()


register_files("parquet", _ParquetReader, _ParquetSink)
