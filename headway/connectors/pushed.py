"""Sources that are pushed to: a bounded queue between callers and the run."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from headway.connectors.protocol import Chunk, Malformed, Reader
from headway.errors import InputError, RunError
from headway.network.schema import Schema

LIMIT = 1 << 16
"""Tuples that may wait to be let in."""


class Offer(NamedTuple):
    """A batch on its way in."""

    batch: pa.RecordBatch
    arrived: Future[int]
    """Gets the arrival number of its last tuple."""
    client: str | None = None
    before: Sent | None = None
    """What the client had sent before, if it numbers its pushes."""


class Sent(NamedTuple):
    """The latest push of a client that numbers its pushes."""

    sequence: int
    arrived: Future[int]


class Inbox(Reader):
    """What callers have pushed to one source and the run has not let in. Thread-safe."""

    timed = False
    finite = False
    live = True
    anew = False

    def __init__(self, name: str, schema: Schema, limit: int = LIMIT) -> None:
        """Hold at most `limit` tuples."""
        self.name, self.schema = name, schema
        self._limit = limit
        self._room = threading.Condition()
        self._offers: deque[Offer] = deque()
        self._waiting = 0
        self._entered: deque[tuple[int, Future[int]]] = deque()
        self.clients: dict[str, Sent] = {}
        """The latest numbered push by client."""
        self._ended = False
        self._closed: str | None = None
        self.wake: threading.Event | None = None
        """Set when something was pushed."""

    # For callers

    def offer(
        self,
        batch: pa.RecordBatch,
        wait: bool = True,
        timeout: float | None = None,
        client: str | None = None,
        sequence: int | None = None,
    ) -> Future[int]:
        """Push a batch; return the arrival number that its last tuple will have.

        Without room it waits, up to `timeout` seconds; not at all if `wait` is False. The same `sequence` of a client
        is taken once: a repetition returns the number of the first.
        """

        def sent() -> Sent | None:
            found = None if client is None else self.clients.get(client)
            return found if found is not None and sequence is not None and sequence <= found.sequence else None

        fits = self._fits(batch.num_rows)
        with self._room:
            # The same may also enter while this one waits.
            room = self._room.wait_for(lambda: sent() is not None or fits(), timeout if wait else 0)
            if (same := sent()) is not None:
                return same.arrived
            if not room:
                raise InputError(
                    f"source '{self.name}': there is no room for {batch.num_rows} tuples, as {self._waiting} wait to "
                    "be let in; push more slowly, or wait for room"
                )
            self._check_open()
            arrived: Future[int] = Future()
            before = None
            if client is not None and sequence is not None:
                before = self.clients.get(client)
                self.clients[client] = Sent(sequence, arrived)
                self._room.notify_all()
            self._offers.append(Offer(batch, arrived, client, before))
            self._waiting += batch.num_rows
        if self.wake is not None:
            self.wake.set()
        return arrived

    def withdraw(self, arrived: Future[int]) -> None:
        """Take back a batch that waits to be let in, because the caller waits no longer; nothing if it has entered."""
        with self._room:
            mine = next((one for one in self._offers if one.arrived is arrived), None)
            if mine is None:
                return
            self._offers = deque([one for one in self._offers if one is not mine])
            self._waiting -= mine.batch.num_rows
            if mine.client is not None and self.clients[mine.client].arrived is arrived:
                del self.clients[mine.client]
                if mine.before is not None:
                    self.clients[mine.client] = mine.before
            self._room.notify_all()
        arrived.set_exception(
            InputError(f"source '{self.name}': there was no room in time, and it was not let in; the run is held up")
        )

    def end(self) -> None:
        """Let the source end after what was pushed. Idempotent."""
        with self._room:
            self._ended = True
            self._room.notify_all()
        if self.wake is not None:
            self.wake.set()

    def _fits(self, count: int) -> Callable[[], bool]:
        """Return whether there is room; a batch above the limit fits when nothing else waits."""
        return lambda: (
            self._ended
            or self._closed is not None
            or self._waiting + count <= self._limit
            or (count > self._limit and not self._waiting)
        )

    def _check_open(self) -> None:
        if self._ended:
            raise InputError(f"source '{self.name}' has ended: nothing more can be pushed to it")
        if self._closed is not None:
            raise RunError(f"source '{self.name}': {self._closed}")

    # For the run

    def read(self, limit: int) -> Chunk | None:
        """Return the next batch without waiting, an empty one if there is none, None at the end."""
        with self._room:
            if not self._offers:
                return None if self._ended or self._closed is not None else Chunk(_nothing(self.schema))
            batch, arrived, *_ = self._offers.popleft()
            self._waiting -= batch.num_rows
            self._entered.append((batch.num_rows, arrived))
            self._room.notify_all()
            return Chunk(batch)

    def numbered(self, first: int) -> list[tuple[int, Future[int]]]:
        """Return what has been read since the last call, with the numbers of the last tuples, counted from `first`."""
        found = []
        with self._room:
            while self._entered:
                count, arrived = self._entered.popleft()
                first += count
                found.append((first - 1, arrived))
        return found

    def malformed(self) -> list[Malformed]:
        """Return nothing: what does not fit is refused when it is pushed."""
        return []

    def close(self) -> None:
        """Refuse what has not been let in, because the run is over."""
        with self._room:
            self._closed = self._closed or "the run has ended"
            pending = [one.arrived for one in self._offers] + [arrived for _, arrived in self._entered]
            self._offers.clear()
            self._entered.clear()
            self._room.notify_all()
        for arrived in pending:
            arrived.set_exception(RunError(f"source '{self.name}': the run ended before this was let in"))


def _nothing(schema: Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([], schema=schema.to_arrow())


class Planned(Reader):
    """A source whose tuples are pushed at moments that are known before the run: for virtual time."""

    timed = True
    finite = True
    live = False
    anew = True

    def __init__(self, name: str, schema: Schema) -> None:
        self.name, self.schema = name, schema
        self._batches: deque[tuple[int, pa.RecordBatch]] = deque()
        self.latest = 0
        """The moment of the latest push (ns)."""

    def plan(self, moment: int, batch: pa.RecordBatch) -> None:
        """Let a batch arrive at a moment, not before that of the latest push."""
        self.latest = moment
        self._batches.append((moment, batch))

    def read(self, limit: int) -> Chunk | None:
        """Return the next batch, None at the end."""
        if not self._batches:
            return None
        moment, batch = self._batches.popleft()
        if batch.num_rows > limit:
            self._batches.appendleft((moment, batch.slice(limit)))
            batch = batch.slice(0, limit)
        return Chunk(batch, np.full(batch.num_rows, moment, np.int64))

    def malformed(self) -> list[Malformed]:
        """Return nothing: what does not fit is refused when it is pushed."""
        return []

    def close(self) -> None:
        """Do nothing."""
