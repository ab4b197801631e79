"""The journal of micro-batches, and verification of a state directory.

What each micro-batch of a query covered and delivered is recorded before Spark commits it. Spark's checkpoint tells the
position of a query, the results what it delivered; the journal verifies both. There is one record per micro-batch: the
arrival numbers that it covered, a checksum of Spark's offset file, its files of results and letters, and a checksum of
every shard's state. Records are stored as numbered `Records` in ``journal/<unit>``.

`verify` checks a directory before anything is continued, and before Spark is started. Headway's own files carry
checksums. Spark's files are compared with the journal, and on a local disk with the checksum files that Spark writes.
Anything missing or damaged is named; nothing is read past it. Leftovers of a process that was killed are no damage:
they come after the last thing that counts.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from headway.errors import RunError
from headway.storage.checked import RESTORE, checksum, intact, seal, unseal, verify_table
from headway.storage.filesystems import FAILURES, Place, reason
from headway.storage.log import Commit, verify_log
from headway.storage.records import Records
from headway.storage.segments import quote_name
from headway.trains import NOTHING

FORMAT = 2
"""The format that this version writes. Format 1 had no checksums."""
PLAN = "plan.json"
SIEVES = "sieves.json"
FOLDER = "journal"
_REMEMBERED = 4
"""Records that a running query may still ask for: Spark repeats at most the last micro-batch."""
_WHOLE = {"format", "shards", "spread", "sources", "next", "units", "token"}
"""The keys that a plan must have."""
_VERSION = re.compile(r"(\d+)[_.][^/]*$")
_LETTERS = re.compile(r"letters/log-(\d+)\.json")


def damaged(name: str, what: object) -> RunError:
    """Return the error for a damaged file."""
    return RunError(f"'{name}' is damaged: {what}; {RESTORE}")


def missing(name: str) -> RunError:
    """Return the error for a missing file."""
    return RunError(f"'{name}' is missing; {RESTORE}")


@dataclass(frozen=True, slots=True)
class Record:
    """The record of one micro-batch."""

    batch: int
    after: int
    upto: int
    """It covered the arrival numbers above `after` up to `upto`."""
    offset: int | None = None
    """The checksum of Spark's offset file, if it was read."""
    results: Mapping[str, tuple[str, int, int]] = field(default_factory=dict)
    """By output: its result file, with bytes and rows."""
    letters: str | None = None
    """The name of its dead letters."""
    states: Mapping[int, int] = field(default_factory=dict)
    """By shard: the checksum of its state afterwards."""
    sieves: bool = False
    """Whether drop boxes had been adjusted before it."""

    def to_line(self) -> bytes:
        """Return one line of JSON with a checksum."""
        values = {name: getattr(self, name) for name in Record.__slots__}
        return seal({**values, "states": list(self.states.items())}) + b"\n"

    @classmethod
    def from_line(cls, line: bytes) -> Record:
        """Parse a line written by `to_line`; raise a ValueError, KeyError or TypeError for anything else."""
        values: dict[str, Any] = unseal(line)
        results = {output: (one[0], one[1], one[2]) for output, one in values["results"].items()}
        return cls(**{**values, "results": results, "states": dict(values["states"])})


class Journal:
    """The records of one unit, kept in memory only if there is no place. Used by one thread at a time."""

    def __init__(self, place: Place | None, unit: str) -> None:
        """Read a unit's journal; raise a RunError that names a missing or damaged file."""
        self._recent: deque[Record] = deque(maxlen=_REMEMBERED)
        self.found: list[Record] = []
        """All records of earlier processes."""
        self._folder = f"{FOLDER}/{unit}"
        self._place = place
        if place is None:
            return
        self._records = Records(place, f"{self._folder}/{{:010d}}", "the journal's file", Record.from_line)
        place.make([self._folder], False)
        self.found, waste = self._records.recover(place.files(self._folder))
        for expected, record in enumerate(self.found):
            if record.batch != expected:
                name = place.name(self._records.file(expected))
                raise RunError(f"the journal's file '{name}' is missing; {RESTORE}")
        place.delete(waste)
        self._recent.extend(self.found)

    @property
    def last(self) -> Record | None:
        """The newest record."""
        return self._recent[-1] if self._recent else None

    def at(self, upto: int) -> Record | None:
        """Return the recent record that ended at an arrival number, or None."""
        return next((record for record in self._recent if record.upto == upto), None)

    def of(self, batch: int) -> Record | None:
        """Return the recent record of a micro-batch, or None."""
        return next((record for record in self._recent if record.batch == batch), None)

    def write(self, record: Record) -> None:
        """Make a record durable: a new one, or the newest again."""
        if self._place is not None:
            try:
                self._records.write(record.batch, record.to_line())
            except FAILURES as error:
                name = self._place.name(self._folder)
                raise RunError(f"cannot write the journal '{name}': {reason(error)}") from error
        if self.last is not None and self.last.batch == record.batch:
            self._recent.pop()
        self._recent.append(record)

    def cut(self, last: int) -> None:
        """Delete the newest record if it is beyond micro-batch `last`, as Spark will never commit it."""
        if self.last is not None and self.last.batch > last:
            newest = self._recent.pop()
            if self._place is not None:
                self._records.remove(newest.batch)


def journals(place: Place) -> list[str]:
    """Return the units that have a journal."""
    return sorted({file.split("/")[1] for file in place.files(FOLDER)})


class Found(NamedTuple):
    """What an earlier run left in its state directory."""

    plan: dict[str, Any]
    journals: Mapping[str, Journal]
    """By unit."""
    commit: Commit | None
    """The newest commit of the log."""

    @property
    def ended(self) -> bool:
        """Whether all inputs have ended: the end mark is the last entry of a log."""
        return self.commit is not None and self.commit.end is not None


def verify(place: Place) -> Found | None:
    """Return the verified contents of a state directory, or None if it is new.

    Raises a RunError that names what is missing or damaged. The directory must be locked.
    """
    plan = read_plan(place)
    if plan is None:
        return None
    commit, forgotten = verify_log(place.name("log"))
    spark = place.files("checkpoints")
    found: dict[str, Journal] = {}
    begins = {one["id"]: int(one["begin"]) for one in plan["units"]}
    since = {one["id"]: int(one["past"]["seam"]) for one in plan["units"] if one.get("past")}
    for unit in sorted({*begins, *journals(place), *(file.split("/")[1] for file in spark)}):
        found[unit] = Journal(place, unit)
        needed = forgotten if unit not in since else NOTHING  # what was forgotten then is in its own log
        _Checkpoint(place, unit, spark).check(found[unit].found, begins.get(unit), commit, needed)
    _verify_deliveries(place, [record for one in found.values() for record in one.found], commit)
    if any(one.last.sieves for one in found.values() if one.last is not None) and SIEVES not in place.files(""):
        raise missing(place.name(SIEVES))
    return Found(plan, found, commit)


def read_plan(place: Place) -> dict[str, Any] | None:
    """Return the plan in a state directory; None if the directory is empty."""
    name = place.name(PLAN)
    try:
        if PLAN not in place.files(""):
            if any(place.files(folder) for folder in ("log", "checkpoints", "results", "journal")):
                raise missing(name)
            return None
        data = place.read(PLAN)
    except FAILURES as error:
        raise RunError(
            f"cannot read the state '{place.root}': {reason(error)}; give a directory to write to"
        ) from error
    with contextlib.suppress(ValueError, KeyError, TypeError):  # then it is damaged, whatever version wrote it
        format_ = json.loads(data)["format"]
        if isinstance(format_, int) and format_ != FORMAT:
            raise RunError(
                f"the state '{place.root}' was written in format {format_}, and this version reads format {FORMAT}; "
                "give another --state"
            )
    with intact(f"'{name}'"):
        plan = unseal(data)
        if not plan.keys() >= _WHOLE:
            raise ValueError("it is not whole")
    return plan


class _Checkpoint:
    """Spark's files of one unit, to be compared with the journal."""

    def __init__(self, place: Place, unit: str, files: Mapping[str, int]) -> None:
        self._place = place
        self._folder = f"checkpoints/{unit}"
        self._files = [file for file in files if file.startswith(f"{self._folder}/")]
        self._all = set(self._files)

    def check(self, records: list[Record], begin: int | None, commit: Commit | None, forgotten: int) -> None:
        """Raise a RunError if something does not fit; `begin` is None for a unit that is no longer in the network."""
        last = len(records) - 1
        committed = max(self._numbers("commits"), default=-1)
        if committed > last:
            raise RunError(
                f"the journal of '{self._place.name(self._folder)}' lacks micro-batch {committed}, which Spark has "
                f"committed: '{self._place.name(self._folder.replace('checkpoints', 'journal'))}' is damaged; {RESTORE}"
            )
        if begin is None:
            return
        if committed < last - 1:
            raise missing(self._place.name(f"{self._folder}/commits/{last - 1}"))
        if self._all:
            self._check_text("metadata", 1)
        if committed >= 0:
            self._check_text(f"commits/{committed}", 2)
        issued = NOTHING if commit is None else commit.issued
        for record in records[max(0, committed) :]:
            name, data = self._need(f"offsets/{record.batch}")
            if _upto(data) != record.upto or (record.offset is not None and checksum(data) != record.offset):
                raise damaged(name, "it is not what the journal says")
        self._check_ahead(last, records[-1].upto if records else begin, issued)
        position = records[committed].upto if committed >= 0 else begin
        if position < forgotten:
            raise missing(self._place.name(f"{self._folder}/commits/{last}"))
        if records and records[-1].upto > issued:
            raise RunError(
                f"the log '{self._place.name('log')}' ends at arrival number {issued}, and "
                f"'{self._place.name(self._folder)}' has processed {records[-1].upto}: a file in "
                f"'{self._place.name('log/commits')}' is missing; {RESTORE}"
            )
        if self._place.local:
            self._check_sums(committed)

    def _numbers(self, folder: str) -> list[int]:
        start = f"{self._folder}/{folder}/"
        names = [file.removeprefix(start) for file in self._files if file.startswith(start)]
        return [int(name) for name in names if name.isdecimal()]

    def _need(self, file: str) -> tuple[str, bytes]:
        """Return the name and the contents of a file."""
        name, relative = self._place.name(f"{self._folder}/{file}"), f"{self._folder}/{file}"
        if relative not in self._all:
            raise missing(name)
        return name, self._place.read(relative)

    def _check_text(self, file: str, lines: int) -> None:
        """Check a small file of Spark's: so many `lines`, the last of them JSON, a version before it."""
        name, data = self._need(file)
        try:
            *before, last = data.decode().splitlines()
            good = before == ["v1"][: lines - 1] and isinstance(json.loads(last), dict)
        except ValueError:
            good = False
        if not good:
            raise damaged(name, "it is not what Spark writes")

    def _check_ahead(self, last: int, after: int, issued: int) -> None:
        """Check the offset of a micro-batch that was begun but not delivered."""
        ahead = [number for number in self._numbers("offsets") if number > last]
        for number in sorted(ahead):
            name, data = self._need(f"offsets/{number}")
            upto = _upto(data)
            # A query stopped before it has run may record that its first micro-batch ends where it began.
            least = after if number == 0 else after + 1
            if number > last + 1 or upto is None or not least <= upto <= max(issued, least):
                raise damaged(name, f"micro-batch {number} cannot end at arrival number {upto}")

    def _check_sums(self, committed: int) -> None:
        """Compare Spark's files with its checksum files; state files after the last commit may be incomplete."""
        for file in self._files:
            folder, _, name = file.rpartition("/")
            if name.startswith("."):
                continue  # the checksums themselves, and files that were incomplete when a process was killed
            version = _VERSION.match(name)
            ahead = "/state/" in file and version is not None and int(version[1]) > committed + 1
            sums = f"{folder}/.{name}.crc"
            base = Path(self._place.base)
            if sums in self._all and not ahead and not _fits(base / file, base / sums):
                raise damaged(self._place.name(file), "its checksum is wrong")


def _upto(data: bytes) -> int | None:
    """Return the arrival number in one of Spark's offset files, or None."""
    try:
        return int(json.loads(data.decode().splitlines()[-1])["upto"])
    except (ValueError, KeyError, TypeError, IndexError):
        return None


def _fits(path: Path, sums: Path) -> bool:
    """Return whether a file matches Hadoop's checksum file: a CRC of four bytes for each block, such as 512 bytes."""
    found = sums.read_bytes()
    if found[:4] != b"crc\0" or len(found) < 8:
        return False
    step = int.from_bytes(found[4:8], "big")
    data = path.read_bytes()
    if step <= 0 or len(found) - 8 != 4 * -(-len(data) // step):
        return False
    view = memoryview(data)
    made = [checksum(view[at : at + step]).to_bytes(4, "big") for at in range(0, len(data), step)]
    return b"".join(made) == found[8:]


def _verify_deliveries(place: Place, records: Sequence[Record], commit: Commit | None) -> None:
    results, letters = place.files("results"), place.files("letters")
    for record in records:
        for output, (file, size, _) in record.results.items():
            relative = f"results/{quote_name(output)}/{file}"
            name, found = place.name(relative), results.get(relative)
            if found != size:
                what = "missing" if found is None else f"damaged: {found} bytes, not {size}"
                raise RunError(f"output '{output}': '{name}' is {what}; {RESTORE}")
            if place.local:
                verify_table(name)
        if record.letters is not None and f"letters/{record.letters}.json" not in letters:
            raise missing(place.name(f"letters/{record.letters}.json"))
    newest = -1 if commit is None else commit.sequence
    for file in letters:
        match = _LETTERS.fullmatch(file)
        if match is not None and int(match[1]) > newest:
            raise RunError(
                f"the log's commit '{place.name(f'log/commits/{int(match[1]):012d}.json')}' is missing: "
                f"'{place.name(file)}' has its dead letters; {RESTORE}"
            )
        read_letters(place, file)


def read_letters(place: Place, file: str) -> list[tuple[str, str, str, str]]:
    """Return the dead letters in a file; raise a RunError that names it if it is damaged."""
    with intact(f"'{place.name(file)}'"):
        found = unseal(place.read(file))
        if file != f"letters/{found['name']}.json":
            raise ValueError(f"it is '{found['name']}.json'")
        return [(row[0], row[1], row[2], row[3]) for row in found["letters"]]
