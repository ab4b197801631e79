from __future__ import annotations

from headway.engines.parts import FIRST, STRETCH, Parts


def after(call: float, cost: float, rounds: int = 40) -> int:
    """Return the length of parts after some, where a call and a tuple take so many nanoseconds."""
    parts = Parts()
    for _ in range(rounds):
        length = parts.length(0)
        parts.note(0, length, round(call + cost * length))
    return parts.length(0)


def test_cheap_tuples_make_long_parts() -> None:
    assert after(100_000, 100) >= 64_000


def test_dear_tuples_make_short_parts() -> None:
    assert after(0, 10_000_000) <= 8


def test_parts_that_are_mostly_calls_are_not_cut() -> None:
    """A call of 15 ms for tuples of 0.1 ms: in parts of a stretch half of the time would be calls."""
    assert after(15_000_000, 100_000) >= FIRST


def test_a_slow_first_call_is_forgotten() -> None:
    parts = Parts()
    parts.note(0, 1, 50 * STRETCH)
    parts.note(0, FIRST, 50 * STRETCH)
    for _ in range(30):
        parts.note(0, parts.length(0), parts.length(0) * 1000)
    assert parts.length(0) >= 4_000


def test_each_unit_has_its_own() -> None:
    parts = Parts()
    parts.note(0, FIRST, 1000)
    assert (parts.length(0), parts.length(1)) == (2 * FIRST, FIRST)


def test_a_part_that_found_little_to_do_tells_nothing() -> None:
    parts = Parts()
    parts.note(0, 3, 1000)
    assert parts.length(0) == FIRST
