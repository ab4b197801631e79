"""The band around a value in which a join or resample looks for partners: never too narrow."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import headway as hw
from headway.kernels.grid import band

numbers = st.floats(-1e6, 1e6) | st.integers(-500, 500).map(lambda n: n / 100)


@given(numbers, st.floats(0, 1e6) | st.integers(0, 500).map(lambda n: n / 100), st.integers(-2, 2))
@example(1.12, 1.0, 0)
def test_whoever_is_near_is_in_the_band(value: float, size: float, steps: int) -> None:
    low, high = band(np.array([value]), np.float64(size))
    for other in (value - size, value + size, round(value - size, 2), round(value + size, 2)):
        for _ in range(abs(steps)):
            other = float(np.nextafter(other, np.inf * steps))
        if abs(value - other) <= size:
            assert low[0] <= other <= high[0]


def test_values_that_are_not_finite() -> None:
    low, high = band(np.array([np.inf, -np.inf, np.finfo(np.float64).max]), np.float64(1))
    assert (high[0], low[1]) == (np.inf, -np.inf)
    assert low[0] >= np.finfo(np.float64).max
    assert high[1] <= -np.finfo(np.float64).max
    assert high[2] >= np.finfo(np.float64).max


@pytest.mark.parametrize("first", ["s", "r"])
def test_partners_at_the_edge(first: str) -> None:
    fields = {"t": "double"}
    network = {
        "network": "edge",
        "sources": {"s": {"schema": fields}, "r": {"schema": fields}},
        "boxes": {
            "pairs": {
                "op": "join",
                "in": ["s", "r"],
                "on": "true",
                "size": 1,
                "order": [{"on": "t", "slack": 2}, {"on": "t", "slack": 2}],
                "select": "left.t as t, right.t as u",
            }
        },
        "outputs": {"pairs": {"from": "pairs"}},
    }
    few, many = [{"t": 0.12}], [{"t": 1.12}, {"t": 1.13}]
    inputs = {"s": few, "r": many} if first == "s" else {"s": many, "r": few}
    rows = hw.run(network, inputs, engine="local").outputs["pairs"].to_pylist()
    assert [sorted(row.values()) for row in rows] == [[0.12, 1.12]]
