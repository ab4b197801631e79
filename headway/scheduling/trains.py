"""Train rules: how many tuples a step takes, given as text.

Carney et al., "Operator Scheduling in a Data Stream Manager" (VLDB 2003), section 4.2, name what may bound a train
(tuples, variance in latencies, expected processing cost, memory) and leave the rest open. `TRAINS` lists the forms.

A rule says how many of a unit's waiting tuples a step should take, n. A step's size applies to each queue, though,
and a unit may have several; so the size is the largest that takes no more than n in all (for ``overhead``, the
smallest that takes at least n). It is at least 1, otherwise no step would make progress.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np

from headway.clock import SECOND
from headway.columns import Floats, Mask, frozen
from headway.durations import Duration
from headway.errors import NetworkError, PolicyError, choices
from headway.scheduling.graphs import Zones, unit_zones
from headway.scheduling.policy import Plan, Policy, Step, Term, Wrapper, terms_of
from headway.scheduling.snapshot import Snapshot

AUTO = "auto"
TRAINS = {
    "1000": "tuples: at most so many of each queue, as soon as there are some",
    "50%": "share of the unit's waiting tuples",
    "5ms": "time (us, ms, s): as many tuples as are expected to take that long, calls included",
    "64kB": "memory (B, kB, MB, GB): as many tuples as fit, by their mean size",
    "spread:10ms": "latency spread: the tuples that arrived within so long of the oldest",
    "overhead:5%": "self-tuned: the fewest tuples for which calls and planning stay below this share of a step's time",
    AUTO: "wait for more while results stay good, and leave others their slack: by QoS graphs and measured cost",
}
"""The forms of a train rule, by example."""

MOST = 8_000_000
"""The most tuples in a step, and the most that are held back to wait for more."""
FIRST = 65_536
"""The most tuples in a step of a unit whose cost is not known yet."""
SHARE = 0.5
"""The share of a good zone that may be used for waiting and for other units' steps; the rest is a reserve."""
_BYTES = {"GB": 10**9, "MB": 10**6, "kB": 10**3, "B": 1}
_ROUNDING = 1e-9
"""Tolerance for binary fractions, so that 7% of 100 is 7."""


class TrainRule:
    """A rule for how many tuples a step takes. `str` returns text that `parse_train` accepts."""

    __slots__ = ()

    @property
    def most(self) -> int:
        """The snapshot's `train`. By default the most that any step can take, so that `size` alone decides."""
        return MOST

    def size(self, snapshot: Snapshot, unit: int) -> int:
        """Return how many tuples of each queue a step of a unit should take; at least 1. By default the most."""
        return self.most

    def wrap(self, policy: Policy) -> Policy:
        """Wrap a policy so that its steps follow this rule."""
        return Sized(policy, self)


@dataclass(frozen=True, slots=True)
class Sized(Wrapper):
    """Wraps a policy to limit its steps by a rule; the memory is the inner policy's."""

    train: TrainRule

    def plan(self, snapshot: Snapshot, memory: Any) -> tuple[Plan, Any]:
        """Return the inner policy's plan with its steps limited."""
        plan, memory = self.policy.plan(snapshot, memory)
        steps = [Step(unit, min(tuples, self.size(snapshot, unit))) for unit, tuples in plan.steps]
        return Plan(tuple(steps), plan.until), memory

    def size(self, snapshot: Snapshot, unit: int) -> int:
        """Return the rule's size, also for a wrapper that adds steps."""
        return self.train.size(snapshot, unit)


@dataclass(frozen=True, slots=True)
class Tuples(TrainRule):
    """A fixed number of tuples; the snapshot states it, and policies comply."""

    number: int

    @property
    def most(self) -> int:
        """The number."""
        return self.number

    def wrap(self, policy: Policy) -> Policy:
        """Return the policy unchanged."""
        return policy

    def __str__(self) -> str:
        return str(self.number)


@dataclass(frozen=True, slots=True)
class Auto(TrainRule):
    """Trains derived from slack and cost."""

    @property
    def most(self) -> int:
        """The size of a train as long as no cost is known."""
        return FIRST

    def wrap(self, policy: Policy) -> Policy:
        """Wrap a policy in `Patient`."""
        return Patient(policy)

    def __str__(self) -> str:
        return AUTO


@dataclass(frozen=True, slots=True)
class Share(TrainRule):
    """A share of the unit's waiting tuples, rounded up."""

    percent: float

    def size(self, snapshot: Snapshot, unit: int) -> int:
        """Return the share."""
        return _of_each(snapshot, unit, math.ceil(self.percent * int(snapshot.waiting[unit]) / 100 - _ROUNDING))

    def __str__(self) -> str:
        return f"{_plain(self.percent)}%"


@dataclass(frozen=True, slots=True)
class Budget(TrainRule):
    """As many tuples as are expected to be delivered within a time budget, including the overhead of calls."""

    time: Duration

    def size(self, snapshot: Snapshot, unit: int) -> int:
        """Return how many tuples fit into the time; FIRST if their cost is unknown."""
        overhead, cost = float(snapshot.costs.overhead[unit]), float(snapshot.costs.cost[unit])
        if cost <= 0:
            return MOST if overhead > 0 else FIRST
        return _of_each(snapshot, unit, _whole((self.time.seconds - overhead) / cost + _ROUNDING))

    def __str__(self) -> str:
        return str(self.time)


@dataclass(frozen=True, slots=True)
class Bytes(TrainRule):
    """As many tuples as fit into a number of bytes, by the mean size of the waiting tuples."""

    bytes: int

    def size(self, snapshot: Snapshot, unit: int) -> int:
        """Return how many tuples fit; FIRST if their size is unknown."""
        boxes, queues = np.array(snapshot.units[unit].boxes, np.intp), snapshot.queues
        size, tuples = int(queues.bytes[boxes].sum()), int(queues.tuples[boxes].sum())
        if size <= 0 or tuples <= 0:
            return FIRST
        return _of_each(snapshot, unit, self.bytes * tuples // size)

    def __str__(self) -> str:
        unit = next(name for name, factor in _BYTES.items() if self.bytes % factor == 0)
        return f"{self.bytes // _BYTES[unit]}{unit}"


@dataclass(frozen=True, slots=True)
class LatencySpread(TrainRule):
    """The tuples that arrived within some time of the oldest.

    Arrivals are assumed to be even, so that the newest is as far from the mean latency as the oldest.
    """

    time: Duration

    def size(self, snapshot: Snapshot, unit: int) -> int:
        """Return how many tuples lie within the time of the oldest."""
        waiting = int(snapshot.waiting[unit])
        if waiting < 2:
            return MOST
        age = (snapshot.now - int(snapshot.oldest[unit])) / SECOND
        apart = 2 * (age - snapshot.latency_of(unit))  # between the oldest and the newest
        if apart <= self.time.seconds:
            return MOST
        return _of_each(snapshot, unit, 1 + _whole(self.time.seconds * (waiting - 1) / apart + _ROUNDING))

    def __str__(self) -> str:
        return f"spread:{self.time}"


@dataclass(frozen=True, slots=True)
class Overhead(TrainRule):
    """The fewest tuples for which overhead stays below a share of a step's time.

    A step of n tuples takes ``overhead + cost * n``, plus the time to plan it; so
    ``n >= (overhead + planning) * (1 / share - 1) / cost``. A step never waits for more tuples: if fewer are waiting,
    it takes those. It takes at least the square root of the number waiting: trains of one tuple do not show what part
    of a call is overhead, and the queue would grow without bound.
    """

    percent: float

    def size(self, snapshot: Snapshot, unit: int) -> int:
        """Return how many tuples are enough; FIRST if their cost is unknown."""
        overhead, cost = float(snapshot.costs.overhead[unit]), float(snapshot.costs.cost[unit])
        if cost <= 0:
            return MOST if overhead > 0 else FIRST
        enough = (overhead + snapshot.planning) * (100 / self.percent - 1) / cost
        enough = max(enough, math.isqrt(int(snapshot.waiting[unit])))
        return _of_each(snapshot, unit, math.ceil(min(MOST, enough) - _ROUNDING), at_least=True)

    def __str__(self) -> str:
        return f"overhead:{_plain(self.percent)}%"


_NOTHING: Floats = frozen(np.zeros(0))


class Patience(NamedTuple):
    """The memory of `Patient`: the inner policy's, and how long tuples may wait (see `Zones.patience`)."""

    inner: Any
    zones: Zones | None = None
    inside: Floats = _NOTHING
    good: Floats = _NOTHING
    others: Floats = _NOTHING


@dataclass(frozen=True, slots=True)
class Patient(Wrapper):
    """Wraps a policy to derive trains from slack and cost.

    A ready unit is held back from the inner policy while more tuples may arrive and its oldest tuple would be
    delivered before SHARE of the good zone has passed, even if all other ready units ran first. It is never
    held back while its cost is unknown (its first steps measure it), if only marks wait, or if MOST tuples wait.

    A step takes as many tuples as fit into SHARE of the shortest good zone of the other units, which wait
    meanwhile if no worker is left for them; but always so many that no more than half of its time is overhead.
    The inner policy may take fewer.
    """

    def start(self) -> Patience:
        """Return a memory with only the inner policy's part."""
        return Patience(self.policy.start())

    def inner(self, memory: Patience) -> Any:
        """Return the inner policy's memory."""
        return memory.inner

    def plan(self, snapshot: Snapshot, memory: Patience) -> tuple[Plan, Patience]:
        """Return the inner policy's plan for the units that are not held back, with its steps limited."""
        zones, inside = snapshot.layout.once(unit_zones), snapshot.held_inside
        if memory.zones is not zones or not np.array_equal(memory.inside, inside):
            memory = Patience(memory.inner, zones, inside, *zones.patience(inside))
        held, until = _held(snapshot, memory.good)
        if self.preemptive:
            held &= ~(snapshot.busy | (snapshot.spent > 0))  # a step that has begun may continue
        ready = snapshot.ready & ~held
        if not ready.any():
            return Plan((), until), memory
        plan, inner = self.policy.plan(snapshot.narrowed(ready, train=MOST), memory.inner)
        costs = snapshot.costs
        # With a worker for each unit no unit waits for a worker.
        crowded = len(plan.steps) >= snapshot.free and len(snapshot.units) > snapshot.workers
        steps = []
        for unit, tuples in plan.steps:
            room = SHARE * float(memory.others[unit]) if crowded else math.inf
            steps.append(Step(unit, min(tuples, _fitting(float(costs.overhead[unit]), float(costs.cost[unit]), room))))
        moments = [moment for moment in (until, plan.until) if moment is not None]
        return Plan(tuple(steps), min(moments, default=None)), memory._replace(inner=inner)

    def terms(self, snapshot: Snapshot, memory: Patience) -> tuple[Term, ...]:
        """Return the inner policy's terms, also for units that are held back."""
        return terms_of(self.policy, snapshot.narrowed(snapshot.ready, train=MOST), memory.inner)


def _held(snapshot: Snapshot, good: Floats) -> tuple[Mask, int | None]:
    """Return which units should be held back, and until when (ns)."""
    none: Mask = np.zeros(len(snapshot.units), np.bool_)
    if not snapshot.more:
        return none, None
    costs, waiting = snapshot.costs, snapshot.waiting
    able = snapshot.ready & (waiting > 0) & (waiting < MOST) & (costs.overhead + costs.cost > 0)
    age = (snapshot.now - np.where(waiting > 0, snapshot.oldest, snapshot.now)) / SECOND
    own = costs.seconds(waiting)
    # Other ready units may run first: if this were ignored, units held back until the same moment would all be late.
    rest = float(own[snapshot.ready].sum()) - own
    spare = SHARE * good - (age + own + rest / max(1, snapshot.workers))
    held = able & (spare > 0)
    if not held.any():
        return none, None
    return held, snapshot.now + max(1, int(np.ceil(spare[held].min() * SECOND)))


def _fitting(overhead: float, cost: float, room: float) -> int:
    """Return how many tuples a step may take to end within `room` seconds; FIRST if the cost is unknown."""
    if cost <= 0:
        return MOST if overhead > 0 else FIRST
    useful = math.ceil(min(MOST, overhead / cost))
    return max(1, useful, math.floor(min(MOST, (room - overhead) / cost)))


def parse_train(value: int | str) -> TrainRule:
    """Parse a number or a text into a rule. Raises a PolicyError that lists the forms."""
    rule: TrainRule | None = None
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        rule = Tuples(value)
    elif isinstance(value, str):
        rule = _parsed(value.strip())
    if rule is None:
        raise PolicyError(
            f"train {value!r} has none of these forms: {choices(TRAINS)}; numbers must be above 0, shares at "
            "most 100%, and the share of overhead below 100%"
        )
    return rule


def _parsed(text: str) -> TrainRule | None:
    """Return the rule given by a text, or None if it has none of the forms."""
    kind, colon, rest = text.partition(":")
    if kind == "spread" and colon:
        time = _duration(rest)
        return LatencySpread(time) if time else None
    if colon:
        percent = _percent(rest) if kind == "overhead" else None
        return Overhead(percent) if percent is not None and percent < 100 else None
    if text == AUTO:
        return Auto()
    if re.fullmatch("[0-9]{1,18}", text) and int(text) > 0:
        return Tuples(int(text))
    percent = _percent(text)
    if percent is not None:
        return Share(percent)
    memory = re.fullmatch(r"([0-9]{1,18}(?:\.[0-9]{1,18})?) ?(B|kB|KB|MB|GB)", text)
    if memory:
        bytes = Decimal(memory[1]) * _BYTES[memory[2].replace("KB", "kB")]
        return Bytes(int(bytes)) if bytes >= 1 and bytes == int(bytes) else None
    time = _duration(text)
    return Budget(time) if time else None


def _percent(text: str) -> float | None:
    """Parse a percentage above 0 and up to 100; None if the text is not one."""
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) ?%", text)
    percent = float(found[1]) if found else 0.0
    return percent if 0 < percent <= 100 else None


def _duration(text: str) -> Duration | None:
    """Parse a duration above 0; None if the text is not one."""
    try:
        time = Duration.parse(text)
    except NetworkError:
        return None
    return time if time.microseconds > 0 else None


def _plain(number: float) -> str:
    """Format a number without an exponent, and whole numbers without a fraction."""
    text = format(Decimal(repr(number)), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _whole(number: float) -> int:
    return math.floor(max(0.0, min(MOST, number)))


def _of_each(snapshot: Snapshot, unit: int, total: int, *, at_least: bool = False) -> int:
    """Return the largest number of tuples per queue that takes no more than `total` of a unit; at least 1.

    With `at_least`, return the smallest number that takes at least `total`, or everything.
    """
    boxes, below = snapshot.units[unit].boxes, total - at_least
    if len(boxes) > 1:
        queued = np.sort(snapshot.box_waiting[list(boxes)])
        if 0 <= below < int(queued.sum()):
            shorter = np.cumsum(queued) - queued  # what the shorter queues hold
            levels = (below - shorter) // np.arange(len(queued), 0, -1)
            # The first queue that is longer than an even share for it and the longer queues.
            return max(1, int(levels[np.argmax(queued > levels)]) + at_least)
    return max(1, min(total, MOST))
