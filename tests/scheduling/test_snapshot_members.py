"""Readings of boxes become readings of units."""

from __future__ import annotations

import numpy as np

from headway.scheduling.snapshot import Members, Unit

READY = np.array([True, False, False])
WAITING = np.array([4, 0, 2], np.int64)
OLDEST = np.array([7, 99, 3], np.int64)


def _units(*boxes: tuple[int, ...]) -> tuple[Unit, ...]:
    return tuple(Unit(str(some), some, ()) for some in boxes)


def test_superboxes() -> None:
    members = Members(_units((0, 1), (1,), (0, 1, 2)))
    ready, waiting, oldest = members.gather(READY, WAITING, OLDEST)
    assert (ready.tolist(), waiting.tolist(), oldest.tolist()) == ([True, False, True], [4, 0, 6], [7, 99, 3])
    assert members.any(np.array([False, True, False])).tolist() == [True, True, True]
    assert members.any(np.array([False, False, True])).tolist() == [False, False, True]
    assert members.means(np.array([8.0, 0.0, 1.0]), WAITING).tolist() == [2.0, 0.0, 1.5]


def test_boxes() -> None:
    members = Members(_units((0,), (1,), (2,)))
    ready, waiting, oldest = members.gather(READY, WAITING, OLDEST)
    assert (ready.tolist(), waiting.tolist(), oldest.tolist()) == (READY.tolist(), WAITING.tolist(), OLDEST.tolist())
    claimed = np.array([False, True, False])
    found = members.any(claimed)
    claimed[:] = True
    assert found.tolist() == [False, True, False], "a snapshot does not change with what it was made of"
    assert members.means(np.array([8.0, 0.0, 1.0]), WAITING).tolist() == [2.0, 0.0, 0.5]


def test_no_units() -> None:
    members = Members(())
    assert len(members.any(np.zeros(0, np.bool_))) == 0
    assert len(members.means(np.zeros(0), np.zeros(0, np.int64))) == 0
