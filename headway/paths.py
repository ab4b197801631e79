"""Paths as people and files give them, which may be none at all."""

from __future__ import annotations

import errno
from pathlib import Path

_ABSENT = (errno.ENOENT, errno.ENOTDIR)


def unusable(path: Path | str) -> str:
    """Return why the system cannot have a file at this path, or an empty text; that there is none (yet) is no reason.

    To be asked before `Path.exists` and its like: they raise for names that are too long and folders that are closed.
    """
    try:
        Path(path).stat()
    except ValueError:
        return "it has a character that no file's name can have"
    except OSError as error:
        return "" if error.errno in _ABSENT else (error.strerror or str(error)).lower()
    return ""
