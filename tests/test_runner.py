"""`hw.run`: what it takes and what it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headway as hw
from headway.engines.runs import engine_names, make_engine
from headway.errors import InputError, OutputError, PolicyError, RunError
from headway.runner import DEFAULT_ENGINE
from tests.engines.local.networks import POSITIVE, network, rows
from tests.networks import BORDER

SMALL = network({"b": POSITIVE}, {"o": "b"})


def test_a_network_may_come_in_any_form(tmp_path: Path) -> None:
    path = tmp_path / "border.yaml"
    path.write_text(BORDER)
    inputs = {"positions": [(sid, 1, 40) for sid in range(3)]}
    expected = [{"time": 1, "n": 3, "twice": 6}]
    for form in (path, str(path), BORDER, hw.load(BORDER)):
        assert hw.run(form, inputs, engine="local").outputs["alarms"].to_pylist() == expected
    built = hw.Network("x")
    built.source("s", "a int").filter("a > 1").output("o")
    assert hw.run(built, {"s": [(1,), (2,)]}, engine="local").outputs["o"].to_pylist() == [{"a": 2}]


@pytest.mark.parametrize("form", ["rows", "dicts", "table", "batch", "reader", "path"])
def test_inputs_may_come_in_any_form(form: str, tmp_path: Path) -> None:
    table = pa.table({"a": pa.array([1, 2], pa.int64()), "v": pa.array([0, 1], pa.int32())})
    path = tmp_path / "s.csv"
    path.write_text("a,v\n1,0\n2,1\n")
    forms: dict[str, Any] = {
        "rows": [(1, 0), (2, 1)],
        "dicts": iter([{"a": 1, "v": 0}, {"a": 2, "v": 1}]),
        "table": table,
        "batch": table.to_batches()[0],
        "reader": table.to_reader(),
        "path": path,
    }
    assert hw.run(SMALL, {"s": forms[form]}, engine="local").outputs["o"].to_pylist() == [{"a": 2, "v": 1}]


def test_outputs_that_have_a_sink_are_not_in_the_result(tmp_path: Path) -> None:
    batches: list[pa.RecordBatch] = []
    made = network({"b": POSITIVE}, {"file": "b", "function": "b", "kept": "b"})
    outputs = {"file": tmp_path / "o.csv", "function": batches.append}
    result = hw.run(made, {"s": rows(3)}, outputs=outputs, engine="local")
    assert list(result.outputs) == ["kept"]
    assert (tmp_path / "o.csv").read_text().splitlines()[0] == "a,v"
    assert sum(batch.num_rows for batch in batches) == 3


def test_the_files_schedule_holds_unless_something_else_is_said() -> None:
    made = network({"b": POSITIVE}, {"o": "b"}, schedule={"policy": "round-robin/box", "train": 7, "workers": 1})
    assert hw.run(made, {"s": rows(1)}, engine="local").summary["policy"] == "round-robin/box/7"
    assert hw.run(made, {"s": rows(1)}, train=9, engine="local").summary["policy"] == "round-robin/box/9"
    other = hw.run(made, {"s": rows(1)}, policy="round-robin/superbox/5", engine="local")
    assert other.summary["policy"].startswith("round-robin/superbox")


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"inputs": {"t": []}}, InputError, "unknown source 't'.*choices: s"),
        ({"rates": {"t": 1}}, InputError, "unknown source 't'"),
        ({"outputs": {"p": print}}, OutputError, "unknown output 'p'.*choices: o"),
        ({"policy": "best"}, PolicyError, "unknown policy 'best'"),
        ({"engine": "locl"}, hw.HeadwayError, "unknown engine 'locl'; did you mean 'local'"),
    ],
)
def test_what_does_not_exist(settings: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        hw.run(SMALL, **({"inputs": {"s": rows(1)}, "engine": "local"} | settings))


def test_engines_are_registered() -> None:
    assert DEFAULT_ENGINE == "spark"
    assert {"local", DEFAULT_ENGINE} <= set(engine_names())
    assert make_engine("local") is not None


def test_a_policy_may_be_a_mapping() -> None:
    parts = {"policy": "qos", "unit": "superbox", "traversal": "ml", "train": "50%", "wait": "2s"}
    result = hw.run(SMALL, {"s": rows(9)}, engine="local", policy=parts)
    assert result.summary["policy"] == "qos/superbox/ml/50%/wait:2s"
    with pytest.raises(PolicyError, match="policy: unknown key 'units'; did you mean 'unit'"):
        hw.run(SMALL, {"s": rows(1)}, engine="local", policy={"units": "box"})


def test_the_runs_policy_wins_over_the_files_parts() -> None:
    made = network({"b": POSITIVE}, {"o": "b"}, schedule={"policy": "fifo", "unit": "box", "train": 7, "wait": "3s"})
    assert hw.run(made, {"s": rows(3)}, engine="local").summary["policy"] == "fifo/box/7/wait:3s"
    assert hw.run(made, {"s": rows(3)}, engine="local", train=2).summary["policy"] == "fifo/box/2/wait:3s"
    said = hw.run(made, {"s": rows(3)}, engine="local", policy="chain/superbox/5")
    assert said.summary["policy"] == "chain/superbox/mc/5"
    said = hw.run(made, {"s": rows(3)}, engine="local", policy="chain", wait="off")
    assert said.summary["policy"] == "chain/superbox/mc/7/wait:off"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model": {"default": "1ms"}}, "model is for the engine 'sim'; the engine of this run is 'local'"),
        ({"remember": 0}, "remember is a number of calls, 1 or more, not 0"),
        ({"wait": "soon"}, "wait: 'soon' is not a duration"),
    ],
)
def test_settings_of_scheduling_that_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(hw.HeadwayError, match=message):
        hw.run(SMALL, {"s": rows(1)}, engine="local", **settings)


def test_graphs_choose_the_default_policy() -> None:
    net = hw.Network("n")
    source = net.source("s", "a int")
    source.output("plain").output("soon", latency=[[0, 1], [1, 0]])
    assert hw.run(net, {"s": [(1,)]}, engine="local").summary["policy"] == "qos/superbox/mc/100ms"
    assert hw.run(net, {"s": [(1,)]}, engine="sim", train=9).summary["policy"] == "qos/superbox/mc/9"
    assert hw.run(net, {"s": [(1,)]}, engine="local", policy="fifo").summary["policy"] == "fifo/superbox/mc/65536"
    alone = hw.Network("n")
    alone.source("s", "a int").output("soon", latency=[[0, 1], [1, 0]])
    assert hw.run(alone, {"s": [(1,)]}, engine="local").summary["policy"] == "round-robin/superbox/mc/65536"


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"inputs": "day.csv"}, "inputs is a mapping"),
        ({"outputs": ["o"]}, "outputs is a mapping"),
        ({"rates": 100}, "rates is a mapping"),
        ({"on_status": "print"}, "on_status is a function"),
        ({"control": 3}, "control is a headway.Control"),
    ],
)
def test_arguments_of_another_kind(more: dict[str, Any], said: str) -> None:
    made = {"network": "n", "sources": {"s": {"schema": {"a": "int"}}}, "outputs": {"o": {"from": "s"}}}
    with pytest.raises(RunError, match=said):
        hw.run(made, **{"inputs": {"s": [(1,)]}, "engine": "local", **more})


def test_a_status_function_that_fails_is_named() -> None:
    def look(status: object) -> None:
        raise ValueError("no display")

    made = {"network": "n", "sources": {"s": {"schema": {"a": "int"}}}, "outputs": {"o": {"from": "s"}}}
    with pytest.raises(RunError, match="on_status raised ValueError: no display"):
        hw.run(made, {"s": [(1,), (2,)]}, rates={"s": 2}, engine="local", on_status=look)


def test_what_check_warns_of_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    network = hw.load(
        "network: n\nsources: {s: {schema: {path: string}}}\n"
        "boxes: {f: {op: filter, in: s, where: path > 500}}\noutputs: {o: {from: f}}\n"
    )
    hw.run(network, {"s": [("/a",)]}, engine="local")
    (record,) = caplog.records
    assert record.name.startswith("headway.")
    assert record.levelname == "WARNING"
    assert record.getMessage() == hw.check(network).warnings[0]
