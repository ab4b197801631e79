"""Whose turn it is: what round robin and its weighted form share."""

from __future__ import annotations

from bisect import bisect_left
from typing import NamedTuple

from headway.scheduling.snapshot import Snapshot

STEPS = 256
"""The most steps in a plan, so that a plan in a large network does not become stale."""


class Turn(NamedTuple):
    """Whose turn it is."""

    first: int = 0
    """The unit from which on the next one is looked for."""
    passed: tuple[int, ...] = ()
    """Units that were ready in their turn, but a box of theirs was at work or about to be: they come first."""


def next_in_turn(snapshot: Snapshot, turn: Turn) -> tuple[list[int], Turn]:
    """Return the units whose turn it is, as many as the engine will serve, and whose turn it is after them.

    The first ones, as many as workers are free, have no box in common, with each other or with what is under way. If
    the engine serves more before it asks again, the others follow, and wait for their boxes.
    """
    order = in_turn(snapshot.ready.nonzero()[0].tolist(), turn)
    most = min(STEPS, snapshot.room)
    if snapshot.workers == snapshot.free == 1:  # then nothing is under way
        chosen, passed = order[:most], tuple[int, ...]()
    else:
        chosen, passed = _apart(snapshot, order, min(most, snapshot.free))
        if chosen and most > snapshot.free:
            first = set(chosen)
            chosen += [unit for unit in order if unit not in first][: most - len(chosen)]
            passed = tuple([unit for unit in passed if unit not in chosen])
    if not chosen:
        return [], turn
    return chosen, Turn((chosen[-1] + 1) % len(snapshot.units), passed)


def in_turn(ready: list[int], turn: Turn) -> list[int]:
    """Return the ready units in the order of their turns."""
    at = bisect_left(ready, turn.first)
    order = ready[at:] + ready[:at]
    if turn.passed:
        passed = set(turn.passed)
        order = [unit for unit in turn.passed if unit in passed.intersection(order)] + [
            unit for unit in order if unit not in passed
        ]
    return order


def _apart(snapshot: Snapshot, order: list[int], most: int) -> tuple[list[int], tuple[int, ...]]:
    chosen: list[int] = []
    passed: list[int] = []
    used: set[int] = set()
    for unit in order:
        if len(chosen) >= most:
            break
        boxes = snapshot.units[unit].boxes
        if snapshot.busy[unit] or (snapshot.exclusive and not used.isdisjoint(boxes)):
            passed.append(unit)
        else:
            used.update(boxes)
            chosen.append(unit)
    return chosen, tuple(passed)
