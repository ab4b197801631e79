"""What is known of a file of history without opening it; positions; which files a read concerns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from headway.history.kept import HIDDEN, LAST_PLACE, Kept, Moment, Position
from headway.history.keys import Bound, Keys

END = Position(2**63 - 1, LAST_PLACE)
"""The position after every tuple."""


@dataclass(frozen=True, slots=True)
class HistoryFile:
    """What is known of a file without opening it; goes through JSON.

    `data` are the bytes of its pages, `raw` those of its columns in memory. `dense` says that every arrival number from
    the first to the last has one tuple. `low` and `high` are times, without those that are NULL or NaN, of which there
    are `untimed`. `key_low` and `key_high` are None if there are none, or too long. `footer` is the footer's length,
    `crc` its checksum.
    """

    name: str
    rows: int
    bytes: int
    data: int
    raw: int
    groups: int
    first: Position
    last: Position
    dense: bool
    low: Moment | None
    high: Moment | None
    untimed: int
    key_low: Bound | None
    key_high: Bound | None
    nulls: int
    nans: bool
    footer: int
    crc: int

    def to_json(self) -> dict[str, Any]:
        """Return the record as JSON has it."""
        values = {name: getattr(self, name) for name in self.__slots__}
        return {name: {"hex": value.hex()} if isinstance(value, bytes) else value for name, value in values.items()}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> HistoryFile:
        """Read what `to_json` returned; raises a LookupError, TypeError or ValueError if it is something else."""
        read: dict[str, Any] = {
            name: bytes.fromhex(value["hex"]) if isinstance(value, dict) else value for name, value in values.items()
        }
        if read.keys() != set(cls.__slots__):
            raise ValueError("a file's record does not have the members that it should have")
        return cls(**{**read, "first": Position(*read["first"]), "last": Position(*read["last"])})


def file_schema(kept: Kept) -> pa.Schema:
    """Return the fields of a file: the user's, then the hidden ones."""
    hidden = [pa.field(name, type_, nullable=False) for name, type_ in HIDDEN]
    return pa.schema([*kept.schema.to_arrow(), *hidden])


def position(value: Position | int | tuple[int, int]) -> Position:
    """Return a position; a number alone means all of its tuples."""
    return Position(value, LAST_PLACE) if isinstance(value, int) else Position(*value)


def overlaps(file: HistoryFile, after: Position, upto: Position, keys: Keys | None) -> bool:
    """Return whether a file may have wanted tuples."""
    if file.last <= after or file.first > upto:
        return False
    return keys is None or keys.overlaps(file.key_low, file.key_high, file.nulls, file.nans)
