"""The runtime optimizer begins with the worst strategy, and is soon as good as the best.

A query of eight operators over three streams, two of them with two inputs, as in the paper's experiment; universal
boxes stand for its operators, because the paper does not say what they cost. Streams come in bursts, so that queues
build up.
The optimizer has one measure, latency, and three seconds from one look to the next.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import headway as hw

RATES = {"s1": 50.0, "s2": 45.0, "s3": 55.0}
"""Tuples per second in the mean, in the proportions of the paper's 2000, 1800 and 2200."""
INTERVAL, INTERVALS = 3.0, 3
"""Seconds from one look of the optimizer to the next, and looks after which it has to be as good as the best."""
STRATEGIES = ("path-capacity", "segment", "simplified-segment", "round-robin")
NEAR = 1.05
"""How much worse than the best it may be then."""


@dataclass(frozen=True)
class Course:
    """What a strategy did with one stream of arrivals."""

    strategy: str
    seed: int
    first: float
    """Mean latency in the first three intervals, in seconds."""
    then: float
    """Mean latency after them."""
    switches: tuple[str, ...]


def make_network(seconds: float, seed: int) -> dict[str, Any]:
    """Return the query, with arrivals for so many seconds."""

    def source(rate: float, own: int) -> dict[str, Any]:
        bursts = [[1.0, 2 * rate], [1.0, 0.0]] * round(seconds / 2)
        made = {"phases": bursts, "arrivals": "poisson", "seed": own, "fields": {"k": {"uniform": [0, 99]}}}
        return {"schema": {"k": "int"}, "source": {"generate": made}}

    def box(inputs: Any, cost: str, selectivity: float) -> dict[str, Any]:
        return {"op": "universal", "in": inputs, "cost": cost, "selectivity": selectivity, "seed": seed}

    return {
        "network": "eight",
        "sources": {name: source(rate, 10 * seed + at) for at, (name, rate) in enumerate(RATES.items())},
        "boxes": {
            "select1": box("s1", "1ms", 0.5),
            "select2": box("s2", "1ms", 0.5),
            "select3": box("s3", "1ms", 0.5),
            "join1": box(["select1", "select2"], "3ms", 0.8),
            "join2": box(["join1", "select3"], "3ms", 0.9),
            "project1": box("join2", "2ms", 1.0),
            "project2": box("project1", "2ms", 1.0),
            "project3": box("project2", "1ms", 1.0),
        },
        "outputs": {"results": {"from": "project3", "qos": {"latency": [[0, 1], [0.2, 1], [5, 0]]}}},
    }


def measure(strategy: str, seed: int, seconds: float = 40.0, engine: str = "sim") -> Course:
    """Run a strategy by itself, or ``optimizer``, which begins with the worst of them."""
    network = make_network(seconds, seed)
    adaptive: dict[str, Any] | None = None
    policy = f"{strategy}/box"
    if strategy == "optimizer":
        goal = {"latency": {"target": "200ms", "class": "best-effort"}}
        adaptive = {"use": "optimizer", "start": "segment", "interval": INTERVAL, "queries": {"results": goal}}
        policy = "round-robin/box"
    summary = hw.run(
        network, engine=engine, policy=policy, train=1, adaptive=adaptive, outputs={"results": None}
    ).summary
    history = summary["overload"]["history"]
    counts = np.array(history["delivered"]["results"], np.float64)
    means = np.array([latency or 0.0 for latency in history["latency"]["results"]])
    early = np.array(history["moment"]) <= INTERVAL * INTERVALS
    changes = summary.get("adaptive", {"changes": []})["changes"]
    return Course(
        strategy,
        seed,
        _mean(means[early], counts[early]),
        _mean(means[~early], counts[~early]),
        tuple(f"{change['moment']:.1f} s: {change['change']}" for change in changes),
    )


def _mean(values: Any, weights: Any) -> float:
    return float((values * weights).sum() / max(weights.sum(), 1.0))


def report(courses: Sequence[Course]) -> str:
    """Return a table for people."""
    lines = ["| strategy | seed | first 9 s | then | switches |", "|---|---|---|---|---|"]
    lines += [
        f"| {one.strategy} | {one.seed} | {one.first:.3f} s | {one.then:.3f} s | {'; '.join(one.switches) or '-'} |"
        for one in courses
    ]
    return "\n".join(lines) + "\n"


def verdicts(courses: Sequence[Course]) -> list[str]:
    """Return what does not hold: nothing, if all is well."""
    wrong = []
    for seed in sorted({one.seed for one in courses}):
        then = {one.strategy: one.then for one in courses if one.seed == seed}
        singles = [value for name, value in then.items() if name != "optimizer"]
        if then["segment"] < max(singles):
            wrong.append(f"seed {seed}: the optimizer did not begin with the worst strategy")
        if then["optimizer"] > NEAR * min(singles):
            wrong.append(f"seed {seed}: {then['optimizer']:.3f} s, the best strategy {min(singles):.3f} s")
    return wrong


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all strategies and the optimizer over some seeds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    args = parser.parse_args(arguments)
    courses = [measure(one, seed) for seed in range(1, args.seeds + 1) for one in (*STRATEGIES, "optimizer")]
    sys.stdout.write(f"## The runtime optimizer, from the worst strategy\n\n{report(courses)}\n")
    wrong = verdicts(courses)
    sys.stdout.write("All as promised.\n" if not wrong else f"Not as promised: {'; '.join(wrong)}\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
