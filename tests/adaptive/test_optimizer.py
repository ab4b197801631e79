"""The runtime optimizer as a layer: settings, the schedule of looks, switches and dropping over several looks."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.adaptive.goals import Target
from headway.adaptive.layer import Action, ShedOutput, Switch, make_adaptive
from headway.adaptive.optimizer import Optimizer, OptimizerMemory
from headway.catalog import Topology
from headway.clock import SECOND
from headway.columns import NEVER
from headway.errors import PolicyError
from headway.network.qos import Graph, QoS
from headway.totals import Totals
from tests.scheduling.snapshots import topology
from tests.searching import examples

START = 1000 * SECOND
RR, PC, SEG, SS = range(4)


def net(*good: float | None) -> Topology:
    """Return a network with outputs o0, o1, ... whose good zones end there; None: without a graph."""
    plain = topology({f"b{at}": () for at in range(len(good))}, {f"o{at}": f"b{at}" for at in range(len(good))})
    graphs = [None if end is None else Graph(((0, 1), (end, 1), (end + 1, 0))) for end in good]
    return replace(plain, qos=tuple(QoS(latency=graph) for graph in graphs))


class Run:
    """A run that delivers 10 tuples a second at each output, with latencies and bytes that the test says."""

    def __init__(self, layer: Optimizer, network: Topology) -> None:
        self.layer = layer
        begin, self.memory = layer.start(network, START)
        self.policies, self.shedding = list(begin), [False] * len(begin)
        nothing = np.zeros(len(begin) + 1)
        self.totals = Totals(START, nothing.astype(np.int64), nothing, nothing, nothing, nothing, nothing)
        self.actions: list[tuple[float, Action]] = []

    def until(self, seconds: float, latency: Sequence[float], memory: Sequence[float] | None = None) -> None:
        """Let time pass, with a look whenever the layer wants one."""
        while (now := self.layer.next(self.memory)) <= START + seconds * SECOND:
            self.step(now, latency, memory or [0.0] * len(latency))
            made, self.memory = self.layer.look(self.totals, self.memory)
            for action in made:
                self.actions.append(((now - START) / SECOND, action))
                if isinstance(action, Switch):
                    assert action.output is not None
                    self.policies[action.output] = action.policy
                else:
                    self.shedding[action.output] = action.active

    def step(self, now: int, latency: Sequence[float], memory: Sequence[float]) -> None:
        passed = (now - self.totals.now) / SECOND
        count = round(10 * passed)
        old = self.totals
        self.totals = Totals(
            now,
            old.delivered + count,
            old.latency + count * np.array([*latency, 0.0]),
            old.utility,
            old.queued,
            old.memory + passed * np.array([*memory, 0.0]),
            np.ones(len(latency) + 1),
        )

    @property
    def said(self) -> list[tuple[float, type[Action], int | None, int | bool]]:
        return [(at, type(action), action[0], action[1]) for at, action in self.actions]


def made(**given: Any) -> Optimizer:
    layer = make_adaptive("optimizer", given)
    assert isinstance(layer, Optimizer)
    return layer


def test_defaults() -> None:
    layer = made()
    assert layer == Optimizer()
    assert layer.policies == ("round-robin", "path-capacity", "segment", "simplified-segment")
    assert (layer.interval, layer.lookahead) == (3 * SECOND, SECOND)


def test_outputs_whose_good_zone_ends_are_watched_by_default() -> None:
    network = net(0.5, None, 2.0)
    network = replace(network, qos=(*network.qos[:2], QoS(latency=Graph(((0.0, 1.0), (9.0, 1.0))))))
    begin, memory = made().start(network, START)
    assert begin == (RR, RR, RR)
    assert [one.output for one in memory.queries] == [0]
    (goal,) = memory.queries[0].goals
    assert (goal.measure.name, goal.target, goal.priority.name) == ("latency", Target.constant(0.5), "best-effort")
    assert made().next(memory) == START + 3 * SECOND


def test_without_queries_it_never_looks() -> None:
    layer = made()
    _, memory = layer.start(net(None), START)
    assert layer.next(memory) == NEVER


def test_the_worst_strategy_is_left_at_the_first_look() -> None:
    run = Run(made(start="segment"), net(0.5))
    run.until(9, [1.3])
    assert run.said == [(3, Switch, 0, PC)]
    assert run.actions[0][1].reason == (
        "latency 1.3 s over its target 0.5 s (best-effort); path-capacity scores 0.5, segment 0.125"
    )


def test_each_query_has_its_own_schedule_and_its_own_interval_of_time() -> None:
    layer = made(queries={"o0": {"interval": "2s", "latency": 1}, "o1": {"interval": 3, "latency": "1s"}})
    run = Run(layer, net(None, None))
    looks = []
    for _ in range(5):
        now = layer.next(run.memory)
        looks.append((now - START) // SECOND)
        run.until(looks[-1], [0.5, 0.5])
    assert looks == [2, 3, 4, 6, 8]
    assert [(one.seen.now - START) // SECOND for one in run.memory.queries] == [8, 6]
    # The last look at o1 was at 6: only what came since then counts, (20 * 0.5 + 10 * 2.5) / 30 = 1.17, not all, 0.72.
    run.until(9, [0.5, 2.5])
    assert run.said == [(9, Switch, 1, PC)]


def test_a_look_before_anything_is_due_does_nothing() -> None:
    run = Run(made(), net(0.5))
    run.step(START + SECOND, [9.0], [0.0])
    assert run.layer.look(run.totals, run.memory) == ((), run.memory)


def test_a_late_look_is_followed_by_a_whole_interval() -> None:
    run = Run(made(), net(0.5))
    run.step(START + 5 * SECOND, [0.1], [0.0])
    _, memory = run.layer.look(run.totals, run.memory)
    assert run.layer.next(memory) == START + 8 * SECOND


def test_nothing_is_said_of_an_output_where_nothing_comes() -> None:
    layer = made(queries={"o0": {"throughput": 100, "utility": 0.9}})
    _, memory = layer.start(net(None), START)
    nothing = np.zeros(2)
    totals = Totals(START + 3 * SECOND, nothing.astype(np.int64), nothing, nothing, nothing, nothing, nothing)
    assert layer.look(totals, memory)[0] == ()
    waits = replace(totals, oldest=np.array([1.0, 1.0]))
    actions, _ = layer.look(waits, memory)
    assert [action[:2] for action in actions] == [(0, PC)]
    assert "throughput 0/s under its target 100/s, utility 0 under its target 0.9" in actions[0].reason


def test_must_satisfy_drops_at_last_and_stops() -> None:
    layer = made(queries={"o0": {"latency": {"class": "must-satisfy"}}})
    run = Run(layer, net(0.5))
    run.until(12, [1.3])
    assert run.said == [(3, Switch, 0, PC), (6, ShedOutput, 0, True)]
    run.until(30, [0.3])
    assert run.said[2:] == [(18, ShedOutput, 0, False)]
    assert run.shedding == [False]


def test_a_target_that_changes_with_time() -> None:
    layer = made(queries={"o0": {"latency": [[0, "2s"], [20, "2s"], [30, 1]]}})
    run = Run(layer, net(None))
    run.until(60, [1.5])
    # 1.5 s is what is asked for at 25 s; with a lookahead of 1 s the first look after 24 s.
    assert run.said == [(27, Switch, 0, PC)]


def test_queries_are_independent() -> None:
    queries = {"o0": {"latency": 1}, "o2": {"memory": "1kB", "start": "path-capacity"}}
    run = Run(made(queries=queries), net(0.1, 0.1, 0.1))
    assert run.policies == [RR, RR, PC]
    run.until(6, [2, 2, 2], [9999, 9999, 9999])
    assert run.policies == [PC, RR, SEG]


def test_any_registered_policy_with_ranks() -> None:
    table = {"latency": {"slope-slack": 5, "chain": 1}}
    layer = made(policies=["chain", "slope-slack:8"], table=table, start="chain")
    run = Run(layer, net(0.5))
    run.until(3, [1])
    assert run.policies == [1]
    assert run.actions[0][1].reason.endswith("slope-slack:8 scores 1.25, chain 0.25")


def test_a_policy_without_a_rank_is_refused_where_it_is_needed() -> None:
    layer = made(policies=["chain", "segment"])
    with pytest.raises(PolicyError, match="o0: the decision table has no rank for latency of: chain; it has"):
        layer.start(net(0.5), START)


def test_classes_and_shedding_as_the_user_wants() -> None:
    layer = made(
        classes={"urgent": 2, "dont-care": 0.1},
        shed=["urgent"],
        queries={"o0": {"latency": {"target": 1, "class": "urgent"}}, "o1": {"latency": {"class": "must-satisfy"}}},
    )
    run = Run(layer, net(None, 0.5))
    run.until(9, [2, 2])
    assert run.shedding == [True, False]
    assert layer.priorities["dont-care"].weight == 0.1
    assert made(shed=[]).priorities["must-satisfy"].sheds is False


def test_the_lookahead_of_queries() -> None:
    queries = {
        "o0": {"interval": "1s"},
        "o1": {"interval": "1500ms"},
        "o2": {"interval": "1s", "lookahead": 0.5},
        "o3": {},
    }
    _, memory = made(lookahead="1s", queries=queries).start(net(1, 1, 1, 1), START)
    # 1 s is too long for o0, so that it has a third of its interval.
    assert [one.rules.lookahead for one in memory.queries] == [SECOND // 3, SECOND, SECOND // 2, SECOND]
    assert made(interval="300ms").lookahead == SECOND // 10


def test_change_replaces_what_it_names() -> None:
    layer = made(queries={"o0": {"latency": {"target": 1, "class": "must-satisfy"}, "memory": 100}, "o1": {}})
    run = Run(layer, net(None, 0.5))
    run.until(3, [0.9, 0.1])
    before = run.memory
    run.memory = layer.change({"queries": {"o0": {"interval": "1s", "latency": "500ms"}}}, before)
    latency, memory = run.memory.queries[0].goals
    assert (latency.target, latency.priority.name) == (Target.constant(0.5), "must-satisfy")
    assert memory == before.queries[0].goals[1]
    assert run.memory.queries[1] == before.queries[1]
    assert layer.next(run.memory) == START + 4 * SECOND
    run.until(4, [0.9, 0.1])
    assert run.said == [(4, Switch, 0, PC)]
    only_class = layer.change({"queries": {"o0": {"latency": {"class": "dont-care"}}}}, run.memory)
    assert only_class.queries[0].goals[0].target == Target.constant(0.5)
    assert only_class.queries[0].goals[0].priority.name == "dont-care"
    assert only_class.queries[0].rules.interval == SECOND


def test_change_can_begin_to_watch_an_output() -> None:
    layer = made(start="segment")
    run = Run(layer, net(0.5, None))
    run.until(3, [0.1, 2])
    run.memory = layer.change({"queries": {"o1": {"latency": 1}}}, run.memory)
    run.until(6, [0.1, 2])
    assert run.said == [(6, Switch, 1, PC)]


def test_change_ends_dropping_where_nothing_may_drop_any_more() -> None:
    run = Run(made(queries={"o0": {"latency": {"class": "must-satisfy"}}}), net(0.5))
    run.until(6, [1.3])
    assert run.shedding == [True]
    run.memory = run.layer.change({"queries": {"o0": {"latency": {"class": "best-effort"}}}}, run.memory)
    run.until(12, [1.3])
    assert run.shedding == [False]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"polices": []}, "optimizer: unknown setting 'polices'; did you mean 'policies'.* choices: classes, interval"),
        ({"policies": ["fi-fo"]}, "optimizer: policies: unknown policy 'fi-fo'; did you mean 'fifo'"),
        ({"policies": []}, r"policies: must be one or more different policies, not \(none\)"),
        ({"policies": ["fifo", "fifo"]}, "different policies, not fifo, fifo"),
        ({"policies": {"fifo": 1}}, "policies: must be a list of names"),
        ({"start": "fifo"}, "start: unknown policy 'fifo'; choices: path-capacity, round-robin"),
        ({"interval": 0}, "optimizer: interval: must be more than 0"),
        ({"interval": "soon"}, "optimizer: interval: 'soon' is not a duration"),
        ({"lookahead": "3s"}, "lookahead: 3s must be shorter than the interval of 3s"),
        ({"interval": "1s", "lookahead": "1500ms"}, "lookahead: 1.5s must be shorter than the interval of 1s"),
        ({"classes": ["a"]}, "optimizer: classes: must be a mapping"),
        ({"classes": {"a": -1}}, "optimizer: classes: the weight of 'a'"),
        ({"classes": {"a": 1}}, "have the same weight 1"),
        ({"shed": ["sometimes"]}, "optimizer: shed: unknown class 'sometimes'"),
        ({"shed": 3}, "optimizer: shed: must be a list of names"),
        ({"table": {"jitter": {}}}, "table: unknown measure 'jitter'; choices: latency, memory"),
        ({"table": {"latency": {"fi-fo": 1}}}, "table: latency: unknown policy 'fi-fo'; did you mean 'fifo'"),
        ({"table": {"latency": {"fifo": "best"}}}, "table: latency: the rank of 'fifo' is a number"),
        ({"table": {"latency": 3}}, "table: latency: must be a mapping"),
        ({"queries": ["o0"]}, "queries: must be a mapping"),
        ({"queries": {"o0": 3}}, "queries: o0: must be a mapping"),
        ({"queries": {"o0": {"latancy": 3}}}, "o0: unknown setting 'latancy'; did you mean 'latency'"),
        ({"queries": {"o0": {"start": "fifo"}}}, "o0: start: unknown policy 'fifo'"),
        ({"queries": {"o0": {"latency": "10MB"}}}, "o0: latency: target: .*unknown unit 'MB'"),
        ({"queries": {"o0": {"latency": {"target": 1, "class": "must"}}}}, "o0: latency: class: unknown class 'must'"),
        ({"queries": {"o0": {"latency": {"goal": 1}}}}, "o0: latency: unknown setting 'goal'; choices: class, target"),
        ({"queries": {"o0": {"interval": "1s", "lookahead": "1s"}}}, "o0: lookahead: 1s must be shorter"),
        ({"queries": {"o9": {"latency": 1}}}, "unknown output 'o9'; choices: o0, o1"),
        ({"queries": {"o1": {"latency": {"class": "best-effort"}}}}, "o1: latency needs a target"),
        ({"queries": {"o0": {"memory": {"class": "best-effort"}}}}, "o0: memory needs a target"),
        ({"queries": {"o1": {}}}, "o1: latency needs a target"),
    ],
)
def test_bad_settings_are_refused(given: Mapping[str, Any], says: str) -> None:
    with pytest.raises(PolicyError, match=says):
        make_adaptive("optimizer", given).start(net(0.5, None), START)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"interval": "1s"}, "while a run goes on: unknown setting 'interval'; choices: queries"),
        ({"queries": {"o0": {"start": "segment"}}}, "o0: start: the run has begun"),
        ({"queries": {"o7": {"latency": 1}}}, "unknown output 'o7'"),
    ],
)
def test_bad_changes_are_refused(given: Mapping[str, Any], says: str) -> None:
    layer = made()
    _, memory = layer.start(net(0.5), START)
    with pytest.raises(PolicyError, match=says):
        layer.change(given, memory)


@examples(50)
@given(
    st.lists(st.tuples(st.floats(0, 2), st.floats(0, 200)), min_size=1, max_size=12),
    st.sampled_from(["must-satisfy", "best-effort", "dont-care"]),
    st.sampled_from(["must-satisfy", "best-effort", "dont-care"]),
)
def test_it_is_pure_and_memory_knows_what_was_said(looks: list[tuple[float, float]], one: str, two: str) -> None:
    goals = {"latency": {"target": 1, "class": one}, "memory": {"target": 100, "class": two}}
    run = Run(made(queries={"o0": goals}), net(None))
    for at, (latency, memory) in enumerate(looks, 1):
        before = copy.deepcopy(run.memory)
        old = run.memory
        totals = run.totals
        run.until(3 * at, [latency], [memory])
        state = run.memory.queries[0].state
        assert (run.policies[0], run.shedding[0]) == (state.current, state.shedding)
        assert same(before, old)
        again = run.layer.look(run.totals, old)
        assert again[1].queries == run.memory.queries
        assert totals.now < run.totals.now


def same(one: OptimizerMemory, other: OptimizerMemory) -> bool:
    return one.queries == other.queries and one.due.tolist() == other.due.tolist()
