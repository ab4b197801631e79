"""Plans: what is drawn, and the networks that come of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from headway.connectors.arrivals import parse_arrivals
from headway.files import load
from headway_experiments.prb import plans


def test_ranks_by_their_shares() -> None:
    draws = np.array([0.0, 0.2, 0.5, 0.99])
    assert plans.ranks(draws, 0.0, 4) == [1, 1, 3, 4]  # a quarter each
    # 1, 1/2, 1/3, 1/4 of 25/12: up to 0.48, 0.72, 0.88, 1
    assert plans.ranks(np.array([0.4, 0.5, 0.8, 0.9, 1.0]), 1.0, 4) == [1, 2, 3, 4, 4]


def test_more_skew_never_makes_an_operator_dearer() -> None:
    draws = plans.stream_draws(1)
    assert len(draws) == 50
    even, skewed = plans.ranks(draws, 0.0), plans.ranks(draws, 0.9)
    assert all(one <= other for one, other in zip(skewed, even, strict=True))
    assert 1 <= min(even) <= max(even) <= 100
    assert sum(skewed) < sum(even) / 1.5


def test_seeds_draw_different_plans_and_each_the_same_again() -> None:
    assert plans.stream_draws(1).tolist() == plans.stream_draws(1).tolist() != plans.stream_draws(2).tolist()
    assert plans.tree_costs(1, {}) == plans.tree_costs(1, {}) != plans.tree_costs(2, {})


def test_the_costs_of_a_tree() -> None:
    levels = plans.tree_costs(3, {(4, 0): 100.0})
    assert [len(level) for level in levels] == [1, 2, 4, 8, 16, 32, 64]
    assert levels[4][0] == 100
    levels[4][0] = 5.0
    assert {cost for level in levels for cost in level} == set(range(1, 11))
    without = plans.tree_costs(3, {})
    without[4][0] = 5.0
    assert levels == without


def test_path_costs() -> None:
    assert plans.path_costs([[1], [2, 3], [4, 5, 6, 7]]) == [7, 8, 10, 11]


def test_a_dear_operator_at_depth_4_makes_4_of_64_paths_dear() -> None:
    paths = plans.path_costs(plans.tree_costs(1, {(4, 0): 1000.0}))
    assert [cost > 1000 for cost in paths] == [True] * 4 + [False] * 60


def moments(source: dict[str, Any]) -> list[int]:
    made = source["source"]["generate"]
    arrivals = parse_arrivals({"arrivals": made["arrivals"], "phases": made["phases"]}, None)
    assert arrivals is not None
    random = np.random.default_rng(made["seed"])
    due = arrivals.due(np.arange(made["count"], dtype=np.int64), random)
    assert len(due) < made["count"]  # the time ends it, not the count
    return list(due)


def test_another_gap_scales_all_arrivals() -> None:
    near, far = (moments(plans.arrivals(gap, 100, 1, 0)) for gap in (10.0, 30.0))
    assert len(near) == len(far)
    assert 70 < len(near) < 130
    assert max(near) < 1000 * 1_000_000  # 100 gaps of 10 units
    assert np.allclose(far, [3 * moment for moment in near], atol=3)


def test_arrivals_differ_by_seed_and_place() -> None:
    seeds = {plans.arrivals(10, 5, seed, place)["source"]["generate"]["seed"] for seed in (1, 2) for place in (0, 63)}
    assert len(seeds) == 4


def test_merged_streams() -> None:
    network = plans.merged_streams([1, 3], [1, 0.5], 100, 1, load=0.5)
    load(network)  # it is well formed
    assert [(box["cost"], box["selectivity"]) for box in network["boxes"].values()] == [(0.001, 1), (0.003, 0.5)]
    # A tuple of each stream is 4 units of work, so that half of the time is used if one comes in 8.
    for source in network["sources"].values():
        [[span, rate]] = source["source"]["generate"]["phases"]
        assert (span, rate) == (pytest.approx(0.4), pytest.approx(125))


def test_a_tree_takes_tuples_as_they_come() -> None:
    network = plans.query_tree([[1], [2, 3]], 10, 1)
    root = {"op": "universal", "in": ["qb1x0", "qb1x1"], "ordered": False, "cost": 0.001}
    assert network["boxes"]["qb0x0"] == root
    assert [network["boxes"][f"qb1x{at}"]["cost"] for at in (0, 1)] == [0.002, 0.003]
    assert list(network["sources"]) == ["qs0", "qs1"]


def test_a_run_in_units() -> None:
    # Alone in the system, a tuple takes the 3 units of its path.
    row = plans.tree_row([[1.0], [2.0, 2.0]], "RB", 20, 1, depth=1)
    assert row["depth"] == 1
    assert row["policy"] == "RB"
    assert float(row["response"]) > 3
    assert float(row["response"]) % 1 != 0  # in units, not in seconds
    found = plans.run_units(plans.query_tree([[1.0], [2.0, 2.0]], 20, 1, gap=100_000.0), "PRB")
    assert found["response"] == pytest.approx(3, abs=0.1)
    assert found["preemptions"] == 0
