"""How a run went: what the QoS monitor saw at each look, thinned out so that a long run's history stays short."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from headway.clock import SECOND

Floats = npt.NDArray[np.float64]
_NONE: Floats = np.zeros(0)

FEW = 64
"""Outputs up to which each has a history of its own."""
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
    delivered: Floats
    """By output."""
    late: Floats
    """By output: how many of those were outside of the good zone."""
    latency: Floats
    """By output: their latencies, summed, in seconds."""


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
        few = len(self._outputs) <= FEW
        self._looks.append(look if few else look._replace(delivered=_NONE, late=_NONE, latency=_NONE))
        if len(self._looks) > self._most:
            del self._looks[::2]
            self._every *= 2

    def summary(self) -> dict[str, Any]:
        """Return it column by column, as a plot or a table wants it; moments in seconds since the start.

        In networks with many outputs, only the columns of the whole run are there. Latencies and shares are None where
        nothing was delivered.
        """
        looks = self._looks
        told: dict[str, Any] = {"moment": [(look.moment - self._start) / SECOND for look in looks]}
        for name in ("load", "kept", "capacity", "backlog"):
            told[name] = [getattr(look, name) for look in looks]
        shape = len(looks), len(looks[0].delivered) if looks else len(self._outputs)
        names = ("delivered", "late", "latency")
        counts, late, latency = (np.array([getattr(look, one) for look in looks]).reshape(shape) for one in names)
        some = np.maximum(counts, 1)
        means = {"delivered": counts, "latency": latency / some, "outside": late / some}
        for name, values in means.items():
            told[name] = {
                output: _column(name, values[:, at], counts[:, at])
                for at, output in enumerate(self._outputs)
                if at < values.shape[1]
            }
        return told


def _column(name: str, values: Floats, counts: Floats) -> list[Any]:
    if name == "delivered":
        return [int(value) for value in values]
    return [value if count else None for value, count in zip(values.tolist(), counts.tolist(), strict=True)]
