"""Files as outputs: they appear only when complete, small batches are gathered, and text is written line by line."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import secrets
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from headway.connectors.protocol import PipeClosedError, SinkRequest
from headway.connectors.registry import find_path, sink_suffixes
from headway.errors import OutputError, choices
from headway.storage.temporary import is_abandoned

GROUP_ROWS = 1 << 17
GROUP_BYTES = 1 << 26
"""As many tuples or bytes as a file or a row group should have."""

SLICE = 1 << 16
"""Tuples that are turned into text at a time."""


class PartialFile:
    """A file under a temporary name beside its target, renamed when it is complete.

    So a crashed run never leaves a file that looks like a result, and an old result stays until the new one is whole.
    Its writer holds a lock on it. What a killed process leaves is not locked, and is removed when the same target is
    written again.
    """

    def __init__(self, request: SinkRequest) -> None:
        """Create the temporary file; raises OutputError if the folder is missing or not writable."""
        self.who = request.who
        self.path = find_path(request, request.settings)
        folder = self.path.parent
        if self.path.is_dir():
            raise OutputError(f"{self.who}: '{self.path}' is a directory; expected a file ({choices(sink_suffixes())})")
        if not folder.is_dir():
            raise OutputError(f"{self.who}: the folder '{folder}' for '{self.path.name}' does not exist")
        self._placed = False
        self._lock = -1
        _remove_dead(self.path)
        with self.guard():
            self._create()

    def _create(self) -> None:
        while True:
            self._partial = self.path.parent / f".{self.path.name}.{secrets.token_hex(4)}.partial"
            self.file: BinaryIO = self._partial.open("xb")
            with contextlib.suppress(OSError):  # a file system without locks
                fcntl.flock(self.file, fcntl.LOCK_EX)
            if os.fstat(self.file.fileno()).st_nlink:
                return
            self.file.close()  # another process took it for abandoned before it was locked

    def write(self, data: bytes | memoryview) -> None:
        """Append bytes; raises OutputError, for instance when the disk is full."""
        with self.guard():
            self.file.write(data)

    def prepare(self) -> None:
        """Write everything to the disk; only the final name is missing then."""
        if self.file.closed:
            return
        with self.guard():
            if self.path.is_dir():
                raise IsADirectoryError(21, "it has become a directory")
            self.file.flush()
            os.fsync(self.file.fileno())
            self._lock = os.dup(self.file.fileno())  # it stays locked until it has its name
            self.file.close()

    def complete(self) -> None:
        """Give the file its final name, once."""
        if self._placed:
            return
        self.prepare()
        with self.guard():
            self._partial.replace(self.path)
        self._placed = True
        self._unlock()

    def remove(self) -> None:
        """Give up the file; does nothing once it is complete."""
        if self._placed:
            return
        with contextlib.suppress(OSError, ValueError):
            self.file.close()
        with contextlib.suppress(OSError):
            self._partial.unlink()
        self._unlock()

    def _unlock(self) -> None:
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    @contextlib.contextmanager
    def guard(self) -> Iterator[None]:
        """Turn a failing system call into an OutputError."""
        try:
            yield
        except (OSError, pa.ArrowException, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise OutputError(f"{self.who}: '{self.path}' cannot be written: {reason}") from error


def _remove_dead(target: Path) -> None:
    """Remove partial files of a target that killed processes of this user have left."""
    own = re.compile(rf"\.{re.escape(target.name)}\.[0-9a-f]{{8}}\.partial")
    with contextlib.suppress(OSError):
        for entry in os.scandir(target.parent):
            if own.fullmatch(entry.name):
                with contextlib.suppress(OSError):
                    _remove_unheld(entry.path)


def _remove_unheld(path: str) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        if is_abandoned(handle):
            Path(path).unlink()
    finally:
        os.close(handle)


class StandardOutput:
    """Standard output, flushed with every write. A reader that has gone away raises PipeClosedError."""

    def __init__(self, who: str) -> None:
        self.who = who
        self._stream = sys.stdout

    def write(self, data: bytes | memoryview) -> None:
        """Write bytes and flush."""
        try:
            self._stream.flush()
            self._stream.buffer.write(data)
            self._stream.buffer.flush()
        except BrokenPipeError:
            self._silence()
            raise PipeClosedError(f"{self.who}: standard output was closed by its reader") from None
        except OSError as error:
            raise OutputError(f"{self.who}: standard output cannot be written: {error}") from error

    def prepare(self) -> None:
        """Do nothing: all is flushed."""

    def complete(self) -> None:
        """Do nothing: all is flushed."""

    def remove(self) -> None:
        """Do nothing: what is written cannot be taken back."""

    def _silence(self) -> None:
        # Python flushes standard output once more at exit; without this it would complain about the pipe again.
        with contextlib.suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)


class TextSink:
    """A file, or with "-" standard output, of one line per tuple. A subclass renders the lines."""

    def __init__(self, request: SinkRequest) -> None:
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
        """Write all lines to the disk."""
        self._target.prepare()

    def close(self) -> None:
        """Put the file in its place."""
        self._target.complete()

    def abort(self) -> None:
        """Give up the file."""
        self._target.remove()


class ImmediateSink:
    """A sink that writes at once: `close` has nothing to complete, `abort` nothing to take back."""

    def close(self) -> None:
        """Do nothing."""

    def abort(self) -> None:
        """Do nothing."""


class GatheringSink:
    """Gathers small batches until there is enough of them for a file or a row group. Subclasses save them."""

    def __init__(self) -> None:
        self._batches: list[pa.RecordBatch] = []
        self._rows = self._bytes = 0

    def save(self, batches: list[pa.RecordBatch]) -> None:
        """Write batches that hold at least one tuple."""
        raise NotImplementedError

    def write(self, batch: pa.RecordBatch) -> None:
        """Gather the batch, and save when there is enough."""
        self._batches.append(batch)
        self._rows += batch.num_rows
        self._bytes += batch.nbytes
        if self._rows >= GROUP_ROWS or self._bytes >= GROUP_BYTES:
            self.flush()

    def flush(self) -> None:
        """Save what is gathered."""
        batches = self._batches if self._rows else []
        self._batches, self._rows, self._bytes = [], 0, 0
        if batches:
            self.save(batches)
