"""Path capacity: worked out by hand, and the order along a path."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.errors import PolicyError
from headway.scheduling.path_capacity import PathCapacity
from headway.scheduling.paths import Paths
from headway.scheduling.policy import make_policy
from tests.scheduling.chains import Row, order, readings, row, rows, seen
from tests.scheduling.snapshots import topology

UNIT = 1e-6


def test_the_capacity_of_paths() -> None:
    # a: .5 + .25 * 1 + .125 * 2 = 1 second for a tuple.  b: 2 + .5 * 4 = 4 seconds.
    some = [(0.5, 0.25), (1.0, 0.5), (2.0, 0.8)], [(2.0, 0.5), (4.0, 0.1)]
    found = PathCapacity().priorities(Paths(rows(*some)), readings([*some[0], *some[1]]))
    assert found.tolist() == [1, 1, 1, 0.25, 0.25]


def test_a_box_on_several_paths_has_the_largest() -> None:
    # The second example of the paper on rates: 30 units from O1, 60 from O4.
    made = topology({"O1": (), "O4": (), "O2": ("O1", "O4"), "O3": ("O2",)}, {"o": "O3"})
    boxes = readings([(10 * UNIT, 1.0), (40 * UNIT, 1.0), (10 * UNIT, 1.0), (10 * UNIT, 1.0)])
    assert (PathCapacity().priorities(Paths(made), boxes) * UNIT).tolist() == pytest.approx(
        [1 / 30, 1 / 60, 1 / 30, 1 / 30]
    )
    assert order(PathCapacity(), seen(made, boxes)) == ["O3", "O2", "O1", "O4"]


def test_a_path_is_run_to_its_end_before_more_is_taken_in() -> None:
    quick, slow = [(1 * UNIT, 1.0), (1 * UNIT, 1.0)], [(2 * UNIT, 1.0), (2 * UNIT, 1.0)]
    at = seen(rows(slow, quick), readings([*slow, *quick]), oldest=[1, 2, 3, 4])
    assert order(PathCapacity(), at) == ["b1", "b0", "a1", "a0"]
    at = seen(rows(slow, quick), readings([*slow, *quick]), waiting=[1, 1, 1, 0])
    assert order(PathCapacity(), at) == ["b0", "a1", "a0"]


def test_equal_paths_go_by_the_oldest_tuple_at_the_same_place() -> None:
    same = [(1 * UNIT, 1.0), (1 * UNIT, 1.0)]
    at = seen(rows(same, same), readings([*same, *same]), oldest=[9, 9, 4, 5])
    assert order(PathCapacity(), at) == ["b1", "a1", "b0", "a0"]


@settings(deadline=None)
@given(st.lists(row, min_size=1, max_size=4))
def test_the_formula_on_random_chains(some: list[Row]) -> None:
    found = PathCapacity().priorities(Paths(rows(*some)), readings([box for one in some for box in one]))
    expected: list[float] = []
    for one in some:
        passed = [selectivity for _, selectivity in one]
        seconds = sum(cost * math.prod(passed[:at]) for at, (cost, _) in enumerate(one))
        expected += [1 / seconds] * len(one)
    assert found.tolist() == pytest.approx(expected, rel=1e-9)
    assert np.isfinite(found).all()


def test_no_argument() -> None:
    assert make_policy("path-capacity") == PathCapacity()
    with pytest.raises(PolicyError, match="takes no argument, not 'x'"):
        make_policy("path-capacity:x")
