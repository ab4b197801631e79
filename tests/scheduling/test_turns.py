"""Whose turn it is."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.scheduling.round_robin import Turn, in_turn, next_in_turn
from headway.scheduling.snapshot import Unit
from tests.scheduling.snapshots import replace, snapshot


def test_the_turn_goes_round() -> None:
    assert in_turn([0, 2, 5], Turn(2)) == [2, 5, 0]
    assert in_turn([0, 2, 5], Turn(6)) == [0, 2, 5]
    assert in_turn([0, 2, 5], Turn(2, (0, 7))) == [0, 2, 5]


def test_nothing_ready_is_nobodys_turn() -> None:
    assert next_in_turn(snapshot([False, False]), Turn(1)) == ([], Turn(1))


def test_a_long_plan_holds_everybody() -> None:
    units = (Unit("p", (0, 1), ()), Unit("q", (1, 2), ()), Unit("r", (3,), ()))
    seen = replace(snapshot([True] * 3), units=units, workers=2, free=2)
    assert next_in_turn(seen, Turn()) == ([0, 2, 1], Turn(2))
    assert next_in_turn(replace(seen, room=2), Turn()) == ([0, 2], Turn(0, (1,)))


@settings(deadline=None)
@given(
    shapes=st.lists(st.sets(st.integers(0, 5), min_size=1, max_size=4), min_size=1, max_size=8),
    workers=st.integers(2, 4),
)
def test_whoever_shares_boxes_is_served_in_time(shapes: list[set[int]], workers: int) -> None:
    """All are always ready, and steps take one round each: nobody waits for ever.

    Whoever was passed over moves up with every round, behind at most all others; before that it may have waited for
    its turn as long.
    """
    units = tuple(Unit(f"u{at}", tuple(sorted(boxes)), ()) for at, boxes in enumerate(shapes))
    turn, waited = Turn(), np.zeros(len(units), np.int64)
    for _ in range(4 * len(units) + 3):
        seen = replace(snapshot([True] * len(units)), units=units, workers=workers, free=workers, room=workers)
        served, turn = next_in_turn(seen, turn)
        boxes = [box for unit in served for box in units[unit].boxes]
        assert served
        assert len(boxes) == len(set(boxes))
        waited += 1
        waited[served] = 0
        assert waited.max() <= 2 * len(units)
