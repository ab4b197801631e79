"""Ctrl-C and closed pipes."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path

import pyarrow.csv
import pyarrow.parquet
import pytest

from headway.cli.interrupts import Interrupts
from tests.cli.helpers import ENDLESS, command, environment


@pytest.mark.parametrize(
    "workers",
    [
        1,
        pytest.param(
            2,
            marks=pytest.mark.xfail(
                strict=False, reason="the local engine forgets the steps under way when it is interrupted"
            ),
        ),
    ],
)
def test_ctrl_c_completes_what_has_arrived(tmp_path: Path, workers: int) -> None:
    (tmp_path / "n.yaml").write_text(ENDLESS)
    argv = ("run", "n.yaml", "--workers", workers, "--output", "all=all.parquet", "--output", "counts=c.csv")
    process = subprocess.Popen(
        command(*argv, "--summary", "s.json"),
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    for _ in range(600):
        if list(tmp_path.glob(".c.csv.*.partial")):
            break
        time.sleep(0.05)
    time.sleep(0.6)
    assert not (tmp_path / "c.csv").exists()
    process.send_signal(signal.SIGINT)
    try:
        out, err = process.communicate(timeout=30)
    finally:
        process.kill()
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
    process = subprocess.Popen(
        command("run", "n.yaml", "--output", "all=-"),
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stderr is not None
        assert json.loads(process.stdout.readline())["i"] == 0
        process.stdout.close()
        assert process.wait(30) == 141
        assert process.stderr.read() == ""
        process.stderr.close()
    finally:
        process.kill()


def test_the_first_interrupt_waits_for_a_check() -> None:
    with Interrupts() as interrupts:
        interrupts.check()
        signal.raise_signal(signal.SIGINT)
        assert interrupts.noted
        with pytest.raises(KeyboardInterrupt):
            interrupts.check()
        interrupts.check()  # once only
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
