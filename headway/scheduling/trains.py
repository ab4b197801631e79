"""Trains: how many tuples a step takes, as a rule that is written as text.

Carney et al., "Operator Scheduling in a Data Stream Manager" (VLDB 2003), section 4.2, name what may bound a train
and leave the rest open: tuples, variance in latencies, expected processing cost, memory. `TRAINS` lists the texts.

A rule says how many of a unit's waiting tuples a step should take, n. An engine takes so many of each queue,
though, and a unit may have several; so the step's number is the largest that takes no more than n in all (for
``overhead``, the smallest that takes at least n). It is at least 1, or nothing would ever move.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np

from headway.catalog import Floats
from headway.clock import SECOND
from headway.columns import Mask
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
"""By example of its form: what a train is."""

MOST = 8_000_000
"""The most tuples in a step, and the most that are kept waiting."""
FIRST = 65_536
"""The most tuples in a step of a unit whose cost is not known yet."""
SHARE = 0.5
"""How much of a good zone is used for waiting, and for others' steps: the other half is for what was not foreseen."""
_BYTES = {"GB": 10**9, "MB": 10**6, "kB": 10**3, "B": 1}
_ROUNDING = 1e-9
"""So that 7 % of 100 are 7, whatever binary fractions make of it."""


class TrainRule(ABC):
    """How many tuples a step takes. `str` gives the text that `parse_train` reads back."""

    __slots__ = ()

    @property
    def most(self) -> int:
        """What a snapshot calls its train: by default as many as a step can take, and `size` says how many it does."""
        return MOST

    @abstractmethod
    def size(self, snapshot: Snapshot, unit: int) -> int:
        """Return how many tuples of each queue a step of a unit should take, at least 1."""

    def wrap(self, policy: Policy) -> Policy:
        """Return the policy with steps of this size."""
        return Sized(policy, self)


@dataclass(frozen=True, slots=True)
class Sized(Wrapper):
    """Any policy, with steps no larger than a rule says; its memory is the inner policy's."""

    train: TrainRule

    def plan(self, snapshot: Snapshot, memory: Any) -> tuple[Plan, Any]:
        """Return the inner policy's plan with steps of the right size."""
        plan, memory = self.policy.plan(snapshot, memory)
        steps = [Step(unit, min(tuples, self.size(snapshot, unit))) for unit, tuples in plan.steps]
        return Plan(tuple(steps), plan.until), memory

    def size(self, snapshot: Snapshot, unit: int) -> int:
        """Return how large a step of a unit may be, also for a policy around this one that adds steps."""
        return self.train.size(snapshot, unit)


@dataclass(frozen=True, slots=True)
class Tuples(TrainRule):
    """So many tuples; the snapshot says it, and policies keep to it."""

    number: int

    @property
    def most(self) -> int:
        """The number."""
        return self.number

    def size(self, snapshot: Snapshot, unit: int) -> int:
        """Return the number."""
        return self.number

    def wrap(self, policy: Policy) -> Policy:
        """Return the policy itself."""
        return policy

    def __str__(self) -> str:
        return str(self.number)


@dataclass(frozen=True, slots=True)
class Auto(TrainRule):
    """Trains that follow from slack and cost."""

    @property
    def most(self) -> int:
        """What is taken as long as nothing is known."""
        return FIRST

    def size(self, snapshot: Snapshot, unit: int) -> int:
        """Return the largest step; a patient policy knows better."""
        return MOST

    def wrap(self, policy: Policy) -> Policy:
        """Return a patient policy."""
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
    """As many tuples as are expected to be delivered within a time, the overhead of calls included."""

    time: Duration

    def size(self, snapshot: Snapshot, unit: int) -> int:
        """Return how many tuples fit into the time; FIRST where nothing is known of their cost."""
        overhead, cost = float(snapshot.costs.overhead[unit]), float(snapshot.costs.cost[unit])
        if cost <= 0:
            return MOST if overhead > 0 else FIRST
        return _of_each(snapshot, unit, _whole((self.time.seconds - overhead) / cost + _ROUNDING))

    def __str__(self) -> str:
        return str(self.time)


@dataclass(frozen=True, slots=True)
class Bytes(TrainRule):
    """As many tuples as fit into some bytes, by the mean size of those that wait."""

    bytes: int

    def size(self, snapshot: Snapshot, unit: int) -> int:
        """Return how many tuples fit; FIRST where nothing is known of their size."""
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

    They are taken to have arrived evenly, the newest as far from their mean latency as the oldest.
    """

    time: Duration

    def size(self, snapshot: Snapshot, unit: int) -> int:
        """Return how many tuples lie within the time."""
        waiting = int(snapshot.waiting[unit])
        if waiting < 2:
            return MOST
        age = (snapshot.now - int(snapshot.oldest[unit])) / SECOND
        apart = 2 * (age - snapshot.latency_of(unit))  # the oldest and the newest
        if apart <= self.time.seconds:
            return MOST
        return _of_each(snapshot, unit, 1 + _whole(self.time.seconds * (waiting - 1) / apart + _ROUNDING))

    def __str__(self) -> str:
        return f"spread:{self.time}"


@dataclass(frozen=True, slots=True)
class Overhead(TrainRule):
    """The fewest tuples for which overhead stays below a share of a step's time.

    A step of n tuples takes ``overhead + cost * n``, and planning it takes some time, too; so
    ``n >= (overhead + planning) * (1 / share - 1) / cost``. It never waits for tuples: where fewer are there, it
    takes those. And it takes no fewer than the square root of what waits: from trains of one tuple nobody learns what
    a call costs, and a queue would grow for ever.
    """

    percent: float

    def size(self, snapshot: Snapshot, unit: int) -> int:
        """Return how many tuples are enough; FIRST where nothing is known of their cost."""
        overhead, cost = float(snapshot.costs.overhead[unit]), float(snapshot.costs.cost[unit])
        if cost <= 0:
            return MOST if overhead > 0 else FIRST
        enough = (overhead + snapshot.planning) * (100 / self.percent - 1) / cost
        enough = max(enough, math.isqrt(int(snapshot.waiting[unit])))
        return _of_each(snapshot, unit, math.ceil(min(MOST, enough) - _ROUNDING), at_least=True)

    def __str__(self) -> str:
        return f"overhead:{_plain(self.percent)}%"


class Patience(NamedTuple):
    """What is remembered of how long tuples may wait; see `Zones.patience`."""

    inner: Any
    zones: Zones | None = None
    inside: Floats = np.zeros(0)
    good: Floats = np.zeros(0)
    others: Floats = np.zeros(0)


@dataclass(frozen=True, slots=True)
class Patient(Wrapper):
    """Any policy, with trains that follow from slack and cost.

    A ready unit is kept from the inner policy while more tuples may arrive and its oldest tuple would be
    delivered before SHARE of the good zone has passed, even if all other ready units came first. It is never
    kept when its cost is not known yet (first steps teach it), when only marks wait, or when MOST tuples wait.

    A step takes as many tuples as fit into SHARE of the shortest good zone of the other units, which wait
    meanwhile if no worker is left for them; but always so many that no more than half of its time is overhead.
    The inner policy may take fewer.
    """

    def start(self) -> Patience:
        """Nothing is prepared; the inner policy's memory comes along."""
        return Patience(self.policy.start())

    def inner(self, memory: Patience) -> Any:
        """Return the inner policy's memory."""
        return memory.inner

    def plan(self, snapshot: Snapshot, memory: Patience) -> tuple[Plan, Patience]:
        """Return the inner policy's plan for the units that should not wait, with steps of the right size."""
        zones, inside = snapshot.layout.once(unit_zones), snapshot.held_inside
        if memory.zones is not zones or not np.array_equal(memory.inside, inside):
            memory = Patience(memory.inner, zones, inside, *zones.patience(inside))
        held, until = _held(snapshot, memory.good)
        if self.preemptive:
            held &= ~(snapshot.busy | (snapshot.spent > 0))  # what has begun is not kept from going on
        ready = snapshot.ready & ~held
        if not ready.any():
            return Plan((), until), memory
        plan, inner = self.policy.plan(snapshot.narrowed(ready, train=MOST), memory.inner)
        costs = snapshot.costs
        # With a worker for each unit nobody waits for one.
        crowded = len(plan.steps) >= snapshot.free and len(snapshot.units) > snapshot.workers
        steps = []
        for unit, tuples in plan.steps:
            room = SHARE * float(memory.others[unit]) if crowded else math.inf
            steps.append(Step(unit, min(tuples, _fitting(float(costs.overhead[unit]), float(costs.cost[unit]), room))))
        moments = [moment for moment in (until, plan.until) if moment is not None]
        return Plan(tuple(steps), min(moments, default=None)), memory._replace(inner=inner)

    def terms(self, snapshot: Snapshot, memory: Patience) -> tuple[Term, ...]:
        """Return the inner policy's terms; units that are kept waiting have some, too."""
        return terms_of(self.policy, snapshot.narrowed(snapshot.ready, train=MOST), memory.inner)


def _held(snapshot: Snapshot, good: Floats) -> tuple[Mask, int | None]:
    """Return which units should wait, and until when."""
    none: Mask = np.zeros(len(snapshot.units), np.bool_)
    if not snapshot.more:
        return none, None
    costs, waiting = snapshot.costs, snapshot.waiting
    able = snapshot.ready & (waiting > 0) & (waiting < MOST) & (costs.overhead + costs.cost > 0)
    age = (snapshot.now - np.where(waiting > 0, snapshot.oldest, snapshot.now)) / SECOND
    own = costs.seconds(waiting)
    # What else there is to do may come first: without it, units that wait for the same moment would all be late.
    rest = float(own[snapshot.ready].sum()) - own
    spare = SHARE * good - (age + own + rest / max(1, snapshot.workers))
    held = able & (spare > 0)
    if not held.any():
        return none, None
    return held, snapshot.now + max(1, int(np.ceil(spare[held].min() * SECOND)))


def _fitting(overhead: float, cost: float, room: float) -> int:
    """Return how many tuples a step may take that should end within `room` seconds."""
    if cost <= 0:
        return MOST if overhead > 0 else FIRST
    useful = math.ceil(min(MOST, overhead / cost))
    return max(1, useful, math.floor(min(MOST, (room - overhead) / cost)))


def parse_train(value: int | str) -> TrainRule:
    """Return the rule that a number or a text says. Raises a PolicyError that lists the forms."""
    rule: TrainRule | None = None
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        rule = Tuples(value)
    elif isinstance(value, str):
        rule = _parsed(value.strip())
    if rule is None:
        raise PolicyError(
            f"train {value!r} is none of these forms: {choices(TRAINS)}; numbers are above 0, shares up to 100%, "
            "and that of overhead below"
        )
    return rule


def _parsed(text: str) -> TrainRule | None:
    """Return the rule that a text says, or None where it is of no form."""
    kind, colon, rest = text.partition(":")
    if kind == "spread" and colon:
        time = _duration(rest)
        return LatencySpread(time) if time else None
    if colon:
        percent = _percent(rest) if kind == "overhead" else None
        return Overhead(percent) if percent is not None and percent < 100 else None
    if text == AUTO:
        return Auto()
    if re.fullmatch("[0-9]+", text) and int(text) > 0:
        return Tuples(int(text))
    percent = _percent(text)
    if percent is not None:
        return Share(percent)
    memory = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) ?(B|kB|KB|MB|GB)", text)
    if memory:
        bytes = Decimal(memory[1]) * _BYTES[memory[2].replace("KB", "kB")]
        return Bytes(int(bytes)) if bytes >= 1 and bytes == int(bytes) else None
    time = _duration(text)
    return Budget(time) if time else None


def _percent(text: str) -> float | None:
    """Return a percentage above 0 and up to 100, or None where a text is none."""
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) ?%", text)
    percent = float(found[1]) if found else 0.0
    return percent if 0 < percent <= 100 else None


def _duration(text: str) -> Duration | None:
    """Return a duration above 0, or None where a text is none."""
    try:
        time = Duration.parse(text)
    except NetworkError:
        return None
    return time if time.microseconds > 0 else None


def _plain(number: float) -> str:
    """Return a number without an exponent, and without a fraction where it has none."""
    text = format(Decimal(repr(number)), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _whole(number: float) -> int:
    return math.floor(max(0.0, min(MOST, number)))


def _of_each(snapshot: Snapshot, unit: int, total: int, *, at_least: bool = False) -> int:
    """Return the largest number of tuples of each queue that takes no more than `total` of a unit.

    Or, with `at_least`, the smallest that takes so many, or all. At least 1.
    """
    boxes, below = snapshot.units[unit].boxes, total - at_least
    if len(boxes) > 1:
        queued = np.sort(snapshot.box_waiting[list(boxes)])
        if 0 <= below < int(queued.sum()):
            shorter = np.cumsum(queued) - queued  # what the shorter queues hold
            levels = (below - shorter) // np.arange(len(queued), 0, -1)
            # The first queue that is longer than the number which it and the longer ones could share.
            return max(1, int(levels[np.argmax(queued > levels)]) + at_least)
    return max(1, min(total, MOST))
