"""Commits: one line of JSON for everything that one append logged. They alone define what is in the log.

They are kept as `Records` under their sequence. `commits/<sequence>.floor` says that everything before this sequence is
forgotten: it is written before anything is deleted. Every name is written once, and atomically.

The exception is `commits/newest` on a local disk: it is replaced after every commit and names it, so that a log whose
last commit was deleted is not taken for a shorter one. It needs no sync: naming an older commit does no harm.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from headway.errors import RunError
from headway.storage.checked import intact, seal, unseal
from headway.storage.filesystems import FAILURES, Place
from headway.storage.records import Records
from headway.storage.segments import MEND, LogSegment
from headway.trains import NOTHING, Tick

_COMMITS = "commits"
_NEWEST = f"{_COMMITS}/newest"


Refusal = tuple[str, str, str, str]
"""A malformed row: its source, its position, how it begins, and why it was refused."""


@dataclass(frozen=True, slots=True)
class Commit:
    """What one append added to the log.

    `issued` is the largest arrival number assigned so far, marks included; `end` is the number of the end mark if it is
    in this commit. `positions` and `refused` count the tuples and the malformed rows of each source so far; `reached`
    is how long the run has lasted, in nanoseconds, without the time between its processes; `inputs` tells for sources
    that are files which ones they are and how far they have been read (`headway.connectors.input_files`). `seam`
    describes the network from `issued` on, if it changes there.
    """

    sequence: int
    issued: int
    moment: int
    ticks: tuple[Tick, ...]
    end: int | None
    segments: Mapping[str, LogSegment]
    positions: Mapping[str, int]
    malformed: tuple[Refusal, ...]
    refused: Mapping[str, int]
    reached: int = 0
    inputs: Mapping[str, Any] = field(default_factory=dict)
    seam: Mapping[str, Any] | None = None

    def to_line(self) -> bytes:
        """Return the commit as one line of JSON, with a checksum."""
        values = _members(self) | {"segments": {name: _members(segment) for name, segment in self.segments.items()}}
        return seal(values) + b"\n"

    @classmethod
    def from_line(cls, line: bytes) -> Commit:
        """Read what `to_line` returned; raises a ValueError, KeyError or TypeError for anything else."""
        values = unseal(line.rstrip(b"\n"))
        values["ticks"] = tuple([Tick(*tick) for tick in values["ticks"]])
        values["segments"] = {source: LogSegment(**segment) for source, segment in values["segments"].items()}
        values["malformed"] = tuple([tuple(row) for row in values["malformed"]])
        return cls(**values)


BEFORE = Commit(-1, NOTHING, 0, (), None, {}, {}, (), {})
"""Placeholder for the newest commit of an empty log."""


def _members(record: Commit | LogSegment) -> dict[str, Any]:
    return {name: getattr(record, name) for name in record.__slots__}


class CommitFiles:
    """The directory `commits` of a log. Used by one thread at a time; raises what the file system raises."""

    def __init__(self, place: Place, sync: bool) -> None:
        self._place, self._sync = place, sync
        names = f"{_COMMITS}/{{:012d}}"
        self._records = Records(place, names, "the log's commit", Commit.from_line, sync, MEND)
        self._floor: str | None = None
        """The newest file that says what is forgotten."""

    def recover(self) -> tuple[list[Commit], int]:
        """Return the commits still held, in order, and the largest arrival number that is forgotten.

        Deletes files that are temporary, forgotten or folded. A RunError names a commit that is damaged or missing.
        """
        sizes = self._place.files(_COMMITS)
        *old, self._floor = [None, *sorted(file for file in sizes if file.endswith(".floor"))]
        floor, forgotten = 0, NOTHING
        if self._floor is not None:
            floor = int(self._floor.rpartition("/")[2].partition(".")[0])
            forgotten = self._sealed(self._floor, self._place.read(self._floor), "issued")
        commits, waste = self._records.recover(sizes, floor)
        commits = [commit for commit in commits if commit.sequence >= floor]
        self._check_order(commits, floor)
        if not self._records.unwritten:
            self._check_newest(commits, sizes)
        self._place.delete([*waste, *filter(None, old)])
        return commits, forgotten

    def _sealed(self, file: str, data: bytes, key: str) -> int:
        with intact(f"the log's file '{self._place.name(file)}'", MEND):
            return int(unseal(data)[key])

    def _check_order(self, commits: Sequence[Commit], floor: int) -> None:
        file, name = self._records.file, self._place.name
        if not commits and floor:
            raise RunError(f"the log's commit '{name(file(floor))}' is missing; {MEND}")
        if commits and self._floor is None and commits[0].sequence:
            first = name(file(commits[0].sequence, "floor"))
            raise RunError(f"the log's file '{first}' is missing, or commits are; {MEND}")
        for expected, commit in enumerate(commits, floor):
            if commit.sequence != expected:
                raise RunError(f"the log's commit '{name(file(expected))}' is missing; {MEND}")

    def _check_newest(self, commits: Sequence[Commit], sizes: Mapping[str, int]) -> None:
        """Refuse a log whose last commit is missing. After a power failure the file that names it may be empty."""
        data = self._place.read(_NEWEST) if sizes.get(_NEWEST) else b""
        if not data.strip(b"\0"):
            return
        newest = self._sealed(_NEWEST, data, "sequence")
        if newest > (commits[-1].sequence if commits else -1):
            file, by = self._place.name(self._records.file(newest)), self._place.name(_NEWEST)
            raise RunError(f"the log's commit '{file}' is missing, which '{by}' names; {MEND}")

    def write(self, commit: Commit) -> None:
        """Make a commit durable and visible."""
        self._records.write(commit.sequence, commit.to_line())
        if self._place.local:  # on remote file systems it may cost as much as the commit
            with suppress(*FAILURES):  # the commit is durable, and an older name does no harm
                self._place.write(_NEWEST, seal({"sequence": commit.sequence}), sync=False)

    def forget(self, floor: int, issued: int) -> None:
        """Forget the commits before a sequence, whose largest arrival number was `issued`, durably."""
        old, self._floor = self._floor, self._records.file(floor, "floor")
        self._place.write(self._floor, seal({"issued": issued}), sync=self._sync)
        self._place.delete([old] if old not in (None, self._floor) else [])
        self._records.forget(floor)
