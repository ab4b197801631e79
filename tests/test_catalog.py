"""Topology and running statistics."""

from __future__ import annotations

import numpy as np
import pytest

from headway.catalog import Statistics, Topology, paths_to_outputs
from headway.qos import QoS

# a → b → d (out x), a → c → d, c (out y), e (no output)
TOPOLOGY = Topology(
    ("a", "b", "c", "d", "e"),
    ("s",),
    ("x", "y", "z"),
    (QoS(), QoS(), QoS()),
    ((), (0,), (0,), (1, 2), ()),
    ((1, 2), (3,), (3,), (), ()),
    ((0, 4),),
    (3, 2, -1),
)


def test_downstream_paths() -> None:
    assert TOPOLOGY.downstream(0) == ((0, 1, 3), (0, 2), (0, 2, 3))
    assert TOPOLOGY.downstream(3) == ((3,),)
    assert TOPOLOGY.downstream(4) == ()


def test_outputs_that_boxes_lead_to() -> None:
    assert paths_to_outputs(TOPOLOGY, range(5)) == ((0, 1), (0,), (0, 1), (0,), ())
    assert paths_to_outputs(TOPOLOGY, [4, 2]) == ((), (0, 1))


def test_sums_and_selectivity() -> None:
    statistics = Statistics(3)
    statistics.report(0, 10, 5, 1000, 80)
    statistics.report(0, 30, 5, 3000, -1)
    statistics.report(2, 0, 0, 500, 0)
    readings = statistics.readings()
    assert readings.calls.tolist() == [2, 0, 1]
    assert readings.tuples_in.tolist() == [40, 0, 0]
    assert readings.tuples_out.tolist() == [10, 0, 0]
    assert readings.busy.tolist() == [4000, 0, 500]
    assert readings.tuple_size.tolist() == [8, 0, 0]
    assert readings.selectivity.tolist() == [0.25, 1, 1]
    statistics.report(0, 1, 1, 1, 8)
    assert readings.calls.tolist() == [2, 0, 1]
    assert statistics.readings().calls.tolist() == [3, 0, 1]


@pytest.mark.parametrize("fold_every", [1, 7, 1000])
def test_the_cost_model_finds_overhead_and_cost(fold_every: int) -> None:
    statistics = Statistics(2)
    chance = np.random.default_rng(1)
    for at in range(1000):
        tuples = int(chance.integers(1, 1000))
        statistics.report(0, tuples, 0, 20_000 + 150 * tuples, 0)
        statistics.report(1, 100, 0, 5_000, 0)
        if at % fold_every == 0:
            statistics.fold()
    readings = statistics.readings()
    assert readings.overhead[0] == pytest.approx(20e-6, rel=1e-3)
    assert readings.cost[0] == pytest.approx(150e-9, rel=1e-3)
    # Trains of one size cannot tell the two apart; together they still give the cost of a call.
    assert readings.overhead[1] + 100 * readings.cost[1] == pytest.approx(5e-6, rel=1e-3)


def test_no_calls_cost_nothing() -> None:
    readings = Statistics(1).readings()
    assert (readings.overhead[0], readings.cost[0], readings.tuple_size[0]) == (0, 0, 0)
