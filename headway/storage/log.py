"""The arrival log: everything that entered a network, durably, in the order of arrival numbers.

One process appends; any process on any machine reads slices. The log's path holds `segments/<source>/<sequence>.arrow`,
written first, and `commits/<sequence>.json`, written last: segments that no commit names do not count, and recovery
deletes them.
"""

from __future__ import annotations

import re
import threading
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from headway.clock import SECOND
from headway.errors import InputError, RunError, unknown
from headway.network.schema import Schema
from headway.storage.commits import BEFORE, Commit, CommitFiles, Refusal
from headway.storage.filesystems import FAILURES, Place, locate, reason
from headway.storage.segments import (
    MEND,
    LogSegment,
    LogSlice,
    OpenSegments,
    SourceIndex,
    check_schema,
    encode,
    quote_name,
    read_slice,
)
from headway.trains import Tick, Train

__all__ = ["Commit", "Log", "LogSegment", "LogSlice", "read_slice", "verify_log"]

_OWN = re.compile(r"segments/[^/]+/\d{12}\.arrow")
"""Files that recovery may delete: those named as a log names its segments."""


class Log:
    """A durable, append-only log of all sources' arrivals.

    One thread appends and one (perhaps another) drops; any thread may query. Only one process at a time may have a log
    open: another's recovery would delete an unfinished append.
    """

    def __init__(
        self,
        path: str,
        schemas: Mapping[str, Schema],
        *,
        keep_seconds: float = 0,
        sync: bool = True,
        repeats: bool = False,
    ) -> None:
        """Create the log at a path or URI, or recover an existing one.

        With `sync`, what was appended on a local disk survives a power failure, not only the end of the process. With
        `repeats`, tuples of a source may have the same number, as results with the same cause have. Raises InputError
        if the path cannot be opened, RunError if the log is damaged or of another network.
        """
        self._place = locate(path)
        self._schemas = dict(schemas)
        self._keep = round(keep_seconds * SECOND)
        self._sync, self._repeats = sync, repeats
        self._lock = threading.RLock()
        self._writing = threading.Lock()
        self._files = CommitFiles(self._place, sync)
        self._opened = OpenSegments()
        self._indexes = {source: SourceIndex(source, self._place, self._opened) for source in schemas}
        self._directories = {source: f"segments/{quote_name(source)}" for source in schemas}
        self._commits: list[Commit] = []
        self._issued: list[int] = []
        self._ticks: list[Tick] = []
        self.newest = BEFORE
        """The newest commit."""
        self.end: int | None = None
        """The arrival number of the end mark, if it is in the log."""
        self.bytes = 0
        """The bytes of all segments still held."""
        try:
            self._place.make(["commits", *self._directories.values()], sync)
            commits, self._forgotten = self._files.recover()
            present = self._place.files("segments")
            self._check(commits, present)
            held = {segment.file for commit in commits for segment in commit.segments.values()}
            self._place.delete([file for file in present if file not in held and _OWN.fullmatch(file)])
        except FAILURES as error:
            raise InputError(
                f"cannot open the log '{path}': {reason(error)}; give a directory that can be written"
            ) from error
        for commit in commits:
            self._add(commit, {})

    def _check(self, commits: Sequence[Commit], present: Mapping[str, int]) -> None:
        """Refuse a log with missing segments, or of another network."""
        _check_sizes(self._place, commits, present)
        newest: dict[str, LogSegment] = {}
        for commit in commits:
            newest.update(commit.segments)
        for source, segment in newest.items():
            name = self._place.name(segment.file)
            if source not in self._schemas:
                raise RunError(
                    f"the log's segment '{name}': {unknown('source', source, self._schemas)}; "
                    "run the network that wrote it, or start over with another --state"
                )
            # Checking the newest is enough: all segments of a source were written under a schema checked like this.
            check_schema(self._opened.open(name, source, segment.crc), name, source, self._schemas[source])

    def _add(self, commit: Commit, trains: Mapping[str, Train]) -> None:
        self._commits.append(commit)
        self._issued.append(commit.issued)
        self._ticks += commit.ticks
        self.newest = commit
        self.end = self.end if commit.end is None else commit.end
        for source, segment in commit.segments.items():
            self._indexes[source].add(segment, trains.get(source))
            self.bytes += segment.bytes

    @property
    def issued(self) -> int:
        """The largest arrival number in the log, marks included; NOTHING if it is empty."""
        return self.newest.issued

    @property
    def positions(self) -> dict[str, int]:
        """How many tuples of each source have entered so far, including those dropped from the log."""
        return dict.fromkeys(self._schemas, 0) | dict(self.newest.positions)

    @property
    def refused(self) -> dict[str, int]:
        """How many malformed rows of each source have been logged so far, including those dropped from the log."""
        return dict.fromkeys(self._schemas, 0) | dict(self.newest.refused)

    @property
    def commits(self) -> tuple[Commit, ...]:
        """The commits still held, in order."""
        with self._lock:
            return tuple(self._commits)

    def exchange(self, schemas: Mapping[str, Schema]) -> None:
        """Let arrivals of these sources be appended from now on; what was logged of others stays readable.

        Called by the thread that appends. Raises a RunError if the log cannot be written.
        """
        new = {source: schema for source, schema in schemas.items() if source not in self._schemas}
        folders = {source: f"segments/{quote_name(source)}" for source in new}
        try:
            self._place.make(list(folders.values()), self._sync)
        except FAILURES as error:
            raise self._unwritten(error) from error
        with self._lock:
            self._directories |= folders
            self._indexes |= {source: SourceIndex(source, self._place, self._opened) for source in new}
            self._schemas |= schemas

    def bytes_after(self, reached: Mapping[str, int]) -> int:
        """Return the bytes of the segments that hold anything after these arrival numbers, by source."""
        with self._lock:
            return sum(self._indexes[source].bytes_after(number) for source, number in reached.items())

    def append(
        self,
        trains: Mapping[str, Train],
        issued: int,
        moment: int,
        *,
        ticks: Iterable[Tick] = (),
        end: int | None = None,
        positions: Mapping[str, int],
        malformed: Iterable[Refusal] = (),
        reached: int = 0,
        inputs: Mapping[str, Any] | None = None,
        seam: Mapping[str, Any] | None = None,
    ) -> Commit:
        """Log what entered since the last append; it is durable and visible when this returns.

        Numbers must ascend, above the log's `issued` and up to the given one. The trains' own ticks and ends are
        ignored. With `seam`, the network changes at `issued`. When it raises RunError, nothing was logged, and the same
        may be appended again.
        """
        with self._writing:
            ticks, refusals = tuple(ticks), tuple(malformed)
            filled = {source: train for source, train in trains.items() if len(train)}
            self._check_numbers(filled, issued, ticks, end)
            sequence = self.newest.sequence + 1
            try:
                written = self._place.each(lambda source: self._write(source, filled[source], sequence), list(filled))
                refused = self.refused
                for refusal in refusals:
                    refused[refusal[0]] = refused.get(refusal[0], 0) + 1
                segments = dict(zip(filled, written, strict=True))
                counts = dict(positions), refusals, refused, reached, {**self.newest.inputs, **(inputs or {})}
                commit = Commit(sequence, issued, moment, ticks, end, segments, *counts, seam)
                self._files.write(commit)
            except FAILURES as error:
                raise self._unwritten(error) from error
            with self._lock:
                self._add(commit, filled)
            return commit

    @property
    def root(self) -> str:
        """The log's path, for other processes."""
        return self._place.root

    def following(self, source: str, count: int) -> list[str]:
        """Return the names of the segments of a source in the next commits, for `adopt`."""
        sequence = self.newest.sequence + 1
        return [f"{self._directories[source]}/{at:012d}.arrow" for at in range(sequence, sequence + count)]

    def adopt(self, source: str, segment: LogSegment | None, issued: int, moment: int) -> Commit:
        """Log a segment that another process wrote under the next name of `following`, or that there is none.

        Raises a ValueError if it does not follow what is logged, and a RunError if it is not there as it was written.
        """
        with self._writing:
            sequence, segments, positions = self.newest.sequence + 1, dict[str, LogSegment](), self.positions
            if issued < self.issued:
                raise ValueError(f"arrival numbers do not go back from {self.issued} to {issued}")
            if segment is not None:
                name = f"{self._directories[source]}/{sequence:012d}.arrow"
                if segment.file != name or not self.issued < segment.first <= segment.last <= issued:
                    raise ValueError(f"segment '{segment.file}' from {segment.first} does not come after {self.issued}")
                if self._place.files(self._directories[source]).get(name) != segment.bytes:
                    raise RunError(f"the log's segment '{self._place.name(name)}' is not as it was written")
                segments[source] = segment
                positions[source] = positions.get(source, 0) + segment.rows
            counts = positions, (), self.refused, 0, self.newest.inputs
            commit = Commit(sequence, issued, moment, (), None, segments, *counts)
            try:
                self._files.write(commit)
            except FAILURES as error:
                raise self._unwritten(error) from error
            with self._lock:
                self._add(commit, {})
            return commit

    def _check_numbers(self, trains: Mapping[str, Train], issued: int, ticks: Sequence[Tick], end: int | None) -> None:
        marks = [tick.number for tick in ticks] + ([] if end is None else [end])
        ranges = [(int(train.numbers[0]), int(train.numbers[-1])) for train in trains.values()]
        ranges += [(mark, mark) for mark in marks]
        for source, train in trains.items():
            if source not in self._schemas:
                raise ValueError(unknown("source", source, self._schemas))
            numbers = train.numbers
            if not ((numbers[1:] >= numbers[:-1]) if self._repeats else (numbers[1:] > numbers[:-1])).all():
                raise ValueError(f"source '{source}': arrival numbers must ascend")
        for first, last in ranges:
            if first <= self.issued or last > issued:
                raise ValueError(f"arrival numbers {first} to {last} are not in ({self.issued}, {issued}]")
        if issued < self.issued:
            raise ValueError(f"arrival numbers do not go back from {self.issued} to {issued}")
        if any(later <= earlier for earlier, later in pairwise(marks)):
            raise ValueError("the numbers of ticks and the end must ascend")

    def _write(self, source: str, train: Train, sequence: int) -> LogSegment:
        file = f"{self._directories[source]}/{sequence:012d}.arrow"
        segment, data = encode(source, train, self._schemas[source], file)
        # No rename: no reader opens a segment before its commit exists.
        self._place.write(file, data, sync=self._sync, rename=False)
        return segment

    def _unwritten(self, error: BaseException) -> RunError:
        return RunError(f"cannot write the log '{self._place.root}': {reason(error)}")

    def slices(self, sources: Iterable[str], after: int, upto: int) -> list[LogSlice]:
        """Return the slices of these sources in (after, upto], ascending by first number."""
        with self._lock:
            found = [piece for index in self._chosen(sources, after) for piece in index.slices(after, upto)]
        found.sort(key=lambda piece: piece.first)
        return found

    def count(self, sources: Iterable[str], after: int, upto: int) -> int:
        """Return how many tuples these sources have in (after, upto]."""
        with self._lock:
            return sum(max(0, index.before(upto) - index.before(after)) for index in self._chosen(sources, after))

    def cut(self, sources: Iterable[str], after: int, tuples: int) -> int:
        """Return the largest arrival number up to which these sources have at most `tuples` tuples after `after`.

        It includes at least one tuple if there is one, and is `issued` if all fit.
        """
        with self._lock:
            indexes = self._chosen(sources, after)
            limit = max(1, tuples) + sum(index.before(after) for index in indexes)

            def too_many(upto: int) -> bool:
                return sum([index.before(upto) for index in indexes]) > limit

            if not too_many(self.issued):
                return max(after, self.issued)
            # Find the commit first: counting up to the end of a commit need not open a segment.
            at = bisect_left(range(len(self._issued)), True, key=lambda at: too_many(self._issued[at]))
            low, high = max(after, self._issued[at - 1]) if at else after, self._issued[at]
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (low, middle) if too_many(middle) else (middle, high)
            return low

    def stamps(self, sources: Iterable[str], after: int, upto: int) -> tuple[int, int] | None:
        """Return the oldest and the mean stamp of the tuples in (after, upto], the mean rounded down, or None."""
        with self._lock:
            count = total = 0
            oldest: list[int] = []
            for index in self._chosen(sources, after):
                here = index.before(upto) - index.before(after)
                stamp = index.stamp_after(after)
                if here > 0 and stamp is not None:
                    oldest.append(stamp)
                    count += here
                    total += index.stamps_before(upto) - index.stamps_before(after)
        return (min(oldest), total // count) if count else None

    def marks(self, after: int, upto: int) -> tuple[tuple[Tick, ...], int | None]:
        """Return the ticks in (after, upto], and the end mark's number if it is in that range."""
        with self._lock:
            self._chosen((), after)
            start = bisect_right(self._ticks, after, key=_number)
            stop = bisect_right(self._ticks, upto, key=_number)
            end = self.end if self.end is not None and after < self.end <= upto else None
            return tuple(self._ticks[start:stop]), end

    def moment_at(self, upto: int) -> int:
        """Return the moment of the first commit that covers an arrival number, or of the newest if none does."""
        with self._lock:
            at = bisect_left(self._issued, upto)
            return self._commits[min(at, len(self._commits) - 1)].moment if self._commits else 0

    def drop(self, upto: int, now: int) -> int:
        """Forget the commits entirely at or below `upto` that have been kept long enough; return the bytes freed.

        The newest commit stays. Queries for what is forgotten raise a RunError.
        """
        with self._writing, self._lock:
            count, most = 0, bisect_right(self._issued, upto, hi=max(0, len(self._issued) - 1))
            while count < most and now - self._commits[count].moment >= self._keep:
                count += 1
            if count == 0:
                return 0
            dropped, floor = self._commits[:count], self._commits[count].sequence
        try:
            with self._writing:
                self._files.forget(floor, dropped[-1].issued)
                with self._lock:
                    freed = self._forget(dropped)
            # Without the locks: deleting many files takes long, and nothing refers to them any more.
            self._place.delete([segment.file for commit in dropped for segment in commit.segments.values()])
        except FAILURES as error:
            raise self._unwritten(error) from error
        return freed

    def _forget(self, dropped: Sequence[Commit]) -> int:
        self._forgotten = dropped[-1].issued
        del self._commits[: len(dropped)], self._issued[: len(dropped)]
        del self._ticks[: sum(len(commit.ticks) for commit in dropped)]
        freed = 0
        for source, index in self._indexes.items():
            segments = [commit.segments[source] for commit in dropped if source in commit.segments]
            index.forget(len(segments))
            freed += sum(segment.bytes for segment in segments)
        self.bytes -= freed
        return freed

    def _chosen(self, sources: Iterable[str], after: int) -> list[SourceIndex]:
        if after < self._forgotten:
            raise RunError(
                f"the log '{self._place.root}' no longer holds the arrivals after {after}, only those after "
                f"{self._forgotten}; keep more of it, or start over with another --state"
            )
        try:
            return [self._indexes[source] for source in dict.fromkeys(sources)]
        except KeyError as error:
            raise ValueError(unknown("source", str(error.args[0]), self._indexes)) from None


def verify_log(path: str) -> tuple[Commit | None, int]:
    """Check that a log is intact; return its newest commit, and the largest arrival number that is forgotten.

    On a local disk every byte is checked, elsewhere only what needs no transfer: readers detect damage there. Raises a
    RunError that names the first file that is missing or damaged. No process may have the log open.
    """
    place = locate(path)
    commits, forgotten = CommitFiles(place, False).recover()
    _check_sizes(place, commits, place.files("segments"))
    if place.local:
        opened = OpenSegments()
        for commit in commits:
            for source, segment in commit.segments.items():
                opened.open(place.name(segment.file), source, segment.crc)
    return (commits[-1] if commits else None), forgotten


def _check_sizes(place: Place, commits: Sequence[Commit], present: Mapping[str, int]) -> None:
    for commit in commits:
        for source, segment in commit.segments.items():
            size = present.get(segment.file)
            if size != segment.bytes:
                what = "missing" if size is None else f"damaged: {size} bytes, not {segment.bytes}"
                raise RunError(f"source '{source}': the log's segment '{place.name(segment.file)}' is {what}; {MEND}")


def _number(tick: Any) -> int:
    return int(tick.number)
