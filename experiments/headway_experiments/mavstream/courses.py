"""Courses: the rows of one run in their order, and what checks and plots ask of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from headway_experiments.checks import Check
from headway_experiments.intervals import Interval
from headway_experiments.rows import Row, Rows, Value

Course = Sequence[Row]
NEAR = 1.05
"""What "nearly equal" means: at most so many times as much, and at least that part of it."""


class Change(NamedTuple):
    """A change of strategy, at the end of a row."""

    moment: float
    before: str
    after: str


def courses(rows: Rows, **columns: Value) -> dict[Any, Course]:
    """Return the runs with these values, by seed; raises KeyError if there is none."""
    found = rows.where(**columns)
    return {seed: list(found.where(seed=seed)) for seed in found.levels("seed")}


def between(course: Course, begin: float, end: float = float("inf")) -> Course:
    """Return the rows that begin at `begin` or later and end at `end` or earlier."""
    every = float(course[0]["moment"])
    return [
        row for row in course if begin <= float(row["moment"]) - every + 1e-6 and float(row["moment"]) <= end + 1e-6
    ]


def latency(course: Course) -> float:
    """Return the mean latency of all results, in seconds; without any, the age of what has waited longest."""
    results = sum(int(row["results"]) for row in course)
    if not results:
        return float(course[-1]["latency"])
    return sum(float(row["latency"]) * int(row["results"]) for row in course) / results


def memory(course: Course) -> float:
    """Return the mean memory, in kilobytes."""
    return sum(float(row["memory"]) for row in course) / len(course)


def looks(course: Course, interval: float) -> list[tuple[float, float, float]]:
    """Return for every interval of the optimizer when it ended, its latency and its memory."""
    ends = sorted({round(float(row["moment"]) / interval) * interval for row in course})
    found = []
    for end in ends:
        rows = between(course, end - interval, end)
        if rows and abs(float(rows[-1]["moment"]) - end) < 1e-6:
            found.append((end, latency(rows), memory(rows)))
    return found


def changes(course: Course) -> list[Change]:
    """Return the changes of strategy; one at the very end has no row after it and is not seen."""
    return [
        Change(float(one["moment"]), str(one["using"]), str(other["using"]))
        for one, other in pairwise(course)
        if one["using"] != other["using"]
    ]


def ratio(
    own: Mapping[Any, Course], other: Mapping[Any, Course], value: Callable[[Course], float], begin: float = 0.0
) -> Interval:
    """Return the mean of a value of one run over that of another with the same seed, from a moment on."""
    return Interval.of([value(between(own[seed], begin)) / value(between(other[seed], begin)) for seed in own])


def every(key: str, claim: str, found: Mapping[Any, bool], what: str) -> Check:
    """Check that something is so with every seed; `what` says what it is in a few words."""
    wrong = [seed for seed, holds in found.items() if not holds]
    text = f"{what} in {len(found) - len(wrong)} of {len(found)} runs"
    return Check(key, claim, not wrong, text + (f", not with seeds {wrong}" if wrong else ""))


def near(key: str, claim: str, value: Interval, what: str) -> Check:
    """Check that a ratio is nearly 1."""
    low, high = 1 / NEAR, NEAR
    inside = low <= value.low and value.high <= high
    return Check(
        key, claim, low <= value.mean <= high, f"{what}: {value}", inside or value.high < low or value.low > high
    )
