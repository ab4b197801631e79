"""What a policy says: snapshot in, plan out.

A policy is pure. It does not know which engine it drives: a unit may be a box, a superbox or a streaming
query, and a step may take microseconds or seconds. Whatever it wants to remember from one plan to the next
it returns with the plan and is handed back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy.typing as npt

from headway.errors import PolicyError, unknown
from headway.scheduling.snapshot import Snapshot


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


class Policy(Protocol):
    """A pure decision.

    What a policy may have besides. ``preemptive = True``: it is also asked while steps are under way, at every
    arrival and at its plan's `until`; units under way are then ready as well as busy, and the plan names first what
    should be running now. ``terms(snapshot, memory)`` returns the Terms by which it orders units, and ``rule``, a
    text or a function of snapshot, memory and unit, says why one was chosen where terms do not: for explanations.
    ``fair = True``: nobody starves, so that no longest wait is needed. ``indifferent = True``: with one unit it always
    plans one step of the snapshot's train as soon as it is ready, so that an engine need not ask.
    """

    def start(self) -> Any:
        """Return the memory before the first plan."""
        ...

    def plan(self, snapshot: Snapshot, memory: Any) -> tuple[Plan, Any]:
        """Return what to do next, and the memory for the next call.

        An empty plan means that nothing is worth doing now; the engine then waits for something to happen, at
        the latest until the plan's `until`.
        """
        ...


def is_preemptive(policy: Policy) -> bool:
    """Return whether a policy wants to be asked while steps are under way."""
    return bool(getattr(policy, "preemptive", False))


def is_indifferent(policy: Policy) -> bool:
    """Return whether all that a policy ever plans for a network of one unit is one step of the snapshot's train."""
    return bool(getattr(policy, "indifferent", False))


def terms_of(policy: Policy, snapshot: Snapshot, memory: Any) -> tuple[Term, ...]:
    """Return by what a policy orders the units of a snapshot; nothing where it does not tell.

    `memory` is what the policy was given, or will be; it need not be prepared.
    """
    tell, prepare = getattr(policy, "terms", None), getattr(policy, "prepare", None)
    if tell is None:
        return ()
    return tuple(tell(snapshot, memory if prepare is None else prepare(snapshot, memory)))


def rule_of(policy: Policy, snapshot: Snapshot, memory: Any, unit: int) -> str | None:
    """Return the rule by which a policy says it chose a unit, if it says so."""
    rule = getattr(policy, "rule", None)
    told: str | None = rule(snapshot, memory, unit) if callable(rule) else rule
    return told


@dataclass(frozen=True, slots=True)
class PolicyEntry:
    """A registered policy: how to make it from the text after the colon, and what it is."""

    name: str
    make: Callable[[str | None], Policy]
    about: str
    """The idea, in a line."""
    formula: str = ""
    paper: str = ""
    use: str = ""
    """When to use it."""


_policies: dict[str, PolicyEntry] = {}


def register_policy(
    name: str,
    make: Callable[[str | None], Policy],
    about: str,
    *,
    formula: str = "",
    paper: str = "",
    use: str = "",
) -> None:
    """Make a policy known by name; `make` gets what stands after a colon, as in ``random:7``."""
    _policies[name] = PolicyEntry(name, make, about, formula, paper, use)


def forget_policy(name: str) -> None:
    """Make a policy unknown again, if it was known."""
    _policies.pop(name, None)


def registered_policies() -> tuple[PolicyEntry, ...]:
    """Return the policies, by name."""
    return tuple(_policies[name] for name in sorted(_policies))


def make_policy(text: str) -> Policy:
    """Return the policy that ``name`` or ``name:argument`` says."""
    name, colon, argument = text.partition(":")
    if name not in _policies:
        raise PolicyError(unknown("policy", name, _policies))
    return _policies[name].make(argument if colon else None)
