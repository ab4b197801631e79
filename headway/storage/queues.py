"""Queues: one per arc, shared by all its consumers.

Each consumer has a cursor at the next tuple that it has not taken. A tuple is released when every cursor is past
it. Sizes are maintained as tuples come and go, so that reading them costs nothing; the readings of all cursors of a
network are in the arrays of one board, which a snapshot copies.
"""

from __future__ import annotations

import itertools
import threading
from collections import deque
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Protocol

import numpy as np
import numpy.typing as npt

from headway.columns import NEVER, Int64s, numpy_type
from headway.network.schema import Schema
from headway.sieves import DropBox
from headway.trains import NOTHING, Train, join_trains


class Board:
    """Readings of many cursors as arrays, by cursor number, and the bytes that all queues hold.

    A cell is written only under its queue's lock.
    """

    def __init__(self, cursors: int) -> None:
        self.arrived, self.taken, self.marks = (np.zeros(cursors, np.int64) for _ in range(3))
        self.oldest: Int64s = np.full(cursors, NEVER, np.int64)
        self.moved: npt.NDArray[np.uint8] = np.zeros(cursors, np.uint8)
        """Which cursors' readings have changed since they were last read; set after that, cleared before reading."""
        self._queues: Int64s = np.zeros(0, np.int64)
        self._count = 0

    def add_queue(self) -> int:
        """Add a queue, while no queue is in use; return its number."""
        if self._count == len(self._queues):
            self._queues = np.zeros(2 * len(self._queues) + 16, np.int64)
        self._count += 1
        return self._count - 1

    @property
    def bytes(self) -> int:
        """The bytes in all queues."""
        return int(np.add.reduce(self._queues))  # in half the time of sum(); read before every plan


class Listener(Protocol):
    """Gets everything that is pushed to a queue, whether or not somebody reads it."""

    def offer(self, train: Train) -> None:
        """Take note of a train. Called under the queue's lock, in the order in which trains are pushed."""


class Cursor:
    """A consumer's position in a queue. Used by one thread at a time."""

    __slots__ = ("_queue", "_segment", "_within", "apart", "drop", "ended", "number")

    def __init__(self, queue: Queue, number: int) -> None:
        self._queue = queue
        self.number = number
        self.apart = False
        """Whether its consumer must get everything through the queue: it is paused, or reads from a branch."""
        self._segment = queue._end
        self._within = 0
        self.ended = False
        self.drop: DropBox | None = None
        """The drop box between the queue and the consumer; None: there is none."""

    @property
    def queue(self) -> Queue:
        """The queue that it reads."""
        return self._queue

    def apart_from(self, queue: Queue) -> bool:
        """Whether it reads another queue than this one: that of a branch."""
        return self._queue is not queue

    @property
    def waiting(self) -> int:
        """The number of tuples that this consumer has not taken yet."""
        board = self._queue._board
        return int(board.arrived[self.number] - board.taken[self.number])

    @property
    def idle(self) -> bool:
        """Whether there is nothing to take: no tuple, no tick, no end.

        Reads without the lock: the end only grows, and only after its tuples have been queued.
        """
        return self._segment >= self._queue._end

    def next_number(self) -> int:
        """Return the arrival number of the next tuple or mark, or NEVER."""
        queue = self._queue
        with queue._lock:
            if self.idle:
                return NEVER
            segment = queue._segments[self._segment - queue._first]
            return _number_at(segment, self._within)

    def numbers(self, limit: int, upto: int) -> Int64s:
        """Return the arrival numbers of the next tuples, at most `limit`, none above `upto`.

        Where numbers also descend, a tuple counts with the largest number up to it, because it cannot be taken without
        those before it.
        """
        queue = self._queue
        parts: list[Int64s] = []
        with queue._lock:
            at, within, mark = self._segment - queue._first, self._within, NOTHING
            while at < len(queue._segments) and limit > 0:
                segment = queue._segments[at]
                part = segment.numbers[within : within + limit]
                if not queue.rising:
                    if len(segment.numbers) == 0:  # nor without a mark before it
                        mark = max(mark, _number_at(segment, 0))
                    part = np.maximum(part, mark)
                parts.append(part)
                limit -= len(part)
                at, within = at + 1, 0
                if len(part) and part[-1] > upto:
                    break
        found = np.concatenate(parts) if parts else np.zeros(0, np.int64)
        if not queue.rising:
            found = np.maximum.accumulate(found)
        return found[: int(np.searchsorted(found, upto, side="right"))]

    def stamps(self) -> tuple[int, int]:
        """Return how many tuples wait, and the sum of their stamps.

        Sums are kept, so that frequent calls are cheap.
        """
        queue = self._queue
        with queue._lock:
            at = self._segment - queue._first
            if at >= len(queue._segments):
                return 0, 0
            before = queue._sums_before()
            summed = before[-1] - before[at]
            if self._within:
                summed -= queue._sum_within(self._segment, self._within)
            board, number = queue._board, self.number
            return int(board.arrived[number]) - int(board.taken[number]), summed

    def peek(self, limit: int) -> Train:
        """Return the tuples that would be taken next, at most `limit`, without moving the cursor."""
        queue = self._queue
        parts: list[Train] = []
        with queue._lock:
            within = self._within
            for segment in itertools.islice(queue._segments, self._segment - queue._first, None):
                part = segment.slice(within, min(len(segment.numbers), within + limit))
                limit, within = limit - len(part.numbers), 0
                if len(part.numbers):
                    parts.append(part)
                if limit <= 0:
                    break
        return join_trains(parts) if parts else Train.empty(queue.schema)

    def take(self, limit: int, upto: int | None = None, progress: int | None = None) -> Train:
        """Return the next tuples, at most `limit` and none numbered above `upto`, and move the cursor.

        Ticks and the end before the next tuple are included. The train's progress is `progress` if given, else what is
        certain: the queue's if all was taken, or the number before the next tuple's.

        With a drop box, `limit` is approximate and counts the tuples that pass it; only those are returned.
        """
        queue = self._queue
        if self.idle:  # common for boxes with many inputs
            with queue._lock:
                if self._segment >= queue._end:  # still nothing, now under the lock
                    return Train.empty(queue.schema, queue.progress if progress is None else progress, end=self.ended)
        board, sift = queue._board, None
        if self.drop is not None:
            limit, sift = self.drop.stretch(limit), self.drop.sift
        if upto is None and progress is None:
            train = self._take_simply(limit)
            if train is not None:
                return train if sift is None else sift(train)
        with queue._lock:
            parts: list[Train] = []
            taken = 0
            segments, first = queue._segments, queue._first
            while self._segment < first + len(segments):
                segment = segments[self._segment - first]
                size = len(segment.numbers)
                start = self._within
                stop = min(size, start + limit - taken)
                if upto is not None and stop > start and not queue.rising:
                    reached = np.maximum.accumulate(segment.numbers[start:stop])
                    stop = start + int(np.searchsorted(reached, upto, side="right"))
                elif upto is not None and stop > start and segment.numbers[stop - 1] > upto:
                    stop = max(start, int(np.searchsorted(segment.numbers, upto, side="right")))
                if size == 0 and upto is not None and _number_at(segment, 0) > upto:
                    break
                if stop == start and size:
                    break
                parts.append(segment if start == 0 and stop == size else segment.slice(start, stop))
                taken += stop - start
                if stop < size:
                    self._within = stop
                    break
                self._segment += 1
                self._within = 0
                if size == 0:
                    board.marks[self.number] -= 1
                    self.ended = self.ended or segment.end
            board.taken[self.number] += taken
            rest = None if self.idle else segments[self._segment - first]
            if rest is None:
                board.oldest[self.number] = NEVER
            elif len(rest.numbers):
                board.oldest[self.number] = rest.stamps[self._within]
            else:  # a mark: the next tuple comes after it
                behind = itertools.islice(segments, self._segment - first, None)
                board.oldest[self.number] = next((one.stamps[0] for one in behind if len(one.numbers)), NEVER)
            if progress is None:
                progress = queue.progress if rest is None else _number_at(rest, self._within) - 1
            board.moved[self.number] = 1
            if taken or len(parts):
                queue._release()
        if sift is not None:  # first: joining tuples that are then dropped would cost more than most boxes
            parts = [sift(part) for part in parts]
        if not parts:
            return Train.empty(queue.schema, progress, end=self.ended)
        whole = join_trains(parts)
        if len(parts) == 1 and whole.progress == progress and not self.ended:
            return whole
        return Train(whole.columns, whole.stamps, whole.numbers, progress, whole.ticks, self.ended)

    def _take_simply(self, limit: int) -> Train | None:
        """Take a part of one segment, or all of it: the usual case of short trains, at half the cost. Else None."""
        queue = self._queue
        with queue._lock:
            segments, at = queue._segments, self._segment - queue._first
            if at >= len(segments):
                return None
            segment, start = segments[at], self._within
            stop, size = start + limit, len(segment.numbers)
            board, number = queue._board, self.number
            if stop < size:
                self._within = stop
                board.taken[number] += limit
                board.oldest[number] = segment.stamps[stop]
                board.moved[number] = 1
                # Consumers of an arc mostly cut it at the same places, so the part is made once for all of them.
                place = (self._segment, start, stop)
                if queue._part_at != place:
                    queue._part, queue._part_at = segment.slice(start, stop), place
                return queue._part
            last = at + 1 == len(segments)
            if start or not size or (stop > size and not last):
                return None
            following = None if last else segments[at + 1]
            if following is not None and not len(following.numbers):
                return None  # a mark, which has to be included
            self._segment += 1
            board.taken[number] += size
            if following is None:
                board.oldest[number], progress = NEVER, queue.progress
            else:
                board.oldest[number], progress = following.stamps[0], int(following.numbers[0]) - 1
            board.moved[number] = 1
            queue._release()
        if segment.progress == progress:
            return segment
        return Train(segment.columns, segment.stamps, segment.numbers, progress)


class Queue:
    """The tuples of one arc that some consumer still needs.

    Any number of threads may push and take; a cursor belongs to one consumer.
    """

    def __init__(self, schema: Schema, board: Board, cursors: Sequence[int]) -> None:
        self.schema = schema
        self.progress = NOTHING
        self.rising = True
        """Whether arrival numbers ascend. They do unless a box upstream takes tuples as they come."""
        self._board = board
        self._segments: deque[Train] = deque()
        self._sizes: deque[int] = deque()
        self._first = 0
        self._end = 0  # segments so far
        self._lock = threading.RLock()  # re-entered when a branch joins or is folded
        self._part = Train.empty(schema)  # the last part that was cut, and where
        self._part_at = (-1, 0, 0)
        self.appended = 0
        """The number of tuples ever queued."""
        self._number = board.add_queue()
        self.listeners: tuple[Listener, ...] = ()
        """Who gets what is pushed besides the cursors."""
        widths = [numpy_type(field.type) for field in schema]
        # The bytes of a tuple, NULLs apart; None: they vary and are measured.
        self._width = None if None in widths else 16 + sum(width.itemsize for width in widths if width is not None)
        # By segment, starting with one that may have been released: the sum of the stamps before it. Made on demand.
        self._sums: deque[int] = deque()
        self._sums_from = 0
        # For partly taken segments: the first stamp, and the cumulative sum of the differences from it.
        self._within: dict[int, tuple[int, Int64s]] = {}
        self._numbers = list(cursors)
        self.cursors = tuple(Cursor(self, number) for number in cursors)

    @property
    def bytes(self) -> int:
        """The bytes held."""
        return int(self._board._queues[self._number])

    @property
    def tuples(self) -> int:
        """The number of tuples held."""
        return sum([len(segment.numbers) for segment in self._segments])

    def push(self, train: Train) -> None:
        """Append a train; one without tuples, ticks or end only advances the progress."""
        with self._lock:
            if self.cursors and (len(train.numbers) or train.ticks or train.end):
                self._append_all(train)
            # Last: readers of the progress without the lock must find its tuples queued.
            if train.progress > self.progress:
                self.progress = train.progress
            for listener in self.listeners:
                listener.offer(train)

    def held_trains(self) -> list[Train]:
        """Return the trains that some consumer still needs."""
        with self._lock:
            return list(self._segments)

    # Exchanging the network, while no step is under way

    def held(self) -> AbstractContextManager[object]:
        """Return a context in which nothing is pushed; the same thread may push in it."""
        return self._lock

    def listen(self, listener: Listener) -> None:
        """Let a listener have everything that is pushed from now on."""
        with self._lock:
            self.listeners = (*self.listeners, listener)

    def forget(self, listener: Listener) -> None:
        """Offer nothing more to a listener."""
        with self._lock:
            self.listeners = tuple([one for one in self.listeners if one is not listener])

    def move(self, board: Board, readers: Sequence[tuple[int, Cursor | None]]) -> None:
        """Continue on another board, with other consumers.

        They are the cursors' numbers there, each with the cursor that goes on, or None for one that begins behind all
        that is queued. Cursors that are not among them are left behind.
        """
        before, self._board = self._board, board
        going_on = [(number, cursor) for number, cursor in readers if cursor is not None]
        for number, cursor in going_on:
            for cells in ("arrived", "taken", "marks", "oldest"):
                getattr(board, cells)[number] = getattr(before, cells)[cursor.number]
        for number, cursor in going_on:
            cursor.number = number
            board.moved[number] = 1
        self.cursors = tuple([Cursor(self, number) if cursor is None else cursor for number, cursor in readers])
        self._numbers = [cursor.number for cursor in self.cursors]
        self._number = board.add_queue()
        board._queues[self._number] = sum(self._sizes)
        self._release()

    def branch(self, cursor: Cursor | None = None) -> Queue:
        """Return a queue of its own for a cursor of this queue, which leaves it, or for a new one; on the same board.

        It holds what that cursor has not taken.
        """
        made = Queue(self.schema, self._board, () if cursor is None else (cursor.number,))
        made.rising, made.progress = self.rising, self.progress
        if cursor is not None:
            first = cursor._segment - self._first
            made._segments = deque(itertools.islice(self._segments, first, None))
            made._sizes = deque(itertools.islice(self._sizes, first, None))
            made._end = len(made._segments)
            cursor._queue, cursor._segment = made, 0
            made.cursors = (cursor,)
            self._board._queues[made._number] = sum(made._sizes)
            self.cursors = tuple([one for one in self.cursors if one is not cursor])
            self._numbers = [one.number for one in self.cursors]
            self._release()
        return made

    def take_back(self, cursor: Cursor) -> None:
        """Let an idle cursor of a branch read from this queue again, whose latest train the branch has had, too."""
        cursor._queue, cursor._segment, cursor._within = self, self._end, 0
        self.cursors = (*self.cursors, cursor)
        self._numbers.append(cursor.number)
        self._release()

    def _append_all(self, train: Train) -> None:
        if not train.ticks and not train.end:
            self._append(train)
            return
        at = 0
        numbers = train.numbers if self.rising else np.maximum.accumulate(train.numbers)
        for tick in train.ticks:  # a tick follows the tuples up to its number; ticks may descend, as numbers may
            stop = max(at, int(np.searchsorted(numbers, tick.number, side="right")))
            self._append(train.slice(at, stop))
            self._append_mark(Train.empty(self.schema, tick.number, (tick,)))
            at = stop
        self._append(train.slice(at, len(train.numbers)))
        if train.end:
            self._append_mark(Train.empty(self.schema, train.progress, end=True))

    def _append(self, train: Train) -> None:
        count = len(train.numbers)
        if count == 0:
            return
        board, size = self._board, train.nbytes if self._width is None else count * self._width
        self._segments.append(train)
        self._sizes.append(size)
        self.appended += count
        board._queues[self._number] += size
        for number in self._numbers:
            if board.arrived[number] == board.taken[number]:
                board.oldest[number] = train.stamps[0]
            board.arrived[number] += count
            board.moved[number] = 1
        self._end += 1

    def _append_mark(self, mark: Train) -> None:
        self._segments.append(mark)
        self._sizes.append(0)
        for number in self._numbers:
            self._board.marks[number] += 1
            self._board.moved[number] = 1
        self._end += 1

    def _release(self) -> None:
        """Drop the segments that all cursors have passed."""
        if len(self.cursors) == 1:
            oldest = self.cursors[0]._segment
        else:
            oldest = min([cursor._segment for cursor in self.cursors], default=self._end)
        if self._first >= oldest:
            return
        size = 0
        while self._first < oldest and self._segments:
            self._segments.popleft()
            size += self._sizes.popleft()
            self._first += 1
        self._board._queues[self._number] -= size

    def _sums_before(self) -> deque[int]:
        """Return for each segment held, and for the end, the sum of the stamps before it, from some fixed start."""
        sums = self._sums
        while sums and self._sums_from < self._first:
            sums.popleft()
            self._sums_from += 1
        if not sums:
            sums.append(0)
            self._sums_from = self._first
        for at in range(len(sums) - 1 - len(self._segments), 0):  # from the right, where a deque is fast
            sums.append(sums[-1] + _stamp_sum(self._segments[at].stamps))
        return sums

    def _sum_within(self, segment: int, count: int) -> int:
        """Return the sum of the first stamps of a segment."""
        if segment not in self._within:
            for passed in [one for one in self._within if one < self._first]:
                del self._within[passed]
            stamps = self._segments[segment - self._first].stamps
            self._within[segment] = int(stamps[0]), np.cumsum(stamps - stamps[0])
        first, later = self._within[segment]
        return first * count + int(later[count - 1])


def _stamp_sum(stamps: Int64s) -> int:
    """Return a sum that does not overflow: a few of today's timestamps add up to more than 64 bits."""
    count = len(stamps)
    if count < 32:
        return sum(stamps.tolist())  # faster for few
    first = int(stamps[0])
    if stamps.strides[0] == 0:  # all the same, as of tuples that entered together
        return first * count
    return first * count + int(np.add.reduce(stamps - first))


def _number_at(segment: Train, within: int) -> int:
    """Return the arrival number of a tuple, or of a mark."""
    if len(segment.numbers):
        return int(segment.numbers[within])
    return segment.ticks[0].number if segment.ticks else segment.progress
