"""Simplified segment: two segments in a path."""

from __future__ import annotations

from itertools import chain

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.errors import PolicyError
from headway.scheduling.paths import Paths
from headway.scheduling.policy import make_policy
from headway.scheduling.segment import SegmentPolicy
from headway.scheduling.simplified_segment import SimplifiedSegment
from tests.scheduling.chains import Row, order, readings, rows, seen
from tests.scheduling.test_segment import cut, exact, worth

UNIT = 1e-6


def test_the_plan_of_the_paper_is_cut_in_two() -> None:
    # 004, figure 1: the first box .75/.5, the other two together (1 - 0) / (1 + .5 * 2).
    plan = [(0.5, 0.25), (1.0, 0.5), (2.0, 0.8)]
    assert SimplifiedSegment().priorities(Paths(rows(plan)), readings(plan)).tolist() == [1.5, 0.5, 0.5]
    # With a third box that passes little and costs little, the rest is worth more: (1 - 0) / (1 + .5 * .2).
    plan = [(0.5, 0.25), (1.0, 0.5), (0.2, 0.5), (4.0, 1.0)]
    found = SimplifiedSegment().priorities(Paths(rows(plan)), readings(plan)).tolist()
    assert found == pytest.approx([1.5, *[1 / (1 + 0.5 * 0.2 + 0.25 * 4)] * 3])
    assert SegmentPolicy().priorities(Paths(rows(plan)), readings(plan)).tolist() == pytest.approx(
        [1.5, 0.75 / 1.1, 0.75 / 1.1, 0.25]
    )


def test_the_rest_is_run_to_its_end_before_more_is_taken_in() -> None:
    plan = [(0.5 * UNIT, 0.25), (1.0 * UNIT, 0.5), (0.2 * UNIT, 0.5), (4.0 * UNIT, 1.0)]
    assert order(SimplifiedSegment(), seen(rows(plan), readings(plan))) == ["a0", "a3", "a2", "a1"]
    assert order(SegmentPolicy(), seen(rows(plan), readings(plan))) == ["a0", "a2", "a1", "a3"]


@settings(deadline=None)
@given(st.lists(exact, min_size=1, max_size=4))
def test_the_first_segment_and_all_the_rest(some: list[Row]) -> None:
    paths = Paths(rows(*some))
    boxes = readings([box for one in some for box in one])
    expected: list[tuple[Row, list[int]]] = []
    for one in some:
        first, *rest = cut(one)
        expected += [(one, first)] + [(one, list(chain(*rest)))] * bool(rest)
    segments = SimplifiedSegment().segments(paths.stretches(boxes))
    assert np.diff(segments.first, append=len(paths.box)).tolist() == [len(segment) for _, segment in expected]
    values = [worth(one, segment) for one, segment in expected for _ in segment]
    assert SimplifiedSegment().priorities(paths, boxes).tolist() == pytest.approx(values, rel=1e-9, abs=1e-12)


def test_no_argument() -> None:
    assert make_policy("simplified-segment") == SimplifiedSegment()
    with pytest.raises(PolicyError, match="takes no argument, not 'x'"):
        make_policy("simplified-segment:x")
