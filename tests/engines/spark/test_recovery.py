"""Runs that stop in the middle and go on later: with the same network, with a changed one, or refused."""

from __future__ import annotations

import copy
import json
import os
import random
import shutil
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import headway as hw
from headway.errors import HeadwayError, InputError, OutputError, RunError
from tests.engines.spark.crashing import EVERYTHING, FILES, outputs_in, run_local, start_everything, write_events

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = dict[str, Any]

FIELDS = {"id": "int", "time": "bigint", "k": "int", "v": "int"}
NETWORK: dict[str, Any] = {
    "network": "stopped",
    "sources": {"s": {"schema": FIELDS}},
    "boxes": {
        "halves": {"op": "map", "in": "s", "select": "id, time, k, v, 10 / v as part"},
        "sums": {
            "op": "aggregate",
            "in": "s",
            "select": "count(*) as n, sum(v) as total",
            "order": {"on": "time", "by": ["k"], "slack": 2},
            "size": 10,
        },
        "large": {"op": "filter", "in": "sums", "where": ["total > 30"]},
    },
    "outputs": {name: {"from": source} for name, source in (("sums", "sums"), ("large", "large"), ("tap", "halves"))},
}
TRAIN = 60
COUNT = 240
STOP = 100
"""A run stops when this many tuples have gone through the tap: in the second of four micro-batches."""


def make_rows(count: int = COUNT, seed: int = 5) -> list[Row]:
    chance = random.Random(seed)
    return [
        {"id": at, "time": at // 2 + chance.randint(0, 2), "k": chance.randrange(4), "v": chance.randrange(12)}
        for at in range(count)
    ]


def changed(**boxes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the network with other settings of some boxes."""
    network = copy.deepcopy(NETWORK)
    for name, settings in boxes.items():
        network["boxes"][name] |= settings
    return network


def go(network: Mapping[str, Any], rows: list[Row], state: Path | None, **more: Any) -> Any:
    """Run on Spark if there is a state, otherwise on the local engine."""
    if state is None:
        return hw.run(network, {"s": rows}, engine="local", **more)
    return hw.run(network, {"s": rows}, engine="spark", state=state, train=TRAIN, **more)


def listed(result: Any, output: str) -> list[Row]:
    rows: list[Row] = result.outputs[output].to_pylist()
    return rows


def failing(after: int) -> Callable[[pa.RecordBatch], None]:
    """Return a callback that fails when it has got more than so many tuples."""
    seen = 0

    def tap(batch: pa.RecordBatch) -> None:
        nonlocal seen
        seen += batch.num_rows
        if seen > after:
            raise ValueError("the tap is closed")

    return tap


def interrupting(after: int) -> Callable[[pa.RecordBatch], None]:
    """Return a callback that presses Ctrl-C, once, when it has got more than so many tuples; twice would give up."""
    seen, pressed = 0, False

    def tap(batch: pa.RecordBatch) -> None:
        nonlocal seen, pressed
        seen += batch.num_rows
        if seen > after and not pressed:
            pressed = True
            os.kill(os.getpid(), signal.SIGINT)

    return tap


def committed(state: Path) -> int:
    """Return how many tuples have gone through: with one source, arrival numbers count them."""
    (unit,) = (state / "checkpoints").iterdir()
    last = max(int(path.name) for path in (unit / "commits").glob("[0-9]*"))
    upto: int = json.loads((unit / "offsets" / str(last)).read_text().splitlines()[-1])["upto"]
    return upto + 1


@pytest.fixture(scope="module")
def stopped(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state directory that a failing callback left in the middle of a run."""
    state = tmp_path_factory.mktemp("stopped") / "state"
    with pytest.raises(OutputError, match="the tap is closed"):
        go(NETWORK, make_rows(), state, outputs={"tap": failing(STOP)})
    assert 0 < committed(state) < COUNT
    return state


@pytest.fixture
def state(stopped: Path, tmp_path: Path) -> Path:
    """A copy of it, to go on with."""
    return Path(shutil.copytree(stopped, tmp_path / "state"))


@pytest.fixture(scope="module")
def finished(stopped: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same, continued to the end."""
    state = Path(shutil.copytree(stopped, tmp_path_factory.mktemp("finished") / "state"))
    go(NETWORK, make_rows(), state)
    return state


# Going on


def test_after_a_failing_callback_nothing_is_lost_or_doubled(state: Path, tmp_path: Path) -> None:
    heard: list[int] = []

    def hear(batch: pa.RecordBatch) -> None:
        heard.extend(batch.column("id").to_pylist())

    before = committed(state)
    files = {name: {"sums": str(tmp_path / f"{name}.csv"), "large": str(tmp_path / f"{name}.jsonl")} for name in "ab"}
    dead = {name: tmp_path / f"{name}.dead.csv" for name in "ab"}
    result = go(NETWORK, make_rows(), state, outputs={**files["a"], "tap": hear}, dead_letters=str(dead["a"]))
    local = go(NETWORK, make_rows(), None, outputs=files["b"], dead_letters=str(dead["b"]))
    for suffix in ("csv", "jsonl"):
        assert (tmp_path / f"a.{suffix}").read_text() == (tmp_path / f"b.{suffix}").read_text()
    everything = [row["id"] for row in listed(local, "tap")]
    assert heard == [one for one in everything if one >= before]  # what was not committed comes again, nothing else
    assert sorted_rows(result.dead_letters) == sorted_rows(local.dead_letters)
    assert result.summary["dead_letters"] == local.summary["dead_letters"]
    assert sorted(dead["a"].read_text().splitlines()) == sorted(dead["b"].read_text().splitlines())


def sorted_rows(table: pa.Table) -> list[list[Any]]:
    return sorted([list(row.values()) for row in table.to_pylist()])


def test_tables_hold_what_earlier_processes_delivered(state: Path) -> None:
    result, local = go(NETWORK, make_rows(), state), go(NETWORK, make_rows(), None)
    for name in NETWORK["outputs"]:
        assert listed(result, name) == listed(local, name)
        assert result.summary["outputs"][name]["tuples"] == local.summary["outputs"][name]["tuples"]
    assert result.summary["tuples_in"] == COUNT


def test_a_completed_run_gives_the_same_again_without_work(finished: Path, tmp_path: Path) -> None:
    log = sorted(path.name for path in (finished / "log").rglob("*"))
    result = go(NETWORK, make_rows(), finished, outputs={"sums": str(tmp_path / "sums.csv")})
    local = go(NETWORK, make_rows(), None, outputs={"sums": str(tmp_path / "local.csv")})
    assert listed(result, "large") == listed(local, "large")
    assert (tmp_path / "sums.csv").read_text() == (tmp_path / "local.csv").read_text()
    assert [unit["batches"] for unit in result.summary["units"].values()] == [0]
    assert sorted(path.name for path in (finished / "log").rglob("*")) == log


@pytest.mark.slow
def test_ctrl_c_stops_and_can_be_continued(spark: SparkSession, tmp_path: Path) -> None:
    state, file = tmp_path / "state", tmp_path / "sums.csv"
    result = go(NETWORK, make_rows(), state, outputs={"sums": str(file), "tap": interrupting(STOP)})
    assert result.summary["interrupted"]
    assert result.summary["state"] == {"path": str(state), "can_continue": True}
    local = go(NETWORK, make_rows(), None, outputs={"sums": str(tmp_path / "local.csv")})
    lines, expected = file.read_text().splitlines(), (tmp_path / "local.csv").read_text().splitlines()
    assert 1 < len(lines) < len(expected)
    assert lines == expected[: len(lines)]
    result = go(NETWORK, make_rows(), state, outputs={"sums": str(file)})
    assert not result.summary["interrupted"]
    assert "state" not in result.summary
    before, seconds = result.summary["tuples_before"], result.summary["seconds"]
    assert 0 < before <= COUNT
    assert result.summary["tuples_per_second"] == pytest.approx((COUNT - before) / seconds)
    assert file.read_text().splitlines() == expected
    assert listed(result, "large") == listed(local, "large")


def test_ctrl_c_stops_also_where_all_inputs_were_read(state: Path) -> None:
    """It worked off all that was logged before it stopped."""
    # Not in the micro-batch that is repeated while queries start: a signal then gives up.
    result = go(NETWORK, make_rows(), state, outputs={"tap": interrupting(TRAIN)})
    assert result.summary["state"]["can_continue"]
    assert committed(state) < COUNT
    last, local = go(NETWORK, make_rows(), state), go(NETWORK, make_rows(), None)
    assert listed(last, "sums") == listed(local, "sums")


@pytest.mark.slow
def test_two_sources_go_on_in_turn_and_malformed_rows_are_reported_once(spark: SparkSession, tmp_path: Path) -> None:
    network = copy.deepcopy(NETWORK)
    network["sources"]["other"] = {"schema": FIELDS}
    network["boxes"]["both"] = {"op": "union", "in": ["s", "other"]}
    network["boxes"]["sums"]["in"] = "both"
    network["boxes"]["halves"]["in"] = "both"
    inputs: dict[str, object] = {"s": str(tmp_path / "s.csv"), "other": str(tmp_path / "other.csv")}
    write_events(tmp_path / "s.csv", 1, 150)
    write_events(tmp_path / "other.csv", 2, 90)
    with pytest.raises(OutputError, match="the tap is closed"):
        hw.run(network, inputs, engine="spark", state=tmp_path / "state", train=TRAIN, outputs={"tap": failing(STOP)})
    dead = [str(tmp_path / "spark.dead.csv"), str(tmp_path / "local.dead.csv")]
    result = hw.run(network, inputs, engine="spark", state=tmp_path / "state", train=TRAIN, dead_letters=dead[0])
    local = hw.run(network, inputs, engine="local", dead_letters=dead[1])
    for name in network["outputs"]:
        assert listed(result, name) == listed(local, name)
    assert local.summary["dead_letters"]["by"]["s"] > 0
    assert result.summary["dead_letters"]["by"] == local.summary["dead_letters"]["by"]
    assert result.summary["sources"] == local.summary["sources"]
    texts = [sorted(Path(name).read_text().splitlines()) for name in dead]
    assert texts[0] == texts[1]


@pytest.mark.slow
def test_ctrl_c_in_a_terminal(spark: SparkSession, tmp_path: Path) -> None:
    events, state, out = tmp_path / "events.csv", tmp_path / "state", tmp_path / "out"
    out.mkdir()
    write_events(events, 3, 240)

    log = tmp_path / "said"
    with start_everything(events, state, out, rate=40, log=log) as process:
        assert process.wait_for(lambda: len(list(state.glob("results/sorted/*.arrow"))) >= 2), process.said
        process.send(signal.SIGINT)
        assert process.wait() == 0, process.said
        process.assert_alone()
        assert process.said.startswith("interrupted"), process.said
        assert len(process.said.splitlines()) == 1, process.said
    local = tmp_path / "local"
    run_local(events, local)
    lines, expected = [(folder / FILES["counts"]).read_text().splitlines() for folder in (out, local)]
    assert len(lines) < len(expected)
    assert lines == expected[: len(lines)]
    outputs = outputs_in(out)
    hw.run(EVERYTHING, {"events": str(events)}, engine="spark", state=state, train=200, outputs=outputs)
    for file in FILES.values():
        assert (out / file).read_bytes() == (local / file).read_bytes(), f"'{file}' differs"


# Changed networks that go on


@pytest.mark.slow
def test_another_qos_goes_on(state: Path) -> None:
    network = copy.deepcopy(NETWORK)
    for output, latency in (("sums", 2), ("large", 30)):
        network["outputs"][output]["qos"] = {"latency": [[0, 1], [latency, 1], [2 * latency, 0]]}
    result, local = go(network, make_rows(), state), go(NETWORK, make_rows(), None)
    for name in NETWORK["outputs"]:
        assert listed(result, name) == listed(local, name)


@pytest.mark.slow
def test_another_filter_behind_the_state_goes_on(state: Path) -> None:
    result = go(changed(large={"where": ["total <= 30"]}), make_rows(), state)
    sums = listed(go(NETWORK, make_rows(), None), "sums")
    assert listed(result, "sums") == sums
    mixed = [
        [row for at, row in enumerate(sums) if (row["total"] > 30) == (at < place)] for place in range(1, len(sums))
    ]
    assert listed(result, "large") in mixed


def test_boxes_without_state_change_freely_behind_one_that_keeps_it(spark: SparkSession, tmp_path: Path) -> None:
    """All of it in one shard: the aggregate has no partitions."""
    names = pa.table({"n": list(range(200)), "name": [f"n{at}" for at in range(200)]})
    network = copy.deepcopy(NETWORK)
    network["boxes"]["sums"]["order"] = {"on": "time", "slack": 2}
    network["boxes"]["named"] = {
        "op": "join",
        "in": ["large", {"table": "names"}],
        "on": "left.n = right.n",
        "select": "time, left.n as n, total, name",
    }
    network["outputs"]["large"] = {"from": "named"}
    state, more = tmp_path / "state", {"tables": {"names": names}}
    with pytest.raises(OutputError, match="the tap is closed"):
        go(network, make_rows(), state, outputs={"tap": failing(STOP)}, **more)
    network["boxes"]["large"]["where"] = ["total > 0"]
    network["boxes"]["named"]["select"] = "time, left.n as n, total + 0 as total, concat(name, '!') as name"
    result, local = go(network, make_rows(), state, **more), go(network, make_rows(), None, **more)
    assert listed(result, "sums") == listed(local, "sums")
    new, old = [row for row in listed(result, "large") if row["name"].endswith("!")], listed(local, "large")
    assert new
    assert new == old[-len(new) :]
    network["boxes"]["halves"]["in"] = "even"
    network["boxes"]["even"] = {"op": "filter", "in": "s", "where": ["v % 2 = 0"]}
    network["boxes"]["sums"]["in"] = "even"
    refused(RunError, "box sums", "--restart sums", network=network, rows=make_rows(), state=state, **more)


@pytest.mark.slow
def test_a_new_output_starts_now(state: Path) -> None:
    network = copy.deepcopy(NETWORK)
    network["boxes"]["odd"] = {"op": "filter", "in": "s", "where": ["v % 2 = 1"]}
    network["outputs"]["odd"] = {"from": "odd"}
    before = committed(state)
    result, local = go(network, make_rows(), state), go(network, make_rows(), None)
    for name in NETWORK["outputs"]:
        assert listed(result, name) == listed(local, name)
    assert listed(result, "odd") == [row for row in listed(local, "odd") if row["id"] >= before]


@pytest.mark.slow
def test_an_output_that_is_gone_does_not_matter(state: Path) -> None:
    network = copy.deepcopy(NETWORK)
    del network["outputs"]["large"]
    result, local = go(network, make_rows(), state), go(network, make_rows(), None)
    assert listed(result, "sums") == listed(local, "sums")


@pytest.mark.slow
def test_restart_begins_a_box_anew(state: Path) -> None:
    network = changed(sums={"size": 6})
    before = committed(state)
    old = listed(go(NETWORK, make_rows(), state=None), "sums")
    result = go(network, make_rows(), state, restart=["sums"])
    found = listed(result, "sums")
    possible = []
    # What the old box gave, then what a new one makes of the tuples after its last micro-batch.
    for place in range(len(old) + 1):
        possible.append(old[:place] + listed(go(network, make_rows()[before:], None), "sums"))
    assert found in possible
    assert listed(result, "tap") == listed(go(NETWORK, make_rows(), None), "tap")


@pytest.mark.slow
def test_from_stateless_to_stateful_and_back(spark: SparkSession, tmp_path: Path) -> None:
    def make(stateful: bool) -> dict[str, Any]:
        network = copy.deepcopy(NETWORK)
        for name in ("sums", "large"):
            del network["boxes"][name], network["outputs"][name]
        if stateful:
            network["boxes"]["sums"] = NETWORK["boxes"]["sums"]
            network["outputs"]["sums"] = {"from": "sums"}
        return network

    state = tmp_path / "state"
    for stateful in (False, True):
        with pytest.raises(OutputError, match="the tap is closed"):
            go(make(stateful), make_rows(), state, outputs={"tap": failing(50)}, cut={"units": "one"})
    result = go(make(False), make_rows(), state, cut={"units": "one"})
    assert listed(result, "tap") == listed(go(make(False), make_rows(), None), "tap")


# Refused


def refused(error: type[HeadwayError], *words: str, **how: Any) -> None:
    with pytest.raises(error) as raised:
        go(**how)
    for word in words:
        assert word in str(raised.value)
    assert len(str(raised.value).splitlines()) == 1


def test_another_window_is_refused(state: Path) -> None:
    plan = (state / "plan.json").read_text()
    words = ["box sums", "--restart sums", "another --state", str(state)]
    refused(RunError, *words, network=changed(sums={"size": 6}), rows=make_rows(), state=state)
    assert (state / "plan.json").read_text() == plan
    result = go(NETWORK, make_rows(), state)  # the refused run has done no harm
    assert listed(result, "sums") == listed(go(NETWORK, make_rows(), None), "sums")


def test_other_columns_of_an_output_are_refused(state: Path) -> None:
    network = changed(halves={"select": "id, time, k, v"})
    refused(RunError, "output 'tap'", "part double", "another name", network=network, rows=make_rows(), state=state)


def test_another_cut_is_refused(state: Path) -> None:
    cut = {"units": [["sums", "large"], ["tap"]]}
    refused(RunError, "sums+large+tap", "another --state", network=NETWORK, rows=make_rows(), state=state, cut=cut)


def test_restart_of_an_unknown_box_is_refused(state: Path) -> None:
    refused(RunError, "'sum'", "'sums'", network=NETWORK, rows=make_rows(), state=state, restart=["sum"])


def test_another_source_schema_is_refused(state: Path) -> None:
    network = copy.deepcopy(NETWORK)
    network["sources"]["s"]["schema"] = {**FIELDS, "v": "bigint"}
    refused(RunError, "source 's'", "another --state", network=network, rows=make_rows(), state=state)


def test_a_missing_source_is_refused(state: Path) -> None:
    network = json.loads(json.dumps(NETWORK).replace('"s"', '"t"'))
    with pytest.raises(RunError, match=r"'s'.*another --state"):
        hw.run(network, {"t": make_rows()}, engine="spark", state=state)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 2}', '{"format": 2, "shards": 2, "spread": []}'])
def test_a_damaged_plan_is_refused(state: Path, text: str) -> None:
    (state / "plan.json").write_text(text)
    refused(RunError, "plan.json", "damaged", "another --state", network=NETWORK, rows=make_rows(), state=state)


def test_a_plan_of_another_format_is_refused(state: Path) -> None:
    plan = json.loads((state / "plan.json").read_text())
    (state / "plan.json").write_text(json.dumps({**plan, "format": 99}))
    refused(RunError, "format 99", "another --state", network=NETWORK, rows=make_rows(), state=state)


def test_a_state_without_checksums_is_refused(state: Path) -> None:
    """What version 1 wrote cannot be told from what is damaged."""
    (state / "plan.json").write_text('{"format": 1, "shards": 2, "spread": []}')
    refused(RunError, "written in format 1", "another --state", network=NETWORK, rows=make_rows(), state=state)


def test_a_missing_segment_is_refused(state: Path) -> None:
    segment = max((state / "log" / "segments").rglob("*.arrow"))
    segment.unlink()
    refused(RunError, "source 's'", segment.name, "missing", network=NETWORK, rows=make_rows(), state=state)


@pytest.mark.slow
def test_a_shorter_input_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    # The rest comes slowly, so that the input has not ended when the run stops.
    state, rates = tmp_path / "state", {"s": 60.0}
    result = go(NETWORK, make_rows(2000), state, outputs={"tap": interrupting(STOP)}, rates=rates)
    assert STOP < result.summary["tuples_in"] < 2000
    refused(InputError, "source 's'", "another --state", network=NETWORK, rows=make_rows(50), state=state)


@pytest.mark.slow
def test_a_state_in_use_is_refused(state: Path) -> None:
    said: list[str] = []

    def tap(batch: pa.RecordBatch) -> None:
        if not said:
            with pytest.raises(RunError, match="in use by another run") as raised:
                go(NETWORK, make_rows(), state)
            said.append(str(raised.value))

    go(NETWORK, make_rows(), state, outputs={"tap": tap})
    assert str(state) in said[0]


def test_a_state_that_is_a_file_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "state").write_text("mine")
    refused(RunError, str(tmp_path / "state"), network=NETWORK, rows=make_rows(), state=tmp_path / "state")


# Retention


@pytest.mark.slow
@pytest.mark.parametrize("keep", [0.0, 3600.0])
def test_keep(spark: SparkSession, tmp_path: Path, keep: float) -> None:
    state, rows = tmp_path / "state", make_rows(180)
    result = go(NETWORK, rows, state, keep=keep, rates={"s": 90.0})  # slowly, so that it is appended in parts
    assert listed(result, "sums") == listed(go(NETWORK, rows, None), "sums")
    numbers = sorted(int(path.stem) for path in (state / "log" / "segments").rglob("*.arrow"))
    if keep:
        assert len(numbers) > 2
        assert numbers[0] <= 1  # the first append may have been one of nothing
    else:
        assert len(numbers) <= 2
    assert listed(go(NETWORK, rows, state, keep=keep), "sums") == listed(result, "sums")
