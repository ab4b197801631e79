"""Sizes of windows: plain numbers, or durations for timestamps and dates."""

from __future__ import annotations

import math
from typing import TypeVar

import pyarrow as pa

from headway.durations import DAY, Duration, parse_duration
from headway.errors import NetworkError
from headway.network.schema import type_name

T = TypeVar("T", int, float)

LARGEST_SIZE = 2**60
"""The largest size in an order field's unit: windows of this size have 64-bit numbers. For timestamps, 36,533 years."""
_LARGEST_FLOAT = 1e300

Size = int | float | Duration
"""How far a window reaches, in units of its order field."""


def parse_size(value: object) -> Size:
    """Read a positive number or a positive duration."""
    if isinstance(value, bool) or not isinstance(value, int | float | str | Duration):
        raise NetworkError(f"must be a positive number, or a duration such as '5s', not {value!r}")
    if isinstance(value, int | float):
        if isinstance(value, float) and not math.isfinite(value):
            raise NetworkError(f"must be a finite number, not {value!r}")
        if value <= 0:
            raise NetworkError(f"must be larger than zero, not {_shown(value)}")
        return _check_size(value, LARGEST_SIZE if isinstance(value, int) else _LARGEST_FLOAT)
    return parse_duration(value)


def write_size(size: Size) -> int | float | str:
    """Return a size as the file has it."""
    return str(size) if isinstance(size, Duration) else size


def native_size(size: Size, type_: pa.DataType) -> int | float:
    """Return a size in the unit of an order field's type: microseconds for timestamps, days for dates.

    Raises a NetworkError with a hint for a duration on a numeric field, a number on a timestamp or a date, or a
    fraction on an integer field.
    """
    name = type_name(type_)
    if pa.types.is_timestamp(type_) or pa.types.is_date(type_):
        if not isinstance(size, Duration):
            example = "1 day" if pa.types.is_date(type_) else f"{size}s"
            raise NetworkError(
                f"{size} is a number, but the order field is a {name}; write a duration such as '{example}'"
            )
        if pa.types.is_timestamp(type_):
            return _check_size(size.microseconds, LARGEST_SIZE, size)
        days, rest = divmod(size.microseconds, DAY)
        if rest:
            raise NetworkError(f"'{size}' is not a whole number of days, but the order field is a date")
        return days
    if isinstance(size, Duration):
        raise NetworkError(
            f"'{size}' is a duration, but the order field is a {name}; write a number in the field's own unit, "
            "or make the field a timestamp"
        )
    if pa.types.is_floating(type_):
        return float(size)
    if size != int(size):
        raise NetworkError(f"{size} is not a whole number, but the order field is a {name}")
    return _check_size(int(size), LARGEST_SIZE)


def _check_size(value: T, largest: int | float, written: Size | None = None) -> T:
    """Return a size, or raise a NetworkError if it is too large."""
    if value > largest:
        longest = Duration(int(largest)) if isinstance(written, Duration) else largest
        shown = _shown(value if written is None else written)
        raise NetworkError(f"{shown} is too large; the largest size is {longest}")
    return value


def _shown(value: object) -> str:
    """Return a number for a message; for a very long one, its count of digits."""
    if isinstance(value, int) and abs(value) >= 10**40:
        return f"a number of about {int(value.bit_length() * 0.30103)} digits"
    return str(value)


def pair_size(size: Size, left: pa.DataType, right: pa.DataType) -> int | float:
    """Return a size in the unit that two order fields share, or raise a NetworkError when they share none."""
    if kind(left) != kind(right):
        raise NetworkError(
            f"the two order fields cannot be compared: {type_name(left)} and {type_name(right)}; "
            "both must be numbers, both dates, or both the same kind of timestamp"
        )
    return native_size(size, right if pa.types.is_floating(right) else left)


def kind(type_: pa.DataType) -> str:
    """Return what an order field measures: ``number``, or the name of a type of time."""
    return "number" if pa.types.is_integer(type_) or pa.types.is_floating(type_) else type_name(type_)
