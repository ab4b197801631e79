"""Means with 95 % confidence intervals, over repetitions that differ by their seed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from scipy.special import stdtrit  # the quantiles of Student's t; scipy.stats would take a second to import

LEVEL = 0.975
"""Of each end: 2.5 % of all means lie beyond it."""


class Interval(NamedTuple):
    """A mean, and how far its 95 % confidence interval reaches on each side; infinite if there is one value only."""

    mean: float
    reach: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Interval:
        """Return the mean of independent values, at least one."""
        count, mean = len(values), sum(values) / len(values)
        if count < 2:
            return cls(mean, math.inf)
        spread = math.sqrt(sum((value - mean) ** 2 for value in values) / (count - 1) / count)
        return cls(mean, float(stdtrit(count - 1, LEVEL)) * spread)

    @property
    def low(self) -> float:
        """The interval's lower end."""
        return self.mean - self.reach

    @property
    def high(self) -> float:
        """The interval's upper end."""
        return self.mean + self.reach

    def __str__(self) -> str:
        if math.isinf(self.reach):
            return f"{self.mean:.3g} (one run)"
        # As many digits as the interval makes meaningful: 0.9534 ± 0.0021, 118 ± 12.
        digits = 3 if self.reach == 0 else max(0, 1 - math.floor(math.log10(abs(self.reach))))
        return f"{self.mean:,.{min(digits, 6)}f} ± {self.reach:,.{min(digits, 6)}f}"
