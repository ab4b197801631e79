"""Input files: opening them, and recording which file was read and how far, so a run does not resume on another file.

A file that is read from its beginning is identified by the checksum of the bytes read so far. It may have grown since,
because those bytes are still there. Once read to its end it must not grow: its source has ended, and a last row without
a line break would become a different row. A file with random access (Parquet) is identified by its size and by its
first and last bytes, which include the metadata.
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
    """Return the path of the input file, or raise InputError if it does not exist."""
    path = find_path(request, request.settings)
    suffixes = f"a file ({choices(source_suffixes())})"
    if path.is_dir():
        raise InputError(f"{request.who}: '{path}' is a directory; expected {suffixes}")
    if not path.exists():
        raise InputError(f"{request.who}: there is no file '{path}'; expected {suffixes}")
    return path


def open_input(path: Path, who: str) -> BinaryIO:
    """Open a file for reading, or raise InputError."""
    try:
        return path.open("rb")
    except OSError as error:
        raise InputError(f"{who}: '{path}' cannot be read: {error.strerror or error}") from error


_MARKS = {b"\xff\xfe\x00\x00": "UTF-32", b"\x00\x00\xfe\xff": "UTF-32", b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}


def check_encoding(data: bytes, who: str, place: str) -> bytes:
    """Strip UTF-8's byte-order mark from the first bytes of a text; raise InputError for that of another encoding."""
    for mark, encoding in _MARKS.items():
        if data.startswith(mark):
            raise InputError(f"{who}: {place} is in {encoding}, by its byte-order mark; expected UTF-8")
    return data.removeprefix(b"\xef\xbb\xbf")


class TrackedFile:
    """A file-like object that reads a file from its beginning and keeps a checksum of what was read."""

    def __init__(self, file: BinaryIO, path: Path) -> None:
        self._file, self._path = file, path
        self._read, self._crc = 0, 0
        self._end = False
        self.broken_off = False
        """Whether the last record has no line break; appended bytes would change it."""

    def read(self, size: int) -> bytes:
        """Return the next bytes, at most `size`; empty at the end, and from then on even if the file grows."""
        return b"" if self._end else self._note(self._file.read(size))

    def read1(self, size: int) -> bytes:
        """Return the bytes that are available; empty at the end, and from then on."""
        return b"" if self._end else self._note(self._file.read1(size))  # type: ignore[attr-defined]

    def _note(self, data: bytes) -> bytes:
        self._end = not data
        self._crc = checksum(data, self._crc)
        self._read += len(data)
        return data

    def identity(self) -> tuple[Path, Identity] | None:
        """Return the identity of what was read so far; None if it is not a regular file."""
        size = _size(self._path)
        return None if size is None else (self._path, Identity(size, self._read, self._crc, 0, False, self.broken_off))

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def identify_whole(path: Path) -> Identity | None:
    """Return the identity of a file with random access; None if it is gone or not a regular file."""
    size = _size(path)
    if size is None:
        return None
    with path.open("rb") as file:
        head = checksum(file.read(_EDGE))
        file.seek(max(0, size - _EDGE))
        return Identity(size, size, 0, checksum(file.read(_EDGE), head), True)


def check_input(source: str, reader: object, known: Any, ended: bool) -> None:
    """Raise an InputError that names the file if an input is not the one that the saved run read.

    `known` is what `describe` returned then; `ended` means that the saved run read all inputs to their ends.
    """
    found = identify(reader)
    if known is None or found is None:
        return  # not a file, then or now: a generator, a table, a pipe
    path, now = found
    why = _difference(path, now, Identity(*known), ended)
    if why is not None:
        raise InputError(
            f"source '{source}': '{path}' is not the file that the saved run has read: {why}; give that file, or "
            "another --state"
        )


def describe(readers: Mapping[str, object], known: Mapping[str, Any], ended: Collection[str] = ()) -> dict[str, Any]:
    """Return the identity of each source that is a file, as plain JSON values, if it covers more than `known`.

    `ended` names the sources that have ended. A resumed run reads a file from its beginning again, so until it has
    caught up, its own record covers less.
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
    # A state without the `ended` flag may have treated what the file held then as all of it.
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
