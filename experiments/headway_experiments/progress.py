"""How far a series of experiments is: a live line on a terminal, elsewhere a line now and then."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TextIO

from headway.cli.status import PLAIN_EVERY, StatusLine
from headway.clock import SECOND, stopwatch

LIVE_EVERY = 0.1
"""Seconds between changes of the live line."""


@dataclass(slots=True)
class _Part:
    """An experiment's runs."""

    engine: str
    done: int
    total: int


class Progress:
    """Counts runs and experiments, and shows how many are left and how long that may take."""

    def __init__(self, stream: TextIO, experiments: int, now: Callable[[], int] = stopwatch) -> None:
        """Write to a stream, usually standard error; time starts here."""
        self._stream = stream
        self.line = StatusLine(stream)
        """What is shown now; whoever else writes to the stream clears it first."""
        self._live = stream.isatty()
        self._experiments = experiments
        self._ended = 0
        self._parts: dict[str, _Part] = {}
        self._current = ""
        self._spent: dict[str, float] = {}
        self._now = now
        self._began = now()
        self._last = 0.0
        self._next = 0.0 if self._live else PLAIN_EVERY

    def seconds(self) -> float:
        """Return how long this takes so far."""
        return (self._now() - self._began) / SECOND

    def count(self, name: str, engine: str, done: int, total: int) -> None:
        """Take note that so many of an experiment's runs are done, and show it."""
        self._parts[name] = _Part(engine, done, total)
        if done:
            now = self.seconds()
            self._spent[engine] = self._spent.get(engine, 0.0) + now - self._last
            self._last, self._current = now, name
            self.show()

    def end(self, name: str, text: str = "") -> None:
        """Take note that an experiment has ended, be it early, and say what came of it, if anything is to be said."""
        self._ended += 1
        part = self._parts.get(name)
        if part is not None:
            part.total = part.done
        if text:
            self.say(f"{name}: {text}")
        else:
            self.clear()

    def say(self, text: str) -> None:
        """Say something that stays, as a line of its own."""
        self.line.clear()
        with contextlib.suppress(OSError, ValueError):  # nobody looks any more; the work goes on
            self._stream.write(f"headway: {text}\n")
            self._stream.flush()

    def show(self) -> None:
        """Show how far it is, if it is time to."""
        now = self.seconds()
        if now >= self._next:
            self._next = now + (LIVE_EVERY if self._live else PLAIN_EVERY)
            self.line.say(self.text())

    def clear(self) -> None:
        """Take the live line away."""
        self.line.clear()

    def text(self) -> str:
        """Return how far it is, in one line."""
        parts = []
        if self._current:
            part = self._parts[self._current]
            parts.append(f"{self._current}: {part.done}/{part.total} runs")
        parts.append(f"{self._ended}/{self._experiments} experiments")
        parts.append(span_text(self.seconds()))
        left = self.left()
        if left is not None:
            parts.append(f"about {span_text(left)} left")
        return "  ".join(parts)

    def left(self) -> float | None:
        """Return about how many seconds are left, or None before the first run.

        A run is taken to last as long as those before it on the same engine, or, if there was none, on any.
        """
        done = sum(part.done for part in self._parts.values())
        if not done:
            return None
        left = 0.0
        for engine in {part.engine for part in self._parts.values()}:
            own = [part for part in self._parts.values() if part.engine == engine]
            ended = sum(part.done for part in own)
            each = self._spent[engine] / ended if ended else sum(self._spent.values()) / done
            left += each * sum(part.total - part.done for part in own)
        return left


def span_text(seconds: float) -> str:
    """Return a span of time as people read it from a clock: 45 s, 4:05, 1:04:05."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
