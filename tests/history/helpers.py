"""A naive history, a list of tuples, and small trains."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from headway.columns import UNREAD
from headway.durations import Duration
from headway.history import History, Kept, Layout, Position, Writers
from headway.network.schema import Schema
from headway.trains import Train

TINY = Layout(flush=4_000, largest=30_000, merge=3, groups=4, least=2, most=8)
"""Files of a few tuples, so that small examples have many files and row groups."""
EPOCH = datetime(2020, 1, 1, tzinfo=UTC)


class Tuple(NamedTuple):
    """A tuple as the naive history has it; times are plain numbers, None for NULL and NaN."""

    number: int
    place: int
    stamp: int
    row: tuple[Any, ...]
    time: float | None


def make_train(schema: Schema, rows: Sequence[tuple[Any, ...]], numbers: Sequence[int], stamps: Sequence[int]) -> Train:
    """Return a train of Python rows."""
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(schema)
    arrays = [pa.array(list(column), type_) for column, type_ in zip(columns, schema.types, strict=True)]
    batch = pa.RecordBatch.from_arrays(arrays, schema=schema.to_arrow())
    return Train.from_batch(batch, np.array(stamps, np.int64), np.array(numbers, np.int64))


def shown(schema: Schema, trains: Iterable[Train]) -> list[tuple[int, int, tuple[Any, ...]]]:
    """Return number, timestamp and row of every tuple; unread fields are "-"."""
    found: list[tuple[int, int, tuple[Any, ...]]] = []
    for train in trains:
        assert len(train)
        assert train.progress == train.numbers[-1] - 1
        columns: list[list[Any]] = []
        for column, name in zip(train.columns, schema.names, strict=True):
            if column is UNREAD:
                columns.append(["-"] * len(train))
            else:
                one = Train((column,), train.stamps, train.numbers)
                columns.append(one.to_batch(pa.schema([schema.to_arrow().field(name)])).column(0).to_pylist())
        found += list(zip(train.numbers.tolist(), train.stamps.tolist(), zip(*columns, strict=True), strict=True))
    return found


def nan_safe(value: Any) -> Any:
    """Return a value that equals itself."""
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


def plain(rows: Iterable[Any]) -> list[Any]:
    """Return rows that can be compared."""
    return [(number, stamp, tuple(map(nan_safe, row))) for number, stamp, row in rows]


@dataclass
class Naive:
    """What a history must do, as lists."""

    kept: Kept
    time: Callable[[tuple[Any, ...], int], float | None]
    """The time of a row and a timestamp."""
    tuples: list[Tuple] = field(default_factory=list)

    def append(self, rows: Sequence[tuple[Any, ...]], numbers: Sequence[int], stamps: Sequence[int]) -> None:
        for row, number, stamp in zip(rows, numbers, stamps, strict=True):
            last = self.tuples[-1] if self.tuples else None
            place = last.place + 1 if last is not None and last.number == number else 0
            self.tuples.append(Tuple(number, place, stamp, row, self.time(row, stamp)))

    def covered(self) -> list[Tuple]:
        keep = self.kept.keep
        if keep is None:
            return self.tuples
        if isinstance(keep, int):
            return self.tuples[-keep:]
        times = [one.time for one in self.tuples if one.time is not None]
        if not times:
            return self.tuples
        limit = max(times) - self.kept.reach(keep)
        first = next(one.number for one in self.tuples if one.time is not None and one.time >= limit)
        return [one for one in self.tuples if one.number >= first]

    def since(self, since: Duration | None, upto: int) -> tuple[int, bool]:
        """Return h, and whether nothing that belongs to it is gone."""
        there = [one for one in self.tuples if one.number <= upto]
        kept = [one for one in self.covered() if one.number <= upto]
        whole = [one for one in kept if one.number > kept[0].number or kept[0].place == 0]
        gone = [one for one in there if one not in whole]
        if since is None:
            if not kept:
                return upto + 1, len(self.covered()) == len(self.tuples)
            return kept[0].number + (kept[0].place > 0), len(self.covered()) == len(self.tuples)
        times = [one.time for one in there if one.time is not None]
        if not times:
            return upto + 1, True
        limit = max(times) - self.kept.reach(since)
        found = [one.number for one in whole if one.time is not None and one.time >= limit]
        lost = [one for one in gone if one.time is not None and one.time >= limit]
        return (found[0] if found else upto + 1), not lost

    def read(self, after: Position, upto: Position, wanted: Callable[[Any], bool]) -> list[Any]:
        key = None if self.kept.key is None else self.kept.schema.index(self.kept.key)
        return [
            (one.number, one.stamp, one.row)
            for one in self.covered()
            if after < (one.number, one.place) <= upto and wanted(one.number if key is None else one.row[key])
        ]


def store(path: Path, kept: Kept, writers: Writers | None = None, layout: Layout = TINY) -> History:
    """Open a history that works only when told to, unless writers are given."""
    return History(str(path), kept, Writers(threads=0) if writers is None else writers, layout, sync=False)


def moment(value: int) -> datetime:
    """Return a timestamp that many seconds after the epoch of these tests."""
    return EPOCH + timedelta(seconds=value)
