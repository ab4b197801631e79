from __future__ import annotations

import pytest

from headway.engines.process.run import LONG, STRETCH, WHOLE, Parts


def after(call: float, cost: float, waiting: int = 100_000, rounds: int = 40) -> int:
    """Return the length of parts after some, where a call and a tuple take so many nanoseconds."""
    parts = Parts()
    for _ in range(rounds):
        taken = min(parts.length(0), waiting)
        parts.note(0, taken, round(call + cost * taken))
    return parts.length(0)


def test_what_ends_soon_is_never_cut() -> None:
    assert after(100_000, 100) == WHOLE


def test_long_steps_are_cut_into_stretches() -> None:
    assert after(0, 10_000_000) == STRETCH // 10_000_000
    assert after(1_000_000, 100_000) == pytest.approx(STRETCH // 100_000, rel=0.1)


def test_parts_that_are_mostly_calls_are_not_cut() -> None:
    """A call of 200 ms for tuples of 0.1 ms: in parts of a stretch nearly all of the time would be calls."""
    assert after(200_000_000, 100_000, waiting=4_000) >= 4_000


def test_a_slow_first_call_is_forgotten() -> None:
    parts = Parts()
    parts.note(0, 1, 50 * STRETCH)
    parts.note(0, 64, 50 * STRETCH)
    for _ in range(30):
        parts.note(0, parts.length(0), parts.length(0) * 1000)
    assert parts.length(0) >= 4_000


def test_each_unit_has_its_own() -> None:
    parts = Parts()
    parts.note(0, 100, 2 * LONG)
    assert (parts.length(0), parts.length(1)) == (25, WHOLE)


def test_a_part_that_found_little_to_do_tells_nothing() -> None:
    parts = Parts()
    parts.note(0, 100, 2 * LONG)
    parts.note(0, 3, 1000)
    parts.note(0, 0, 1000)
    assert parts.length(0) == 25
