"""Branches: what one consumer reads of an arc if it does not read all of it.

A box that ends at a seam reads up to the seam, one that begins there what comes after it, and a query that is attached
behind a connection point begins with the history. Each has a queue of its own, which gets its part of what is pushed to
the arc's queue. A branch is folded into that queue once there is no difference left.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from headway.columns import NEVER
from headway.storage.queues import Cursor, Queue
from headway.trains import NOTHING, Train


class Branch:
    """A part of an arc, in a queue of its own with one consumer."""

    def __init__(self, main: Queue, queue: Queue, after: int = NOTHING, upto: int = NEVER, live: bool = True) -> None:
        """Let `queue` have what is pushed to `main`, of arrival numbers above `after` and at most `upto`.

        If it is not `live`, it gets nothing of that until `join` is called, because it is filled from elsewhere.
        """
        self.main, self.queue = main, queue
        self.after, self.upto, self.live = after, upto, live
        self.ended = False
        self.past = False
        """Whether it began with what the consumer is to catch up with."""
        main.listen(self)

    @property
    def cursor(self) -> Cursor:
        """The consumer's cursor."""
        return self.queue.cursors[0]

    def offer(self, train: Train) -> None:
        """Take the part of a train that belongs here."""
        if self.live:
            self.queue.push(part_of(train, self.after, self.upto, self.queue.rising))

    def progress(self, known: int) -> int:
        """Return up to which arrival number its tuples are complete, if that is `known` of the arc."""
        if self.ended:  # whatever arrives now, nothing more comes here
            return max(known, self.queue.progress)
        return min(max(known, self.queue.progress), self.upto) if self.live else self.queue.progress

    def join(self, rest: Callable[[], Sequence[Train]]) -> None:
        """Push what `rest` returns of the past, and be live from then on; nothing is pushed to the arc in between."""
        with self.main.held():
            for train in rest():
                self.queue.push(part_of(train, NOTHING, self.upto))
            self.live = True
            self.queue.push(Train.empty(self.queue.schema, min(self.main.progress, self.upto)))

    def end(self, number: int) -> None:
        """Let the consumer's input end at an arrival number, up to which it is complete."""
        self.close()
        self.queue.push(Train.empty(self.queue.schema, number, end=True))
        self.ended = True  # then: what it promises is queued

    def fold(self) -> bool:
        """Let the consumer read from the arc's own queue, if it has taken all and the rest will be the same."""
        with self.main.held():
            same = self.live and self.upto == NEVER and self.after <= self.main.progress
            if not same or not self.cursor.idle:
                return False
            cursor = self.cursor
            self.main.forget(self)
            self.main.take_back(cursor)
            cursor.apart = False
            return True

    def give_up(self) -> None:
        """Take nothing more, and nothing of the past either: the consumer ends."""
        self.close()
        self.live = self.ended = True

    def close(self) -> None:
        """Take nothing more."""
        self.main.forget(self)


def part_of(train: Train, after: int, upto: int, rising: bool = True) -> Train:
    """Return the tuples, ticks and end of a train above one arrival number and up to another."""
    numbers, count = train.numbers, len(train.numbers)
    last = train.progress if not count else max(train.progress, int(numbers[-1] if rising else numbers.max()))
    if after < 0 and last <= upto:
        return train
    if rising:
        first = int(np.searchsorted(numbers, after, side="right"))
        part = train.slice(first, int(np.searchsorted(numbers, upto, side="right")))
    else:
        part = train.take(np.flatnonzero((numbers > after) & (numbers <= upto)))
    ticks = tuple([tick for tick in train.ticks if after < tick.number <= upto])
    end = train.end and train.progress <= upto
    return Train(part.columns, part.stamps, part.numbers, min(train.progress, upto), ticks, end)
