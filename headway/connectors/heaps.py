"""Batches gathered until there is enough of them for a file or a row group."""

from __future__ import annotations

import pyarrow as pa

GROUP_ROWS = 1 << 17
GROUP_BYTES = 1 << 26
"""Enough is this many tuples or bytes."""


class Heap:
    """Small batches on their way to something that wants large ones."""

    def __init__(self) -> None:
        """Start with nothing."""
        self._batches: list[pa.RecordBatch] = []
        self._rows = self._bytes = 0

    def add(self, batch: pa.RecordBatch) -> bool:
        """Gather a batch; returns whether there is enough."""
        self._batches.append(batch)
        self._rows += batch.num_rows
        self._bytes += batch.nbytes
        return self._rows >= GROUP_ROWS or self._bytes >= GROUP_BYTES

    def take(self) -> list[pa.RecordBatch]:
        """Return what was gathered, none without rows, and start again."""
        taken = self._batches if self._rows else []
        self._batches, self._rows, self._bytes = [], 0, 0
        return taken
