"""Units at run time: how far each query is, and what its steps cost."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from headway.engines.spark.wire.work import CutUnit
from headway.fading import Faded, slope
from headway.trains import NOTHING

_FADE = 0.8
"""How much of a step's weight is left after the next: costs change as the JVM warms up and as state grows."""
_SPREAD = 1e-6
"""The spread of sizes, as a share of their squares, that tells overhead and cost apart."""
_JITTER = 4.0
"""Fixed parts that a micro-batch may take without having worked: they come and go with what else runs."""
_GOOD_PART = 0.25
_FEW = 3
"""Micro-batches that are run cold, whatever they take."""
_ENOUGH = 6
"""Micro-batches until their length is believed."""
_REMEMBERED = 12
"""Micro-batches that tell what the next one will take."""
_UNREPRESENTATIVE = 1
"""First steps that teach nothing: they load classes and start processes."""


@dataclass
class StepCost:
    """The running cost model of a unit's steps, ``overhead + cost * tuples``: fading least squares."""

    steps: int = 0
    _sums: Faded = field(default_factory=lambda: Faded(5))
    overhead: float = 0.0
    cost: float = 0.0

    def learn(self, tuples: int, seconds: float) -> None:
        """Take a step into account."""
        self.steps += 1
        if self.steps <= _UNREPRESENTATIVE:
            return
        added = (1.0, tuples, seconds, tuples * tuples, tuples * seconds)
        sums = self._sums.add(added, _FADE)
        weight, n, t = sums[:3].tolist()
        cost = float(slope(sums, _SPREAD))
        if not cost > 0:  # steps of about the same size tell both apart only by the fixed part known before
            cost = max(0.0, (t / weight - self.overhead) * weight / n) if n and self.overhead else 0.0
        self.cost = cost
        self.overhead = max(0.01, (t - cost * n) / weight)


class Batch(NamedTuple):
    """A micro-batch that has ended."""

    seconds: float
    work: float
    """Seconds in boxes, of all tasks together."""
    tuples: int
    """What its drop boxes let through."""


class BatchWork:
    """What the latest micro-batches took: a fixed part each, and work by the tuple, in seconds of a processor.

    A least-squares fit tells both apart only if batches differ in size, and under load they do not. The boxes say
    themselves what they needed; what a batch takes beyond that, at the least, is its fixed part.
    """

    def __init__(self) -> None:
        """Start without any."""
        self._batches: deque[Batch] = deque(maxlen=_REMEMBERED)

    def add(self, batch: Batch) -> None:
        """Take a micro-batch into account."""
        self._batches.append(batch)

    @property
    def fixed(self) -> float:
        """Seconds that a micro-batch takes before any work; 0 while nothing is known."""
        return max(0.0, min((one.seconds - one.work for one in self._batches), default=0.0))

    @property
    def cost(self) -> float:
        """Seconds of work that a tuple means, in boxes and on the way to them and back; 0 while nothing is known."""
        tuples = sum(one.tuples for one in self._batches)
        if not tuples or len(self._batches) < _FEW:
            return 0.0
        spared, work = _JITTER * self.fixed, sum(one.work for one in self._batches)
        lasted = sum(max(0.0, one.seconds - spared) for one in self._batches)
        # Where boxes do a good part of it, they know best: how long batches last depends on who else runs. The first
        # ones say nothing of it anyhow: classes are loaded and processes started.
        told = work > _GOOD_PART * lasted or len(self._batches) < _ENOUGH
        return (work if told else max(work, lasted)) / tuples


@dataclass
class RunningUnit:
    """One streaming query."""

    number: int
    cut: CutUnit
    begin: int = NOTHING
    """Where a query without a checkpoint starts."""
    query: Any = None
    position: int = NOTHING
    """The arrival number up to which it has been granted."""
    committed: int = NOTHING
    asking: bool = False
    started: int = 0
    granted: int = 0
    """Tuples in the step under way, those included that its drop box drops."""
    expected: float = 0.0
    """How many of them should pass it."""
    dropped: int = 0
    """How many of them it has dropped."""
    worked: int = 0
    """Nanoseconds that its boxes have reported in this step."""
    work: BatchWork = field(default_factory=BatchWork)
    granted_at: int = 0
    plan: int = 0
    """When it was granted, on the run's clock, and by which plan; 0: by none."""
    cost: StepCost = field(default_factory=StepCost)
    batches: int = 0
    tuples: int = 0
    seconds: float = 0.0
    taken: int = -1
    """The last micro-batch whose results were taken."""
    covering: tuple[int, int] = (NOTHING, NOTHING)
    """The arrival numbers that the micro-batch under way covers: above the first, up to the second."""
    losses: int = 0
    """How often its query has lost a process since it last committed."""
    slow_since: int | None = None
    """Since when its process does not start within Spark's ten seconds; None: it does."""
    restarts: int = 0
    """How often its query was started again in this run."""
    replayed: bool = True
    """Whether what happens now began before the query did: the first question after a restart ends it."""

    @property
    def busy(self) -> bool:
        """Whether a step is under way."""
        return not self.asking
