"""Running totals of a run as of one moment, read by the monitor, adaptive layers, status line and summary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from headway.catalog import BoxReadings
from headway.columns import Floats, Int64s

SYSTEM = -1
"""The index of the whole run in arrays by output: their last element."""


class Spent(NamedTuple):
    """What a run has spent: time, plans and memory."""

    time: Mapping[str, float] = {}
    """Seconds spent in the scheduler, boxes, storage, sources and sinks."""
    plans: int = 0
    peak: int = 0
    """The most bytes that were queued at any time."""


NOTHING_SPENT = Spent()


def _nothing() -> Floats:
    return np.zeros(0)


def _none() -> Int64s:
    return np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class Totals:
    """What has happened since the start of a run.

    Arrays by output have one more element, for the whole run: what several outputs share counts for each of them, and
    once for the run. The difference of two totals describes the time between them. Fields that were not requested are
    empty.
    """

    now: int
    """The moment, in nanoseconds on the run's clock."""
    delivered: Int64s
    """By output: tuples delivered."""
    latency: Floats
    """By output: the sum of their latencies, in seconds."""
    utility: Floats
    """By output: the sum of their utilities by latency; 1 each without a graph."""
    queued: Floats = field(default_factory=_nothing)
    """By output: tuples waiting in queues, integrated over time: tuple-seconds."""
    memory: Floats = field(default_factory=_nothing)
    """By output: bytes waiting in queues, integrated over time: byte-seconds."""
    oldest: Floats = field(default_factory=_nothing)
    """By output: seconds that the oldest waiting tuple has been in the network; 0 where none waits."""
    shedding: frozenset[int] = frozenset()
    """Outputs for which tuples are being dropped now."""
    late: Int64s = field(default_factory=_none)
    """By output: tuples delivered outside the good zone."""
    shed: Int64s = field(default_factory=_none)
    """By output, without the whole run: tuples dropped on the way to it."""
    arrived: Int64s = field(default_factory=_none)
    """By source: tuples that have entered the network."""
    overdue: Int64s = field(default_factory=_none)
    """By source: tuples that are due but have not entered yet."""
    boxes: BoxReadings | None = None
    """Counters and times of the boxes."""
    spent: Spent = NOTHING_SPENT

    @classmethod
    def at_start(cls, now: int, outputs: int) -> Totals:
        """Return the totals of a run in which nothing has happened."""
        zeros = np.zeros(outputs + 1)
        return cls(now, zeros.astype(np.int64), zeros, zeros, zeros, zeros, zeros)
