"""Thirty queries over one stream, with load shedding and without, below what can be done and above it.

Filters, keyed averages, maps and maxima, with latency graphs and no loss graphs: a lost tuple is lost. First it is
measured how many tuples per second can be done: far more arrive for ten seconds, and the time until all is delivered
is taken; trains grow with what waits, and long ones cost less per tuple. Then so many times that arrive, each run
twice: with `shed: on` and without. What a run is worth is the mean over the outputs of what they are worth; one
that delivers nothing counts as nothing.
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

QUERIES = 30
POLICY = "qos/superbox/mc/auto"
RATE = 20_000.0
"""Tuples per second at which the fault was found: far below what can be done."""
FACTORS = (0.3, 0.8, 1.2, 2.0)
MUCH = 3_000_000.0
"""Tuples per second that nobody can do."""
CALM, WORSE = 0.9, 0.05
"""The part of what can be done below which nothing is dropped; by how much a run may be worth less with shedding."""
MEMORY = 4 << 30


@dataclass(frozen=True)
class Outcome:
    """What came of one run."""

    factor: float | None
    """Of what can be done; None at RATE."""
    rate: float
    shed: bool
    worth: float
    least: float
    """What the output that was worth least was worth."""
    dropped: int
    began: float | None
    """When the first tuple was dropped, in seconds."""
    load: float
    """The largest demand that was read, in seconds of work per second."""


def make_network(rate: float, seconds: float) -> dict[str, Any]:
    """Return the network; its source gives so many tuples per second for so many seconds."""
    boxes, outputs = {}, {}
    for at in range(QUERIES):
        name, size = f"q{at}", 0.1 * (1 + at % 3)
        order = {"on": "t", "by": ["k"]} if at % 4 == 1 else {"on": "t"}
        boxes[name] = (
            {"op": "filter", "in": "s", "where": f"v > {30 + at}"},
            {"op": "aggregate", "in": "s", "select": "avg(v) as mean", "order": order, "size": size},
            {"op": "map", "in": "s", "select": f"k, t, v * {at} + 1 as w"},
            {"op": "aggregate", "in": "s", "select": "max(v) as most", "order": order, "size": size},
        )[at % 4]
        outputs[name] = {"from": name, "qos": {"latency": [[0, 1], [2 if at % 2 else 4, 1], [10, 0]]}}
    fields = {"k": {"uniform": [0, 9]}, "v": {"uniform": [0.0, 100.0]}, "t": "t"}
    made = {"rate": rate, "count": max(1, round(rate * seconds)), "seed": 1, "fields": fields}
    schema = {"k": "int", "v": "double", "t": "double"}
    source = {"schema": schema, "source": {"generate": made}}
    return {"network": "thirty", "sources": {"s": source}, "boxes": boxes, "outputs": outputs}


def mean_worth(summary: dict[str, Any]) -> tuple[float, float]:
    """Return what outputs were worth, as a mean and at least; one without results counts as nothing."""
    worths = [float(one["worth"] or 0.0) for one in summary["outputs"].values()]
    return sum(worths) / len(worths), min(worths)


def run(rate: float, seconds: float, shed: bool, engine: str = "local", policy: str = POLICY) -> dict[str, Any]:
    """Run the queries once; return the summary."""
    network = make_network(rate, seconds)
    nowhere = dict.fromkeys(network["outputs"])
    result = hw.run(network, outputs=nowhere, engine=engine, policy=policy, shed=shed, memory=MEMORY)
    return dict(result.summary)


def capacity(seconds: float = 10.0, much: float = MUCH) -> float:
    """Return how many tuples per second can be done."""
    done = run(much, seconds, False)
    return much * seconds / float(done["seconds"])


def measure(rate: float, factor: float | None, seconds: float, shed: bool) -> Outcome:
    """Make one run."""
    summary = run(rate, seconds, shed)
    worth, least = mean_worth(summary)
    changes = summary["shedding"]["changes"]
    return Outcome(
        factor,
        rate,
        shed,
        worth,
        least,
        sum(summary["shedding"]["dropped"].values()),
        changes[0]["moment"] if changes else None,
        max(summary["overload"]["history"]["load"], default=0.0),
    )


def verdicts(outcomes: Sequence[Outcome]) -> list[str]:
    """Return what does not hold: nothing, if all is well."""
    wrong = []
    for on in outcomes:
        if not on.shed:
            continue
        named = "at 20,000 tuples/s" if on.factor is None else f"at {on.factor:g} of what can be done"
        if (on.factor is None or on.factor < CALM) and on.dropped:
            wrong.append(f"{named}, {on.dropped} tuples were dropped")
        for off in outcomes:
            if not off.shed and off.rate == on.rate and on.worth < off.worth - WORSE:
                wrong.append(f"{named}, shedding is worth {on.worth:.3f} and none {off.worth:.3f}")
    return wrong


def report(outcomes: Sequence[Outcome], can_do: float) -> str:
    """Return a table for people."""
    lines = [
        f"{can_do:,.0f} tuples/s can be done.",
        "",
        "| load | tuples/s | shedding | mean worth | least worth | dropped | from |",
        "|---:|---:|---|---:|---:|---:|---:|",
    ]
    for one in outcomes:
        began = "" if one.began is None else f"{one.began:.1f} s"
        load = one.rate / can_do if one.factor is None else one.factor
        lines.append(
            f"| {load:.2g} | {one.rate:,.0f} | {'on' if one.shed else 'off'} | {one.worth:.3f} | {one.least:.3f} "
            f"| {one.dropped:,} | {began} |"
        )
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.thirty", description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0, help="how long tuples come (default: %(default)s)")
    parser.add_argument("--factors", type=float, nargs="*", default=FACTORS, help="loads (default: 0.3 0.8 1.2 2)")
    parser.add_argument("--capacity", type=float, help="tuples/s that can be done (default: measured)")
    parser.add_argument("--json", type=Path, help="write all numbers there")
    args = parser.parse_args(arguments)
    can_do = args.capacity or capacity()
    plan = [(RATE, None), *((factor * can_do, factor) for factor in args.factors)]
    outcomes = [measure(rate, factor, args.seconds, shed) for rate, factor in plan for shed in (True, False)]
    sys.stdout.write(f"## Thirty queries for {args.seconds:g} s: engine local\n\n{report(outcomes, can_do)}\n")
    wrong = verdicts(outcomes)
    sys.stdout.write("All as promised.\n" if not wrong else f"Not as promised: {'; '.join(wrong)}\n")
    if args.json is not None:
        args.json.write_text(json.dumps([asdict(one) for one in outcomes], indent=2) + "\n", "utf-8")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
