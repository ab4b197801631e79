"""Parts of long steps: how many tuples are processed before somebody looks up, where load may be shed.

A part should last no longer than a stretch. What it lasts is measured, not foreseen: costs of first calls say little. So
parts begin short and double, as long as they end soon or hardly last longer for being twice as long: then they are calls
and not tuples, and cutting would only make more of them.
"""

from __future__ import annotations

from headway.clock import SECOND

STRETCH = SECOND // 50
"""Nanoseconds that a part should last."""
FIRST = 64
"""Tuples of the first part."""
LONGEST = 1 << 22
_LONGER = 1.5
"""How many times as long a part lasts at least if it has twice the tuples and these are what it costs."""


class Parts:
    """The lengths of parts, by unit."""

    def __init__(self) -> None:
        """Begin with short parts."""
        self._lengths: dict[int, int] = {}
        self._lasted: dict[int, tuple[int, int]] = {}  # the last full part: tuples, nanoseconds

    def length(self, unit: int) -> int:
        """Return how many tuples the next part may have."""
        return self._lengths.get(unit, FIRST)

    def note(self, unit: int, tuples: int, nanoseconds: int) -> None:
        """Note how long a part has lasted."""
        length = self.length(unit)
        if nanoseconds > 2 * STRETCH and 2 * tuples <= length:
            self._lengths[unit] = length = max(1, tuples)  # shorter than it might have been, and yet too long
        if 2 * tuples <= length:
            return  # there was not as much to do
        before, lasted = self._lasted.get(unit, (0, 0))
        cheap = bool(before) and nanoseconds < _LONGER * lasted * tuples / (2 * before) and nanoseconds < 10 * STRETCH
        if nanoseconds < STRETCH // 2 or (cheap and tuples > before):
            self._lengths[unit] = min(2 * length, LONGEST)
        elif nanoseconds > 2 * STRETCH and not cheap:
            self._lengths[unit] = max(1, length // 2)
        self._lasted[unit] = tuples, nanoseconds
