"""Tuples with their places: what files and readers of history are made of."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from headway.columns import UNREAD, Column, Indices, Int64s, empty
from headway.history.kept import Kept, Moment, Position
from headway.trains import Aligned, Train, join_trains

_ROOM = 4
"""The positions of a file are laid out in a table to sort them if it has at most so many entries for each tuple."""


@dataclass(frozen=True, slots=True)
class Rows(Aligned):
    """Tuples of an arc with arrival numbers, places and timestamps."""

    numbers: Int64s
    places: Int64s
    stamps: Int64s
    columns: tuple[Column, ...]

    @classmethod
    def of(cls, trains: Sequence[Train], place: int = 0) -> Rows:
        """Return the tuples of consecutive trains, at least one; `place` is that of the first."""
        train = join_trains(trains)
        return cls(train.numbers, count_places(train.numbers, place), train.stamps, train.columns)

    @classmethod
    def none(cls, kept: Kept) -> Rows:
        """Return no tuples."""
        nothing = np.zeros(0, np.int64)
        return cls(nothing, nothing, nothing, tuple([empty(type_) for type_ in kept.schema.types]))

    def position(self, at: int) -> Position:
        """Return the position of one tuple."""
        return Position(int(self.numbers[at]), int(self.places[at]))

    def slice(self, start: int, stop: int) -> Rows:
        """Return a part, without copying."""
        columns = tuple([column.slice(start, stop) for column in self.columns])
        return Rows(self.numbers[start:stop], self.places[start:stop], self.stamps[start:stop], columns)

    def within(self, after: Position, upto: Position) -> Indices | None:
        """Return where the tuples after a position and up to another are; None for all of them."""
        numbers, places = self.numbers, self.places
        inside = (numbers > after.number) | ((numbers == after.number) & (places > after.place))
        inside &= (numbers < upto.number) | ((numbers == upto.number) & (places <= upto.place))
        return None if inside.all() else np.flatnonzero(inside)

    def in_order(self) -> Rows:
        """Return the tuples in the order of arrival."""
        order = arrival_order(self.numbers, self.places)
        return self if order is None else self.take(order)

    def train(self, wanted: Collection[int] | None = None) -> Train:
        """Return tuples that are in order as a train, with only the columns wanted.

        Its progress is the arrival number before the last, because more of the last may follow.
        """
        columns = self.columns
        if wanted is not None:
            columns = tuple([column if at in wanted else UNREAD for at, column in enumerate(columns)])
        return Train(columns, self.stamps, self.numbers, int(self.numbers[-1]) - 1)


def count_places(numbers: Int64s, place: int) -> Int64s:
    """Return the place of each tuple among those of its number; the first has `place`."""
    count = len(numbers)
    places = np.zeros(count, np.int64)
    same = numbers[1:] == numbers[:-1]
    if same.any():
        starts = np.flatnonzero(np.concatenate([[True], ~same]))
        places += np.arange(count) - np.repeat(starts, np.diff(starts, append=count))
    if place and count:
        places[: int(np.searchsorted(numbers, numbers[0], "right"))] += place
    return places


def arrival_order(numbers: Int64s, places: Int64s) -> Indices | None:
    """Return the order of arrival of tuples, whose positions are unique, or None if they are in it."""
    count = len(numbers)
    if count < 2 or bool((numbers[1:] > numbers[:-1]).all()):
        return None
    low, width = int(numbers.min()), int(places.max()) + 1
    span = int(numbers.max()) - low + 1
    if span * width >= 2**62:
        return np.lexsort((places, numbers))
    ranks = numbers - low if width == 1 else (numbers - low) * width + places
    if span * width > _ROOM * count:
        return np.argsort(ranks)
    table = np.full(span * width, -1, np.int64)
    table[ranks] = np.arange(count)
    return table if len(table) == count else table[table >= 0]


def moments(kept: Kept, rows: Rows) -> Column:
    """Return the times of tuples."""
    return Column(rows.stamps) if kept.time is None else rows.columns[kept.schema.index(kept.time)]


def extent(times: Column) -> tuple[Moment, Moment] | None:
    """Return the smallest and the largest time, or None if there is none besides NULL and NaN."""
    values = times.values if times.valid is None else times.values[times.valid]
    if values.dtype.kind == "f":
        values = values[~np.isnan(values)]
    return (values.min().item(), values.max().item()) if len(values) else None
