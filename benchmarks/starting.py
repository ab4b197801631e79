"""How long Spark takes to start, with the archive of its classes (`headway prepare`) and without, in turn.

Each run is a process of its own: Python, the session, a plain query and a first micro-batch. Told are the medians of
the seconds since the process began.
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
from headway.engines.spark.classes import SETTING

PROGRAM = """
import headway as hw
from headway.engines.spark.session import open_session

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


def measure(archive: bool) -> dict[str, float]:
    """Return when a run was how far, in seconds."""
    given = {key: value for key, value in os.environ.items() if key != SETTING}
    begun, seen = stopwatch(), {}
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        env=given if archive else {**given, SETTING: ""},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            seen[line.strip()] = (stopwatch() - begun) / 1e9
    return {name: seen[name] for name in MOMENTS}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure both ways in turn and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5, help="runs of each (default 5)")
    args = parser.parse_args(arguments)
    runs: dict[bool, list[dict[str, float]]] = {True: [], False: []}
    for _ in range(args.repeats):
        for archive, some in runs.items():
            some.append(measure(archive))
    print("## Starting Spark\n")
    print("Seconds since the process began, medians; with the archive of `headway prepare` and without, in turn.\n")
    print(f"| | {' | '.join(MOMENTS)} |\n|---|{'---|' * len(MOMENTS)}")
    for archive, some in runs.items():
        medians = [f"{statistics.median(one[name] for one in some):.1f}" for name in MOMENTS]
        print(f"| {'with' if archive else 'without'} the archive | {' | '.join(medians)} |")


if __name__ == "__main__":
    print(machine.describe() + "\n", flush=True)
    main()
