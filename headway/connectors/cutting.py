"""Cut the batches of a source to the sizes that are asked for."""

from __future__ import annotations

import pyarrow as pa

from headway.connectors.base import PENDING_LIMIT, TEXT_LIMIT, Chunk, Malformed
from headway.errors import InputError


class BatchReader:
    """A reader over batches: a subclass gives the next batch, this class cuts it and keeps malformed rows.

    A subclass overrides `next_batch`; it may return an empty batch to be asked again.
    """

    timed = False
    finite = True
    live = False

    def __init__(self, name: str, strict: bool = False) -> None:
        """Keep the source's name for messages; with `strict` a malformed row raises InputError."""
        self.name = name
        self._strict = strict
        self._malformed: list[Malformed] = []
        self._batch: pa.RecordBatch | None = None
        self._at = 0

    def next_batch(self, limit: int) -> pa.RecordBatch | None:
        """Return the next batch, of any size, or None at the end; `limit` says how many tuples are asked for."""
        raise NotImplementedError

    def read(self, limit: int) -> Chunk | None:
        """Return the next tuples, at most `limit`, without copying."""
        batch = self._batch
        while batch is None or self._at >= batch.num_rows:
            if batch is not None and len(self._malformed) >= PENDING_LIMIT:
                return Chunk(batch.slice(0, 0))
            batch = self._batch = self.next_batch(limit)
            self._at = 0
            if batch is None:
                return None
        if self._at == 0 and batch.num_rows <= limit:
            self._batch = None
            return Chunk(batch)
        start = self._at
        self._at = min(start + limit, batch.num_rows)
        return Chunk(batch.slice(start, self._at - start))

    def refuse(self, where: str, text: str, reason: str) -> None:
        """Note a malformed row, or raise InputError if the source is strict."""
        row = Malformed(self.name, where, text[:TEXT_LIMIT], reason)
        if self._strict:
            raise InputError(str(row))
        self._malformed.append(row)

    def malformed(self) -> list[Malformed]:
        """Return the malformed rows met since the last call."""
        rows, self._malformed = self._malformed, []
        return rows

    def close(self) -> None:
        """Release nothing; subclasses that hold a file close it."""
