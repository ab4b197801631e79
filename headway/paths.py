"""Paths given by users and files, which may be invalid; files that appear only when they are complete."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

from headway.errors import OutputError

_ABSENT = (errno.ENOENT, errno.ENOTDIR)


def unusable(path: Path | str) -> str:
    """Return why the system cannot have a file at this path, or an empty text; a missing file is no reason.

    Call it before `Path.exists` and the like, which raise for names that are too long and folders without permission.
    """
    try:
        Path(path).stat()
    except ValueError:
        return "it has a character that no file's name can have"
    except OSError as error:
        return "" if error.errno in _ABSENT else (error.strerror or str(error)).lower()
    return ""


def check_writable(path: Path, what: str, example: str) -> None:
    """Raise an OutputError now, not after a long run, if a report cannot be written there."""
    wrong = unusable(path)
    if wrong:
        raise OutputError(f"{what}: '{path}' cannot be written: {wrong}")
    if path.is_dir():
        raise OutputError(f"{what}: '{path}' is a directory; expected a file such as {example}")
    if not path.parent.is_dir():
        raise OutputError(f"{what}: the folder '{path.parent}' for '{path.name}' does not exist")
    if not os.access(path if _is_special(path) else path.parent, os.W_OK):
        raise OutputError(f"{what}: '{path}' cannot be written: no permission")


@contextlib.contextmanager
def whole(path: Path, what: str) -> Iterator[Path]:
    """Yield a partial file to write to, which is renamed to `path` only when the body succeeds.

    A device or a pipe is written to directly. An OSError becomes an OutputError that begins with `what`.
    """
    partial = path if _is_special(path) else path.parent / f".{path.name}.{secrets.token_hex(4)}.partial"
    try:
        yield partial
        if partial != path:
            partial.replace(path)
    except BaseException as error:
        if partial != path:
            with contextlib.suppress(OSError):
                partial.unlink()
        if isinstance(error, OSError):
            raise OutputError(f"{what}: '{path}' cannot be written: {error.strerror or error}") from error
        raise


def _is_special(path: Path) -> bool:
    """Whether it is a device or a pipe, which a rename would replace."""
    return path.exists() and not path.is_file()
