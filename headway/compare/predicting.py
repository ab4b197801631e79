"""Predict a network's performance with several policies on the engine `local`, from short measurements of each.

Costs that are not given are measured first: in a run of the busiest second of the input by each policy, because plans
have a cost, and calls and rounds of the engine are cheaper the more frequent they are, with warm processor caches; and
in a dense run, with the same input all at once in long trains. Fused boxes cost less than separate ones, so the dense
run is made both ways if policies differ in that.

A call of a box has a fixed cost, and a cost per tuple; runs with trains of different length show both. The totals of
the two runs give the two costs of each box, and likewise those of letting tuples in, per round of the engine and per
tuple.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from headway.boxes.costs import Constant, Cost
from headway.clock import SECOND, processor, stopwatch
from headway.compare.inputs import Held, busiest
from headway.engines.control import at_once
from headway.engines.models import LOCAL, Model, Overheads
from headway.network import Network
from headway.runner import run
from headway.scheduling.schedule import Schedule

MEASURED = 1.0
"""The most seconds of input for which each policy is measured: the busiest, when the choice of policy matters most."""
LONG = 1000
"""Tuples per train in the dense run."""

QUIET = 0.95
"""The share of its busy time for which a measured run should have a processor."""
LOOKS = 3
"""How many times at most a short run is made if other processes disturb it; the least disturbed one counts."""

PROCESSOR = "processor"
"""A key added to summaries: the share of its busy time for which a real run had a processor; 1 if simulated."""

Say = Callable[[str], None]
"""Called with short progress messages."""
NAPS = 40
"""Number of measurements of how late this machine wakes up a thread."""
_NAP = 0.001


class Line(NamedTuple):
    """A linear cost: seconds per call or round, and seconds per tuple."""

    each: float
    per_tuple: float


class Total(NamedTuple):
    """A cost measured in a run: total seconds, and the numbers of calls or rounds and of tuples."""

    seconds: float
    times: int
    tuples: int


def fit(totals: Sequence[Total]) -> Line:
    """Return the costs that explain two totals, neither below 0; if they cannot be separated, all is per tuple."""
    (one, times, tuples), (two, others, more) = totals
    apart = times * more - others * tuples
    seconds, many, count = one + two, times + others, tuples + more
    if not count:
        return Line(seconds / many if many else 0.0, 0.0)
    # Trains of nearly equal length cannot separate the two costs.
    if abs(apart) <= 0.05 * max(times * more, others * tuples):
        return Line(0.0, seconds / count)
    each, per_tuple = (one * more - two * tuples) / apart, (times * two - others * one) / apart
    if each < 0:
        return Line(0.0, seconds / count)
    if per_tuple < 0:
        return Line(seconds / many, 0.0)
    return Line(each, per_tuple)


def model_of_runs(network: Network, timed: Mapping[str, Any], dense: Mapping[str, Any], wake: float) -> Model:
    """Return the model from the summaries of both runs; universal boxes have their declared cost plus any excess.

    `wake` is how late the machine wakes up a thread, in seconds.
    """
    both = (timed, dense)
    costs: dict[str, Cost] = {}
    calls: dict[str, float] = {}
    for box in network.boxes:
        lines = [summary["boxes"][box.name] for summary in both]
        said = None if box.spec.modelled is None else box.spec.modelled.cost
        known = 0.0 if said is None else said.mean
        beyond = [max(0.0, one["seconds"] - known * one["tuples_in"]) for one in lines]
        line = fit([Total(more, one["calls"], one["tuples_in"]) for more, one in zip(beyond, lines, strict=True)])
        calls[box.name] = line.each
        if said is None or isinstance(said, Constant):  # a declared cost that is random per tuple stays as it is
            costs[box.name] = Constant(known + line.per_tuple)
    intake = fit([Total(one["time"]["sources"], one["plans"], one["tuples_in"]) for one in both])
    # Time that no part of the engine accounts for is the loop itself.
    rest = max(0.0, timed["seconds"] - timed["idle"] - sum(timed["time"].values())) / max(1, timed["plans"])
    # The costs of queues and plans depend on the policy: the dense run, by another policy, says nothing about them.
    spent, plans, box_calls = timed["time"], max(1, timed["plans"]), max(1, timed["box_calls"])
    overheads = Overheads(
        scheduler=spent["scheduler"] / plans,
        storage=(spent["storage"] + spent["sinks"]) / box_calls,
        round=intake.each + rest,
        arrival=intake.per_tuple,
        wake=wake,
    )
    return Model(costs, calls, overheads=overheads, like=LOCAL)


def lateness(naps: int = NAPS) -> float:
    """Return the mean delay, in seconds, with which a thread wakes up on this machine."""
    event, late = threading.Event(), 0
    for _ in range(naps):
        begun = stopwatch()
        event.wait(_NAP)
        late += max(0, stopwatch() - begun - round(_NAP * SECOND))
    return late / naps / SECOND


@dataclass(frozen=True, slots=True)
class Setting:
    """What all compared runs share: a network, its input, and its tables."""

    network: Network
    held: Mapping[str, Held]
    tables: Mapping[str, Any] | None = None

    def run(self, engine: str, policy: str, inputs: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Any]:
        """Run the network by a policy, discard the results, and return the summary with the key `PROCESSOR` added.

        Blocks until the run ends. Raises KeyboardInterrupt after Ctrl-C: a partial run cannot be compared.
        """
        before = processor()
        with at_once():
            result = run(
                self.network,
                inputs or {name: held.reader() for name, held in self.held.items()},
                engine=engine,
                policy=policy,
                outputs=dict.fromkeys(output.name for output in self.network.outputs),
                tables=self.tables,
                adaptive="off",  # a layer would change the policy
                **more,
            )
        if result.summary["interrupted"]:
            raise KeyboardInterrupt
        summary = dict(result.summary)
        busy = summary["seconds"] - (summary["idle"] or 0.0)
        had = (processor() - before) / SECOND
        return {**summary, PROCESSOR: min(1.0, had / busy) if engine == LOCAL and busy > 0 else 1.0}

    def busiest(self, seconds: float) -> Setting:
        """Return a setting with only the busiest part of the input, at most `seconds` long."""
        return replace(self, held=busiest(self.held, seconds))


def had_processor(summary: Mapping[str, Any]) -> float:
    """Return the share of its busy time for which a run had a processor."""
    return float(summary[PROCESSOR])


def fused(policy: str) -> bool:
    """Return whether a schedule allows fusion of neighbouring boxes, which changes their costs."""
    schedule = Schedule.parse(policy)
    return schedule.unit == "superbox" and schedule.traversal == "mc"


class Predictor:
    """Predicts a setting's summary for one policy at a time.

    With a `model`, its costs are used and nothing is measured, so that predictions are exactly reproducible. If the
    boxes cannot be run for real (`virtual`), such as those of a recording, only planning is timed, in a short
    simulation.
    """

    def __init__(self, setting: Setting, say: Say, model: Model | None = None, virtual: bool = False) -> None:
        """Prepare; nothing is run yet."""
        self._setting = setting
        self._say = say
        self._given = None if model is None else replace(model, like=LOCAL)
        self._virtual = virtual
        self._at_once: dict[bool, dict[str, Any]] = {}
        self._late: float | None = None
        self.processor = 1.0
        """The smallest share of its busy time for which any measured run had a processor."""

    def predict(self, policy: str) -> dict[str, Any]:
        """Return the summary of a simulated run by a policy."""
        model = self.model(policy)
        self._say(f"simulating {policy}")
        return self._setting.run("sim", policy, model=model)

    def model(self, policy: str) -> Model:
        """Return the cost model for a policy; runs the measurements that it needs."""
        short = self._setting.busiest(MEASURED)
        if self._given is not None:
            return self._with_planning(short, policy) if self._virtual else self._given
        at_once = self._all_at_once(short, fused(policy))
        self._say(f"measuring {policy} for real, {MEASURED:g} s of the input")
        if self._late is None:
            self._late = lateness()
        return model_of_runs(self._setting.network, self._real(short, policy), at_once, self._late)

    def _real(self, short: Setting, policy: str, at_once: bool = False) -> dict[str, Any]:
        """Return the summary of a short real run; repeated if disturbed by other processes (see `LOOKS`)."""
        best: dict[str, Any] = {PROCESSOR: -1.0}
        for _ in range(LOOKS):
            inputs = {name: held.at_once() for name, held in short.held.items()} if at_once else None
            best = max(best, short.run(LOCAL, policy, inputs), key=had_processor)
            if had_processor(best) >= QUIET:
                break
        self.processor = min(self.processor, had_processor(best))
        return best

    def _all_at_once(self, short: Setting, as_one: bool) -> dict[str, Any]:
        """Return the summary of the dense run, made once for all policies with fusion, and once for those without."""
        if as_one not in self._at_once:
            unit = "superbox" if as_one else "box"
            self._say(f"measuring what boxes cost, for real: all at once, by {unit}")
            self._at_once[as_one] = self._real(short, f"round-robin/{unit}/{LONG}", at_once=True)
        return self._at_once[as_one]

    def _with_planning(self, short: Setting, policy: str) -> Model:
        """Return the given model with the cost of this policy's plans, timed in a short simulation."""
        assert self._given is not None
        self._say(f"timing plans of {policy}")
        summary = short.run("sim", policy, model=self._given)
        if not summary["plans"]:
            return self._given
        overheads = replace(self._given.overheads, scheduler=summary["real_planning"] / summary["plans"])
        return replace(self._given, overheads=overheads)
