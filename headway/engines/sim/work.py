"""Steps in virtual time: the call under way, its trains, and how much of it is done."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from headway.boxes.costs import Constant, Cost, LastTuple, draw, places_of, tuple_keys
from headway.catalog import Statistics
from headway.checking import CheckedNetwork
from headway.clock import SECOND
from headway.columns import NEVER, Floats, Int64s
from headway.engines.models import Model
from headway.engines.traces import CallRecord
from headway.trains import Train


class Stretch(NamedTuple):
    """A period in which a call is worked on: its start, and the nanoseconds of the call done before."""

    done: int
    moment: int
    """Far in the future while the call is halted."""


@dataclass(slots=True)
class UnderWay:
    """A box call under way: its trains are taken, its results leave when it ends."""

    box: int
    trains: tuple[Train, ...]
    tuples: int
    numbers: Int64s
    """The arrival numbers of its tuples, ascending."""
    offsets: Int64s
    """By tuple: the nanoseconds of the call after which it is done."""
    cost: int
    """Nanoseconds of the whole call, including overheads."""
    storage: int
    """The part of `cost` spent on taking tuples from storage."""
    stretches: list[Stretch]
    """The periods in which it was worked on; the last one may be under way."""
    taken_up: int
    """When a processor last began to work on it."""

    @property
    def oldest(self) -> int:
        """The oldest timestamp among its tuples."""
        return min([int(train.stamps.min()) for train in self.trains if len(train.stamps)], default=NEVER)

    @property
    def end(self) -> int:
        """When it ends unless it is preempted or delayed."""
        done, moment = self.stretches[-1]
        return moment + self.cost - done

    def done(self, now: int) -> int:
        """Return the nanoseconds of the call that are done."""
        done, moment = self.stretches[-1]
        return min(self.cost, done + max(0, now - moment))

    def halt(self, now: int) -> None:
        """Stop working on the call."""
        done = self.done(now)
        if self.stretches[-1].done == done:  # drop a stretch without work
            self.stretches.pop()
        self.stretches.append(Stretch(done, NEVER))

    def go_on(self, moment: int) -> None:
        """Resume work on the call at a moment."""
        self.stretches[-1] = Stretch(self.stretches[-1].done, moment)

    def delay(self, now: int, span: int) -> None:
        """Suspend the call for `span` nanoseconds, from now or from when work on it begins."""
        moment = max(now, self.stretches[-1].moment)
        self.halt(now)
        self.go_on(moment + span)

    def leaving(self, train: Train) -> Int64s:
        """Return when each result left: one after the other, as the tuples that caused them were done."""
        if len(self.offsets) < 2:  # with one tuple, all results leave at the end
            return np.full(len(train), self.end, np.int64)
        done = self.cost - self.offsets[-1] + self.offsets[_causes(self.numbers, train.numbers)]
        begun, moments = np.array(self.stretches, np.int64).T
        at = np.maximum(np.searchsorted(begun, done, side="left") - 1, 0)  # what is done at a halt left before it
        left: Int64s = moments[at] + done - begun[at]
        return left


def _causes(numbers: Int64s, results: Int64s) -> Int64s:
    """Return by result the index of the tuple that caused it, which has the same arrival number.

    If several tuples share a number, its results are divided among them in order, as evenly as possible. If there are
    fewer results than tuples, each result waits for the last tuple that may have caused it.
    """
    after = np.searchsorted(numbers, results, side="right")
    causes: Int64s = np.maximum(after - 1, 0)
    alike = after - np.searchsorted(numbers, results, side="left")
    if (alike > 1).any():
        places, _ = places_of(results)
        starts = np.flatnonzero(places == 0)
        many = np.repeat(np.diff(starts, append=len(results)), np.diff(starts, append=len(results)))
        shared = after - alike + -(-(places + 1) * alike // many) - 1
        causes = np.where(alike > 1, shared, causes)
    return causes


@dataclass(slots=True)
class BegunStep:
    """A step that has begun: running on a processor, or preempted."""

    unit: int
    limit: int
    order: Sequence[int]
    plan: int
    place: int = 0
    """The index of its next call in `order`."""
    call: UnderWay | None = None
    fed: dict[int, int] = field(default_factory=dict)
    """By box: tuples queued for it by calls of this step, which need not be fetched from storage."""
    worker: int = -1
    started: int = 0
    """When a processor last took it up; work begins after the overheads."""
    taken: int = 0
    """Tuples taken from queues that other steps filled."""
    log: list[CallRecord] = field(default_factory=list)

    @property
    def end(self) -> int:
        """When the current call ends."""
        assert self.call is not None
        return self.call.end


_WARM, _COOLER = 8, 4
"""Calls of a box with extra warm-up time, and the factor by which that time shrinks per call."""
_UNEVEN = 7
"""The index of the random draw for the noise of calls, distinct from that for tuple costs."""
_TWICE: Int64s = np.zeros(2, np.int64)
_FRACTIONS = 20
"""Fractional bits of a nanosecond that are carried over from call to call."""


class Costs:
    """The costs of calls, in whole nanoseconds.

    Fractions of a nanosecond are carried over to a box's next call, so that its total cost is the same however its
    tuples are cut into trains.
    """

    def __init__(self, checked: CheckedNetwork, model: Model) -> None:
        """Determine every box's cost: the model's, its own if it is universal, or the model's default."""
        model.check({box.name: box for box in checked.order})
        self._names = [box.name for box in checked.order]
        said = [box.spec.modelled for box in checked.order]
        self.each: list[Cost] = [
            model.costs.get(box.name, model.default if own is None else own.cost)
            for box, own in zip(checked.order, said, strict=True)
        ]
        self._seeds = [
            model.seed if own is None or box.name in model.costs else own.seed
            for box, own in zip(checked.order, said, strict=True)
        ]
        self._constant = [_whole(cost.each) if isinstance(cost, Constant) else None for cost in self.each]
        self._selectivities = [
            np.nan if own is None or box.spec.selectivity is None else float(box.spec.selectivity)
            for box, own in zip(checked.order, said, strict=True)
        ]
        self._last = [LastTuple() for _ in checked.order]
        self._carried = [0] * len(checked.order)
        calls = [model.calls.get(box.name, 0.0) for box in checked.order]
        self.call = [round((seconds + model.overheads.call) * SECOND) for seconds in calls]
        self.storage = round(model.overheads.storage * SECOND)
        self.scheduler = round(model.overheads.scheduler * SECOND)
        self.preemption = round(model.overheads.preemption * SECOND)
        self.round = round(model.overheads.round * SECOND)
        self.arrival = model.overheads.arrival * SECOND
        self.wake = round(model.overheads.wake * SECOND)
        self._learned = model.learned
        self._seed = model.seed
        self._called = [0] * len(checked.order)

    def spend(self, box: int, numbers: Int64s) -> tuple[Int64s, int]:
        """Begin a call; return after how many nanoseconds each of its tuples is done, and what the call costs in total.

        If costs are to be learned, a box's first calls take longer and every call varies: by a hash of seed, box and
        the number of the call, so that a run is reproducible.
        """
        offsets = self.offsets(box, numbers)
        if not len(offsets):
            return offsets, 0  # passing on a mark is free
        cost = self.call[box]
        if self._learned is not None:
            at = self._called[box]
            self._called[box] = at + 1
            if self._learned.noise:
                factor = self._uneven(box, at, self._learned.noise)
                offsets, cost = np.rint(offsets * factor).astype(np.int64), round(cost * factor)
            if at < _WARM:
                cost += round(self._learned.warmup * SECOND / _COOLER**at)
        return offsets, cost + int(offsets[-1])

    def _uneven(self, box: int, call: int, noise: float) -> float:
        """Return the factor by which a call's duration varies: lognormal, with a mean of 1."""
        keys = tuple_keys(self._seed, self._names[box], np.array([2 * call, 2 * call + 1]), _TWICE)
        first, second = (float(one) for one in draw(keys, _UNEVEN))
        normal = math.sqrt(-2 * math.log(1 - first)) * math.cos(2 * math.pi * second)
        return math.exp(noise * normal - noise * noise / 2)

    def offsets(self, box: int, numbers: Int64s) -> Int64s:
        """Return after how many nanoseconds each tuple of a call is done, one after the other."""
        count = len(numbers)
        if not count:
            return np.zeros(0, np.int64)
        constant = self._constant[box]
        if constant is not None:
            each = np.arange(1, count + 1) if count > 1 else _ONE
            whole, parts = constant[0] * each, constant[1] * each
        else:
            places, self._last[box] = places_of(numbers, self._last[box])
            keys = tuple_keys(self._seeds[box], self._names[box], numbers, places)
            wholes, rests = _split(self.each[box].seconds(keys))
            whole, parts = np.cumsum(wholes), np.cumsum(rests)
        parts += self._carried[box]
        self._carried[box] = int(parts[-1]) & (1 << _FRACTIONS) - 1
        offsets: Int64s = whole + (parts >> _FRACTIONS)
        return offsets

    def declare(self, statistics: Statistics) -> None:
        """Declare what the model knows to policies: costs, and the declared selectivity of universal boxes.

        If costs are to be learned, nothing is declared, as in real engines.
        """
        if self._learned is not None:
            return
        statistics.declare(
            cost=np.array([cost.mean for cost in self.each]),
            overhead=np.array([one / SECOND for one in self.call]),
            selectivity=np.array(self._selectivities),
            exact=True,
        )


_ONE: Int64s = np.ones(1, np.int64)


def _whole(seconds: float) -> tuple[int, int]:
    whole, parts = _split(np.array([seconds]))
    return int(whole[0]), int(parts[0])


def _split(seconds: Floats) -> tuple[Int64s, Int64s]:
    """Return whole nanoseconds, and the remainder as integer fractions, so that sums of both are exact in any order."""
    nanoseconds = seconds * SECOND
    whole = np.floor(nanoseconds)
    return whole.astype(np.int64), np.rint((nanoseconds - whole) * (1 << _FRACTIONS)).astype(np.int64)
