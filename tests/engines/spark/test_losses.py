"""Runs whose queries lose a process in the middle: they go on by themselves, with nothing lost and nothing twice."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import headway as hw
from headway.errors import RunError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NETWORK: dict[str, Any] = {
    "network": "wounded",
    "sources": {"s": {"schema": {"time": "bigint", "k": "int"}}},
    "boxes": {
        "counts": {
            "op": "aggregate",
            "in": "s",
            "select": "count(*) as n",
            "order": {"on": "time", "by": ["k"]},
            "size": 10,
        },
    },
    "outputs": {"counts": {"from": "counts"}, "all": {"from": "s"}},
}
ROWS = [{"time": at, "k": at % 3} for at in range(600)]
RUNNER = "python_streaming_source_runner"
"""The process of a query's source on the driver."""


def kill_runners() -> int:
    """Kill the processes below this one that run a query's source."""
    parents: dict[int, int] = {}
    lines: dict[int, str] = {}
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            parents[int(entry.name)] = int(fields[1])
            lines[int(entry.name)] = (entry / "cmdline").read_bytes().decode()
    mine = {os.getpid()}
    for _ in range(8):  # generations
        mine |= {process for process, parent in parents.items() if parent in mine}
    found = [process for process in mine if RUNNER in lines.get(process, "")]
    for process in found:
        os.kill(process, signal.SIGKILL)
    return len(found)


@pytest.mark.slow
def test_a_run_goes_on_when_a_query_loses_its_source(spark: SparkSession, caplog: pytest.LogCaptureFixture) -> None:
    got: list[dict[str, Any]] = []
    killed: list[int] = []

    def sink(batch: pa.RecordBatch) -> None:
        got.extend(batch.to_pylist())
        if not killed:  # before the micro-batch is committed
            killed.append(kill_runners())

    result = hw.run(NETWORK, {"s": ROWS}, engine="spark", train=200, outputs={"all": sink})
    expected = hw.run(NETWORK, {"s": ROWS}, engine="local")
    assert killed[0] >= 1, "its own, and one that the run before has not ended yet"
    assert result.outputs["counts"].equals(expected.outputs["counts"])
    assert got == expected.outputs["all"].to_pylist()
    (unit,) = result.summary["units"].values()
    assert unit["restarts"] == 1
    assert "'counts+all' has lost a process; it goes on where it last committed" in caplog.text


def test_a_run_goes_on_when_a_worker_dies_in_a_task(spark: SparkSession, tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()

    @hw.function("die_once", args=["bigint"], returns="bigint")
    def die_once(value: int) -> int:
        if value == 300 and not list(marks.iterdir()):
            (marks / "died").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return value

    boxes = {"m": {"op": "map", "in": "s", "select": "die_once(time) as time, k"}, **NETWORK["boxes"]}
    boxes["counts"] = {**boxes["counts"], "in": "m"}
    network = {**NETWORK, "boxes": boxes, "outputs": {"counts": {"from": "counts"}, "all": {"from": "m"}}}
    result = hw.run(network, {"s": ROWS}, engine="spark", train=200)
    assert list(marks.iterdir())  # it has happened
    expected = hw.run(NETWORK, {"s": ROWS}, engine="local")
    assert {name: table.to_pylist() for name, table in result.outputs.items()} == {
        name: table.to_pylist() for name, table in expected.outputs.items()
    }
    (unit,) = result.summary["units"].values()
    assert unit["restarts"] == 1


@pytest.mark.slow
def test_a_worker_that_dies_every_time_ends_the_run(spark: SparkSession) -> None:
    @hw.function("die_always", args=["bigint"], returns="bigint")
    def die_always(value: int) -> int:
        os.kill(os.getpid(), signal.SIGKILL)
        return value

    boxes = {"m": {"op": "map", "in": "s", "select": "die_always(time) as time"}}
    network = {**NETWORK, "boxes": boxes, "outputs": {"all": {"from": "m"}}}
    with pytest.raises(RunError, match="'all' failed on Spark: a Python process of it was lost 4 times"):
        hw.run(network, {"s": ROWS[:1]}, engine="spark")
