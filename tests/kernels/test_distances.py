"""Distances of order values: what is near, and up to where something may be."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import headway as hw
from headway.kernels.grid import horizon, near
from tests.searching import examples

FLOATS = st.floats(-1e301, 1e301) | st.floats(-100, 100) | st.sampled_from([-1e300, 0.0, 27.0, 1e300, 0.1, 1e-300])


@examples(300)
@given(FLOATS, FLOATS, st.floats(0, 1e301) | st.sampled_from([1e300, 0.3, 5.0]))
def test_nothing_behind_the_horizon_is_near(value: float, other: float, size: float) -> None:
    (end,) = horizon(np.array([value]), size).tolist()
    if other > end:
        assert not near(np.array([other]), np.array([value]), size)[0]


def test_where_rounding_swallows_nothing_it_is_the_sum() -> None:
    assert horizon(np.array([10.0, 5.0]), 5.0).tolist() == [15.0, 10.0]
    assert 1.5 < horizon(np.array([-3.5]), 5.0)[0] < 1.5 + 1e-13, "1.5 and a little is at a distance of 5 as well"
    assert horizon(np.array([2**63 - 3, 4]), 5).tolist() == [2**63 - 1, 9]


def test_resampling_does_not_depend_on_trains_where_small_values_vanish_in_large_ones() -> None:
    network = {
        "network": "n",
        "sources": {"a": {"schema": {"d": "double", "v": "int"}}},
        "boxes": {
            "r": {
                "op": "resample",
                "in": ["a", "a"],
                "select": "min(v) as v",
                "size": 1e300,
                "order": [{"on": "d"}, {"on": "d"}],
            }
        },
        "outputs": {"o": {"from": "r"}},
    }
    rows = [(-1e300, 9), (27.0, 5), (39.0, 1), (47.0, 3)]
    found = [hw.run(network, {"a": rows}, engine="local", train=train).outputs["o"].to_pylist() for train in (1, 2, 9)]
    assert found[0] == found[1] == found[2]
