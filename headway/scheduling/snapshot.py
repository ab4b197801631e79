"""What a policy sees: the readings of the running network at one moment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from headway.catalog import BoxReadings, Topology
from headway.columns import Int64s, Mask
from headway.costs import UnitCosts

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Unit:
    """What is scheduled as one: boxes in the order in which a step calls them, and the outputs they lead to."""

    name: str
    boxes: tuple[int, ...]
    outputs: tuple[int, ...]


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


@dataclass(frozen=True)
class Snapshot:
    """Readings of the running network at one moment. All that a policy may look at.

    It must not write to it, and must not keep it: arrays may be the engine's own, which go on changing.
    """

    now: int
    topology: Topology
    units: tuple[Unit, ...]
    ready: Mask
    """By unit: whether a step of it would do something now."""
    waiting: Int64s
    """By unit: the tuples that wait at its boxes."""
    oldest: Int64s
    """By unit: the QoS timestamp of its oldest waiting tuple, the largest number where none waits."""
    box_waiting: Int64s
    box_oldest: Int64s
    box_ready: Mask
    memory: int
    """Bytes in all queues."""
    train: int
    """The most tuples that a step should take from a queue, unless the policy knows better."""
    busy: Mask
    """By unit: whether a step that uses one of its boxes is under way."""
    workers: int
    """How many steps may be under way at once."""
    free: int
    """How many more may be started now."""
    room: int
    """How many steps of a plan the engine will carry out before it asks again."""
    changed: Sequence[int] | None
    """Units whose readings may have changed since this policy was last asked; None if any may have."""
    spent: Floats
    """By unit: seconds of work done in the step under way, or in one that was preempted; 0 otherwise."""
    held: Int64s
    """By unit: the tuples in that step. Those of a preempted one count as waiting, too."""
    more: bool
    """Whether more tuples may arrive if one waits; False once all inputs have ended, or while they are held back."""
    read_rates: Callable[[], Floats]
    read_boxes: Callable[[], BoxReadings]
    read_outputs: Callable[[], OutputReadings]
    read_queues: Callable[[], QueueReadings]
    read_latencies: Callable[[], Floats]
    read_costs: Callable[[], UnitCosts]
    read_latency: Callable[[int], float]
    exclusive: bool = True
    """Whether units that have a box in common cannot run at once; on Spark each query has boxes of its own."""
    planning: float = 0.0
    """Seconds that a plan has taken lately, as far as the engine knows."""
    read_held: Callable[[], Floats] = lambda: np.zeros(0)
    """Returns by output the seconds by which results are older than what caused them: windows and joins have held
    their tuples so long. Empty where nobody measures it: trains that do not wait need not know."""

    @cached_property
    def rates(self) -> Floats:
        """By source: tuples per second, lately; read when first asked for, because not every policy asks."""
        return self.read_rates()

    @cached_property
    def boxes(self) -> BoxReadings:
        """Cost, selectivity and so on of the boxes; read when first asked for."""
        return self.read_boxes()

    @cached_property
    def outputs(self) -> OutputReadings:
        """How the outputs do; read when first asked for."""
        return self.read_outputs()

    @cached_property
    def queues(self) -> QueueReadings:
        """What waits before each box; read when first asked for."""
        return self.read_queues()

    @cached_property
    def latencies(self) -> Floats:
        """By unit: the mean latency in seconds of its waiting tuples, 0 where none waits; read when first asked for."""
        return self.read_latencies()

    @cached_property
    def costs(self) -> UnitCosts:
        """By unit: what a step costs until its tuples are delivered; read when first asked for."""
        return self.read_costs()

    def latency_of(self, unit: int) -> float:
        """Return one unit's entry of `latencies`, without reading the others."""
        return self.read_latency(unit)

    def expected_of(self, unit: int) -> float:
        """Return the seconds until one unit's train would be delivered."""
        costs, tuples = self.costs, min(int(self.waiting[unit]), self.train)
        return float(costs.overhead[unit]) + float(costs.cost[unit]) * tuples

    def narrowed(self, ready: Mask, train: int) -> Snapshot:
        """Return what a policy inside another one sees: other ready units and another train, the same readings."""
        return replace(
            self,
            ready=ready,
            train=train,
            read_rates=lambda: self.rates,  # each is read once, whoever asks first
            read_boxes=lambda: self.boxes,
            read_outputs=lambda: self.outputs,
            read_queues=lambda: self.queues,
            read_latencies=lambda: self.latencies,
            read_costs=lambda: self.costs,
            changed=None,
        )
