"""Confidence intervals by hand."""

from __future__ import annotations

import math
import random

import pytest

from headway_experiments.intervals import Interval


def test_by_hand() -> None:
    interval = Interval.of([1.0, 2.0, 3.0])  # standard deviation 1, two degrees of freedom
    assert interval.mean == 2.0
    assert interval.reach == pytest.approx(4.302653 / math.sqrt(3))
    assert (interval.low, interval.high) == (2.0 - interval.reach, 2.0 + interval.reach)


def test_one_value_says_nothing() -> None:
    assert Interval.of([5.0]) == (5.0, math.inf)
    assert Interval.of([5.0, 5.0]) == (5.0, 0.0)


def test_it_covers_the_truth_as_often_as_it_says() -> None:
    rng = random.Random(1)
    trials = [Interval.of([rng.gauss(10, 3) for _ in range(5)]) for _ in range(4000)]
    covered = sum(one.low <= 10 <= one.high for one in trials) / len(trials)
    assert covered == pytest.approx(0.95, abs=0.012)


@pytest.mark.parametrize(
    ("interval", "text"),
    [
        (Interval(0.95342, 0.00213), "0.9534 ± 0.0021"),
        (Interval(118.4, 12.3), "118 ± 12"),
        (Interval(118432.1, 1234.5), "118,432 ± 1,234"),
        (Interval(2.0, 0.0), "2.000 ± 0.000"),
        (Interval(2.34567, math.inf), "2.35 (one run)"),
        (Interval(1e-7, 1e-9), "0.000000 ± 0.000000"),  # no more than six digits
    ],
)
def test_as_text(interval: Interval, text: str) -> None:
    assert str(interval) == text
