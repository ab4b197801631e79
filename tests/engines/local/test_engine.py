"""The local engine as a whole."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headway as hw
from headway.errors import InputError, OutputError, RunError
from tests.engines.local.networks import COUNT, POSITIVE, network, rows

WAYS = [("round-robin/box", 1), ("round-robin/superbox", 1), ("round-robin/box", 4), ("round-robin/superbox", 4)]


def test_the_summary_keeps_its_contract() -> None:
    made = network({"b": POSITIVE}, {"o": "b"})
    made["outputs"]["o"]["qos"] = {"latency": [[0, 1], [100, 1], [200, 0]]}
    summary = hw.run(made, {"s": rows(10)}, engine="local").summary
    assert {"engine", "policy", "outputs", "time", "boxes", "sources", "dead_letters", "peak_queued_bytes"} <= set(
        summary
    )
    assert (summary["engine"], summary["network"]) == ("local", "n")
    assert {"scheduler", "boxes", "storage"} <= set(summary["time"])
    output = summary["outputs"]["o"]
    assert (output["tuples"], output["utility"], output["shed"]) == (10, 1.0, 0)
    assert set(output["latency"]) >= {"p50", "p99", "mean"}
    assert 0 < output["latency"]["mean"] < 60
    assert summary["boxes"]["b"]["tuples_in"] == summary["tuples_in"] == 10


@pytest.mark.parametrize(("policy", "workers"), WAYS)
def test_nothing_in(policy: str, workers: int) -> None:
    made = network({"b": POSITIVE, "c": COUNT, "u": {"op": "union", "in": ["s", "b"]}}, {"o": "b", "p": "c", "q": "u"})
    result = hw.run(made, {"s": []}, policy=policy, workers=workers, engine="local")
    assert {name: table.num_rows for name, table in result.outputs.items()} == {"o": 0, "p": 0, "q": 0}
    assert result.outputs["p"].schema.names == ["a", "n"]
    assert result.summary["outputs"]["o"]["latency"]["p50"] is None
    assert result.summary["outputs"]["o"]["utility"] is None


def test_one_source_may_be_empty() -> None:
    made = network({"u": {"op": "union", "in": ["s", "r"]}}, {"o": "u"}, ("s", "r"))
    assert hw.run(made, {"s": rows(3), "r": []}, engine="local").outputs["o"].num_rows == 3


@pytest.mark.parametrize(("policy", "workers"), WAYS)
def test_outputs_of_sources_and_of_the_same_arc(policy: str, workers: int) -> None:
    made = network({"b": POSITIVE, "unread": COUNT}, {"raw": "s", "one": "b", "two": "b", "rest": "b.else"})
    result = hw.run(made, {"s": [(1, 1), (2, 0), (3, 1)]}, policy=policy, workers=workers, train=1, engine="local")
    shown = {name: table.column("a").to_pylist() for name, table in result.outputs.items()}
    assert shown == {"raw": [1, 2, 3], "one": [1, 3], "two": [1, 3], "rest": [2]}
    assert result.summary["boxes"]["unread"]["tuples_in"] == 3


def test_a_network_without_boxes() -> None:
    result = hw.run(network({}, {"raw": "s"}), {"s": rows(5)}, engine="local")
    assert result.outputs["raw"].num_rows == 5


@pytest.mark.parametrize(("policy", "workers"), WAYS)
def test_three_hundred_boxes(policy: str, workers: int) -> None:
    wide = {f"w{at}": {**POSITIVE, "where": f"v > {at % 3}"} for at in range(150)}
    deep = {f"d{at}": {"op": "map", "in": f"d{at - 1}" if at else "s", "select": "a, v"} for at in range(149)}
    boxes = {**wide, **deep, "u": {"op": "union", "in": ["d148", "w0", "w149"]}}
    outputs = {f"o{at}": f"w{at}" for at in range(150)} | {"u": "u"}
    result = hw.run(
        network(boxes, outputs),
        {"s": [(at, at % 4) for at in range(40)]},
        policy=policy,
        workers=workers,
        engine="local",
    )
    assert [result.outputs[f"o{at}"].num_rows for at in range(3)] == [30, 20, 10]
    assert result.outputs["u"].num_rows == 40 + 30 + 10


def test_a_very_deep_network() -> None:
    deep = {f"d{at}": {"op": "map", "in": f"d{at - 1}" if at else "s", "select": "a, v"} for at in range(600)}
    boxes = {**deep, "u": {"op": "union", "in": ["s", "d599"]}}
    result = hw.run(network(boxes, {"o": "u"}), {"s": rows(3)}, workers=1, engine="local")
    assert result.outputs["o"].num_rows == 6


def test_workers_do_not_change_results() -> None:
    boxes = {
        "counts": COUNT,
        "sorted": {"op": "bsort", "in": "s", "order": {"on": "a", "slack": 3}},
        "near": {"op": "join", "in": ["s", "sorted"], "on": "left.v = right.v", "size": 1, "order": {"on": "a"}},
        "both": {"op": "union", "in": ["s", "sorted"]},
    }
    made = network(boxes, {name: name for name in boxes})
    data = [((at * 7) % 5 + at // 2, at % 3) for at in range(300)]
    expected: dict[str, pa.Table] | None = None
    for policy, workers in WAYS:
        for train in (1, 50):
            outputs = dict(
                hw.run(made, {"s": data}, policy=policy, workers=workers, train=train, engine="local").outputs
            )
            expected = expected or outputs
            assert outputs == expected


@pytest.mark.parametrize("workers", [1, 2])
def test_a_slow_sink_holds_the_run_back(workers: int) -> None:
    seen: list[int] = []

    def slow(batch: pa.RecordBatch) -> None:
        seen.extend(batch.column(0).to_pylist())
        time.sleep(0.0005)

    made = network({"b": POSITIVE, "c": {**POSITIVE, "in": "b"}, "d": COUNT}, {"o": "c", "raw": "d"})
    count, memory, train = 40_000, 100_000, 100
    result = hw.run(
        made,
        {"s": rows(count)},
        outputs={"o": slow},
        memory=memory,
        train=train,
        workers=workers,
        policy="round-robin/box",
        engine="local",
    )
    assert seen == list(range(count))
    chunk = 16 * train * 28
    assert result.summary["peak_queued_bytes"] < memory + 4 * chunk


@pytest.mark.parametrize("workers", [1, 2])
def test_a_slow_sink_holds_timed_sources_back(workers: int) -> None:
    delivered = 0

    def slow(batch: pa.RecordBatch) -> None:
        nonlocal delivered
        delivered += batch.num_rows
        time.sleep(0.005)

    made = network({"b": POSITIVE, "d": COUNT}, {"o": "b", "n": "d"})
    result = hw.run(
        made,
        {"s": rows(60_000)},
        rates={"s": 1e6},
        outputs={"o": slow},
        memory=50_000,
        train=1000,
        workers=workers,
        engine="local",
    )
    assert delivered == 60_000
    assert result.summary["peak_queued_bytes"] < 50_000 + 3 * 16_000 * 28


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("where", ["s", "b"])
def test_a_failing_callback_stops_the_run(tmp_path: Path, workers: int, where: str) -> None:
    def fail(batch: pa.RecordBatch) -> None:
        raise ValueError("no more room")

    made = network({"b": POSITIVE, "c": POSITIVE}, {"bad": where, "file": "c"})
    with pytest.raises((RunError, OutputError), match=r"output 'bad': .*ValueError: no more room"):
        hw.run(
            made,
            {"s": rows(100)},
            outputs={"bad": fail, "file": tmp_path / "out.csv"},
            dead_letters=tmp_path / "dead.jsonl",
            workers=workers,
            engine="local",
        )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("settings", [{"train": 0}, {"train": -5}, {"workers": 0}, {"workers": True}, {"memory": -1}])
def test_bad_settings(settings: dict[str, Any]) -> None:
    with pytest.raises(hw.HeadwayError, match=r"above 0|from 1 to 65536"):
        hw.run(network({"b": POSITIVE}, {"o": "b"}), {"s": rows(1)}, **settings, engine="local")


def test_a_source_without_input() -> None:
    with pytest.raises(InputError, match="source 's' has no input"):
        hw.run(network({"b": POSITIVE}, {"o": "b"}), engine="local")


def test_infinities_are_values_and_no_warnings() -> None:
    made = network({"b": {**COUNT, "select": "sum(x) as s, max(x) as m, stddev(x) as d"}}, {"o": "b"})
    made["sources"]["s"]["schema"] = {"a": "bigint", "x": "double"}
    inf, nan = float("inf"), float("nan")
    data = [(1, inf), (2, -inf), (11, 1e308), (12, 1.7e308), (21, nan), (22, 1.0)]
    for workers in (1, 2):
        made["outputs"] = {"o": {"from": "b"}, "p": {"from": "s"}, "q": {"from": "b"}}
        table = hw.run(made, {"s": data}, workers=workers, engine="local").outputs["o"]
        assert [str(one) for one in table.column("s").to_pylist()] == ["nan", "inf", "nan"]
        assert [str(one) for one in table.column("m").to_pylist()] == ["inf", "1.7e+308", "nan"]


def test_status_is_reported_on_long_runs() -> None:
    seen: list[Any] = []

    def slow(batch: pa.RecordBatch) -> None:
        time.sleep(0.02)

    hw.run(
        network({"b": POSITIVE}, {"o": "b"}),
        {"s": rows(40)},
        outputs={"o": slow},
        train=1,
        on_status=seen.append,
        engine="local",
    )
    assert seen
    assert 0 < seen[-1].tuples_in <= 40
    assert seen[-1].dead_letters == 0
