"""What steering reads of a running engine, and what it can turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from headway.catalog import BoxReadings, Floats, Topology
from headway.columns import Int64s
from headway.engines.delivery import Delivered
from headway.engines.drops import DropBox
from headway.shedding.base import Entry, Site
from headway.sieves import Sieve
from headway.storage.queues import FAR
from headway.trains import Train


class Effort(NamedTuple):
    """What processors have done since the start."""

    busy: int
    """Nanoseconds of all of them together that were not spent waiting."""
    capacity: float | None = None
    """Seconds of work that can be done per second, where the engine knows better than what was done tells."""
    share: float = 0.0
    """Then: the share of the time, lately, in which it had to work."""
    under_way: int = 0
    """Nanoseconds of `busy` that belong to calls under way, of which nobody knows yet what they have done."""


class Flow(NamedTuple):
    """What the tuples that arrive would cause if nothing were dropped."""

    load: float
    """Seconds of work per second."""
    kept: float
    """The same with what is dropped now."""
    backlog: float
    """Seconds of work in all that waits and will not be dropped."""
    done: float
    """Seconds of work that were done since the flow was read before, at the same costs."""
    usable: float
    """How many workers can be of use at once, as what arrives is divided over units."""
    source_work: Floats
    """By source: seconds of work that one of its tuples makes."""
    box_rates: Floats
    box_loads: Floats
    box_backlogs: Floats
    site_rates: Floats
    site_costs: Floats
    site_waiting: Floats
    """Tuples that wait before the places of drop boxes."""
    before: float | None = None
    """Seconds of work that waited when the flow was read before, at the costs of now."""
    warming: int = 0
    """Nanoseconds since then of boxes that were called for the first times: they tell nothing of what can be done."""
    avoidable: float = 0.0
    """Seconds since then that calls of short trains took more than those of long ones would have."""
    exact: bool = False
    """Whether costs are known, and not measured."""


class Instruments(Protocol):
    """An engine, as steering sees it. Used by the scheduler thread."""

    topology: Topology
    workers: int
    sites: tuple[Site, ...]
    nested: tuple[tuple[int, ...], ...]
    measures: bool
    """Whether what boxes cost and what can be done is found out while it runs, neither known nor told."""

    @property
    def pressing(self) -> bool:
        """Whether tuples come whether anybody has time for them or not: no source only comes in turn."""
        ...

    def effort(self) -> Effort:
        """Return what processors have done."""
        ...

    def arrived(self) -> Floats:
        """Return by source the tuples that have arrived."""
        ...

    def delivered(self) -> Sequence[Delivered]:
        """Return by output what was delivered."""
        ...

    def waiting(self) -> tuple[Int64s, Int64s]:
        """Return by box the tuples that wait, and the timestamp of the oldest, the largest number where none waits."""
        ...

    def boxes(self, now: int) -> BoxReadings:
        """Return the statistics of the boxes."""
        ...

    def flow(self, now: int, rates: Floats, keep: Floats) -> Flow:
        """Return what tuples that arrive at these rates (by source) cause; `keep` is what is kept now, by site."""
        ...

    def drop(self, entry: Entry) -> DropBox:
        """Return the drop box for an entry, which need not stand there now."""
        ...

    def put(self, site: int, entry: Entry, sieve: Sieve | None) -> None:
        """Insert or adjust the drop box at an entry of a site; None removes it."""
        ...

    def seen(self, entry: Entry) -> int:
        """Return how many tuples have come to an entry, dropped ones included."""
        ...

    def way(self, entry: Entry) -> Entry | str:
        """Return the way into a box that an entry is, or the arc before all whose readers it stands."""
        ...

    def sample(self, entry: Entry) -> Train | None:
        """Return some of the latest tuples that came to an entry, if there are any at hand."""
        ...


def upstream(topology: Topology, box: int) -> set[int]:
    """Return a box and all boxes that lead to it."""
    pending, boxes = [box], set[int]()
    while pending:
        one = pending.pop()
        if one not in boxes:
            boxes.add(one)
            pending += topology.producers[one]
    return boxes


class Reach:
    """Boxes by output, made ready to be reduced at once."""

    def __init__(self, boxes: Sequence[Int64s]) -> None:
        """Lay the boxes of all outputs one after the other."""
        lengths = np.array([len(some) for some in boxes], np.int64)
        self._count = len(boxes)
        self._filled = np.flatnonzero(lengths)
        self._flat: Int64s = np.concatenate([np.zeros(0, np.int64), *boxes]).astype(np.int64)
        self._starts = (np.cumsum(lengths) - lengths)[self._filled]

    def least(self, readings: Int64s) -> Int64s:
        """Return by output the least of its boxes' readings; the largest number where it has no box."""
        found: Int64s = np.full(self._count, FAR)
        if len(self._filled):
            found[self._filled] = np.minimum.reduceat(readings[self._flat], self._starts)
        return found

    def sums(self, readings: Floats) -> Floats:
        """Return by output the sum of its boxes' readings, and then the sum of all boxes'."""
        found: Floats = np.zeros(self._count + 1)
        if len(self._filled):
            found[self._filled] = np.add.reduceat(readings[self._flat], self._starts)
        found[-1] = readings.sum()
        return found


def reach_of(topology: Topology) -> tuple[Int64s, ...]:
    """Return by output the boxes that lead to it."""
    return tuple(np.array(sorted(upstream(topology, root)) if root >= 0 else [], np.int64) for root in topology.roots)
