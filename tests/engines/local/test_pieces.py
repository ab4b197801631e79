"""A call whose results come in pieces, beside other workers: it waits for them while the queues are full."""

from __future__ import annotations

import inspect
import sys
import threading
import time
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

import headway as hw
from headway.engines.local import steps
from headway.engines.local.steps import StepRunner
from headway.expressions.userfunctions import BUILTIN, ScalarFunction
from headway.kernels import join, results
from headway.network.schema import parse_type

MEMORY = 200_000
PIECE = 20_000


def crossing() -> dict[str, Any]:
    """Return a network whose join makes 90,000 pairs in one call, for a box that is slower than it."""
    order = [{"on": "t"}, {"on": "t"}]
    return {
        "network": "crossing",
        "sources": {"a": {"schema": {"t": "bigint"}}, "b": {"schema": {"t": "bigint"}}},
        "boxes": {
            "pairs": {"op": "join", "in": ["a", "b"], "on": "true", "size": 1000, "order": order},
            "slow": {"op": "universal", "in": "pairs", "cost": "5us"},
        },
        "outputs": {"o": {"from": "slow"}},
    }


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_full_queues_hold_pieces_back(workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[int] = []
    relieve = StepRunner._relieve

    def see(self: StepRunner, log: Any) -> None:
        relieve(self, log)
        held.append(self._runtime.board.bytes)

    monkeypatch.setattr(StepRunner, "_relieve", see)
    monkeypatch.setattr(join, "BYTES", PIECE)
    monkeypatch.setattr(results, "BYTES", PIECE)
    rows = pa.table({"t": pa.array(range(300), pa.int64())})
    result = hw.run(
        crossing(), {"a": rows, "b": rows}, engine="local", policy="round-robin/box", workers=workers, memory=MEMORY
    )
    assert result.outputs["o"].num_rows == 90_000
    assert len(held) > 50
    assert max(held) <= MEMORY + 2 * PIECE


def several(joins: int) -> dict[str, Any]:
    """Return a network with several such joins, each with a slow box behind it."""
    network = crossing()
    pairs, slow = network["boxes"]["pairs"], network["boxes"]["slow"]
    network["boxes"] = {f"pairs{at}": pairs for at in range(joins)}
    network["boxes"] |= {f"slow{at}": {**slow, "in": f"pairs{at}"} for at in range(joins)}
    network["outputs"] = {f"o{at}": {"from": f"slow{at}"} for at in range(joins)}
    return network


@pytest.mark.parametrize(("joins", "workers"), [(2, 2), (3, 3), (3, 2)])
def test_a_worker_works_off_what_waits_where_all_give_pieces(
    joins: int, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[int] = []
    pass_on = StepRunner._pass_on

    def see(self: StepRunner, *passed: Any) -> None:
        pass_on(self, *passed)
        held.append(self._runtime.board.bytes)

    monkeypatch.setattr(StepRunner, "_pass_on", see)
    monkeypatch.setattr(join, "BYTES", PIECE)
    monkeypatch.setattr(results, "BYTES", PIECE)
    monkeypatch.setattr(join, "_LEAST", 100)  # so few pairs are added until that is reached
    monkeypatch.setattr(join, "PAIRS", 100)
    monkeypatch.setattr(results, "PAIRS", 100)
    rows = pa.table({"t": pa.array(range(300), pa.int64())})
    made, inputs = several(joins), {"a": rows, "b": rows}
    result = hw.run(made, inputs, engine="local", policy="round-robin/box", workers=workers, memory=MEMORY)
    assert [one.num_rows for one in result.outputs.values()] == [90_000] * joins
    assert MEMORY < max(held) <= MEMORY + 2 * workers * PIECE


@pytest.mark.parametrize("workers", [2, 3])
def test_pieces_wait_for_a_step_that_lasts(workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(join, "BYTES", PIECE)
    monkeypatch.setattr(results, "BYTES", PIECE)
    monkeypatch.setattr(join, "_LEAST", 100)  # so few pairs are added until that is reached
    monkeypatch.setattr(join, "PAIRS", 100)
    monkeypatch.setattr(results, "PAIRS", 100)
    made, naps = crossing(), [1.0]
    made["boxes"]["slow"] = {"op": "map", "in": "pairs", "select": "nap(t) as t"}

    def nap(moments: pa.Array) -> pa.Array:
        time.sleep(naps.pop() if naps else 0)
        return moments

    functions = BUILTIN.with_function(ScalarFunction("nap", (parse_type("bigint"),), parse_type("bigint"), nap, True))
    inputs = dict.fromkeys("ab", pa.table({"t": pa.array(range(300), pa.int64())}))
    how: dict[str, Any] = {"engine": "local", "policy": "round-robin/box/mc/100000", "functions": functions}
    result = hw.run(made, inputs, workers=workers, memory=MEMORY, **how)
    assert result.outputs["o"].num_rows == 90_000
    assert not naps
    assert MEMORY < result.summary["peak_queued_bytes"] <= MEMORY + 2 * PIECE


def test_a_run_that_fails_ends_while_another_worker_gives_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(join, "BYTES", PIECE)
    monkeypatch.setattr(results, "BYTES", PIECE)
    made, seen, failed = crossing(), [0], [0.0]
    made["sources"]["c"] = {"schema": {"t": "bigint"}}
    made["boxes"]["slow"]["cost"] = "50us"
    made["boxes"]["other"] = {"op": "filter", "in": "c", "where": "t >= 0"}
    made["outputs"]["p"] = {"from": "other"}

    def fail(batch: pa.RecordBatch) -> None:
        begun = time.monotonic()
        while not seen[0] and time.monotonic() < begun + 20:
            time.sleep(0.01)
        failed[0] = time.monotonic()
        raise OSError("the disk is full")

    def count(batch: pa.RecordBatch) -> None:
        seen[0] += batch.num_rows

    rows = pa.table({"t": pa.array(range(1000), pa.int64())})  # a million pairs, which would take a minute
    outputs = {"o": count, "p": fail}
    how: dict[str, Any] = {"engine": "local", "policy": "round-robin/box"}
    with pytest.raises(hw.HeadwayError, match="the disk is full"):
        hw.run(made, dict.fromkeys("abc", rows), outputs=outputs, workers=2, memory=MEMORY, **how)
    assert time.monotonic() - failed[0] < 10
    assert not [one.name for one in threading.enumerate() if one.name.startswith("headway-worker")]
    before = seen[0]
    time.sleep(0.2)
    assert 0 < seen[0] == before < 500_000


@pytest.mark.parametrize("workers", [1, 2])
def test_a_trace_has_what_is_worked_off_between_pieces(workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(join, "BYTES", PIECE)
    monkeypatch.setattr(results, "BYTES", PIECE)
    rows = pa.table({"t": pa.array(range(200), pa.int64())})
    made = several(2)
    how: dict[str, Any] = {"engine": "local", "policy": "round-robin/box", "memory": MEMORY}
    result = hw.run(made, {"a": rows, "b": rows}, workers=workers, trace=True, **how)
    assert result.trace is not None
    taken: Counter[str] = Counter()
    for step in result.trace.steps:
        for call in step.calls:
            assert step.begin <= call.begin <= call.end <= step.end
            taken[result.trace.boxes[call.boxes[0]]] += call.tuples_in
    assert taken == {"pairs0": 400, "pairs1": 400, "slow0": 40_000, "slow1": 40_000}


def test_joins_behind_each_other_do_not_exhaust_the_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "_DEEPEST", 5)
    monkeypatch.setattr(join, "BYTES", 1000)
    monkeypatch.setattr(join, "_LEAST", 10)
    boxes, before = {}, "a"
    for at in range(80):
        boxes[f"j{at}"] = {"op": "join", "in": [before, {"table": "one"}], "on": "left.t >= right.k", "select": "t"}
        before = f"j{at}"
    made = {**crossing(), "boxes": boxes, "outputs": {"o": {"from": before}}}
    del made["sources"]["b"]
    rows, limit = pa.table({"t": pa.array(range(500), pa.int64())}), sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack()) + 180)
    try:
        result = hw.run(
            made, {"a": rows}, tables={"one": [{"k": 0}]}, engine="local", policy="round-robin/box", memory=1000
        )
    finally:
        sys.setrecursionlimit(limit)
    assert result.outputs["o"]["t"].to_pylist() == list(range(500))


def united() -> dict[str, Any]:
    """Return a network of one output, in which the results of two joins wait in queues."""
    network = crossing()
    network["boxes"]["pairs2"] = network["boxes"]["pairs"]
    network["boxes"]["slow"] = {"op": "union", "in": ["pairs", "pairs2"]}
    return network


def test_nobody_waits_for_workers_that_there_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    def wait(self: StepRunner) -> bool:
        raise AssertionError("there is one unit, and so one worker")

    monkeypatch.setattr(StepRunner, "_others_relieve", wait)
    monkeypatch.setattr(join, "BYTES", PIECE)
    monkeypatch.setattr(results, "BYTES", PIECE)
    rows = pa.table({"t": pa.array(range(100), pa.int64())})
    how: dict[str, Any] = {"engine": "local", "policy": "round-robin/superbox", "workers": 4, "memory": 1000}
    result = hw.run(united(), {"a": rows, "b": rows}, **how)
    assert result.summary["workers"] == 1
    assert result.outputs["o"].num_rows == 20_000


def test_workers_that_all_wait_for_each_other_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    network = united()
    monkeypatch.setattr(join, "BYTES", PIECE)
    monkeypatch.setattr(results, "BYTES", PIECE)
    rows = pa.table({"t": pa.array(range(200), pa.int64())})
    began = time.monotonic()
    # Both workers make pieces, and nobody is left to take them.
    result = hw.run(network, {"a": rows, "b": rows}, engine="local", policy="round-robin/box", workers=2, memory=1000)
    assert result.outputs["o"].num_rows == 80_000
    assert time.monotonic() - began < 15
