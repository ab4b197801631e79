"""Why a policy chose a step: the terms of its priority, and the units it was preferred to.

Terms that are moments (`MOMENTS`) are kept as seconds relative to the decision, negative if before it, so that they are
readable and keep their order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from headway.clock import SECOND
from headway.columns import NEVER
from headway.scheduling.policy import Plan, Policy, Term, foremost, terms_of
from headway.scheduling.snapshot import Snapshot

MOMENTS = frozenset({"oldest", "deadline"})
"""Terms that are moments (ns)."""
SECONDS = frozenset({"slack", "latency", "wait", "age", "cost", "overdue"})
"""Terms that are seconds."""
EXCEPTIONS = frozenset({"overdue", "under way"})
"""Terms that texts omit when they are 0, as they nearly always are."""
COMPETITORS = 3
"""The most other units that a reason names."""

_DIGITS = 6
"""Digits shown of a term; with fewer, units that differ slightly would seem equal."""

Values = tuple[float, ...]
Terms = tuple[tuple[str, float], ...]


class Reason(NamedTuple):
    """Why a unit was chosen. All reasons share the names of the terms, as there may be very many reasons."""

    policy: str
    rule: str
    """A short phrase, such as ``largest utility`` or ``resumed``."""
    names: tuple[str, ...] = ()
    values: Values = ()
    others: tuple[tuple[int, Values], ...] = ()

    @property
    def terms(self) -> Terms:
        """The terms of the chosen unit's priority, the most important first."""
        return tuple(zip(self.names, self.values, strict=True))

    @property
    def competitors(self) -> tuple[tuple[int, Terms], ...]:
        """The best other ready units, in the policy's order, with their terms."""
        return tuple([(unit, tuple(zip(self.names, values, strict=True))) for unit, values in self.others])


def reasons(snapshot: Snapshot, policy: Policy, memory: Any, plan: Plan, text: str = "") -> list[tuple[int, Reason]]:
    """Return the units of a plan's steps, each with its reason; no reference to the snapshot's arrays is kept.

    `memory` is what the policy was given, not what it returned; `text` is the policy's name. The competitors of a step
    are the ready units left by it and the steps before it. A preemptive policy's plan also names units that are running
    and should continue: these are no new steps and get no reason.

    A policy may state its rule itself (`Policy.rule`). Otherwise the rule is the first term in which the unit differs
    from its best competitor.
    """
    preemptive = policy.preemptive
    told = terms_of(policy, snapshot, memory)
    order = _order(snapshot, told, preemptive, plan)
    names = tuple([term.name for term in told])
    known: dict[int, Values] = {}
    served: set[int] = set()
    first = 0  # everything before it in the order is already in the plan
    made = []
    for unit, _ in plan.steps:
        served.add(unit)
        while first < len(order) and order[first] in served:
            first += 1
        if preemptive and snapshot.busy[unit]:
            continue
        others = []
        for place in range(first, len(order)):
            if order[place] not in served:
                others.append((order[place], _values(known, told, order[place], snapshot.now)))
                if len(others) == COMPETITORS:
                    break
        values = _values(known, told, unit, snapshot.now)
        if snapshot.spent[unit] > 0 and not snapshot.busy[unit]:
            rule = "resumed"
        else:
            rule = policy.rule(snapshot, memory, unit) or _rule(told, values, others)
        made.append((unit, Reason(text, rule, names, values, tuple(others))))
    return made


def why(reason: Reason, names: Sequence[str]) -> str:
    """Return a reason as text; `names` are the names of the units."""
    parts = [reason.rule]
    if reason.values:
        parts.append(_terms_text(reason.terms))
    others = [f"'{names[unit]}'" + (f" ({_terms_text(terms)})" if terms else "") for unit, terms in reason.competitors]
    if others:
        parts.append("before " + ", ".join(others))
    return "; ".join(parts)


def span_text(seconds: float, digits: int = 4) -> str:
    """Return a duration with up to `digits` significant digits, in a suitable unit."""
    for least, factor, unit in ((0.1, 1, "s"), (1e-4, 1e3, "ms")):
        if abs(seconds) >= least:
            return f"{seconds * factor:.{digits}g} {unit}"
    return f"{seconds * 1e6:.{digits}g} µs" if seconds else "0 s"


def _order(snapshot: Snapshot, told: Sequence[Term], preemptive: bool, plan: Plan) -> list[int]:
    """Return the units that a reason may name, best first; without terms, the order is the plan's."""
    if not told:
        return [step.unit for step in plan.steps]
    able = np.flatnonzero(snapshot.ready if preemptive else snapshot.ready & ~snapshot.busy)
    order: list[int] = foremost(able, [_key(term) for term in told], len(plan.steps) + COMPETITORS).tolist()
    return order


def _key(term: Term) -> npt.NDArray[Any]:
    values = term.values
    if not term.largest:
        return values
    return ~values if values.dtype.kind in "bu" else -values  # neither dtype can be negated


def _values(known: dict[int, Values], told: Sequence[Term], unit: int, now: int) -> Values:
    """Return a unit's terms as plain numbers."""
    found = known.get(unit)
    if found is None:
        found = known[unit] = tuple([_value(term, unit, now) for term in told])
    return found


def _value(term: Term, unit: int, now: int) -> float:
    value: float = term.values[unit].item()
    if term.name not in MOMENTS:
        return value
    return math.inf if value >= NEVER else (value - now) / SECOND


def _rule(told: Sequence[Term], values: Values, others: Sequence[tuple[int, Values]]) -> str:
    """Return the term by which a unit was preferred to the best of the others."""
    if not told:
        return "in the policy's order"
    if not others:
        return "the only one left"
    for term, own, other in zip(told, values, others[0][1], strict=True):
        if own == other or math.isnan(own) or math.isnan(other):
            continue
        if (own > other) != term.largest:
            return "the first that could run"
        if term.name == "oldest":
            return "oldest tuple"
        return f"{'largest' if term.largest else 'earliest' if term.name in MOMENTS else 'smallest'} {term.name}"
    return "first among equals"


def _terms_text(terms: Terms) -> str:
    return ", ".join([_term_text(name, value) for name, value in terms if value or name not in EXCEPTIONS])


def _term_text(name: str, value: float) -> str:
    if name in MOMENTS and math.isfinite(value):
        return f"{name} in {span_text(value, _DIGITS)}" if value > 0 else f"{name} {span_text(-value, _DIGITS)} ago"
    if name in MOMENTS:
        return f"{name} none"
    if name in SECONDS and math.isfinite(value):
        return f"{name} {span_text(value, _DIGITS)}"
    return f"{name} {value:,}" if isinstance(value, int) else f"{name} {value + 0.0:.{_DIGITS}g}"  # no -0
