"""Targets: values by hand, and laws of lines and spare."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.adaptive.goals import MEASURES, Target
from headway.adaptive.layer import METRICS
from headway.errors import PolicyError

LATENCY, MEMORY, THROUGHPUT = MEASURES["latency"], MEASURES["memory"], MEASURES["throughput"]
values = st.floats(0, 1e9)


def test_straight_between_points_and_constant_outside() -> None:
    target = Target.parse([[10, 4], [20, 2], [40, 3]], LATENCY)
    times = [0, 10, 15, 20, 30, 40, 99]
    assert [target.at(time) for time in times] == [4, 4, 3, 2, 2.5, 3, 3]


def test_pieces_of_the_paper_are_points() -> None:
    # Pieces 0 to 10 at 1 and 20 to 30 at 3: the gap is filled from its borders.
    target = Target.parse([[0, 1], [10, 1], [20, 3], [30, 3]], LATENCY)
    assert [target.at(time) for time in (5, 10, 15, 20, 31)] == [1, 1, 2, 3, 3]


def test_two_points_at_one_time_are_a_jump() -> None:
    target = Target.parse([[0, 1], [10, 1], [10, 3], [30, 3]], LATENCY)
    assert [target.at(time) for time in (9.5, 10, 20)] == [1, 3, 3]


@pytest.mark.parametrize(
    ("measure", "text", "value"),
    [
        ("latency", "500ms", 0.5),
        ("latency", 2, 2.0),
        ("memory", "10MB", 1e7),
        ("memory", "1.5 kB", 1500.0),
        ("memory", 4096, 4096.0),
        ("throughput", 100, 100.0),
        ("throughput", "100/s", 100.0),
        ("throughput", "12.5 tuples/s", 12.5),
        ("queue", 7, 7.0),
        ("utility", 0.9, 0.9),
    ],
)
def test_values_as_users_write_them(measure: str, text: object, value: float) -> None:
    assert Target.parse(text, MEASURES[measure]) == Target.constant(value)


def test_points_with_units() -> None:
    assert Target.parse([["0s", "10MB"], ["1m", "500kB"]], MEMORY).points == ((0, 1e7), (60, 5e5))


@pytest.mark.parametrize(
    ("measure", "text", "says"),
    [
        ("latency", "10MB", "unknown unit 'MB'"),
        ("latency", -1, "-1 is not a number of seconds, or a duration"),
        ("latency", True, "True is not a number of seconds"),
        ("latency", math.inf, "inf is not"),
        ("latency", None, "None is not"),
        ("memory", "5ms", "'5ms' is not a number of bytes, or a size such as '64kB'"),
        ("memory", "much", "'much' is not a number of bytes"),
        ("throughput", "5ms", "'5ms' is not a number of tuples per second"),
        ("utility", 1.5, "1.5 is not a utility from 0 to 1"),
        ("latency", [], "a target is a value, or a list of points"),
        ("latency", [[0, 1, 2]], r"a list of points \[seconds, value\]"),
        ("latency", [[0, 1], [10, "fast"]], r"point \[10, 'fast'\]: 'fast' is not a duration"),
        ("latency", [[10, 1], [0, 2]], r"times of a target's points ascend, not \[10.0, 0.0\]"),
    ],
)
def test_bad_values_are_refused(measure: str, text: object, says: str) -> None:
    with pytest.raises(PolicyError, match=says):
        Target.parse(text, MEASURES[measure])


def test_directions() -> None:
    assert LATENCY.violated(1.1, 1.0)
    assert not LATENCY.violated(1.0, 1.0)
    assert THROUGHPUT.violated(9, 10)
    assert not THROUGHPUT.violated(10, 10)
    assert {name for name, one in MEASURES.items() if one.at_most} == {"latency", "memory", "queue"}


def test_every_measure_can_be_measured() -> None:
    assert set(MEASURES) == set(METRICS)
    assert all(name == one.name for name, one in MEASURES.items())


def test_equation_2_by_hand() -> None:
    assert LATENCY.spare(1, 2) == 0.5  # the paper's example
    assert LATENCY.spare(0, 2) == 1
    assert LATENCY.spare(3, 2) == 0
    assert LATENCY.spare(0, 0) == 0
    assert LATENCY.spare(5, math.inf) == 1
    assert THROUGHPUT.spare(20, 10) == 0.5
    assert THROUGHPUT.spare(10, 10) == 0
    assert THROUGHPUT.spare(5, 10) == 0
    assert THROUGHPUT.spare(5, 0) == 1


def test_eased() -> None:
    assert LATENCY.eased(0.8, 1)
    assert not LATENCY.eased(0.81, 1)
    assert THROUGHPUT.eased(10, 10)
    assert not THROUGHPUT.eased(9, 10)


def test_texts_for_people() -> None:
    assert LATENCY.miss(1.3, 0.5) == "latency 1.3 s over its target 0.5 s"
    assert MEMORY.miss(12_345_678, 999_000) == "memory 12.3 MB over its target 999 kB"
    assert THROUGHPUT.miss(12, 2500) == "throughput 12/s under its target 2500/s"
    assert MEASURES["queue"].miss(12, 0) == "queue 12 tuples over its target 0 tuples"
    assert MEASURES["utility"].miss(0.5, 0.75) == "utility 0.5 under its target 0.75"


@settings(deadline=None)
@given(st.lists(st.tuples(st.floats(0, 1e6), values), min_size=1, max_size=6), st.floats(0, 1e6))
def test_a_target_lies_between_its_neighbours(points: list[tuple[float, float]], time: float) -> None:
    points.sort(key=lambda point: point[0])
    value = Target(tuple(points)).at(time)
    before = [y for x, y in points if x <= time][-1:]
    after = [y for x, y in points if x > time][:1]
    near = before + after
    assert min(near) - 1e-6 <= value <= max(near) + 1e-6
    if before and not after:
        assert value == before[0]


@settings(deadline=None)
@given(st.sampled_from(sorted(MEASURES)), values, values)
def test_spare_is_a_share_and_nothing_for_what_is_missed(name: str, observed: float, expected: float) -> None:
    measure = MEASURES[name]
    spare = measure.spare(observed, expected)
    assert 0 <= spare <= 1
    if measure.violated(observed, expected) or observed == expected:
        assert spare == 0


@settings(deadline=None)
@given(st.floats(0.001, 1e3), st.floats(0.001, 1e3))
def test_the_spare_of_throughput_is_that_of_the_time_per_tuple(observed: float, expected: float) -> None:
    assert THROUGHPUT.spare(observed, expected) == pytest.approx(LATENCY.spare(1 / observed, 1 / expected), abs=1e-9)


@settings(deadline=None)
@given(st.floats(0.001, 1e9), st.floats(0, 1))
def test_equation_2(expected: float, used: float) -> None:
    observed = expected * used
    assert LATENCY.spare(observed, expected) == pytest.approx((expected - observed) / expected, abs=1e-12)
