"""Steps in virtual time: which call of a step is under way, on which trains, and how much of it is left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from headway.boxes.costs import Constant, Cost, Place, places_of, tuple_keys
from headway.boxes.universal import Universal
from headway.catalog import Statistics
from headway.checking import CheckedNetwork
from headway.clock import SECOND
from headway.columns import Int64s
from headway.engines.models import Model
from headway.engines.traces import CallRecord
from headway.trains import Train


@dataclass(slots=True)
class UnderWay:
    """A box call under way: its trains are taken, its results come when it ends."""

    box: int
    trains: tuple[Train, ...]
    tuples: int
    numbers: Int64s
    """The arrival numbers of its tuples, ascending."""
    offsets: Int64s
    """By tuple: after how many nanoseconds of the call it is done."""
    cost: int
    """Nanoseconds of the whole call, its overheads included."""
    left: int
    """Nanoseconds that it still takes."""
    begun: int

    @property
    def oldest(self) -> int:
        """The oldest timestamp among its tuples."""
        return min([int(train.stamps.min()) for train in self.trains if len(train.stamps)], default=_FAR)


_FAR = int(np.iinfo(np.int64).max)


@dataclass(slots=True)
class Work:
    """A step that has begun. It is under way on a processor, or preempted."""

    unit: int
    limit: int
    order: Sequence[int]
    plan: int
    place: int = 0
    """Which of its calls comes next."""
    call: UnderWay | None = None
    fed: dict[int, int] = field(default_factory=dict)
    """By box: the tuples that calls of this step have handed to it: they need not be fetched from storage."""
    worker: int = -1
    started: int = 0
    """When the processor took it up, the last time; work on it begins when overheads are over."""
    begin: int = 0
    end: int = 0
    """When the call under way ends."""
    taken: int = 0
    log: list[CallRecord] = field(default_factory=list)

    def spent(self, now: int) -> int:
        """Return the nanoseconds of work that the call under way has had."""
        if self.call is None:
            return 0
        running = max(0, min(now, self.end) - self.begin) if self.worker >= 0 else 0
        return self.call.cost - self.call.left + running


class Costs:
    """What calls cost, in whole nanoseconds."""

    def __init__(self, checked: CheckedNetwork, model: Model) -> None:
        """Find the cost of every box: the model's, its own where it is universal, or the model's default."""
        model.check({box.name: box for box in checked.order})
        self._names = [box.name for box in checked.order]
        self.each: list[Cost] = [
            model.costs.get(box.name, box.spec.cost if isinstance(box.spec, Universal) else model.default)
            for box in checked.order
        ]
        self._seeds = [
            box.spec.seed if isinstance(box.spec, Universal) and box.name not in model.costs else model.seed
            for box in checked.order
        ]
        self._constant = [cost.each * SECOND if isinstance(cost, Constant) else None for cost in self.each]
        self._selectivities = [
            float(box.spec.selectivity) if isinstance(box.spec, Universal) else np.nan for box in checked.order
        ]
        self._last = [Place() for _ in checked.order]
        calls = [model.calls.get(box.name, 0.0) for box in checked.order]
        self.call = [round((seconds + model.overheads.call) * SECOND) for seconds in calls]
        self.storage = round(model.overheads.storage * SECOND)
        self.scheduler = round(model.overheads.scheduler * SECOND)
        self.preemption = round(model.overheads.preemption * SECOND)

    def offsets(self, box: int, numbers: Int64s) -> Int64s:
        """Return after how many nanoseconds each of a call's tuples is done, one after the other."""
        constant = self._constant[box]
        if constant is not None:
            if len(numbers) == 1:
                return np.array([round(constant)], np.int64)
            done = np.rint(constant * np.arange(1, len(numbers) + 1))
        else:
            places, self._last[box] = places_of(numbers, self._last[box])
            keys = tuple_keys(self._seeds[box], self._names[box], numbers, places)
            done = np.rint(np.cumsum(self.each[box].seconds(keys)) * SECOND)
        offsets: Int64s = done.astype(np.int64)
        return offsets

    def declare(self, statistics: Statistics) -> None:
        """Let policies know what the model knows: costs, and what universal boxes say of their selectivity."""
        statistics.declare(
            cost=np.array([cost.mean for cost in self.each]),
            overhead=np.array([one / SECOND for one in self.call]),
            selectivity=np.array(self._selectivities),
            exact=True,
        )
