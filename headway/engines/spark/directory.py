"""Who may use a state directory, whether it is whole, and whether it belongs to these inputs.

All of that is settled before anything else happens with it, and before Spark starts.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from headway.connectors.base import Reader
from headway.connectors.identity import check_input
from headway.engines.base import RunSettings
from headway.engines.spark.verifying import PLAN, Found, verify
from headway.errors import RunError
from headway.network import Source
from headway.storage.filesystems import FAILURES, locate, reason
from headway.storage.temporary import clean_temporary, make_temporary, remove_temporary


class Directory:
    """A state directory that is locked for this run. `found` is what an earlier run has left, verified."""

    def __init__(self, folder: str, kept: bool) -> None:
        """Make the directory if need be, lock it and verify it; a RunError if it is in use or not whole.

        `kept` says that it outlives the run.
        """
        self.folder = folder
        self.kept = kept
        self.place = locate(folder)
        self._lock: Any = None
        try:
            try:
                self.place.make(["checkpoints", "letters"], kept)
                self._acquire()
                self._close_to_others()
            except FAILURES as error:
                raise RunError(
                    f"cannot use the state '{folder}': {reason(error)}; give a directory to write to"
                ) from error
            self.found: Found | None = verify(self.place)
        except BaseException:
            self.release()
            raise

    def _acquire(self) -> None:
        if not self.place.local:
            return
        handle = os.open(Path(self.place.base, "lock"), os.O_RDWR | os.O_CREAT, 0o600)
        self._lock = os.fdopen(handle, "a")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self.release()
            raise RunError(
                f"the state '{self.folder}' is in use by another run; wait for it, or give another"
            ) from None

    def _close_to_others(self) -> None:
        """Let nobody else into a new state, also one in a directory that was there; an old one stays as it is."""
        if self.place.local and not Path(self.place.base, PLAN).exists():
            path = Path(self.place.base)
            found = path.stat()
            if found.st_uid == os.geteuid() and stat.S_IMODE(found.st_mode) & 0o077:
                with contextlib.suppress(OSError):  # a file system without permissions
                    path.chmod(0o700)

    def release(self) -> None:
        """Let others use the directory."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None


def open_directory(
    sources: Sequence[Source], readers: Sequence[Reader], settings: RunSettings, stack: contextlib.ExitStack
) -> Directory:
    """Open the state directory of a run, or a temporary one; `stack` closes it.

    Raises an InputError for an input that is not the one which a saved run has read.
    """
    clean_temporary()
    folder = settings.state
    if folder is None:
        folder = make_temporary()
        stack.callback(remove_temporary, folder)
    directory = Directory(folder, settings.state is not None)
    stack.callback(directory.release)
    found = directory.found
    if found is not None and found.commit is not None:
        for source, reader in zip(sources, readers, strict=True):
            check_input(source.name, reader, found.commit.inputs.get(source.name), found.ended)
    return directory
