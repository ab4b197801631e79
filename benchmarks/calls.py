"""Box calls per second with trains of one tuple: what a call costs before any work.

Two networks: a chain of five boxes (filter, map, filter, map, filter; every tuple passes them all), and the
paper's Query 1 (filter, windowed count, filter). One worker. Box by box, each box is called for each tuple and
each tuple goes through every queue. Over superboxes, a step takes a tuple through all boxes, and the chain's
five boxes run as one fused kernel: one kernel call then counts as a call of each of its five boxes, so the
kernel calls are given too.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.contenders import discard
from benchmarks.throughput import processor_seconds
from benchmarks.workloads import make_table
from headway import load

TUPLES = 10_000
PROMISED = 30_000
POLICIES = ("round-robin/box", "round-robin/superbox")

CHAIN = """\
network: chain
sources:
  events: {schema: {time: timestamp, key: int, value: double}}
boxes:
  a: {op: filter, in: events, where: "value >= 0"}
  b: {op: map, in: a, select: "time, key, value * 2 as value"}
  c: {op: filter, in: b, where: "key < 1000"}
  d: {op: map, in: c, select: "time, key + 1 as key, value"}
  e: {op: filter, in: d, where: "value < 10"}
outputs:
  result: {from: e}
"""

QUERY = """\
network: windows
sources:
  events: {schema: {time: timestamp, key: int, value: double}}
boxes:
  across: {op: filter, in: events, where: "key >= 10"}
  counts: {op: aggregate, in: across, select: "count(*) as n", order: {on: time, slack: 1}, size: 10ms}
  crowded: {op: filter, in: counts, where: "n >= 3"}
outputs:
  result: {from: crowded}
"""

NETWORKS = {"chain of 5": CHAIN, "Query 1": QUERY}
FUSED = {("chain of 5", "round-robin/superbox"): 5}
"""How many boxes one kernel call stands for, where that is more than one."""


@dataclass(frozen=True)
class Calls:
    """What one run gave, per second."""

    network: str
    policy: str
    box_calls: float
    kernel_calls: float
    tuples: float
    processor_calls: float
    """Box calls per second of processor time: steadier than wall time when the machine has other work."""
    shares: Mapping[str, float]
    """Where the time went: per cent in scheduler, boxes, storage, sources, sinks."""


def measure(network: str, policy: str, tuples: int, repeats: int) -> Calls:
    """Return the best of some runs."""
    loaded, table = load(NETWORKS[network]), make_table(tuples)
    best: Calls | None = None
    for _ in range(repeats):
        used = processor_seconds()
        summary = discard(loaded, table, policy=policy, train=1, workers=1).summary
        used = processor_seconds() - used
        seconds = summary["seconds"]
        shares = {name: 100 * spent / seconds for name, spent in summary["time"].items()}
        calls = summary["box_calls"] / seconds
        found = Calls(
            network,
            policy,
            calls,
            calls / FUSED.get((network, policy), 1),
            tuples / seconds,
            summary["box_calls"] / used,
            shares,
        )
        if best is None or found.box_calls > best.box_calls:
            best = found
    assert best is not None
    return best


def report(tuples: int = TUPLES, repeats: int = 3) -> list[Calls]:
    """Measure, print and return the calls per second."""
    results = [measure(network, policy, tuples, repeats) for network in NETWORKS for policy in POLICIES]
    print(f"## Trains of one: {tuples:,} tuples, 1 worker, best of {repeats}\n")
    parts = list(results[0].shares)
    print(
        "| network | policy | box calls/s | by processor time | kernel calls/s | tuples/s |"
        + "".join(f" {one} % |" for one in parts)
    )
    print("|---|---|" + "---:|" * (4 + len(parts)))
    for one in results:
        shares = "".join(f" {one.shares[part]:.0f} |" for part in parts)
        rates = f"{one.box_calls:,.0f} | {one.processor_calls:,.0f} | {one.kernel_calls:,.0f} | {one.tuples:,.0f}"
        print(f"| {one.network} | {one.policy} | {rates} |{shares}")
    strict = results[0]
    verdict = "reached" if strict.box_calls >= PROMISED else f"{strict.box_calls / PROMISED:.2f} of it"
    print(f"\nBox by box on the {strict.network}: {strict.box_calls:,.0f}; promised {PROMISED:,} or more: {verdict}")
    return results


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.calls", description=__doc__)
    parser.add_argument("--tuples", type=int, default=TUPLES, help="how many tuples (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=3, help="how many runs (default: %(default)s)")
    parser.add_argument("--json", type=Path, help="also write the results to this file")
    given = parser.parse_args(arguments)
    results = report(given.tuples, given.repeats)
    if given.json is not None:
        given.json.write_text(json.dumps([asdict(one) for one in results], indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
