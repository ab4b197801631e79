"""The arithmetic of windows, and distances of order values without wrapping around.

Window j is ``[j * advance, j * advance + size)``. A value belongs to the windows ``closed(value) + 1`` to
``index(value)``, and a frontier has closed all windows up to ``closed(frontier)``; this holds for tumbling, sliding
and gapped windows alike.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from headway.columns import Int64s, Mask, Values

NEVER = -(1 << 63) + 2
"""The last closed window where none is closed: below every window's number, with room for one step."""

_FARTHEST = 1 << 61
"""The largest magnitude of order values: twice that (from one end to the other, for `align: first`) plus a size
still fits into 64 bits, and no window's number comes near NEVER."""
_FARTHEST_FLOAT = 1e300
"""The same for doubles: sums and products of a few of them are finite."""


class Grid:
    """Windows of a size at every multiple of advance, over int64 or float64 values.

    `panes` says that windows are made of panes: pieces as long as the greatest common divisor of size and advance,
    shared by all windows that overlap. Otherwise a tuple is added to each of its windows.
    """

    __slots__ = ("advance", "integral", "pane", "panes", "size")

    def __init__(self, size: float, advance: float, dtype: npt.DTypeLike, whole: bool = False) -> None:
        """Describe the grid; `whole` forbids panes."""
        self.integral = np.dtype(dtype).kind == "i"
        kind: Any = int if self.integral else float
        self.size: Any = kind(size)
        self.advance: Any = kind(advance)
        self.panes = self.integral and self.size > self.advance and not whole
        self.pane = math.gcd(self.size, self.advance) if self.panes else self.advance

    def bounds(self) -> tuple[Any, Any]:
        """Return the least and the greatest value whose window the grid can tell from its neighbours."""
        if self.integral:
            return -_FARTHEST, _FARTHEST
        # Neighbouring multiples of advance are different doubles up to here.
        edge = min(self.advance * 2.0**51, _FARTHEST_FLOAT)
        return -edge, edge

    @property
    def tumbling(self) -> bool:
        """Whether every value is in exactly one window."""
        return bool(self.size == self.advance)

    def index(self, values: Values) -> Int64s:
        """Return the last window that starts at or before each value."""
        return self._floor(values, 0)

    def index_ascending(self, values: Values) -> Int64s:
        """Return the same as `index` for ascending values, finding the edges of windows by binary search."""
        ends = self.index(values[[0, -1]])
        low, high = int(ends[0]), int(ends[1])
        if 1024 * (high - low) >= len(values):
            return self.index(values)
        windows = np.arange(low, high + 1)
        edges = [0, *np.searchsorted(values, self.start(windows[1:])).tolist(), len(values)]
        found = np.empty(len(values), np.int64)
        for window, start, stop in zip(windows.tolist(), edges, edges[1:], strict=False):
            found[start:stop] = window  # a loop over a few windows, because filling slices is fastest
        return found

    def closed(self, frontiers: Values) -> Int64s:
        """Return the last window that ends at or before each value, NEVER for no value."""
        if self.integral:
            none = frontiers == np.iinfo(np.int64).min
            if none.any():
                return np.where(none, NEVER, self._floor(np.where(none, 0, frontiers), self.size))
            return self._floor(frontiers, self.size)
        none = np.isneginf(frontiers)
        return np.where(none, NEVER, self._floor(np.where(none, 0.0, frontiers), self.size))

    def start(self, windows: Int64s) -> Values:
        """Return where windows start."""
        starts: Values = windows * self.advance
        return starts

    def pane_of(self, values: Values) -> Int64s:
        """Return the pane of each value."""
        panes: Int64s = (values // self.pane).astype(np.int64, copy=False)
        return panes

    def windows_of_pane(self, panes: Int64s) -> tuple[Int64s, Int64s]:
        """Return the first and the last window that contain each pane."""
        if not self.panes:
            return panes, panes
        starts = panes * self.pane
        return self._floor(starts, self.size) + 1, self._floor(starts, 0)

    def panes_of_window(self, windows: Int64s) -> tuple[Int64s, Int64s]:
        """Return the first pane of each window and the one after its last."""
        if not self.panes:
            return windows, windows + 1
        starts = windows * (self.advance // self.pane)
        return starts, starts + self.size // self.pane

    def _floor(self, values: Values, offset: Any) -> Int64s:
        """Return the largest j with ``j * advance + offset <= value``, exact for floats too."""
        if self.integral:
            whole: Int64s = (values - offset) // self.advance if offset else values // self.advance
            return whole
        j = np.floor((values - offset) / self.advance)
        j -= j * self.advance + offset > values
        j += (j + 1) * self.advance + offset <= values
        floors: Int64s = np.clip(j, -(2.0**62), 2.0**62).astype(np.int64)
        return floors


def band(values: Values, size: Any) -> tuple[Values, Values]:
    """Return values minus and plus the size, without wrapping around; for floats a little wider (see `near`)."""
    if values.dtype.kind == "f":
        # A distance is rounded by half a unit in its last place, in which a small value may vanish altogether.
        wide = size + np.where(np.isfinite(values), np.abs(values) + size, 0.0) * 2.0**-51
        return np.nextafter(values - wide, -np.inf), np.nextafter(values + wide, np.inf)
    info = np.iinfo(np.int64)
    low = np.where(values < info.min + size, info.min, values - size)
    high = np.where(values > info.max - size, info.max, values + size)
    return low, high


def near(one: Values, other: Values, size: Any) -> Mask:
    """Return which pairs of floats are at most the size apart; infinities never are."""
    close: Mask = np.abs(one - other) <= size
    return close


def far(one: Values, other: Values, size: Any) -> Mask:
    """Return where `other` is at least the size above `one`, without wrapping around."""
    beyond: Mask = other >= reach(one, size)
    if one.dtype.kind != "f":
        beyond &= one <= np.iinfo(np.int64).max - size
    return beyond


def reach(values: Values, size: Any) -> Values:
    """Return values plus the size, without wrapping around."""
    if values.dtype.kind == "f":
        end: Values = values + size
        return end
    top = np.iinfo(np.int64).max
    return np.where(values > top - size, top, values + size)


def horizon(values: Values, size: Any) -> Values:
    """Return the largest value that may be `near` each: plus the size, or further where rounding swallows more."""
    end = reach(values, size)
    if values.dtype.kind != "f":
        return end
    swallowed = near(np.nextafter(end, np.inf), values, size)
    return np.where(swallowed, band(values, size)[1], end) if swallowed.any() else end
