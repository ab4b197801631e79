"""The one fading estimator: sums in which older measurements lose weight, and what is derived from them.

Every recent mean in Headway is a quotient of two such sums. They fade with every call (`left` is then a constant) or
with time (`left_after` a half-life); readers need not know which.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from headway.clock import SECOND
from headway.columns import Floats, frozen

Value = TypeVar("Value", float, Floats)
Places = npt.NDArray[np.integer]

_INSTANT = SECOND // 100
"""Nanoseconds below which the rate of an interval would be noise."""
_SPREAD = 1e-9
"""The least spread of sizes, relative to their squares, for which a line can be fitted."""


def left_after(passed: float, half_life: float) -> float:
    """Return the share of a weight that is left after some time; both in the same unit."""
    left: float = 0.5 ** (passed / half_life)
    return left


def mixed(old: Value, new: Value, left: float) -> Value:
    """Return the mean with the weight `left` for `old` and the rest for `new`."""
    return old * left + new * (1 - left)


class Faded:
    """Fading sums, as an array of any shape."""

    def __init__(self, *shape: int) -> None:
        """Start at 0."""
        self.sums: Floats = np.zeros(shape)
        """As of the last addition; replaced by `add`, modified in place by `add_at`."""

    def add(self, values: Floats | Sequence[float] | Sequence[Floats], left: float) -> Floats:
        """Fade all sums to the share `left`, add `values`, and return the sums."""
        self.sums = self.sums * left + np.asarray(values, np.float64)
        return self.sums

    def add_at(self, places: Places, values: Floats, left: Floats) -> Floats:
        """Do the same only at some places of the last dimension, each with its own `left`; return these sums."""
        found: Floats = self.sums[..., places] * left + values
        self.sums[..., places] = found
        return found


class Rates:
    """Counts per second, as means over the time since the start with less weight for older time.

    Counts are spread evenly over their interval, so a steady rate is found whatever the intervals.
    """

    def __init__(self, count: int, start: int | None, half_life: float, least: int = _INSTANT) -> None:
        """Watch `count` counters from the moment `start` (ns), or from the first reading.

        `half_life` is in seconds. Intervals shorter than `least` (ns) are extended to the next reading.
        """
        self._half_life = half_life * SECOND
        self._least = least
        self._faded = Faded(count)
        self._weight = 0.0  # the part of all faded time that was watched: 1 in the long run
        self._counts: npt.NDArray[np.float64 | np.int64] = np.zeros(count)
        self._moment = start
        self.latest: Floats = frozen(np.zeros(count))
        """As last read; read-only."""

    def take_over(self, other: Rates, mine: Places, theirs: Places) -> None:
        """Continue some counters of another, at these places there; the others start at 0."""
        self._weight, self._moment = other._weight, other._moment
        self._faded.sums[mine] = other._faded.sums[theirs]
        self._counts = self._counts.astype(other._counts.dtype)
        self._counts[mine] = other._counts[theirs]
        latest = np.zeros(len(self._counts))
        latest[mine] = other.latest[theirs]
        self.latest = frozen(latest)

    def read(self, counts: npt.NDArray[np.float64 | np.int64], now: int) -> Floats:
        """Return the rates of counters with the values `counts` now; the caller must not modify that array later."""
        passed = 0 if self._moment is None else now - self._moment
        if passed >= self._least:
            left = left_after(passed, self._half_life)
            weight = mixed(self._weight, 1.0, left)
            if weight > 0:  # an instant may be so short that it has no weight
                rates: Floats = (counts - self._counts).astype(np.float64) * (SECOND / passed)
                self.latest = frozen(self._faded.add(rates * (1 - left), left) / weight)
            self._weight = weight
        if passed >= self._least or self._moment is None:
            self._counts, self._moment = counts, now
        return self.latest


def slope(sums: Floats, least: float = _SPREAD) -> Floats:
    """Return the slope of the least-squares line through points (n, t); `sums` holds weight, n, t, n*n, n*t.

    It is NaN where the sizes n are too similar to fit a line.
    """
    weight, n, t, nn, nt = sums[:5]
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = nn - n * n / weight
        found: Floats = np.where(spread > least * nn, (nt - n * t / weight) / spread, np.nan)
    return found
