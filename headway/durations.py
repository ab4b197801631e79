"""Durations: spans of time as users write them, such as ``5s`` or ``1h30m``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from headway.errors import NetworkError

DAY = 86_400_000_000
"""In microseconds."""
_UNITS = {
    ("w", "week", "weeks"): 7 * DAY,
    ("d", "day", "days"): DAY,
    ("h", "hr", "hrs", "hour", "hours"): 3_600_000_000,
    ("m", "min", "mins", "minute", "minutes"): 60_000_000,
    ("s", "sec", "secs", "second", "seconds"): 1_000_000,
    ("ms", "msec", "millisecond", "milliseconds"): 1_000,
    ("us", "µs", "μs", "usec", "microsecond", "microseconds"): 1,
}
"""Microseconds by the words for a unit, the short one first."""
_FACTOR = {word: factor for words, factor in _UNITS.items() for word in words}
_PART = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-zµμ]+)\s*", re.IGNORECASE)
_LONGEST = 2**62
"""The longest duration, so that a moment plus a duration still fits into 64 bits."""
_LONGEST_TIMEOUT = 100 * 365 * DAY
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
            raise NetworkError(f"'{value}' is too long; the longest duration is {_LONGEST // (7 * DAY)} weeks")
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
        for (unit, *_), factor in _UNITS.items():
            if unit == "w" and rest % factor:
                continue
            count, rest = divmod(rest, factor)
            if count:
                parts.append(f"{count}{unit}")
        return "".join(parts) or "0s"


def parse_duration(value: str | Duration) -> Duration:
    """Read a positive duration."""
    if isinstance(value, str) and value.strip().startswith("-"):
        raise NetworkError(f"must be larger than zero, not '{value}'")
    duration = Duration.parse(value)
    if duration.microseconds <= 0:
        raise NetworkError(f"must be larger than zero, not '{value}'")
    return duration


def parse_timeout(value: object) -> Duration:
    """Read a positive duration that a clock can wait for."""
    if not isinstance(value, str | Duration):
        raise NetworkError(f"{value!r} is not a duration; {DURATION_HINT}")
    timeout = parse_duration(value)
    if timeout.microseconds > _LONGEST_TIMEOUT:
        raise NetworkError(f"'{timeout}' is too long; the longest timeout is {Duration(_LONGEST_TIMEOUT)}")
    return timeout
