"""The manifest of a history: which files there are. What it does not list does not exist.

Its first line has what concerns all of them, each of the others has a file's record. Both have checksums.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from headway.errors import RunError
from headway.history.footers import ADVICE
from headway.history.kept import START, Kept, Moment, Position, difference
from headway.history.records import HistoryFile
from headway.storage.checked import checksum, intact, seal, unseal
from headway.storage.filesystems import FAILURES, Place, reason

FORMAT = 1
"""The version of the files and of the manifest."""
MANIFEST = "manifest.jsonl"
_OWN = re.compile(r"(\d{12,}-\d+-\w+\.parquet|manifest\.jsonl)(\.tmp)?")


@dataclass(frozen=True, slots=True)
class Dropped:
    """What was deleted because `keep` no longer covers it: how many tuples, up to where, and their largest time."""

    rows: int = 0
    last: Position = START
    high: Moment | None = None

    def add(self, files: tuple[HistoryFile, ...]) -> Dropped:
        """Count the oldest files, too."""
        if not files:
            return self
        highs = [high for high in (self.high, *[file.high for file in files]) if high is not None]
        return Dropped(self.rows + sum([file.rows for file in files]), files[-1].last, max(highs, default=None))


@dataclass(frozen=True, slots=True)
class Manifest:
    """The files of a history, which cover its arc without gaps, in order."""

    files: tuple[HistoryFile, ...] = ()
    dropped: Dropped = Dropped()
    serial: int = 0
    """The number in the name of the next file."""

    @property
    def last(self) -> Position:
        """The last position in files, or deleted."""
        return self.files[-1].last if self.files else self.dropped.last

    def name(self, first: Position) -> str:
        """Return the name of the next file."""
        return file_name(first, f"{self.serial:06d}")


def file_name(first: Position, tag: str) -> str:
    """Return the name of a file that begins at a position; the tag, letters and digits, makes it unique.

    Files with such names are removed on opening if the manifest does not list them.
    """
    return f"{first.number:012d}-{first.place}-{tag}.parquet"


def write_manifest(place: Place, kept: Kept, manifest: Manifest, sync: bool) -> None:
    """Make a manifest durable and visible; raises what the file system raises."""
    dropped = manifest.dropped
    body = b"".join([_line(file) for file in manifest.files])
    values: dict[str, Any] = {
        "format": FORMAT,
        **kept.form(),
        "serial": manifest.serial,
        "dropped": {"rows": dropped.rows, "last": dropped.last, "high": dropped.high},
        "files": len(manifest.files),
        "sum": checksum(body),
    }
    place.write(MANIFEST, seal(values) + b"\n" + body, sync=sync)


@lru_cache(maxsize=65_536)
def _line(file: HistoryFile) -> bytes:
    """Return the line of a file. Cached, because all lines are written whenever one is new."""
    return json.dumps(file.to_json(), separators=(",", ":")).encode() + b"\n"


def open_manifest(place: Place, kept: Kept) -> Manifest:
    """Return what a place has, and remove files of a killed process that the manifest does not list.

    Raises a RunError that says what is wrong: another version of the format, a point with other fields, damage.
    """
    where = place.name(MANIFEST)
    try:
        sizes = place.files("")
        held = place.read(MANIFEST) if any(_base(name) == MANIFEST for name in sizes) else None
    except FAILURES as error:
        raise RunError(f"the history '{place.root}' cannot be opened: {reason(error)}") from error
    manifest = Manifest() if held is None else _parse(held, where, kept)
    listed = {file.name: file for file in manifest.files}
    present = {_base(name): size for name, size in sizes.items()}
    for file in manifest.files:
        if file.name not in present:
            raise RunError(f"history file '{place.name(file.name)}' is missing; {ADVICE}")
        if present[file.name] != file.bytes:
            raise RunError(
                f"history file '{place.name(file.name)}' is damaged: it has {present[file.name]:,} bytes instead of "
                f"{file.bytes:,}; {ADVICE}"
            )
    own = [name for name in present if _OWN.fullmatch(name) and name != MANIFEST]
    if held is None and any(name.endswith(".parquet") for name in own):
        raise RunError(f"history '{place.root}' has files, but not '{MANIFEST}', which lists them; {ADVICE}")
    place.delete([name for name in own if name not in listed])
    return manifest


def forget(place: Place, kept: Kept, sync: bool) -> None:
    """Let the history at a place begin anew, perhaps of other fields. Raises a RunError if that fails."""
    try:
        names = [_base(name) for name in place.files("")]
        write_manifest(place, kept, Manifest(), sync)  # first: what it does not list is removed in any case
        place.delete([name for name in names if _OWN.fullmatch(name) and name != MANIFEST])
    except FAILURES as error:
        raise RunError(f"the history '{place.root}' cannot be deleted: {reason(error)}") from error


def _base(name: str) -> str:
    return name.lstrip("/")


def _parse(data: bytes, where: str, kept: Kept) -> Manifest:
    with intact(f"the manifest '{where}'", "restore it, or delete this history"):
        head, _, body = data.partition(b"\n")
        values = unseal(head)
        version = values["format"]
    if version != FORMAT:
        raise RunError(
            f"the history of '{where}' has format {version}, and this version of Headway reads format {FORMAT}; "
            "open it with the version that wrote it, or delete it"
        )
    _check_form(values, where, kept)
    with intact(f"the manifest '{where}'", "restore it, or delete this history"):
        if checksum(body) != values["sum"]:
            raise ValueError("its checksum is wrong")
        dropped = values["dropped"]
        return Manifest(
            tuple([HistoryFile.from_json(json.loads(line)) for line in body.splitlines()]),
            Dropped(dropped["rows"], Position(*dropped["last"]), dropped["high"]),
            values["serial"],
        )


def _check_form(values: Mapping[str, Any], where: str, kept: Kept) -> None:
    changed = difference(values, kept.form())
    if changed:
        raise RunError(f"the history of '{where}' is of another point: {changed}; rename the point, or delete it")
