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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
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
from headway.options.settings import mapping, read_settings
from headway.scheduling.policy import registered_policies
from headway.scheduling.schedule import make_scheduler
from headway.totals import Totals

NAME = "optimizer"
_INTERVAL = 3 * SECOND


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
        with within(NAME):
            read = read_settings(settings, _READERS)
            policies = read.get("policies", STRATEGIES)
            with within("start"):
                begin = _place(read.get("start", "round-robin" if "round-robin" in policies else policies[0]), policies)
            interval = read.get("interval", _INTERVAL)
            made = cls(
                policies,
                begin,
                interval,
                _lookahead(interval, read.get("lookahead")),
                priorities({**WEIGHTS, **read.get("classes", {})}, read.get("shed", SHEDDING)),
                read.get("table", DecisionTable()),
            )
            queries = made._queries(read.get("queries", {}))
        return replace(made, queries=queries or None)

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
        with within(f"{NAME}, while a run goes on"):
            read = read_settings(settings, {"queries": mapping})
        with within(NAME):
            queries = self._queries(read.get("queries", {}))
        for name, query in queries.items():
            if query.start is not None:
                raise PolicyError(f"{NAME}: queries: {name}: start: the run has begun; only other settings can change")
            memory = self._changed(name, query, memory)
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
        output = _output(name, places)
        goals = {one.measure.name: one for one in before.goals} if before else {}
        interval = query.interval or (before.rules.interval if before else self.interval)
        lookahead = query.lookahead
        if lookahead is None:
            general = before.rules.lookahead if before else self.lookahead
            lookahead = general if general < interval else None  # if too long, it was meant for longer intervals
        with within(f"{NAME}: queries: {name}"):
            for measure, goal in (query.goals or ({} if before else {"latency": GoalSettings()})).items():
                old = goals.get(measure)
                target = goal.target or (old.target if old else _default_target(measure, output, topology))
                priority = self.priorities[goal.priority or (old.priority.name if old else BEST_EFFORT)]
                goals[measure] = Goal(MEASURES[measure], target, priority)
                self.table.row(measure, self.policies)
            rules = Rules(self.policies, self.table, interval, _lookahead(interval, lookahead))
        if before:
            state = replace(before.state, departures=(), calm=0)
        else:
            state = QueryState(self.begin if query.start is None else query.start)
        return Query(output, tuple(goals.values()), rules, state, before.seen if before else latest)

    def _queries(self, settings: Mapping[str, Any]) -> dict[str, QuerySettings]:
        """Read the ``queries``: settings by output."""
        with within("queries"):
            read = read_settings(settings, dict.fromkeys(settings, self._query))
        return {str(name): query for name, query in read.items()}

    def _query(self, settings: object) -> QuerySettings:
        readers: dict[str, Callable[[Any], Any]] = {
            "interval": _interval,
            "lookahead": _nanoseconds,
            "start": lambda name: _place(name, self.policies),
            **{name: partial(self._goal, measure) for name, measure in MEASURES.items()},
        }
        read = read_settings(settings, readers)
        goals = {name: read[name] for name in MEASURES if name in read}
        return QuerySettings(read.get("interval"), read.get("lookahead"), read.get("start"), goals)

    def _goal(self, measure: Measure, settings: object) -> GoalSettings:
        def read_class(name: object) -> str | None:
            if name is not None and str(name) not in self.priorities:
                raise PolicyError(unknown("class", str(name), self.priorities))
            return None if name is None else str(name)

        settings = settings if isinstance(settings, Mapping) else {"target": settings}
        read = read_settings(settings, {"target": lambda value: Target.parse(value, measure), "class": read_class})
        return GoalSettings(read.get("target"), read.get("class"))


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


def _default_target(measure: str, output: int, topology: Topology) -> Target:
    good = _good(topology, output) if measure == "latency" else None
    if good is None:
        raise PolicyError(
            f"{measure} needs a target; only latency has one of its own, where the output's latency graph "
            f"has a good zone that ends; what can have a target: {choices(MEASURES)}"
        )
    return Target.constant(good)


def _names(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, Sequence) or not all(isinstance(one, str) for one in value):
        raise PolicyError(f"must be a list of names, not {value!r}")
    return tuple(value)


def _policies(value: object) -> tuple[str, ...]:
    names = _names(value)
    if not names or len(set(names)) < len(names):
        raise PolicyError(f"must be one or more different policies, not {choices(names)}")
    for name in names:
        make_scheduler(name)
    return names


def _place(name: object, policies: Sequence[str]) -> int:
    if name not in policies:
        raise PolicyError(unknown("policy", str(name), policies))
    return policies.index(str(name))


def _nanoseconds(value: object) -> int:
    return round(read_seconds(value) * SECOND)


def _interval(value: object) -> int:
    if _nanoseconds(value) == 0:
        raise PolicyError("must be more than 0")
    return _nanoseconds(value)


def _lookahead(interval: int, lookahead: int | None) -> int:
    if lookahead is None:
        return min(SECOND, interval // 3)
    if lookahead >= interval:
        raise PolicyError(
            f"lookahead: {lookahead / SECOND:g}s must be shorter than the interval of {interval / SECOND:g}s"
        )
    return lookahead


def _table(value: object) -> DecisionTable:
    known = [one.name for one in registered_policies()]
    rows = read_settings(value, dict.fromkeys(MEASURES, mapping), "measure")
    for measure, row in rows.items():
        for policy in row:
            if str(policy).partition(":")[0] not in known:
                raise PolicyError(f"{measure}: {unknown('policy', str(policy), known)}")
    return DecisionTable().extended(rows)


_READERS: Mapping[str, Callable[[Any], Any]] = {
    "policies": _policies,
    "start": lambda name: name,
    "interval": _interval,
    "lookahead": _nanoseconds,
    "classes": mapping,
    "shed": _names,
    "table": _table,
    "queries": mapping,
}
"""By key of the settings: the reader of its value."""


register_adaptive(
    NAME,
    Optimizer.parse,
    "per query: another policy where targets are missed, by a table of ranks and priorities; at last, dropping",
    "MavStream's runtime optimizer, section 4",
)
