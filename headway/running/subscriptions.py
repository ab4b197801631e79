"""Subscriptions: what an output delivers, batch by batch, to a reader who may be slow."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Self

import pyarrow as pa

from headway.errors import OutputError, RunError, check_known

LIMIT = 64 << 20
"""Bytes that may wait for a reader by default."""
SLOW = {
    "fail": "the subscription ends with an error",
    "drop": "the oldest batches are dropped, and counted",
    "wait": "the run waits, and everybody else with it",
}
"""What happens when a reader is so slow that the limit is reached."""


class Subscription(Iterator[pa.RecordBatch]):
    """An iterator over record batches as they are delivered. Used by one reader; delivered to by the run."""

    def __init__(self, output: str, limit: int = LIMIT, slow: str = "fail") -> None:
        """Hold at most `limit` bytes for the reader; `slow` says what happens beyond that, see `SLOW`."""
        check_known("way", [slow], SLOW, OutputError, "slow")
        if isinstance(limit, bool) or not isinstance(limit, int) or limit < 0:
            raise OutputError(f"limit: expected a number of bytes, not {limit!r}")
        self.output = output
        self._limit, self._slow = limit, slow
        self._change = threading.Condition()
        self._batches: deque[pa.RecordBatch] = deque()
        self._bytes = 0
        self.dropped = 0
        """Tuples that were dropped because the reader was slow."""
        self._over = False
        self._error: Exception | None = None
        self.reason = ""
        """Why it ended; empty at the end of the run."""
        self.leave: Callable[[], None] = lambda: None
        """Called when the reader closes it."""

    # For the run

    def hear(self, batch: pa.RecordBatch) -> None:
        """Take a batch."""
        with self._change:
            if self._over:
                return
            size = batch.nbytes
            if self._bytes + size > self._limit and self._batches and not self._make_room(size):
                return
            self._batches.append(batch)
            self._bytes += size
            self._change.notify_all()

    def _make_room(self, size: int) -> bool:
        if self._slow == "fail":
            waiting = sum(batch.num_rows for batch in self._batches)
            self._finish(
                OutputError(
                    f"output '{self.output}': the subscription's reader is too slow: {waiting} tuples wait "
                    f"({self._bytes:,} bytes, the limit is {self._limit:,}); read faster, or choose a larger limit or "
                    "another way for slow readers (drop, wait)"
                )
            )
            return False
        if self._slow == "wait":
            self._change.wait_for(lambda: self._over or self._bytes + size <= self._limit or not self._batches)
            return not self._over
        while self._batches and self._bytes + size > self._limit:
            oldest = self._batches.popleft()
            self._bytes -= oldest.nbytes
            self.dropped += oldest.num_rows
        return True

    def end(self, reason: str) -> None:
        """Take note that nothing more will come."""
        with self._change:
            self.reason = self.reason or reason
            self._finish(None)

    def fail(self, error: BaseException) -> None:
        """Take note that the run has failed."""
        with self._change:
            self._finish(RunError(f"output '{self.output}': the run has failed: {error}"))

    def _finish(self, error: Exception | None) -> None:
        if not self._over:
            self._over, self._error = True, error
            self._change.notify_all()

    # For the reader

    def __next__(self) -> pa.RecordBatch:
        """Return the next batch; waits for it. Ends with the run, or when the output is removed (see `reason`)."""
        batch = self.next()
        if batch is None:
            raise StopIteration
        return batch

    def next(self, timeout: float | None = None) -> pa.RecordBatch | None:
        """Return the next batch, or None at the end, or when none came within `timeout` seconds."""
        with self._change:
            self._change.wait_for(lambda: self._batches or self._over, timeout)
            if self._batches:
                batch = self._batches.popleft()
                self._bytes -= batch.nbytes
                self._change.notify_all()
                return batch
            if self._error is not None:
                raise self._error
            return None

    @property
    def over(self) -> bool:
        """Whether it has ended and everything was read."""
        with self._change:
            return self._over and not self._batches

    def close(self) -> None:
        """Let nothing more come. Idempotent."""
        self.end("closed")  # first: the run may be waiting for room
        self.leave()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
