"""Runs on Spark that are ended early: by a control, from outside, by signals, by the death of the JVM."""

from __future__ import annotations

import json
import stat
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import headway as hw
from headway.engines.runs import Status
from headway.errors import RunError
from tests.engines.spark.crashing import PROGRAMS, Process

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ENDLESS: dict[str, Any] = {
    "network": "endless",
    "sources": {
        "s": {"schema": {"i": "bigint"}, "source": {"generate": {"rate": 300, "fields": {"i": "i"}}}},
    },
    "boxes": {"c": {"op": "aggregate", "in": "s", "select": "count(*) as n", "order": {"on": "i"}, "size": 100}},
    "outputs": {"seen": {"from": "s"}, "counts": {"from": "c"}},
}


def test_a_control_ends_a_run_and_the_status_tells_of_outputs(spark: SparkSession) -> None:
    control, seen, told = hw.Control(), list[int](), list[Status]()

    def see(batch: pa.RecordBatch) -> None:
        seen.extend(batch.column(0).to_pylist())
        if len(seen) > 100:
            control.stop()

    how: dict[str, Any] = {"outputs": {"seen": see}, "control": control, "on_status": told.append}
    result = hw.run(ENDLESS, engine="spark", **how)
    arrived = result.summary["tuples_in"]
    assert result.summary["stopped_by"] == "control"
    assert seen == list(range(arrived))
    assert sum(result.outputs["counts"]["n"].to_pylist()) == arrived
    starting = [status.starting for status in told]
    assert {"the session", "query 1 of 1"} <= set(starting)
    assert starting[-1] == ""
    last = told[-1].outputs
    assert last["seen"].tuples > 0
    assert 0 < (last["seen"].latency or 0) < 100
    assert (last["seen"].utility, last["seen"].shed) == (1.0, 0)


def test_a_control_that_is_stopped_already(spark: SparkSession) -> None:
    control = hw.Control()
    control.stop()
    result = hw.run(ENDLESS, engine="spark", control=control)
    assert (result.summary["stopped_by"], result.summary["tuples_in"]) == ("control", 0)
    assert result.outputs["seen"].num_rows == 0


def test_a_query_that_is_stopped_from_outside(spark: SparkSession) -> None:
    def see(batch: pa.RecordBatch) -> None:
        (query,) = [one for one in spark.streams.active if one.name.startswith("seen+counts")]
        threading.Thread(target=query.stop, daemon=True).start()

    with pytest.raises(RunError, match=r"'seen\+counts' was stopped on Spark from outside of the run"):
        hw.run(ENDLESS, engine="spark", outputs={"seen": see})


@pytest.mark.slow
def test_a_process_that_starts_slowly_is_started_again(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    slowly = tmp_path / "slowly"  # the first start of a source's process takes longer than Spark waits
    runner = "python_streaming_source_runner"
    slowly.write_text(
        f"""#!/bin/sh
case "$*" in *{runner}*) mkdir {tmp_path}/first 2>/dev/null && sleep 11;; esac
exec {sys.executable} "$@"
"""
    )
    slowly.chmod(slowly.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(slowly))
    rows = [{"i": at} for at in range(500)]
    result = hw.run(ENDLESS, {"s": rows}, engine="spark", cut={"units": "output"})
    assert (tmp_path / "first").exists()
    assert result.outputs["seen"].num_rows == 500
    assert "did not start within Spark's ten seconds" in caplog.text
    assert sum(unit["restarts"] for unit in result.summary["units"].values()) == 1


@pytest.mark.parametrize("memory", [300_000, pytest.param(1, marks=pytest.mark.slow)])
def test_any_bound_of_memory_makes_progress(spark: SparkSession, memory: int, tmp_path: Path) -> None:
    network = {
        **ENDLESS,
        "sources": {**ENDLESS["sources"], "few": {"schema": {"i": "bigint"}}},
        "outputs": {**ENDLESS["outputs"], "few": {"from": "few"}},
    }
    table = pa.table({"i": pa.array(range(80_000), pa.int64())})  # more than is read at a time
    inputs = {"s": table, "few": [{"i": 1}]}
    # What the log keeps on purpose is not queued, nor what only waits for a query that reads something else.
    result = hw.run(network, inputs, engine="spark", memory=memory, keep=3600.0)
    assert result.outputs["seen"].num_rows == 80_000
    assert result.outputs["few"].num_rows == 1


def ended(folder: Path, *ends: str) -> dict[str, Any]:
    """Return what came of runs in a process of their own."""
    (folder / "out").mkdir()
    with Process([sys.executable, PROGRAMS / "ending.py", folder / "out", *ends], log=folder / "said") as process:
        assert process.wait() == 0, process.said
        process.assert_alone()
    said = process.said
    assert "Traceback" not in said
    return {one["name"]: one for one in (json.loads(line) for line in said.splitlines() if line.startswith("{"))}


def test_a_jvm_that_is_killed(tmp_path: Path) -> None:
    told = ended(tmp_path, "killed")
    assert "Spark's JVM has ended amid the run" in told["killed"]["error"]
    assert told["killed"]["files"] == []


@pytest.mark.slow
def test_one_run_after_the_other(tmp_path: Path) -> None:
    told = ended(tmp_path, "killed", "terminated", "continued")
    assert "Spark's JVM has ended amid the run" in told["killed"]["error"]
    assert told["killed"]["files"] == []
    assert told["terminated"]["stopped_by"] == "SIGTERM"
    assert told["terminated"]["state"]["can_continue"]
    assert told["terminated"]["files"] == told["continued"]["files"] == ["all.csv", "counts.parquet"]
    assert (told["continued"]["interrupted"], told["continued"]["tuples_in"]) == (False, 1500)


@pytest.mark.slow
def test_a_session_that_is_stopped_from_outside_and_opened_again(tmp_path: Path) -> None:
    told = ended(tmp_path, "stopped", "continued")
    assert told["continued"]["tuples_in"] == 1500
    assert "was stopped on Spark from outside of the run" in told["stopped"]["error"]
    assert told["stopped"]["files"] == []
