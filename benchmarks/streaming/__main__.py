"""Run the comparison with plain Structured Streaming, print it as Markdown, and write it into a page if asked.

Every measurement is a process of its own with its own session; what it finds is printed as a line of JSON.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.__main__ import replace_results
from benchmarks.streaming.processes import carry_out
from benchmarks.streaming.report import GOOD, render
from benchmarks.streaming.settings import HEADWAY, MERGED, PLAIN, SYSTEMS, Setting

RATES = (2_000, 10_000, 50_000, 100_000, 200_000, 400_000, 600_000, 800_000, 1_200_000, 1_600_000)
BACKLOG = 20_000_000
MERGED_APPS = 20
"""More applications than these nobody merges by hand."""
ROUNDS = 2
QUICK = {
    "apps": [4],
    "rates": [500],
    "systems": ["headway", "plain", "merged, Python"],
    "warm": 1.0,
    "seconds": 3.0,
    "tail": 3.0,
    "backlog": 200_000,
    "rounds": 1,
}
"""Enough to see that everything runs."""


def rising(setting: Setting, rates: Sequence[float]) -> Iterator[dict[str, Any]]:
    """Measure a system at rising rates, until it was not good enough twice: higher rates would say nothing new."""
    failures = 0
    for rate in sorted(rates):
        found = carry_out(replace(setting, rate=float(rate)))
        yield found
        failures += found.get("utility", 0.0) <= GOOD
        if failures == 2:
            return


def measurements(given: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Carry everything out that was asked for."""
    base = Setting("headway", warm=given.warm, seconds=given.seconds, tail=given.tail)
    for apps in given.apps:
        for system in given.systems:
            if system not in MERGED or apps <= MERGED_APPS:
                yield from rising(replace(base, system=system, apps=apps), given.rates)
    for _ in range(given.rounds if given.backlog else 0):
        for windowed in (False, True):
            for system in ("headway", "plain"):
                if system in given.systems:
                    yield carry_out(replace(base, system=system, total=given.backlog, rate=1e6, windowed=windowed))


def main(arguments: Sequence[str] | None = None) -> int:
    given = _parse(arguments)
    page = None if given.write is None else replace_results(given.write.read_text(), "")
    found: list[dict[str, Any]] = []
    if given.read is not None:
        found = [json.loads(line) for line in given.read.read_text().splitlines() if line.startswith("{")]
        about = next((one.pop("machine") for one in found if "machine" in one), "")
        found = [one for one in found if "setting" in one]
    else:
        about = f"{machine.describe()}\n- pyspark {version('pyspark')}; every measurement in a process of its own"
        print(json.dumps({"machine": about}), flush=True)
        for one in measurements(given):
            print(json.dumps(one), flush=True)
            found.append(one)
    systems = "\n".join(f"- {name}: {text}" for name, text in SYSTEMS.items())
    results = f"{about}\n\n{systems}\n\n{render(found)}"
    print(f"\n{results}", flush=True)
    if page is not None:
        given.write.write_text(replace_results(page, results))
    return 0 if all("error" not in one for one in found) else 1


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.streaming", description=__doc__)
    add = parser.add_argument
    add("--quick", action="store_true", help="short and slow: the numbers mean nothing")
    add("--apps", type=_numbers, default=[20, 100], help="how many applications, such as 20,100; empty for none")
    add("--rates", type=_numbers, default=list(RATES), help="tuples per second, such as 2000,50000")
    add("--systems", type=_systems, default=list(SYSTEMS), help="some of: " + "; ".join(SYSTEMS))
    add("--warm", type=float, default=10.0, help="seconds that do not count (default: %(default)s)")
    add("--seconds", type=float, default=30.0, help="seconds of arrivals that count (default: %(default)s)")
    add("--tail", type=float, default=20.0, help="seconds in which they are still watched (default: %(default)s)")
    add("--backlog", type=int, default=BACKLOG, help="tuples to drain with one application; 0 leaves it out")
    add("--rounds", type=int, default=ROUNDS, help="how often a backlog is drained (default: %(default)s)")
    add("--read", type=Path, metavar="LINES", help="measure nothing; read the JSON lines of an earlier run")
    add("--write", type=Path, metavar="PAGE", help="put the results into this page, between its marks")
    given = parser.parse_args(arguments)
    if given.quick:
        parser.set_defaults(**QUICK)
        given = parser.parse_args(arguments)
    return given


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",") if part.strip()]


def _systems(text: str) -> list[str]:
    named = [part.strip() for part in text.split(";")]
    groups = {"plain, all": list(PLAIN), "merged": list(MERGED), "ours": list(HEADWAY)}
    found = [name for part in named for name in groups.get(part, [part])]
    for name in found:
        if name not in SYSTEMS:
            raise argparse.ArgumentTypeError(f"'{name}' is none of {', '.join((*SYSTEMS, *groups))}")
    return found


if __name__ == "__main__":
    sys.exit(main())
