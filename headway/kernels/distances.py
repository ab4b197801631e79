"""Distances of order values that do not wrap around, for Join, Resample and data-driven windows."""

from __future__ import annotations

from typing import Any

import numpy as np

from headway.columns import Mask, Values


def band(values: Values, size: Any) -> tuple[Values, Values]:
    """Return values minus and plus the size, without wrapping around; for floats a little wider, to be exact later."""
    if values.dtype.kind == "f":
        # A distance is rounded by half a unit in its last place, which a small value may vanish in altogether.
        with np.errstate(over="ignore"):
            wide = size + np.where(np.isfinite(values), np.abs(values) + size, 0.0) * 2.0**-51
            return np.nextafter(values - wide, -np.inf), np.nextafter(values + wide, np.inf)
    info = np.iinfo(np.int64)
    low = np.where(values < info.min + size, info.min, values - size)
    high = np.where(values > info.max - size, info.max, values + size)
    return low, high


def near(one: Values, other: Values, size: Any) -> Mask:
    """Return which pairs of floats are within the size; infinities are near nothing."""
    with np.errstate(invalid="ignore", over="ignore"):
        close: Mask = np.abs(one - other) <= size
    return close


def far(one: Values, other: Values, size: Any) -> Mask:
    """Return which of the others are at least the size above the first, without wrapping around."""
    beyond: Mask = other >= reach(one, size)
    if one.dtype.kind != "f":
        beyond &= one <= np.iinfo(np.int64).max - size
    return beyond


def reach(values: Values, size: Any) -> Values:
    """Return values plus the size, without wrapping around."""
    if values.dtype.kind == "f":
        with np.errstate(over="ignore"):
            end: Values = values + size
        return end
    top = np.iinfo(np.int64).max
    return np.where(values > top - size, top, values + size)


def horizon(values: Values, size: Any) -> Values:
    """Return up to where something may be `near` the values: plus the size, or further where rounding swallows more."""
    end = reach(values, size)
    if values.dtype.kind != "f":
        return end
    swallowed = near(np.nextafter(end, np.inf), values, size)
    return np.where(swallowed, band(values, size)[1], end) if swallowed.any() else end
