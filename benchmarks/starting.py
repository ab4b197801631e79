"""How long Spark takes to start, with what makes it start sooner and without, in turn.

That is the archive of its classes (`headway prepare`), and Python processes that leave PySpark's archive alone, which
they would have to compile. Each run is a process of its own: Python, the session, a plain query and a first
micro-batch. Told are the medians of the seconds since the process began.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence

from benchmarks import machine
from headway.clock import stopwatch
from headway.engines.spark.driver.session import ARCHIVE_SETTING

PROGRAM = """
import headway as hw
from headway.engines.spark.driver.session import open_session

def say(what):
    print(what, flush=True)

open_session("local[2]")
say("session")
network = hw.Network("starting")
network.source("s", "i bigint").filter("i >= 0").output("o", latency=[[0, 1], [1, 1], [2, 0]])
hw.run(network, {"s": [(1,)]}, engine="spark", master="local[2]", outputs={"o": lambda batch: say("result")})
say("end")
"""
"""Says how far it is, a word in a line."""
MOMENTS = ("session", "result", "end")
WAYS: dict[str, dict[str, str]] = {
    "as it is": {},
    "without the archive of classes": {ARCHIVE_SETTING: ""},
    "with PySpark from its archive": {"PYSPARK_PYTHON": sys.executable},
    "both": {ARCHIVE_SETTING: "", "PYSPARK_PYTHON": sys.executable},
}
"""By name the variables that a run is given."""


def measure(way: str) -> dict[str, float]:
    """Return when a run was how far, in seconds."""
    given = {key: value for key, value in os.environ.items() if key not in WAYS["both"]}
    begun, seen = stopwatch(), {}
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        env={**given, **WAYS[way]},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            seen[line.strip()] = (stopwatch() - begun) / 1e9
    return {name: seen[name] for name in MOMENTS}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure all ways in turn and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5, help="runs of each (default 5)")
    args = parser.parse_args(arguments)
    runs: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
    for _ in range(args.repeats):
        for way, some in runs.items():
            some.append(measure(way))
    print("## Starting Spark\n")
    print("Seconds since the process began, medians.\n")
    print(f"| | {' | '.join(MOMENTS)} |\n|---|{'---|' * len(MOMENTS)}")
    for way, some in runs.items():
        medians = [f"{statistics.median(one[name] for one in some):.1f}" for name in MOMENTS]
        print(f"| {way} | {' | '.join(medians)} |")


if __name__ == "__main__":
    print(machine.describe() + "\n", flush=True)
    main()
