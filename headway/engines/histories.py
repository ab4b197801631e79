"""What connection points keep, as far as engines do not differ."""

from __future__ import annotations

import fcntl
import logging
import os
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pyarrow as pa

from headway.checking import CheckedNetwork
from headway.engines.alteration import History as Wanted
from headway.errors import HeadwayError, RunError
from headway.history import History, Kept, Plan, Writers
from headway.history.manifest import forget, open_manifest
from headway.living.since import ALL, Since
from headway.network import Point
from headway.storage.filesystems import FAILURES, Place, locate, reason
from headway.storage.temporary import make_temporary, remove_temporary
from headway.trains import NOTHING

_LOCK = ".headway-lock"
_log = logging.getLogger("headway")


def kept_of(checked: CheckedNetwork, point: Point) -> Kept:
    """Return what a point keeps."""
    keep = point.keep.tuples if point.keep.tuples is not None else point.keep.span
    return Kept(checked.arcs[checked.points[point.name]], point.key, point.time, keep)


class OpenHistories:
    """The histories of a run's points. Used by the scheduler thread, except where it says otherwise."""

    def __init__(self, folder: str | None) -> None:
        """Keep them in a folder, by default in a temporary one."""
        self._folder = folder
        self._temporary: str | None = None
        self._writers: Writers | None = None
        self._open: dict[str, History] = {}
        self._turns: Counter[str] = Counter()
        self._lock: int | None = None
        if folder is not None and "://" not in folder:
            self._lock = hold_folder(Path(folder))

    def reopen(self, checked: CheckedNetwork, anew: Collection[str] = ()) -> frozenset[str]:
        """Have the histories of a network's points; those in `anew` begin anew. Return those that were opened."""
        wanted = {point.name: point for point in checked.network.points if point.data is None}
        for name in [name for name in self._open if name not in wanted or name in anew]:
            self._open.pop(name).close()
            if self._folder is None:  # what passes meanwhile is missing: if it comes back, it begins anew
                self._turns[name] += 1
        opened = set()
        for name, point in wanted.items():
            kept = kept_of(checked, point)
            if name not in self._open:
                self._open[name] = self._make(name, kept, name in anew)
                opened.add(name)
            elif self._open[name].kept.keep != kept.keep:
                self._open[name].rekeep(kept.keep)
        return frozenset(opened)

    @property
    def issued(self) -> int:
        """The last arrival number that a history has: those of this run come after it."""
        return max([history.edge.number for history in self._open.values()], default=NOTHING)

    def _make(self, name: str, kept: Kept, anew: bool) -> History:
        if self._writers is None:
            self._writers = Writers()
        if self._folder is None and self._temporary is None:
            self._temporary = make_temporary()
        place = self._place(name)
        if anew and self._folder is not None:
            forget(place, kept, True)
        return History(place, kept, self._writers, sync=self._folder is not None)

    def _place(self, name: str) -> Place:
        name, turn = name.replace("/", "."), self._turns[name]
        return locate(str(Path(self._folder or self._temporary or "", f"{name}.{turn}" if turn else name)))

    def check(self, checked: CheckedNetwork, anew: Collection[str] = ()) -> None:
        """Raise a RunError if the history of a point that is new could not be opened, or begin anew. Thread-safe."""
        for name in anew if self._folder is not None else ():
            if name in self._open and self._open[name].read_from:
                raise RunError(f"point '{name}': its history is being read, and cannot begin anew now; try again later")
        for point in checked.network.points:
            if point.data is None and point.name not in self._open and point.name not in anew and self._folder:
                place = self._place(point.name)
                try:
                    place.make([""], False)
                except FAILURES as error:
                    raise RunError(f"the history '{place.root}' cannot be opened: {reason(error)}") from error
                open_manifest(place, kept_of(checked, point))

    def begins(self, wanted: Wanted, seam: int) -> int:
        """Return from which arrival number on a box reads; raise a RunError if that is not kept any more."""
        history, since = self.of(wanted.point), wanted.since
        found = history.first_since(_limit(since), seam)
        if not found.complete and since is not None and since != ALL:
            oldest = "nothing" if found.time is None else f"what is not older than {history.kept.shown(found.time)}"
            raise RunError(
                f"point '{wanted.point}' does not keep so much: since {since} needs older tuples than there are; it "
                f"has {oldest}; ask for less, or for all that there is (since: all)"
            )
        return found.number

    def table(self, point: str) -> pa.Table:
        """Return all that a point keeps. Thread-safe."""
        history = self.of(point)
        schema = history.kept.schema.to_arrow()
        return pa.Table.from_batches([train.to_batch(schema) for train in history.read()], schema=schema)

    def tables(self, points: Collection[str]) -> dict[str, pa.Table]:
        """Return what some points keep, without those whose histories have failed."""
        found = {}
        for name in points:
            try:
                found[name] = self.table(name)
            except HeadwayError as error:
                _log.error("%s", error)
        return found

    def plan(self, point: str, since: Since | None, key: object) -> Plan:
        """Return what reading history would take. Thread-safe."""
        history = self.of(point)
        return history.plan(key, history.first_since(_limit(since)).number - 1)

    def failure(self, point: str) -> RunError | None:
        """Return why the history of a point has failed, if it has. Thread-safe."""
        raise NotImplementedError

    def of(self, point: str) -> History:
        """Return the history of a point; raises why it has failed. Thread-safe."""
        if (failed := self.failure(point)) is not None:
            raise failed
        return self._open[point]

    def summary(self) -> dict[str, Any]:
        """Return the summary of what is kept; empty without points."""
        found = {}
        for name, history in self._open.items():
            files, failed = history.files, self.failure(name)
            found[name] = {
                "tuples": sum([file.rows for file in files]) + history.unwritten,
                "files": len(files),
                "bytes": sum([file.bytes for file in files]),
                "failed": None if failed is None else str(failed),
            }
        return {"points": found} if found else {}

    def close(self) -> None:
        """Write what is in memory, unless it is temporary, and stop."""
        for history in self._open.values():
            try:
                if self._folder is not None:
                    history.close()
            except HeadwayError as error:
                _log.error("%s", error)
        if self._writers is not None:
            self._writers.close()
        if self._temporary is not None:
            remove_temporary(self._temporary)
        if self._lock is not None:
            os.close(self._lock)


def hold_folder(folder: Path) -> int:
    """Hold a folder for this run; return the lock, which is free once it is closed or the process is gone.

    Raises a RunError if another run holds it.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        what = "is not a folder" if isinstance(error, FileExistsError | NotADirectoryError) else str(error.strerror)
        raise RunError(f"history: '{folder}' {what}") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(lock)
        raise RunError(f"history: '{folder}' is in use by another run; give each its own folder") from error
    return lock


def _limit(since: Since | None) -> object:
    """Return where history begins, as `History.first_since` takes it."""
    if since is None:
        return None
    return since.back if since.back is not None else since.moment
