"""Graphs as arrays say what graphs say."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.network.qos import Graph
from headway.scheduling.graphs import unit_graphs
from tests.scheduling.snapshots import Points, eighths, graphs, measured

some_graphs = st.lists(st.lists(st.one_of(st.none(), graphs()), max_size=3), min_size=1, max_size=8)


def gradient(graph: Graph, x: float) -> float:
    """Return the slope at x; at a point, the slope to its right."""
    steps = pairwise(graph.points)
    return next(((y1 - y0) / (x1 - x0) for (x0, y0), (x1, y1) in steps if x0 <= x < x1), 0.0)


@pytest.mark.parametrize(("x", "slope"), [(-1, 0), (0, 0), (1, 0), (2, -0.125), (9.9, -0.125), (10, 0), (11, 0)])
def test_the_gradient(x: float, slope: float) -> None:
    assert gradient(Graph.parse([[0, 1], [2, 1], [10, 0]], "q"), x) == slope
    slopes, _ = unit_graphs(measured([[((0, 1), (2, 1), (10, 0))]], [x]).layout).slopes_and_slacks(np.array([x]))
    assert slopes == pytest.approx([-slope])


@given(some=some_graphs, data=st.data())
def test_the_arrays_agree_with_the_graphs(some: list[list[Points | None]], data: st.DataObject) -> None:
    latencies = [data.draw(eighths) for _ in some]
    seen = measured(some, latencies)
    slopes, slacks = unit_graphs(seen.layout).slopes_and_slacks(np.array(latencies))
    for unit, latency, slope, slack in zip(seen.units, latencies, slopes, slacks, strict=True):
        found = [graph for at in unit.outputs if (graph := seen.topology.qos[at].latency) is not None]
        assert slope == pytest.approx(-sum(gradient(graph, latency) for graph in found), abs=1e-5)
        points = [x for graph in found for x in (*graph.critical_points, graph.good_until)]
        assert slack == min([x - latency for x in points if x > latency], default=np.inf)


def test_no_units() -> None:
    slopes, slacks = unit_graphs(measured([], []).layout).slopes_and_slacks(np.zeros(0))
    assert len(slopes) == len(slacks) == 0
