"""A network made ready to run: topology, progress, taking, and steps."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import headway as hw
from headway.checking import check
from headway.clock import ManualClock
from headway.connectors import TableSink
from headway.engines.dead_letters import DeadLetters
from headway.engines.delivery import Delivery
from headway.engines.local.steps import StepRunner
from headway.engines.process.runtime import ALL, Runtime
from headway.scheduling.superboxes import box_units, superbox_units
from headway.trains import Train
from tests.engines.local.networks import COUNT, POSITIVE, network

BOXES: dict[str, Any] = {
    "x": POSITIVE,
    "y": {"op": "map", "in": "x", "select": "a, v + 1 as v"},
    "u": {"op": "union", "in": ["s", "y"]},
    "c": COUNT,
}


def make(boxes: dict[str, Any] = BOXES, outputs: dict[str, str] | None = None) -> tuple[Runtime, dict[str, TableSink]]:
    checked = check(hw.load(network(boxes, outputs or {"o": "u"})))
    clock = ManualClock()
    sinks = {one.name: TableSink(checked.output_schema(one.name)) for one in checked.network.outputs}
    deliveries = {
        one.name: Delivery(one, checked.output_schema(one.name), sinks[one.name], clock)
        for one in checked.network.outputs
    }
    return Runtime(checked, deliveries, None, DeadLetters(False, None), clock), sinks


def push(runtime: Runtime, values: list[int], start: int, end: bool = False) -> None:
    batch = pa.record_batch({"a": pa.array(values, pa.int64()), "v": pa.array([1] * len(values), pa.int32())})
    train = Train.from_batch(batch)
    last = start + len(values) - 1 + end
    runtime.arcs["s"].push(Train(train.columns, train.stamps, train.numbers + start, last, (), end))


def test_the_topology_is_numbered() -> None:
    runtime, _ = make()
    topology = runtime.topology
    assert topology.boxes == ("x", "y", "u", "c")
    assert topology.producers == ((), (0,), (1,), ())
    assert topology.consumers == ((1,), (2,), (), ())
    assert topology.readers == ((0, 2, 3),)
    assert topology.roots == (2,)


def test_a_box_with_several_inputs_waits_for_progress() -> None:
    runtime, _ = make()
    steps = StepRunner(runtime, box_units(runtime.topology))
    union = runtime.boxes[2]
    push(runtime, [1, 2, 3], 0)
    assert runtime.takeable(union, frozenset()) is None
    steps.run(0, 2)
    assert runtime.takeable(union, frozenset()) is None
    steps.run(1, 10)
    assert runtime.takeable(union, frozenset()) == 1
    assert [len(train) for train in runtime.take(union, 1, 1)] == [1, 1]
    steps.run(0, 10)
    steps.run(1, 10)
    assert runtime.takeable(union, frozenset()) == 2
    trains = runtime.take(union, ALL, 2)
    assert [train.numbers.tolist() for train in trains] == [[1, 2], [1, 2]]
    assert {train.progress for train in trains} == {2}
    assert runtime.takeable(union, frozenset()) is None


def test_without_order_a_box_takes_what_is_there_and_shares_the_limit_among_its_inputs() -> None:
    runtime, _ = make({**BOXES, "u": {**BOXES["u"], "ordered": False}})
    steps = StepRunner(runtime, box_units(runtime.topology))
    union = runtime.boxes[2]
    assert not runtime.is_ready(union, {})
    push(runtime, [1, 2, 3], 0)
    assert runtime.is_ready(union, {})
    upto = runtime.takeable(union, frozenset())
    assert upto is not None
    assert [train.numbers.tolist() for train in runtime.take(union, 1, upto)] == [[0], []]
    steps.run(0, 10)
    steps.run(1, 10)
    taken = runtime.take(union, 3, upto)  # 0, 1, 1: the oldest, and all of one arrival number
    assert [train.numbers.tolist() for train in taken] == [[1], [0, 1]]
    assert taken[0].progress == 1
    assert [train.numbers.tolist() for train in runtime.take(union, ALL, upto)] == [[2], [2]]
    assert not runtime.is_ready(union, {})


def test_without_order_what_stands_behind_a_later_tuple_is_taken_after_it() -> None:
    # A box without order before this one leaves numbers that go down in its queue: 5, then 3.
    runtime, _ = make({**BOXES, "u": {**BOXES["u"], "ordered": False}})
    union = runtime.boxes[2]
    for start in (5, 3, 4):
        push(runtime, [1], start)
    taken = []
    while (upto := runtime.takeable(union, frozenset())) is not None:
        taken.append([train.numbers.tolist() for train in runtime.take(union, 1, upto)])
        assert len(taken) < 4
    assert taken == [[[5], []], [[3], []], [[4], []]]


def test_an_idle_box_passes_progress_on_unless_somebody_runs_it() -> None:
    runtime, _ = make()
    steps = StepRunner(runtime, box_units(runtime.topology))
    push(runtime, [1, 2], 0)
    steps.run(0, 10)
    steps.run(1, 10)
    runtime.arcs["s"].queue.progress = 9
    assert runtime.progress("y", frozenset(), {}) == 9
    runtime.busy[0] = True
    assert runtime.progress("y", frozenset(), {}) == 1
    assert runtime.progress("y", frozenset({0}), {}) == 9


def test_a_superbox_step_hands_trains_on_without_queues() -> None:
    boxes = {name: BOXES[name] for name in ("x", "y")} | {"c": {**COUNT, "in": "y"}}
    runtime, sinks = make(boxes, {"o": "c"})
    steps = StepRunner(runtime, superbox_units(runtime.topology))
    push(runtime, [1, 2, 11, 12, 25], 0)
    steps.run(0, 3)
    assert all(runtime.arcs[name].queue.tuples == 0 for name in ("x", "y", "c"))
    assert sinks["o"].table.to_pylist() == [{"a": 0, "n": 2}]
    steps.run(0, 100)
    assert sinks["o"].table.num_rows == 2
    push(runtime, [], 5, end=True)
    steps.run(0, 100)
    assert sinks["o"].table.column("a").to_pylist() == [0, 10, 20]
    assert runtime.board.bytes == 0


def test_unread_ports_are_not_queued() -> None:
    runtime, _ = make({"r": {**POSITIVE, "where": ["v > 0", "v < 0"]}}, {"o": "r.2"})
    assert [arc is None for arc in runtime.boxes[0].arcs] == [True, False, True]


def test_statistics_are_kept_for_every_call() -> None:
    runtime, _ = make()
    steps = StepRunner(runtime, box_units(runtime.topology))
    for start in range(40):
        push(runtime, [start], start)
        steps.run(0, 10)
    readings = runtime.statistics.readings()
    assert (readings.calls[0], readings.tuples_in[0], readings.tuples_out[0]) == (40, 40, 40)
    assert readings.tuple_size[0] == 16 + 8 + 4


def test_sizes_are_known_from_a_boxs_first_tuples_on() -> None:
    runtime, _ = make()
    steps = StepRunner(runtime, box_units(runtime.topology))
    push(runtime, [1], 0)
    for unit in (0, 1):
        steps.run(unit, 10)
    assert runtime.statistics.readings().tuple_size[:2].tolist() == [28, 28]


@pytest.mark.parametrize("engine", ["local", "sim"])
@pytest.mark.parametrize("policy", ["fifo/box", "round-robin/box", "round-robin/superbox"])
@pytest.mark.parametrize("train", [1, 2, 1000])
def test_boxes_with_order_behind_one_without(engine: str, policy: str, train: int) -> None:
    """What takes tuples as they come passes on numbers that go down; those behind it must not wait for ever."""
    boxes = {
        "late": {"op": "union", "in": ["b", "a"]},
        "loose": {"op": "union", "in": ["b", "late"], "ordered": False},
        "strict": {"op": "union", "in": ["loose", "a"]},
        "pairs": {
            "op": "join",
            "in": ["loose", "a"],
            "on": "left.k = right.k",
            "size": 100,
            "order": [{"on": "k", "slack": 50}, {"on": "k", "slack": 50}],
            "select": "left.k as k",
        },
    }
    sources = {name: {"schema": {"k": "bigint"}} for name in "ab"}
    outputs = {name: {"from": name} for name in ("strict", "pairs")}
    network = {"network": "n", "sources": sources, "boxes": boxes, "outputs": outputs}
    inputs = {"a": [(at % 3,) for at in range(4)], "b": [(at % 3,) for at in range(9)]}
    found = hw.run(network, inputs, engine=engine, policy=policy, train=train).outputs
    a, b = [one for (one,) in inputs["a"]], [one for (one,) in inputs["b"]]
    assert sorted(found["strict"]["k"].to_pylist()) == sorted([*a, *a, *b, *b])
    assert sorted(found["pairs"]["k"].to_pylist()) == sorted(x for x in [*a, *b, *b] for y in a if x == y)


def test_ticks_behind_a_box_without_order_hold_nobody_up() -> None:
    boxes = {
        "loose": {"op": "union", "in": ["a", "b"], "ordered": False},
        "strict": {"op": "union", "in": ["loose", "c"]},
        "counts": {
            "op": "aggregate",
            "in": "strict",
            "select": "count(*) as n",
            "order": {"on": "k"},
            "size": 1000,
            "timeout": "5ms",
        },
    }
    sources = {name: {"schema": {"k": "bigint"}} for name in "abc"}
    outputs = {name: {"from": name} for name in ("strict", "counts")}
    network = {"network": "n", "sources": sources, "boxes": boxes, "outputs": outputs}
    inputs = {name: [(at // 10,) for at in range(300)] for name in "abc"}
    rates = {"a": 1000.0, "b": 100_000.0, "c": 3000.0}
    how: dict[str, Any] = {"policy": "round-robin/box", "train": 1, "rates": rates}
    assert hw.run(network, inputs, engine="local", **how).outputs["strict"].num_rows == 900
