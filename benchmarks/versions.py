"""Headway's speed before and after a change: this checkout against another revision, in one session on one machine.

The other revision is checked out beside this one, and the parts run in turn, once with each, for some rounds; so noise
hits both alike. Of all rounds the best one counts. A ratio above 1 is better, whatever is measured.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import machine

HERE = Path(__file__).parent.parent
ENOUGH = 0.95
"""A lower ratio is called slower: the same code differs by so much from run to run."""


class Measure(NamedTuple):
    """What is compared: better is more, unless `less`."""

    value: float
    less: bool = False

    def ratio(self, before: Measure) -> float:
        """Return how many times as good it is as before."""
        return before.value / self.value if self.less else self.value / before.value


Found = Iterator[tuple[str, Measure]]


def _throughput(told: Any) -> Found:
    for workload, speeds in told["results"].items():
        yield f"{workload}, million tuples/s", Measure(speeds["headway"]["rate"])
        yield f"{workload} box by box, million tuples/s", Measure(speeds["headway, box by box"]["rate"])


def _calls(told: Any) -> Found:
    for one in told:
        yield f"{one['network']}, {one['policy']}, box calls/s", Measure(one["box_calls"])


def _planning(told: Any) -> Found:
    for one in told:
        yield f"{one['case']}, {one['boxes']:,} boxes, µs per plan", Measure(one["plan"], less=True)


def _latency(told: Any) -> Found:
    for one in told:
        yield f"{one['policy']}, ms at the median", Measure(one["p50"], less=True)


def _consumers(told: Any) -> Found:
    for one in told:
        yield f"{one['name']}, box calls/s", Measure(one["boxes_per_second"])


PARTS: Mapping[str, tuple[tuple[str, ...], Callable[[Any], Found]]] = {
    "throughput": (("--repeats", "2"), _throughput),
    "calls": (("--repeats", "3"), _calls),
    "planning": (("--boxes", "1000", "10000", "--rounds", "3"), _planning),
    "latency": ((), _latency),
    "consumers": (("--tuples", "10000"), _consumers),
}
"""By part: its arguments, and what is read from its JSON."""


def measure(part: str, checkout: Path, arguments: Sequence[str] | None = None) -> dict[str, Measure]:
    """Run a part with the code of a checkout, and return what it measured by what it says.

    `arguments` are those of the part, by default the ones in `PARTS`. Raises RuntimeError if it writes no results.
    """
    usual, read = PARTS[part]
    paths = os.pathsep.join(str(path) for path in (checkout, checkout / "experiments"))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "results.json")
        given = usual if arguments is None else arguments
        command = [sys.executable, "-m", f"benchmarks.{part}", *given, "--json", str(file)]
        environment = {**os.environ, "PYTHONPATH": paths}
        # Exit code 1 says that a promise is broken, which is no reason not to compare.
        done = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True, check=False)
        if not file.exists():
            raise RuntimeError(f"benchmarks.{part} of {checkout} wrote no results: {done.stderr.strip()[-500:]}")
        return dict(read(json.loads(file.read_text())))


def better(one: Measure, other: Measure | None) -> Measure:
    """Return the better of two."""
    return one if other is None or one.ratio(other) > 1 else other


def table(before: Mapping[str, Measure], after: Mapping[str, Measure]) -> str:
    """Return what both measured as a Markdown table, and how many are slower now."""
    lines = ["| measured | before | after | ratio |", "|---|---:|---:|---:|"]
    slower = 0
    for name in [name for name in before if name in after]:
        ratio = after[name].ratio(before[name])
        slower += ratio < ENOUGH
        lines.append(f"| {name} | {before[name].value:,.4g} | {after[name].value:,.4g} | {ratio:.2f} |")
    for name in sorted(before.keys() ^ after.keys()):
        lines.append(f"| {name} | only one of both measures it | | |")
    return "\n".join([*lines, "", f"{slower} of {len(lines) - 2} below {ENOUGH}"])


def compare(revision: str, parts: Sequence[str], rounds: int) -> dict[str, str]:
    """Measure the parts with both, printing as it goes; return the tables."""
    tables: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        other = Path(folder, "before")
        git = ["git", "-C", str(HERE), "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", str(other), revision], check=True)
        try:
            for part in parts:
                best: tuple[dict[str, Measure], dict[str, Measure]] = ({}, {})
                for at in range(rounds):
                    for known, checkout in zip(best, (other, HERE), strict=True):
                        for name, one in measure(part, checkout).items():
                            known[name] = better(one, known.get(name))
                    print(f"{part}: round {at + 1} of {rounds}", file=sys.stderr, flush=True)
                tables[part] = table(*best)
                print(f"## {part}\n\n{tables[part]}\n", flush=True)
        finally:
            subprocess.run([*git, "remove", "--force", str(other)], check=True)
    return tables


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.versions", description=__doc__)
    parser.add_argument("revision", help="what to compare this checkout with: a commit, a tag, a branch")
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS), help="(default: all)")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each part with each (default: %(default)s)")
    given = parser.parse_args(arguments)
    print(machine.describe() + "\n", flush=True)
    compare(given.revision, given.parts, given.rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
