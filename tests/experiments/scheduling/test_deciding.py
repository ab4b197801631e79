"""Chains served in virtual time: worked by hand, and against the simulator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from headway.clock import MILLISECOND, SECOND
from headway.compare.figures import mean_over_outputs
from headway.network.qos import Graph
from headway_experiments.scheduling.deciding import Chains, draw_chains, serve, usual
from headway_experiments.scheduling.loads import Moments
from headway_experiments.trees import SCHEMA, run_for_summary

LINE = Graph(((0.0, 1.0), (1.0, 0.0)))
STEEP = Graph(((0.0, 1.0), (0.1, 0.0)))
MS = MILLISECOND


def test_one_tuple_waits_for_nobody() -> None:
    chains = Chains(((10 * MS, 20 * MS),), (LINE,), ((5 * MS, 0),))
    served = serve(chains, "slope-slack", 1 * MS)
    assert served.latency == pytest.approx(0.032)  # two boxes and two decisions
    assert served.utility == pytest.approx(1 - 0.032)
    assert served.ready == 1
    assert served.beside == 0


def test_the_steeper_comes_first() -> None:
    """Both arrive at once; the second application has more to lose, and is the first in spite of its number."""
    chains = Chains(((10 * MS,), (10 * MS,)), (LINE, STEEP), ((0, 0), (0, 1)))
    in_order = serve(chains, "round-robin", 0)
    assert in_order.utility == pytest.approx(((1 - 0.01) + (1 - 0.2)) / 2)
    for policy in ("slope-slack", "bucketed:20"):
        assert serve(chains, policy, 0).utility == pytest.approx(((1 - 0.02) + (1 - 0.1)) / 2)


def test_another_policy_is_timed_and_not_obeyed() -> None:
    chains = draw_chains(5, 3, 1.1, 2.0, 1, 20)
    alone, compared = serve(chains, "bucketed:1", MS), serve(chains, "bucketed:1", MS, beside="slope-slack")
    assert compared.beside > 0
    assert compared.took > 0
    assert (compared.utility, compared.latency, compared.ready) == (alone.utility, alone.latency, alone.ready)


def test_few_long_times_do_not_count() -> None:
    assert usual([]) == 0
    assert usual([10] * 95 + [10_000] * 5) == 10
    assert usual([10] * 50 + [30] * 50) == 20


def test_chains_have_the_load_they_should() -> None:
    chains = draw_chains(20, 5, 0.5, 40.0, 3, 2)
    work = sum(sum(chains.costs[application]) for _, application in chains.arrivals)
    assert work / (40 * SECOND) == pytest.approx(0.5, rel=0.05)
    assert all(0.0002 * SECOND <= cost <= 0.002 * SECOND for cost in chains.flat)
    assert {len(graph.points) for graph in chains.graphs} == {3}
    assert len(set(chains.graphs)) == 2
    assert chains == draw_chains(20, 5, 0.5, 40.0, 3, 2)
    assert chains.arrivals != draw_chains(20, 5, 0.5, 40.0, 4, 2).arrivals


@pytest.mark.parametrize("policy", ["slope-slack", "round-robin", "bucketed:20"])
def test_it_is_as_in_the_simulator(policy: str) -> None:
    chains, decision = draw_chains(8, 3, 1.3, 4.0, 1, 30), 2 * MS
    served = serve(chains, policy, decision)
    network: dict[str, Any] = {"network": "chains", "sources": {}, "boxes": {}, "outputs": {}}
    inputs = {}
    for at, costs in enumerate(chains.costs):
        due = np.array([moment for moment, application in chains.arrivals if application == at], np.int64)
        network["sources"][f"s{at}"] = {"schema": SCHEMA}
        inputs[f"s{at}"] = Moments(due)
        for level, cost in enumerate(costs):
            feeding = f"b{at}x{level - 1}" if level else f"s{at}"
            network["boxes"][f"b{at}x{level}"] = {"op": "universal", "in": feeding, "cost": cost / SECOND}
        graph = [list(point) for point in chains.graphs[at].points]
        network["outputs"][f"o{at}"] = {"from": f"b{at}x{len(costs) - 1}", "qos": {"latency": graph}}
    overheads = {"overheads": {"scheduler": decision / SECOND}}
    summary = run_for_summary(network, "sim", f"{policy}/box/1/wait:off", inputs=inputs, model=overheads)
    assert mean_over_outputs(summary, "utility") == pytest.approx(served.utility, abs=1e-3)
    assert mean_over_outputs(summary, "mean") == pytest.approx(served.latency, rel=1e-3)
