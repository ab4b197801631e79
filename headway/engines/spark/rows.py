"""Rows: what travels between the reader, the shards and the driver."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa

from headway.engines.letters import LetterRow
from headway.engines.spark.wire import LETTERS, READINGS
from headway.trains import Tick


class Row(NamedTuple):
    """What travels: the key of the shard it is for, the lane, the first arrival number, and bytes."""

    shard: int
    lane: int
    first: int
    train: bytes | pa.Buffer


class Marks(NamedTuple):
    """What a micro-batch brings beside tuples."""

    progress: int
    ticks: tuple[Tick, ...]
    end: bool
    now: int
    kept: tuple[tuple[int, float], ...] = ()
    """From which arrival numbers on which share of the tuples was kept, for boxes that estimate."""
    states: tuple[tuple[int, int], ...] = ()
    """By shard that has one: the checksum of its state before this micro-batch."""

    def to_json(self) -> bytes:
        """Write to bytes."""
        return json.dumps([self.progress, self.ticks, self.end, self.now, self.kept, self.states]).encode()

    @classmethod
    def from_json(cls, data: bytes) -> Marks:
        """Read what `to_json` wrote."""
        progress, ticks, end, now, kept, states = json.loads(data)
        pairs = tuple((one[0], one[1]) for one in kept), tuple((one[0], one[1]) for one in states)
        return cls(progress, tuple(Tick(*tick) for tick in ticks), end, now, *pairs)


@dataclass
class Readings:
    """What boxes did in one task: by box calls, tuples in, tuples out, nanoseconds, bytes in, ignored."""

    boxes: dict[str, list[int]] = field(default_factory=dict)
    letters: list[LetterRow] = field(default_factory=list)
    deadline: int | None = None
    """When a shard wants a tick."""
    sifted: dict[str, list[Any]] = field(default_factory=dict)
    """By source: tuples seen and dropped by the unit's drop box, and why."""
    state: int | None = None
    """The checksum of a shard's new state."""

    def note(self, box: str, tuples_in: int, tuples_out: int, spent: int, bytes_in: int, ignored: int) -> None:
        """Count one call."""
        mine = self.boxes.setdefault(box, [0] * 6)
        for at, amount in enumerate((1, tuples_in, tuples_out, spent, bytes_in, ignored)):
            mine[at] += amount

    def sift(self, source: str, seen: int, dropped: int, reason: str) -> None:
        """Count what a drop box saw and dropped of a source."""
        self.sifted[source] = [seen, dropped, reason]

    def wish(self, deadline: int | None) -> None:
        """Want a tick at this moment, or earlier if somebody else does."""
        if deadline is not None:
            self.deadline = deadline if self.deadline is None else min(self.deadline, deadline)

    def rows(self, key: int, shard: bool) -> list[Row]:
        """Return all of it as rows for the driver; only a shard speaks about deadlines."""
        report: dict[str, Any] = {"boxes": self.boxes}
        if shard:
            report["deadline"] = self.deadline
            if self.state is not None:
                report["state"] = self.state
        if self.sifted:
            report["sifted"] = self.sifted
        found = [Row(key, READINGS, 0, json.dumps(report).encode())]
        if self.letters:
            found.append(Row(key, LETTERS, 0, json.dumps(self.letters).encode()))
        return found


def to_arrow_rows(rows: Sequence[Row]) -> pa.RecordBatch:
    """Return rows as a record batch in the schema in which they travel."""
    return pa.RecordBatch.from_arrays(
        [
            pa.array([row.shard for row in rows], pa.int32()),
            pa.array([row.lane for row in rows], pa.int32()),
            pa.array([row.first for row in rows], pa.int64()),
            pa.array([bytes(row.train) for row in rows], pa.binary()),
        ],
        names=["shard", "lane", "first", "train"],
    )
