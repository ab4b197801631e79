"""Queueing theory of streams that arrive alike and have an operator each: what the simulator must come to.

Poisson streams of one rate and one processor: each stream is a class of an M/G/1 queue with a fixed service time. All
formulas are classical: Pollaczek and Khinchine for FIFO, Cobham for priorities without preemption (RB, whose priority
is 1/cost), Schrage and Miller for the shortest remaining time first (PRB, which compares what is left).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple


class _Class(NamedTuple):
    """Streams of one cost."""

    cost: float
    rate: float
    """Tuples per unit, all of them together."""
    before: float
    """The load of cheaper ones."""
    upto: float
    """The load of cheaper ones and these."""


def _classes(costs: Sequence[float], load: float) -> list[_Class]:
    rate, before = load / sum(costs), 0.0
    found = []
    for cost, members in groupby(sorted(costs)):
        together = rate * len(list(members))
        found.append(_Class(cost, together, before, before + together * cost))
        before = found[-1].upto
    return found


def _mean(classes: Sequence[_Class], responses: Sequence[float]) -> float:
    total = sum(one.rate for one in classes)
    return sum(one.rate * response for one, response in zip(classes, responses, strict=True)) / total


def _under_way(classes: Sequence[_Class]) -> float:
    """Return the mean of what is left of the service under way, none included."""
    return sum(one.rate * one.cost**2 for one in classes) / 2


def fifo(costs: Sequence[float], load: float) -> float:
    """Return the mean response time in the order of arrival."""
    classes = _classes(costs, load)
    return _under_way(classes) / (1 - load) + sum(costs) / len(costs)


def rate_based(costs: Sequence[float], load: float) -> float:
    """Return the mean response time if the cheapest waiting tuple comes next, and nobody is interrupted."""
    classes = _classes(costs, load)
    rest = _under_way(classes)
    return _mean(classes, [one.cost + rest / ((1 - one.before) * (1 - one.upto)) for one in classes])


def preemptive_rate_based(costs: Sequence[float], load: float) -> float:
    """Return the mean response time if whoever has least left is served at any moment."""
    classes = _classes(costs, load)
    responses = []
    served, reached = 0.0, 0.0  # the time that service itself takes, interrupted by all that are cheaper than the rest
    for one in classes:
        served += (one.cost - reached) / (1 - one.before)
        reached = one.cost
        # Of a dearer tuple, only the last part, as long as this class's cost, is in its way.
        rest = sum(other.rate * min(other.cost, one.cost) ** 2 for other in classes) / 2
        responses.append(rest / ((1 - one.before) * (1 - one.upto)) + served)
    return _mean(classes, responses)


EXPECTED = {"FIFO": fifo, "RB": rate_based, "PRB": preemptive_rate_based}
