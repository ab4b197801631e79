"""Sizes of windows: plain numbers, or durations for timestamps and dates."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

import pyarrow as pa

from headway.errors import NetworkError
from headway.network.schema import type_name

T = TypeVar("T", int, float)

_UNITS = {
    "w": 7 * 86_400_000_000,
    "d": 86_400_000_000,
    "h": 3_600_000_000,
    "m": 60_000_000,
    "s": 1_000_000,
    "ms": 1_000,
    "us": 1,
}
_WORDS = {
    "w": ("w", "week", "weeks"),
    "d": ("d", "day", "days"),
    "h": ("h", "hr", "hrs", "hour", "hours"),
    "m": ("m", "min", "mins", "minute", "minutes"),
    "s": ("s", "sec", "secs", "second", "seconds"),
    "ms": ("ms", "msec", "millisecond", "milliseconds"),
    "us": ("us", "µs", "μs", "usec", "microsecond", "microseconds"),
}
_FACTOR = {word: _UNITS[unit] for unit, words in _WORDS.items() for word in words}
_PART = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-zµμ]+)\s*", re.IGNORECASE)
_LONGEST = 2**62
"""The longest duration, so that a moment plus a duration still fits into 64 bits."""
LARGEST_SIZE = 2**60
"""The largest size in an order field's unit: windows of this size have 64-bit numbers. For timestamps, 36,533 years."""
_LARGEST_FLOAT = 1e300
_LONGEST_TIMEOUT = 100 * 365 * _UNITS["d"]

_DIGITS = 100

DURATION_HINT = (
    "a duration is a number and a unit, such as '5s', '250ms', '10 minutes' or '1h30m'; units: w, d, h, m, s, ms, us"
)


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    """A span of time in whole microseconds, the resolution of timestamps."""

    microseconds: int

    @classmethod
    def parse(cls, value: object) -> Duration:
        """Read ``5s``, ``10 minutes``, ``1h30m`` or ``250ms``; raise a NetworkError that says how to write it."""
        if isinstance(value, Duration):
            return value
        if not isinstance(value, str):
            raise NetworkError(f"{value!r} is not a duration; {DURATION_HINT}")
        total, at = Fraction(0), 0
        while match := _PART.match(value, at):
            factor = _FACTOR.get(match[2].lower())
            if factor is None:
                raise NetworkError(f"'{value}': unknown unit '{match[2]}'; {DURATION_HINT}")
            if len(match[1]) > _DIGITS:
                raise NetworkError(f"'{value}' is not a duration: a number has more than {_DIGITS} digits")
            total += Fraction(match[1]) * factor
            at = match.end()
        if at == 0 or at != len(value):
            raise NetworkError(f"'{value}' is not a duration; {DURATION_HINT}")
        if total.denominator != 1:
            raise NetworkError(f"'{value}' is not a whole number of microseconds")
        if total > _LONGEST:
            raise NetworkError(f"'{value}' is too long; the longest duration is {_LONGEST // _UNITS['w']} weeks")
        return cls(int(total))

    @property
    def seconds(self) -> float:
        """The duration in seconds."""
        return self.microseconds / 1_000_000

    @property
    def nanoseconds(self) -> int:
        """The duration in nanoseconds, the unit of clocks."""
        return self.microseconds * 1_000

    def __str__(self) -> str:
        """Return a text that `parse` reads back, such as ``1h30m``."""
        rest, parts = self.microseconds, []
        for unit, factor in _UNITS.items():
            if unit == "w" and rest % factor:
                continue
            count, rest = divmod(rest, factor)
            if count:
                parts.append(f"{count}{unit}")
        return "".join(parts) or "0s"


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
    if isinstance(value, str) and value.strip().startswith("-"):
        raise NetworkError(f"must be larger than zero, not '{value}'")
    duration = Duration.parse(value)
    if duration.microseconds <= 0:
        raise NetworkError(f"must be larger than zero, not '{value}'")
    return duration


def parse_timeout(value: object) -> Duration:
    """Read a positive duration."""
    size = parse_size(value) if isinstance(value, str | Duration) else None
    if not isinstance(size, Duration):
        raise NetworkError(f"{value!r} is not a duration; {DURATION_HINT}")
    if size.microseconds > _LONGEST_TIMEOUT:
        raise NetworkError(f"'{size}' is too long; the longest timeout is {Duration(_LONGEST_TIMEOUT)}")
    return size


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
        days, rest = divmod(size.microseconds, _UNITS["d"])
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
