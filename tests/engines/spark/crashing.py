"""A network with every stateful operator, its input, and processes that run it and can be killed."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

import headway as hw

ROOT = Path(__file__).parents[3]
PROGRAMS = Path(__file__).with_name("programs")
PATIENCE = 300.0
"""Seconds after which a process that neither ends nor does what a test waits for is taken for stuck."""

_BRIEF = {"JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1"}
"""Short-lived JVMs compile quickly rather than well."""

_TIME = {"on": "time"}
_BY = {**_TIME, "by": ["k"]}
_QUICK = {"latency": [[0, 1], [1, 1], [5, 0]]}
_SLOW = {"latency": [[0, 1], [20, 1], [60, 0]]}

EVERYTHING: dict[str, Any] = {
    "network": "everything",
    "sources": {"events": {"schema": {"id": "int", "time": "bigint", "k": "int", "v": "int"}}},
    "boxes": {
        "sides": {"op": "filter", "in": "events", "where": ["v % 2 = 0"]},
        "shares": {"op": "map", "in": "events", "select": "id, time, k, 1000 / (v - 7) as share"},
        "sorted": {"op": "bsort", "in": "events", "order": {**_BY, "slack": 5}},
        "counts": {
            "op": "aggregate",
            "in": "events",
            "select": "count(*) as n, sum(v) as total, first(id) as first",
            "order": {**_BY, "slack": 3},
            "size": 20,
            "advance": 10,
        },
        "overall": {
            "op": "aggregate",
            "in": "sorted",
            "select": "count(*) as n, max(v) as most, count(distinct k) as kinds",
            "order": {**_TIME, "slack": 8},
            "size": 15,
        },
        "fives": {
            "op": "aggregate",
            "in": "events",
            "select": "first(id) as first, last(id) as last, sum(v) as total",
            "order": {"on": "#"},
            "size": 5,
            "advance": 3,
        },
        "sittings": {
            "op": "aggregate",
            "in": "events",
            "select": "count(*) as n, last(time) as until",
            "order": {**_BY, "slack": 3},
            "advance": {"when": "time - last.time > 5"},
        },
        "pairs": {
            "op": "join",
            "in": ["sides", "sides.else"],
            "on": "left.k = right.k",
            "size": 3,
            "order": [{**_TIME, "slack": 4}, {**_TIME, "slack": 4}],
            "select": "left.time as time, left.id as one, right.id as other",
        },
        "estimates": {
            "op": "resample",
            "in": ["sides", "sides.else"],
            "select": "avg(v) as mean",
            "size": 10,
            "order": [{**_TIME, "slack": 4}, {**_BY, "slack": 4}],
        },
        "bigger": {"op": "filter", "in": "sides", "where": ["v > 10"]},
        "again": {"op": "union", "in": ["bigger", "sides.else"]},
        "runs": {
            "op": "aggregate",
            "in": "again",
            "select": "count(*) as n, first(id) as first",
            "order": {"on": "#", "by": ["k"]},
            "size": 4,
        },
    },
    "outputs": {
        "sorted": {"from": "sorted", "qos": _QUICK},
        "counts": {"from": "counts", "qos": _QUICK},
        "overall": {"from": "overall", "qos": _SLOW},
        "fives": {"from": "fives", "qos": _QUICK},
        "sittings": {"from": "sittings", "qos": _SLOW},
        "pairs": {"from": "pairs", "qos": _QUICK},
        "estimates": {"from": "estimates", "qos": _SLOW},
        "again": {"from": "again", "qos": _SLOW},
        "runs": {"from": "runs", "qos": _SLOW},
        "shares": {"from": "shares", "qos": _QUICK},
    },
}
"""Every stateful operator. One source, so that the order of arrival does not depend on when a process starts."""

FILES = {"pairs": "pairs.csv", "counts": "counts.jsonl", "runs": "runs.parquet", "shares": "shares.csv"}
"""The outputs that go to files; the others come back as tables."""


def write_events(path: Path, seed: int, count: int) -> None:
    """Write a CSV file of events, a little out of order; some rows are malformed, some values fail in a box."""
    chance = random.Random(seed)
    lines = ["id,time,k,v"]
    for at in range(count):
        if chance.random() < 0.02:
            lines.append(f"{at},soon,1,1")
        lines.append(f"{at},{at // 3 + chance.randint(-3, 3)},{chance.randrange(6)},{chance.randrange(30)}")
    path.write_text("\n".join(lines) + "\n")


def outputs_in(folder: Path) -> dict[str, str]:
    """Return where the outputs go that are files."""
    return {name: str(folder / file) for name, file in FILES.items()}


def run_local(events: Path, folder: Path) -> Mapping[str, pa.Table]:
    """Run everything undisturbed on the local engine, with files in a folder; return the tables."""
    folder.mkdir()
    result = hw.run(
        EVERYTHING,
        {"events": str(events)},
        engine="local",
        outputs=outputs_in(folder),
        dead_letters=str(folder / "letters.csv"),
    )
    return result.outputs


class Process:
    """A program in a session of its own, so that it can be killed with its JVM and its Python workers."""

    def __init__(self, command: Sequence[object], *, log: Path, environment: Mapping[str, str] | None = None) -> None:
        """Start it; what it prints goes to `log`."""
        self.log = log
        variables = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1", **_BRIEF, **(environment or {})}
        with log.open("ab") as file:
            self._child = subprocess.Popen(
                [str(word) for word in command],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                env=variables,
                start_new_session=True,
            )
        self.group = self._child.pid

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *raised: object) -> None:
        self.kill()

    @property
    def ended(self) -> bool:
        """Whether the program itself has ended."""
        return self._child.poll() is not None

    def wait(self) -> int:
        """Wait until the program has ended; returns its code."""
        return self._child.wait(PATIENCE)

    def wait_for(self, condition: Callable[[], bool]) -> bool:
        """Wait until something is so, looking often; returns False if the program ends before."""
        deadline = time.monotonic() + PATIENCE
        while not condition():
            if self.ended:
                return False
            assert time.monotonic() < deadline, f"nothing happens:\n{self.said}"
            time.sleep(0.002)
        return True

    def send(self, number: signal.Signals) -> None:
        """Send a signal to all processes, as a terminal does."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.group, number)

    def kill(self) -> None:
        """Kill the program, its JVM and all workers, and see that nobody is left."""
        everybody = members(self.group)
        self.send(signal.SIGKILL)
        for one in everybody:  # Spark's Python workers are in groups of their own
            with contextlib.suppress(ProcessLookupError):
                os.kill(one, signal.SIGKILL)
        self._child.wait(PATIENCE)
        assert_gone(everybody | members(self.group))

    def assert_alone(self) -> None:
        """Raise if the program has ended and left others behind."""
        assert self.ended
        assert_gone(members(self.group), kill=False)

    @property
    def said(self) -> str:
        """What the program has printed."""
        return self.log.read_text(errors="replace")


def start_everything(
    events: Path, state: Path, folder: Path, *, rate: float = 0, train: int = 100, units: str = "one", log: Path
) -> Process:
    """Run everything on Spark in a process of its own; files and tables are left in a folder."""
    return Process([sys.executable, PROGRAMS / "everything.py", events, state, folder, rate, train, units], log=log)


def members(session: int) -> set[int]:
    """Return the processes of a session, whatever group they have moved to."""
    found = set()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        with contextlib.suppress(OSError):
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            if int(fields[3]) == session and fields[0] != "Z":
                found.add(int(entry.name))
    return found


def assert_gone(processes: set[int], kill: bool = True) -> None:
    """Raise if any of these processes still runs after a moment; they may be killed then, so that none stays."""
    deadline = time.monotonic() + 10
    left = processes
    while left and time.monotonic() < deadline:
        left = {one for one in left if _runs(one)}
        time.sleep(0.01)
    for one in left if kill else ():
        with contextlib.suppress(ProcessLookupError):
            os.kill(one, signal.SIGKILL)
    assert not left, f"processes survived: {sorted(left)}"


def _runs(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
