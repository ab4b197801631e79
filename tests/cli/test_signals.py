"""Ctrl-C and closed pipes."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow.csv
import pyarrow.parquet
import pytest

from tests.cli.helpers import ENDLESS, LOCAL, command, environment


@contextlib.contextmanager
def running(folder: Path, *argv: object) -> Iterator[subprocess.Popen[str]]:
    """Start a command, and end it whatever happens."""
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command(*argv), cwd=folder, env=environment(), stdin=pipe, stdout=pipe, stderr=pipe, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c_completes_what_has_arrived(tmp_path: Path, workers: int) -> None:
    (tmp_path / "n.yaml").write_text(ENDLESS.replace("rate: 20000, ", ""))  # busy, so that steps are under way
    argv = ("run", "n.yaml", *LOCAL, "--workers", workers, "--train", 1000, "--output", "all=all.parquet")
    with running(tmp_path, *argv, "--output", "counts=c.csv", "--summary", "s.json") as process:
        for _ in range(600):
            if list(tmp_path.glob(".c.csv.*.partial")):
                break
            time.sleep(0.05)
        time.sleep(0.5)
        assert not (tmp_path / "c.csv").exists()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
    assert process.returncode == 130, err
    assert err == ""
    assert "interrupted: " in out
    summary = json.loads((tmp_path / "s.json").read_text())
    arrived = summary["tuples_in"]
    assert summary["interrupted"]
    assert arrived > 0
    assert pyarrow.parquet.read_table(tmp_path / "all.parquet")["i"].to_pylist() == list(range(arrived))
    assert sum(pyarrow.csv.read_csv(tmp_path / "c.csv")["n"].to_pylist()) == arrived
    assert not list(tmp_path.glob(".*partial"))


def test_a_reader_that_leaves(tmp_path: Path) -> None:
    (tmp_path / "n.yaml").write_text(ENDLESS)
    with running(tmp_path, "run", "n.yaml", *LOCAL, "--output", "all=-") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert json.loads(process.stdout.readline())["i"] == 0
        process.stdout.close()
        assert process.wait(30) == 141
        assert process.stderr.read() == ""


def test_ctrl_c_while_standard_input_is_silent(folder: Path) -> None:
    with running(folder, "run", "border.yaml", *LOCAL, "--input", "positions=-", "--output", "alarms=a.csv") as process:
        for _ in range(600):
            if list(folder.glob(".a.csv.*.partial")):
                break
            time.sleep(0.05)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
        assert process.stderr is not None
        assert process.stderr.read() == ""
    assert (folder / "a.csv").read_text() == "time,n,ratio\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_behind_standard_output(folder: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            command("check", "border.yaml"),
            cwd=folder,
            env=environment(),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert done.returncode == 2
    assert done.stderr.startswith("headway: error: standard output cannot be written")
    assert done.stderr.count("\n") == 1
