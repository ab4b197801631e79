"""Readers of a history: trains in the order of arrival, from files and from memory, as far as one wants."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from concurrent.futures import Future
from typing import Protocol

from headway.history.kept import Position
from headway.history.keys import Keys
from headway.history.loading import Loaded
from headway.history.records import HistoryFile
from headway.history.rows import Rows
from headway.history.tail import Part
from headway.trains import Train

TRAIN = 65_536
"""Tuples of a train, if nothing else is asked for."""


class Source(Protocol):
    """What a reader knows of its history."""

    def advance(self, reader: Reader, after: Position, rows: int) -> HistoryFile | list[Part] | Position:
        """Return what comes after a position: a file, which is in use until it was fetched, or parts in memory.

        A position means that nothing wanted comes up to there, which is all that there is by now.
        """

    def fetch(self, reader: Reader, unit: HistoryFile | list[Part], after: Position) -> Loaded:
        """Read the wanted tuples of a unit."""

    def fetch_later(self, reader: Reader, unit: HistoryFile, after: Position) -> Future[Loaded]:
        """Read them in the background."""


class Reader:
    """A cursor over what a history keeps, in the order of arrival; used by one thread at a time.

    What was kept when it was made, and comes after its position, stays until it has been read or the reader is closed
    or forgotten. Without an end it goes on with what is appended meanwhile, so a fragment can catch up and then go over
    to live tuples: when `next` returns None and `reached` is true, everything up to `position` has been returned, which
    was the last tuple appended when `next` was called.

    `wanted` are the positions of the fields to read, None for all: other columns of the trains stay unread. With
    `ahead` files are read in the background, the next one while the second half of one is returned, so `next` hardly
    blocks; memory holds one and a half files instead of one.
    """

    def __init__(
        self,
        source: Source,
        position: Position,
        upto: Position | None,
        keys: Keys | None,
        wanted: Collection[int] | None,
        ahead: bool,
    ) -> None:
        self.position = position
        """Everything wanted up to here has been returned."""
        self.upto = upto
        self.keys = keys
        self.wanted = wanted
        self.reached = False
        """Whether the last call of `next` found that there was no more."""
        self.bytes_read = 0
        """Bytes of pages that were read from files."""
        self.files_read = 0
        self._source = source
        self._ahead = ahead
        self._from = position
        self._rows: Rows | None = None
        self._at = 0
        self._end = position
        self._coming: tuple[Future[Loaded] | Loaded, Position] | None = None
        self._closed = False

    @property
    def pending(self) -> bool:
        """Whether a file is being read in the background by now: `next` would wait for it."""
        future = None if self._rows is not None or self._coming is None else self._coming[0]
        return isinstance(future, Future) and not future.done()

    def next(self, limit: int = TRAIN, wait: bool = True) -> Train | None:
        """Return up to `limit` tuples, or None if there are no more by now, which is then `reached`.

        Without `wait` it also returns None while a file is read in the background. A RunError names a file that is
        missing or damaged.
        """
        self.reached = False
        while not self._closed:
            if self._rows is not None:
                return self._slice(self._rows, limit)
            if self._coming is None and not self._begin(limit):
                self.reached = True
                return None
            assert self._coming is not None
            loaded, end = self._coming
            if isinstance(loaded, Future):
                if not wait and not loaded.done():
                    return None
                loaded = loaded.result()
            self._coming = None
            self.bytes_read += loaded.bytes
            self._rows, self._at, self._end = loaded.rows, 0, end
            if not len(loaded.rows):
                self._rows, self.position = None, end
        return None

    def _slice(self, rows: Rows, limit: int) -> Train:
        stop = min(len(rows), self._at + max(1, limit))
        part = rows.slice(self._at, stop)
        self._at = stop
        if stop == len(rows):
            self._rows, self.position = None, self._end
        else:
            self.position = part.position(len(part) - 1)
        if self._ahead and self._coming is None and 2 * stop > len(rows):
            self._begin(limit)
        return part.train(self.wanted)

    def _begin(self, limit: int) -> bool:
        """Begin to read what comes next, if there is something."""
        unit = self._source.advance(self, self._from, max(limit, TRAIN))
        if isinstance(unit, Position):
            if self._rows is None:
                self._from = self.position = max(self.position, unit)
            return False
        after = self._from
        if isinstance(unit, list):
            end = self._limited(unit[-1].last)
            self._coming = self._source.fetch(self, unit, after), end
        else:
            end = self._limited(unit.last)
            self.files_read += 1
            fetch = self._source.fetch_later if self._ahead else self._source.fetch
            self._coming = fetch(self, unit, after), end
        self._from = end
        return True

    def _limited(self, end: Position) -> Position:
        return end if self.upto is None else min(end, self.upto)

    def close(self) -> None:
        """Read no more; what only this reader needed may be deleted."""
        self._closed = True
        self._rows = None
        if self._coming is not None and isinstance(self._coming[0], Future):
            self._coming[0].cancel()
        self._coming = None

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._closed

    def __iter__(self) -> Iterator[Train]:
        """Yield trains until there are no more by now, and then close."""
        try:
            while (train := self.next()) is not None:
                yield train
        finally:
            self.close()

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
