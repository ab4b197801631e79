"""Commits: one line of JSON for everything that one append logged. They alone define what is in the log.

`commits/<sequence>.json` holds one commit. Every FOLD of them are folded into `commits/<last sequence>.jsonl`, so
that a long log is recovered from few files. `commits/<sequence>.floor` says that everything before this sequence is
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
from headway.storage.filesystems import FAILURES, TEMPORARY, Place
from headway.storage.segments import MEND, LogSegment
from headway.trains import NOTHING, Tick

FOLD = 256
"""How many single commits are folded into one file."""

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
    that are files which ones they are and how far they have been read (`headway.connectors.input_files`).
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
        self._place = place
        self._sync = sync
        self._held: dict[str, list[int]] = {"json": [], "jsonl": [], "floor": []}
        """By suffix, the sequences in the names of existing files: single commits, folded ones, floors."""

    def recover(self) -> tuple[list[Commit], int]:
        """Return the commits still held, in order, and the largest arrival number that is forgotten.

        Deletes files that are temporary, forgotten or folded. A RunError names a commit that is damaged or missing.
        """
        held = self._held
        sizes = self._place.files(_COMMITS)
        waste = [file for file in sizes if file.endswith(TEMPORARY)]
        for file in sizes:
            stem, _, suffix = file.rpartition("/")[2].partition(".")
            if stem.isdecimal() and suffix in held:
                held[suffix].append(int(stem))
        for sequences in held.values():
            sequences.sort()
        floor, forgotten = self._read_floor()
        folded, singles = held["jsonl"][-1] if held["jsonl"] else -1, held["json"]
        unwritten = bool(singles) and singles[-1] > folded and sizes[_file(singles[-1], "json")] == 0
        if unwritten:  # if files appear before they are complete, the newest may be empty: its append never returned
            waste.append(_file(singles.pop(), "json"))
        waste += self._leave_out(floor, folded)
        files = [_file(sequence, suffix) for suffix in ("jsonl", "json") for sequence in held[suffix]]
        commits = [commit for part in self._place.each(self._read, files) for commit in part]
        commits = [commit for commit in commits if commit.sequence >= floor]
        self._check_order(commits, floor)
        if not unwritten:
            self._check_newest(commits, sizes)
        self._place.delete(waste)
        return commits, forgotten

    def _read_floor(self) -> tuple[int, int]:
        if not self._held["floor"]:
            return 0, NOTHING
        floor = self._held["floor"][-1]
        file = _file(floor, "floor")
        return floor, self._sealed(file, self._place.read(file), "issued")

    def _sealed(self, file: str, data: bytes, key: str) -> int:
        with intact(f"the log's file '{self._place.name(file)}'", MEND):
            return int(unseal(data)[key])

    def _leave_out(self, floor: int, folded: int = -1) -> list[str]:
        """Remove from `_held` what is before the floor, or folded; return these files."""
        least = {"json": max(floor, folded + 1), "jsonl": floor, "floor": max(self._held["floor"], default=0)}
        waste = []
        for suffix, sequences in self._held.items():
            waste += [_file(sequence, suffix) for sequence in sequences if sequence < least[suffix]]
            sequences[:] = [sequence for sequence in sequences if sequence >= least[suffix]]
        return waste

    def _read(self, file: str) -> list[Commit]:
        with intact(f"the log's commit '{self._place.name(file)}'", MEND):
            return [Commit.from_line(line) for line in self._place.read(file).splitlines()]

    def _check_order(self, commits: Sequence[Commit], floor: int) -> None:
        if not commits and floor:
            raise RunError(f"the log's commit '{self._place.name(_file(floor, 'json'))}' is missing; {MEND}")
        if commits and not self._held["floor"] and commits[0].sequence:
            file = _file(commits[0].sequence, "floor")
            raise RunError(f"the log's file '{self._place.name(file)}' is missing, or commits are; {MEND}")
        for expected, commit in enumerate(commits, floor):
            if commit.sequence != expected:
                raise RunError(f"the log's commit '{self._place.name(_file(expected, 'json'))}' is missing; {MEND}")

    def _check_newest(self, commits: Sequence[Commit], sizes: Mapping[str, int]) -> None:
        """Refuse a log whose last commit is missing. After a power failure the file that names it may be empty."""
        data = self._place.read(_NEWEST) if sizes.get(_NEWEST) else b""
        if not data.strip(b"\0"):
            return
        newest = self._sealed(_NEWEST, data, "sequence")
        if newest > (commits[-1].sequence if commits else -1):
            file, by = self._place.name(_file(newest, "json")), self._place.name(_NEWEST)
            raise RunError(f"the log's commit '{file}' is missing, which '{by}' names; {MEND}")

    def write(self, commit: Commit) -> None:
        """Make a commit durable and visible."""
        self._place.write(_file(commit.sequence, "json"), commit.to_line(), sync=self._sync)
        if self._place.local:  # on remote file systems it may cost as much as the commit
            with suppress(*FAILURES):  # the commit is durable, and an older name does no harm
                self._place.write(_NEWEST, seal({"sequence": commit.sequence}), sync=False)
        singles = self._held["json"]
        if not singles or singles[-1] != commit.sequence:
            singles.append(commit.sequence)

    def fold(self, commits: Sequence[Commit]) -> None:
        """Fold the single commits, the newest of `commits`, into one file if there are FOLD of them or more."""
        singles = self._held["json"]
        if len(singles) < FOLD:
            return
        lines = b"".join([commit.to_line() for commit in commits[-len(singles) :]])
        self._place.write(_file(singles[-1], "jsonl"), lines, sync=self._sync)
        self._held["jsonl"].append(singles[-1])
        self._held["json"] = []
        self._place.delete([_file(sequence, "json") for sequence in singles])

    def forget(self, floor: int, issued: int) -> None:
        """Forget the commits before a sequence, whose largest arrival number was `issued`, durably."""
        self._place.write(_file(floor, "floor"), seal({"issued": issued}), sync=self._sync)
        self._held["floor"].append(floor)
        self._place.delete(self._leave_out(floor))


def _file(sequence: int, suffix: str) -> str:
    return f"{_COMMITS}/{sequence:012d}.{suffix}"
