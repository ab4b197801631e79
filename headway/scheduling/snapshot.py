"""The input of a policy: readings of the running network at one moment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from headway.catalog import BoxReadings, Floats, Topology
from headway.columns import Int64s, Mask
from headway.costs import CostModel, Places, UnitCosts

NEVER = int(np.iinfo(np.int64).max)
"""The timestamp where there is no tuple, and a moment that never comes."""
Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class Unit:
    """What a policy schedules: boxes in the order in which a step calls them, and the outputs they lead to."""

    name: str
    boxes: tuple[int, ...]
    outputs: tuple[int, ...]


class Members:
    """The boxes of all units as one flat array, to reduce readings by box to readings by unit without a loop."""

    def __init__(self, units: Sequence[Unit]) -> None:
        """Build the arrays; every unit must have at least one box."""
        self.boxes = [np.array(unit.boxes, np.intp) for unit in units]
        self._flat = np.concatenate(self.boxes) if units else np.zeros(0, np.intp)
        lengths = [len(boxes) for boxes in self.boxes]
        self._starts = np.cumsum([0, *lengths[:-1]]) if units else np.zeros(0, np.intp)
        self.lone: Places | None = self._flat if all(length == 1 for length in lengths) else None
        """By unit: its box, if every unit has exactly one; None otherwise."""
        self.plain = self.lone is not None and bool((self.lone == np.arange(len(lengths))).all())
        """Whether every unit is the box with the same number, so that readings by box are readings by unit."""

    def gather(self, ready: Mask, waiting: Int64s, oldest: Int64s) -> tuple[Mask, Int64s, Int64s]:
        """Return by unit: whether any box is ready, the number of waiting tuples, the oldest timestamp."""
        if self.plain:
            return ready[: len(self.boxes)], waiting[: len(self.boxes)], oldest[: len(self.boxes)]
        return (
            np.logical_or.reduceat(ready[self._flat], self._starts),
            np.add.reduceat(waiting[self._flat], self._starts),
            np.minimum.reduceat(oldest[self._flat], self._starts),
        )

    def any(self, boxes: Mask) -> Mask:
        """Return by unit whether the mask is set for any of its boxes."""
        if self.plain:
            return boxes[: len(self.boxes)].copy()
        return np.logical_or.reduceat(boxes[self._flat], self._starts)

    def means(self, sums: Floats, counts: Int64s) -> Floats:
        """Return by unit the mean, from sums and counts by box; 0 where the count is 0."""
        if self.plain:
            sums, counts = sums[: len(self.boxes)], counts[: len(self.boxes)]
        else:
            sums = np.add.reduceat(sums[self._flat], self._starts)
            counts = np.add.reduceat(counts[self._flat], self._starts)
        return np.where(counts > 0, sums / np.maximum(counts, 1), 0.0)

    def largest(self, values: Floats, waiting: Int64s) -> Floats:
        """Return by unit the largest value among its boxes with waiting tuples, or among all its boxes if none wait."""
        if self.lone is not None:
            return values[self.lone]
        mine = values[self._flat]
        some: Floats = np.maximum.reduceat(np.where(waiting[self._flat] > 0, mine, -np.inf), self._starts)
        return np.where(some > -np.inf, some, np.maximum.reduceat(mine, self._starts))


@dataclass(frozen=True, slots=True)
class OutputReadings:
    """Readings of the outputs, as arrays by output: tuples delivered, their mean latency (seconds) and mean utility."""

    delivered: Int64s
    latency: Floats
    utility: Floats
    recent: Floats
    """The mean utility of recent results; older ones decay."""


@dataclass(frozen=True, slots=True)
class QueueReadings:
    """The queues before the boxes, as arrays by box: tuples, bytes, their mean latency and that of the oldest (s)."""

    tuples: Int64s
    bytes: Int64s
    latency: Floats
    oldest: Floats


@dataclass(frozen=True, eq=False)
class Layout:
    """What stays the same while a network runs, with a cache of what is derived from it."""

    topology: Topology
    units: tuple[Unit, ...]
    exclusive: bool = True
    """Whether units that share a box cannot run at once; on Spark each query has its own copy of its boxes."""
    _made: dict[Callable[[Layout], Any], Any] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def members(self) -> Members:
        """The boxes of each unit."""
        return Members(self.units)

    def once(self, make: Callable[[Layout], Made]) -> Made:
        """Return `make(self)`, computed once per layout and cached by function. The result must not be changed.

        So policies need not keep what they derive from the layout in their memory, and they share it.
        """
        if make not in self._made:
            self._made[make] = make(self)
        found: Made = self._made[make]
        return found


class _Measures(Protocol):
    """Measurements of a running network as of one moment, each read on first access; described at `Snapshot`.

    A value that has been read never changes. One that was not read before the engine continued is gone: reading it
    raises a PolicyError.
    """

    @property
    def rates(self) -> Floats: ...

    @property
    def boxes(self) -> BoxReadings: ...

    @property
    def outputs(self) -> OutputReadings: ...

    @property
    def queues(self) -> QueueReadings: ...

    @property
    def latencies(self) -> Floats: ...

    @property
    def costs(self) -> UnitCosts: ...

    @property
    def box_costs(self) -> UnitCosts: ...

    @property
    def model(self) -> CostModel: ...

    @property
    def held(self) -> Floats: ...

    def latency_of(self, unit: int) -> float: ...


class Snapshot(NamedTuple):
    """Readings of the running network at one moment: everything that a policy may look at. Immutable."""

    now: int
    layout: Layout
    ready: Mask
    """By unit: whether a step would have anything to process now."""
    waiting: Int64s
    """By unit: the number of tuples waiting at its boxes."""
    oldest: Int64s
    """By unit: the QoS timestamp of its oldest waiting tuple; NEVER if none is waiting."""
    box_ready: Mask
    """By box: whether it has input to process."""
    box_waiting: Int64s
    """By box: the number of waiting tuples."""
    box_oldest: Int64s
    """By box: the timestamp of its oldest waiting tuple."""
    workers: int
    """How many steps can run at once."""
    free: int
    """How many more can be started now."""
    busy: Mask
    """By unit: whether a running step uses one of its boxes."""
    spent: Floats
    """By unit: seconds of work done in its running or preempted step; 0 otherwise."""
    held: Int64s
    """By unit: the tuples in that step. Those of a preempted step count as waiting, too."""
    memory: int
    """Bytes in all queues."""
    train: int
    """The most tuples that a step should take from a queue, unless the policy sets its own limit."""
    room: int
    """How many steps of a plan the engine will carry out before it asks again."""
    measures: _Measures
    """Source of the properties below; `box_costs` is like `costs`, with each box as a unit of its own, and `model` is
    the cost model."""
    changed: Sequence[int] | None = None
    """Units whose readings may have changed since this policy's last plan; None if any may have."""
    more: bool = True
    """Whether more tuples may arrive; False once all inputs have ended, or while they are held back."""
    planning: float = 0.0
    """Seconds that plans have taken recently, as far as the engine knows."""

    @property
    def topology(self) -> Topology:
        """The graph of boxes."""
        return self.layout.topology

    @property
    def units(self) -> tuple[Unit, ...]:
        """The units to schedule."""
        return self.layout.units

    @property
    def exclusive(self) -> bool:
        """Whether units that share a box cannot run at once."""
        return self.layout.exclusive

    @property
    def rates(self) -> Floats:
        """By source: the recent rate in tuples per second."""
        return self.measures.rates

    @property
    def boxes(self) -> BoxReadings:
        """Cost, selectivity and so on of the boxes."""
        return self.measures.boxes

    @property
    def outputs(self) -> OutputReadings:
        """Delivered tuples, latency and utility of the outputs."""
        return self.measures.outputs

    @property
    def queues(self) -> QueueReadings:
        """Waiting tuples and their latencies by box."""
        return self.measures.queues

    @property
    def latencies(self) -> Floats:
        """By unit: the mean latency in seconds of its waiting tuples; 0 if none are waiting."""
        return self.measures.latencies

    @property
    def costs(self) -> UnitCosts:
        """By unit: the cost of a step up to the delivery of its tuples."""
        return self.measures.costs

    @property
    def held_inside(self) -> Floats:
        """By output: the seconds for which windows and joins hold tuples before they emit the results.

        Empty where it is not measured: only trains that wait need it.
        """
        return self.measures.held

    def latency_of(self, unit: int) -> float:
        """Return one unit's entry of `latencies` without reading the others."""
        return self.measures.latency_of(unit)

    def expected_of(self, unit: int) -> float:
        """Return the expected seconds until one unit's train is delivered."""
        costs, tuples = self.costs, min(int(self.waiting[unit]), self.train)
        return float(costs.overhead[unit]) + float(costs.cost[unit]) * tuples

    def narrowed(self, ready: Mask, **others: Any) -> Snapshot:
        """Return the snapshot for an inner policy: the same readings, with other ready units, train, workers, ..."""
        return self._replace(ready=ready, changed=None, **others)
