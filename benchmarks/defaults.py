"""Schedules that could be the default of `local` where outputs have latency graphs: round robin, or QoS policies.

Two things are asked. As fast as possible, over W1 to W3 with a latency graph at every output: how much processor time
does a tuple take? And at a load, thirty queries (filters, keyed averages, maps, maxima) whose outputs are good for 50
to 250 ms: what are the results worth, and how late are they? Rounds take turns, so that noise hits all alike.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
from collections.abc import Sequence
from typing import Any

import headway as hw
from benchmarks import machine
from benchmarks.throughput import processor_seconds
from benchmarks.workloads import WORKLOADS, make_table
from headway.clock import stopwatch
from headway.files import dump, load

SCHEDULES = ("round-robin/superbox", "qos/superbox", "slope-slack:8/superbox", "qos/superbox/mc/auto")
GOOD = (0.5, 5.0)
"""Seconds for which outputs of W1 to W3 are good, in turn."""
QUERIES = 30
LOADS = (0.3, 0.8, 1.2)
SIMULATED = (0.9, 1.0, 1.1, 1.2)
SECONDS = 3.0


def graded(name: str) -> Any:
    """Return a workload's network with a latency graph at each output."""
    text = dump(load(WORKLOADS[name].network))
    network = load(text)
    outputs = {}
    for at, output in enumerate(network.outputs):
        good = GOOD[at % 2]
        outputs[output.name] = {"from": output.input, "qos": {"latency": [[0, 1], [good, 1], [2 * good, 0]]}}
    import yaml

    return load({**yaml.safe_load(text), "outputs": outputs})


def queries(rate: float | None, seconds: float) -> dict[str, Any]:
    """Return thirty queries over one stream, which comes at a rate or as fast as it is taken."""
    made: dict[str, Any] = {"fields": {"k": {"uniform": [0, 9]}, "t": "i", "x": {"uniform": [0, 50]}}}
    made |= {"count": 200_000} if rate is None else {"rate": rate, "count": max(1, round(rate * seconds))}
    boxes: dict[str, Any] = {}
    for at in range(QUERIES):
        order = {"on": "t", "by": ["k"]}
        boxes[f"b{at}"] = (
            {"op": "filter", "in": "s", "where": f"x > {at}"},
            {"op": "aggregate", "in": "s", "select": "avg(x) as x", "order": order, "size": 100 + at},
            {"op": "map", "in": "s", "select": f"k, x + {at} as x"},
            {"op": "aggregate", "in": "s", "select": "max(x) as x", "order": {"on": "t"}, "size": 100 + at},
        )[at % 4]
    graphs = [[[0, 1], [0.05 * (at % 5 + 1), 1], [0.2 * (at % 5 + 1), 0]] for at in range(QUERIES)]
    return {
        "network": "queries",
        "sources": {"s": {"schema": {"k": "int", "t": "bigint", "x": "double"}, "source": {"generate": made}}},
        "boxes": boxes,
        "outputs": {f"o{at}": {"from": f"b{at}", "qos": {"latency": graphs[at]}} for at in range(QUERIES)},
    }


def run(network: Any, policy: str, inputs: Any = None) -> Any:
    """Run a network on `local` with results that go nowhere; return the summary."""
    names = [output.name for output in network.outputs]
    result = hw.run(network, inputs, engine="local", policy=policy, outputs=dict.fromkeys(names))
    return result.summary


def fast(tuples: int, rounds: int, schedules: Sequence[str]) -> None:
    """Print the processor time per tuple, as fast as possible."""
    table = make_table(tuples)
    print(
        f"Nanoseconds of processor time per tuple, as fast as possible, best of {rounds} rounds of {tuples:,} tuples:\n"
    )
    print("| schedule | W1 | W2 | W3 |\n|---|---:|---:|---:|")
    best: dict[tuple[str, str], float] = {}
    for name in WORKLOADS:
        network = graded(name)
        for _ in range(rounds):
            for policy in schedules:
                used = processor_seconds()
                run(network, policy, {"events": table})
                cost = 1e9 * (processor_seconds() - used) / tuples
                best[policy, name] = min(cost, best.get((policy, name), cost))
    for policy in schedules:
        print(f"| `{policy}` |" + "".join(f" {best[policy, name]:.1f} |" for name in WORKLOADS))


def loaded(rounds: int, seconds: float, schedules: Sequence[str]) -> None:
    """Print what results are worth at a load, in real time."""
    rates = []
    for _ in range(2):
        begun = stopwatch()
        run(load(queries(None, 0)), schedules[0])
        rates.append(200_000 * 1e9 / (stopwatch() - begun))
    capacity = max(rates)
    print(
        f"\n{QUERIES} queries at a share of {capacity:,.0f} tuples/s, {seconds:g} s each, median of {rounds} rounds:\n"
    )
    print(
        "| load | schedule | mean worth | worst output | mean latency, ms | scheduler |\n|---:|---|---:|---:|---:|---:|"
    )
    for share in LOADS:
        network = load(queries(share * capacity, seconds))
        found: dict[str, list[tuple[float, ...]]] = {policy: [] for policy in schedules}
        for _ in range(rounds):
            for policy in schedules:
                summary = run(network, policy)
                worths = [output["worth"] or 0.0 for output in summary["outputs"].values()]
                late = [output["latency"]["mean"] or 0.0 for output in summary["outputs"].values()]
                told = summary["time"]["scheduler"] / summary["seconds"]
                found[policy].append((statistics.mean(worths), min(worths), 1e3 * statistics.mean(late), told))
        for policy, values in found.items():
            worth, worst, latency, told = (statistics.median(column) for column in zip(*values, strict=True))
            print(f"| {share:g} | `{policy}` | {worth:.3f} | {worst:.3f} | {latency:.1f} | {told:.0%} |", flush=True)


MODEL: dict[str, Any] = {
    "like": "local",
    "overheads": {"call": "20us", "scheduler": "100us", "round": "100us", "storage": "10us"},
    "costs": {f"b{at}": 1.5e-6 if at % 2 else 2e-7 for at in range(QUERIES)},
}
"""What the thirty queries cost about, as `local` measured it."""


def simulated(seeds: int, seconds: float, schedules: Sequence[str]) -> None:
    """Print what results are worth at a load in virtual time: Poisson arrivals, graphs dealt out by a seed."""
    capacity = 1 / sum(MODEL["costs"].values())
    print(f"\n{QUERIES} queries, simulated, {seconds:g} s each, mean over {seeds} seeds:\n")
    print("| load | schedule | mean worth | worst output | mean latency, ms |\n|---:|---|---:|---:|---:|")
    for share in SIMULATED:
        found: dict[str, list[tuple[float, ...]]] = {policy: [] for policy in schedules}
        for seed in range(1, seeds + 1):
            made = queries(share * capacity, seconds)
            made["sources"]["s"]["source"]["generate"] |= {"seed": seed, "arrivals": "poisson"}
            graphs = [output["qos"] for output in made["outputs"].values()]
            random.Random(seed).shuffle(graphs)
            for output, graph in zip(made["outputs"].values(), graphs, strict=True):
                output["qos"] = graph
            network = load(made)
            for policy in schedules:
                nowhere = dict.fromkeys(made["outputs"])
                summary = hw.run(network, engine="sim", policy=policy, model=MODEL, outputs=nowhere).summary
                worths = [output["worth"] or 0.0 for output in summary["outputs"].values()]
                late = [output["latency"]["mean"] or 0.0 for output in summary["outputs"].values()]
                found[policy].append((statistics.mean(worths), min(worths), 1e3 * statistics.mean(late)))
        for policy, values in found.items():
            worth, worst, latency = (statistics.mean(column) for column in zip(*values, strict=True))
            print(f"| {share:g} | `{policy}` | {worth:.3f} | {worst:.3f} | {latency:.1f} |", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.defaults", description=__doc__)
    parser.add_argument("--tuples", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--schedules", default=",".join(SCHEDULES))
    parser.add_argument("--only", choices=("fast", "loaded", "simulated"), help="only this part")
    given = parser.parse_args(arguments)
    schedules = given.schedules.split(",")
    print(f"{machine.describe()}\n")
    if given.only in (None, "fast"):
        fast(given.tuples, given.rounds, schedules)
    if given.only in (None, "simulated"):
        simulated(given.rounds, given.seconds, schedules)
    if given.only in (None, "loaded"):
        loaded(given.rounds, given.seconds, schedules)
    return 0


if __name__ == "__main__":
    sys.exit(main())
