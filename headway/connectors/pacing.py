"""Give the tuples of any source arrival moments at a constant rate."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from headway.clock import SECOND
from headway.columns import Int64s
from headway.connectors.base import Chunk, Reader
from headway.connectors.wrapping import Wrapped

LONGEST = 2**62
"""The last moment, in nanoseconds, and the most tuples: so that sums still fit into 64 bits."""


def constant_due(start: int, count: int, rate: float) -> Int64s:
    """Return the moments of tuples start, start+1, ... at `rate` tuples per second: tuple i at i/rate."""
    moments = np.arange(start, start + count, dtype=np.float64) * (SECOND / rate)
    return whole_moments(moments)


def whole_moments(moments: npt.NDArray[np.floating[Any]]) -> Int64s:
    """Return moments in whole nanoseconds; what lies beyond LONGEST comes at its end, 146 years from now: never."""
    due: Int64s = np.minimum(np.rint(moments), LONGEST).astype(np.int64)
    return due


class PacedReader(Wrapped):
    """A source whose tuple i is due i/rate seconds after the start of the run."""

    timed = True

    def __init__(self, reader: Reader, rate: float) -> None:
        """Pace a reader at `rate` tuples per second; this object closes it."""
        super().__init__(reader)
        self._rate = rate
        self._count = 0

    def read(self, limit: int) -> Chunk | None:
        """Return the next tuples with their moments."""
        chunk = self._reader.read(limit)
        if chunk is None:
            return None
        start, self._count = self._count, self._count + len(chunk)
        return Chunk(chunk.batch, constant_due(start, len(chunk), self._rate))
