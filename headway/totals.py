"""Running totals of a run: what monitor, adaptive layers, status line and summary read, as of one moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from headway.catalog import BoxReadings
from headway.columns import Floats, Int64s

SYSTEM = -1
"""The place of the whole run in arrays by output: their last element."""


class Spent(NamedTuple):
    """What scheduling and storage have taken."""

    time: Mapping[str, float] = {}
    """Seconds of scheduler, boxes, storage, sources and sinks."""
    plans: int = 0
    peak: int = 0
    """The most bytes that were queued."""


NOTHING_SPENT = Spent()


def _nothing() -> Floats:
    return np.zeros(0)


def _none() -> Int64s:
    return np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class Totals:
    """What has happened since the start of a run.

    Arrays by output have one more element, for the whole run: what several outputs share counts for each of them, and
    once for the whole. Two totals say how the time between went. Those who ask for few of them leave the rest empty.
    """

    now: int
    """The moment, in nanoseconds on the run's clock."""
    delivered: Int64s
    """By output: tuples delivered."""
    latency: Floats
    """By output: their latencies summed, in seconds."""
    utility: Floats
    """By output: their utilities (by latency) summed; 1 each without a graph."""
    queued: Floats = field(default_factory=_nothing)
    """By output: tuples that waited in queues, summed over time: tuple-seconds."""
    memory: Floats = field(default_factory=_nothing)
    """By output: bytes that waited in queues, summed over time: byte-seconds."""
    oldest: Floats = field(default_factory=_nothing)
    """By output: how long the oldest tuple that waits now has been in the network, in seconds; 0 where none waits."""
    shedding: frozenset[int] = frozenset()
    """Outputs for which tuples are being dropped now."""
    late: Int64s = field(default_factory=_none)
    """By output: tuples delivered outside of the good zone."""
    shed: Int64s = field(default_factory=_none)
    """By output, the whole run left out: tuples dropped on the way to it."""
    arrived: Int64s = field(default_factory=_none)
    """By source: tuples that have been let in."""
    overdue: Int64s = field(default_factory=_none)
    """By source: tuples that are due and have not been let in yet."""
    boxes: BoxReadings | None = None
    """What boxes have counted, and the time they took."""
    spent: Spent = NOTHING_SPENT

    @classmethod
    def at_start(cls, now: int, outputs: int) -> Totals:
        """Return the totals of a run in which nothing has happened."""
        zeros = np.zeros(outputs + 1)
        return cls(now, zeros.astype(np.int64), zeros, zeros, zeros, zeros, zeros)
