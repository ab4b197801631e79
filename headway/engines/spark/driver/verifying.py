"""Is a state directory whole? Looked at before anything is continued, and before Spark is started.

What Headway writes carries checksums. What Spark writes is held against the journal, and on a local disk against the
checksum files that Spark writes beside its own. What is missing or damaged is named; nothing is read past it. What a
process leaves that was killed in the middle is no damage: it lies behind the last thing that counts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from headway.engines.spark.driver.journal import SIEVES, Journal, Record, journals
from headway.errors import RunError
from headway.storage.checked import checksum, unseal, verify_table
from headway.storage.filesystems import FAILURES, Place, reason
from headway.storage.log import Commit, verify_log
from headway.storage.segments import quote_name
from headway.trains import NOTHING

FORMAT = 2
"""What this version writes. Format 1 had no checksums."""
PLAN = "plan.json"
_WHOLE = {"shards", "spread", "sources", "next", "units", "token"}
"""What a plan holds beside its format."""
_MEND = "restore it, or give another --state"
_VERSION = re.compile(r"(\d+)[_.][^/]*$")
_LETTERS = re.compile(r"letters/log-(\d+)\.json")


class Found(NamedTuple):
    """What an earlier run has left."""

    plan: dict[str, Any]
    journals: Mapping[str, Journal]
    records: Mapping[str, list[Record]]
    commit: Commit | None
    """The newest commit of the log."""

    @property
    def ended(self) -> bool:
        """Whether all inputs have ended: the end mark is the last thing that enters a log."""
        return self.commit is not None and self.commit.end is not None


def verify(place: Place) -> Found | None:
    """Return what lies in a state directory, or None if it is new; a RunError names what is missing or damaged.

    Nobody else may use the directory meanwhile.
    """
    plan = read_plan(place)
    if plan is None:
        return None
    commit, forgotten = verify_log(place.name("log"))
    spark = place.files("checkpoints")
    found: dict[str, Journal] = {}
    records: dict[str, list[Record]] = {}
    begins = {one["id"]: int(one["begin"]) for one in plan["units"]}
    for unit in sorted({*begins, *journals(place), *(file.split("/")[1] for file in spark)}):
        found[unit], records[unit] = Journal.open(place, unit)
        _Checkpoint(place, unit, spark).check(records[unit], begins.get(unit), commit, forgotten)
    _verify_results(place, records)
    _verify_letters(place, plan["token"], records, commit)
    if any(one[-1].sieves for one in records.values() if one) and SIEVES not in place.files(""):
        raise RunError(f"'{place.name(SIEVES)}' is missing; {_MEND}")
    return Found(plan, found, records, commit)


def read_plan(place: Place) -> dict[str, Any] | None:
    """Return the plan in a state directory; None if there is nothing at all."""
    name = place.name(PLAN)
    try:
        if PLAN not in place.files(""):
            if any(place.files(folder) for folder in ("log", "checkpoints", "results", "journal")):
                raise RunError(f"'{name}' is missing; {_MEND}")
            return None
        data = place.read(PLAN)
    except FAILURES as error:
        raise RunError(
            f"cannot read the state '{place.root}': {reason(error)}; give a directory to write to"
        ) from error
    try:
        plan = unseal(data)
        if plan["format"] == FORMAT and not plan.keys() >= _WHOLE:
            raise ValueError("it is not whole")
    except (ValueError, KeyError, TypeError) as error:
        _refuse_other_format(place, data)
        raise RunError(f"'{name}' is damaged: {reason(error)}; {_MEND}") from error
    if plan["format"] != FORMAT:
        _refuse_other_format(place, data)
    return plan


def _refuse_other_format(place: Place, data: bytes) -> None:
    """Tell a state of another version from a damaged one."""
    try:
        format_ = json.loads(data)["format"]
    except (ValueError, KeyError, TypeError):
        return
    if isinstance(format_, int) and format_ != FORMAT:
        raise RunError(
            f"the state '{place.root}' was written in format {format_}, and this version reads format {FORMAT}; "
            "give another --state"
        )


class _Checkpoint:
    """Spark's files of one unit, held against the journal."""

    def __init__(self, place: Place, unit: str, files: Mapping[str, int]) -> None:
        self._place = place
        self._folder = f"checkpoints/{unit}"
        self._files = [file for file in files if file.startswith(f"{self._folder}/")]
        self._all = set(self._files)

    def check(self, records: list[Record], begin: int | None, commit: Commit | None, forgotten: int) -> None:
        """Raise a RunError for what does not fit; `begin` is None for a unit that is no longer in the network."""
        last = len(records) - 1
        committed = max(self._numbers("commits"), default=-1)
        if committed > last:
            raise RunError(
                f"the journal of '{self._place.name(self._folder)}' lacks micro-batch {committed}, which Spark has "
                f"committed: '{self._place.name(self._folder.replace('checkpoints', 'journal'))}' is damaged; {_MEND}"
            )
        if begin is None:
            return
        if committed < last - 1:
            raise self._missing(f"commits/{last - 1}")
        if self._all:
            self._check_text("metadata", 1)
        if committed >= 0:
            self._check_text(f"commits/{committed}", 2)
        issued = NOTHING if commit is None else commit.issued
        for record in records[max(0, committed) :]:
            self._check_offset(record)
        self._check_ahead(last, records[-1].upto if records else begin, issued)
        position = records[committed].upto if committed >= 0 else begin
        if position < forgotten:
            raise self._missing(f"commits/{last}")
        if records and records[-1].upto > issued:
            raise RunError(
                f"the log '{self._place.name('log')}' ends at arrival number {issued}, and "
                f"'{self._place.name(self._folder)}' has processed {records[-1].upto}: a file in "
                f"'{self._place.name('log/commits')}' is missing; {_MEND}"
            )
        if self._place.local:
            self._check_sums(committed)

    def _numbers(self, folder: str) -> list[int]:
        start = f"{self._folder}/{folder}/"
        names = [file.removeprefix(start) for file in self._files if file.startswith(start)]
        return [int(name) for name in names if name.isdecimal()]

    def _check_offset(self, record: Record) -> None:
        relative = f"{self._folder}/offsets/{record.batch}"
        if relative not in self._all:
            raise self._missing(f"offsets/{record.batch}")
        data = self._place.read(relative)
        if _upto(data) != record.upto or (record.offset is not None and checksum(data) != record.offset):
            raise RunError(f"'{self._place.name(relative)}' is damaged: it is not what the journal says; {_MEND}")

    def _check_text(self, file: str, lines: int) -> None:
        """Look at a small file of Spark's: so many lines, the last of them JSON, after a version."""
        relative = f"{self._folder}/{file}"
        if relative not in self._all:
            raise self._missing(file)
        try:
            *before, last = self._place.read(relative).decode().splitlines()
            good = before == ["v1"][: lines - 1] and isinstance(json.loads(last), dict)
        except ValueError:
            good = False
        if not good:
            raise RunError(f"'{self._place.name(relative)}' is damaged: it is not what Spark writes; {_MEND}")

    def _check_ahead(self, last: int, after: int, issued: int) -> None:
        """Look at the offset of a micro-batch that was begun and not delivered."""
        ahead = [number for number in self._numbers("offsets") if number > last]
        for number in sorted(ahead):
            relative = f"{self._folder}/offsets/{number}"
            upto = _upto(self._place.read(relative))
            # A query that is stopped before it has run may write down that its first micro-batch ends where it began.
            least = after if number == 0 else after + 1
            if number > last + 1 or upto is None or not least <= upto <= max(issued, least):
                raise RunError(
                    f"'{self._place.name(relative)}' is damaged: micro-batch {number} cannot end at arrival number "
                    f"{upto}; {_MEND}"
                )

    def _check_sums(self, committed: int) -> None:
        """Hold Spark's files against its checksum files; what lies behind the last commit may be half written."""
        for file in self._files:
            folder, _, name = file.rpartition("/")
            if name.startswith("."):
                continue  # the checksums themselves, and what was not complete when a process was killed
            version = _VERSION.match(name)
            ahead = "/state/" in file and version is not None and int(version[1]) > committed + 1
            sums = f"{folder}/.{name}.crc"
            if (
                sums in self._all
                and not ahead
                and not _fits(Path(self._place.base, file), Path(self._place.base, sums))
            ):
                raise RunError(f"'{self._place.name(file)}' is damaged: its checksum is wrong; {_MEND}")

    def _missing(self, file: str) -> RunError:
        return RunError(f"'{self._place.name(f'{self._folder}/{file}')}' is missing; {_MEND}")


def _upto(data: bytes) -> int | None:
    """Return the arrival number in one of Spark's offset files, or None if there is none."""
    try:
        return int(json.loads(data.decode().splitlines()[-1])["upto"])
    except (ValueError, KeyError, TypeError, IndexError):
        return None


def _fits(path: Path, sums: Path) -> bool:
    """Return whether a file has the checksums that Hadoop wrote for it: four bytes for every 512, say."""
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


def _verify_results(place: Place, records: Mapping[str, list[Record]]) -> None:
    present = place.files("results")
    for unit in records.values():
        for record in unit:
            for output, (file, size, _) in record.results.items():
                relative = f"results/{quote_name(output)}/{file}"
                if relative not in present:
                    raise RunError(f"output '{output}': '{place.name(relative)}' is missing; {_MEND}")
                if present[relative] != size:
                    raise RunError(
                        f"output '{output}': '{place.name(relative)}' is damaged: {present[relative]} bytes, not "
                        f"{size}; {_MEND}"
                    )
                if place.local:
                    verify_table(place.name(relative))


def _verify_letters(place: Place, token: str, records: Mapping[str, list[Record]], commit: Commit | None) -> None:
    present = place.files("letters")
    for unit in records.values():
        for record in unit:
            if record.letters is not None and f"letters/{record.letters}.json" not in present:
                raise RunError(f"'{place.name(f'letters/{record.letters}.json')}' is missing; {_MEND}")
    newest = -1 if commit is None else commit.sequence
    for file in present:
        match = _LETTERS.fullmatch(file)
        if match is not None and int(match[1]) > newest:
            raise RunError(
                f"the log's commit '{place.name(f'log/commits/{int(match[1]):012d}.json')}' is missing: "
                f"'{place.name(file)}' has its dead letters; {_MEND}"
            )
        read_letters(place, file)


def read_letters(place: Place, file: str) -> list[tuple[str, str, str, str]]:
    """Return the dead letters in a file; a RunError names it if it is damaged."""
    try:
        found = unseal(place.read(file))
        if file != f"letters/{found['name']}.json":
            raise ValueError(f"it is '{found['name']}.json'")
        return [(row[0], row[1], row[2], row[3]) for row in found["letters"]]
    except (*FAILURES, ValueError, KeyError, TypeError, IndexError) as error:
        raise RunError(f"'{place.name(file)}' is damaged: {reason(error)}; {_MEND}") from error
