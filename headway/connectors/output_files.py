"""Files and directories as outputs: what appears is complete, and what is not yet is not mistaken for it.

Small batches are gathered, text is written line by line, and a path that ends in "/" gets one whole file for every
micro-batch.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import secrets
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from headway.connectors.protocol import PipeClosedError, SinkFactory, SinkRequest, SourceFactory, Writer
from headway.connectors.registry import (
    check_keys,
    find_path,
    permit_path,
    register_sink,
    register_source,
    sink_suffixes,
)
from headway.errors import OutputError, choices, within
from headway.plugins import Registry
from headway.storage.filesystems import is_uri
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
            while not self._create():
                self.file.close()  # another process took it for abandoned before it was locked

    def _create(self) -> bool:
        self._partial = self.path.parent / f".{self.path.name}.{secrets.token_hex(4)}.partial"
        self.file: BinaryIO = self._partial.open("xb")
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(self.file, fcntl.LOCK_EX)
        return os.fstat(self.file.fileno()).st_nlink > 0

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

    def close(self) -> None:
        """Give the file its final name, once."""
        if self._placed:
            return
        self.prepare()
        with self.guard():
            self._partial.replace(self.path)
        self._placed = True
        self._unlock()

    def abort(self) -> None:
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
    with contextlib.suppress(OSError), contextlib.ExitStack() as opened:
        for entry in os.scandir(target.parent):
            if own.fullmatch(entry.name):
                with contextlib.suppress(OSError):
                    handle = os.open(entry.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
                    opened.callback(os.close, handle)
                    if is_abandoned(handle):
                        Path(entry.path).unlink()


class ImmediateSink:
    """A sink that writes at once: nothing remains to be completed, and nothing can be taken back."""

    def prepare(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""

    def abort(self) -> None:
        """Do nothing."""


class StandardOutput(ImmediateSink):
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
            # Python flushes standard output once more at exit; without this it would complain about the pipe again.
            with contextlib.suppress(OSError, ValueError):
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, self._stream.fileno())
                os.close(nowhere)
            raise PipeClosedError(f"{self.who}: standard output was closed by its reader") from None
        except OSError as error:
            raise OutputError(f"{self.who}: standard output cannot be written: {error}") from error


class TextSink:
    """A file, or with "-" standard output, of one line per tuple. A subclass renders the lines."""

    def __init__(self, request: SinkRequest, head: bytes = b"") -> None:
        """Open it, and write what comes before the first tuple."""
        self.schema = request.schema.to_arrow()
        dash = str(request.settings) == "-"
        target = StandardOutput(request.who) if dash else PartialFile(request)
        self._target, self.prepare, self.close, self.abort = target, target.prepare, target.close, target.abort
        if head:
            self._target.write(head)

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
        batches, rows = self._batches, self._rows
        self._batches, self._rows, self._bytes = [], 0, 0
        if batches and rows:
            self.save(batches)


class BatchesSink(GatheringSink):
    """Writes every micro-batch by itself, so that writing it again after a crash replaces it.

    An engine with micro-batches calls `begin` before `write`. Without `begin` tuples are gathered, and what is gathered
    is a micro-batch of this run.
    """

    def __init__(self) -> None:
        super().__init__()
        self._unit, self._batch = f"run-{secrets.token_hex(4)}", -1
        self.begun = False

    def save_as(self, batches: list[pa.RecordBatch], unit: str, batch: int) -> None:
        """Write a micro-batch under its name."""
        raise NotImplementedError

    def begin(self, unit: str, batch: int) -> None:
        """Say which micro-batch is written next."""
        self._unit, self._batch, self.begun = unit, batch, True

    def write(self, batch: pa.RecordBatch) -> None:
        """Write a micro-batch, or gather."""
        if self.begun:
            self.save_as([batch], self._unit, self._batch)
        else:
            super().write(batch)

    def save(self, batches: list[pa.RecordBatch]) -> None:
        """Write what is gathered as a micro-batch of this run."""
        self._batch += 1
        self.save_as(batches, self._unit, self._batch)

    def close(self) -> None:
        """Write what is gathered."""
        self.flush()

    def abort(self) -> None:
        """Leave what is written, and drop what is gathered."""
        self._batches = []


class DirectorySink(BatchesSink):
    """Writes files into a directory, each complete when it appears; files of other runs stay.

    A file is named by unit and batch. Without micro-batches `abort` takes this run's files away again.
    """

    def __init__(self, request: SinkRequest, path: str | Path, format_: str) -> None:
        """Make the directory if its parent exists; raises OutputError if that fails."""
        super().__init__()
        self._request, self._format = request, format_
        who = request.who
        if is_uri(str(path)):
            raise OutputError(
                f"{who}: '{path}' is no directory of this machine; {{spark: {{format, path}}}} writes there"
            )
        self._folder = find_path(request, path)
        if self._folder.exists() and not self._folder.is_dir():
            raise OutputError(f"{who}: '{self._folder}' is a file; expected a directory")
        try:
            self._folder.mkdir(exist_ok=True)
        except FileNotFoundError:
            raise OutputError(f"{who}: the folder '{self._folder.parent}' does not exist") from None
        except OSError as error:
            raise OutputError(f"{who}: '{self._folder}' cannot be made: {error.strerror or error}") from error
        self._part = 0
        self._written: list[Path] = []

    def begin(self, unit: str, batch: int) -> None:
        """Name the file of what is written next; an earlier one of this name is replaced."""
        super().begin(unit, batch)
        self._part = 0

    def prepare(self) -> None:
        """Write what is gathered."""
        self.flush()

    def close(self) -> None:
        """Write what is gathered, and keep it."""
        self.flush()
        self._written = []

    def abort(self) -> None:
        """Delete the files of a run without micro-batches; a run with micro-batches can continue with its files."""
        super().abort()
        for path in self._written:
            with contextlib.suppress(OSError):
                path.unlink()

    def save_as(self, batches: list[pa.RecordBatch], unit: str, batch: int) -> None:
        """Write a file."""
        more = f"_{self._part}" if self._part else ""  # sorts behind the first
        path = (self._folder / f"{unit}-{batch:010d}{more}.{self._format}").absolute()
        if self.begun:
            self._part += 1
        else:
            self._written.append(path)  # known before it is there
        writer = _formats[self._format].make(SinkRequest(self._request.name, self._request.schema, path))
        try:
            for one in batches:
                writer.write(one)
            writer.close()
        except BaseException:
            writer.abort()
            raise


_formats = Registry[SinkFactory]("format", OutputError)


def register_files(kind: str, source: SourceFactory, sink: SinkFactory) -> None:
    """Make files of a kind, by suffix, a source and a sink, and directories of them a sink."""

    def open_sink(request: SinkRequest) -> Writer:
        path = request.settings
        if isinstance(path, str) and path.endswith("/"):
            return DirectorySink(request, path, kind)
        return sink(request)

    _formats.register(kind, sink)
    register_source(kind, source, (f".{kind}",), permit_path)
    register_sink(kind, open_sink, (f".{kind}",), permit_path)


def _open_directory(request: SinkRequest) -> Writer:
    settings, who = request.settings, f"{request.who}: directory"
    if isinstance(settings, str | Path):
        settings = {"path": settings}
    if not isinstance(settings, Mapping):
        raise OutputError(f"{who} expects a path or {{path, format}}, not {settings!r}")
    settings = check_keys(settings, ("path", "format"), request.who, "directory", OutputError)
    path, format_ = settings.get("path"), settings.get("format", "parquet")
    if not isinstance(path, str | Path) or not str(path):
        raise OutputError(f"{who}: expected a path, not {path!r}")
    with within(who, OutputError):
        known = _formats[str(format_)].name
    return DirectorySink(request, path, known)


def _permit(request: SinkRequest) -> None:
    settings = request.settings
    path = settings.get("path") if isinstance(settings, Mapping) else settings
    if isinstance(path, str | Path):
        request.trust.check_path(path, request.base, f"{request.who}: sink: directory", OutputError, write=True)


register_sink("directory", _open_directory, permit=_permit)
