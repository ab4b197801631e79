"""Run all benchmarks, print their results as Markdown, and write them into a page if asked.

Each part runs in a process of its own, so that none finds another's leftovers in memory.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks import machine

BEGIN, END = "<!-- results: written by `python -m benchmarks --write` -->", "<!-- end of results -->"


class Part(NamedTuple):
    """A module, its arguments, and those of its quick form."""

    module: str
    full: tuple[str, ...] = ()
    quick: tuple[str, ...] = ()


GROUPS: dict[str, tuple[Part, ...]] = {
    "speed": (
        Part("throughput", (), ("--tuples", "100000", "--repeats", "1")),
        Part("calls", (), ("--tuples", "500", "--repeats", "1")),
        Part("consumers", (), ("--tuples", "300", "--repeats", "1")),
        Part("planning", (), ("--boxes", "200", "400", "--rounds", "1", "--plans", "20")),
        Part("loads", (), ("--engine", "sim", "--seconds", "1", "--loads", "0.8", "1.2")),
        Part("latency", (), ("--seconds", "2.5")),
        Part("memory", (), ("--tuples", "1000000", "--single", "1000")),
        Part("buffers", (), ("--tuples", "100000", "--repeats", "1")),
    ),
    "overload": (
        Part("overload", ("--engine", "sim"), ("--engine", "sim", "--quick", "--rate", "20")),
        Part("overload", ("--engine", "local"), ("--engine", "sim", "--quick", "--rate", "20")),
        Part("overload", ("--engine", "spark"), ("--engine", "sim", "--quick", "--rate", "20")),
        Part("semantic", (), ("--seconds", "8")),
        Part("thirty", (), ("--seconds", "1", "--factors", "--capacity", "100000")),
    ),
    "living": (Part("history", (), ("--tuples", "200000", "--rate", "20000", "--seconds", "1", "--lookups", "3")),),
    "compare": (Part("predictions", (), ("--case", "border-watch", "--tries", "1")),),
}
"""What is run together, for a page of its own."""


def run(quick: bool, group: str = "speed") -> str:
    """Run a group, printing as it goes, and return what was printed; `quick` is for trying the code out."""
    texts = [machine.describe()]
    print(texts[0] + "\n", flush=True)
    for part, full, short in GROUPS[group]:
        command = [sys.executable, "-m", f"benchmarks.{part}", *(short if quick else full)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        texts.append(done.stdout.strip() or f"{part} failed with exit code {done.returncode}")
        print(texts[-1] + "\n", flush=True)
    return "\n\n".join(texts)


def replace_results(page: str, results: str) -> str:
    """Return a page with new results between its marks; raises ValueError without marks."""
    head, begin, rest = page.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page needs the lines {BEGIN!r} and {END!r}")
    return f"{head}{BEGIN}\n\n{results.strip()}\n\n{END}{tail}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--group", choices=GROUPS, default="speed", help="which of them (default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="few tuples: the numbers mean nothing")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the results into this page, between its marks")
    given = parser.parse_args(arguments)
    page = None if given.write is None else replace_results(given.write.read_text(), "")
    results = run(given.quick, given.group)
    if page is not None:
        given.write.write_text(replace_results(page, results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
