"""Query plans of the paper, and runs of them: streams that are merged, and binary trees of depth 6.

A time unit of the paper is a millisecond. Boxes that merge streams take tuples as they come (`trees`): with the order
of arrival kept, a cheap tuple would wait for a dear one that came before it, and no policy could help it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from headway.columns import Floats
from headway.compare.figures import mean_over_outputs
from headway_experiments.rows import Row
from headway_experiments.trees import SCHEMA, run_for_summary, together, tree

POLICIES = {
    "RR": "round-robin:1ms/box/1/wait:off/plan:1",
    "FIFO": "fifo/box/1/wait:off/plan:1",
    "RB": "rate-based/box/1/wait:off/plan:1",
    "PRB": "preemptive-rate-based/box/1/wait:off/plan:1",
}
LOAD = 0.9
STREAMS = 50
RANKS = 100
DEPTH = 6
LEAVES = 2**DEPTH
CHEAP = (1, 10)
"""What ordinary operators of a tree cost, the least and the most."""

LIGHT = {(0, 0): 1.0, (1, 0): 1.0, (1, 1): 1.0}
"""The operators next to the output of a tree, by level and place, at the least cost."""

Levels = Sequence[Sequence[float]]
"""By level, from the root on: what each operator costs, in units."""


def ranks(draws: Floats, exponent: float, count: int = RANKS) -> list[int]:
    """Return a rank from 1 to `count` for each number from 0 to 1: rank k with a share in proportion to k^-exponent.

    The same numbers make plans of different skew that are as alike as can be.
    """
    shares = np.arange(1, count + 1, dtype=np.float64) ** -exponent
    found = np.searchsorted(np.cumsum(shares) / shares.sum(), draws, "right")
    return [int(rank) + 1 for rank in np.minimum(found, count - 1)]


def stream_draws(seed: int) -> Floats:
    """Return the numbers from which the operators of a seed's streams are drawn."""
    return np.random.default_rng([seed, 1]).random(STREAMS)


def tree_costs(seed: int, dear: Mapping[tuple[int, int], float]) -> list[list[float]]:
    """Return what the operators of a tree cost: all alike from 1 to 10 units, but for some (level, place)."""
    random = np.random.default_rng([seed, 2])
    levels = [random.integers(CHEAP[0], CHEAP[1] + 1, 2**level).tolist() for level in range(DEPTH + 1)]
    return [
        [float(dear.get((level, place), cost)) for place, cost in enumerate(costs)]
        for level, costs in enumerate(levels)
    ]


def path_costs(levels: Levels) -> list[float]:
    """Return by leaf what a tuple costs on its whole way, in units."""
    depth = len(levels) - 1
    return [sum(levels[at][leaf >> (depth - at)] for at in range(depth + 1)) for leaf in range(2**depth)]


def arrivals(gap: float, tuples: float, seed: int, place: int) -> dict[str, Any]:
    """Return a source to which tuples come by a Poisson process for a time in which so many are expected.

    `gap` is the mean time between two, in units. Another gap scales all moments and changes nothing else.
    """
    most = int(tuples + 12 * tuples**0.5 + 20)  # never reached: it says how many moments are drawn at once
    made = {
        "arrivals": "poisson",
        "phases": [[tuples * gap / 1000, 1000 / gap]],
        "count": most,
        "seed": 1000 * seed + place,
        "fields": {"a": 1},
    }
    return {"schema": SCHEMA, "source": {"generate": made}}


def merged_streams(
    costs: Sequence[float], selectivities: Sequence[float], tuples: int, seed: int, load: float = LOAD
) -> dict[str, Any]:
    """Return a query over streams with an operator each, whose merge takes no time: each has an output of its own."""
    gap = sum(costs) / load

    def leaf(place: int) -> dict[str, Any]:
        return arrivals(gap, tuples / len(costs), seed, place)

    def box(place: int) -> dict[str, Any]:
        return {"cost": costs[place] / 1000, "selectivity": selectivities[place], "seed": seed}

    parts = [
        tree(1, 1, lambda *_, at=at: box(at), lambda _, at=at: leaf(at), f"q{at}")  # type: ignore[misc]
        for at in range(len(costs))
    ]
    return together("streams", parts)


def query_tree(levels: Levels, tuples: int, seed: int, gap: float | None = None) -> dict[str, Any]:
    """Return a binary tree with a stream at each leaf.

    `gap` is the mean time between two tuples of a stream, in units; unless given, it makes the load that of the paper.
    """
    between = gap or sum(path_costs(levels)) / LOAD
    leaves = 2 ** (len(levels) - 1)
    part = tree(
        len(levels),
        2,
        lambda level, place: {"cost": levels[level][place] / 1000},
        lambda place: arrivals(between, tuples / leaves, seed, place),
    )
    return together("tree", [part])


def run_units(network: Mapping[str, Any], policy: str, model: Mapping[str, Any] | None = None) -> dict[str, float]:
    """Run a network under a policy of POLICIES: the mean response time of its results in units, and counts."""
    summary = run_for_summary(network, "sim", POLICIES[policy], model=model)
    tuples = sum(one["tuples"] for one in summary["outputs"].values())
    return {
        "response": 1000 * mean_over_outputs(summary, "mean"),
        "results": tuples,
        "calls": summary["box_calls"],
        "plans": summary["plans"],
        "preemptions": summary["preemptions"],
    }


def tree_row(levels: Levels, policy: str, tuples: int, seed: int, **setting: float | str) -> Row:
    """Run a tree without overheads; return its row."""
    return {**setting, "policy": policy, "seed": seed, **run_units(query_tree(levels, tuples, seed), policy)}
