"""Time is injected: this is the only module that reads a clock.

All moments are integers, nanoseconds since the epoch of their clock.
"""

from __future__ import annotations

import time
from typing import Protocol

SECOND = 1_000_000_000
MILLISECOND = 1_000_000
MICROSECOND = 1_000

stopwatch = time.perf_counter_ns
"""Nanoseconds of a monotonic counter, to measure durations. Not comparable with a clock's moments."""
processor = time.process_time_ns
"""CPU time of this process in nanoseconds, over all its threads."""


def burn(nanoseconds: int) -> None:
    """Busy-wait for this long by the stopwatch; returns at once for zero or less."""
    if nanoseconds > 0:
        until = stopwatch() + nanoseconds
        while stopwatch() < until:
            pass


class Clock(Protocol):
    """The source of time for an engine."""

    def now(self) -> int:
        """Return the current moment; never less than an earlier answer."""

    def sleep(self, nanoseconds: int) -> None:
        """Let this much time pass; may return early, and never blocks for much longer than asked."""


class WallClock:
    """Real time: the system time at creation, advanced by a monotonic counter."""

    def __init__(self) -> None:
        self._offset = time.time_ns() - time.perf_counter_ns()

    def now(self) -> int:
        """Return nanoseconds since 1970 that never go back."""
        return self._offset + time.perf_counter_ns()

    def sleep(self, nanoseconds: int) -> None:
        """Block the calling thread for this long."""
        if nanoseconds > 0:
            time.sleep(nanoseconds / SECOND)


class ManualClock:
    """Virtual time that moves only when told to, for tests and simulation."""

    def __init__(self, start: int = 0) -> None:
        self._now = start

    def now(self) -> int:
        """Return the virtual moment."""
        return self._now

    def sleep(self, nanoseconds: int) -> None:
        """Advance by this much at once."""
        self.advance(max(0, nanoseconds))

    def advance(self, nanoseconds: int) -> None:
        """Advance by this much; raises a ValueError if it is negative."""
        if nanoseconds < 0:
            raise ValueError("a clock does not go back")
        self._now += nanoseconds
