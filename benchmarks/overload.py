"""A machine that is too small for a minute: what outputs are worth if load is shed by loss graphs, evenly, or not.

Five applications read one stream. Three tolerate no loss (`alarms`, `faults`, `orders`), two nearly any (`charts`,
`reports`), and these need most of the work. At first the load is half of the capacity, then twice, then half again.
What an output is worth is the mean utility of its results by their latency, times the utility of the share that it got
by its loss graph; the total is the sum over outputs.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import headway as hw

INTOLERANT = {"alarms": 0.1, "faults": 0.1, "orders": 0.1}
TOLERANT = {"charts": 0.35, "reports": 0.35}
"""By application: its part of the work."""
SHEDDING: dict[str, bool | str] = {"none": False, "uniform": "uniform", "loss": True}
IN_TURN = "round-robin/superbox"
"""A policy that knows no graphs: what is gained is shedding's. The default would serve the intolerant outputs first."""
FACTOR = 2.0
"""How much more the total has to be worth with loss graphs than otherwise."""
SOON = 10.0
"""Seconds after which good outputs are good again, and after the overload nothing is dropped any more."""
SPARK = 1.6
"""Processors that are left for the boxes of two, where Spark itself and its driver need the rest."""
LAXER = 3.0
"""By how much latency graphs are wider on Spark, where a micro-batch takes a large part of a second."""


@dataclass(frozen=True)
class Phases:
    """How long the load is half, then twice, then half of the capacity, in seconds."""

    before: float = 10.0
    over: float = 60.0
    after: float = 30.0


@dataclass(frozen=True)
class Outcome:
    """What came of one run."""

    engine: str
    policy: str
    shedding: str
    total: float
    worth: dict[str, float]
    kept: dict[str, float]
    good_after: float | None
    """Seconds from the overload's start until no intolerant output was late any more; None: they stayed late."""
    zero_after: float | None
    """Seconds from its end until nothing was dropped any more; None: that did not happen."""
    changes: int


def make_network(engine: str, rate: float, phases: Phases) -> dict[str, Any]:
    """Return the network; `rate` is what can be done, in tuples per second: by one processor, on Spark by all."""
    wider, processors = (LAXER, SPARK) if engine == "spark" else (1.0, 1.0)
    parts = {**INTOLERANT, **TOLERANT}
    each = {name: part * processors / rate for name, part in parts.items()}
    boxes = {f"work_{name}": {"op": "universal", "in": "s", "cost": cost} for name, cost in each.items()}
    strict = {"latency": [[0, 1], [2 * wider, 1], [6 * wider, 0]], "loss": [[100, 1], [98, 0.1], [0, 0]]}
    lax = {"latency": [[0, 1], [4 * wider, 1], [10 * wider, 0]], "loss": [[100, 1], [10, 0.9], [0, 0]]}
    outputs = {name: {"from": f"work_{name}", "qos": strict if name in INTOLERANT else lax} for name in parts}
    spans = [[phases.before, 0.5 * rate], [phases.over, 2 * rate], [phases.after, 0.5 * rate]]
    made = {"phases": spans, "arrivals": "poisson", "seed": 3, "fields": {"v": {"uniform": [0, 99]}}}
    return {
        "network": "overload",
        "sources": {"s": {"schema": {"v": "int"}, "source": {"generate": made}}},
        "boxes": boxes,
        "outputs": outputs,
    }


def measure(engine: str, shedding: str, policy: str | None, rate: float, phases: Phases) -> Outcome:
    """Run the network once."""
    network = make_network(engine, rate, phases)
    nowhere = dict.fromkeys(network["outputs"])
    summary = hw.run(network, engine=engine, policy=policy, outputs=nowhere, shed=SHEDDING[shedding]).summary
    outputs = summary["outputs"]
    worth = {name: float(one["worth"] or 0.0) for name, one in outputs.items()}
    # On Spark the first tuples come when all queries have started; the history begins then, too.
    return Outcome(
        engine,
        summary["policy"],
        shedding,
        sum(worth.values()),
        worth,
        {name: one["kept"] for name, one in outputs.items()},
        good_after(summary["overload"]["history"], phases),
        zero_after(summary["shedding"], phases),
        summary["shedding"]["count"],
    )


def good_after(history: Mapping[str, Any], phases: Phases) -> float | None:
    """Return when intolerant outputs were good again, and stayed so until the overload ended."""
    begin, end = phases.before, phases.before + phases.over
    bad = [
        moment
        for name in INTOLERANT
        for moment, outside in zip(history["moment"], history["outside"][name], strict=True)
        if begin <= moment <= end and outside is not None and outside > 0
    ]
    if not bad:
        return 0.0
    return None if max(bad) > end - SOON else max(bad) - begin


def zero_after(shedding: Mapping[str, Any], phases: Phases) -> float | None:
    """Return when the last drop box was removed."""
    if shedding["active"]:
        return None
    moments = [change["moment"] for change in shedding["changes"]]
    return max(0.0, max(moments) - phases.before - phases.over) if moments else 0.0


def report(outcomes: Sequence[Outcome]) -> str:
    """Return a table for people."""
    lines = [
        "| engine | policy | dropping | total | intolerant | tolerant | kept of it | good after | none after | times |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for one in outcomes:
        strict = sum(one.worth[name] for name in INTOLERANT) / len(INTOLERANT)
        lax = sum(one.worth[name] for name in TOLERANT) / len(TOLERANT)
        kept = sum(one.kept[name] for name in TOLERANT) / len(TOLERANT)
        times = ["never" if value is None else f"{value:.1f} s" for value in (one.good_after, one.zero_after)]
        lines.append(
            f"| {one.engine} | {one.policy} | {one.shedding} | {one.total:.2f} | {strict:.3f} | {lax:.3f} "
            f"| {kept:.2f} | {times[0]} | {times[1]} | {one.changes} |"
        )
    return "\n".join(lines) + "\n"


def verdicts(outcomes: Sequence[Outcome]) -> list[str]:
    """Return what does not hold: nothing, if all is well."""
    wrong = []
    for one in outcomes:
        if one.shedding != "loss":
            continue
        named = f"{one.engine}, {one.policy}"
        if min(one.kept[name] for name in INTOLERANT) < 1.0:
            wrong.append(f"{named}: intolerant outputs lost tuples: {one.kept}")
        if one.good_after is None or one.good_after > SOON:
            wrong.append(f"{named}: intolerant outputs were not good {SOON:g} s after the overload began")
        if one.zero_after is None or one.zero_after > SOON:
            wrong.append(f"{named}: tuples were dropped {SOON:g} s after the overload ended")
        for other in outcomes:
            same = (other.engine, other.policy) == (one.engine, one.policy)
            if same and other.shedding != "loss" and one.total < FACTOR * other.total:
                wrong.append(f"{named}: worth {one.total:.2f}, with '{other.shedding}' {other.total:.2f}")
    return wrong


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the scenario on one engine and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", choices=("sim", "local", "spark"), default="sim")
    parser.add_argument("--policy", action="append", help=f"default: {IN_TURN}, on Spark its own")
    parser.add_argument("--rate", type=float, help="tuples per second at a load of 1")
    parser.add_argument("--quick", action="store_true", help="20 s of overload instead of 60")
    parser.add_argument("--json", type=Path, help="write all numbers there")
    args = parser.parse_args(arguments)
    rate = args.rate or {"sim": 100.0, "local": 200.0, "spark": 2000.0}[args.engine]
    phases = Phases(10.0, 20.0, 20.0) if args.quick else Phases()
    policies = args.policy or [None if args.engine == "spark" else IN_TURN]
    outcomes = [measure(args.engine, shedding, policy, rate, phases) for policy in policies for shedding in SHEDDING]
    sys.stdout.write(f"## Overload for {phases.over:g} s: engine {args.engine}\n\n{report(outcomes)}\n")
    wrong = verdicts(outcomes)
    sys.stdout.write("All as promised.\n" if not wrong else f"Not as promised: {'; '.join(wrong)}\n")
    if args.json is not None:
        args.json.write_text(json.dumps([asdict(one) for one in outcomes], indent=2) + "\n", "utf-8")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
