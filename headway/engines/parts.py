"""Parts of long steps: how many tuples are processed before somebody looks up, where load may be shed.

A part should last no longer than a stretch. What it lasts is measured, not foreseen: costs of first calls say little.
So parts double while they end soon, and are halved while they last too long, but only as long as a tuple does not
cost more in shorter ones: what is mostly calls must not be cut, or cutting makes the overload that it is to show.
"""

from __future__ import annotations

from headway.clock import SECOND

STRETCH = SECOND // 50
"""Nanoseconds that a part should last."""
FIRST = 64
"""Tuples of the first part."""
LONGEST = 1 << 22
_DEARER = 1.1
"""How many times as much a tuple may cost in a part of half the length."""


class Parts:
    """The lengths of parts, by unit."""

    def __init__(self) -> None:
        """Begin with short parts."""
        self._lengths: dict[int, int] = {}
        self._least: dict[int, int] = {}
        self._longer: dict[int, tuple[int, float]] = {}  # a part that was halved: its tuples, nanoseconds for each

    def length(self, unit: int) -> int:
        """Return how many tuples the next part may have."""
        return self._lengths.get(unit, FIRST)

    def note(self, unit: int, tuples: int, nanoseconds: int) -> None:
        """Note how long a part has lasted."""
        length = self.length(unit)
        if tuples < length:
            return  # there was not as much to do
        each = nanoseconds / tuples
        longer, less = self._longer.pop(unit, (0, 0.0))
        if longer == 2 * length and each > _DEARER * less:
            self._least[unit] = self._lengths[unit] = longer
        elif nanoseconds < STRETCH // 2:
            self._lengths[unit] = min(2 * length, LONGEST)
        elif nanoseconds > 2 * STRETCH and length // 2 >= self._least.get(unit, 1):
            self._lengths[unit] = length // 2
            self._longer[unit] = length, each
