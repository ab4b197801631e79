"""Numbered records, each one line of JSON with a checksum: the commits of a log, the journal of a query.

`<number>.json` holds one record. Every FOLD of them are folded into `<last number>.jsonl`, so that many are read from
few files. Every file is written atomically.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from headway.storage.checked import RESTORE, intact
from headway.storage.filesystems import TEMPORARY, Place

FOLD = 256
"""How many single records are folded into one file."""

_R = TypeVar("_R")


class Records(Generic[_R]):
    """The records in one folder. Used by one thread at a time; raises what the file system raises."""

    def __init__(
        self,
        place: Place,
        names: str,
        what: str,
        parse: Callable[[bytes], _R],
        sync: bool = True,
        advice: str = RESTORE,
    ) -> None:
        """Files have `names` such as ``journal/0s/{:010d}``; messages call one `what`; `parse` reads a line."""
        self._place, self._names, self._what, self._parse = place, names, what, parse
        self._sync, self._advice = sync, advice
        self._held: dict[str, dict[int, bytes]] = {"jsonl": {}, "json": {}}  # by suffix and number: contents
        self.unwritten = False
        """Whether the newest record is empty: where files appear before they are complete, its write never returned."""

    def file(self, number: int, suffix: str = "json") -> str:
        """Return the name of a file within the place."""
        return f"{self._names.format(number)}.{suffix}"

    def recover(self, sizes: Mapping[str, int], floor: int = 0) -> tuple[list[_R], list[str]]:
        """Return the records held, in order, and the files to delete: temporary, folded, or entirely before the floor.

        `sizes` are the files of the folder. A RunError names one that is damaged.
        """
        waste = [file for file in sizes if file.endswith(TEMPORARY)]
        for file in sorted(sizes):
            stem, _, suffix = file.rpartition("/")[2].partition(".")
            if stem.isdecimal() and suffix in self._held:
                self._held[suffix][int(stem)] = b""
        folded, newest = (max(self._held[suffix], default=-1) for suffix in ("jsonl", "json"))
        self.unwritten = newest > folded and sizes[self.file(newest)] == 0
        if self.unwritten:
            waste.append(self.file(newest))
            del self._held["json"][newest]
        waste += self._leave_out(floor, folded)
        files = [(suffix, number) for suffix, some in self._held.items() for number in some]
        return [record for records in self._place.each(self._read, files) for record in records], waste

    def _read(self, which: tuple[str, int]) -> list[_R]:
        suffix, number = which
        file = self.file(number, suffix)
        with intact(f"{self._what} '{self._place.name(file)}'", self._advice):
            data = self._place.read(file)
            self._held[suffix][number] = data if suffix == "json" else b""
            return [self._parse(line) for line in data.splitlines()]

    def _leave_out(self, floor: int, folded: int = -1) -> list[str]:
        """Hold no longer what is before the floor, or folded; return these files."""
        least = {"jsonl": floor, "json": max(floor, folded + 1)}
        waste = []
        for suffix, some in self._held.items():
            waste += [self.file(number, suffix) for number in some if number < least[suffix]]
            self._held[suffix] = {number: data for number, data in some.items() if number >= least[suffix]}
        return waste

    def write(self, number: int, line: bytes) -> None:
        """Make a record durable and visible: a new one, or the newest again."""
        singles = self._held["json"]
        if len(singles) >= FOLD and number not in singles:
            last = max(singles)
            self._place.write(self.file(last, "jsonl"), b"".join(singles.values()), sync=self._sync)
            self._held["jsonl"][last] = b""
            self._place.delete(self._leave_out(0, last))
        self._place.write(self.file(number), line, sync=self._sync)
        self._held["json"][number] = line

    def forget(self, floor: int) -> None:
        """Delete the files that are entirely before a number."""
        self._place.delete(self._leave_out(floor))

    def remove(self, number: int) -> None:
        """Delete the newest record, if it has a file of its own."""
        if self._held["json"].pop(number, None) is not None:
            self._place.delete([self.file(number)])
