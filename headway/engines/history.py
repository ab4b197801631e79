"""How a run went: what the QoS monitor saw at each look, thinned out so that a long run's history stays short."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from headway.clock import SECOND

MOST = 512
"""Looks that are kept; when there are more, every second one goes, and fewer are taken from then on."""


class Look(NamedTuple):
    """What was seen at one look; counts are since the look before."""

    moment: int
    load: float
    """Seconds of work per second that arrived, before anything was dropped."""
    kept: float
    """What was left of it."""
    capacity: float
    """Seconds of work per second that could be done."""
    backlog: float
    """Seconds of work that waited."""
    delivered: tuple[int, ...]
    """By output."""
    latency: tuple[float | None, ...]
    """By output: the mean of those delivered, in seconds; None without any."""
    outside: tuple[float | None, ...]
    """By output: their share outside of the good zone; None without any."""


class History:
    """Looks in their order. Used by the scheduler thread."""

    def __init__(self, start: int, outputs: Sequence[str], most: int = MOST) -> None:
        """Begin without looks; moments are told from `start` on."""
        self._start = start
        self._outputs = tuple(outputs)
        self._most = most
        self._looks: list[Look] = []
        self._every = 1
        self._skipped = 0

    def add(self, look: Look) -> None:
        """Take a look down, or leave it out if the history is long."""
        self._skipped += 1
        if self._skipped < self._every:
            return
        self._skipped = 0
        self._looks.append(look)
        if len(self._looks) > self._most:
            del self._looks[::2]
            self._every *= 2

    def summary(self) -> dict[str, Any]:
        """Return it column by column, as a plot or a table wants it; moments in seconds since the start."""
        looks = self._looks
        told: dict[str, Any] = {"moment": [(look.moment - self._start) / SECOND for look in looks]}
        for name in ("load", "kept", "capacity", "backlog"):
            told[name] = [getattr(look, name) for look in looks]
        for name in ("delivered", "latency", "outside"):
            told[name] = {
                output: [getattr(look, name)[at] for look in looks] for at, output in enumerate(self._outputs)
            }
        return told
