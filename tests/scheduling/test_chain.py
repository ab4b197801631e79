"""Chain: lower envelopes worked out by hand, and against a naive one."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.errors import PolicyError
from headway.scheduling.chain import Chain, envelope
from headway.scheduling.paths import Paths
from headway.scheduling.policy import make_policy
from headway.scheduling.superboxes import superbox_units
from tests.scheduling.chains import Row, order, readings, row, rows, seen
from tests.scheduling.snapshots import replace, topology

UNIT = 1e-6


def slopes(*some: Row, sizes: list[float] | None = None) -> list[float]:
    """Return the priorities of all boxes, rounded."""
    made = Chain().priorities(Paths(rows(*some)), readings([box for one in some for box in one], sizes))
    return [round(float(one), 6) for one in made]


def test_the_plan_of_the_paper() -> None:
    # 004, figure 1. Points (0, 1), (.5, .25), (.75, .125), (1, 0): slopes .75/.5, .125/.25, .125/.25.
    assert slopes([(0.5, 0.25), (1.0, 0.5), (2.0, 0.8)]) == [1.5, 0.5, 0.5]


def test_a_box_is_worth_what_it_leads_to() -> None:
    # Points (0, 1), (1, .9), (1.9, .09), (5.9, .0882), (6.0882, 0): slopes .1, .9, .0018/.36, .0882/.3528.
    # The first two make one piece of .91/1.9; the third is flat and leads to the fourth: .09/.7128.
    found = slopes([(1.0, 0.9), (1.0, 0.1), (4.0, 0.98), (4.0, 0.5)])
    assert found == [round(0.91 / 1.9, 6)] * 2 + [round(0.09 / 0.7128, 6)] * 2


def test_a_join_may_reach_back_over_the_whole_path() -> None:
    # Slopes .1, .9, .5: the first two join to .91/1.9 = .479, which is less than the third: 1/2.08.
    assert slopes([(1.0, 0.9), (1.0, 0.1), (2.0, 0.5)]) == [round(1 / 2.08, 6)] * 3


def test_growing_tuples_wait_for_what_makes_them_small() -> None:
    # Points (0, 8), (1, 2), (2, 6), (2.5, 0): 6, then -4 and 12, together 2/1.5.
    assert slopes([(1.0, 0.5), (2.0, 1.5), (0.5 / 0.75, 1.0)], sizes=[8, 4, 8]) == [6, *[round(2 / 1.5, 6)] * 2]


def test_a_box_on_several_paths_has_the_steepest() -> None:
    # a, u: slopes 0 and 1/2 joined, 1/3.  b, u: .75 and .5 on their own. So u has .5, and a waits.
    made = topology({"a": (), "b": (), "u": ("a", "b")}, {"o": "u"})
    found = Chain().priorities(Paths(made), readings([(1.0, 1.0), (1.0, 0.25), (2.0, 0.5)]))
    assert found.tolist() == pytest.approx([1 / 3, 0.75, 0.5])


def test_steepest_first_then_oldest() -> None:
    plan = [(0.5 * UNIT, 0.25), (1.0 * UNIT, 0.5), (2.0 * UNIT, 0.8)]
    at = seen(rows(plan), readings(plan), oldest=[5, 5, 3])
    assert order(Chain(), at) == ["a0", "a2", "a1"]
    assert order(Chain(), replace(at, oldest=np.array([5, 3, 5]))) == ["a0", "a1", "a2"]
    assert order(Chain(), replace(at, ready=np.array([False, True, True]))) == ["a2", "a1"]


def test_a_superbox_counts_by_its_waiting_boxes() -> None:
    one, other = [(0.5 * UNIT, 0.25), (1.0 * UNIT, 0.5)], [(1.0 * UNIT, 0.1)]
    made = rows(one, other)  # 1.5 and 1 a microsecond in the first, 1 in the other
    at = seen(made, readings([*one, *other]), units=superbox_units(made), waiting=[1, 1, 1], oldest=[7, 7, 2])
    assert order(Chain(), at) == ["a", "b"]
    at = seen(made, readings([*one, *other]), units=superbox_units(made), waiting=[0, 1, 1], oldest=[7, 7, 2])
    assert order(Chain(), at) == ["b", "a"]


def naive(boxes: Row) -> list[float]:
    """Return the envelope's slopes by the definition: from each point to the one that is reached most steeply."""
    points, left, work = [(0.0, 1.0)], 1.0, 0.0
    for at, (cost, passed) in enumerate(boxes):
        work += left * cost
        left *= passed
        points.append((work, left if at < len(boxes) - 1 else 0.0))
    found: list[float] = []
    at = 0
    while at < len(boxes):
        x, y = points[at]
        steepest, end = max(((y - points[one][1]) / (points[one][0] - x), one) for one in range(at + 1, len(points)))
        found += [steepest] * (end - at)
        at = end
    return found


moderate = st.lists(
    st.tuples(st.integers(1, 40).map(lambda one: one / 8), st.sampled_from([0.25, 0.5, 0.75, 1.0, 1.0, 1.25, 2.0])),
    min_size=1,
    max_size=12,
)
"""Paths on which nothing becomes so small that the naive way loses it."""


@settings(deadline=None)
@given(st.lists(moderate, min_size=1, max_size=5))
def test_the_envelope_is_the_naive_one(some: list[Row]) -> None:
    found = Chain().priorities(Paths(rows(*some)), readings([box for one in some for box in one]))
    assert found.tolist() == pytest.approx([slope for one in some for slope in naive(one)], rel=1e-9)


@settings(deadline=None)
@given(st.lists(row, min_size=1, max_size=5))
def test_priorities_never_increase_along_a_path(some: list[Row]) -> None:
    found = Chain().priorities(Paths(rows(*some)), readings([box for one in some for box in one]))
    assert np.isfinite(found).all()
    at = 0
    for one in some:
        mine = found[at : at + len(one)]
        assert all(after <= before * (1 + 1e-9) for before, after in pairwise(mine))
        assert mine[-1] > 0
        at += len(one)


@settings(deadline=None)
@given(some=st.lists(moderate, min_size=1, max_size=5), rounds=st.integers(0, 3))
def test_all_paths_at_once_or_one_by_one(some: list[Row], rounds: int) -> None:
    paths = Paths(rows(*some))
    single = paths.stretches(readings([box for one in some for box in one]))
    quick, slow = envelope(single, rounds=100), envelope(single, rounds)
    assert paths.largest(slow, slow.slope).tolist() == pytest.approx(paths.largest(quick, quick.slope).tolist())


def test_a_long_path_that_joins_box_by_box() -> None:
    # Every box is flatter than the one before, and the last frees so much that many join, one more in each round.
    boxes = [(1.0 + at, 0.999) for at in range(200)] + [(1e-3, 0.5)]
    found = Chain().priorities(Paths(rows(boxes)), readings(boxes)).tolist()
    assert found == pytest.approx(naive(boxes), rel=1e-9)
    assert found.count(found[-1]) > 100


def test_no_argument() -> None:
    assert make_policy("chain") == Chain()
    with pytest.raises(PolicyError, match="takes no argument, not 'x'"):
        make_policy("chain:x")
