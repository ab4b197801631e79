"""Sources at run time: tuples get their arrival numbers and timestamps and enter the network.

The scheduler thread assigns all numbers, and the progress of all sources moves with them. Sources without rates take
turns: the first tuple of each in the file's order, then the second of each. Timed sources arrive when they are due,
merged by due moment. Each live source is read by its own thread; its tuples arrive as they come.
"""

from __future__ import annotations

import queue
import threading
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future

import numpy as np

from headway.catalog import HALF_LIFE
from headway.clock import MILLISECOND, Clock
from headway.columns import NEVER, Floats, Int64s
from headway.connectors.protocol import Chunk, Malformed, Reader, Resumable, begins_anew
from headway.connectors.pushed import Inbox
from headway.errors import HeadwayError, InputError, raised
from headway.fading import Rates
from headway.trains import NOTHING, Tick, Train, constant, join_trains

_SOON = -1
"""Earlier than any due moment."""
_PATIENCE = 50 * MILLISECOND
"""How long a pull keeps reading tuples that are due, so that the rest of the round is not delayed."""
_PUSHED = 1 << 16
"""Tuples that are let in at a time of a source that is pushed to."""
_LIVE_CHUNKS = 8
"""Chunks that a live source's thread may read ahead; then it waits."""


class Feed:
    """One source at run time."""

    def __init__(
        self, name: str, reader: Reader, push: Callable[[Train], None], promise: Callable[[int], None], empty: Train
    ) -> None:
        """Read from `reader`; `push` puts a train on the source's arc, `promise` advances the arc's progress."""
        self.name = name
        self.reader = reader
        self.push = push
        self.promise = promise
        self.empty = empty
        self.tuples = 0
        self.ended = False
        self.shift = 0
        """Nanoseconds added to the source's due moments: when it started within the run, if not at the start."""
        self.read = False
        """Whether the reader was asked since malformed rows were last collected."""
        self.head = NEVER
        """The due moment of the next buffered tuple; far away if there is none, or the source is not timed."""
        self.waiting = 0
        """Tuples that were read but have not arrived."""
        self._buffer: list[Chunk] = []
        self._chunks: queue.Queue[Chunk | BaseException | None] | None = None

    def fill(self, limit: int) -> None:
        """Buffer at least one tuple, unless the source has ended, or has only malformed rows for now.

        A reader holds a limited number of malformed rows, and returns nothing more until they are collected.
        """
        while not self.ended and self.waiting == 0:
            chunk = self.reader.read(limit)
            self.read = True
            if chunk is None:
                self.ended = True
            elif len(chunk):
                self._keep(chunk)
            else:
                return

    def listen(self, wake: threading.Event, stop: threading.Event, limit: int) -> None:
        """Start a thread that reads the live source."""
        chunks: queue.Queue[Chunk | BaseException | None] = queue.Queue(_LIVE_CHUNKS)
        self._chunks = chunks

        def read() -> None:
            item: Chunk | BaseException | None
            while not stop.is_set():
                try:
                    item = self.reader.read(limit)
                except BaseException as error:  # handed to the scheduler thread, which stops the run
                    item = error
                while not stop.is_set():
                    try:
                        chunks.put(item, timeout=0.1)
                        break
                    except queue.Full:
                        continue
                wake.set()
                if not isinstance(item, Chunk):
                    return

        threading.Thread(target=read, name=f"headway-source-{self.name}", daemon=True).start()

    def hear(self) -> None:
        """Collect what the live source's thread has read, or callers have pushed; does not block."""
        if isinstance(self.reader, Inbox):
            while not self.ended and self.waiting < _PUSHED:
                chunk = self.reader.read(0)
                if chunk is None:
                    self.ended = True
                elif not len(chunk):
                    return
                else:
                    self._keep(chunk)
            return
        assert self._chunks is not None
        while not self.ended:
            try:
                item = self._chunks.get_nowait()
            except queue.Empty:
                return
            self.read = True
            if item is None:
                self.ended = True
            elif isinstance(item, BaseException):
                raise blame(self.name, item)
            else:
                self._keep(item)

    def due(self) -> Int64s:
        """Return the due moments of the buffered tuples."""
        parts = [chunk.due for chunk in self._buffer if chunk.due is not None]
        return np.concatenate(parts) if parts else np.zeros(0, np.int64)

    def arrive(self, count: int, stamps: Int64s, numbers: Int64s) -> Train:
        """Move tuples from the buffer into a train."""
        trains, at = [], 0
        while at < count:
            chunk = self._buffer.pop(0)
            stop = min(count, at + len(chunk))
            trains.append(Train.from_batch(chunk.batch.slice(0, stop - at), stamps[at:stop], numbers[at:stop]))
            if stop - at < len(chunk):
                due = None if chunk.due is None else chunk.due[stop - at :]
                self._buffer.insert(0, Chunk(chunk.batch.slice(stop - at), due))
            at = stop
        self.waiting -= count
        self.tuples += count
        self._set_head()
        return join_trains(trains)

    def _keep(self, chunk: Chunk) -> None:
        if len(chunk):
            if self.shift and chunk.due is not None:
                chunk = Chunk(chunk.batch, chunk.due + self.shift)
            self._buffer.append(chunk)
            self.waiting += len(chunk)
            self._set_head()

    def _set_head(self) -> None:
        due = self._buffer[0].due if self._buffer else None
        self.head = NEVER if due is None else int(due[0])


def blame(source: str, error: BaseException) -> Exception:
    """Return the run's error for a source whose thread failed; a SystemExit must not end the scheduler thread."""
    if isinstance(error, Exception):
        return error
    return InputError(f"source '{source}': its reader raised {raised(error)}")


class ArrivalTimes:
    """When arrival numbers were assigned: one entry per batch; older entries are thinned out."""

    MOST = 2048

    def __init__(self) -> None:
        self._numbers: list[int] = []
        self._moments: list[int] = []

    def note(self, last: int, moment: int) -> None:
        """Record that numbers up to `last` arrived at a moment."""
        if len(self._numbers) >= self.MOST:
            del self._numbers[: self.MOST // 2 : 2], self._moments[: self.MOST // 2 : 2]
        self._moments.append(moment)
        self._numbers.append(last)

    def moment(self, number: int) -> int | None:
        """Return approximately when a number arrived; None if unknown."""
        at = bisect_left(self._numbers, number)
        return self._moments[at] if at < len(self._numbers) else None


class Ingest:
    """All sources of a run. Used by the scheduler thread."""

    def __init__(
        self,
        feeds: Sequence[Feed],
        clock: Clock,
        chunk: int,
        refuse: Callable[[Sequence[Malformed]], None],
        issued: int = NOTHING,
        half_life: float = HALF_LIFE,
        full: Callable[[], bool] = lambda: True,
        wake: threading.Event | None = None,
        confirms: bool = True,
    ) -> None:
        """Read the feeds, `chunk` tuples at a time; `issued` is the last number assigned before.

        A pull keeps reading tuples that are due until `full`, or for a limited time; by default it reads once. With
        `confirms`, callers who push are told the arrival number at once; otherwise by `confirm`.
        """
        self._feeds = list(feeds)
        self._clock = clock
        self._chunk = chunk
        self._refuse = refuse
        self._full = full
        self._confirms = confirms
        self._unconfirmed: deque[tuple[int, Future[int]]] = deque()
        self._sort()
        self.issued = issued
        self.times = ArrivalTimes()
        self.wake = wake or threading.Event()
        self._stop = threading.Event()
        self._earliest = _SOON
        self._start = clock.now()
        self.stopped = False
        self._half_life = half_life
        self._rates = Rates(len(self._feeds), self._start, half_life)
        self._before = np.array([feed.tuples for feed in self._feeds], np.float64)
        """By source: tuples from earlier processes, which say nothing about the current rate."""
        for feed in self._live:
            self._listen(feed)

    def _sort(self) -> None:
        feeds = self._feeds
        self._turns = [feed for feed in feeds if not feed.reader.timed and not feed.reader.live]
        self._timed = [feed for feed in feeds if feed.reader.timed]
        self._live = [feed for feed in feeds if feed.reader.live]
        self._hearing = any(feed.reader.live for feed in self._timed)
        self.pressing = not self._turns
        """Whether arrivals are independent of demand: no source waits to be asked."""

    def _listen(self, feed: Feed) -> None:
        if isinstance(feed.reader, Inbox):
            feed.reader.wake = self.wake
        else:
            feed.listen(self.wake, self._stop, self._chunk)

    def seam(self) -> int:
        """Give a seam the next arrival number, and return it; up to it, all sources are complete."""
        self.issued += 1
        self.times.note(self.issued, self._clock.now())
        for feed in self._feeds:
            feed.promise(self.issued)
        return self.issued

    def exchange(self, feeds: Sequence[Feed]) -> None:
        """Read these feeds from now on, of which some are new. New timed ones count from now."""
        old = {id(feed): at for at, feed in enumerate(self._feeds)}
        rates = Rates(len(feeds), None, self._half_life)
        going_on = [(at, old[id(feed)]) for at, feed in enumerate(feeds) if id(feed) in old]
        if going_on:
            mine, theirs = np.array(going_on, np.int64).T
            rates.take_over(self._rates, mine, theirs)
        before = np.zeros(len(feeds))
        for at, place in going_on:
            before[at] = self._before[place]
        self._rates, self._before, self._feeds = rates, before, list(feeds)
        self._sort()
        self._earliest = _SOON
        for feed in feeds:
            if id(feed) not in old:
                feed.shift = self.reached
                feed.promise(self.issued)
                if feed.reader.live:
                    self._listen(feed)

    def confirm(self) -> None:
        """Tell the callers who have pushed what was let in, up to now, with which arrival number."""
        while self._unconfirmed:
            number, arrived = self._unconfirmed.popleft()
            arrived.set_result(number)

    @property
    def ended(self) -> bool:
        """Whether no more tuples will come."""
        if not self.stopped:
            for feed in self._feeds:  # asked in every round, where a generator would cost twice as much
                if not feed.ended or feed.waiting:
                    return False
        return True

    @property
    def before(self) -> int:
        """Tuples that had arrived before this process resumed the run."""
        return int(self._before.sum())

    def rates(self, now: int) -> Floats:
        """Return the recent arrival rate of each source, in tuples per second."""
        counts = np.array([feed.tuples for feed in self._feeds], np.float64)
        return self._rates.read(counts - self._before, now)

    def overdue(self) -> Int64s:
        """Return by source the buffered tuples that are due and have not been let in."""
        limit = self._clock.now() - self._start
        return np.array(
            [
                0 if self.stopped or feed.head > limit else np.searchsorted(feed.due(), limit, "right")
                for feed in self._feeds
            ],
            np.int64,
        )

    @property
    def reached(self) -> int:
        """How long the run has lasted, in nanoseconds, without the time between its processes."""
        return self._clock.now() - self._start

    def go_on(self, reached: int, known: Collection[str]) -> None:
        """Continue a run that had lasted `reached` nanoseconds. Called once, before the first pull.

        All timed sources keep their due moments, which count from the start of the very first process. The run's start
        is shifted for all of them at once, so that the first remaining tuple is due now and the run does not wait for
        tuples that had arrived. If all timed sources are live, their next tuples are unknown, and `reached` is used. A
        source that cannot start over, or is not in `known` (the sources the run had before), counts from now on.
        """
        same = [feed for feed in self._timed if begins_anew(feed.reader) or isinstance(feed.reader, Resumable)]
        old = [feed for feed in same if feed.name in known]
        ready = [feed for feed in old if not feed.reader.live]
        for feed in ready:
            while not feed.ended and not feed.waiting:
                feed.fill(self._chunk)
                self._refuse(feed.reader.malformed())
        reached = min((feed.head for feed in ready if feed.waiting), default=reached)
        for feed in self._timed:
            feed.shift = 0 if feed in old else reached
        self._start = self._clock.now() - reached

    def stop(self) -> None:
        """Take in no more tuples, as if all inputs had ended."""
        self.stopped = True
        self._stop.set()

    def pull(self, hungry: bool) -> int:
        """Let tuples arrive: those that are due, and, if `hungry`, the next ones of sources without rates.

        Returns how many.
        """
        if self.stopped:
            return 0
        before = self.issued
        if self._timed:
            limit = self.reached  # fixed, because a source faster than its reader would never let the loop end
            until = self._clock.now() + _PATIENCE
            while self._pull_timed(limit) and not self._full() and self._clock.now() < until:
                pass
        for feed in self._live:
            feed.hear()
            if feed.waiting and not feed.reader.timed:
                now = self._clock.now()
                count, first = feed.waiting, self.issued + 1
                self._enter([(feed, constant(now, count), np.arange(count) + first)])
                if isinstance(feed.reader, Inbox):
                    self._unconfirmed += feed.reader.numbered(first)
        if self._confirms and self._unconfirmed:
            self.confirm()
        if hungry and self._turns:
            self._pull_turns()
        for feed in self._feeds:
            if feed.read:
                feed.read = False
                self._refuse(feed.reader.malformed())
        return self.issued - before

    def _pull_turns(self) -> None:
        for feed in self._turns:
            feed.fill(self._chunk)
        self._turns = [feed for feed in self._turns if feed.waiting or not feed.ended]
        count = min((feed.waiting for feed in self._turns), default=0)
        if not count:
            return  # all have ended, or the next in turn has only malformed rows for now
        many, now = len(self._turns), self._clock.now()
        base = self.issued + 1
        arrivals = [
            (feed, constant(now, count), np.arange(base + turn, base + turn + count * many, many))
            for turn, feed in enumerate(self._turns)
        ]
        self._enter(arrivals)

    def _pull_timed(self, limit: int) -> bool:
        """Let tuples arrive that are due up to `limit`; return whether more of them may be due."""
        if limit < self._earliest and not self._hearing:
            return False  # nothing that is buffered is due
        arrivals: list[tuple[Feed, Int64s]] = []
        for feed in self._timed:
            self._fill(feed)
            if feed.head > limit:
                continue
            due = feed.due()
            count = int(np.searchsorted(due, limit, side="right"))
            arrivals.append((feed, due[:count]))
        # A feed whose buffer is used up may have more that is due: then no feed may go past the last moment in that
        # buffer, and later feeds must stop before it.
        used_up = [
            (int(due[-1]), turn)
            for turn, (feed, due) in enumerate(arrivals)
            if len(due) == feed.waiting and not feed.ended and not feed.reader.live and len(due)
        ]
        cut, last = min(used_up, default=(limit, len(arrivals)))
        arrivals = [
            (feed, due[: int(np.searchsorted(due, cut, side="right" if turn <= last else "left"))])
            for turn, (feed, due) in enumerate(arrivals)
        ]
        filled = [(feed, due) for feed, due in arrivals if len(due)]
        if not filled:
            self._find_earliest()
            return False
        merged = np.argsort(np.concatenate([due for _, due in filled]), kind="stable")
        numbers = np.empty(len(merged), np.int64)
        numbers[merged] = np.arange(len(merged)) + self.issued + 1
        at, entering = 0, []
        for feed, due in filled:
            entering.append((feed, due + self._start, numbers[at : at + len(due)]))
            at += len(due)
        self._enter(entering)
        self._find_earliest()
        return bool(used_up)

    def _find_earliest(self) -> None:
        """Update when the next timed tuple is due; a source with an empty buffer may have one that is due at once."""
        heads = [_SOON if feed.waiting == 0 and not feed.ended else feed.head for feed in self._timed]
        self._earliest = min(heads, default=NEVER)

    def _fill(self, feed: Feed) -> None:
        """Buffer tuples, if that does not mean waiting for a live source."""
        if feed.reader.live:
            feed.hear()
        else:
            feed.fill(self._chunk)

    def _enter(self, arrivals: Sequence[tuple[Feed, Int64s, Int64s]]) -> None:
        last = max(int(numbers[-1]) for _, _, numbers in arrivals)
        for feed, stamps, numbers in arrivals:
            train = feed.arrive(len(numbers), stamps, numbers)
            feed.push(Train(train.columns, train.stamps, train.numbers, last))
        self.issued = last
        self.times.note(last, max(int(stamps[-1]) for _, stamps, _ in arrivals))
        # A silent source must not block others: its progress follows theirs, once their tuples are queued.
        for feed in self._feeds:
            feed.promise(last)

    def tick(self, end: bool = False) -> None:
        """Let a clock tick, or the end, arrive at every source."""
        self.issued += 1
        now = self._clock.now()
        ticks = () if end else (Tick(self.issued, now),)
        self.times.note(self.issued, now)
        for feed in self._feeds:
            empty = feed.empty
            feed.push(Train(empty.columns, empty.stamps, empty.numbers, self.issued, ticks, end))

    def end(self) -> None:
        """Let the end arrive at every source."""
        self.tick(end=True)

    def next_due(self) -> int | None:
        """Return the moment at which the next timed tuple is due, or None."""
        if self._earliest == _SOON or self._hearing:
            for feed in self._timed:
                try:
                    self._fill(feed)
                except HeadwayError:
                    return self._clock.now()  # the next pull raises it
            self._find_earliest()
            if any(not feed.waiting and not feed.ended and not feed.reader.live for feed in self._timed):
                return self._clock.now()  # the next pull collects malformed rows, and continues reading
            waiting = [feed.head for feed in self._timed if feed.waiting]
            return min(waiting) + self._start if waiting else None
        return None if self._earliest == NEVER else self._earliest + self._start

    @property
    def more_in_turn(self) -> bool:
        """Whether sources without rates have more to read."""
        return bool(self._turns) and not self.stopped

    @property
    def listening(self) -> bool:
        """Whether a live source may still deliver."""
        return not self.stopped and any(not feed.ended for feed in self._live)
