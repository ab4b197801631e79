"""Courses by hand: means, looks, changes and the checks made of them."""

from __future__ import annotations

import pytest

from headway_experiments.intervals import Interval
from headway_experiments.mavstream.courses import (
    Change,
    Course,
    between,
    changes,
    courses,
    every,
    latency,
    looks,
    memory,
    near,
    ratio,
)
from headway_experiments.rows import Row, Rows


def row(moment: float, slow: float, used: float, results: int, using: str = "a") -> Row:
    return {"seed": 1, "moment": moment, "latency": slow, "memory": used, "results": results, "using": using}


COURSE: Course = [row(1, 1, 10, 0), row(2, 3, 20, 10), row(3, 1, 30, 30, "b"), row(4, 2, 40, 10, "b")]


def test_latency_is_weighted_by_results() -> None:
    assert latency(COURSE) == pytest.approx((30 + 30 + 20) / 50)
    assert latency(COURSE[:1]) == 1, "no result: the age of what waits"
    assert memory(COURSE) == 25


def test_between_takes_whole_rows() -> None:
    assert [one["moment"] for one in between(COURSE, 1.0, 3.0)] == [2, 3]
    assert [one["moment"] for one in between(COURSE, 2.5)] == [4]


def test_looks_put_rows_together() -> None:
    assert looks(COURSE, 2.0) == [(2.0, 3.0, 15.0), (4.0, pytest.approx(50 / 40), 35.0)]
    assert [end for end, _, _ in looks(COURSE[:3], 2.0)] == [2.0], "the last interval has not ended"


def test_changes_come_at_the_end_of_a_row() -> None:
    assert changes(COURSE) == [Change(2.0, "a", "b")]
    assert changes(COURSE[2:]) == []


def test_runs_by_seed() -> None:
    rows = Rows([*COURSE, {**COURSE[0], "seed": 2}])
    assert {seed: len(course) for seed, course in courses(rows).items()} == {1: 4, 2: 1}
    with pytest.raises(KeyError):
        courses(rows, using="c")


def test_ratios_are_of_the_same_seed() -> None:
    twice = {seed: [{**one, "memory": 2 * float(one["memory"])} for one in COURSE] for seed in (1, 2)}
    assert ratio(twice, {1: COURSE, 2: COURSE}, memory, begin=2.0) == Interval(2.0, 0.0)


def test_every_names_the_seeds_that_differ() -> None:
    assert every("k", "c", {1: True, 2: True}, "so").holds
    wrong = every("k", "c", {1: True, 2: False}, "so")
    assert not wrong.holds
    assert wrong.evidence == "so in 1 of 2 runs, not with seeds [2]"


@pytest.mark.parametrize(("mean", "holds"), [(1.0, True), (1.04, True), (1.06, False), (0.9, False)])
def test_near_is_within_5_per_cent(mean: float, holds: bool) -> None:
    assert near("k", "c", Interval(mean, 0.001), "r").holds is holds
    assert not near("k", "c", Interval(mean, 0.5), "r").certain
