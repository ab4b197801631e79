"""Progress of a run or a series of runs: a live line on a terminal, otherwise a line every few seconds."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Iterator
from typing import TextIO

from rich.cells import cell_len, set_cell_size

from headway.cli.printing import columns_of, count_text
from headway.clock import SECOND, stopwatch
from headway.engines.runs import Status

PLAIN_EVERY = 10.0
"""Seconds between lines if there is no terminal."""


def status_text(status: Status, rate: float) -> str:
    """Format a status as one line."""
    parts = [
        f"{status.seconds:.1f} s",
        f"in {count_text(status.tuples_in)} ({count_text(round(rate))}/s)",
        f"out {count_text(status.tuples_out)}",
        f"queued {count_text(status.queued)}",
    ]
    if status.dead_letters:
        parts.append(f"dead letters {count_text(status.dead_letters)}")
    if status.held:
        parts.append("sources wait: queues are full")
    if status.paused:
        parts.append("paused")
    return "  ".join(parts)


class StatusLine:
    """Shows status updates: replaced in place on a terminal, otherwise as a line every ten seconds."""

    def __init__(self, stream: TextIO) -> None:
        """Write to `stream`, usually standard error."""
        self._stream = stream
        self._live = stream.isatty()
        self._shown = 0
        self._next = PLAIN_EVERY
        self._last: tuple[float, int] = (0.0, 0)
        self._lock = threading.Lock()
        self._doing: str | None = None

    def begin(self, text: str) -> None:
        """Show what the run starts with, until the first progress; on a terminal also the seconds elapsed.

        Startup includes long calls that cannot report progress themselves.
        """
        self.say(f"{text}…")
        if self._live:
            self._doing = text
            threading.Thread(target=self._tick, args=(stopwatch(),), name="headway-status", daemon=True).start()

    def _tick(self, begun: int) -> None:
        while self._doing is not None:
            with self._lock:
                if self._doing is not None:
                    self._say(f"{self._doing}  {(stopwatch() - begun) / SECOND:.0f} s")
            threading.Event().wait(1.0)

    def show(self, status: Status) -> None:
        """Show the run's progress; the rate is the average since the previous status."""
        if status.starting and self._doing is not None:
            self._doing = f"starting Spark: {status.starting}"
            return
        if not self._live and status.seconds < self._next:
            return
        if status.starting:
            self._next = status.seconds + PLAIN_EVERY
            self.say(f"{status.seconds:.1f} s  starting Spark: {status.starting}")
            return
        seconds, tuples = self._last
        passed = status.seconds - seconds
        rate = (status.tuples_in - max(tuples, status.tuples_before)) / passed if passed > 0 else 0.0
        self._last = (status.seconds, status.tuples_in)
        text = status_text(status, rate)
        if not self._live:
            self._next = status.seconds + PLAIN_EVERY
        self.say(text)

    def say(self, text: str) -> None:
        """Show a text until the next one: in place on a terminal, otherwise as a line of its own."""
        self._doing = None
        with self._lock:
            self._say(text)

    def _say(self, text: str) -> None:
        if self._live:
            text = set_cell_size(text, min(cell_len(text), (columns_of(self._stream) or 80) - 1))
            self._write("\r" + text + " " * (self._shown - cell_len(text)))
            self._shown = cell_len(text)
        else:
            self._write(f"headway: {text}\n")

    def clear(self) -> None:
        """Erase the line, so that further output starts at the margin."""
        self._doing = None
        with self._lock:
            if self._shown:
                self._write("\r" + " " * self._shown + "\r")
                self._shown = 0

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):
            self._live = False  # the stream is gone; the run continues
            self._next = float("inf")


class _Notices(logging.Handler):
    """Prints each warning of a run as a line of its own."""

    def __init__(self, stream: TextIO, status: StatusLine | None) -> None:
        super().__init__(logging.WARNING)
        self._stream = stream
        self._status = status

    def emit(self, record: logging.LogRecord) -> None:
        if self._status is not None:
            self._status.clear()
        with contextlib.suppress(OSError, ValueError):  # the stream is gone; the run continues
            self._stream.write(f"headway: {record.getMessage()}\n")
            self._stream.flush()


@contextlib.contextmanager
def notices(stream: TextIO, status: StatusLine | None) -> Iterator[None]:
    """Print a run's warnings to a stream, without mixing them with the status line."""
    handler, logger = _Notices(stream, status), logging.getLogger("headway")
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
