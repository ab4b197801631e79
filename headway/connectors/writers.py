"""Text files written line by line from whole batches."""

from __future__ import annotations

import pyarrow as pa

from headway.connectors.base import SinkRequest
from headway.connectors.files import PartialFile, StandardOutput

SLICE = 1 << 16
"""Tuples that are turned into text at a time."""


class TextSink:
    """A file, or with "-" standard output, of one line per tuple. A subclass renders the lines."""

    def __init__(self, request: SinkRequest) -> None:
        """Start the file beside its target."""
        self.schema = request.schema.to_arrow()
        dash = str(request.settings) == "-"
        self._target = StandardOutput(request.who) if dash else PartialFile(request)
        head = self.head()
        if head:
            self._target.write(head)

    def head(self) -> bytes:
        """Return what comes before the first tuple."""
        return b""

    def lines(self, batch: pa.RecordBatch) -> pa.Array:
        """Return a text for each tuple, with its line break."""
        raise NotImplementedError

    def write(self, batch: pa.RecordBatch) -> None:
        """Write the tuples."""
        for start in range(0, batch.num_rows, SLICE):
            lines = self.lines(batch.slice(start, SLICE))
            _, offsets, data = lines.buffers()
            # The lines of a string array lie one after the other in memory: they are the text already.
            bounds = memoryview(offsets).cast("i")[lines.offset : lines.offset + len(lines) + 1]
            self._target.write(memoryview(data)[bounds[0] : bounds[-1]])

    def prepare(self) -> None:
        """Bring all lines to the disk."""
        self._target.prepare()

    def close(self) -> None:
        """Put the file in its place."""
        self._target.complete()

    def abort(self) -> None:
        """Give up the file."""
        self._target.remove()
