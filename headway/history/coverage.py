"""What `keep` covers and where `since` begins: from statistics, and from the few files that they leave open."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from headway.durations import Duration
from headway.history.footers import Footers
from headway.history.kept import START, Kept, Moment, Position, through
from headway.history.loading import load
from headway.history.manifest import Dropped
from headway.history.records import END, HistoryFile
from headway.history.rows import Rows, extent, moments
from headway.history.tail import Part
from headway.storage.filesystems import Place


@dataclass(frozen=True, slots=True)
class Since:
    """Where history begins for somebody who asked for so much of it.

    `number` is the arrival number h: everything from it on is to be read, and all of its tuples are kept. `complete`
    says that nothing before what is kept belongs to it, too. `oldest` is the first tuple that is kept, None if there
    is none, and `time` the smallest time that is kept, None if there is none.
    """

    number: int
    complete: bool
    oldest: Position | None
    time: Moment | None


@dataclass(frozen=True, slots=True)
class View:
    """What a history has at one moment."""

    place: Place
    kept: Kept
    footers: Footers
    files: Sequence[HistoryFile]
    parts: Sequence[Part]
    dropped: Dropped
    read: dict[str, Rows] = field(default_factory=dict)
    """By file, what was read of it for this view: positions and times."""

    @property
    def rows(self) -> int:
        """How many tuples there are."""
        return sum([file.rows for file in self.files]) + sum([len(part) for part in self.parts])

    def floor(self) -> Position:
        """Return the position up to which `keep` covers nothing."""
        keep = self.kept.keep
        if isinstance(keep, int):
            return self._nth(self.rows - keep)
        if keep is None:
            return START
        high = self.largest(END)
        found = None if high is None else self.first_at_least(high - self.kept.reach(keep), START, END)
        return START if found is None else through(found - 1)

    def _nth(self, count: int) -> Position:
        """Return the position of the tuple at a place, from 1, in the order of arrival."""
        if count <= 0:
            return START
        for file in self.files:
            if count == file.rows:
                return file.last
            if count < file.rows and file.dense:
                return Position(file.first.number + count - 1, 0)
            if count < file.rows:
                return self._read(file, START, END).in_order().position(count - 1)
            count -= file.rows
        for part in self.parts:
            if count <= len(part):
                return part.rows().position(count - 1)
            count -= len(part)
        raise IndexError(count)

    def largest(self, upto: Position) -> Moment | None:
        """Return the largest time up to a position, also of what was deleted; None if there is none."""
        highs = [self.dropped.high]
        for file in self.files:
            if file.last <= upto:
                highs.append(file.high)
            elif file.first <= upto:
                highs.append(_high(extent(moments(self.kept, self._read(file, START, upto)))))
        for part in self.parts:
            if part.last <= upto:
                highs.append(_high(part.span(self.kept)))
            elif part.first <= upto:
                highs.append(_high(extent(moments(self.kept, _cut(part.rows(), START, upto)))))
        return max([high for high in highs if high is not None], default=None)

    def first_at_least(self, limit: Moment, after: Position, upto: Position) -> int | None:
        """Return the smallest arrival number in a range of positions whose time is not before `limit`."""
        for unit in self._units(after, upto):
            inside = unit.first > after and unit.last <= upto
            if isinstance(unit, HistoryFile):
                low, high, untimed = unit.low, unit.high, unit.untimed
            else:
                low, high = unit.span(self.kept) or (None, None)
                untimed = 1
            if high is None or high < limit:
                continue
            if inside and not untimed and low is not None and low >= limit:
                return unit.first.number
            rows = self._read(unit, after, upto)
            times = moments(self.kept, rows)
            found = np.flatnonzero((times.values >= limit) & times.is_valid())
            if len(found):
                return int(rows.numbers[found].min())
        return None

    def _units(self, after: Position, upto: Position) -> Iterator[HistoryFile | Part]:
        units: tuple[HistoryFile | Part, ...] = (*self.files, *self.parts)
        for unit in units:
            if unit.last > after and unit.first <= upto:
                yield unit

    def oldest(self, after: Position, upto: Position) -> Position | None:
        """Return the position of the first tuple in a range of positions."""
        for unit in self._units(after, upto):
            if unit.first > after:
                return unit.first
            rows = self._read(unit, after, upto)
            if len(rows):
                return rows.in_order().position(0)
        return None

    def smallest(self, after: Position, upto: Position) -> Moment | None:
        """Return the smallest time in a range of positions."""
        lows: list[Moment] = []
        for unit in self._units(after, upto):
            span: tuple[Moment, Moment] | None
            if unit.first <= after or unit.last > upto:
                rows = self._read(unit, after, upto)
                span = extent(moments(self.kept, rows))
            elif isinstance(unit, Part):
                span = unit.span(self.kept)
            else:
                span = None if unit.low is None or unit.high is None else (unit.low, unit.high)
            lows += [] if span is None else [span[0]]
        return min(lows, default=None)

    def since(self, since: object, upto: int) -> Since:
        """Return where history begins: with all that is kept, a duration before the largest time, or at a moment."""
        floor, seam = self.floor(), through(upto)
        oldest = self.oldest(floor, seam)
        kept = max(floor, START) if oldest is None else through(oldest.number - 1 + (oldest.place > 0))
        number = kept.number + 1
        complete = self.dropped.last == START and self.oldest(START, floor) is None
        if oldest is None:
            number = upto + 1
        if since is not None:
            limit = self._limit(since, seam)
            found = None if limit is None else self.first_at_least(limit, kept, seam)
            number = upto + 1 if found is None else found
            complete = complete or limit is None or not self._had(limit, kept)
        return Since(number, complete, oldest, self.smallest(floor, seam))

    def _limit(self, since: object, seam: Position) -> Moment | None:
        if not isinstance(since, Duration):
            return self.kept.moment(since)
        high = self.largest(seam)
        return None if high is None else high - self.kept.reach(since)

    def _had(self, limit: Moment, kept: Position) -> bool:
        """Return whether there were tuples before what is kept whose time is not before `limit`."""
        high = self.dropped.high
        return (high is not None and high >= limit) or self.first_at_least(limit, START, kept) is not None

    def _read(self, unit: HistoryFile | Part, after: Position, upto: Position) -> Rows:
        """Return tuples of a file or a part with their times, in any order."""
        if isinstance(unit, Part):
            return _cut(unit.rows(), after, upto)
        if unit.name not in self.read:
            times = () if self.kept.time is None else (self.kept.schema.index(self.kept.time),)
            loaded = load(self.place, unit, self.kept, columns=times, footers=self.footers, ordered=False)
            self.read[unit.name] = loaded.rows
        return _cut(self.read[unit.name], after, upto)


def _cut(rows: Rows, after: Position, upto: Position) -> Rows:
    at = rows.within(after, upto)
    return rows if at is None else rows.take(at)


def _high(span: tuple[Moment, Moment] | None) -> Moment | None:
    return None if span is None else span[1]
