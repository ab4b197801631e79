"""The threads that write and read histories in the background: a few for all points of a run."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Protocol, TypeVar

from headway.clock import SECOND, stopwatch

LIMIT = 256 << 20
"""Bytes of tuples that may wait to be written, over all points."""
PATIENCE = 30 * SECOND
"""After so long what has gathered is written, however little it is."""
_POLL = 1.0
"""Seconds between two looks at how old the tuples are that wait."""

T = TypeVar("T")


class Written(Protocol):
    """What writers know of a history."""

    def work(self) -> bool:
        """Do one piece of work, writing or merging, if there is some; return whether there may be more."""

    def since(self) -> int | None:
        """Return when the oldest tuple that waits came, by the stopwatch; None if none waits or writing failed."""


class Writers:
    """Threads that histories share, and the memory that may wait for them. A context manager that closes.

    `limit` is in bytes. `patience` (nanoseconds) is how long tuples wait for others. Threads start when they are
    needed first, and are daemons. With no threads, who appends writes files itself, and nothing is merged unless
    `work` is called: every run does the same at the same moments.
    """

    def __init__(self, limit: int = LIMIT, threads: int = 1, patience: int = PATIENCE) -> None:
        self.limit = limit
        self._threads = threads
        self._patience = patience
        self._changed = threading.Condition()
        self._waiting = 0
        self._due: dict[Written, None] = {}
        self._holding: dict[Written, None] = {}
        self._busy: set[Written] = set()
        self._started: list[threading.Thread] = []
        self._closed = False
        self._readers: ThreadPoolExecutor | None = None

    @property
    def inline(self) -> bool:
        """Whether who appends writes files itself."""
        return self._threads == 0

    @property
    def waiting(self) -> int:
        """Bytes that wait to be written."""
        return self._waiting

    @property
    def behind(self) -> bool:
        """Whether so much waits to be written that who appends should slow down."""
        return 2 * self._waiting > self.limit

    def is_overdue(self, since: int | None) -> bool:
        """Return whether tuples that came at a moment of the stopwatch have waited for long enough."""
        return since is not None and stopwatch() - since >= self._patience

    def take(self, bytes: int) -> bool:
        """Count bytes that wait to be written; return whether there was room for them."""
        with self._changed:
            self._waiting += bytes
            if self.behind and not self._due:
                self._changed.notify_all()
            return self._waiting <= self.limit

    def give(self, bytes: int) -> None:
        """Count bytes that do not wait any more."""
        with self._changed:
            self._waiting -= bytes
            self._changed.notify_all()

    def wait_for_room(self, until: Callable[[], bool]) -> None:
        """Block until there is room, or `until` says that waiting is of no use."""
        with self._changed:
            while self._waiting > self.limit and not until() and not self._closed:
                self._changed.wait(_POLL)

    def hold(self, history: Written) -> None:
        """Know that a history has tuples that wait: they are written when they have waited long enough."""
        with self._changed:
            self._holding[history] = None
            self._start()
            self._changed.notify_all()

    def request(self, history: Written) -> None:
        """Let a history work soon."""
        with self._changed:
            if history not in self._due:
                self._due[history] = None
                self._start()
                self._changed.notify_all()

    def leave(self, history: Written) -> None:
        """Forget a history; returns when no thread works for it."""
        with self._changed:
            self._due.pop(history, None)
            self._holding.pop(history, None)
            while history in self._busy:
                self._changed.wait(_POLL)
            self._due.pop(history, None)

    def read(self, work: Callable[..., T], *arguments: Any) -> Future[T]:
        """Run a piece of reading in the background."""
        with self._changed:
            if self._readers is None:
                self._readers = ThreadPoolExecutor(max(1, self._threads), "headway-history-reader")
            return self._readers.submit(work, *arguments)

    def close(self) -> None:
        """End the threads; close the histories first."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            readers, self._readers = self._readers, None
        for thread in self._started:
            thread.join()
        if readers is not None:
            readers.shutdown()

    def __enter__(self) -> Writers:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _start(self) -> None:
        if len(self._started) < self._threads and not self._closed:
            name = f"headway-history-{len(self._started)}"
            self._started.append(threading.Thread(target=self._run, name=name, daemon=True))
            self._started[-1].start()

    def _run(self) -> None:
        while (history := self._next()) is not None:
            more = False
            try:
                more = history.work()
            finally:
                with self._changed:
                    self._busy.discard(history)
                    if more:
                        self._due[history] = None
                    self._changed.notify_all()

    def _next(self) -> Written | None:
        """Wait for a history that has something to do; None at the end."""
        with self._changed:
            while not self._closed:
                self._age()
                if self.behind and not self._due:
                    self._due |= self._holding
                for history in self._due:
                    if history not in self._busy:
                        del self._due[history]
                        self._busy.add(history)
                        return history
                self._changed.wait(min(_POLL, self._patience / 2 / SECOND) if self._holding else None)
            return None

    def _age(self) -> None:
        """Let histories work whose tuples have waited for long."""
        for history in list(self._holding):
            since = history.since()
            if since is None:
                del self._holding[history]
            elif self.is_overdue(since):
                self._due[history] = None
