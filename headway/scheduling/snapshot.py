"""The input of a policy: readings of the running network at one moment."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from headway.catalog import BoxReadings, Topology
from headway.columns import Floats, Int64s, Items, Mask, ReadOnly, frozen
from headway.costs import CostModel, Places, UnitCosts
from headway.errors import PolicyError

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

    def reduce(self, how: np.ufunc, values: npt.NDArray[Items]) -> npt.NDArray[Items]:
        """Return by unit the values of its boxes, combined by a function; not a copy if units are boxes."""
        if self.plain:
            count = len(self.boxes)
            return values if len(values) == count else values[:count]
        reduced: npt.NDArray[Items] = how.reduceat(values[self._flat], self._starts)
        return reduced

    def gather(self, ready: Mask, waiting: Int64s, oldest: Int64s) -> tuple[Mask, Int64s, Int64s]:
        """Return by unit: whether any box is ready, the number of waiting tuples, the oldest timestamp."""
        if self.plain and len(ready) == len(self.boxes):  # asked before every plan
            return ready, waiting, oldest
        return self.reduce(np.logical_or, ready), self.reduce(np.add, waiting), self.reduce(np.minimum, oldest)

    def any(self, boxes: Mask) -> Mask:
        """Return by unit whether the mask is set for any of its boxes, as a new array."""
        return self.reduce(np.logical_or, boxes).copy()

    def means(self, sums: Floats, counts: Int64s) -> Floats:
        """Return by unit the mean, from sums and counts by box; 0 where the count is 0."""
        sums, counts = self.reduce(np.add, sums), self.reduce(np.add, counts)
        return np.where(counts > 0, sums / np.maximum(counts, 1), 0.0)

    def largest(self, values: Floats, waiting: Int64s) -> Floats:
        """Return by unit the largest value among its boxes with waiting tuples, or among all its boxes if none wait."""
        every = self.reduce(np.maximum, values)
        if self.lone is not None:
            return every
        some = self.reduce(np.maximum, np.where(waiting > 0, values, -np.inf))
        return np.where(some > -np.inf, some, every)


@dataclass(frozen=True, slots=True)
class OutputReadings(ReadOnly):
    """Readings of the outputs, as arrays by output: tuples delivered, their mean latency (seconds) and mean utility."""

    delivered: Int64s
    latency: Floats
    utility: Floats
    recent: Floats
    """The mean utility of recent results; older ones decay."""


@dataclass(frozen=True, slots=True)
class QueueReadings(ReadOnly):
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


class Measures(ABC):
    """Measurements of a running network as of the engine's latest look, which was at `now`."""

    looks = 0
    """Number of looks so far; what a look did not read cannot be read after the next one."""
    model: CostModel
    """The cost model; it is replaced when it is measured how boxes divide their tuples."""

    @abstractmethod
    def rates(self, now: int) -> Floats:
        """Return by source the tuples per second that arrived lately."""

    @abstractmethod
    def boxes(self, now: int) -> BoxReadings:
        """Return the statistics of the boxes, a few milliseconds old at most."""

    @abstractmethod
    def outputs(self) -> OutputReadings:
        """Return how the outputs do."""

    @abstractmethod
    def queues(self, now: int) -> QueueReadings:
        """Return what waits before each box."""

    @abstractmethod
    def latencies(self, now: int) -> Floats:
        """Return by unit the mean latency of its waiting tuples, 0 where none waits."""

    @abstractmethod
    def latency(self, now: int, unit: int) -> float:
        """Return one unit's entry of `latencies`, without reading the others."""

    @abstractmethod
    def unit_costs(self, now: int) -> UnitCosts:
        """Return by unit what a step costs until its tuples are delivered."""

    @abstractmethod
    def box_costs(self, now: int) -> UnitCosts:
        """Return by box what a step of it alone costs until its tuples are delivered."""

    @abstractmethod
    def held(self) -> Floats:
        """Return by output how long results are held; nothing where trains do not wait."""


class Moment:
    """What is measured as of one look: each part is read once, when first asked for, and does not change any more.

    What has not been read by the time that the engine looks again is gone: asking for it raises a PolicyError.
    """

    def __init__(self, measures: Measures, now: int) -> None:
        self._measures = measures
        self._looks = measures.looks
        self._now = now

    def _live(self) -> Measures:
        if self._measures.looks != self._looks:
            raise PolicyError("a snapshot is of the past: what a policy did not read of it while it planned is gone")
        return self._measures

    rates = cached_property[Floats](lambda self: self._live().rates(self._now))
    boxes = cached_property[BoxReadings](lambda self: self._live().boxes(self._now))
    outputs = cached_property[OutputReadings](lambda self: self._live().outputs())
    queues = cached_property[QueueReadings](lambda self: self._live().queues(self._now))
    latencies = cached_property[Floats](lambda self: frozen(self._live().latencies(self._now)))
    costs = cached_property[UnitCosts](lambda self: self._live().unit_costs(self._now))
    box_costs = cached_property[UnitCosts](lambda self: self._live().box_costs(self._now))
    model = cached_property[CostModel](lambda self: self._live().model)
    held = cached_property[Floats](lambda self: frozen(self._live().held()))

    def latency_of(self, unit: int) -> float:
        """Return one unit's entry of `latencies`, without reading the others."""
        return self._live().latency(self._now, unit)


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
    measures: Moment
    """Source of the properties below; `box_costs` is like `costs`, with each box as a unit of its own, and `model` is
    the cost model."""
    changed: Sequence[int] | None = None
    """Units whose readings may have changed since this policy's last plan; None if any may have."""
    more: bool = True
    """Whether more tuples may arrive; False once all inputs have ended, or while they are held back."""
    planning: float = 0.0
    """Seconds that plans have taken recently, as far as the engine knows."""
    background: Mask | None = None
    """By unit: whether only outputs need it that nobody waits for; None if there is no such unit."""

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
        return self._replace(ready=frozen(ready), changed=None, **others)
