"""Thirty queries in real time: below what can be done nothing is dropped, from the first second on."""

from __future__ import annotations

import pytest

from benchmarks.thirty import RATE, Outcome, measure, report, verdicts


@pytest.mark.alone
def test_far_below_what_can_be_done_nothing_is_dropped() -> None:
    """The rate at which 22 seconds of work per second were seen, because first trains had one tuple each."""
    on, off = (measure(RATE, None, 3.0, shed) for shed in (True, False))
    assert (on.dropped, on.began) == (0, None)
    assert verdicts([on, off]) == []
    assert on.worth > 0.95


def test_verdicts() -> None:
    calm = Outcome(0.3, 300.0, True, 1.0, 1.0, 0, None, 0.5)
    off = Outcome(0.3, 300.0, False, 1.0, 1.0, 0, None, 0.5)
    assert verdicts([calm, off]) == []
    needless = Outcome(0.3, 300.0, True, 0.8, 0.0, 9, 0.5, 22.0)
    assert verdicts([needless, off]) == [
        "at 0.3 of what can be done, 9 tuples were dropped",
        "at 0.3 of what can be done, shedding is worth 0.800 and none 1.000",
    ]
    assert "| 0.3 | 300 | on | 0.800 | 0.000 | 9 | 0.5 s |" in report([needless], 1000.0)
