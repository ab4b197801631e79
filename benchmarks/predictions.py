"""What `headway compare` predicts against what the engine `local` then does: mean latency and the best policy.

Three example networks, each by four policies that differ clearly: a shop whose machine is too small for some seconds
(unequal), sensors that send more than twice what can be done (overload, here without shedding), and the demo
(border-watch), whose boxes are real and whose policies differ in how many tuples a step takes.
Costs are measured first, as `headway compare` does; then every policy is simulated, and run for real.

All of this is done three times, for a machine may be faster in one minute than in the next; the medians count. Real
runs must have the machine to themselves: one that has had no processor for more than a twentieth of the time in which
it was at work counts only if all of its policy were like that, and then this is said. A prediction of a latency may be
off by a quarter.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from headway.checking import check as check_network
from headway.experiments.comparing import Figures, advise, figures, margin
from headway.experiments.inputs import hold
from headway.experiments.predicting import QUIET, Predictor, Setting, had_processor
from headway.files import load, parse_network

EXAMPLES = Path(__file__).parent.parent / "examples"
OFF = 0.25
"""What is promised: by which share of what is measured a mean latency may be off."""

ROUNDS = 3
"""How often everything is predicted and measured."""

Change = Callable[[dict[str, Any]], None]


def _as_it_is(network: dict[str, Any]) -> None:
    """Change nothing."""


def _shorter_overload(network: dict[str, Any]) -> None:
    """Let the overload last three seconds, and shed nothing."""
    network["sources"]["readings"]["source"]["generate"]["phases"] = [["1s", 100], ["3s", 500], ["1s", 100]]
    network["schedule"] = {}


@dataclass(frozen=True)
class Case:
    """A network, how much of its input counts, and the policies that are compared on it."""

    name: str
    file: str
    seconds: float
    policies: tuple[str, ...]
    change: Change = _as_it_is


CASES = (
    Case(
        "unequal",
        "unequal/unequal.yaml",
        6.0,
        ("round-robin/superbox/20", "rate-based/superbox/20", "chain/box/20", "qos/superbox/20"),
    ),
    Case(
        "overload",
        "overload/overload.yaml",
        5.0,
        ("round-robin/superbox/10", "fifo/superbox/10", "rate-based/superbox/10", "qos/superbox/10"),
        _shorter_overload,
    ),
    Case(
        "border-watch",
        "border-watch/network.yaml",
        2.5,
        ("round-robin/superbox", "round-robin/box/2", "fifo/box/2", "qos/box/2"),
    ),
)


@dataclass(frozen=True)
class Outcome:
    """What was predicted and what was measured, by policy."""

    case: str
    predicted: tuple[Figures, ...]
    measured: tuple[Figures, ...]
    disturbed: Mapping[str, float] = field(default_factory=dict)
    """Policies that never had the machine to themselves: for which share of the time they had a processor at best."""

    def ratios(self) -> dict[str, float]:
        """Return by policy the predicted mean latency per measured one."""
        pairs = zip(self.predicted, self.measured, strict=True)
        return {one.policy: (one.latency or 0.0) / (real.latency or float("inf")) for one, real in pairs}


def prepared(case: Case) -> Setting:
    """Return a case's network with its input, held in memory."""
    path = EXAMPLES / case.file
    mapping = load(path).to_mapping()
    case.change(mapping)
    network = parse_network(mapping, path.parent)
    return Setting(network, hold(check_network(network), {}, {}, case.seconds))


def measure(case: Case, rounds: int, say: Callable[[str], None]) -> Outcome:
    """Predict and measure one case so many times, and return the medians."""
    setting = prepared(case)
    predicted: dict[str, list[Figures]] = {policy: [] for policy in case.policies}
    runs: dict[str, list[dict[str, Any]]] = {policy: [] for policy in case.policies}
    for number in range(1, rounds + 1):
        tell = partial(_tell, say, f"{case.name} ({number} of {rounds}): ")
        predictor = Predictor(setting, tell)
        for policy in case.policies:
            predicted[policy].append(figures(policy, predictor.predict(policy), graded=True))
        for policy in case.policies:
            tell(f"running {policy} for real")
            runs[policy].append(setting.run("local", policy))
    measured, disturbed = [], {}
    for policy, some in runs.items():
        quiet = [run for run in some if had_processor(run) >= QUIET]
        if not quiet:
            quiet = [max(some, key=had_processor)]
            disturbed[policy] = had_processor(quiet[0])
        measured.append(_median([figures(policy, run, graded=True) for run in quiet]))
    return Outcome(case.name, tuple(map(_median, predicted.values())), tuple(measured), disturbed)


def _tell(say: Callable[[str], None], before: str, text: str) -> None:
    say(before + text)


def _median(some: Sequence[Figures]) -> Figures:
    """Return the one with the median of the mean latencies."""
    middle = statistics.median_low([one.latency or 0.0 for one in some])
    return next(one for one in some if (one.latency or 0.0) == middle)


def check(outcomes: Sequence[Outcome]) -> list[str]:
    """Return which promises are not kept; an empty list where all are."""
    broken = []
    for one in outcomes:
        for policy, ratio in one.ratios().items():
            if abs(ratio - 1) > OFF:
                broken.append(f"{one.case}: {policy}: the predicted latency is {ratio:.2f} times the measured one")
        best, real = advise(one.predicted).policy, advise(one.measured).policy
        if best != real:
            broken.append(f"{one.case}: {best} was predicted to be best, and {real} is")
    return broken


def table(outcome: Outcome) -> str:
    """Return a case as Markdown."""
    lines = [
        f"### {outcome.case}\n",
        "| policy | mean latency predicted, ms | measured | ratio | utility predicted | measured |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    ratios = outcome.ratios()
    for one, real in zip(outcome.predicted, outcome.measured, strict=True):
        latencies = " | ".join(f"{1e3 * (some.latency or 0.0):,.1f}" for some in (one, real))
        utilities = " | ".join("-" if some.utility is None else f"{some.utility:.3f}" for some in (one, real))
        lines.append(f"| {one.policy} | {latencies} | {ratios[one.policy]:.2f} | {utilities} |")
    for how, some in (("predicted", outcome.predicted), ("measured", outcome.measured)):
        best = advise(some)
        lines.append(f"\nBest as {how}: {best.policy}, by a factor of {margin(some, best.policy):.2f} ({best.reason}).")
    return "\n".join(lines)


def report(cases: Sequence[Case] = CASES, rounds: int = ROUNDS) -> list[Outcome]:
    """Measure, print and return all cases."""
    print("## Predictions of `headway compare` against the engine `local`\n")
    outcomes = []
    for case in cases:
        outcomes.append(measure(case, rounds, lambda text: print(f"predictions: {text}", file=sys.stderr)))
        print(table(outcomes[-1]) + "\n", flush=True)
    return outcomes


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.predictions", description=__doc__)
    names: Mapping[str, Case] = {case.name: case for case in CASES}
    parser.add_argument("--case", nargs="+", choices=names, default=list(names), help="only these networks")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="how often all of it is done (default: %(default)s)")
    parser.add_argument("--json", type=Path, help="also write the results to this file")
    given = parser.parse_args(arguments)
    outcomes = report([names[name] for name in given.case], given.rounds)
    for one in outcomes:
        for policy, had in one.disturbed.items():
            print(f"Disturbed by others: {one.case}: {policy} had a processor for {had:.0%} of its time")
    broken = check(outcomes)
    print("\n".join(f"NOT KEPT: {one}" for one in broken) or f"All within {OFF:.0%}, and the same policies best.")
    if given.json is not None:
        given.json.write_text(json.dumps([asdict(one) for one in outcomes], indent=2) + "\n")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
