"""Segment: how paths are cut, and what segments are worth."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.errors import PolicyError
from headway.scheduling.paths import Paths
from headway.scheduling.policy import make_policy
from headway.scheduling.segment import SegmentPolicy
from tests.scheduling.chains import Row, order, readings, row, rows, seen

UNIT = 1e-6


def releases(*some: Row, sizes: list[float] | None = None) -> list[float]:
    """Return the priorities of all boxes, rounded."""
    made = SegmentPolicy().priorities(Paths(rows(*some)), readings([box for one in some for box in one], sizes))
    return [round(float(one), 6) for one in made]


def test_the_plan_of_the_paper_has_a_segment_for_each_box() -> None:
    # 004, figure 1: .75/.5, then .5/1 and, as results leave, 1/2: not larger than the one before.
    assert releases([(0.5, 0.25), (1.0, 0.5), (2.0, 0.8)]) == [1.5, 0.5, 0.5]


def test_segments_are_not_joined_further() -> None:
    # Releases .1, .9, .5: the second is larger than the first, the third is not larger than the second.
    # The first segment is worth .91/1.9 = .479, less than the second: Chain would join all three.
    assert releases([(1.0, 0.9), (1.0, 0.1), (2.0, 0.5)]) == [round(0.91 / 1.9, 6)] * 2 + [0.5]


def test_sizes_count() -> None:
    # 8 to 4 bytes for half of them: 6 a second. Then 4 to 8 bytes for all: -4/2. Then 8 bytes leave: 8/4.
    # The second and the third are a segment: .5 * (4 - 0) / (.5 * 2 + .5 * 4).
    assert releases([(1.0, 0.5), (2.0, 1.0), (4.0, 1.0)], sizes=[8, 4, 8]) == [6, *[round(2 / 3, 6)] * 2]


def test_a_segment_may_be_worth_less_than_nothing() -> None:
    # Tuples double at each box; releases -1/1, -1/2, -1/.5 and 1/1. So two segments: (1 - 4) / (1 + 2 * 2), and
    # (1 - 0) / (.5 + 2 * 1).
    assert releases([(1.0, 2.0), (2.0, 2.0), (0.5, 2.0), (1.0, 1.0)]) == [-0.6, -0.6, 0.4, 0.4]


def test_a_segment_is_run_to_its_end_before_more_is_taken_in() -> None:
    first = [(1.0 * UNIT, 0.9), (1.0 * UNIT, 0.1), (2.0 * UNIT, 0.5)]
    at = seen(rows(first), readings(first), oldest=[1, 2, 3])
    assert order(SegmentPolicy(), at) == ["a2", "a1", "a0"]
    # b0 frees .7 a microsecond, more than either segment of the other path.
    other = [(1.0 * UNIT, 0.3), (20.0 * UNIT, 0.5)]
    at = seen(rows(first, other), readings([*first, *other]))
    assert order(SegmentPolicy(), at) == ["b0", "a2", "a1", "a0", "b1"]


def test_equals_go_by_the_oldest_tuple_at_the_same_place() -> None:
    same = [(1 * UNIT, 0.5), (1 * UNIT, 0.5)]
    at = seen(rows(same, same), readings([*same, *same]), oldest=[9, 9, 4, 5])
    assert order(SegmentPolicy(), at) == ["b1", "a1", "b0", "a0"]


def cut(boxes: Row) -> list[list[int]]:
    """Return the segments of a path, box by box as the paper says it."""
    last = len(boxes) - 1
    own = [(1.0 - (passed if at < last else 0.0)) / cost for at, (cost, passed) in enumerate(boxes)]
    made = [[0]]
    for at in range(1, len(boxes)):
        if own[at] > own[at - 1]:
            made[-1].append(at)
        else:
            made.append([at])
    return made


def worth(boxes: Row, segment: list[int]) -> float:
    """Return the memory release capacity of some boxes in a row."""
    passed = [boxes[at][1] for at in segment]
    out = 0.0 if segment[-1] == len(boxes) - 1 else math.prod(passed)
    return (1.0 - out) / sum(boxes[at][0] * math.prod(passed[:place]) for place, at in enumerate(segment))


# Costs of which selectivities cannot make equal releases by rounding: powers of two.
exact = st.lists(
    st.tuples(st.sampled_from([0.25, 0.5, 1.0, 2.0, 4.0]), st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0, 1.5])),
    min_size=1,
    max_size=12,
)


@settings(deadline=None)
@given(st.lists(exact, min_size=1, max_size=4))
def test_cut_and_worth_as_the_paper_says(some: list[Row]) -> None:
    paths = Paths(rows(*some))
    boxes = readings([box for one in some for box in one])
    segments = SegmentPolicy().segments(paths.stretches(boxes))
    expected = [(one, segment) for one in some for segment in cut(one)]
    assert np.diff(segments.first, append=len(paths.box)).tolist() == [len(segment) for _, segment in expected]
    found = SegmentPolicy().priorities(paths, boxes)
    values = [worth(one, segment) for one, segment in expected for _ in segment]
    assert found.tolist() == pytest.approx(values, rel=1e-9, abs=1e-12)


@settings(deadline=None)
@given(row)
def test_always_a_number(boxes: Row) -> None:
    assert np.isfinite(SegmentPolicy().priorities(Paths(rows(boxes)), readings(boxes))).all()


def test_no_argument() -> None:
    assert make_policy("segment") == SegmentPolicy()
    with pytest.raises(PolicyError, match="takes no argument, not 'x'"):
        make_policy("segment:x")
