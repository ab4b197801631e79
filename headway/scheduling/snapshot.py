"""What a policy sees: the readings of the running network at one moment."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np

from headway.catalog import BoxReadings, Topology
from headway.columns import Floats, Int64s, Mask, ReadOnly, frozen
from headway.costs import Places, UnitCosts
from headway.errors import PolicyError

Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class Unit:
    """What is scheduled as one: boxes in the order in which a step calls them, and the outputs they lead to."""

    name: str
    boxes: tuple[int, ...]
    outputs: tuple[int, ...]


class Members:
    """Which boxes belong to which unit, laid end to end, so that readings of boxes become readings of units at once."""

    def __init__(self, units: Sequence[Unit]) -> None:
        """Lay them out once; every unit has a box."""
        self.boxes = [np.array(unit.boxes, np.intp) for unit in units]
        self._flat = np.concatenate(self.boxes) if units else np.zeros(0, np.intp)
        lengths = [len(boxes) for boxes in self.boxes]
        self._starts = np.cumsum([0, *lengths[:-1]]) if units else np.zeros(0, np.intp)
        self.lone: Places | None = self._flat if all(length == 1 for length in lengths) else None
        """By unit: its box, if every unit has just one."""
        self.plain = self.lone is not None and bool((self.lone == np.arange(len(lengths))).all())
        """Whether every unit is the box of its own number, so that readings of boxes are those of units."""

    def gather(self, ready: Mask, waiting: Int64s, oldest: Int64s) -> tuple[Mask, Int64s, Int64s]:
        """Return by unit: whether a box is ready, the tuples that wait, the oldest timestamp."""
        if self.plain:
            count = len(self.boxes)
            return (ready, waiting, oldest) if len(ready) == count else (ready[:count], waiting[:count], oldest[:count])
        return (
            np.logical_or.reduceat(ready[self._flat], self._starts),
            np.add.reduceat(waiting[self._flat], self._starts),
            np.minimum.reduceat(oldest[self._flat], self._starts),
        )

    def any(self, boxes: Mask) -> Mask:
        """Return by unit whether it holds for one of its boxes."""
        if self.plain:
            return boxes[: len(self.boxes)].copy()
        return np.logical_or.reduceat(boxes[self._flat], self._starts)

    def means(self, sums: Floats, counts: Int64s) -> Floats:
        """Return by unit the mean of what was summed up by box, 0 where nothing was counted."""
        if self.plain:
            sums, counts = sums[: len(self.boxes)], counts[: len(self.boxes)]
        else:
            sums = np.add.reduceat(sums[self._flat], self._starts)
            counts = np.add.reduceat(counts[self._flat], self._starts)
        return np.where(counts > 0, sums / np.maximum(counts, 1), 0.0)

    def largest(self, values: Floats, waiting: Int64s) -> Floats:
        """Return by unit the largest value among its boxes at which tuples wait, or among all where none waits."""
        if self.lone is not None:
            return values[self.lone]
        mine = values[self._flat]
        some: Floats = np.maximum.reduceat(np.where(waiting[self._flat] > 0, mine, -np.inf), self._starts)
        return np.where(some > -np.inf, some, np.maximum.reduceat(mine, self._starts))


@dataclass(frozen=True, slots=True)
class OutputReadings(ReadOnly):
    """How the outputs do, as arrays by output: tuples delivered, their mean latency (seconds) and mean utility."""

    delivered: Int64s
    latency: Floats
    utility: Floats
    recent: Floats
    """The mean utility of what was delivered lately; older results fade."""


@dataclass(frozen=True, slots=True)
class QueueReadings(ReadOnly):
    """What waits before the boxes, as arrays by box: tuples, bytes, their mean latency and that of the oldest (s)."""

    tuples: Int64s
    bytes: Int64s
    latency: Floats
    oldest: Floats


@dataclass(frozen=True, eq=False)
class Layout:
    """What stays the same while a network runs, and whatever follows from it."""

    topology: Topology
    units: tuple[Unit, ...]
    exclusive: bool = True
    """Whether units that have a box in common cannot run at once; on Spark each query has boxes of its own."""
    _made: dict[Callable[[Layout], Any], Any] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def members(self) -> Members:
        """Which boxes belong to which unit."""
        return Members(self.units)

    def once(self, make: Callable[[Layout], Made]) -> Made:
        """Return what a pure function makes of the layout. It is asked once for a network; nobody changes the answer.

        So policies need not remember what they look up, and those that look up the same share it.
        """
        if make not in self._made:
            self._made[make] = make(self)
        found: Made = self._made[make]
        return found


class Measures(ABC):
    """What an engine measures, as of its latest look, which was at `now`."""

    looks = 0
    """How often the engine has looked."""

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
    held = cached_property[Floats](lambda self: frozen(self._live().held()))

    def latency_of(self, unit: int) -> float:
        """Return one unit's entry of `latencies`, without reading the others."""
        return self._live().latency(self._now, unit)


class Snapshot(NamedTuple):
    """ReadOnly of the running network at one moment, all that a policy may look at. Nothing in it can be changed."""

    now: int
    layout: Layout
    ready: Mask
    """By unit: whether a step of it would do something now."""
    waiting: Int64s
    """By unit: the tuples that wait at its boxes."""
    oldest: Int64s
    """By unit: the QoS timestamp of its oldest waiting tuple, NEVER where none waits."""
    box_ready: Mask
    """By box: whether it has something to take."""
    box_waiting: Int64s
    """By box: the tuples that wait."""
    box_oldest: Int64s
    """By box: the timestamp of its oldest waiting tuple."""
    workers: int
    """How many steps may be under way at once."""
    free: int
    """How many more may be started now."""
    busy: Mask
    """By unit: whether a step that uses one of its boxes is under way."""
    spent: Floats
    """By unit: seconds of work done in the step under way, or in one that was preempted; 0 otherwise."""
    held: Int64s
    """By unit: the tuples in that step. Those of a preempted one count as waiting, too."""
    memory: int
    """Bytes in all queues."""
    train: int
    """The most tuples that a step should take from a queue, unless the policy knows better."""
    room: int
    """How many steps of a plan the engine will carry out before it asks again."""
    measures: Moment
    """What the properties below read; and by box (`box_costs`) what a step of it alone costs until its tuples are
    delivered."""
    changed: Sequence[int] | None = None
    """Units whose readings may have changed since this policy was last asked; None if any may have."""
    more: bool = True
    """Whether more tuples may arrive if one waits; False once all inputs have ended, or while they are held back."""
    planning: float = 0.0
    """Seconds that a plan has taken lately, as far as the engine knows."""

    @property
    def topology(self) -> Topology:
        """Who feeds whom."""
        return self.layout.topology

    @property
    def units(self) -> tuple[Unit, ...]:
        """What is scheduled."""
        return self.layout.units

    @property
    def exclusive(self) -> bool:
        """Whether units that have a box in common cannot run at once."""
        return self.layout.exclusive

    @property
    def rates(self) -> Floats:
        """By source: tuples per second, lately."""
        return self.measures.rates

    @property
    def boxes(self) -> BoxReadings:
        """Cost, selectivity and so on of the boxes."""
        return self.measures.boxes

    @property
    def outputs(self) -> OutputReadings:
        """How the outputs do."""
        return self.measures.outputs

    @property
    def queues(self) -> QueueReadings:
        """What waits before each box."""
        return self.measures.queues

    @property
    def latencies(self) -> Floats:
        """By unit: the mean latency in seconds of its waiting tuples, 0 where none waits."""
        return self.measures.latencies

    @property
    def costs(self) -> UnitCosts:
        """By unit: what a step costs until its tuples are delivered."""
        return self.measures.costs

    @property
    def held_inside(self) -> Floats:
        """By output: the seconds by which results are older than what caused them.

        Windows and joins have held their tuples so long. Empty where nobody measures it: trains that do not wait need
        not know.
        """
        return self.measures.held

    def latency_of(self, unit: int) -> float:
        """Return one unit's entry of `latencies`, without reading the others."""
        return self.measures.latency_of(unit)

    def expected_of(self, unit: int) -> float:
        """Return the seconds until one unit's train would be delivered."""
        costs, tuples = self.costs, min(int(self.waiting[unit]), self.train)
        return float(costs.overhead[unit]) + float(costs.cost[unit]) * tuples

    def narrowed(self, ready: Mask, **others: Any) -> Snapshot:
        """Return what a policy inside another one sees: other ready units, trains, workers, ...; the same readings."""
        return self._replace(ready=frozen(ready), changed=None, **others)
