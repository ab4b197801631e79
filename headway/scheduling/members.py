"""Which boxes belong to which unit, as arrays, so that readings of boxes become readings of units at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headway.columns import Int64s, Mask
from headway.scheduling.snapshot import Floats, Unit


class Members:
    """The boxes of the units, laid end to end."""

    def __init__(self, units: Sequence[Unit]) -> None:
        """Lay them out once; every unit has a box."""
        self.boxes = [np.array(unit.boxes, np.intp) for unit in units]
        self._flat = np.concatenate(self.boxes) if units else np.zeros(0, np.intp)
        lengths = [len(boxes) for boxes in self.boxes]
        self._starts = np.cumsum([0, *lengths[:-1]]) if units else np.zeros(0, np.intp)
        single = all(length == 1 for length in lengths) and bool((self._flat == np.arange(len(self._flat))).all())
        self.plain = single or not units
        """Whether every unit is the box of its own number, so that readings of boxes are those of units."""

    def gather(self, ready: Mask, waiting: Int64s, oldest: Int64s) -> tuple[Mask, Int64s, Int64s]:
        """Return by unit: whether a box is ready, the tuples that wait, the oldest timestamp."""
        if self.plain:
            return ready[: len(self.boxes)], waiting[: len(self.boxes)], oldest[: len(self.boxes)]
        return (
            np.logical_or.reduceat(ready[self._flat], self._starts),
            np.add.reduceat(waiting[self._flat], self._starts),
            np.minimum.reduceat(oldest[self._flat], self._starts),
        )

    def any(self, boxes: Mask) -> Mask:
        """Return by unit whether it holds for one of its boxes."""
        if self.plain:
            return boxes[: len(self.boxes)].copy()
        some: Mask = np.logical_or.reduceat(boxes[self._flat], self._starts)
        return some

    def means(self, sums: Floats, counts: Int64s) -> Floats:
        """Return by unit the mean of what was summed up by box, 0 where nothing was counted."""
        if self.plain:
            sums, counts = sums[: len(self.boxes)], counts[: len(self.boxes)]
        else:
            sums = np.add.reduceat(sums[self._flat], self._starts)
            counts = np.add.reduceat(counts[self._flat], self._starts)
        return np.where(counts > 0, sums / np.maximum(counts, 1), 0.0)
