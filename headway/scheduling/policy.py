"""The policy interface: snapshot in, plan out.

A policy is pure. It does not know which engine it drives: a unit may be a box, a superbox or a streaming
query, and a step may take microseconds or seconds. Any state it needs for the next plan is returned with the
plan and passed to the next call.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from headway.costs import Places
from headway.errors import PolicyError, choices, within
from headway.plugins import Entry, Registry
from headway.scheduling.snapshot import Snapshot

WORK = 0.002
"""Seconds of expected work in a plan; after that, readings have changed enough to plan again."""
SHARE = 0.04
"""The largest ratio of planning time to planned work: where planning is expensive, plans are longer."""
STEPS = 64
"""The most steps in a plan; also the most units that are sorted."""


class Step(NamedTuple):
    """Run a unit on at most this many tuples of each queue that feeds it."""

    unit: int
    tuples: int


class Plan(NamedTuple):
    """Steps in the order in which they should start. An engine may run several at once, and may refuse some.

    A policy that makes ready units wait sets `until`, the time (ns) by which it wants to plan again even if nothing
    happens before then.
    """

    steps: tuple[Step, ...]
    until: int | None = None


class Term(NamedTuple):
    """One term of a priority, by unit. Units are sorted by it in ascending order, or descending if `largest`."""

    name: str
    values: npt.NDArray[Any]
    largest: bool = False


class Policy(ABC):
    """A pure scheduling decision. Subclasses must define `plan`; the other methods have defaults that suit most.

    `preemptive`, `fair` and `indifferent` may be overridden by class attributes (``fair = True``) or properties.
    """

    __slots__ = ()

    @property
    def preemptive(self) -> bool:
        """Whether the loop also asks for plans while steps are running: at every arrival and at the plan's `until`.

        Running units are then both ready and busy, and a plan begins with what should be running now.
        """
        return False

    @property
    def fair(self) -> bool:
        """Whether no unit can starve, so that a longest wait is not needed."""
        return False

    @property
    def indifferent(self) -> bool:
        """Whether, given a single unit, the plan is always one step of the snapshot's train as soon as it is ready.

        An engine may then skip the call to `plan`.
        """
        return False

    def __str__(self) -> str:
        """Return the name used in summaries and traces for a policy that was not made by name."""
        return type(self).__name__

    def start(self) -> Any:
        """Return the initial memory, for the first call of `plan`."""
        return None

    @abstractmethod
    def plan(self, snapshot: Snapshot, memory: Any) -> tuple[Plan, Any]:
        """Return the next plan, and the memory for the next call. Must not change its arguments.

        An empty plan means that nothing is worth doing now; the engine then waits for the next event, at the
        latest until the plan's `until`.
        """

    def prepare(self, snapshot: Snapshot, memory: Any) -> Any:
        """Return the memory with everything added that `terms` needs; by default unchanged."""
        return memory

    def terms(self, snapshot: Snapshot, memory: Any) -> tuple[Term, ...]:
        """Return the terms that order units, the most significant first, for explanations. `memory` is prepared."""
        return ()

    def rule(self, snapshot: Snapshot, memory: Any, unit: int) -> str | None:
        """Return why the policy chose a unit, for explanations where the terms do not show it."""
        return None

    def size(self, snapshot: Snapshot, unit: int) -> int:
        """Return the most tuples that a step of a unit may take, for a wrapper that adds steps to the plan."""
        return snapshot.train


def terms_of(policy: Policy, snapshot: Snapshot, memory: Any) -> tuple[Term, ...]:
    """Return a policy's terms, given the memory that its next call of `plan` would get."""
    return policy.terms(snapshot, policy.prepare(snapshot, memory))


class Ranked(Policy):
    """A policy that serves the ready units in the order of its terms; ties by unit number.

    An engine carries out a whole plan before it asks for the next, so a long plan acts on stale readings, and
    planning a single short step costs more than the step. A plan therefore holds about two milliseconds of
    expected work, many short steps or one long step; more where planning takes more than a small share of that.
    With several workers it holds at most one step per free worker, for units that share no boxes with each other
    or with a running step, so that no step waits for a box while a more urgent unit becomes ready. A preemptive
    policy's plan names what should run now.
    """

    @abstractmethod
    def terms(self, snapshot: Snapshot, memory: Any) -> tuple[Term, ...]:
        """Return the terms, the most significant first. `memory` is prepared."""

    def plan(self, snapshot: Snapshot, memory: Any) -> tuple[Plan, Any]:
        """Return steps for the first units in the order of the terms."""
        memory = self.prepare(snapshot, memory)
        preemptive = self.preemptive
        able = np.flatnonzero(snapshot.ready if preemptive else snapshot.ready & ~snapshot.busy)
        keys = [-term.values if term.largest else term.values for term in self.terms(snapshot, memory)]
        several = preemptive or snapshot.workers > 1
        order = foremost(able, keys, STEPS if several or snapshot.room > STEPS else max(1, snapshot.room))
        if several:
            chosen = apart(snapshot, order, snapshot.workers if preemptive else min(snapshot.free, snapshot.room))
        elif snapshot.room == 1:
            chosen = order[:1].tolist()
        else:
            expected = snapshot.costs.seconds(np.minimum(snapshot.waiting, snapshot.train))[order]
            enough = max(WORK, snapshot.planning / SHARE)
            chosen = order[: 1 + int(np.searchsorted(np.cumsum(expected), enough))].tolist()
        return Plan(tuple([Step(unit, snapshot.train) for unit in chosen])), memory


def foremost(units: Places, keys: Sequence[npt.NDArray[Any]], count: int) -> Places:
    """Return the first `count` of `units` in ascending order of the keys, which are arrays by unit.

    Ties are broken by unit number. Units beyond the first `count` are not sorted.
    """
    sure: list[Places] = []
    for key in keys:
        if len(units) <= count:
            break
        values = key[units]
        edge = np.partition(values, count - 1)[count - 1]
        # NaN, which a policy of one's own may produce, comes last, as numpy sorts it.
        before, ties = (values < edge, values == edge) if edge == edge else (values == values, values != values)
        sure.append(units[before])
        count -= len(sure[-1])
        units = units[ties]
    first = np.sort(np.concatenate([*sure, units[:count]]))
    return first[np.lexsort([key[first] for key in reversed(keys)])] if keys else first


def apart(snapshot: Snapshot, order: Iterable[int], most: int) -> list[int]:
    """Return the first units of an order that can run at once, at most `most`."""
    chosen: list[int] = []
    used: set[int] = set()
    for unit in order:
        if len(chosen) >= most:
            break
        boxes = snapshot.units[unit].boxes
        if not snapshot.exclusive or used.isdisjoint(boxes):
            used.update(boxes)
            chosen.append(int(unit))
    return chosen


@dataclass(frozen=True, slots=True)
class Wrapper(Policy):
    """A policy around an inner one, with the same `preemptive`, `fair` and explanations."""

    policy: Policy

    @property
    def preemptive(self) -> bool:
        """Whether the inner policy is."""
        return self.policy.preemptive

    @property
    def fair(self) -> bool:
        """Whether the inner policy is."""
        return self.policy.fair

    def start(self) -> Any:
        """Return the inner policy's memory."""
        return self.policy.start()

    def inner(self, memory: Any) -> Any:
        """Return the inner policy's memory; by default the wrapper has no memory besides it."""
        return memory

    def terms(self, snapshot: Snapshot, memory: Any) -> tuple[Term, ...]:
        """Return the inner policy's terms."""
        return terms_of(self.policy, snapshot, self.inner(memory))

    def rule(self, snapshot: Snapshot, memory: Any, unit: int) -> str | None:
        """Return the inner policy's rule."""
        return self.policy.rule(snapshot, self.inner(memory), unit)

    def size(self, snapshot: Snapshot, unit: int) -> int:
        """Return the inner policy's limit."""
        return self.policy.size(snapshot, unit)


# Users' own policies, and the registry


@runtime_checkable
class Planner(Protocol):
    """The minimum that can serve as a policy: an object of any class with `start` and `plan`."""

    def start(self) -> Any:
        """Return the initial memory."""

    def plan(self, snapshot: Snapshot, memory: Any) -> tuple[Plan, Any]:
        """Return the next plan, and the memory for the next call."""


@dataclass(frozen=True, slots=True)
class _Adopted(Policy):
    """Adapts an object that has only `start` and `plan`; everything else is the default."""

    planner: Planner

    def __str__(self) -> str:
        return type(self.planner).__name__

    def start(self) -> Any:
        return self.planner.start()

    def plan(self, snapshot: Snapshot, memory: Any) -> tuple[Plan, Any]:
        return self.planner.plan(snapshot, memory)


_MORE = ("preemptive", "fair", "indifferent", "prepare", "terms", "rule", "size")
"""Members that only a subclass of Policy may have, besides `start` and `plan`."""


def as_policy(given: object) -> Policy:
    """Return a user's object as a Policy. Raises a PolicyError that says what is wrong with it.

    The only place that inspects an object that is not a Policy; everything after it relies on the declared interface.
    """
    if isinstance(given, Policy):
        if not callable(given.rule):
            raise PolicyError(f"the rule of {type(given).__name__} is a method that returns a text, not {given.rule!r}")
        return given
    kind = given.__name__ if isinstance(given, type) else type(given).__name__
    if isinstance(given, type):
        raise PolicyError(f"a policy is an object, not the class {kind}: make one, such as {kind}()")
    if not isinstance(given, Planner):
        missing = [name for name in ("start", "plan") if name not in dir(given)]
        raise PolicyError(f"{kind} is not a policy (missing: {choices(missing)}): subclass headway.scheduling.Policy")
    more = [name for name in _MORE if name in dir(given)]
    if more:
        raise PolicyError(f"{kind} has {choices(more)}: a policy with more than start and plan must subclass Policy")
    return _Adopted(given)


PolicyEntry = Entry[Callable[[str | None], Policy | Planner]]
"""`make` is called with the text after the colon, as in ``round-robin:1ms``; with None if there is no colon."""
_policies = Registry[Callable[[str | None], Policy | Planner]]("policy", PolicyError)

register_policy, registered_policies = _policies.register, _policies.entries


def make_policy(text: str) -> Policy:
    """Make the policy given as ``name`` or ``name:argument``."""
    entry, argument = _policies.parse(text)
    made = entry.make(argument)
    with within(f"policy '{entry.name}'"):
        return as_policy(made)
