"""Predict how a network would do by several policies on the engine `local`, from a short look at each of them.

What is not known is measured first: the busiest second of the input by each policy, because plans have their price,
and calls and rounds of the engine cost less the more often they come, with all they need in the processor's caches;
and the same all at once, in long trains. Neighbouring boxes that are called as one cost less than one by one, so the
latter is measured both ways if policies differ in that.

A call of a box costs something, and each of its tuples something more; which is which shows where trains differ in
length. From the totals of both runs follow the two costs of each box; in the same way those of letting tuples in, per
round of the engine and per tuple.
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
"""Seconds of the input, the busiest, for which each policy is measured at most: when it matters which one it is."""
LONG = 1000
"""Tuples in the trains of the run in which all come at once."""

QUIET = 0.95
"""For which share of the time in which it is at work a measured run should have a processor."""
LOOKS = 3
"""How often a short run is measured if others disturb it; the least disturbed counts."""

PROCESSOR = "processor"
"""Added to the summary of a real run: for which share of the time in which it was at work it had a processor."""

Say = Callable[[str], None]
"""Told what is going on, in a few words."""
NAPS = 40
"""How often it is measured how late this machine wakes up."""
_NAP = 0.001


class Line(NamedTuple):
    """What something costs: seconds each time, and seconds for each tuple of it."""

    each: float
    per_tuple: float


class Total(NamedTuple):
    """What it has cost in a run: seconds, for so many times and so many tuples."""

    seconds: float
    times: int
    tuples: int


def fit(totals: Sequence[Total]) -> Line:
    """Return the costs that explain two totals, neither below 0; if they cannot be told apart, all is per tuple."""
    (one, times, tuples), (two, others, more) = totals
    apart = times * more - others * tuples
    seconds, many, count = one + two, times + others, tuples + more
    if not count:
        return Line(seconds / many if many else 0.0, 0.0)
    # Trains of nearly the same length say nothing about the difference.
    if abs(apart) <= 0.05 * max(times * more, others * tuples):
        return Line(0.0, seconds / count)
    each, per_tuple = (one * more - two * tuples) / apart, (times * two - others * one) / apart
    if each < 0:
        return Line(0.0, seconds / count)
    if per_tuple < 0:
        return Line(seconds / many, 0.0)
    return Line(each, per_tuple)


def model_of_runs(network: Network, timed: Mapping[str, Any], dense: Mapping[str, Any], wake: float) -> Model:
    """Return the model that the summaries of both runs tell; universal boxes cost what they say, and what comes on top.

    `wake` is how late the machine wakes up, in seconds.
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
        if said is None or isinstance(said, Constant):  # what is drawn for each tuple stays as it is
            costs[box.name] = Constant(known + line.per_tuple)
    intake = fit([Total(one["time"]["sources"], one["plans"], one["tuples_in"]) for one in both])
    # What no part of the engine counts is the loop itself.
    rest = max(0.0, timed["seconds"] - timed["idle"] - sum(timed["time"].values())) / max(1, timed["plans"])
    # Queues and plans are the policy's own; how they do with long trains says nothing about them.
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
    """Return how many seconds later than asked for a thread wakes up here, on average."""
    event, late = threading.Event(), 0
    for _ in range(naps):
        begun = stopwatch()
        event.wait(_NAP)
        late += max(0, stopwatch() - begun - round(_NAP * SECOND))
    return late / naps / SECOND


@dataclass(frozen=True, slots=True)
class Setting:
    """What is the same in all runs that are compared: a network, its input, and its tables."""

    network: Network
    held: Mapping[str, Held]
    tables: Mapping[str, Any] | None = None

    def run(self, engine: str, policy: str, inputs: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Any]:
        """Run the network by a policy, with results that go nowhere, and return the summary, and `PROCESSOR` with it.

        Raises KeyboardInterrupt if somebody pressed Ctrl-C: half a run compares with nothing.
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
        """Return the same with the busiest part of the input only."""
        return replace(self, held=busiest(self.held, seconds))


def had_processor(summary: Mapping[str, Any]) -> float:
    """Return for which share of the time in which a run was at work it had a processor."""
    return float(summary[PROCESSOR])


def fused(policy: str) -> bool:
    """Return whether a schedule lets neighbouring boxes be called as one, which changes what they cost."""
    schedule = Schedule.parse(policy)
    return schedule.unit == "superbox" and schedule.traversal == "mc"


class Predictor:
    """Simulates a setting by one policy after the other.

    With a `model`, its costs count and nothing is measured, so that predictions repeat themselves exactly. If the
    boxes cannot be run for real (`virtual`), as those of a recording, plans are timed while a little is simulated.
    """

    def __init__(self, setting: Setting, say: Say, model: Model | None = None, virtual: bool = False) -> None:
        """Prepare; nothing is run before somebody asks."""
        self._setting = setting
        self._say = say
        self._given = None if model is None else replace(model, like=LOCAL)
        self._virtual = virtual
        self._at_once: dict[bool, dict[str, Any]] = {}
        self._late: float | None = None
        self.processor = 1.0
        """The least share of the time for which a measured run had a processor."""

    def predict(self, policy: str) -> dict[str, Any]:
        """Return the summary of a simulated run by a policy."""
        model = self.model(policy)
        self._say(f"simulating {policy}")
        return self._setting.run("sim", policy, model=model)

    def model(self, policy: str) -> Model:
        """Return what is known of the costs by this policy; measures them if need be."""
        short = self._setting.busiest(MEASURED)
        if self._given is not None:
            return self._with_planning(short, policy) if self._virtual else self._given
        at_once = self._all_at_once(short, fused(policy))
        self._say(f"measuring {policy} for real, {MEASURED:g} s of the input")
        if self._late is None:
            self._late = lateness()
        return model_of_runs(self._setting.network, self._real(short, policy), at_once, self._late)

    def _real(self, short: Setting, policy: str, at_once: bool = False) -> dict[str, Any]:
        """Return the summary of a short real run, of the least disturbed of some if others want the processor too."""
        best: dict[str, Any] = {PROCESSOR: -1.0}
        for _ in range(LOOKS):
            inputs = {name: held.at_once() for name, held in short.held.items()} if at_once else None
            best = max(best, short.run(LOCAL, policy, inputs), key=had_processor)
            if had_processor(best) >= QUIET:
                break
        self.processor = min(self.processor, had_processor(best))
        return best

    def _all_at_once(self, short: Setting, as_one: bool) -> dict[str, Any]:
        """Return the summary of a real run in which trains are long; one is enough for all policies that are alike."""
        if as_one not in self._at_once:
            unit = "superbox" if as_one else "box"
            self._say(f"measuring what boxes cost, for real: all at once, by {unit}")
            self._at_once[as_one] = self._real(short, f"round-robin/{unit}/{LONG}", at_once=True)
        return self._at_once[as_one]

    def _with_planning(self, short: Setting, policy: str) -> Model:
        """Return the given model with what plans of this policy cost while a little is simulated."""
        assert self._given is not None
        self._say(f"timing plans of {policy}")
        summary = short.run("sim", policy, model=self._given)
        if not summary["plans"]:
            return self._given
        overheads = replace(self._given.overheads, scheduler=summary["real_planning"] / summary["plans"])
        return replace(self._given, overheads=overheads)
