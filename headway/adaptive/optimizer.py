"""The runtime optimizer: monitors queries against their targets, and switches the policy of each query separately.

MavStream's runtime optimizer, section 4. A query is an output with targets. The system monitor (algorithm 2) looks at
each query at its own interval and passes the measurements since the last look to the decision maker
(`headway.adaptive.decisions`, algorithm 1). Settings, all optional::

    adaptive:
      policies: [round-robin, path-capacity, segment, simplified-segment]
      start: round-robin                       # the initial policy of every output
      interval: 3s                             # between looks
      lookahead: 1s                            # targets must be met this far ahead
      classes: {must-satisfy: 1, best-effort: 0.5, dont-care: 0.01}   # more classes, or other weights
      shed: [must-satisfy]                     # classes for which tuples may be dropped
      table: {latency: {slope-slack: 5}}       # ranks that extend or replace those of the paper's table 1
      queries:
        alarms:
          interval: 2s
          start: segment
          latency: {target: 500ms, class: must-satisfy}
          memory: {target: [[0, 10MB], [500, 1MB]], class: best-effort}
          throughput: 100/s                    # best-effort, if no class is given

Without `queries`, every output whose latency graph has a good zone that ends gets that end as its target, best-effort;
it is also the target of a latency given without one. The lookahead must be shorter than the interval; the paper also
requires it to be longer than it takes to schedule every box once, which is not known before the run. The default is 1s,
or a third of the interval if that is below 3s.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from headway.adaptive.decisions import STRATEGIES, DecisionTable, QueryState, Rules, decide
from headway.adaptive.goals import (
    BEST_EFFORT,
    MEASURES,
    SHEDDING,
    WEIGHTS,
    Goal,
    Measure,
    Priority,
    Target,
    priorities,
    read_seconds,
)
from headway.adaptive.layer import METRICS, Action, Interval, ShedOutput, Switch, register_adaptive
from headway.catalog import Topology
from headway.clock import SECOND
from headway.columns import NEVER, Int64s, frozen
from headway.errors import PolicyError, choices, unknown, within
from headway.scheduling.policy import make_policy, registered_policies
from headway.totals import Totals

NAME = "optimizer"
_INTERVAL = 3 * SECOND
_SETTINGS = ("policies", "start", "interval", "lookahead", "classes", "shed", "table", "queries")
_OF_QUERIES = ("interval", "lookahead", "start", *MEASURES)


@dataclass(frozen=True, slots=True)
class GoalSettings:
    """A measure's target and class as given by the user; None: not given."""

    target: Target | None = None
    priority: str | None = None


@dataclass(frozen=True, slots=True)
class QuerySettings:
    """A query as given by the user; None: not given. Times are in nanoseconds."""

    interval: int | None
    lookahead: int | None
    start: int | None
    goals: Mapping[str, GoalSettings]


@dataclass(frozen=True, slots=True)
class Query:
    """An output with goals, the rules for decisions about it, and its state."""

    output: int
    goals: tuple[Goal, ...]
    rules: Rules
    state: QueryState
    seen: Totals = field(compare=False)
    """The totals at the last look."""


@dataclass(frozen=True, slots=True, eq=False)
class OptimizerMemory:
    """The memory of `Optimizer`."""

    begun: int
    topology: Topology
    queries: tuple[Query, ...]
    due: Int64s
    """By query: the moment of the next look; a read-only array."""
    latest: Totals
    """The totals of the last look at any query."""


@dataclass(frozen=True, slots=True)
class Optimizer:
    """The layer, with its settings."""

    policies: tuple[str, ...] = STRATEGIES
    begin: int = 0
    """The index of the initial policy."""
    interval: int = _INTERVAL
    lookahead: int = _INTERVAL // 3
    priorities: Mapping[str, Priority] = field(default_factory=priorities)
    table: DecisionTable = DecisionTable()  # noqa: RUF009 (frozen)
    queries: Mapping[str, QuerySettings] | None = None

    @classmethod
    def parse(cls, settings: Mapping[str, Any]) -> Optimizer:
        """Parse the settings. Raises a PolicyError that names the key and lists the choices."""
        _check_keys(settings, _SETTINGS, NAME)
        policies = _policies(settings.get("policies", STRATEGIES))
        begin = settings.get("start", "round-robin" if "round-robin" in policies else policies[0])
        interval, lookahead = _times(settings, NAME)
        interval = interval or _INTERVAL
        weights = {**WEIGHTS, **_mapping(settings.get("classes", {}), f"{NAME}: classes")}
        shedding = _names(settings.get("shed", SHEDDING), f"{NAME}: shed")
        queries = _mapping(settings.get("queries", {}), f"{NAME}: queries")
        with within(NAME):
            classes = priorities(weights, shedding)
        made = cls(
            policies,
            _place(begin, policies, f"{NAME}: start"),
            interval,
            _lookahead(interval, lookahead, NAME),
            classes,
            _table(settings.get("table", {})),
        )
        return replace(made, queries={str(name): made._query(name, query) for name, query in queries.items()} or None)

    def start(self, topology: Topology, now: int) -> tuple[tuple[int, ...], OptimizerMemory]:
        """Return the initial policy by output, and the memory."""
        named = self.queries
        if named is None:
            latency = QuerySettings(None, None, None, {"latency": GoalSettings()})
            named = {name: latency for at, name in enumerate(topology.outputs) if _good(topology, at) is not None}
        places = {name: at for at, name in enumerate(topology.outputs)}
        totals = Totals.at_start(now, len(topology.outputs))
        queries = tuple(self._ready(name, query, topology, places, totals) for name, query in named.items())
        begin = [self.begin] * len(topology.outputs)
        for made in queries:
            begin[made.output] = made.state.current
        due = frozen(np.array([now + made.rules.interval for made in queries], np.int64))
        return tuple(begin), OptimizerMemory(now, topology, queries, due, totals)

    def next(self, memory: OptimizerMemory) -> int:
        """Return when the first query is due."""
        return int(memory.due.min(initial=NEVER))

    def look(self, totals: Totals, memory: OptimizerMemory) -> tuple[tuple[Action, ...], OptimizerMemory]:
        """Decide about the queries that are due (algorithm 2); return the actions and the memory."""
        places = np.flatnonzero(memory.due <= totals.now).tolist()
        if not places:
            return (), memory
        actions: list[Action] = []
        queries, due = list(memory.queries), memory.due.copy()
        for place in places:
            query = queries[place]
            observed = _observe(Interval(query.seen, totals), query)
            made = decide(query.goals, observed, totals.now - memory.begun, query.state, query.rules)
            if made.switched:
                actions.append(Switch(query.output, made.state.current, made.switched))
            if made.shedding:
                actions.append(ShedOutput(query.output, made.state.shedding, made.shedding))
            queries[place] = replace(query, state=made.state, seen=totals)
            due[place] = totals.now + query.rules.interval
        return tuple(actions), replace(memory, queries=tuple(queries), due=frozen(due), latest=totals)

    def change(self, settings: Mapping[str, Any], memory: OptimizerMemory) -> OptimizerMemory:
        """Return the memory with changed targets, classes or times of the queries that the settings name.

        Settings not given stay as they are. An output without targets may get some. The strategies left before are
        forgotten, because that was for other targets.
        """
        _check_keys(settings, ("queries",), f"{NAME}, while a run goes on")
        for name, text in _mapping(settings.get("queries", {}), f"{NAME}: queries").items():
            query = self._query(name, text)
            if query.start is not None:
                raise PolicyError(f"{NAME}: queries: {name}: start: the run has begun; only other settings can change")
            memory = self._changed(str(name), query, memory)
        return memory

    def _changed(self, name: str, query: QuerySettings, memory: OptimizerMemory) -> OptimizerMemory:
        outputs = [one.output for one in memory.queries]
        places = {name: at for at, name in enumerate(memory.topology.outputs)}
        output = _output(name, places)
        queries, due = list(memory.queries), memory.due.tolist()
        place = outputs.index(output) if output in outputs else len(outputs)
        before = queries[place] if place < len(queries) else None
        made = self._ready(name, query, memory.topology, places, memory.latest, before)
        queries[place:] = [made, *queries[place + 1 :]]
        due[place:] = [made.seen.now + made.rules.interval, *due[place + 1 :]]
        return replace(memory, queries=tuple(queries), due=frozen(np.array(due, np.int64)))

    def _ready(
        self,
        name: str,
        query: QuerySettings,
        topology: Topology,
        places: Mapping[str, int],
        latest: Totals,
        before: Query | None = None,
    ) -> Query:
        """Return a query with missing settings filled in: from `before`, from the QoS graphs, or by default."""
        where = f"{NAME}: queries: {name}"
        output = _output(name, places)
        goals = {one.measure.name: one for one in before.goals} if before else {}
        for measure, goal in (query.goals or ({} if before else {"latency": GoalSettings()})).items():
            old = goals.get(measure)
            target = goal.target or (old.target if old else _default_target(measure, output, topology, where))
            priority = self.priorities[goal.priority or (old.priority.name if old else BEST_EFFORT)]
            goals[measure] = Goal(MEASURES[measure], target, priority)
            with within(where):
                self.table.row(measure, self.policies)
        interval = query.interval or (before.rules.interval if before else self.interval)
        lookahead = query.lookahead
        if lookahead is None:
            general = before.rules.lookahead if before else self.lookahead
            lookahead = general if general < interval else None  # if too long, it was meant for longer intervals
        rules = Rules(self.policies, self.table, interval, _lookahead(interval, lookahead, where))
        if before:
            state = replace(before.state, departures=(), calm=0)
        else:
            state = QueryState(self.begin if query.start is None else query.start)
        return Query(output, tuple(goals.values()), rules, state, before.seen if before else latest)

    def _query(self, name: object, text: object) -> QuerySettings:
        where = f"{NAME}: queries: {name}"
        settings = _mapping(text, where)
        _check_keys(settings, _OF_QUERIES, where)
        interval, lookahead = _times(settings, where)
        start = _place(settings["start"], self.policies, f"{where}: start") if "start" in settings else None
        goals = {key: self._goal(measure, settings[key], where) for key, measure in MEASURES.items() if key in settings}
        return QuerySettings(interval, lookahead, start, goals)

    def _goal(self, measure: Measure, text: object, where: str) -> GoalSettings:
        where = f"{where}: {measure.name}"
        settings = text if isinstance(text, Mapping) else {"target": text}
        _check_keys(settings, ("target", "class"), where)
        target, priority = None, settings.get("class")
        if priority is not None and str(priority) not in self.priorities:
            raise PolicyError(f"{where}: class: {unknown('class', str(priority), self.priorities)}")
        if "target" in settings:
            with within(f"{where}: target"):
                target = Target.parse(settings["target"], measure)
        return GoalSettings(target, None if priority is None else str(priority))


def _observe(interval: Interval, query: Query) -> dict[str, float] | None:
    """Return the values of the measures of a query's goals; None if nothing was delivered and nothing waits."""
    output = query.output
    idle = interval.after.delivered[output] == interval.before.delivered[output] and interval.after.oldest[output] <= 0
    if idle:
        return None
    return {one.measure.name: METRICS[one.measure.name](interval, output) for one in query.goals}


def _output(name: str, places: Mapping[str, int]) -> int:
    if name not in places:
        raise PolicyError(f"{NAME}: queries: {unknown('output', name, places)}")
    return places[name]


def _good(topology: Topology, output: int) -> float | None:
    """Return the end of an output's good zone; None if it has none."""
    graph = topology.qos[output].latency
    return graph.good_until if graph is not None and math.isfinite(graph.good_until) else None


def _default_target(measure: str, output: int, topology: Topology, where: str) -> Target:
    good = _good(topology, output) if measure == "latency" else None
    if good is None:
        raise PolicyError(
            f"{where}: {measure} needs a target; only latency has one of its own, where the output's latency graph "
            f"has a good zone that ends; what can have a target: {choices(MEASURES)}"
        )
    return Target.constant(good)


def _check_keys(settings: Mapping[str, Any], allowed: Sequence[str], where: str) -> None:
    for key in settings:
        if key not in allowed:
            raise PolicyError(f"{where}: {unknown('setting', str(key), allowed)}")


def _mapping(value: object, where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise PolicyError(f"{where}: must be a mapping such as {{name: value}}, not {value!r}")
    return value


def _names(value: object, where: str) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, Sequence) or not all(isinstance(one, str) for one in value):
        raise PolicyError(f"{where}: must be a list of names, not {value!r}")
    return tuple(value)


def _policies(value: object) -> tuple[str, ...]:
    names = _names(value, f"{NAME}: policies")
    if not names or len(set(names)) < len(names):
        raise PolicyError(f"{NAME}: policies: must be one or more different policies, not {choices(names)}")
    with within(f"{NAME}: policies"):
        for name in names:
            make_policy(name)
    return names


def _place(name: object, policies: Sequence[str], where: str) -> int:
    if name not in policies:
        raise PolicyError(f"{where}: {unknown('policy', str(name), policies)}")
    return policies.index(str(name))


def _times(settings: Mapping[str, Any], where: str) -> tuple[int | None, int | None]:
    """Return the interval and the lookahead in nanoseconds; None if not given."""
    times: list[int | None] = []
    for key in ("interval", "lookahead"):
        with within(f"{where}: {key}"):
            times.append(round(read_seconds(settings[key]) * SECOND) if key in settings else None)
    if times[0] == 0:
        raise PolicyError(f"{where}: interval: must be more than 0")
    return times[0], times[1]


def _lookahead(interval: int, lookahead: int | None, where: str) -> int:
    if lookahead is None:
        return min(SECOND, interval // 3)
    if lookahead >= interval:
        raise PolicyError(
            f"{where}: lookahead: {lookahead / SECOND:g}s must be shorter than the interval of {interval / SECOND:g}s"
        )
    return lookahead


def _table(value: object) -> DecisionTable:
    where = f"{NAME}: table"
    known = [one.name for one in registered_policies()]
    rows = {measure: _mapping(row, f"{where}: {measure}") for measure, row in _mapping(value, where).items()}
    for measure, row in rows.items():
        if measure not in MEASURES:
            raise PolicyError(f"{where}: {unknown('measure', str(measure), MEASURES)}")
        for policy in row:
            if str(policy).partition(":")[0] not in known:
                raise PolicyError(f"{where}: {measure}: {unknown('policy', str(policy), known)}")
    with within(NAME):
        return DecisionTable().extended(rows)


register_adaptive(
    NAME,
    Optimizer.parse,
    "per query: another policy where targets are missed, by a table of ranks and priorities; at last, dropping",
    "MavStream's runtime optimizer, section 4",
)
