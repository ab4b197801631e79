"""Trees of universal boxes."""

from __future__ import annotations

from typing import Any

import pytest

import headway as hw
from headway.compare.figures import mean_over_outputs
from headway_experiments.trees import run_for_summary, source, together, tree


def _box(level: int, place: int) -> dict[str, Any]:
    return {"cost": f"{level + 1}ms", "selectivity": 1}


def _leaf(place: int) -> dict[str, Any]:
    return source(rate=10, count=5, seed=place)


def test_a_tree_of_two_levels() -> None:
    sources, boxes, outputs = tree(2, 3, _box, _leaf, latency=[[0, 1], [1, 0]])
    assert list(sources) == ["qs0", "qs1", "qs2"]
    assert {name: box["in"] for name, box in boxes.items()} == {
        "qb1x0": ["qs0"],
        "qb1x1": ["qs1"],
        "qb1x2": ["qs2"],
        "qb0x0": ["qb1x0", "qb1x1", "qb1x2"],
    }
    assert boxes["qb1x2"]["cost"] == "2ms"
    assert outputs == {"qo": {"from": "qb0x0", "qos": {"latency": [[0, 1], [1, 0]]}}}


@pytest.mark.parametrize(("depth", "fan_out", "boxes", "leaves"), [(1, 5, 1, 1), (4, 1, 4, 1), (3, 2, 7, 4)])
def test_how_many(depth: int, fan_out: int, boxes: int, leaves: int) -> None:
    made = tree(depth, fan_out, _box, _leaf)
    assert (len(made[1]), len(made[0])) == (boxes, leaves)
    assert "qos" not in made[2]["qo"]


def test_several_trees_are_a_network_that_runs() -> None:
    network = together("forest", [tree(2, 2, _box, _leaf, "a"), tree(1, 1, _box, _leaf, "b")])
    hw.check(hw.load(network))
    summary = run_for_summary(network, "sim", "fifo/box/1")
    assert {name: one["tuples"] for name, one in summary["outputs"].items()} == {"ao": 10, "bo": 5}
    assert summary["boxes"]["ab1x0"]["seconds"] == pytest.approx(5 * 0.002)


def test_the_mean_counts_tuples_not_outputs() -> None:
    outputs = {
        "a": {"tuples": 3, "utility": 1.0, "latency": {"mean": 2.0}},
        "b": {"tuples": 1, "utility": 0.0, "latency": {"mean": 6.0}},
        "none": {"tuples": 0, "utility": None, "latency": {"mean": None}},
    }
    assert mean_over_outputs({"outputs": outputs}, "mean") == 3.0
    assert mean_over_outputs({"outputs": outputs}, "utility") == 0.75
