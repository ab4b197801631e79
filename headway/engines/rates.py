"""Rates of sources: tuples per second, lately."""

from __future__ import annotations

import numpy as np

from headway.catalog import HALF_LIFE, Floats
from headway.clock import SECOND

_LEAST = SECOND // 100
"""Below this interval a rate would be noise."""


class Rates:
    """Means over the time since the start in which older time counts less."""

    def __init__(self, count: int, start: int, half_life: float = HALF_LIFE) -> None:
        """Watch so many sources from a moment on; what they did counts half after `half_life` seconds."""
        self._half_life = half_life * SECOND
        self._rates: Floats = np.zeros(count)
        self._counts: Floats = np.zeros(count)
        self._weight = 0.0
        self._moment = start

    def read(self, counts: Floats, now: int) -> Floats:
        """Return tuples per second by source, which have had so many tuples until now."""
        passed = now - self._moment
        if passed >= _LEAST:
            left = 0.5 ** (passed / self._half_life)
            weight = self._weight * left + (1 - left)
            rates = (counts - self._counts) * (SECOND / passed)
            self._rates = (self._rates * (self._weight * left) + rates * (1 - left)) / weight
            self._weight, self._counts, self._moment = weight, counts, now
        return self._rates
