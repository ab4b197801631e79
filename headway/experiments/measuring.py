"""What boxes and the engine `local` cost, from two measured runs of a network.

A call of a box costs something, and each of its tuples something more; which is which shows where trains differ in
length. So a network is run twice: once as its tuples come in time, in short trains, and once with all of them at once,
in long ones. From the totals of both runs follow the two costs of each box; in the same way those of letting tuples
in, per round of the engine and per tuple.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from headway.boxes.costs import Constant, Cost
from headway.clock import SECOND, stopwatch
from headway.engines.models import LOCAL, Model, Overheads
from headway.network import Network

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


def model_of_runs(network: Network, timed: Mapping[str, Any], at_once: Mapping[str, Any], wake: float) -> Model:
    """Return the model that the summaries of both runs tell; universal boxes cost what they say, and what comes on top.

    `wake` is how late the machine wakes up, in seconds.
    """
    both = (timed, at_once)
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
