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
"""Nanoseconds of a monotonic counter, to measure how long a step took. It is not a moment."""
processor = time.process_time_ns
"""Nanoseconds for which this process has had a processor, all its threads together."""


def burn(nanoseconds: int) -> None:
    """Keep a processor busy until the stopwatch has moved on by this much; returns at once for zero or less."""
    if nanoseconds > 0:
        until = stopwatch() + nanoseconds
        while stopwatch() < until:
            pass


class Clock(Protocol):
    """What an engine needs of time."""

    def now(self) -> int:
        """Return the present moment; never less than an earlier answer."""

    def sleep(self, nanoseconds: int) -> None:
        """Let this much time pass; may return early, never blocks for longer than asked by much."""


class WallClock:
    """Real time: the system's date at the start, carried on by a monotonic counter."""

    def __init__(self) -> None:
        self._offset = time.time_ns() - time.perf_counter_ns()

    def now(self) -> int:
        """Return nanoseconds since 1970 that never go back."""
        return self._offset + time.perf_counter_ns()

    def sleep(self, nanoseconds: int) -> None:
        """Sleep for real."""
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
        """Move on by this much at once."""
        self.advance(max(0, nanoseconds))

    def advance(self, nanoseconds: int) -> None:
        """Move on by this much; time does not go back."""
        if nanoseconds < 0:
            raise ValueError("a clock does not go back")
        self._now += nanoseconds
