"""What all files have in common: clear errors on opening, and outputs that appear only when complete."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import secrets
import stat
import sys
from pathlib import Path
from typing import BinaryIO, Self

import pyarrow as pa

from headway.connectors.base import (
    PipeClosedError,
    SinkRequest,
    SourceRequest,
    find_path,
    sink_suffixes,
    source_suffixes,
)
from headway.errors import InputError, OutputError, choices


def input_path(request: SourceRequest) -> Path:
    """Return the path of a file to read, or raise InputError if there is no such file."""
    path = find_path(request.settings, request.who, request.base, InputError)
    suffixes = f"a file ({choices(source_suffixes())})"
    if path.is_dir():
        raise InputError(f"{request.who}: '{path}' is a directory; expected {suffixes}")
    if not path.exists():
        raise InputError(f"{request.who}: there is no file '{path}'; expected {suffixes}")
    return path


def open_input(path: Path, who: str) -> BinaryIO:
    """Open a file to read, or raise InputError."""
    try:
        return path.open("rb")
    except OSError as error:
        raise InputError(f"{who}: '{path}' cannot be read: {error.strerror or error}") from error


_MARKS = {b"\xff\xfe\x00\x00": "UTF-32", b"\x00\x00\xfe\xff": "UTF-32", b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}


def check_encoding(data: bytes, who: str, place: str) -> bytes:
    """Return the first bytes of a text without UTF-8's byte-order mark; another encoding's raises InputError."""
    for mark, encoding in _MARKS.items():
        if data.startswith(mark):
            raise InputError(f"{who}: {place} is in {encoding}, by its byte-order mark; expected UTF-8")
    return data.removeprefix(b"\xef\xbb\xbf")


class PartialFile:
    """A file under a temporary name beside its target, renamed when it is complete.

    So a crashed run never leaves a file that looks like a result, and an old result stays until the new one is whole.
    Whoever writes holds a lock on it. What a process leaves that was killed has none, and goes when somebody writes the
    same target again.
    """

    def __init__(self, request: SinkRequest) -> None:
        """Create the temporary file; raises OutputError if the folder is missing or not writable."""
        self.who = request.who
        self.path = find_path(request.settings, request.who, request.base, OutputError)
        folder = self.path.parent
        if self.path.is_dir():
            raise OutputError(f"{self.who}: '{self.path}' is a directory; expected a file ({choices(sink_suffixes())})")
        if not folder.is_dir():
            raise OutputError(f"{self.who}: the folder '{folder}' for '{self.path.name}' does not exist")
        self._placed = False
        self._lock = -1
        _remove_dead(self.path)
        try:
            self._create()
        except OSError as error:
            raise OutputError(f"{self.who}: '{self.path}' cannot be written: {error.strerror or error}") from error

    def _create(self) -> None:
        while True:
            self._partial = self.path.parent / f".{self.path.name}.{secrets.token_hex(4)}.partial"
            self.file: BinaryIO = self._partial.open("xb")
            with contextlib.suppress(OSError):  # a file system without locks
                fcntl.flock(self.file, fcntl.LOCK_EX)
            if os.fstat(self.file.fileno()).st_nlink:
                return
            self.file.close()  # somebody took it for dead before it was locked

    def write(self, data: bytes | memoryview) -> None:
        """Append bytes; raises OutputError, for instance when the disk is full."""
        with self.guard():
            self.file.write(data)

    def prepare(self) -> None:
        """Bring everything to the disk; only the name is missing then."""
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
        """Put the file in its place; does nothing if that is done."""
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

    def guard(self) -> _Guard:
        """Return a context in which a failing system call becomes an OutputError."""
        return _Guard(self.who, str(self.path))


def _remove_dead(target: Path) -> None:
    """Remove what killed processes of this user have left of a target: what is named so and nobody holds."""
    own = re.compile(rf"\.{re.escape(target.name)}\.[0-9a-f]{{8}}\.partial")
    with contextlib.suppress(OSError):
        for entry in os.scandir(target.parent):
            if own.fullmatch(entry.name):
                _remove_unheld(entry.path)


def _remove_unheld(path: str) -> None:
    with contextlib.suppress(OSError):
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            found = os.fstat(handle)
            if stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid():
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                Path(path).unlink()
        finally:
            os.close(handle)


class StandardOutput:
    """Standard output, flushed with every write. A reader that has gone away raises PipeClosedError."""

    def __init__(self, who: str) -> None:
        """Write to standard output as it is now."""
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


class _Guard:
    def __init__(self, who: str, path: str) -> None:
        self._who, self._path = who, path

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError | pa.ArrowException | ValueError):
            reason = getattr(error, "strerror", None) or error
            raise OutputError(f"{self._who}: '{self._path}' cannot be written: {reason}") from error
