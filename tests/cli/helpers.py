"""A network, its data, and ways to call the command line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

import headway
from headway.cli.main import main

BORDER = """network: border-watch
sources:
  positions:
    schema: {sid: int, time: bigint, pos: int}
boxes:
  across:  {op: filter, in: positions, where: "pos >= 30"}
  counts:
    op: aggregate
    in: across
    select: "count(*) as n"
    order: {on: time}
    size: 1
  crowded: {op: filter, in: counts, where: ["n >= 3", "n = 2"]}
  ratio:   {op: map, in: crowded.1, select: "time, n, 12 / (n - 4) as ratio"}
outputs:
  alarms:
    from: ratio
    qos: {latency: [[0, 1], [60, 1], [100, 0]]}
  pairs: {from: crowded.2}
"""
"""Four boxes, two outputs; a window of four tuples is a dead letter of 'ratio'."""

ROWS = [(sid, time, 30) for time, many in enumerate((3, 2, 4, 5, 2, 3)) for sid in range(many)]
"""alarms: times 0, 3, 5; pairs: times 1, 4; a dead letter: time 2."""

ALARMS = [{"time": 0, "n": 3, "ratio": -12.0}, {"time": 3, "n": 5, "ratio": 12.0}, {"time": 5, "n": 3, "ratio": -12.0}]

ENDLESS = """network: endless
sources:
  s:
    schema: {i: bigint, k: int}
    source: {generate: {rate: 20000, seed: 3, fields: {i: "i", k: {uniform: [0, 9]}}}}
boxes:
  a: {op: filter, in: s, where: "k >= 0"}
  b: {op: map, in: a, select: "i, k"}
  c: {op: aggregate, in: s, select: "count(*) as n", order: {on: i}, size: 1000}
outputs:
  all: {from: b}
  counts: {from: c}
"""


LOCAL = ("--engine", "local")
"""The engine that starts at once; what differs on Spark is in test_spark_runs.py."""


class Outcome(NamedTuple):
    """What a command did."""

    code: int
    out: str
    err: str


def call(capsys: pytest.CaptureFixture[str], *argv: object) -> Outcome:
    """Call the command line in this process."""
    capsys.readouterr()
    code = main([str(word) for word in argv])
    captured = capsys.readouterr()
    return Outcome(code, captured.out, captured.err)


def assert_one_error(outcome: Outcome, *expected: str) -> None:
    """Assert exit code 2 and one clear line, and nothing else on standard error."""
    assert outcome.code == 2, outcome
    assert outcome.err.startswith("headway: error: ")
    assert outcome.err.count("\n") == 1
    assert outcome.err.endswith("\n")
    assert "Traceback" not in outcome.err
    assert outcome.err.strip().isprintable()
    for part in expected:
        assert part in outcome.err


def command(*argv: object) -> list[str]:
    """Return the command for a process of its own."""
    return [sys.executable, "-m", "headway", *map(str, argv)]


def environment() -> dict[str, str]:
    """Return the environment for such a process: it finds both packages from any folder."""
    root = Path(headway.__file__).parents[1]
    return {**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{root / 'experiments'}"}


def spawn(folder: Path, *argv: object, stdin: str = "", timeout: float = 60) -> Outcome:
    """Call the command line in a process of its own."""
    done = subprocess.run(
        command(*argv), cwd=folder, env=environment(), input=stdin, capture_output=True, text=True, timeout=timeout
    )
    return Outcome(done.returncode, done.stdout, done.stderr)


def write_rows(path: Path, rows: list[tuple[int, int, int]]) -> None:
    """Write positions as CSV."""
    lines = ["sid,time,pos", *(",".join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n")
