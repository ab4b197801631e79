"""Million tuples per second on W1, W2 and W3, and the ratio to plain pyarrow in the same run.

Before anything is timed, all contenders' results are compared. Then every round runs each contender once, so
that noise hits all alike, and the best round counts. Rates are by wall time; a second table gives the processor
time per tuple, over all threads, which says more than wall time when the machine has other work.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from benchmarks.contenders import Contender, contenders
from benchmarks.workloads import TUPLES, WORKLOADS, Workload, make_table
from headway import RunResult
from headway.clock import stopwatch

REFERENCE = "pyarrow"
TARGETS = {"W1": 1.0, "W2": 0.5, "W3": 1.0}
"""What Headway promises to reach of plain pyarrow."""
SCHEDULER = 0.05
"""The share of a run's time that its scheduler stays below."""


class DisagreementError(Exception):
    """Two contenders gave different results."""


class Speed(NamedTuple):
    """A contender's best wall time and best processor time over all rounds, per tuple."""

    rate: float
    """Million tuples per second."""
    processor: float
    """Nanoseconds of processor time per tuple, over all threads."""
    rounds: tuple[float, ...]
    """The rate of every round."""
    scheduler: float = 0.0
    """The scheduler's share of the run's time in the round that took longest in it; 0 for those who have none."""


Speeds = Mapping[str, Mapping[str, Speed]]
"""By workload and contender."""


def measure(workload: Workload, table: pa.Table, repeats: int) -> dict[str, Speed]:
    """Return each contender's speed; raises DisagreementError."""
    everybody = contenders(workload, table)
    verify(workload, everybody)
    best: dict[str, Speed] = {}
    count = table.num_rows
    for _ in range(repeats):
        for contender in everybody:
            begun, used = stopwatch(), processor_seconds()
            result = contender.run()
            rate, processor = 1e3 * count / (stopwatch() - begun), 1e9 * (processor_seconds() - used) / count
            known = best.get(contender.name, Speed(rate, processor, ()))
            share = 0.0
            if isinstance(result, RunResult):
                share = result.summary["time"]["scheduler"] / result.summary["seconds"]
            best[contender.name] = Speed(
                max(rate, known.rate),
                min(processor, known.processor),
                (*known.rounds, rate),
                max(share, known.scheduler),
            )
    return best


def processor_seconds() -> float:
    """Return the seconds of processor time that this process has used."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def verify(workload: Workload, everybody: Sequence[Contender]) -> int:
    """Compare all contenders' results with the first one's, in a common order; return the number of results."""
    first, *others = everybody
    expected = [_sorted(workload, one) for one in first.collect()]
    for other in others:
        found = [_sorted(workload, one) for one in other.collect()]
        if len(found) != len(expected):
            raise DisagreementError(f"{workload.name}: {other.name} gave {len(found)} outputs, not {len(expected)}")
        for at, (mine, theirs) in enumerate(zip(found, expected, strict=True)):
            _compare(f"{workload.name}, output {at}: {other.name} against {first.name}", mine, theirs)
    return sum(one.num_rows for one in expected)


def _sorted(workload: Workload, table: pa.Table) -> pa.Table:
    return table.sort_by([(name, "ascending") for name in workload.sort]).combine_chunks()


def _compare(who: str, mine: pa.Table, theirs: pa.Table) -> None:
    if mine.schema.names != theirs.schema.names:
        raise DisagreementError(f"{who}: fields {mine.schema.names}, not {theirs.schema.names}")
    if mine.num_rows != theirs.num_rows:
        raise DisagreementError(f"{who}: {mine.num_rows} results, not {theirs.num_rows}")
    for name in mine.schema.names:
        left, right = mine[name], theirs[name]
        if pa.types.is_floating(left.type):
            # Libraries add floating-point numbers up in orders of their own.
            same = bool(np.allclose(left.to_numpy(), right.to_numpy(), rtol=1e-9, atol=0))
        else:
            same = bool(left.equals(right))
        if not same:
            raise DisagreementError(f"{who}: different values of '{name}'")


def rate_table(results: Speeds) -> str:
    """Return the rates as a Markdown table, with their ratios to plain pyarrow."""
    head = "| million tuples/s |" + "".join(f" {workload} | of pyarrow |" for workload in results)
    lines = [head, "|---|" + "---:|" * (2 * len(results))]
    for name in _names(results):
        cells = ""
        for speeds in results.values():
            one, plain = speeds.get(name), speeds[REFERENCE]
            cells += " | |" if one is None else f" {one.rate:.1f} | {one.rate / plain.rate:.2f} |"
        lines.append(f"| {name} |{cells}")
    return "\n".join(lines)


def processor_table(results: Speeds) -> str:
    """Return the processor times as a Markdown table."""
    head = "| processor time, ns per tuple |" + "".join(f" {workload} |" for workload in results)
    lines = [head, "|---|" + "---:|" * len(results)]
    for name in _names(results):
        found = [speeds.get(name) for speeds in results.values()]
        lines.append(f"| {name} |" + "".join(" |" if one is None else f" {one.processor:.0f} |" for one in found))
    return "\n".join(lines)


def _names(results: Speeds) -> list[str]:
    """Return all contenders, Headway first."""
    names = list(dict.fromkeys(name for speeds in results.values() for name in speeds))
    return sorted(names, key=lambda name: not name.startswith("headway"))


def verdicts(results: Speeds) -> list[str]:
    """Say for each workload whether Headway reaches its promise."""
    lines = []
    for workload, speeds in results.items():
        ratio, target = speeds["headway"].rate / speeds[REFERENCE].rate, TARGETS[workload]
        reached = "reached" if ratio >= target else f"missed by {target - ratio:.2f}"
        # Rounds are pairs: both ran within the same moments, so their ratios show how far noise reaches.
        pairs = zip(speeds["headway"].rounds, speeds[REFERENCE].rounds, strict=True)
        ratios = sorted(mine / plain for mine, plain in pairs)
        middle = ratios[len(ratios) // 2]
        lines.append(
            f"{workload}: {ratio:.2f} of plain pyarrow; promised {target:.1f} or more: {reached} "
            f"(round by round {ratios[0]:.2f} to {ratios[-1]:.2f}, in the middle {middle:.2f})"
        )
    shares = {workload: speeds["headway"].scheduler for workload, speeds in results.items()}
    held = "kept" if max(shares.values()) < SCHEDULER else "broken"
    parts = ", ".join(f"{workload} {100 * share:.2f} %" for workload, share in shares.items())
    lines.append(f"scheduler's share of the run, worst round: {parts}; promised below {100 * SCHEDULER:.0f} %: {held}")
    return lines


def report(
    tuples: int = TUPLES, repeats: int = 5, names: Sequence[str] = tuple(WORKLOADS)
) -> dict[str, dict[str, Speed]]:
    """Measure, print and return the speeds by workload and contender."""
    table = make_table(tuples)
    results = {name: measure(WORKLOADS[name], table, repeats) for name in names}
    print(f"## Throughput: {tuples:,} tuples, best of {repeats} rounds\n")
    print("\n".join(f"- {name}: {WORKLOADS[name].about}" for name in names) + "\n")
    print(rate_table(results) + "\n")
    print(processor_table(results) + "\n")
    print("\n".join(f"- {line}" for line in verdicts(results)))
    return results


def as_json(results: Speeds) -> dict[str, dict[str, dict[str, object]]]:
    """Return the speeds with their names."""
    return {workload: {name: one._asdict() for name, one in speeds.items()} for workload, speeds in results.items()}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.throughput", description=__doc__)
    parser.add_argument("--tuples", type=int, default=TUPLES, help="how many tuples (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=5, help="how many rounds (default: %(default)s)")
    parser.add_argument("--workload", action="append", choices=list(WORKLOADS), help="only this one; may be repeated")
    parser.add_argument("--json", type=Path, help="also write the results to this file")
    given = parser.parse_args(arguments)
    results = report(given.tuples, given.repeats, tuple(given.workload or WORKLOADS))
    if given.json is not None:
        given.json.write_text(json.dumps({"tuples": given.tuples, "results": as_json(results)}, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
