"""What a policy sees: the readings of the running network at one moment."""

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
"""The timestamp of no tuple, and the moment that does not come."""
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
            return ready[: len(self.boxes)], waiting[: len(self.boxes)], oldest[: len(self.boxes)]
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
class OutputReadings:
    """How the outputs do, as arrays by output: tuples delivered, their mean latency (seconds) and mean utility."""

    delivered: Int64s
    latency: Floats
    utility: Floats
    recent: Floats
    """The mean utility of what was delivered lately; older results fade."""


@dataclass(frozen=True, slots=True)
class QueueReadings:
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


class _Measures(Protocol):
    """What is measured of a running network as of one moment, each part read when first asked for.

    What has been read does not change any more. What has not been read by the time that the engine goes on can no
    longer be read: that raises a PolicyError. What the parts are, `Snapshot` says.
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
    """Readings of the running network at one moment. All that a policy may look at; nothing in it ever changes."""

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
    measures: _Measures
    """What the properties below read; by box (`box_costs`) what a step of it alone costs until its tuples are
    delivered; and the cost model (`model`), which knows how boxes divide their tuples."""
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
        return self._replace(ready=ready, changed=None, **others)
