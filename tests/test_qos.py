"""QoS graphs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import NetworkError
from headway.network.qos import Graph

LATENCY = Graph.parse([[0, 1], [2, 1], [10, 0]], "q")


@pytest.mark.parametrize(("x", "y"), [(-1, 1), (0, 1), (2, 1), (6, 0.5), (10, 0), (99, 0)])
def test_value(x: float, y: float) -> None:
    assert LATENCY.value(x) == y


def test_critical_points_and_the_good_zone() -> None:
    assert LATENCY.good_until == 2
    assert list(LATENCY.critical_points) == [2]
    assert Graph.parse([[0, 0.2], [1, 0.6], [2, 1.0]], "q").good_until == math.inf
    assert Graph.parse([[0, 0], [1, 0.5], [2, 1], [3, 1], [4, 0]], "q").critical_points == (2, 3)
    assert Graph.parse([[5, 1]], "q").critical_points == ()
    assert Graph.parse([[0, 1], [1, 0.5], [2, 1], [3, 0]], "q").good_until == 2


def test_loss_may_descend() -> None:
    down = Graph.parse([[100, 1], [50, 0.2], [0, 0]], "q", descending=True)
    assert down == Graph.parse([[0, 0], [50, 0.2], [100, 1]], "q", descending=True)
    assert down.value(75) == pytest.approx(0.6)


@pytest.mark.parametrize(
    "points",
    [
        [],
        None,
        "text",
        5,
        [[0, 1], [0, 0]],
        [[1, 1], [0, 0]],
        [[0, 1, 2]],
        [[0]],
        [["0", 1]],
        [[0, True]],
        [[0, float("nan")]],
        [[float("inf"), 1]],
        [[0, 1.01]],
        [[0, -0.01]],
        [7],
        [[0, 1], [10**400, 0]],
    ],
)
def test_bad_graphs_say_where(points: object) -> None:
    with pytest.raises(NetworkError, match=r"^output 'x': "):
        Graph.parse(points, "output 'x'")


def test_whole_numbers_beyond_64_bits() -> None:
    assert Graph.parse([[0, 1], [10**20, 0]], "latency").points == ((0.0, 1.0), (1e20, 0.0))


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    xs = sorted(draw(st.sets(st.integers(-100, 100), min_size=1, max_size=6)))
    return Graph.parse([[x, draw(st.floats(0, 1))] for x in xs], "q")


@given(graph=graphs(), xs=st.lists(st.floats(-200, 200), min_size=1, max_size=20))
def test_values_are_value_and_stay_within_the_points(graph: Graph, xs: list[float]) -> None:
    many = graph.values(np.array(xs))
    assert many.tolist() == [graph.value(x) for x in xs]
    ys = [y for _, y in graph.points]
    assert all(min(ys) - 1e-12 <= y <= max(ys) + 1e-12 for y in many)
    for x, y in graph.points:
        assert graph.value(x) == y
