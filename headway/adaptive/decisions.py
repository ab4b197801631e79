"""The decision maker: whether to schedule a query by another strategy, and whether to drop its tuples.

MavStream's runtime optimizer, sections 4.7 to 4.12, algorithm 1. Classes are examined by descending weight, and the
first one with a missed target is the one to act for. Strategies are scored by the decision table for the measures that
it misses; measures of the classes above it, all met, count with a reduced weight, so that they do not get worse.
Targets are those a little ahead (the lookahead factor); spare is computed from the current ones.

Differences from the paper, and extensions:

- Measures that are met in the class to act for do not count: this follows table 2; algorithm 1 would include them.
- A cycle (4.10) is detected not only with the previous strategy but with any that was left within `REMEMBER` intervals,
  as three strategies can form a cycle, too. It is one if all that was missed when that strategy was left is met now,
  and all that is missed now was met then; other measures do not matter. Then strategies are scored for everything that
  was missed since, besides what is missed now.
- Tuples are dropped only for measures that improve by it, only after a switch has had an interval to show its effect,
  and until targets are met with something to spare for some looks in a row. If dropping starts again soon, that number
  is doubled.

The decision table (section 4.6, table 1) has the rank of each strategy for each measure; more is better. With n
strategies to choose from, equation 1 gives each its score:

    score(strategy) = sum over measures of weight(measure) * rank(measure, strategy) / n

Table 1 has latency, memory and throughput. Two rows are ours: waiting tuples (`queue`) have the ranks of memory, and
utility those of latency, from which it follows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from headway.adaptive.goals import Goal, plain
from headway.clock import SECOND
from headway.errors import PolicyError, choices

Ranks = Mapping[str, Mapping[str, float]]
"""By measure, by strategy."""

_LATENCY = {"round-robin": 2, "path-capacity": 4, "segment": 1, "simplified-segment": 3}
_MEMORY = {"round-robin": 2, "path-capacity": 1, "segment": 4, "simplified-segment": 3}
TABLE_1: Ranks = {
    "latency": _LATENCY,
    "memory": _MEMORY,
    "throughput": _LATENCY,
    "queue": _MEMORY,
    "utility": _LATENCY,
}
STRATEGIES = tuple(_LATENCY)
"""The strategies of table 1."""


@dataclass(frozen=True, slots=True)
class DecisionTable:
    """Ranks of strategies by measure. A strategy ``name:argument`` has its own rank, or else that of its name."""

    ranks: Ranks = field(default_factory=lambda: TABLE_1)

    def extended(self, ranks: Ranks) -> DecisionTable:
        """Return a table with these ranks added or replaced. Raises a PolicyError.

        A rank is a number, 0 or more; zeros and ones give the table that section 4.6 mentions as an alternative.
        """
        for measure, row in ranks.items():
            for strategy, rank in row.items():
                if isinstance(rank, bool) or not isinstance(rank, int | float) or not 0 <= rank < math.inf:
                    raise PolicyError(
                        f"{measure}: the rank of '{strategy}' is a number, 0 or more, and more is better; not {rank!r}"
                    )
        rows = {measure: dict(row) for measure, row in self.ranks.items()}
        for measure, row in ranks.items():
            rows.setdefault(measure, {}).update(row)
        return DecisionTable(rows)

    def row(self, measure: str, strategies: Sequence[str]) -> tuple[float, ...]:
        """Return the ranks of strategies for a measure. Raises a PolicyError that names strategies without a rank."""
        row = self.ranks.get(measure, {})
        ranks = [row.get(one, row.get(one.partition(":")[0])) for one in strategies]
        missing = [one for one, rank in zip(strategies, ranks, strict=True) if rank is None]
        if missing:
            example = ", ".join(f"{one}: RANK" for one in missing)
            has = choices(f"{one} ({rank:g})" for one, rank in row.items())
            raise PolicyError(
                f"the decision table has no rank for {measure} of: {choices(missing)}; it has {has}; "
                f"add the others with table: {{{measure}: {{{example}}}}}"
            )
        return tuple([rank for rank in ranks if rank is not None])

    def scores(self, strategies: Sequence[str], weights: Mapping[str, float]) -> tuple[float, ...]:
        """Return the score of each strategy, given the weights of the measures that count (equation 1)."""
        sums = [0.0] * len(strategies)
        for measure, weight in weights.items():
            for at, rank in enumerate(self.row(measure, strategies)):
                sums[at] += weight * rank / len(strategies)
        return tuple(sums)


REMEMBER = 20
"""Intervals after which a strategy that was left may be chosen again without a check for a cycle."""
CALM = 2
"""Looks in a row at which targets must be met with something to spare before dropping ends."""
MOST_CALM = 32
_ROUNDING = 1e-9
"""Relative difference below which scores are equal, because of rounding errors in sums."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The parameters of decisions about a query."""

    strategies: tuple[str, ...]
    table: DecisionTable
    interval: int
    """Nanoseconds between looks."""
    lookahead: int
    """Nanoseconds ahead of now at which targets must be met."""


@dataclass(frozen=True, slots=True)
class Departure:
    """A strategy that was left: when, which measures (of the class acted for) were missed, and which were met."""

    strategy: int
    at: int
    missed: frozenset[str]
    met: frozenset[str]


@dataclass(frozen=True, slots=True)
class QueryState:
    """The state of a query. Moments are nanoseconds since the start of the run."""

    current: int
    departures: tuple[Departure, ...] = ()
    """The last departure from each strategy, oldest first."""
    switched: int | None = None
    shedding: bool = False
    calm: int = 0
    """Looks in a row with something to spare while tuples are dropped."""
    patience: int = CALM
    """The number of such looks after which dropping ends."""
    shed_until: int | None = None
    """When dropping last ended."""


class QueryDecision(NamedTuple):
    """The decision about a query. Reasons are for people, and empty if nothing changes."""

    state: QueryState
    switched: str = ""
    """Why `state.current` has changed."""
    shedding: str = ""
    """Why `state.shedding` has changed."""


class _Choice(NamedTuple):
    """The reasons for the choice of a strategy. The text is made only if it is used."""

    scores: tuple[float, ...]
    closes: int
    """The strategy that would close a cycle, if there is a conflict."""
    conflict: frozenset[str]
    """The measures that must count as well, to avoid the cycle."""

    def text(self, rules: Rules, before: int, chosen: int) -> str:
        names, note = rules.strategies, ""
        if self.conflict:
            also = " and ".join(sorted(self.conflict))
            note = f" (back to {names[self.closes]} would be a cycle, so {also} must count, too)"
        current = plain(self.scores[before])
        if chosen == before:
            return f"nothing scores above {names[before]}, {current}{note}"
        return f"{names[chosen]} scores {plain(self.scores[chosen])}, {names[before]} {current}{note}"


class _Observed(NamedTuple):
    """A goal, the observed value of its measure, and its target at the end of the lookahead."""

    goal: Goal
    value: float
    target: float

    @property
    def missed(self) -> bool:
        return self.goal.measure.violated(self.value, self.target)


def decide(
    goals: Sequence[Goal], observed: Mapping[str, float] | None, elapsed: int, state: QueryState, rules: Rules
) -> QueryDecision:
    """Return the decision for one query, `elapsed` nanoseconds after the start, given its measures since the last look.

    `observed` is None if nothing was delivered and nothing waits: then no target is missed.
    """
    ahead = (elapsed + rules.lookahead) / SECOND
    known = observed or {}
    seen = [_Observed(one, known[one.measure.name], one.target.at(ahead)) for one in goals if observed is not None]
    missed = [one for one in seen if one.missed]
    switched = began = ""
    if missed:
        first = max((one.goal.priority for one in missed), key=lambda one: one.weight)
        acting = [one for one in missed if one.goal.priority == first]
        before = state.current
        state, choice = _choose(seen, acting, elapsed, state, rules)
        if state.current != before:
            switched = f"{_misses(acting)}; {choice.text(rules, before, state.current)}"
        elif _may_shed(acting, elapsed, state, rules):
            began = f"{_misses(acting)}; {choice.text(rules, before, before)}"
            state = _shed(elapsed, state, rules)
    if state.shedding and not began:
        state, ended = _relieve(seen, observed is None, elapsed, state)
        return QueryDecision(state, switched, ended)
    return QueryDecision(state, switched, began)


def _misses(acting: Sequence[_Observed]) -> str:
    """Return the missed targets of a class as text: ``latency 1.3 s over its target 0.5 s (must-satisfy)``."""
    texts = [goal.measure.miss(value, target) for goal, value, target in acting]
    return f"{', '.join(texts)} ({acting[0].goal.priority.name})"


def _choose(
    seen: Sequence[_Observed], acting: Sequence[_Observed], elapsed: int, state: QueryState, rules: Rules
) -> tuple[QueryState, _Choice]:
    """Return the state with the best strategy for the goals to act for, and the reasons for it."""
    first = acting[0].goal.priority
    weights = {
        goal.measure.name: goal.priority.reduced(goal.measure.spare(value, goal.target.at(elapsed / SECOND)))
        for goal, value, _ in seen
        if goal.priority.weight > first.weight
    }
    missed = frozenset(one.goal.measure.name for one in acting)
    met = frozenset(one.goal.measure.name for one in seen if not one.missed)
    weights |= {one.goal.measure.name: first.weight for one in acting}
    scores = rules.table.scores(rules.strategies, weights)
    chosen = best(scores, state.current, first.easily_pleased)
    kept = tuple(one for one in state.departures if elapsed - one.at <= REMEMBER * rules.interval)
    conflict = in_conflict(kept, chosen, missed, met) if chosen != state.current else frozenset()
    closes = chosen
    if conflict:
        named = [one.goal for one in seen if one.goal.measure.name in conflict]
        weights |= {one.measure.name: one.priority.weight for one in named}
        scores = rules.table.scores(rules.strategies, weights)
        chosen = best(scores, state.current, first.easily_pleased, avoid=closes)
    choice = _Choice(scores, closes, conflict)
    if chosen == state.current:
        return (state if len(kept) == len(state.departures) else replace(state, departures=kept)), choice
    left = Departure(state.current, elapsed, missed, met)
    departures = (*(one for one in kept if one.strategy != state.current), left)
    return replace(state, current=chosen, departures=departures, switched=elapsed), choice


def best(scores: Sequence[float], current: int, any_better: bool = False, avoid: int | None = None) -> int:
    """Return the strategy with the highest score, the first if tied; the current one if none scores higher.

    With `any_better`, return the first one that scores higher than the current. `avoid` is taken only if no other
    strategy qualifies.
    """
    will_do = [at for at, score in enumerate(scores) if _above(score, scores[current])]
    if not will_do:
        return current
    if not any_better:
        highest = max(scores)
        will_do = [at for at in will_do if not _above(highest, scores[at])]
    return next((at for at in will_do if at != avoid), will_do[0])


def _above(score: float, other: float) -> bool:
    return score - other > _ROUNDING * max(abs(score), abs(other))


def in_conflict(
    departures: Sequence[Departure], chosen: int, missed: frozenset[str], met: frozenset[str]
) -> frozenset[str]:
    """Return the measures that were missed since a strategy was left, if choosing it again would close a cycle.

    Empty if it would not: if it was never left, or was left for a measure that is still missed, or if a measure that is
    missed now was not met then.
    """
    for at, left in enumerate(departures):
        if left.strategy == chosen and left.missed <= met and missed <= left.met:
            return frozenset().union(*(one.missed for one in departures[at:])) - missed
    return frozenset()


def _may_shed(acting: Sequence[_Observed], elapsed: int, state: QueryState, rules: Rules) -> bool:
    shows_effect = state.switched is None or elapsed - state.switched >= rules.interval
    helps = any(one.goal.measure.dropping_helps for one in acting)
    return acting[0].goal.priority.sheds and helps and shows_effect and not state.shedding


def _shed(elapsed: int, state: QueryState, rules: Rules) -> QueryState:
    again = state.shed_until is not None and elapsed - state.shed_until <= REMEMBER * rules.interval
    patience = min(2 * state.patience, MOST_CALM) if again else CALM
    return replace(state, shedding=True, calm=0, patience=patience)


def _relieve(seen: Sequence[_Observed], idle: bool, elapsed: int, state: QueryState) -> tuple[QueryState, str]:
    """Return the state after a look during dropping, and the reason if dropping ends."""
    texts = []
    for goal, value, target in seen:
        measure = goal.measure
        if goal.priority.sheds and measure.dropping_helps:
            if not measure.eased(value, target):
                return replace(state, calm=0), ""
            texts.append(f"{measure.name} {measure.write(value)}, its target {measure.write(target)}")
    calm = state.calm + 1
    if calm < state.patience:
        return replace(state, calm=calm), ""
    why = f"{'; '.join(texts) or 'nothing that dropping would help'}: met for {calm} looks"
    if idle:
        why = f"nothing waits, for {calm} looks"
    return replace(state, shedding=False, calm=0, shed_until=elapsed), why
