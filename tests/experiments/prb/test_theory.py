"""Queueing theory: formulas by hand, and the simulator against them."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush

import pytest

from headway.engines.runs import RunResult
from headway_experiments.prb.plans import POLICIES, merged_streams, run_units
from headway_experiments.prb.theory import EXPECTED, fifo, preemptive_rate_based, rate_based
from tests.laws.helpers import Box, Net, mean_latency, ms

COSTS = (2.0, 5.0, 30.0)


def test_one_class_is_the_same_for_all() -> None:
    # M/D/1: cost (1 + load / (2 (1 - load)))
    for expected in EXPECTED.values():
        assert expected([4.0, 4.0], 0.5) == pytest.approx(4 * 1.5)


def test_two_classes_by_hand() -> None:
    # Costs 1 and 3, each a tuple in 5 units: load 0.2 and 0.6. Rest of the service under way: (1 + 9) / 5 / 2 = 1.
    costs = [3.0, 1.0]
    assert fifo(costs, 0.8) == pytest.approx(1 / 0.2 + 2)
    assert rate_based(costs, 0.8) == pytest.approx((1 / 0.8 + 1 + 1 / (0.8 * 0.2) + 3) / 2)
    # A cheap one meets dear ones only while 1 unit or less is left of them: (1 + 1) / 5 / 2. A dear one takes 1 unit
    # without and 2 with interruptions; before that it waits as without preemption.
    cheap, dear = 0.2 / 0.8 + 1, 1 / (0.8 * 0.2) + 1 + 2 / 0.8
    assert preemptive_rate_based(costs, 0.8) == pytest.approx((cheap + dear) / 2)


def test_each_is_better_than_the_one_before() -> None:
    first, second, third = (expected(COSTS, 0.9) for expected in EXPECTED.values())
    assert first > second > third


@pytest.fixture(scope="module")
def simulated() -> dict[str, float]:
    network = merged_streams(COSTS, [1, 1, 1], 1000, seed=1, load=0.5)
    return {policy: run_units(network, policy)["response"] for policy in EXPECTED}


@pytest.mark.parametrize("policy", EXPECTED)
def test_the_simulator_agrees(simulated: dict[str, float], policy: str) -> None:
    assert simulated[policy] == pytest.approx(EXPECTED[policy](COSTS, 0.5), rel=0.08)


def test_the_simulator_agrees_on_the_reduction(simulated: dict[str, float]) -> None:
    # Both have the same arrivals, so that the ratio is known better than either.
    expected = preemptive_rate_based(COSTS, 0.5) / rate_based(COSTS, 0.5)
    assert simulated["PRB"] / simulated["RB"] == pytest.approx(expected, rel=0.02)


# Run by run: whoever has least left is served; RB looks up only when an operator has ended, PRB at any moment.


def by_hand(arrivals: Sequence[tuple[float, int]], paths: Sequence[Sequence[float]], preemptive: bool) -> float:
    """Return the mean response time of tuples, each with its moment and the path whose operators it needs."""
    waiting: list[tuple[float, float, int, int]] = []  # what is left, its moment, its path, the next operator
    coming, now, total = sorted(arrivals), 0.0, 0.0
    while coming or waiting:
        if not waiting:
            now = max(now, coming[0][0])
        while coming and coming[0][0] <= now:
            moment, path = coming.pop(0)
            heappush(waiting, (sum(paths[path]), moment, path, 0))
        left, moment, path, at = heappop(waiting)
        end = now + left - sum(paths[path][at + 1 :])
        if preemptive and coming and coming[0][0] < end:
            heappush(waiting, (left - (coming[0][0] - now), moment, path, at))
            now = coming[0][0]
        elif at + 1 < len(paths[path]):
            heappush(waiting, (left - (end - now), moment, path, at + 1))
            now = end
        else:
            total, now = total + end - moment, end
    return total / len(arrivals)


MOMENTS = (
    (0.0, 1.5, 2.25, 30.0, 31.0, 55.5),
    (0.5, 4.0, 8.0, 33.25, 34.5),
    (1.0, 2.0, 20.0, 29.0, 50.0, 51.0, 52.0),
)
LEAVES, UPPER, ROOT = (3.03, 1.01, 8.17), (2.53, 0.71), 1.37
"""Milliseconds; sums of them are all different, so that nobody has to choose among equals."""


def run_tree(policy: str) -> RunResult:
    """Run two levels over three streams: the first two are merged, and all at the root."""
    boxes = {f"l{at}": Box((f"s{at}",), cost) for at, cost in enumerate(LEAVES)}
    boxes |= {"m0": Box(("l0", "l1"), UPPER[0], ordered=False), "m1": Box(("l2",), UPPER[1])}
    boxes |= {"root": Box(("m0", "m1"), ROOT, ordered=False)}
    net = Net({f"s{at}": ms(*moments) for at, moments in enumerate(MOMENTS)}, boxes, {"out": "root"})
    return net.run(POLICIES[policy])


@pytest.mark.parametrize("policy", ["RB", "PRB"])
def test_every_moment_is_that_of_the_shortest_rest_first(policy: str) -> None:
    arrivals = [(moment, stream) for stream, moments in enumerate(MOMENTS) for moment in moments]
    paths = [(cost, UPPER[stream // 2], ROOT) for stream, cost in enumerate(LEAVES)]
    result = run_tree(policy)
    assert mean_latency(result) == pytest.approx(by_hand(arrivals, paths, policy == "PRB"), rel=1e-9)
    assert (result.summary["preemptions"] > 0) is (policy == "PRB")


def test_preemption_makes_the_difference_here() -> None:
    assert mean_latency(run_tree("PRB")) < mean_latency(run_tree("RB"))
