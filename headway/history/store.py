"""A history: the tuples that a point keeps, in files and, the newest ones, in memory."""

from __future__ import annotations

import threading
import weakref
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import NamedTuple

from headway.clock import stopwatch
from headway.columns import Column
from headway.durations import Duration
from headway.errors import RunError, raised
from headway.history.coverage import Since, View
from headway.history.files import Layout, merge_files, write_file
from headway.history.footers import Footers
from headway.history.kept import START, Kept, Position, through
from headway.history.keys import Keys
from headway.history.loading import Loaded, load
from headway.history.manifest import MANIFEST, Manifest, open_manifest, write_manifest
from headway.history.plans import Plan
from headway.history.policy import neighbours, uncovered
from headway.history.readers import Reader
from headway.history.records import END, HistoryFile, overlaps, position
from headway.history.tail import Part, Tail, join_parts
from headway.history.writers import Writers
from headway.storage.filesystems import FAILURES, TEMPORARY, Place, locate, reason
from headway.trains import Train


class Pinned(NamedTuple):
    """The files of a history at one moment."""

    files: Sequence[HistoryFile]
    floor: Position
    """The position up to which `keep` covers nothing."""
    rest: Position
    """Where what is in memory begins; END if nothing is."""


Elsewhere = Callable[[Position, Position, int], HistoryFile | None]
"""Writes the tuples from a position to another, so many, as a file under a name of its own; None if it cannot."""


class History:
    """What one point keeps. A context manager that closes.

    `append` is called by one thread at a time; everything else by any thread. Files are written by the threads of
    `writers`, and what they have written survives the end of the process; the rest is lost then, unless `flush` or
    `close` was called.

    Opening removes the files that a killed process left unlisted. It raises a RunError if the place has the history of
    another point, of another version of the format, or a damaged one.
    """

    def __init__(
        self, place: Place | str, kept: Kept, writers: Writers, layout: Layout | None = None, sync: bool = True
    ) -> None:
        self.kept = kept
        self.place = locate(place) if isinstance(place, str) else place
        self.failed: RunError | None = None
        """Why files cannot be written any more, until `flush` succeeds."""
        self.elsewhere: Elsewhere | None = None
        """Writes files to the place; where it cannot, they are written here."""
        self._writers = writers
        self._layout = layout or Layout()
        self._sync = sync
        self._footers = Footers()
        try:
            self.place.make([""], sync)
        except FAILURES as error:
            raise self._blame(error) from error
        self._manifest = open_manifest(self.place, kept)
        if not self._manifest.files:  # files without a manifest are damage, also after a kill before the next one
            try:
                write_manifest(self.place, kept, self._manifest, sync)
            except FAILURES as error:
                raise self._blame(error) from error
        self._tail = Tail(self._manifest.last)
        self._lock = threading.Lock()  # what is held
        self._working = threading.Lock()  # writing files and the manifest
        self._counted = 0
        self._since: int | None = None
        self._used: Counter[str] = Counter()
        self._doomed: set[str] = set()
        self._readers: weakref.WeakSet[Reader] = weakref.WeakSet()

    @property
    def edge(self) -> Position:
        """The position of the last tuple that was appended; START if there is none."""
        return self._tail.edge

    @property
    def durable(self) -> Position:
        """The position of the last tuple in a listed file: what survives a kill."""
        return self._manifest.last

    @property
    def files(self) -> tuple[HistoryFile, ...]:
        """The files, in order."""
        return self._manifest.files

    @property
    def read_from(self) -> bool:
        """Whether readers are open."""
        with self._lock:
            return any(not reader.closed for reader in self._readers)

    @property
    def unwritten(self) -> int:
        """Tuples that are only in memory."""
        return self._tail.rows

    @property
    def behind(self) -> bool:
        """Whether so much waits to be written, over all points, that sources should slow down."""
        return self._writers.behind

    def append(self, train: Train) -> None:
        """Keep a train, all of whose columns can be read. It is only noted; if no memory is left for that, this waits.

        After a restart tuples may come again, from the first tuple of any arrival number on; those that are kept
        already are left out. Raises `failed` when files cannot be written and no memory is left.
        """
        if not len(train.numbers):
            return
        with self._lock:
            failed = self.failed
            if failed is not None and self._tail.bytes > 2 * self._layout.flush:
                raise failed
            size = self._tail.add(train)
            if failed is None:
                self._counted += size
            full = self._tail.bytes >= self._layout.flush
            begins = self._since is None and size > 0
            if begins:
                self._since = stopwatch()
        if failed is not None or not size:
            return
        room = self._writers.take(size)
        if self._writers.inline:
            if full or not room:
                with self._working:
                    self._guarded(self._write)
            return
        if begins:
            self._writers.hold(self)
        if full or not room:
            self._writers.request(self)
        if not room:
            self._writers.wait_for_room(lambda: self.failed is not None)

    def adopt(self, files: Sequence[HistoryFile]) -> None:
        """List files that `write_file` wrote elsewhere to this place, under names that `file_name` gave, in order.

        They come after everything that is kept; those that do not, because work was repeated after a crash, are left
        out. Raises a ValueError if one does so in part, or if tuples wait in memory, and a RunError if the manifest
        cannot be written.
        """
        with self._working:
            last, new = self.edge, list[HistoryFile]()
            if self._tail.parts:
                raise ValueError("flush before adopting files")
            for file in files:
                if file.first > last:
                    new.append(file)
                    last = file.last
                elif file.last > last:
                    raise ValueError(f"file '{file.name}' begins at {file.first}, which is not after {last}")
            try:
                if new:
                    self._commit((*self._manifest.files, *new))
            except FAILURES as error:
                raise self._blame(error) from error
            listed = {file.name for file in self._manifest.files} | self._doomed
            self._delete([file.name for file in files if file not in new and file.name not in listed])
        self._writers.request(self)  # it may merge them

    def cut(self, upto: int) -> None:
        """Forget what comes after an arrival number: what a restart will number anew. For use right after opening.

        Raises a ValueError if something was appended, and a RunError if files cannot be read or written.
        """
        with self._working:
            if self._tail.parts:
                raise ValueError("a history is cut before anything is appended")
            manifest, end = self._manifest, through(upto)
            files = [file for file in manifest.files if file.last <= end]
            across = [file for file in manifest.files if file.first <= end < file.last]
            if len(files) == len(manifest.files):
                return
            name = manifest.name(across[0].first) if across else ""
            try:
                with self._new(name):
                    for file in across:
                        rows = load(self.place, file, self.kept, START, end, footers=self._footers).rows
                        if len(rows):
                            files.append(write_file(self.place, name, self.kept, rows, self._layout, self._sync))
                    self._commit(tuple(files))
            except FAILURES as error:
                raise self._blame(error) from error
            self._tail = Tail(self._manifest.last)

    # Reading

    def read(
        self,
        after: Position | int = START,
        upto: Position | int | None = None,
        key: object = None,
        columns: Sequence[str] | None = None,
        ahead: bool = False,
    ) -> Reader:
        """Return a reader of what is kept now: numbers after `after` and up to `upto`, in the order of arrival.

        `key` is a value of the storage key, `NULL`, or a pair of inclusive bounds, None for an open one. Fields other
        than `columns` stay unread. Iterate over the reader to get trains.
        """
        return self._reader(after, self.edge if upto is None else min(position(upto), self.edge), key, columns, ahead)

    def follow(
        self,
        after: Position | int = START,
        key: object = None,
        columns: Sequence[str] | None = None,
        ahead: bool = True,
    ) -> Reader:
        """Return a reader that goes on with what is appended meanwhile, to catch up with the live edge."""
        return self._reader(after, None, key, columns, ahead)

    def _reader(
        self, after: Position | int, upto: Position | None, key: object, columns: Sequence[str] | None, ahead: bool
    ) -> Reader:
        keys = Keys.parse(key, self.kept.key_type)
        wanted = None if columns is None else frozenset(self.kept.schema.index(name) for name in columns)
        with self._view() as view:
            # Made within the view, so that nothing that it may need is deleted before it is known.
            reader = Reader(self, max(position(after), view.floor()), upto, keys, wanted, ahead)
            with self._lock:
                self._readers.add(reader)
        return reader

    def first_since(self, since: object = None, upto: int | None = None) -> Since:
        """Return from which arrival number on history is to be read for a seam at `upto` (default: now).

        `since` is a Duration before the largest time up to there, a moment (a value of the time field), or None for all
        that is kept. If it reaches back further than what is kept, that is the beginning, and not `complete`.
        """
        with self._view() as view:
            return view.since(since, self.edge.number if upto is None else upto)

    def plan(
        self,
        key: object = None,
        after: Position | int = START,
        upto: Position | int | None = None,
        columns: Sequence[str] | None = None,
    ) -> Plan:
        """Return what a read would take, from statistics; for keys the footers of some files are read."""
        schema, keys = self.kept.schema, Keys.parse(key, self.kept.key_type)
        start, end = position(after), END if upto is None else position(upto)
        wanted = set(range(len(schema)) if columns is None else [schema.index(name) for name in columns])
        if keys is not None and self.kept.key is not None:
            wanted.add(schema.index(self.kept.key))
        files = groups = rows = size = 0
        with self._view() as view:
            for file in view.files:
                if not overlaps(file, start, end, keys):
                    continue
                footer = self._footers.get(self.place, file, self.kept)
                chosen = footer.groups(keys, start, end)
                files += bool(chosen)
                groups += len(chosen)
                rows += sum([footer.metadata.row_group(at).num_rows for at in chosen])
                every = len(chosen) == file.groups and len(wanted) == len(schema)
                size += file.data if every else footer.page_bytes(chosen, sorted(wanted))
            of_groups, of_bytes = sum([file.groups for file in view.files]), sum([file.data for file in view.files])
            way = "memory" if not files else "scan" if keys is None else "lookup"
            unwritten = sum([len(part) for part in view.parts if part.last > start and part.first <= end])
            return Plan(way, files, len(view.files), groups, of_groups, rows, size, of_bytes, unwritten)

    @contextmanager
    def _view(self) -> Iterator[View]:
        """Give a view of what there is now, whose files are not deleted meanwhile."""
        with self._lock:
            manifest = self._manifest
            view = View(self.place, self.kept, self._footers, manifest.files, self._tail.parts[:], manifest.dropped)
            self._used.update([file.name for file in manifest.files])
        try:
            yield view
        finally:
            self._release([file.name for file in manifest.files])

    @contextmanager
    def pinned(self) -> Iterator[Pinned]:
        """Give the files that there are now, which are not deleted meanwhile."""
        with self._view() as view:
            yield Pinned(view.files, view.floor(), view.parts[0].first if view.parts else END)

    def advance(self, reader: Reader, after: Position, rows: int) -> HistoryFile | list[Part] | Position:
        """Return what comes next for a reader (see `Source`)."""
        end = END if reader.upto is None else reader.upto
        with self._lock:
            edge = min(self._tail.edge, end)
            if after >= edge:
                return edge
            files = self._manifest.files
            for file in files[bisect_right(files, after, key=lambda one: one.last) :]:
                if file.first > edge:
                    return edge
                if overlaps(file, after, end, reader.keys):
                    self._used[file.name] += 1
                    return file
            parts = self._tail.after(after, rows)
            return parts if parts and parts[0].first <= edge else edge

    def fetch(self, reader: Reader, unit: HistoryFile | list[Part], after: Position) -> Loaded:
        """Read a unit for a reader (see `Source`)."""
        if isinstance(unit, HistoryFile):
            try:
                return self._load(reader, unit, after)
            finally:
                self._release([unit.name])
        rows = join_parts(unit)
        at = rows.within(after, END if reader.upto is None else reader.upto)
        rows = rows if at is None else rows.take(at)
        if reader.keys is not None:
            key, type_ = self.kept.key, self.kept.key_type
            column = Column(rows.numbers) if key is None else rows.columns[self.kept.schema.index(key)]
            rows = rows.keep(reader.keys.mask(column, type_))
        return Loaded(rows, 0)

    def fetch_later(self, reader: Reader, unit: HistoryFile, after: Position) -> Future[Loaded]:
        """Read a file for a reader in the background (see `Source`)."""
        future = self._writers.read(self._load, reader, unit, after)
        future.add_done_callback(lambda _: self._release([unit.name]))
        return future

    def _load(self, reader: Reader, file: HistoryFile, after: Position) -> Loaded:
        end = END if reader.upto is None else reader.upto
        return load(self.place, file, self.kept, after, end, reader.keys, reader.wanted, self._footers)

    def _release(self, names: Sequence[str]) -> None:
        with self._lock:
            self._used.subtract(names)
            for name in names:
                if not self._used[name]:
                    del self._used[name]
            gone = [name for name in names if name in self._doomed and name not in self._used]
            self._doomed.difference_update(gone)
        self._delete(gone)

    def rekeep(self, keep: int | Duration | None) -> None:
        """Keep so much from now on; what that does not cover goes when the next file is written."""
        self.kept = replace(self.kept, keep=keep)

    # Writing

    def flush(self) -> None:
        """Write everything that is in memory; returns when it is durable. Raises `failed` if it cannot be written."""
        with self._working:
            self.failed = None
            while self._tail.parts:
                self._guarded(self._write)
                if self.failed is not None:
                    raise self.failed
        if self._since is not None:
            self._writers.hold(self)

    def close(self) -> None:
        """Write everything and let the writers go; raises `failed` if that is not possible."""
        try:
            self.flush()
        finally:
            self._writers.leave(self)
            with self._lock:
                counted, self._counted, self._since = self._counted, 0, None
            self._writers.give(counted)

    def __enter__(self) -> History:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def since(self) -> int | None:
        """Return when the oldest tuple in memory came (see `Written`)."""
        return self._since

    def work(self) -> bool:
        """Write a file, or merge some; return whether there may be more to do (see `Written`)."""
        with self._working:
            if self.failed is not None:
                return False
            full = self._tail.bytes >= self._layout.flush
            if self._tail.parts and (full or self._writers.behind or self._writers.is_overdue(self._since)):
                return self._guarded(self._write)
            return not self._writers.behind and self._guarded(self._merge)

    def _guarded(self, work: Callable[[], bool]) -> bool:
        """Do some work; keep an error as `failed`."""
        try:
            return work()
        except Exception as error:  # whatever it is, the thread goes on with other histories
            with self._lock:
                self.failed = self._blame(error)
                self.failed.__cause__ = None if self.failed is error else error
                counted, self._counted, self._since = self._counted, 0, None
            self._writers.give(counted)
            return False

    def _blame(self, error: BaseException) -> RunError:
        if isinstance(error, RunError):
            return error
        why = reason(error) if isinstance(error, FAILURES) else raised(error)
        return RunError(f"the history '{self.place.root}' cannot be written: {why}")

    def _write(self) -> bool:
        """Write the oldest tuples in memory as a file."""
        with self._lock:
            parts = self._tail.first_parts(self._layout.largest)
        manifest = self._manifest
        made = self._written_elsewhere(parts)
        name = manifest.name(parts[0].first) if made is None else made.name
        with self._new(name):
            file = made or write_file(self.place, name, self.kept, join_parts(parts), self._layout, self._sync)
            self._commit((*manifest.files, file), len(parts))
        return True

    def _written_elsewhere(self, parts: Sequence[Part]) -> HistoryFile | None:
        """Return the file that another process wrote of parts; None if none did."""
        if self.elsewhere is None:
            return None
        first, last, rows = parts[0].first, parts[-1].last, sum([len(part) for part in parts])
        file = self.elsewhere(first, last, rows)
        if file is not None and (file.first, file.last, file.rows) != (first, last, rows):
            self._delete([file.name])
            return None
        return file

    def _merge(self) -> bool:
        """Merge some neighbouring files, if there are enough small ones; return whether there were."""
        manifest = self._manifest
        run = neighbours(manifest.files, self.kept, self._layout)
        if run is None:
            return False
        start, stop = run
        files = manifest.files
        name = manifest.name(files[start].first)
        with self._new(name):
            merged = merge_files(
                self.place, name, self.kept, files[start:stop], self._layout, self._sync, self._footers
            )
            self._commit((*files[:start], merged, *files[stop:]))
        return True

    @contextmanager
    def _new(self, name: str) -> Iterator[None]:
        """Remove a new file, which no manifest lists, if the body fails."""
        try:
            yield
        except BaseException:
            self._delete([name, name + TEMPORARY, MANIFEST + TEMPORARY])
            raise

    def _commit(self, files: tuple[HistoryFile, ...], written: int = 0) -> None:
        """Make files the ones that are listed, without those that nobody needs; so many parts are in them now."""
        before = self._manifest
        with self._lock:
            gone = uncovered(files, self.kept, before.dropped.high, self._floor())
        manifest = Manifest(files[gone:], before.dropped.add(files[:gone]), before.serial + 1)
        write_manifest(self.place, self.kept, manifest, self._sync)
        with self._lock:
            self._manifest = manifest
            self._tail.remove(written)
            self._tail.edge = max(self._tail.edge, manifest.last)
            counted, self._counted = self._counted, self._tail.bytes
            self._since = stopwatch() if self._tail.parts else None
            old = {file.name for file in before.files} | {file.name for file in files}
            old -= {file.name for file in manifest.files}
            used = {name for name in old if name in self._used}
            self._doomed |= used
        self._writers.give(counted - self._counted)
        self._delete(old - used)

    def _floor(self) -> Position:
        """Return the position up to which no reader needs anything."""
        return min([reader.position for reader in self._readers if not reader.closed], default=END)

    def _delete(self, names: Sequence[str] | set[str]) -> None:
        with suppress(*FAILURES):
            self.place.delete([name for name in names if name])
