"""Loss graphs from all delivered downwards."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.network.qos import Graph, QoS
from headway.shedding.losses import LINEAR, Walk, loss_graph, rising, together, walk
from tests.shedding.flows import graph, graphs


def lost(steps: Walk, share: float) -> float:
    """Return the utility lost with a share delivered."""
    return sum((one.start - max(one.end, share)) * one.slope for one in steps if one.start > share)


def rounded(steps: Walk) -> list[tuple[float, ...]]:
    return [tuple(round(number, 9) for number in one) for one in steps]


def test_pieces_from_all_delivered_downwards() -> None:
    # From 100 to 80 nothing is lost, from 80 to 50 a third of 0.3 per 10, from 50 to 0 the other 0.7.
    assert rounded(walk(graph((0, 0), (50, 0.7), (80, 1), (100, 1)))) == [(1, 0.8, 0), (0.8, 0.5, 1), (0.5, 0, 1.4)]


def test_who_says_nothing_loses_evenly() -> None:
    assert loss_graph([QoS()], 0, {}) is LINEAR
    assert rounded(walk(LINEAR)) == [(1, 0, 1)]


def test_a_graph_instead_of_its_own() -> None:
    own, other = graph((0, 0), (50, 1)), graph((0, 0), (20, 1))
    assert loss_graph([QoS(loss=own)], 0, {}) is own
    assert loss_graph([QoS(loss=own)], 0, {0: other}) is other
    assert loss_graph([QoS(loss=own)], 0, {1: other}) is own


def test_level_before_the_first_and_after_the_last_point() -> None:
    assert rounded(walk(graph((20, 0), (60, 1)))) == [(1, 0.6, 0), (0.6, 0.2, 2.5), (0.2, 0, 0)]
    assert rounded(walk(graph((40, 0.5)))) == [(1, 0, 0)]


def test_what_a_graph_says_beyond_all_and_nothing_is_left_out() -> None:
    assert rounded(walk(graph((-100, 0), (100, 1), (200, 0)))) == [(1, 0, 0.5)]


def test_points_on_a_straight_line_make_one_piece() -> None:
    assert rounded(walk(graph((0, 0), (30, 0.3), (70, 0.7), (100, 1)))) == [(1, 0, 1)]


def test_slopes_of_outputs_that_go_together_add_up() -> None:
    one, other = walk(graph((0, 0), (50, 1))), walk(graph((0, 0), (80, 0.8), (100, 1)))
    assert together([one]) == one
    assert rounded(together([one, other])) == [(1, 0.5, 1), (0.5, 0, 3)]
    third = walk(graph((0, 0), (80, 1)))
    assert rounded(together([one, third])) == [(1, 0.8, 0), (0.8, 0.5, 1.25), (0.5, 0, 3.25)]


def test_what_is_less_steep_than_before_is_taken_at_once() -> None:
    # All or nothing: after the first 10 per cent the rest costs no more, but it is behind them.
    assert rounded(rising(walk(graph((90, 0), (100, 1))))) == [(1, 0, 10)]
    # 0.5, then 0.2, then 2: the middle is taken with the first.
    steps = rising(walk(graph((0, 0), (40, 0.8), (80, 0.88), (100, 0.98))))
    assert rounded(steps) == [(1, 0.4, 0.5), (0.4, 0, 2)]


def test_better_off_with_less_counts_as_not_minding() -> None:
    assert rounded(rising(walk(graph((0, 0), (50, 1), (100, 0.5))))) == [(1, 0.5, 0), (0.5, 0, 2)]


@settings(deadline=None)
@given(graphs(), st.floats(0, 1))
def test_a_walk_loses_what_the_graph_says(points: Graph | None, share: float) -> None:
    steps = walk(points or LINEAR)
    expected = (points or LINEAR).value(100) - (points or LINEAR).value(100 * share)
    assert lost(steps, share) == pytest.approx(expected, abs=1e-9)


@settings(deadline=None)
@given(st.lists(graphs(), min_size=1, max_size=4), st.floats(0, 1))
def test_together_they_lose_the_sum(some: list[Graph | None], share: float) -> None:
    walks = [walk(one or LINEAR) for one in some]
    both = together(walks)
    assert both[0].start == 1
    assert both[-1].end == 0
    assert all(one.end == other.start for one, other in pairwise(both))
    assert lost(both, share) == pytest.approx(sum(lost(one, share) for one in walks), abs=1e-9)


@settings(deadline=None)
@given(graphs())
def test_rising_slopes_rise(points: Graph | None) -> None:
    steps = rising(walk(points or LINEAR))
    assert steps[0].start == 1
    assert steps[-1].end == 0
    assert all(one.end == other.start and one.slope < other.slope for one, other in pairwise(steps))
