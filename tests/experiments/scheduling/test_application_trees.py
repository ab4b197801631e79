"""Application trees and the groups of tuples that feed them."""

from __future__ import annotations

import pytest

from headway.runner import run
from headway_experiments.scheduling.application_trees import groups, latency_of, run_tree


def test_groups_come_at_once_and_from_the_offset_on() -> None:
    source = groups(3, every=0.5, count=2, offset=0.2)
    network = {
        "network": "n",
        "sources": {"s": source},
        "boxes": {"b": {"op": "universal", "in": "s", "cost": 0.01}},
        "outputs": {"o": {"from": "b"}},
    }
    result = run(network, engine="sim", policy="round-robin/box", outputs={"o": None}, trace=True)
    assert result.trace is not None
    steps = [step for step in result.trace.steps if step.tuples]
    assert [step.begin for step in steps] == [200_000_000, 700_000_000]
    assert [step.tuples for step in steps] == [3, 3]


def test_the_latency_of_a_tree_can_be_worked_out() -> None:
    """Two leaves and a root, a tuple at each leaf: min-cost delivers after 3 calls and 3 or 4 tuples."""
    result = run_tree(
        2,
        2,
        lambda level, place: {"cost": 0.01},
        lambda place: groups(1, 1.0, 1),
        "sim",
        "round-robin/superbox/mc",
        model={"overheads": {"call": 0.1}},
    )
    assert latency_of(result) == pytest.approx(3 * 0.1 + 3.5 * 0.01)
