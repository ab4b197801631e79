"""What `headway compare` predicts against what the engine `local` then does: mean latency and the best policy.

Three example networks, each by four policies that differ clearly: a shop whose machine is too small for some seconds
(unequal), sensors that send more than twice what can be done (overload, here without shedding), and the demo
(border-watch), whose boxes are real and whose policies differ in how many tuples a step takes.
Costs are measured first, as `headway compare` does; then every policy is simulated, and run for real.

A prediction of a latency may be off by a quarter. The time of real boxes and of the engine itself is as long as the
machine is slow at that moment, and one that shares its processors with others is slower in one minute than in the
next, by up to a third. So it is also predicted for the speed that the machine had in the real run, as boxes show it:
if that is right, a miss was the machine's. Real runs must have the machine to themselves: a policy whose run has had
no processor for more than a twentieth of the time in which it was at work is run again; its least disturbed run
counts, and if that was disturbed, too, this is said.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from headway.boxes.costs import Constant, Cost
from headway.checking import check as check_network
from headway.compare.figures import Figures, advise, figures, margin
from headway.compare.inputs import hold
from headway.compare.predicting import QUIET, Predictor, Setting, had_processor
from headway.engines.models import Model, Overheads
from headway.files import load, parse_network
from headway.network import Network

EXAMPLES = Path(__file__).parent.parent / "examples"
OFF = 0.25
"""What is promised: by which share of what is measured a mean latency may be off."""

TRIES = 5
"""How often a policy is run for real at most."""

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
    speeds: tuple[float, ...]
    """How long boxes took, as multiples of what they take in the prediction."""
    at_speed: tuple[Figures, ...]
    """What is predicted for a machine of the speed that it had when it was measured."""
    disturbed: Mapping[str, float] = field(default_factory=dict)
    """Policies that never had the machine to themselves: for which share of the time they had a processor at best."""

    def ratios(self) -> dict[str, float]:
        """Return by policy the predicted mean latency per measured one."""
        return self._ratios(self.predicted)

    def ratios_at_speed(self) -> dict[str, float]:
        """Return the same for a machine that is as fast in the prediction."""
        return self._ratios(self.at_speed)

    def _ratios(self, predicted: Sequence[Figures]) -> dict[str, float]:
        pairs = zip(predicted, self.measured, strict=True)
        return {one.policy: (one.latency or 0.0) / (real.latency or float("inf")) for one, real in pairs}


def prepared(case: Case) -> Setting:
    """Return a case's network with its input, held in memory."""
    path = EXAMPLES / case.file
    mapping = load(path).to_mapping()
    case.change(mapping)
    network = parse_network(mapping, path.parent)
    return Setting(network, hold(check_network(network), {}, {}, case.seconds))


def measure(case: Case, tries: int, say: Callable[[str], None]) -> Outcome:
    """Predict and measure one case; a policy is run for real until it had the machine to itself."""
    setting = prepared(case)
    predictor = Predictor(setting, say)
    predicted: list[Figures] = []
    measured: list[Figures] = []
    at_speed: list[Figures] = []
    speeds: list[float] = []
    disturbed: dict[str, float] = {}
    for policy in case.policies:
        model = predictor.model(policy)
        say(f"{case.name}: simulating {policy}")
        expected = setting.run("sim", policy, model=model)
        real = _undisturbed(setting, policy, tries, lambda text: say(f"{case.name}: {text}"))
        if had_processor(real) < QUIET:
            disturbed[policy] = had_processor(real)
        speeds.append(_in_boxes(real) / _in_boxes(expected))
        say(f"{case.name}: simulating {policy} at the speed that the machine had")
        again = setting.run("sim", policy, model=slower(setting.network, model, speeds[-1]))
        for some, summary in ((predicted, expected), (measured, real), (at_speed, again)):
            some.append(figures(policy, summary, graded=True))
    return Outcome(case.name, tuple(predicted), tuple(measured), tuple(speeds), tuple(at_speed), disturbed)


def _undisturbed(setting: Setting, policy: str, tries: int, say: Callable[[str], None]) -> dict[str, Any]:
    runs: list[dict[str, Any]] = []
    while len(runs) < tries and not any(had_processor(run) >= QUIET for run in runs):
        say(f"running {policy} for real ({len(runs) + 1} of at most {tries})")
        runs.append(setting.run("local", policy))
    return max(runs, key=had_processor)


def _in_boxes(summary: Mapping[str, Any]) -> float:
    return float(sum(box["seconds"] for box in summary["boxes"].values()))


def slower(network: Network, model: Model, times: float) -> Model:
    """Return a model in which everything takes so many times as long, but what universal boxes say themselves."""
    costs: dict[str, Cost] = dict(model.costs)
    for box in network.boxes:
        cost = costs.get(box.name)
        if isinstance(cost, Constant):
            said = 0.0 if box.spec.modelled is None else box.spec.modelled.cost.mean
            costs[box.name] = Constant(said + times * (cost.mean - said))
    calls = {name: times * seconds for name, seconds in model.calls.items()}
    overheads = Overheads(**{name: times * seconds for name, seconds in asdict(model.overheads).items()})
    return replace(model, costs=costs, calls=calls, overheads=overheads)


def check(outcomes: Sequence[Outcome]) -> list[str]:
    """Return which promises are not kept; an empty list where all are."""
    broken = []
    for one in outcomes:
        at_speed = one.ratios_at_speed()
        for policy, ratio in one.ratios().items():
            if abs(ratio - 1) > OFF:
                text = f"{one.case}: {policy}: the predicted latency is {ratio:.2f} times the measured one"
                broken.append(f"{text} ({at_speed[policy]:.2f} at the speed that the machine had)")
        best, real = advise(one.predicted).policy, advise(one.measured).policy
        if best != real:
            broken.append(f"{one.case}: {best} was predicted to be best, and {real} is")
    return broken


def table(outcome: Outcome) -> str:
    """Return a case as Markdown."""
    lines = [
        f"### {outcome.case}\n",
        "| policy | mean latency predicted, ms | measured | ratio | boxes took | ratio at that speed "
        "| utility predicted | measured |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    ratios, at_speed = outcome.ratios(), outcome.ratios_at_speed()
    for one, real, speed in zip(outcome.predicted, outcome.measured, outcome.speeds, strict=True):
        latencies = " | ".join(f"{1e3 * (some.latency or 0.0):,.1f}" for some in (one, real))
        utilities = " | ".join("-" if some.utility is None else f"{some.utility:.3f}" for some in (one, real))
        both = f"{ratios[one.policy]:.2f} | {speed:.2f} times as long | {at_speed[one.policy]:.2f}"
        lines.append(f"| {one.policy} | {latencies} | {both} | {utilities} |")
    for how, some in (("predicted", outcome.predicted), ("measured", outcome.measured)):
        best = advise(some)
        lines.append(f"\nBest as {how}: {best.policy}, by a factor of {margin(some, best.policy):.2f} ({best.reason}).")
    return "\n".join(lines)


def report(cases: Sequence[Case] = CASES, tries: int = TRIES) -> list[Outcome]:
    """Measure, print and return all cases."""
    print("## Predictions of `headway compare` against the engine `local`\n")
    outcomes = []
    for case in cases:
        outcomes.append(measure(case, tries, lambda text: print(f"predictions: {text}", file=sys.stderr)))
        print(table(outcomes[-1]) + "\n", flush=True)
    return outcomes


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.predictions", description=__doc__)
    names: Mapping[str, Case] = {case.name: case for case in CASES}
    parser.add_argument("--case", nargs="+", choices=names, default=list(names), help="only these networks")
    parser.add_argument("--tries", type=int, default=TRIES, help="real runs of a policy at most (default: %(default)s)")
    parser.add_argument("--json", type=Path, help="also write the results to this file")
    given = parser.parse_args(arguments)
    outcomes = report([names[name] for name in given.case], given.tries)
    for one in outcomes:
        for policy, had in one.disturbed.items():
            print(f"Disturbed by others: {one.case}: {policy} had a processor for {had:.0%} of its time")
    broken = check(outcomes)
    print(
        "\n".join(f"NOT KEPT: {one}" for one in broken)
        or f"All within {OFF:.0%} at the same speed, and the same policies best."
    )
    if given.json is not None:
        given.json.write_text(json.dumps([asdict(one) for one in outcomes], indent=2) + "\n")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
