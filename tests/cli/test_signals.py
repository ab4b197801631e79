"""Ctrl-C, SIGTERM, SIGHUP and closed pipes."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import random
import signal
import subprocess
import termios
import time
from collections import Counter
from collections.abc import Iterator, Sequence
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


def await_partial(folder: Path, name: str, process: subprocess.Popen[str]) -> None:
    """Wait until a run has opened an output."""
    for _ in range(1200):
        if list(folder.glob(f".{name}.*.partial")):
            return
        assert process.poll() is None
        time.sleep(0.025)


@pytest.mark.parametrize(
    ("number", "workers"), [(signal.SIGINT, 1), (signal.SIGINT, 2), (signal.SIGTERM, 1), (signal.SIGHUP, 2)]
)
def test_a_signal_completes_what_has_arrived(tmp_path: Path, number: signal.Signals, workers: int) -> None:
    (tmp_path / "n.yaml").write_text(ENDLESS.replace("rate: 20000, ", ""))  # busy, so that steps are under way
    argv = ("run", "n.yaml", *LOCAL, "--workers", workers, "--train", 1000, "--output", "all=all.parquet")
    with running(tmp_path, *argv, "--output", "counts=c.csv", "--summary", "s.json") as process:
        await_partial(tmp_path, "c.csv", process)
        time.sleep(0.5)
        assert not (tmp_path / "c.csv").exists()
        process.send_signal(number)
        out, err = process.communicate(timeout=20)
    assert process.returncode == 128 + number, err
    assert err == ""
    assert "interrupted: " in out
    summary = json.loads((tmp_path / "s.json").read_text())
    arrived = summary["tuples_in"]
    assert summary["interrupted"]
    assert summary["stopped_by"] == number.name
    assert arrived > 0
    assert pyarrow.parquet.read_table(tmp_path / "all.parquet")["i"].to_pylist() == list(range(arrived))
    assert sum(pyarrow.csv.read_csv(tmp_path / "c.csv")["n"].to_pylist()) == arrived
    assert not list(tmp_path.glob(".*partial"))


MANY = 12
"""Outputs of the run that is disturbed while it puts them in their places."""


def many_outputs(folder: Path) -> list[object]:
    """Write a network with many outputs."""
    names = [f"o{at}" for at in range(MANY)]
    text = ENDLESS.partition("outputs:")[0] + "outputs:\n" + "".join(f"  {name}: {{from: b}}\n" for name in names)
    (folder / "n.yaml").write_text(text)
    outputs = [word for name in names for word in ("--output", f"{name}={name}.csv")]
    return ["run", "n.yaml", *LOCAL, *outputs]


def disturb(folder: Path, numbers: Sequence[signal.Signals], pauses: Sequence[float]) -> tuple[int, int, str]:
    """Send signals with pauses before them; return the exit code, how many outputs there are, and the last words."""
    argv = many_outputs(folder)
    with running(folder, *argv) as process:
        await_partial(folder, "o0.csv", process)
        for number, pause in zip(numbers, pauses, strict=True):
            time.sleep(pause)
            process.send_signal(number)
        _, err = process.communicate(timeout=60)
    assert not list(folder.glob(".*partial")), "nothing is left lying about"
    found = sorted(folder.glob("o*.csv"))
    assert len({path.read_bytes() for path in found}) <= 1, "all are of the same tuples"
    for path in found:
        path.unlink()
    return process.returncode, len(found), err


def test_two_signals_publish_all_or_none(tmp_path: Path) -> None:
    chance = random.Random(15)
    for at in range(3):
        numbers = (signal.SIGINT, signal.SIGTERM)[at % 2], (signal.SIGTERM, signal.SIGINT, signal.SIGINT)[at % 3]
        pauses = chance.uniform(0.0, 0.3), chance.choice((0.0, chance.uniform(0.0, 0.05), chance.uniform(0.0, 0.4)))
        code, found, err = disturb(tmp_path, numbers, pauses)
        assert found in (0, MANY), f"{found} of {MANY} outputs after {numbers} with {pauses}: {err}"
        assert code in (*(128 + number for number in numbers), *(-number for number in numbers)), err
        assert "Traceback" not in err


@pytest.mark.slow
def test_two_signals_publish_all_or_none_often(tmp_path: Path) -> None:
    chance, seen = random.Random(16), Counter[int]()
    for _ in range(100):
        numbers = chance.choices((signal.SIGINT, signal.SIGTERM, signal.SIGHUP), k=3)
        pauses = [chance.uniform(0.0, 0.3), *(chance.uniform(0.0, chance.choice((0.001, 0.05, 0.5))) for _ in "ab")]
        code, found, err = disturb(tmp_path, numbers, pauses)
        assert found in (0, MANY), f"{found} of {MANY} outputs after {numbers} with {pauses}: {err}"
        assert "Traceback" not in err
        assert code in (0, *(128 + number for number in numbers), *(-number for number in numbers))
        seen[found] += 1
    assert set(seen) == {0, MANY}, seen


def test_what_nohup_ignores_stays_ignored(tmp_path: Path) -> None:
    (tmp_path / "n.yaml").write_text(ENDLESS)
    argv = ["nohup", *command("run", "n.yaml", *LOCAL, "--output", "counts=c.csv")]
    with subprocess.Popen(argv, cwd=tmp_path, env=environment(), stdin=subprocess.DEVNULL) as process:
        try:
            await_partial(tmp_path, "c.csv", process)  # type: ignore[arg-type]
            process.send_signal(signal.SIGHUP)
            time.sleep(0.7)
            assert process.poll() is None
            assert not (tmp_path / "c.csv").exists()
            process.send_signal(signal.SIGTERM)
            assert process.wait(20) == 143
        finally:
            process.kill()
    assert (tmp_path / "c.csv").exists()


def test_a_terminal_that_is_closed(tmp_path: Path) -> None:
    (tmp_path / "n.yaml").write_text(ENDLESS)
    ours, theirs = pty.openpty()
    argv = command("run", "n.yaml", *LOCAL, "--output", "counts=c.csv", "--summary", "s.json")

    def lead() -> None:
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    with subprocess.Popen(
        argv, cwd=tmp_path, env=environment(), stdin=theirs, stdout=theirs, stderr=theirs, preexec_fn=lead
    ) as process:
        try:
            os.close(theirs)
            await_partial(tmp_path, "c.csv", process)  # type: ignore[arg-type]
            time.sleep(0.3)
            os.close(ours)  # as when a window is closed, or a connection breaks
            assert process.wait(20) == 129
        finally:
            process.kill()
    summary = json.loads((tmp_path / "s.json").read_text())
    assert summary["stopped_by"] == "SIGHUP"
    assert sum(pyarrow.csv.read_csv(tmp_path / "c.csv")["n"].to_pylist()) == summary["tuples_in"]


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
