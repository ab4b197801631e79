"""The stream as a Python streaming data source, for the queries that Headway is compared with.

Options: `begin`, a file that holds the moment at which the stream begins, or 0 to give out a few tuples before;
`rate`, tuples per second; `total`, for a backlog of that many tuples that is there from the beginning; `cap`, the
most tuples of a micro-batch; `blob`, to get rows of (bucket, Arrow bytes) instead of tuples, half of the keys in
each bucket.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from benchmarks.streaming.apps import SCHEMA, make_batch
from headway.clock import SECOND, WallClock

PARTS = 2
"""Tasks of a micro-batch: one for each core."""
_CHUNK = 100_000
FIRST = 10
"""Tuples that are given out before the stream begins, for a first micro-batch that loads classes."""
BLOBS = "bucket int, train binary"
_clock = WallClock()


@dataclass
class Range(InputPartition):
    """The tuples first, ..., stop - 1."""

    first: int
    stop: int


class StreamReader(DataSourceStreamReader):
    """Reads the stream as far as it has arrived."""

    def __init__(self, options: Mapping[str, str]) -> None:
        """Read with the options of the module's docstring."""
        self._begin = options.get("begin", "")
        self._rate = float(options.get("rate", "0"))
        self._total = int(options.get("total", "0"))
        self._cap = int(options.get("cap", "0"))
        self._blob = "blob" in options
        self._start: int | None = None

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        """Begin with the first tuple."""
        return {"upto": 0}

    def latestOffset(self, start: dict[str, int], limit: Any) -> dict[str, int]:  # noqa: N802 - Spark's name
        """Return how many tuples have arrived, or as many as a micro-batch may take."""
        before = start["upto"]
        arrived = max(before, self._arrived())
        return {"upto": min(arrived, before + self._cap) if self._cap else arrived}

    def _arrived(self) -> int:
        if self._start is None:
            try:
                begun = int(Path(self._begin).read_text())
            except OSError:
                return 0
            if not begun:
                return FIRST
            self._start = begun
        return self._total or int((_clock.now() - self._start) / SECOND * self._rate)

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[Range]:
        """Divide a micro-batch evenly."""
        edges = np.linspace(start["upto"], end["upto"], PARTS + 1).astype(int).tolist()
        return [Range(first, stop) for first, stop in pairwise(edges)]

    def read(self, partition: Range) -> Iterator[pa.RecordBatch]:  # type: ignore[override]
        """Make the tuples of a task."""
        if not self._blob:
            for first in range(partition.first, partition.stop, _CHUNK):
                yield make_batch(first, min(partition.stop, first + _CHUNK))
        elif partition.stop > partition.first:
            yield pack_buckets(make_batch(partition.first, partition.stop))

    def commit(self, end: dict[str, int]) -> None:
        """Do nothing."""


def pack_buckets(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch as one row of Arrow bytes for each bucket of keys."""
    keys = np.asarray(batch.column(1)) % PARTS
    trains = []
    for bucket in range(PARTS):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch.take(pa.array(np.flatnonzero(keys == bucket))))
        trains.append(sink.getvalue().to_pybytes())
    buckets = pa.array(range(PARTS), pa.int32())
    return pa.RecordBatch.from_arrays([buckets, pa.array(trains, pa.binary())], ["bucket", "train"])


class StreamSource(DataSource):
    """The format ``stream``."""

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return "stream"

    def schema(self) -> str:
        """Return the schema of tuples, or of blobs."""
        return BLOBS if "blob" in self.options else SCHEMA

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """Return a reader."""
        return StreamReader(self.options)
