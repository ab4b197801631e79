"""What a policy says: snapshot in, plan out.

A policy is pure. It does not know which engine it drives: a unit may be a box, a superbox or a streaming
query, and a step may take microseconds or seconds. Whatever it wants to remember from one plan to the next
it returns with the plan and is handed back.
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
"""Seconds of expected work in a plan; after that, readings have changed enough to look again."""
SHARE = 0.04
"""The largest share of its work's time that a plan may take to make: where planning is dear, plans are longer."""
STEPS = 64
"""The most steps in a plan, as long as nothing is known of costs; and how many units are put in order at all."""


class Step(NamedTuple):
    """Run a unit on at most this many tuples of each queue that feeds it."""

    unit: int
    tuples: int


class Plan(NamedTuple):
    """Steps in the order in which they should start. An engine may run several at once, and may refuse some.

    A policy that lets ready units wait says with `until` at which moment (ns) it wants to be asked again, even
    if nothing happens before.
    """

    steps: tuple[Step, ...]
    until: int | None = None


class Term(NamedTuple):
    """One term of a priority, by unit: the smallest comes first, or the largest."""

    name: str
    values: npt.NDArray[Any]
    largest: bool = False


class Policy(ABC):
    """A pure decision. A subclass needs `plan`; everything else has a default that suits most policies.

    `preemptive`, `fair` and `indifferent` may be overridden by class attributes (``fair = True``) or properties.
    """

    __slots__ = ()

    @property
    def preemptive(self) -> bool:
        """Whether it is also asked while steps are under way, at every arrival and at its plan's `until`.

        Units under way are then ready as well as busy, and a plan names first what should be running now.
        """
        return False

    @property
    def fair(self) -> bool:
        """Whether nobody starves, so that no longest wait is needed."""
        return False

    @property
    def indifferent(self) -> bool:
        """Whether with one unit it always plans one step of the snapshot's train as soon as the unit is ready.

        An engine then need not ask.
        """
        return False

    def __str__(self) -> str:
        """Return what summaries and traces call it if it was not made by name."""
        return type(self).__name__

    def start(self) -> Any:
        """Return the memory before the first plan."""
        return None

    @abstractmethod
    def plan(self, snapshot: Snapshot, memory: Any) -> tuple[Plan, Any]:
        """Return what to do next, and the memory for the next call. Neither argument may be changed.

        An empty plan means that nothing is worth doing now; the engine then waits for something to happen, at
        the latest until the plan's `until`.
        """

    def prepare(self, snapshot: Snapshot, memory: Any) -> Any:
        """Return the memory with everything in it that `terms` needs; by default as it is."""
        return memory

    def terms(self, snapshot: Snapshot, memory: Any) -> tuple[Term, ...]:
        """Return by what it orders units, the most important first, for explanations. `memory` has been prepared."""
        return ()

    def rule(self, snapshot: Snapshot, memory: Any, unit: int) -> str | None:
        """Return why it chose a unit, for explanations where the terms do not say it."""
        return None

    def size(self, snapshot: Snapshot, unit: int) -> int:
        """Return how large a step of a unit may be, for a policy around this one that adds steps."""
        return snapshot.train


def terms_of(policy: Policy, snapshot: Snapshot, memory: Any) -> tuple[Term, ...]:
    """Return by what a policy orders units, given the memory that its next plan would be given."""
    return policy.terms(snapshot, policy.prepare(snapshot, memory))


class Ranked(Policy):
    """Serves the ready units in the order of its terms; equals in the order of their numbers.

    An engine carries out a whole plan before it asks for the next, so a long plan acts on old readings, and a
    plan of one short step costs more than the step. A plan therefore holds about two milliseconds of
    expected work, many short steps or one long step; more where planning takes more than a small share of that.
    With several workers it holds at most a step for each free one, for units that do not share boxes with each other
    or with what is under way, so that nobody waits for a box while a more urgent unit appears. A preemptive policy's
    plan names what should run now.
    """

    @abstractmethod
    def terms(self, snapshot: Snapshot, memory: Any) -> tuple[Term, ...]:
        """Return the terms, the most important first. `memory` has been prepared."""

    def plan(self, snapshot: Snapshot, memory: Any) -> tuple[Plan, Any]:
        """Return steps for the first units in the order."""
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
    """Return the first `count` of some units in ascending order of the keys, which are arrays by unit.

    Equals come in the order of their numbers. The many that will not come first are not sorted.
    """
    sure: list[Places] = []
    for key in keys:
        if len(units) <= count:
            break
        values = key[units]
        edge = np.partition(values, count - 1)[count - 1]
        sure.append(units[values < edge])
        count -= len(sure[-1])
        units = units[values == edge]
    first = np.sort(np.concatenate([*sure, units[:count]]))
    return first[np.lexsort([key[first] for key in reversed(keys)])] if keys else first


def apart(snapshot: Snapshot, order: Iterable[int], most: int) -> list[int]:
    """Return the first units that can run at once, at most so many."""
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
    """A policy around another one: as preemptive and as fair as that, and with its explanations."""

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
        """Return the inner policy's memory; by default it is all that is remembered."""
        return memory

    def terms(self, snapshot: Snapshot, memory: Any) -> tuple[Term, ...]:
        """Return the inner policy's terms."""
        return terms_of(self.policy, snapshot, self.inner(memory))

    def rule(self, snapshot: Snapshot, memory: Any, unit: int) -> str | None:
        """Return the inner policy's rule."""
        return self.policy.rule(snapshot, self.inner(memory), unit)

    def size(self, snapshot: Snapshot, unit: int) -> int:
        """Return how large the inner policy lets a step be."""
        return self.policy.size(snapshot, unit)


# Policies that users made, and the registry


@runtime_checkable
class Planner(Protocol):
    """The least that can be made a policy: an object with `start` and `plan`, of any class."""

    def start(self) -> Any:
        """Return the memory before the first plan."""

    def plan(self, snapshot: Snapshot, memory: Any) -> tuple[Plan, Any]:
        """Return what to do next, and the memory for the next call."""


@dataclass(frozen=True, slots=True)
class _Adopted(Policy):
    """A policy with all defaults around an object that has only `start` and `plan`."""

    planner: Planner

    def __str__(self) -> str:
        return type(self.planner).__name__

    def start(self) -> Any:
        return self.planner.start()

    def plan(self, snapshot: Snapshot, memory: Any) -> tuple[Plan, Any]:
        return self.planner.plan(snapshot, memory)


_MORE = ("preemptive", "fair", "indifferent", "prepare", "terms", "rule", "size")
"""What only a subclass can have besides `start` and `plan`."""


def as_policy(given: object) -> Policy:
    """Return a user's object as a Policy. Raises a PolicyError that says what is wrong with it.

    The one place where an object that is no Policy is looked at: afterwards everything is declared.
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
        raise PolicyError(f"{kind} is no policy, it lacks {choices(missing)}: subclass headway.scheduling.Policy")
    more = [name for name in _MORE if name in dir(given)]
    if more:
        raise PolicyError(f"{kind} has {choices(more)}: a policy with more than start and plan must subclass Policy")
    return _Adopted(given)


PolicyEntry = Entry[Callable[[str | None], Policy | Planner]]
"""`make` gets the text after the colon, as in ``random:7``; None where there is no colon."""
_policies = Registry[Callable[[str | None], Policy | Planner]]("policy", PolicyError)

register_policy, registered_policies = _policies.register, _policies.entries


def make_policy(text: str) -> Policy:
    """Return the policy that ``name`` or ``name:argument`` says."""
    entry, argument = _policies.parse(text)
    made = entry.make(argument)
    with within(f"policy '{entry.name}'"):
        return as_policy(made)
