"""Files and directories as outputs; a file appears under its final name only when it is complete.

Small batches are combined, text is written line by line, and a path that ends in "/" gets one complete file per
micro-batch. Outputs that roll over are in `headway.connectors.rolling`.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import secrets
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, TextIO

import numpy as np
import pyarrow as pa

from headway.connectors.protocol import PipeClosedError, SinkRequest, SourceFactory, Writer
from headway.connectors.registry import (
    check_keys,
    find_path,
    permit_file,
    permit_path,
    register_sink,
    register_source,
    sink_suffixes,
)
from headway.connectors.rolling import SLICE, Part, Rendered, RollingSink
from headway.errors import OutputError, choices, within
from headway.plugins import Registry
from headway.storage.filesystems import is_uri
from headway.storage.temporary import is_abandoned

GROUP_ROWS = 1 << 17
GROUP_BYTES = 1 << 26
"""A file or row group is written once it has this many tuples or bytes."""


class PartialFile:
    """A file under a temporary name next to its target, renamed when it is complete.

    A crashed run therefore never leaves a file that looks like a result, and an old result stays until the new one is
    complete. The writer locks the file. Unlocked leftovers of killed processes are removed when the same target is
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
        self._take = request.take
        self._lock = -1
        _remove_dead(self.path)
        with self.guard():
            while not self._create():
                self.file.close()  # another process removed it as abandoned before it was locked

    def _create(self) -> bool:
        self._partial = self.path.parent / f".{self.path.name}.{secrets.token_hex(4)}.partial"
        self.file: BinaryIO = self._partial.open("xb")
        with contextlib.suppress(OSError):  # the file system may not support locks
            fcntl.flock(self.file, fcntl.LOCK_EX)
        return os.fstat(self.file.fileno()).st_nlink > 0

    def write(self, data: bytes | memoryview) -> None:
        """Append bytes; raises OutputError, for instance when the disk is full."""
        with self.guard():
            self.file.write(data)

    def prepare(self) -> None:
        """Flush everything to disk; only the rename remains."""
        if self.file.closed:
            return
        with self.guard():
            if self.path.is_dir():
                raise IsADirectoryError(21, "it has become a directory")
            self.file.flush()
            os.fsync(self.file.fileno())
            self._lock = os.dup(self.file.fileno())  # keeps the lock until the rename
            self.file.close()

    def close(self) -> None:
        """Rename the file to its final name; later calls do nothing."""
        if self._placed:
            return
        self.prepare()
        with self.guard():
            if self._take is None:
                self._partial.replace(self.path)
            else:
                self.path = _place(self._partial, self._take)
        self._placed = True
        self._unlock()

    def abort(self) -> None:
        """Discard the file; does nothing once it is complete."""
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
        """Turn failing I/O into an OutputError."""
        try:
            yield
        except (OSError, pa.ArrowException, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise OutputError(f"{self.who}: '{self.path}' cannot be written: {reason}") from error


def _place(partial: Path, take: Callable[[], Path]) -> Path:
    """Give a file the first name that is free, and return it; nothing is ever overwritten."""
    while True:
        path = take()
        try:
            path.hardlink_to(partial)
        except FileExistsError:
            continue
        except OSError:  # a file system without hard links
            if path.exists():
                continue
            return partial.replace(path)
        partial.unlink()
        return path


def _remove_dead(target: Path) -> None:
    """Remove partial files of this target that killed processes of the same user left behind."""
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
    """Base of sinks that write at once: there is nothing to complete and nothing to undo."""

    def prepare(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""

    def abort(self) -> None:
        """Do nothing."""


def silence(stream: TextIO) -> None:
    """Redirect a closed stream to the null device: Python's flush at exit would report once more that it is closed."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


class StandardOutput(ImmediateSink):
    """Standard output, flushed with every write; raises PipeClosedError if the reading process is gone."""

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
            silence(self._stream)
            raise PipeClosedError(f"{self.who}: standard output was closed by its reader") from None
        except OSError as error:
            raise OutputError(f"{self.who}: standard output cannot be written: {error}") from error


class TextSink:
    """A sink with one line of text per tuple, for a file or, with "-", standard output. Subclasses render the lines."""

    def __init__(self, request: SinkRequest, head: bytes = b"") -> None:
        """Open the file and write `head`, which precedes the first tuple."""
        self.schema = request.schema.to_arrow()
        dash = str(request.settings) == "-"
        target = StandardOutput(request.who) if dash else PartialFile(request)
        self._target, self.prepare, self.close, self.abort = target, target.prepare, target.close, target.abort
        self.size = len(head)
        """The bytes written so far."""
        if head:
            self._target.write(head)

    @property
    def path(self) -> Path:
        """Where the file is, once it is closed."""
        assert isinstance(self._target, PartialFile)
        return self._target.path

    def lines(self, batch: pa.RecordBatch) -> pa.Array:
        """Return each tuple as text, including its line break."""
        raise NotImplementedError

    def render(self, batch: pa.RecordBatch) -> Rendered:
        """Return the text of at most SLICE tuples."""
        lines = self.lines(batch)
        _, offsets, data = lines.buffers()
        # The values of a string array are contiguous in memory, so they already are the text to write.
        ends = np.frombuffer(offsets, np.int32)[lines.offset : lines.offset + len(lines) + 1]
        return Rendered(ends, memoryview(data))

    def put(self, rendered: Rendered, start: int, stop: int) -> None:
        """Write some of the rendered tuples."""
        text = rendered.data[rendered.ends[start] : rendered.ends[stop]]
        self._target.write(text)
        self.size += len(text)

    def write(self, batch: pa.RecordBatch) -> None:
        """Write the tuples."""
        for start in range(0, batch.num_rows, SLICE):
            rendered = self.render(batch.slice(start, SLICE))
            self.put(rendered, 0, len(rendered.ends) - 1)


class GatheringSink:
    """Buffers small batches until they fill a file or a row group. Subclasses write them."""

    def __init__(self) -> None:
        self._batches: list[pa.RecordBatch] = []
        self._rows = self._bytes = 0

    def save(self, batches: list[pa.RecordBatch]) -> None:
        """Write buffered batches, which hold at least one tuple."""
        raise NotImplementedError

    def write(self, batch: pa.RecordBatch) -> None:
        """Buffer the batch, and save when there is enough."""
        self._batches.append(batch)
        self._rows += batch.num_rows
        self._bytes += batch.nbytes
        if self._rows >= GROUP_ROWS or self._bytes >= GROUP_BYTES:
            self.flush()

    @property
    def buffered(self) -> int:
        """The bytes in memory."""
        return self._bytes

    def flush(self) -> None:
        """Save what is buffered."""
        batches, rows = self._batches, self._rows
        self._batches, self._rows, self._bytes = [], 0, 0
        if batches and rows:
            self.save(batches)


class BatchesSink(GatheringSink):
    """Writes each micro-batch separately, so that repeating it after a crash replaces it.

    An engine with micro-batches calls `begin` before `write`. Otherwise tuples are buffered, and each saved buffer
    becomes a micro-batch numbered by this run.
    """

    def __init__(self) -> None:
        super().__init__()
        self.unit, self.batch, self.begun = f"run-{secrets.token_hex(4)}", 0, False

    def begin(self, unit: str, batch: int) -> None:
        """Set which micro-batch the next writes belong to."""
        self.unit, self.batch, self.begun = unit, batch, True

    def write(self, batch: pa.RecordBatch) -> None:
        """Write a micro-batch, or buffer the tuples if `begin` was never called."""
        if self.begun:
            self.save([batch])
        else:
            super().write(batch)

    def flush(self) -> None:
        """Save what is buffered as a micro-batch of this run."""
        super().flush()
        if not self.begun:
            self.batch += 1

    def close(self) -> None:
        """Write what is buffered."""
        self.flush()

    def abort(self) -> None:
        """Keep what is written, and drop what is buffered."""
        self._batches = []


def make_folder(request: SinkRequest, path: str | Path) -> Path:
    """Create an output's directory, but not its parent; raises OutputError if that fails."""
    folder = find_path(request, path)
    if folder.exists() and not folder.is_dir():
        raise OutputError(f"{request.who}: '{folder}' is a file; expected a directory")
    try:
        folder.mkdir(exist_ok=True)
    except FileNotFoundError:
        raise OutputError(f"{request.who}: the folder '{folder.parent}' does not exist") from None
    except OSError as error:
        raise OutputError(f"{request.who}: '{folder}' cannot be made: {error.strerror or error}") from error
    return folder


class DirectorySink(BatchesSink):
    """Writes files into a directory, each complete when it appears; files of other runs are kept.

    File names contain unit and batch. Without micro-batches, `abort` deletes this run's files.
    """

    def __init__(self, request: SinkRequest, path: str | Path, format_: str) -> None:
        """Create the directory, but not its parent; raises OutputError if that fails."""
        super().__init__()
        self._request, self._format = request, format_
        who = request.who
        if is_uri(str(path)):
            raise OutputError(
                f"{who}: '{path}' is not a directory on this machine; {{spark: {{format, path}}}} writes there"
            )
        self._folder = make_folder(request, path)
        self._part = 0
        self._written: list[Path] = []

    def begin(self, unit: str, batch: int) -> None:
        """Set the name of the next file; an existing file of that name is replaced."""
        super().begin(unit, batch)
        self._part = 0

    def prepare(self) -> None:
        """Write what is buffered."""
        self.flush()

    def close(self) -> None:
        """Write what is buffered, and keep all files."""
        self.flush()
        self._written = []

    def abort(self) -> None:
        """Delete the files of a run without micro-batches; those of micro-batches stay for a run that continues."""
        super().abort()
        for path in self._written:
            with contextlib.suppress(OSError):
                path.unlink()

    def save(self, batches: list[pa.RecordBatch]) -> None:
        """Write one file."""
        more = f"_{self._part}" if self._part else ""  # sorts after the first file
        path = (self._folder / f"{self.unit}-{self.batch:010d}{more}.{self._format}").absolute()
        if self.begun:
            self._part += 1
        else:
            self._written.append(path)  # recorded first, so that `abort` also finds an incomplete file
        writer = _formats[self._format].make(SinkRequest(self._request.name, self._request.schema, path))
        try:
            for one in batches:
                writer.write(one)
            writer.close()
        except BaseException:
            writer.abort()
            raise


FileFactory = Callable[[SinkRequest], Part]
"""Opens a sink of one file."""
_formats = Registry[FileFactory]("format", OutputError)


def register_files(kind: str, source: SourceFactory, sink: FileFactory) -> None:
    """Register a file format, by suffix, as source and sink, and as a sink that writes a directory of such files."""

    def open_sink(request: SinkRequest) -> Writer:
        path = request.settings
        if isinstance(path, str) and path.endswith("/"):
            return _open_folder(request, path, kind)
        return sink(request) if request.roll is None else _open_parts(request, sink)

    _formats.register(kind, sink)
    register_source(kind, source, (f".{kind}",), permit_path)
    register_sink(kind, open_sink, (f".{kind}",), permit_path, rolls=True)


def _open_parts(request: SinkRequest, sink: FileFactory) -> Writer:
    """Open a sink of parts next to where the single file would be."""
    if str(request.settings) == "-":
        raise OutputError(f"{request.who}: roll: standard output has no parts")
    path = find_path(request, request.settings)
    return RollingSink(request, sink, path.parent, path.stem)


def _open_folder(request: SinkRequest, path: str | Path, format_: str) -> Writer:
    """Open a sink of files in a directory: one for each micro-batch or buffer, or parts if it rolls."""
    if request.roll is None:
        return DirectorySink(request, path, format_)
    folder = make_folder(request, path)
    inner = replace(request, settings=folder / f"part.{format_}", base=None)
    return RollingSink(inner, _formats[format_].make, folder, "part")


def _open_directory(request: SinkRequest) -> Writer:
    settings, who = request.settings, f"{request.who}: directory"
    if isinstance(settings, str | Path):
        settings = {"path": settings}
    if not isinstance(settings, Mapping):
        raise OutputError(f"{who} expects a path or {{path, format}}, not {settings!r}")
    settings = check_keys(settings, ("path", "format"), who, OutputError)
    path, format_ = settings.get("path"), settings.get("format", "parquet")
    if not isinstance(path, str | Path) or not str(path):
        raise OutputError(f"{who}: expected a path, not {path!r}")
    with within(who, OutputError):
        known = _formats[str(format_)].name
    return _open_folder(request, path, known)


def _permit(request: SinkRequest) -> None:
    settings = request.settings
    permit_file(request, settings.get("path") if isinstance(settings, Mapping) else settings, "directory")


register_sink("directory", _open_directory, permit=_permit, rolls=True)
