"""Which tuples survive: semantic shedding by a value graph against random shedding at the same rate.

Readings of temperatures pass a filter and a change of units on their way to an output whose value graph says that only
the hot ones matter. The load is twice the capacity. The drop box stands before the filter: the output's interval is
propagated back through both boxes. In a second network, a function that has no inverse stands in between: the intervals
are found by trial.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import headway as hw

LEAST = 0.95
"""The share of the tuples with a value utility of 1 that has to be kept."""
WAYS = {"backward": "celsius * 1.8 + 32", "forward": "celsius * celsius * 0.01 + 32 * (celsius - celsius) + 32"}
"""By way: the change of units."""
HOT = {"backward": 86.0, "forward": 41.0}
"""By way: from which result on a tuple's utility is 1; that is 30 °C."""


@dataclass(frozen=True)
class Survival:
    """What was kept of a stream."""

    engine: str
    way: str
    by_value: bool
    kept: float
    """The share of all tuples."""
    useful: float
    """The share of those whose utility is 1."""
    how: str


def make_network(way: str, rate: float, seconds: float) -> dict[str, Any]:
    """Return the network; `rate` is what one processor can do, in tuples per second."""
    hot = HOT[way]
    fields = {"n": "i", "celsius": {"uniform": [0.0, 40.0]}}
    made = {"phases": [[seconds, 2 * rate]], "arrivals": "poisson", "seed": 11, "fields": fields}
    graph = [[hot - 10, 0], [hot - 0.001, 0.2], [hot, 1]]
    return {
        "network": "readings",
        "sources": {"readings": {"schema": {"n": "bigint", "celsius": "double"}, "source": {"generate": made}}},
        "boxes": {
            "known": {"op": "filter", "in": "readings", "where": "celsius >= 0"},
            "units": {"op": "map", "in": "known", "select": f"n, celsius, {WAYS[way]} as shown"},
            "work": {"op": "universal", "in": "units", "cost": 1 / rate},
        },
        "outputs": {
            "charts": {
                "from": "work",
                "qos": {"latency": [[0, 1], [2, 1], [8, 0]], "value": {"field": "shown", "graph": graph}},
            }
        },
    }


def measure(engine: str, way: str, by_value: bool, rate: float, seconds: float, settle: float = 5.0) -> Survival:
    """Run one network; what comes before the shedding has settled does not count."""
    network = make_network(way, rate, seconds)
    result = hw.run(network, engine=engine, shed={"by_value": by_value}, policy="round-robin", train="20ms")
    table = result.outputs["charts"]
    arrived = result.summary["sources"]["readings"]["tuples"]
    begin = int(2 * rate * settle)
    made = hw.run(
        {**network, "boxes": {}, "outputs": {"all": {"from": "readings"}}}, engine="sim", policy="fifo"
    ).outputs["all"]
    celsius = np.asarray(made["celsius"])
    useful = (celsius >= 30.0) & (np.arange(arrived) >= begin)
    numbers = np.asarray(table["n"])
    survived = np.zeros(arrived, np.bool_)
    survived[numbers] = True
    changes = result.summary["shedding"]["changes"]
    return Survival(
        engine,
        way,
        by_value,
        float(survived[begin:].mean()),
        float(survived[useful].mean()),
        next((change["change"].partition(", ")[2] for change in changes if "keeps" in change["change"]), "-"),
    )


def report(survivals: Sequence[Survival]) -> str:
    """Return a table for people."""
    lines = ["| engine | box in between | dropping | kept of all | kept of the useful |", "|---|---|---|---|---|"]
    for one in survivals:
        lines.append(f"| {one.engine} | {one.way} | {one.how} | {one.kept:.3f} | {one.useful:.3f} |")
    return "\n".join(lines) + "\n"


def verdicts(survivals: Sequence[Survival]) -> list[str]:
    """Return what does not hold: nothing, if all is well."""
    wrong = []
    for one in survivals:
        if one.by_value and one.useful < LEAST:
            wrong.append(f"{one.engine}, {one.way}: only {one.useful:.1%} of the useful tuples were kept")
        if not one.by_value and abs(one.useful - one.kept) > 0.05:
            wrong.append(f"{one.engine}, {one.way}: at random {one.useful:.1%} of the useful, {one.kept:.1%} of all")
    return wrong


def main(arguments: Sequence[str] | None = None) -> int:
    """Run both networks both ways and print what survived."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", choices=("sim", "local"), default="sim")
    parser.add_argument("--seconds", type=float, default=30.0)
    args = parser.parse_args(arguments)
    rate = 200.0
    found = [measure(args.engine, way, chosen, rate, args.seconds) for way in WAYS for chosen in (True, False)]
    sys.stdout.write(f"## Semantic shedding: engine {args.engine}\n\n{report(found)}\n")
    wrong = verdicts(found)
    sys.stdout.write("All as promised.\n" if not wrong else f"Not as promised: {'; '.join(wrong)}\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
