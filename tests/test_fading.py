"""The estimator that fades: rates, and sums by place."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.catalog import HALF_LIFE
from headway.clock import MILLISECOND, SECOND
from headway.fading import Faded, Rates, left_after, slope


def _read(rates: Rates, counts: list[float], now: int) -> list[float]:
    found: list[float] = rates.read(np.array(counts, np.float64), now).tolist()
    return found


def test_nothing_is_known_before_time_has_passed() -> None:
    rates = Rates(2, 7 * SECOND, HALF_LIFE)
    assert _read(rates, [100, 5], 7 * SECOND) == [0, 0]
    assert _read(rates, [100, 5], 7 * SECOND + 9 * MILLISECOND) == [0, 0]  # too short to mean anything
    assert _read(rates, [100, 5], 8 * SECOND) == [100, 5]


@settings(deadline=None)
@given(rate=st.integers(1, 1000), gaps=st.lists(st.integers(1, 400), min_size=1, max_size=20))
def test_a_steady_rate_is_found_however_often_one_looks(rate: int, gaps: list[int]) -> None:
    rates, now = Rates(1, 0, HALF_LIFE), 0
    found = [0.0]
    for gap in gaps:
        now += gap * MILLISECOND
        found = _read(rates, [rate * now / SECOND], now)
    if now >= 10 * MILLISECOND:
        assert found == pytest.approx([rate])


def test_older_time_counts_half_after_each_half_life() -> None:
    rates = Rates(1, 0, half_life=2)
    assert _read(rates, [200], 2 * SECOND) == [100]
    # Two half-lives of silence: what came before has a quarter of its weight, 1/8, of 1/8 + 3/4 in all.
    assert _read(rates, [200], 6 * SECOND) == pytest.approx([100 * (1 / 8) / (1 / 8 + 3 / 4)])


def test_what_was_read_does_not_change_any_more() -> None:
    rates = Rates(1, 0, HALF_LIFE)
    first = rates.read(np.array([10.0]), SECOND)
    rates.read(np.array([90.0]), 2 * SECOND)
    assert first.tolist() == [10]


def test_places_fade_each_by_itself() -> None:
    faded = Faded(2, 3)
    faded.add(np.ones((2, 3)), 0.5)
    at = np.array([0, 2])
    found = faded.add_at(at, np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([0.5, 0.25]))
    assert found.tolist() == [[1.5, 2.25], [3.5, 4.25]]
    assert faded.sums.tolist() == [[1.5, 1, 2.25], [3.5, 1, 4.25]]
    assert left_after(10, 5) == 0.25


def test_a_line_through_points_that_lie_on_one() -> None:
    n = np.array([1.0, 2.0, 5.0])
    t = 3 + 2 * n
    sums = np.array([3, n.sum(), t.sum(), (n * n).sum(), (n * t).sum()])
    assert float(slope(sums)) == pytest.approx(2)
    assert np.isnan(slope(np.array([2, 8.0, 10, 32, 40])))  # both of the same size


def test_rates_go_on_in_another_network() -> None:
    before = Rates(3, 0, HALF_LIFE)
    _read(before, [10, 20, 30], SECOND)
    after = Rates(2, None, HALF_LIFE)
    after.take_over(before, np.array([1]), np.array([2]))
    assert after.latest.tolist() == [0, pytest.approx(30)]
    same = _read(before, [10, 20, 90], 2 * SECOND)
    assert _read(after, [5, 90], 2 * SECOND)[1] == pytest.approx(same[2])


def test_a_counter_that_is_new_begins_at_zero() -> None:
    before = Rates(1, 0, HALF_LIFE)
    _read(before, [1000], SECOND)
    after = Rates(2, None, HALF_LIFE)
    after.take_over(before, np.array([0]), np.array([0]))
    for at in range(2, 400):
        found = _read(after, [1000 * at, 50 * (at - 1)], at * SECOND)
    assert found == pytest.approx([1000, 50])
