"""Traversals and spanners at run time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headway.catalog import Statistics
from headway.clock import SECOND
from headway.costs import CostModel, UnitCostModel
from headway.network.qos import Graph, QoS
from headway.scheduling.snapshot import QueueReadings, Snapshot
from headway.scheduling.superboxes import Traverser, superbox_units
from tests.scheduling.snapshots import replace, snapshot, topology

CHAIN = topology({"a": [], "b": ["a"], "c": ["b"]}, {"o": "c"})
FORK = topology({"a": [], "b": [], "c": ["a", "b"]}, {"o": "c"})
URGENT = replace(FORK, qos=(QoS(latency=Graph(((0.0, 1.0), (1.0, 1.0), (2.0, 0.0)))),))


def seen(made: Any, waiting: Sequence[int], latency: Sequence[float] = (), cost: float = 1.0) -> Snapshot:
    """Return a snapshot of superboxes."""
    count, statistics = len(made.boxes), Statistics(len(made.boxes))
    statistics.declare(np.full(count, cost), np.full(count, 0.5), np.ones(count), exact=True)
    queued = np.array(waiting, np.int64)
    alone = UnitCostModel(CostModel(made), [(box,) for box in range(count)])
    ages = np.array(latency or [0.0] * count)
    return replace(
        snapshot([True]),
        now=100 * SECOND,
        topology=made,
        units=superbox_units(made),
        box_waiting=queued,
        box_ready=queued > 0,
        read_boxes=statistics.readings,
        read_queues=lambda: QueueReadings(queued, 8 * queued, ages, ages),
        read_box_costs=lambda: alone.read(statistics.readings(), queued),
    )


def test_each_traversal_has_its_order() -> None:
    full = seen(CHAIN, [1, 1, 1])
    assert Traverser(CHAIN, "mc").order(0, full) == (0, 1, 2)
    assert Traverser(CHAIN, "ml").order(0, full) == (2, 1, 2, 0, 1, 2)


def test_the_best_follows_from_costs_and_overheads() -> None:
    best = Traverser(CHAIN, "best")
    assert best.order(0, seen(CHAIN, [1, 1, 1], cost=100.0)) == (2, 1, 2, 0, 1, 2)
    assert best.order(0, seen(CHAIN, [1, 1, 1], cost=0.01)) == (0, 1, 2)


def test_single_boxes_need_no_order() -> None:
    alone = topology({"a": []}, {"o": "a"})
    assert Traverser(alone, "ml").order(0, seen(alone, [3])) is None


def test_a_spanner_takes_the_most_urgent_boxes_and_what_follows_them() -> None:
    # The tuples at b are nearer to the end of the good zone than those at a.
    urgent = seen(URGENT, [1, 1, 0], [0.1, 0.8, 0.0], cost=0.01)
    assert Traverser(URGENT, "mc", 1).order(0, urgent) == (1, 2)
    assert Traverser(URGENT, "mc", 2).order(0, urgent) == (0, 1, 2)
    other = seen(URGENT, [1, 1, 0], [0.9, 0.2, 0.0], cost=0.01)
    assert Traverser(URGENT, "mc", 1).order(0, other) == (0, 2)
