"""Files as inputs: opening them, and which one was read how far, so that a run does not resume with another file.

A file that is read from its beginning is identified by the checksum of the bytes read so far. It may have grown since:
what was read is still there. Once it was read to its end it may not grow: its source has ended, and a last row without
a line break would be a different row now. A file with random access (Parquet) is identified by its size and by its
first and last bytes, where it says what it holds.
"""

from __future__ import annotations

import stat
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from headway.connectors.protocol import Identity, SourceRequest, identify
from headway.connectors.registry import find_path, source_suffixes
from headway.errors import InputError, choices
from headway.storage.checked import checksum

_EDGE = 1 << 16
_BLOCK = 1 << 20


def input_path(request: SourceRequest) -> Path:
    """Return the path of a file to read, or raise InputError if there is no such file."""
    path = find_path(request, request.settings)
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


class TrackedFile:
    """A file that is read from its beginning, with the checksum of what was read. Reads like a binary file."""

    def __init__(self, file: BinaryIO, path: Path) -> None:
        self._file, self._path = file, path
        self._read, self._crc = 0, 0
        self._end = False
        self.broken_off = False
        """Whether the last record has no line break: with more bytes it would be another record."""

    def read(self, size: int) -> bytes:
        """Return the next bytes, at most `size`; none at the end, and none after that, also if the file grows."""
        return b"" if self._end else self._note(self._file.read(size))

    def read1(self, size: int) -> bytes:
        """Return the next bytes that are there; none at the end, and none after that."""
        return b"" if self._end else self._note(self._file.read1(size))  # type: ignore[attr-defined]

    def _note(self, data: bytes) -> bytes:
        self._end = not data
        self._crc = checksum(data, self._crc)
        self._read += len(data)
        return data

    def identity(self) -> tuple[Path, Identity] | None:
        """Return what was read by now; None for what is no regular file."""
        size = _size(self._path)
        return None if size is None else (self._path, Identity(size, self._read, self._crc, 0, False, self.broken_off))

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def identify_whole(path: Path) -> Identity | None:
    """Return the identity of a file that is read in places; None if it is gone or no regular file."""
    size = _size(path)
    if size is None:
        return None
    with path.open("rb") as file:
        head = checksum(file.read(_EDGE))
        file.seek(max(0, size - _EDGE))
        return Identity(size, size, 0, checksum(file.read(_EDGE), head), True)


def check_input(source: str, reader: object, known: Any, ended: bool) -> None:
    """Raise an InputError that names the file if an input is not the one that the saved run has read.

    `known` is what `describe` returned then; with `ended` the saved run has read all inputs to their ends.
    """
    found = identify(reader)
    if known is None or found is None:
        return  # no file, then or now: a generator, a table, a pipe
    path, now = found
    why = _difference(path, now, Identity(*known), ended)
    if why is not None:
        raise InputError(
            f"source '{source}': '{path}' is not the file that the saved run has read: {why}; give that file, or "
            "another --state"
        )


def describe(readers: Mapping[str, object], known: Mapping[str, Any], ended: Collection[str] = ()) -> dict[str, Any]:
    """Return what is known of each source that is a file, as plain JSON values, where that is more than `known`.

    `ended` names the sources that have ended. A run that resumes reads a file from its beginning again, and knows less
    than before until it is where it was.
    """
    described = {}
    for name, reader in readers.items():
        found = identify(reader)
        if found is not None:
            now = found[1]._replace(ended=bool(found[1].ended) or name in ended)
            then = Identity(*known[name]) if name in known else None
            if then is None or (now.read, now.ended) > (then.read, bool(then.ended)):
                described[name] = list(now)
    return described


def _difference(path: Path, now: Identity, then: Identity, ended: bool) -> str | None:
    if now.whole or then.whole:
        same = (now.size, now.ends, now.whole) == (then.size, then.ends, then.whole)
        return None if same else "its size, its first or its last bytes are others"
    if now.size < then.read:
        return f"it has {now.size} bytes, and {then.read} were read"
    # A state that does not say whether its input had ended may have taken what it had then for all.
    ended = ended or (then.read >= then.size if then.ended is None else then.ended)
    if ended and now.size != then.read:
        return "it has grown since it was read to its end"
    crc, left = 0, then.read
    with path.open("rb") as file:
        while left > 0 and (data := file.read(min(_BLOCK, left))):
            crc, left = checksum(data, crc), left - len(data)
    return None if crc == then.crc else f"its first {then.read} bytes are others"


def _size(path: Path) -> int | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_size if stat.S_ISREG(found.st_mode) else None
