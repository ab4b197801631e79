"""Temporary folders of runs: for this user only, and cleaned up after runs that were killed.

A folder is marked by a lock that its process holds. When the process is gone, however it ended, the lock is free, and
the next run removes the folder. Other users' folders, links, and folders without a mark are left alone.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
from pathlib import Path

PREFIX = "headway-"
_MARK = ".headway-lock"
_held: dict[str, int] = {}


def make_temporary() -> str:
    """Make a folder that `remove_temporary` removes, or the next run if this process is killed before."""
    folder = tempfile.mkdtemp(prefix=PREFIX)  # for this user only
    handle = os.open(Path(folder, _MARK), os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    _held[folder] = handle
    return folder


def remove_temporary(folder: str) -> None:
    """Remove a folder that `make_temporary` made."""
    shutil.rmtree(folder, ignore_errors=True)
    handle = _held.pop(folder, None)
    if handle is not None:
        os.close(handle)


def clean_temporary() -> list[str]:
    """Remove the folders of this user's runs that were killed; return them.

    Links are not followed: only a real folder of this user, with this user's mark that no process holds, is removed.
    What cannot be removed stays.
    """
    removed: list[str] = []
    with contextlib.suppress(OSError):
        for entry in os.scandir(tempfile.gettempdir()):
            if entry.name.startswith(PREFIX) and entry.path not in _held and _is_dead(entry.path):
                shutil.rmtree(entry.path, ignore_errors=True)  # does not follow links, nor folders that turn into links
                removed.append(entry.path)
    return removed


def _is_dead(folder: str) -> bool:
    """Return whether a folder belongs to a run of this user that has ended."""
    with contextlib.suppress(OSError), contextlib.ExitStack() as opened:
        at = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        opened.callback(os.close, at)
        if os.fstat(at).st_uid == os.geteuid():
            mark = os.open(_MARK, os.O_RDWR | os.O_NOFOLLOW, dir_fd=at)  # raises if missing: not ours, or too new
            opened.callback(os.close, mark)
            return is_abandoned(mark)
    return False


def is_abandoned(handle: int) -> bool:
    """Whether an open file is a regular one of this user's that no process holds; this process holds it from now on."""
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
            return False
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except OSError:
        return False
