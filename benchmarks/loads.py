"""Utility over load: the QoS policy against round robin, as in figure 11 of the paper on operator scheduling.

Twenty applications, each a chain of five universal boxes over a stream of its own, half of them with a tight latency
graph, {(0, 1), (0.001, 1), (1, 0)}, and half with a loose one, {(0, 1), (4, 1), (5, 0)}. Tuples arrive by Poisson
processes, the same for both policies. The load is the share of the processor's time that the boxes' own work needs;
schedulers, calls and queues come on top of it, so that the machine is full before the load is 1.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import headway as hw

APPLICATIONS, DEPTH = 20, 5
COST = 0.002
"""Seconds that a tuple costs at each box."""
TIGHT = [[0, 1], [0.001, 1], [1, 0]]
LOOSE = [[0, 1], [4, 1], [5, 0]]
LOADS = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2)
POLICIES = {"QoS": "qos/superbox/mc/1", "round robin": "round-robin/box/1"}
BELOW, FACTOR = 0.6, 1.5


@dataclass(frozen=True)
class Loaded:
    """What a policy made of a load."""

    load: float
    policy: str
    utility: float
    """Mean over all results."""
    tight: float
    loose: float
    latency: float
    """Mean over all results, in seconds."""
    scheduler: float
    """Share of the run's time."""


def make_network(load: float, seconds: float, seed: int = 7) -> dict[str, Any]:
    """Return the network, with sources that fill `load` of the processor for so many seconds."""
    rate = load / (COST * DEPTH) / APPLICATIONS
    sources, boxes, outputs = {}, {}, {}
    for at in range(APPLICATIONS):
        made = {"arrivals": "poisson", "rate": rate, "count": max(1, round(rate * seconds)), "seed": seed + at}
        sources[f"s{at}"] = {"schema": {"a": "int"}, "source": {"generate": {**made, "fields": {"a": 1}}}}
        for level in range(DEPTH):
            feeding = f"b{at}x{level - 1}" if level else f"s{at}"
            boxes[f"b{at}x{level}"] = {"op": "universal", "in": feeding, "cost": COST}
        outputs[f"o{at}"] = {"from": f"b{at}x{DEPTH - 1}", "qos": {"latency": LOOSE if at % 2 else TIGHT}}
    return {"network": "loads", "sources": sources, "boxes": boxes, "outputs": outputs}


def measure(load: float, policy: str, seconds: float, engine: str) -> Loaded:
    """Run one policy at one load."""
    network = make_network(load, seconds)
    nowhere = dict.fromkeys(network["outputs"])
    summary = hw.run(network, engine=engine, policy=POLICIES[policy], outputs=nowhere).summary
    found = list(summary["outputs"].values())

    def mean(some: Sequence[Any], key: str) -> float:
        tuples = sum(one["tuples"] for one in some)
        values = [one["tuples"] * (one["utility"] if key == "utility" else one["latency"]["mean"]) for one in some]
        return float(sum(values) / tuples)

    return Loaded(
        load,
        policy,
        mean(found, "utility"),
        mean(found[::2], "utility"),
        mean(found[1::2], "utility"),
        mean(found, "latency"),
        summary["time"]["scheduler"] / summary["seconds"],
    )


def check(results: Sequence[Loaded]) -> list[str]:
    """Return what does not hold: QoS above round robin at every load, and by FACTOR where that is below BELOW."""
    by_load: dict[float, dict[str, Loaded]] = {}
    for one in results:
        by_load.setdefault(one.load, {})[one.policy] = one
    wrong = []
    for load, found in by_load.items():
        qos, turns = found["QoS"].utility, found["round robin"].utility
        if qos <= turns:
            wrong.append(f"at load {load:g} QoS has {qos:.4f}, round robin {turns:.4f}")
        elif turns < BELOW and qos < FACTOR * turns:
            wrong.append(f"at load {load:g} QoS has {qos:.3f}, only {qos / turns:.2f} of round robin's {turns:.3f}")
    return wrong


def report(loads: Sequence[float], seconds: float, engine: str) -> list[Loaded]:
    """Measure, print and return."""
    print(f"## Utility over load: {APPLICATIONS} applications, {seconds:g} s each, engine {engine}\n")
    print("| load | policy | utility | tight | loose | mean latency (s) | scheduler % |")
    print("|---:|---|" + "---:|" * 5, flush=True)
    results = []
    for load in loads:
        for policy, text in POLICIES.items():
            one = measure(load, policy, seconds, engine)
            results.append(one)
            parts = f"{one.utility:.4f} | {one.tight:.4f} | {one.loose:.4f} | {one.latency:.4f}"
            print(f"| {load:g} | {policy} (`{text}`) | {parts} | {100 * one.scheduler:.1f} |", flush=True)
    wrong = check(results)
    print("\n" + ("All as promised." if not wrong else "Not as promised: " + "; ".join(wrong)))
    return results


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.loads", description=__doc__)
    parser.add_argument("--loads", type=float, nargs="+", default=LOADS, help="which loads (default: 0.5 to 1.2)")
    parser.add_argument("--seconds", type=float, default=20.0, help="how long each runs (default: %(default)s)")
    parser.add_argument("--engine", default="local", help="local, or sim for virtual time (default: %(default)s)")
    parser.add_argument("--json", type=Path, help="also write the results to this file")
    given = parser.parse_args(arguments)
    results = report(given.loads, given.seconds, given.engine)
    if given.json is not None:
        given.json.write_text(json.dumps([asdict(one) for one in results], indent=2) + "\n")
    return 1 if check(results) else 0


if __name__ == "__main__":
    sys.exit(main())
