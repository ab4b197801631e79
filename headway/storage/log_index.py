"""What the log keeps in memory about one source, to answer questions without opening files."""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from headway.columns import Int64s
from headway.storage.filesystems import Place
from headway.storage.segments import Segment, Slice, exact_sum, open_segment
from headway.trains import Train

_RECENT = 8
"""Segments whose irregular numbers and stamps stay in memory: those that a cut usually falls into."""


class _Spot(NamedTuple):
    """Between two tuples: so many segments, and so many rows of the next one, lie before."""

    segment: int
    row: int


class SourceIndex:
    """The segments of one source in order. Counts are kept as sums from the start, so that ranges are differences."""

    def __init__(self, source: str, place: Place) -> None:
        """Start without segments."""
        self.source = source
        self._place = place
        self._segments: list[Segment] = []
        self._firsts: list[int] = []
        self._rows = [0]
        self._sums = [0]
        self._sizes = [0]
        self._recent: OrderedDict[str, tuple[Int64s, Int64s]] = OrderedDict()

    def add(self, segment: Segment, train: Train | None = None) -> None:
        """Take up a segment; `train` holds its tuples, if they are at hand."""
        self._segments.append(segment)
        self._firsts.append(segment.first)
        self._rows.append(self._rows[-1] + segment.rows)
        self._sums.append(self._sums[-1] + segment.stamp_sum)
        self._sizes.append(self._sizes[-1] + segment.bytes)
        if train is not None and (segment.step is None or segment.stamp_step is None):
            self._recent[segment.file] = (train.numbers, train.stamps)
            if len(self._recent) > _RECENT:
                self._recent.popitem(last=False)

    def forget(self, segments: int) -> None:
        """Leave out the oldest segments."""
        for segment in self._segments[:segments]:
            self._recent.pop(segment.file, None)
        del self._segments[:segments], self._firsts[:segments], self._rows[:segments], self._sums[:segments]
        del self._sizes[:segments]

    def before(self, number: int) -> int:
        """Return how many tuples have this arrival number or a smaller one, from some fixed start."""
        spot = self._spot(number)
        return self._rows[spot.segment] + spot.row

    def stamps_before(self, number: int) -> int:
        """Return the sum of the stamps of these tuples."""
        at, row = self._spot(number)
        total = self._sums[at]
        if row:
            segment = self._segments[at]
            if segment.stamp_step is None:
                total += exact_sum(self._hidden(segment)[1][:row])
            else:
                total += row * segment.stamp + segment.stamp_step * (row * (row - 1) // 2)
        return total

    def stamp_after(self, number: int) -> int | None:
        """Return the stamp of the first tuple with a larger arrival number."""
        at, row = self._spot(number)
        if at == len(self._segments):
            return None
        segment = self._segments[at]
        if segment.stamp_step is None:
            return int(self._hidden(segment)[1][row])
        return segment.stamp + segment.stamp_step * row

    def bytes_after(self, number: int) -> int:
        """Return the bytes of the segments that hold anything with a larger arrival number."""
        at = bisect_right(self._firsts, number)
        at -= bool(at) and number < self._segments[at - 1].last
        return self._sizes[-1] - self._sizes[at]

    def slices(self, after: int, upto: int) -> Iterator[Slice]:
        """Return what lies after one arrival number, up to another."""
        begin, end = self._spot(after), self._spot(upto)
        for at in range(begin.segment, min(end.segment + 1, len(self._segments))):
            segment = self._segments[at]
            start = begin.row if at == begin.segment else 0
            stop = end.row if at == end.segment else segment.rows
            if start < stop:
                first, last = self._number(segment, start), self._number(segment, stop - 1)
                yield Slice(self.source, self._place.name(segment.file), first, last, start, stop, segment.crc)

    def _spot(self, number: int) -> _Spot:
        """Return the spot behind the tuples up to an arrival number."""
        at = bisect_right(self._firsts, number) - 1
        if at < 0:
            return _Spot(0, 0)
        segment = self._segments[at]
        if number >= segment.last:
            return _Spot(at + 1, 0)
        if segment.step is None:
            return _Spot(at, int(np.searchsorted(self._hidden(segment)[0], number, side="right")))
        return _Spot(at, (number - segment.first) // segment.step + 1)

    def _number(self, segment: Segment, row: int) -> int:
        if row == 0:
            return segment.first
        if row == segment.rows - 1:
            return segment.last
        if segment.step is None:
            return int(self._hidden(segment)[0][row])
        return segment.first + segment.step * row

    def _hidden(self, segment: Segment) -> tuple[Int64s, Int64s]:
        """Return the numbers and the stamps of a segment."""
        held = self._recent.get(segment.file)
        if held is None:
            opened = open_segment(self._place.name(segment.file), self.source, segment.crc)
            held = (opened.numbers(0, segment.rows), opened.stamps(0, segment.rows))
        return held
