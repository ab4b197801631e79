"""Where durable files are kept: a directory on this machine, or on any file system that Arrow can open.

A file is either complete under its name or does not exist. On local disks and HDFS that takes a temporary name and a
rename; an object store shows an object only when its upload is complete. On local disks only this user may read the
files.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote, urlsplit, urlunsplit

import pyarrow as pa
from pyarrow import fs

from headway.errors import InputError

TEMPORARY = ".tmp"
"""The suffix of a file that is not complete yet."""

FAILURES = (OSError, pa.ArrowException)
"""The exceptions that file systems raise."""

_ALIASES = {"s3a": "s3", "s3n": "s3"}
_OBJECT_STORES = {"s3", "gs", "gcs"}
_THREADS = 16
"""Concurrent requests to a remote file system: they wait for the network, not for a processor."""

_A = TypeVar("_A")
_B = TypeVar("_B")


class Stat(NamedTuple):
    """Distinguishes one version of a file from another."""

    size: int
    modified: int
    identity: int


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """A directory. Names inside it are relative and use slashes.

    `root` is the name of the directory for other processes. Methods raise what the file system raises (FAILURES).
    """

    root: str
    filesystem: Any
    base: str
    local: bool
    renames: bool

    def name(self, relative: str) -> str:
        """Return a file's name for other processes: a path, or a URI with the settings of this one."""
        if self.local:
            return f"{self.root}/{relative}"
        scheme, host, path, query, _ = urlsplit(self.root)
        return urlunsplit((scheme, host, f"{path.rstrip('/')}/{quote(relative)}", query, ""))

    def make(self, relatives: Sequence[str], sync: bool) -> None:
        """Create directories; an object store has none."""
        if not self.local:
            if self.renames:
                for relative in relatives:
                    self.filesystem.create_dir(f"{self.base}/{relative}", recursive=True)
            return
        base = Path(self.base)
        base.parent.mkdir(parents=True, exist_ok=True)
        for relative in ["", *relatives]:
            _make_private(base, relative)
        if sync:
            for directory in dict.fromkeys([base.parent, base, *((base / relative).parent for relative in relatives)]):
                _sync_directory(directory)

    def write(self, relative: str, data: Any, *, sync: bool, rename: bool = True) -> None:
        """Write a file; with `rename` it appears under its name only when it is complete.

        With `sync` a local file has reached the disk when this returns.
        """
        target = f"{self.base}/{relative}"
        rename = rename and self.renames
        written = target + TEMPORARY if rename else target
        if self.local:
            with open(written, "wb", opener=_private) as file:
                file.write(data)
                if sync:
                    file.flush()
                    os.fsync(file.fileno())
        else:
            with self.filesystem.open_output_stream(written, compression=None) as stream:
                stream.write(data)
        if rename and self.local:
            Path(written).replace(target)
        elif rename:
            self.filesystem.move(written, target)
        if self.local and sync:
            _sync_directory(Path(target).parent)

    def read(self, relative: str) -> bytes:
        """Return a file's bytes."""
        if self.local:
            return (Path(self.base) / relative).read_bytes()
        with self.filesystem.open_input_stream(f"{self.base}/{relative}", compression=None) as stream:
            return bytes(stream.read())

    def files(self, relative: str) -> dict[str, int]:
        """Return the files under a directory, at any depth: their names within this place, and their sizes."""
        selector = fs.FileSelector(f"{self.base}/{relative}", allow_not_found=True, recursive=True)
        skip = len(self.base) + 1
        found = self.filesystem.get_file_info(selector)
        return {info.path[skip:]: info.size for info in found if info.type == fs.FileType.File}

    def delete(self, relatives: Iterable[str]) -> None:
        """Delete files; missing ones are ignored."""
        self.each(self._delete, list(relatives))

    def _delete(self, relative: str) -> None:
        with suppress(FileNotFoundError):
            self.filesystem.delete_file(f"{self.base}/{relative}")

    def each(self, work: Callable[[_A], _B], items: Sequence[_A]) -> list[_B]:
        """Apply `work` to all items: in turn on a local disk, concurrently where each costs a round trip."""
        if self.local or len(items) < 2:
            return [work(item) for item in items]
        with ThreadPoolExecutor(min(_THREADS, len(items))) as pool:
            return list(pool.map(work, items))


def locate(path: str) -> Place:
    """Return the place that a path or a URI names; an InputError if there is no such file system.

    Nothing is created.
    """
    if not path:
        raise InputError("a path of a directory is empty")
    if not is_uri(path):
        full = str(Path(path).absolute())
        return Place(full, fs.LocalFileSystem(), full, True, True)
    scheme, host, inner, query, _ = urlsplit(path)
    scheme = _ALIASES.get(scheme, scheme)
    root = urlunsplit((scheme, host, inner.rstrip("/") or "/", query, ""))
    try:
        filesystem, base = fs.FileSystem.from_uri(root)
    except (*FAILURES, ValueError, ImportError) as error:
        raise InputError(
            f"cannot open '{path}': {reason(error)}; give a local directory, or a file:, hdfs:, s3: or gs: URI"
        ) from error
    base = base.rstrip("/")
    if isinstance(filesystem, fs.LocalFileSystem):
        return Place(base, filesystem, base, True, True)
    return Place(root, filesystem, base, False, scheme not in _OBJECT_STORES)


def is_uri(path: str) -> bool:
    """Return whether a path is a URI; a drive letter is not a scheme."""
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]+:/", path) is not None


def reason(error: BaseException) -> str:
    """Return the first line of a file system's error message."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    lines = str(error).splitlines()
    return lines[0] if lines else type(error).__name__


def stat(name: str) -> Stat:
    """Return the version of a file that `Place.name` named."""
    if not is_uri(name):
        found = os.stat(name)  # noqa: PTH116 - a quarter of the cost of Path.stat, on every read
        return Stat(found.st_size, found.st_mtime_ns, found.st_ino)
    filesystem, path = _find(name)
    info = filesystem.get_file_info(path)
    if info.type != fs.FileType.File:
        raise FileNotFoundError(2, "No such file")
    return Stat(info.size, info.mtime_ns or 0, 0)


def open_input(name: str) -> Any:
    """Open a file that `Place.name` named: a local one as mapped memory, another as one buffer."""
    if not is_uri(name):
        return pa.memory_map(name)
    filesystem, path = _find(name)
    with filesystem.open_input_stream(path, compression=None) as stream:
        return pa.BufferReader(stream.read_buffer())


def _find(name: str) -> tuple[Any, str]:
    scheme, host, path, query, _ = urlsplit(name)
    directory, _, file = path.rpartition("/")
    place = _known(urlunsplit((scheme, host, directory, query, "")))
    return place.filesystem, f"{place.base}/{file}"


@lru_cache(maxsize=256)
def _known(directory: str) -> Place:
    """Return a place. Cached, because finding one may take a network request and readers use the same few."""
    return locate(directory)


def _private(path: str, flags: int) -> int:
    """Open a file; a new one is readable by this user only, because streams may hold private data."""
    return os.open(path, flags, 0o600)


def _make_private(base: Path, relative: str) -> None:
    """Make a directory, and those between it and the base, for this user only; existing ones stay as they are."""
    path = base
    path.mkdir(mode=0o700, exist_ok=True)
    for part in Path(relative).parts:
        path /= part
        path.mkdir(mode=0o700, exist_ok=True)


def _sync_directory(path: Path) -> None:
    """Make the names in a directory durable."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
