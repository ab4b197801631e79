"""Claims as checks: when they hold, and when that is certain."""

from __future__ import annotations

import math

import pytest

from headway_experiments.checks import about, all_of, less, more
from headway_experiments.intervals import Interval


@pytest.mark.parametrize(
    ("mean", "reach", "holds", "certain"),
    [
        (0.8, 0.1, True, True),
        (0.95, 0.1, True, False),
        (1.0, 0.0, False, True),  # as much is not less
        (1.05, 0.1, False, False),
        (1.2, 0.1, False, True),
        (0.5, math.inf, True, False),  # one run is never certain
    ],
)
def test_less_and_more(mean: float, reach: float, holds: bool, certain: bool) -> None:
    below = less("k", "below 1", Interval(mean, reach), 1.0, "a / b")
    assert (below.holds, below.certain) == (holds, certain)
    above = more("k", "above 1", Interval(2 - mean, reach), 1.0, "a / b")  # mirrored at the bound
    assert (above.holds, above.certain) == (holds, certain)


def test_the_evidence_has_the_numbers() -> None:
    check = less("k", "below 1", Interval(0.8, 0.1), 1.0, "a / b")
    assert (check.key, check.claim, check.evidence) == ("k", "below 1", "a / b: 0.80 ± 0.10")


@pytest.mark.parametrize(
    ("mean", "reach", "holds", "certain"),
    [
        (20.0, 1.0, True, True),
        (29.0, 2.0, True, False),  # up to 30
        (31.0, 2.0, False, False),
        (33.0, 2.0, False, True),
        (14.0, 0.5, True, True),  # from 13.3 on
        (13.0, 0.1, False, True),
    ],
)
def test_about(mean: float, reach: float, holds: bool, certain: bool) -> None:
    check = about("k", "about 20", Interval(mean, reach), 20.0, "per cent")
    assert (check.holds, check.certain) == (holds, certain)


def test_all_of() -> None:
    low = less("l", "below 1", Interval(0.5, 0.1), 1.0, "a")
    close = less("c", "below 1", Interval(0.95, 0.1), 1.0, "b")
    high = less("h", "below 1", Interval(1.5, 0.1), 1.0, "c")
    both = all_of("k", "all below 1", {"at 1": low, "at 2": close})
    assert both.holds
    assert not both.certain
    assert both.evidence == "at 1: a: 0.50 ± 0.10; at 2: b: 0.95 ± 0.10"
    wrong = all_of("k", "all below 1", {"at 1": low, "at 2": close, "at 3": high})
    assert not wrong.holds
    assert wrong.certain  # one that certainly does not hold is enough
    assert wrong.evidence == "not for at 3: c: 1.50 ± 0.10"
