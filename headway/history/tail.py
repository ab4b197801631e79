"""The newest tuples of a history, which are not in files yet."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import numpy as np

from headway.history.kept import START, Kept, Moment, Position
from headway.history.rows import Rows, count_places, extent, moments
from headway.trains import Train

_OBJECTS = 1024
"""Bytes of a train besides its columns."""


class Part:
    """A train that was appended, and the positions of its first and last tuple."""

    __slots__ = ("_span", "bytes", "first", "last", "train")

    def __init__(self, train: Train, first: Position, last: Position) -> None:
        self.train = train
        self.first = first
        self.last = last
        self.bytes = train.nbytes + _OBJECTS
        self._span: tuple[Moment, Moment] | bool | None = False

    def __len__(self) -> int:
        return len(self.train)

    def rows(self) -> Rows:
        """Return the tuples with their places."""
        return Rows.of([self.train], self.first.place)

    def span(self, kept: Kept) -> tuple[Moment, Moment] | None:
        """Return the smallest and the largest time, if there is one; looked at once."""
        if isinstance(self._span, bool):
            self._span = extent(moments(kept, self.rows()))
        return self._span


class Tail:
    """Parts in the order of arrival. Used by one thread at a time.

    `edge` is the position of the last tuple. After a restart tuples may come again, from the first of some arrival
    number on: those up to the edge are left out.
    """

    def __init__(self, edge: Position) -> None:
        self.parts: list[Part] = []
        self.edge = edge
        self.bytes = 0
        self.rows = 0
        self._again: Position | None = None if edge == START else START

    def add(self, train: Train) -> int:
        """Keep a train of at least one tuple; return its bytes. Raises a ValueError if it is out of order."""
        if self._again is not None:
            train = self._unseen(train, self._again)
            if not len(train):
                return 0
        numbers = train.numbers
        count = len(numbers)
        first = int(numbers[0])
        last = first if count == 1 else int(numbers[-1])
        if first < self.edge.number:
            raise ValueError(f"arrival number {first} comes after {self.edge.number}")
        place = self.edge.place + 1 if first == self.edge.number else 0
        if last == first:
            end = place + count - 1
        else:
            end = 0 if numbers[-2] != last else count - 1 - int(numbers.searchsorted(last))
        part = Part(train, Position(first, place), Position(last, end))
        self.parts.append(part)
        self.edge = part.last
        self.bytes += part.bytes
        self.rows += count
        return part.bytes

    def _unseen(self, train: Train, seen: Position) -> Train:
        """Return the tuples of a train that were not there before a restart."""
        numbers = train.numbers
        places = count_places(numbers, seen.place + 1 if numbers[0] == seen.number else 0)
        last = Position(int(numbers[-1]), int(places[-1]))
        self._again = last if last <= self.edge else None
        new = (numbers > self.edge.number) | ((numbers == self.edge.number) & (places > self.edge.place))
        known = len(numbers) - int(np.count_nonzero(new))
        return train.slice(known, len(numbers)) if known else train

    def first_parts(self, bytes: int) -> list[Part]:
        """Return the oldest parts, of about so many bytes."""
        total = 0
        for at, part in enumerate(self.parts):
            total += part.bytes
            if total >= bytes:
                return self.parts[: at + 1]
        return self.parts[:]

    def remove(self, count: int) -> None:
        """Remove the oldest parts: they are in a file."""
        gone, self.parts = self.parts[:count], self.parts[count:]
        self.bytes -= sum([part.bytes for part in gone])
        self.rows -= sum([len(part) for part in gone])

    def after(self, position: Position, rows: int) -> list[Part]:
        """Return the parts with tuples after a position, until these are at least so many."""
        start = stop = bisect_right(self.parts, position, key=lambda part: part.last)
        while stop < len(self.parts) and rows > 0:
            rows -= len(self.parts[stop])
            stop += 1
        return self.parts[start:stop]


def join_parts(parts: Sequence[Part]) -> Rows:
    """Return the tuples of consecutive parts."""
    return Rows.of([part.train for part in parts], parts[0].first.place)
