"""Parts of long steps: how many tuples are processed before somebody looks up, where load may be shed.

A step that lasts no longer than a look may be away is never cut: as long as nothing is dropped, a run should be the
same as without shedding. What a step lasts is measured, not foreseen: costs of first calls say little. One that lasted
longer is cut the next time into parts of a stretch, but only as long as a tuple does not cost more in them: what is
mostly calls must not be cut, or cutting makes the overload that it is to show.
"""

from __future__ import annotations

from headway.clock import SECOND

STRETCH = SECOND // 4
"""Nanoseconds that a part should last, where a step is cut."""
LONG = 2 * STRETCH
"""Nanoseconds up to which a step is not cut."""
WHOLE = 1 << 22
"""Tuples of a step that is not cut: more than any."""
_GROW = 8
"""How many times longer than the last one a part may be."""
_DEARER = 1.2
"""How many times as much a tuple may cost in shorter parts."""


class Parts:
    """The lengths of parts, by unit."""

    def __init__(self) -> None:
        """Begin with whole steps."""
        self._lengths: dict[int, int] = {}
        self._least: dict[int, int] = {}
        self._longer: dict[int, tuple[int, float]] = {}  # what was cut: its tuples, nanoseconds for each

    def length(self, unit: int) -> int:
        """Return how many tuples the next part may have."""
        return self._lengths.get(unit, WHOLE)

    def note(self, unit: int, tuples: int, nanoseconds: int) -> None:
        """Note how long a part or a whole step has lasted, and how many tuples it took."""
        if tuples <= 0:
            return
        length, each = self.length(unit), nanoseconds / tuples
        fitting = max(1, self._least.get(unit, 1), round(STRETCH / max(each, 1e-9)))
        if tuples < length // 2 and nanoseconds <= LONG:
            return  # there was not as much to do
        longer, less = self._longer.pop(unit, (0, 0.0))
        if longer and each > _DEARER * less:
            self._least[unit] = self._lengths[unit] = longer
        elif nanoseconds > LONG and fitting < tuples:
            self._lengths[unit] = fitting
            self._longer[unit] = tuples, each
        elif nanoseconds < STRETCH // 2 and length < WHOLE:
            self._lengths[unit] = min(fitting, _GROW * length, WHOLE)
