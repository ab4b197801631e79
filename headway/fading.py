"""The one estimator that fades: sums in which older things count less, and what is read from them.

Everything that Headway measures "lately" is a quotient of two such sums. They fade with every call (`left` is then a
constant) or with time (`left_after` a half-life); both are the same to those who read them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from headway.clock import SECOND
from headway.columns import Floats, frozen

Value = TypeVar("Value", float, Floats)

_INSTANT = SECOND // 100
"""Below this interval a rate would be noise."""
_SPREAD = 1e-9
"""The spread of sizes, as a share of their squares, from which on a line can be laid through them."""


def left_after(passed: float, half_life: float) -> float:
    """Return the share of a weight that is left after some time; both in the same unit."""
    left: float = 0.5 ** (passed / half_life)
    return left


def mixed(old: Value, new: Value, left: float) -> Value:
    """Return a mean of which the share `left` is old, and the rest new."""
    return old * left + new * (1 - left)


class Faded:
    """Sums, as an array of any shape."""

    def __init__(self, *shape: int) -> None:
        """Start at 0."""
        self.sums: Floats = np.zeros(shape)
        """As of the last addition; replaced by `add`, written to by `add_at`."""

    def add(self, values: Floats | Sequence[float] | Sequence[Floats], left: float) -> Floats:
        """Let all sums fade to the share `left`, add to them, and return them."""
        self.sums = self.sums * left + np.asarray(values, np.float64)
        return self.sums

    def add_at(self, places: npt.NDArray[np.integer], values: Floats, left: Floats) -> Floats:
        """Do the same at some places of the last dimension only, each with its own `left`; return these sums."""
        found: Floats = self.sums[..., places] * left + values
        self.sums[..., places] = found
        return found


class Rates:
    """Counts per second, as means over the time since the start in which older time counts less.

    What is counted in an interval is spread over it evenly, so a steady rate is found whatever the intervals.
    """

    def __init__(self, count: int, start: int | None, half_life: float, least: int = _INSTANT) -> None:
        """Watch so many counters from a moment (ns) on, or from the first reading.

        What they did counts half after `half_life` seconds. Intervals shorter than `least` (ns) wait to become longer.
        """
        self._half_life = half_life * SECOND
        self._least = least
        self._faded = Faded(count)
        self._weight = 0.0  # of all time, by its age, how much was watched: 1 in the long run
        self._counts: npt.NDArray[np.float64 | np.int64] = np.zeros(count)
        self._moment = start
        self.latest: Floats = frozen(np.zeros(count))
        """As last read; read-only."""

    def read(self, counts: npt.NDArray[np.float64 | np.int64], now: int) -> Floats:
        """Return the rates of counters that stand at `counts` now, which the caller must not change any more."""
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
    """Return the slope of the least-squares line through points (n, t) of which `sums` holds weight, n, t, n*n, n*t.

    It is NaN where the sizes n are so much alike that no line can be told.
    """
    weight, n, t, nn, nt = sums[:5]
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = nn - n * n / weight
        found: Floats = np.where(spread > least * nn, (nt - n * t / weight) / spread, np.nan)
    return found
