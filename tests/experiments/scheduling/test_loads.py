"""Networks at a load: costs, rates and arrivals."""

from __future__ import annotations

import numpy as np
import pytest

from headway.connectors.protocol import Reader
from headway_experiments.scheduling.loads import (
    CHEAPEST,
    DEAREST,
    LOOSE,
    TIGHT,
    Moments,
    arrivals,
    chains,
    draw_costs,
    forest,
    work_of,
)


def moments_of(source: Moments) -> list[int]:
    found: list[int] = []
    while (chunk := source.read(3)) is not None:
        assert chunk.due is not None
        assert len(chunk) == len(chunk.due) <= 3
        found += chunk.due.tolist()
    return found


def test_work_of_a_tree_counts_a_box_for_each_leaf_below_it() -> None:
    costs = {(0, 0): 1.0, (1, 0): 2.0, (1, 1): 3.0}
    assert work_of(costs, depth=2, fan_out=2) == 2 * 1.0 + 2.0 + 3.0


def test_costs_come_from_the_range_and_the_seed() -> None:
    costs = draw_costs(3, 2, seed=5)
    assert len(costs) == 1 + 2 + 4
    assert all(CHEAPEST <= cost <= DEAREST for cost in costs.values())
    assert costs == draw_costs(3, 2, seed=5) != draw_costs(3, 2, seed=6)
    assert draw_costs(3, 2, seed=5, scale=10) == {key: pytest.approx(10 * cost) for key, cost in costs.items()}


def test_moments_are_a_source() -> None:
    source = Moments(np.array([0, 0, 5, 7], np.int64))
    assert isinstance(source, Reader)
    assert moments_of(source) == [0, 0, 5, 7]
    assert source.read(3) is None
    source.close()
    assert source.malformed() == []


def test_arrivals_bring_exactly_so_many_in_time_order_by_seed() -> None:
    made = {name: moments_of(one) for name, one in arrivals(["a", "b", "c"], 100, 2.0, seed=1).items()}
    assert sum(len(due) for due in made.values()) == 100
    assert all(due == sorted(due) and due[0] >= 0 and due[-1] < 2e9 for due in made.values())
    again = {name: moments_of(one) for name, one in arrivals(["a", "b", "c"], 100, 2.0, seed=1).items()}
    assert made == again


def test_a_forest_has_the_load_that_it_should_have() -> None:
    network, inputs, seconds = forest(2, 2, 3, load=0.5, tuples=60, seed=1)
    assert len(network["boxes"]) == 2 * (1 + 3)
    assert len(network["sources"]) == 2 * 3 == len(inputs)
    assert sum(len(moments_of(one)) for one in inputs.values()) == 60
    total = sum(work_of(draw_costs(2, 3, 1000 + at), 2, 3) for at in range(2)) / 6
    assert seconds == pytest.approx(60 * total / 0.5)


def test_chains_are_tight_or_loose_by_the_seed() -> None:
    network = chains(20, 5, 0.5, 40, seed=1).network
    graphs = [tuple(tuple(point) for point in output["qos"]["latency"]) for output in network["outputs"].values()]
    assert set(graphs) == {TIGHT, LOOSE}
    assert network["outputs"] == chains(20, 5, 0.9, 40, seed=1).network["outputs"]
    assert network["outputs"] != chains(20, 5, 0.5, 40, seed=2).network["outputs"]


def test_groups_come_at_all_sources_at_the_same_moments() -> None:
    loaded = chains(4, 5, 0.5, 24, seed=1, group=3)
    due = [moments_of(one) for one in loaded.inputs.values()]
    assert all(one == due[0] for one in due)
    assert len(due[0]) == 6
    assert due[0][0] == due[0][2] == 0 < due[0][3] == due[0][5]
    assert loaded.seconds == pytest.approx(2 * due[0][3] / 1e9)
