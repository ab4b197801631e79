"""Clocks."""

from __future__ import annotations

import pytest

from headway.clock import MILLISECOND, SECOND, ManualClock, WallClock, stopwatch


def test_the_wall_clock_is_a_date_that_never_goes_back() -> None:
    clock = WallClock()
    moments = [clock.now() for _ in range(1000)]
    assert moments == sorted(moments)
    assert moments[0] > 1_700_000_000 * SECOND


def test_the_wall_clock_sleeps() -> None:
    clock = WallClock()
    begun = stopwatch()
    clock.sleep(5 * MILLISECOND)
    assert stopwatch() - begun >= 4 * MILLISECOND
    clock.sleep(-SECOND)
    clock.sleep(0)


def test_a_manual_clock_moves_only_when_told() -> None:
    clock = ManualClock(7)
    assert clock.now() == clock.now() == 7
    clock.sleep(3)
    clock.sleep(-100)
    clock.advance(5)
    assert clock.now() == 15
    with pytest.raises(ValueError, match="does not go back"):
        clock.advance(-1)
