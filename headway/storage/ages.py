"""How long tuples have waited, by cursor."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from headway.clock import SECOND
from headway.columns import Int64s
from headway.storage.queues import Board, Cursor


class Ages:
    """The latencies of the tuples waiting at a board's cursors; only cursors that moved are read again."""

    def __init__(self, board: Board, cursors: Sequence[Cursor]) -> None:
        """Set up for all cursors of the board, by number."""
        self._board = board
        self._cursors = cursors
        self._arrived, self._taken, self._count, self._mean = (np.zeros(len(cursors), np.int64) for _ in range(4))

    def read(self, now: int) -> tuple[npt.NDArray[np.float64], Int64s]:
        """Return by cursor the sum of its waiting tuples' latencies, in seconds, and how many tuples wait."""
        arrived, taken = self._board.arrived.copy(), self._board.taken.copy()
        moved = np.flatnonzero((arrived != self._arrived) | (taken != self._taken))
        for at in moved.tolist():
            count, summed = self._cursors[at].stamps()
            self._count[at] = count
            self._mean[at] = summed // count if count else 0
        self._arrived, self._taken = arrived, taken
        return np.maximum(now - self._mean, 0) * (self._count / SECOND), self._count
