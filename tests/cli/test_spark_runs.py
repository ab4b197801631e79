"""``headway run`` on the default engine, Spark: results, reports, and Ctrl-C with a state."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.csv
import pytest

from tests.cli.helpers import ALARMS, ENDLESS, ROWS, call, command, environment, spawn

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SLOWLY = 300
"""Seconds after which a test gives up: Spark takes ten to start, many more on a busy machine."""
COUNT = 4_000
RESULTS = "state/results/counts/*.arrow"
TIMED = ENDLESS.replace("rate: 20000", f"rate: 400, count: {COUNT}")


def test_results_and_reports(spark: SparkSession, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    argv = ("--input", "positions=day.csv", "--output", "alarms=a.jsonl", "--summary", "s.json", "--units", "output")
    outcome = call(capfd, "run", "border.yaml", *argv)
    assert outcome.code == 0
    assert [json.loads(line) for line in (folder / "a.jsonl").read_text().splitlines()] == ALARMS
    assert outcome.err.splitlines()[0] == "headway: starting Spark…"
    assert all(line.startswith("headway: ") for line in outcome.err.splitlines()), "Spark itself is quiet"
    assert "output 'pairs': 2 tuples" in outcome.out
    assert "engine spark on local[" in outcome.out
    assert "division by zero" in outcome.out
    summary: dict[str, Any] = json.loads((folder / "s.json").read_text())
    assert set(summary["units"]) == {"alarms", "pairs"}
    assert summary["tuples_in"] == len(ROWS)
    assert summary["units"]["alarms"]["batches"] >= 1


def _interrupt_when(
    folder: Path, argv: tuple[str, ...], number: signal.Signals = signal.SIGINT, results: str = RESULTS
) -> tuple[int, str, str]:
    """Start a command and send a signal to all its processes when results have been written; return what it did."""
    with subprocess.Popen(
        command(*argv),
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            give_up = time.monotonic() + SLOWLY
            while not list(folder.glob(results)):
                assert process.poll() is None, process.communicate()
                assert time.monotonic() < give_up
                time.sleep(0.1)
            os.killpg(process.pid, number)
            out, err = process.communicate(timeout=SLOWLY)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    return process.returncode, out, err


@pytest.mark.slow
def test_ctrl_c_with_a_state_and_on_again(tmp_path: Path) -> None:
    (tmp_path / "n.yaml").write_text(TIMED)
    argv = ("run", "n.yaml", "--state", "state", "--output", "all=all.csv", "--output", "counts=c.csv")
    code, out, err = _interrupt_when(tmp_path, argv)
    assert code == 130, err
    assert "Traceback" not in err
    assert "stopped: 'state' holds everything up to this point" in out
    outcome = spawn(tmp_path, *argv, "--summary", "s.json", timeout=SLOWLY)
    assert outcome.code == 0, outcome.err
    assert "stopped" not in outcome.out
    assert pyarrow.csv.read_csv(tmp_path / "all.csv")["i"].to_pylist() == list(range(COUNT))
    assert pyarrow.csv.read_csv(tmp_path / "c.csv")["n"].to_pylist() == [1000] * (COUNT // 1000)
    assert json.loads((tmp_path / "s.json").read_text())["tuples_in"] == COUNT


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_without_a_state_signals_to_all_processes_drain(tmp_path: Path, number: signal.Signals) -> None:
    outputs = "outputs:\n  all: {from: b, sink: {directory: {path: seen, format: csv}}}"  # to see when results come
    (tmp_path / "n.yaml").write_text(TIMED.replace("outputs:\n  all: {from: b}", outputs))
    argv = ("run", "n.yaml", "--output", "counts=c.csv", "--summary", "s.json")
    code, out, err = _interrupt_when(tmp_path, argv, number, "seen/*.csv")
    assert code == 128 + number, err
    assert "Traceback" not in err
    assert "interrupted: " in out
    arrived = json.loads((tmp_path / "s.json").read_text())["tuples_in"]
    assert 0 < arrived < COUNT
    assert sum(pyarrow.csv.read_csv(tmp_path / "c.csv")["n"].to_pylist()) == arrived
    assert not list(tmp_path.glob(".*partial"))
