"""Application trees at a load: what boxes cost, the rates that make up a load, and arrivals for a span of time.

The load is the share of the processor's time that the boxes' own work needs, as in the paper. Schedulers, calls and
queues come on top of it, so that the machine is full before the load is 1.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from headway.clock import SECOND
from headway.columns import Int64s
from headway.connectors.protocol import Chunk, Malformed
from headway_experiments.trees import SCHEMA, together, tree

CHEAPEST, DEAREST = 0.0001, 0.001
"""Seconds that a tuple costs a box: drawn evenly from this range for each box."""
MEAN_COST = (CHEAPEST + DEAREST) / 2
TIGHT = ((0, 1), (0.001, 1), (1, 0))
LOOSE = ((0, 1), (4, 1), (5, 0))
"""The latency graphs of figure 11: what a result is worth, by seconds."""

Costs = Mapping[tuple[int, int], float]
"""By level and place in a tree: seconds for a tuple."""


def draw_costs(depth: int, fan_out: int, seed: int, scale: float = 1.0) -> Costs:
    """Return what the boxes of one tree cost, from the paper's range times `scale`; the same for the same seed."""
    chance = random.Random(seed)
    return {
        (level, place): scale * chance.uniform(CHEAPEST, DEAREST)
        for level in range(depth)
        for place in range(fan_out**level)
    }


def work_of(costs: Costs, depth: int, fan_out: int) -> float:
    """Return the seconds of work of a tree when one tuple has arrived at each of its leaves, all tuples passing."""
    return sum(float(fan_out ** (depth - 1 - level)) * cost for (level, _), cost in costs.items())


class Moments:
    """A source whose tuples arrive at given moments."""

    timed = True
    finite = True
    live = False

    def __init__(self, due: Int64s) -> None:
        """Take the moments, ascending: nanoseconds since the start of the run."""
        self._due = due
        self._number = 0

    def read(self, limit: int) -> Chunk | None:
        """Return the next tuples, or None at the end."""
        due = self._due[self._number : self._number + limit]
        self._number += len(due)
        return (
            Chunk(pa.RecordBatch.from_arrays([pa.array(np.ones(len(due), np.int32))], ["a"]), due) if len(due) else None
        )

    def malformed(self) -> list[Malformed]:
        """Return none."""
        return []

    def close(self) -> None:
        """Do nothing."""


def arrivals(sources: Sequence[str], tuples: int, seconds: float, seed: int) -> dict[str, Moments]:
    """Return by source what arrives: so many tuples in all, at any moment and any source alike, for so many seconds.

    That is what Poisson processes of the same rate give if together they happen to bring this number: short runs then
    have the load that they should have.
    """
    chance = np.random.default_rng(seed)
    due = np.sort(chance.integers(0, round(seconds * SECOND), tuples))
    where = chance.integers(0, len(sources), tuples)
    return {name: Moments(due[where == at]) for at, name in enumerate(sources)}


class Loaded(NamedTuple):
    """A network at a load."""

    network: dict[str, Any]
    inputs: dict[str, Moments]
    seconds: float
    """For how long tuples arrive."""


def forest(trees: int, depth: int, fan_out: int, load: float, tuples: int, seed: int) -> Loaded:
    """Return so many trees that together make up a load, with so many tuples.

    All sources have the same rate. Costs and arrivals follow from the seed.
    """
    costs = [draw_costs(depth, fan_out, 1000 * seed + at) for at in range(trees)]
    parts = [
        tree(
            depth,
            fan_out,
            lambda level, place, one=one: {"cost": one[level, place]},  # type: ignore[misc]
            lambda place: {"schema": SCHEMA},
            name=f"q{at}",
        )
        for at, one in enumerate(costs)
    ]
    network = together("trees", parts)
    mean = sum(work_of(one, depth, fan_out) for one in costs) / len(network["sources"])
    seconds = tuples * mean / load
    return Loaded(network, arrivals(list(network["sources"]), tuples, seconds, seed), seconds)


def chains(
    applications: int, depth: int, load: float, tuples: int, seed: int, scale: float = 1.0, group: int = 0
) -> Loaded:
    """Return applications of one chain each that together make up a load; every one is tight or loose by chance.

    With a `group`, that many tuples come at every source at the same moment, as often as the load wants it. Costs are
    the paper's times `scale`.
    """
    chance = random.Random(seed)
    costs = [draw_costs(depth, 1, 1000 * seed + at, scale) for at in range(applications)]
    parts = [
        tree(
            depth,
            1,
            lambda level, place, one=one: {"cost": one[level, place]},  # type: ignore[misc]
            lambda place: {"schema": SCHEMA},
            name=f"q{at}",
            latency=chance.choice((TIGHT, LOOSE)),
        )
        for at, one in enumerate(costs)
    ]
    network = together("chains", parts)
    seconds = tuples * sum(work_of(one, depth, 1) for one in costs) / applications / load
    if not group:
        return Loaded(network, arrivals(list(network["sources"]), tuples, seconds, seed), seconds)
    times = max(1, round(tuples / (group * applications)))
    every = group * sum(work_of(one, depth, 1) for one in costs) / load
    due = np.repeat(np.rint(np.arange(times) * every * SECOND).astype(np.int64), group)
    return Loaded(network, {name: Moments(due) for name in network["sources"]}, times * every)
