"""Trains that follow from slack and cost: wait while nothing is lost by it, then take as much as others can bear.

Every step has fixed costs. The more tuples share them the better, and while the oldest waiting tuple is sure
to be delivered within the good zone of its outputs, letting it wait costs nobody anything.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headway.catalog import Topology
from headway.clock import SECOND
from headway.columns import Int64s, Mask
from headway.scheduling.policy import Plan, Policy, Step, Term, is_preemptive, rule_of, terms_of
from headway.scheduling.snapshot import Floats, Snapshot, Unit

SHARE = 0.5
"""How much of a good zone is used for waiting, and for others' steps: the other half is for what was not foreseen."""
DEFAULT_GOOD = 1.0
"""Seconds until which an output without a latency graph, or with one that never falls, counts as good.

Somebody who looks at results takes half a second for at once, and half a second of arrivals shares out the
fixed costs even of steps that take tens of milliseconds to start.
"""
MOST = 8_000_000
"""The most tuples in a step, and the most that are kept waiting."""
FIRST = 65_536
"""The most tuples in a step of a unit whose cost is not known yet."""


@dataclass(frozen=True, slots=True)
class Zones:
    """How long the units' outputs are good, in seconds, by unit."""

    units: tuple[Unit, ...]
    good: Floats
    """How long the unit's tuples may take: the end of the shortest good zone among its outputs, less the time for
    which its windows hold them anyway; no longer than its windows take to time out."""
    others: Floats
    """The same among all other units, infinite where there is none."""
    held: Floats
    """By output: how long its windows hold tuples, of which that is so."""
    ends: Floats
    """By output, and once more for units without any: the end of the good zone as its graph has it."""
    graded: Mask
    """By output, and once more: whether it has a graph."""
    outputs: Int64s
    """The outputs of all units, one unit after the other."""
    starts: Int64s
    """By unit: where its outputs begin there."""
    bound: Floats
    """By unit: the shortest time after which its windows time out."""

    def with_held(self, held: Floats) -> Zones:
        """Return the zones for somebody who waits, where windows hold tuples for so long anyway; also timeouts count.

        What is late whatever one does (held for longer than it is good) is not hurried.
        """
        inside = np.zeros(len(self.ends))
        inside[: len(held)] = held
        ends = np.where(self.graded & (inside < self.ends), self.ends - inside, self.ends)
        good: Floats = np.minimum.reduceat(ends[self.outputs], self.starts) if self.units else np.zeros(0)
        good = np.minimum(good, self.bound)
        return replace(self, good=good, others=_others(good), held=held)


@dataclass(frozen=True, slots=True)
class Patient:
    """Any policy, with trains that follow from slack and cost.

    A ready unit is kept from the inner policy while more tuples may arrive and its oldest tuple would be
    delivered before SHARE of the good zone has passed, even if all other ready units came first. It is never
    kept when its cost is not known yet (first steps teach it), when only marks wait, or when MOST tuples wait.

    A step takes as many tuples as fit into SHARE of the shortest good zone of the other units, which wait
    meanwhile if no worker is left for them; but always so many that no more than half of its time is overhead.
    The inner policy may take fewer.
    """

    policy: Policy

    @property
    def preemptive(self) -> bool:
        """Whether the inner policy is."""
        return is_preemptive(self.policy)

    def start(self) -> tuple[Zones | None, Any]:
        """Nothing is prepared; the inner policy's memory comes along."""
        return None, self.policy.start()

    def plan(self, snapshot: Snapshot, memory: tuple[Zones | None, Any]) -> tuple[Plan, tuple[Zones | None, Any]]:
        """Return the inner policy's plan for the units that should not wait, with steps of the right size."""
        zones, inner = memory
        inside = snapshot.held_inside
        if zones is None or zones.units is not snapshot.units:
            zones = unit_zones(snapshot.topology, snapshot.units).with_held(inside)
        elif not np.array_equal(zones.held, inside):
            zones = zones.with_held(inside)
        held, until = _held(snapshot, zones)
        if self.preemptive:
            held &= ~(snapshot.busy | (snapshot.spent > 0))  # what has begun is not kept from going on
        ready = snapshot.ready & ~held
        if not ready.any():
            return Plan((), until), (zones, inner)
        plan, inner = self.policy.plan(snapshot.narrowed(ready, MOST), inner)
        costs = snapshot.costs
        # With a worker for each unit nobody waits for one.
        crowded = len(plan.steps) >= snapshot.free and len(snapshot.units) > snapshot.workers
        steps = []
        for unit, tuples in plan.steps:
            room = SHARE * float(zones.others[unit]) if crowded else math.inf
            steps.append(Step(unit, min(tuples, _size(float(costs.overhead[unit]), float(costs.cost[unit]), room))))
        moments = [moment for moment in (until, plan.until) if moment is not None]
        return Plan(tuple(steps), min(moments, default=None)), (zones, inner)

    def terms(self, snapshot: Snapshot, memory: tuple[Zones | None, Any]) -> tuple[Term, ...]:
        """Return the inner policy's terms; units that are kept waiting have some, too."""
        return terms_of(self.policy, snapshot.narrowed(snapshot.ready, MOST), memory[1])

    def rule(self, snapshot: Snapshot, memory: tuple[Zones | None, Any], unit: int) -> str | None:
        """Return the inner policy's rule."""
        return rule_of(self.policy, snapshot, memory[1], unit)


def unit_zones(topology: Topology, units: tuple[Unit, ...]) -> Zones:
    """Return the good zones of all units, as they stand in the graphs."""
    ends = []
    for qos in topology.qos:
        end = float("inf") if qos.latency is None else qos.latency.good_until
        ends.append(DEFAULT_GOOD if end == float("inf") else max(0.0, end))
    found: Floats = np.array([*ends, DEFAULT_GOOD])
    graded = np.array([*(qos.latency is not None for qos in topology.qos), False], np.bool_)
    outputs = [list(unit.outputs) or [len(ends)] for unit in units]
    flat = np.array([output for some in outputs for output in some], np.int64)
    starts = np.cumsum([0, *(len(some) for some in outputs[:-1])])[: len(units)]
    good: Floats = np.minimum.reduceat(found[flat], starts) if units else np.zeros(0)
    times = topology.timeouts
    # A policy may ask for outputs as if they were units: these have no boxes.
    bound = np.array([min([math.inf, *(times[box] for box in unit.boxes if times)]) for unit in units], np.float64)
    return Zones(units, good, _others(good), np.zeros(0), found, graded, flat, starts, bound)


def _others(good: Floats) -> Floats:
    """Return by unit the shortest good zone among all others, infinite where there is none."""
    others: Floats = np.full(len(good), np.inf)
    if len(good) > 1:
        shortest = int(np.argmin(good))
        others[:] = good[shortest]
        others[shortest] = np.partition(good, 1)[1]
    return others


def _ages(snapshot: Snapshot) -> Floats:
    """Return by unit the latency in seconds of its oldest waiting tuple, 0 where none waits."""
    ages: Floats = (snapshot.now - np.where(snapshot.waiting > 0, snapshot.oldest, snapshot.now)) / SECOND
    return ages


def _held(snapshot: Snapshot, zones: Zones) -> tuple[Mask, int | None]:
    """Return which units should wait, and until when."""
    none: Mask = np.zeros(len(snapshot.units), np.bool_)
    if not snapshot.more:
        return none, None
    costs, waiting = snapshot.costs, snapshot.waiting
    able = snapshot.ready & (waiting > 0) & (waiting < MOST) & (costs.overhead + costs.cost > 0)
    age = _ages(snapshot)
    own = costs.seconds(waiting)
    # What else there is to do may come first: without it, units that wait for the same moment would all be late.
    rest = float(own[snapshot.ready].sum()) - own
    spare = SHARE * zones.good - (age + own + rest / max(1, snapshot.workers))
    held = able & (spare > 0)
    if not held.any():
        return none, None
    return held, snapshot.now + max(1, int(np.ceil(spare[held].min() * SECOND)))


def _size(overhead: float, cost: float, room: float) -> int:
    """Return how many tuples a step may take that should end within `room` seconds."""
    if cost <= 0:
        return MOST if overhead > 0 else FIRST
    useful = math.ceil(min(MOST, overhead / cost))
    return max(1, useful, math.floor(min(MOST, (room - overhead) / cost)))
