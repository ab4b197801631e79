"""How history is read, and what that costs."""

from __future__ import annotations

from dataclasses import dataclass

_OPENING = 1e-3
_BYTE = 2e-9
_ROW = 60e-9
"""Rough seconds for a file, a byte of pages and a tuple, for comparisons; measured by `benchmarks.history`."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a read would take: of the files, row groups, tuples and bytes of pages that there are, and in memory.

    `way` is ``lookup`` (of keys), ``scan``, or ``memory`` if no file is read.
    """

    way: str
    files: int
    of_files: int
    groups: int
    of_groups: int
    rows: int
    bytes: int
    of_bytes: int
    unwritten: int
    """Tuples that are still in memory, all of which are looked at."""

    @property
    def seconds(self) -> float:
        """Roughly how long it takes one core."""
        return self.files * _OPENING + self.bytes * _BYTE + (self.rows + self.unwritten) * _ROW

    def __str__(self) -> str:
        """Say it for `explain`: ``key lookup in 3 of 120 files, 5 of 4,000 row groups, 0.2 of 900 MB``."""
        memory = f"{self.unwritten:,} tuples in memory" if self.unwritten else ""
        if self.way == "memory":
            return memory or "nothing to read"
        name = "key lookup" if self.way == "lookup" else "scan"
        return (
            f"{name} in {self.files:,} of {self.of_files:,} files, {self.groups:,} of {self.of_groups:,} row groups, "
            f"{self.bytes / 1e6:,.1f} of {self.of_bytes / 1e6:,.1f} MB"
        ) + (f", and {memory}" if memory else "")
