"""Means with 95 % confidence intervals, over repetitions that differ by their seed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

STUDENT = (
    *(12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23),
    *(2.20, 2.18, 2.16, 2.14, 2.13, 2.12, 2.11, 2.10, 2.09, 2.09),
)
"""By degrees of freedom, from 1: the 97.5 % quantile of Student's t; the last one, a little wide, also for more."""


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
        return cls(mean, STUDENT[min(count - 1, len(STUDENT)) - 1] * spread)

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
