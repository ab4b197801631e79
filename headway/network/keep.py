"""How much is kept: of the tuples that pass a point, of results, and in one file of an output that rolls over."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

import pyarrow as pa

from headway.durations import DAY, DURATION_HINT, Duration, parse_duration
from headway.errors import NetworkError, did_you_mean

KEEP_HINT = "a duration such as '1 hour', a number of tuples such as 100000, or 'all'"
ROLL_HINT = "a duration such as '1 hour', or a size such as '100 MB'; units: kB, MB, GB, TB, KiB, MiB, GiB, TiB"
_ALL = "all"
_MOST = 2**62
_BYTES = {"B": 1} | {
    unit: base**power
    for base, units in ((1000, ("kB", "MB", "GB", "TB")), (1024, ("KiB", "MiB", "GiB", "TiB")))
    for power, unit in enumerate(units, 1)
}
_FACTORS = {unit.lower(): factor for unit, factor in _BYTES.items()}
_SIZE = re.compile(r"\s*(\d{1,30}(?:\.\d{1,30})?)\s*([a-z]*b)\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Keep:
    """How much is kept: the latest `tuples`, those of the latest `span` of time, or all if both are None.

    A span is measured on a point's `time` field, by `distance`, or on the time of arrival if there is none.
    """

    tuples: int | None = None
    span: Duration | None = None

    @classmethod
    def parse(cls, value: object) -> Keep:
        """Read ``1 hour``, ``100000`` or ``all``; raise a NetworkError that says how to write it."""
        if isinstance(value, Keep):
            return value
        if isinstance(value, Duration):
            return cls(span=parse_duration(value))
        if isinstance(value, str) and value.strip().isdecimal() and value.isascii() and len(value) < 20:
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool):
            if not 0 < value <= _MOST:
                raise NetworkError("must be one tuple or more, and fit into 62 bits")
            return cls(tuples=value)
        if not isinstance(value, str):
            raise NetworkError(f"must be {KEEP_HINT}, not {value!r}")
        if value.strip().lower() == _ALL:
            return KEEP_ALL
        if not any(letter.isdigit() for letter in value):
            raise NetworkError(f"must be {KEEP_HINT}, not '{value}'{did_you_mean(value, [_ALL])}")
        return cls(span=parse_duration(value))

    @property
    def all(self) -> bool:
        """Whether everything is kept."""
        return self.tuples is None and self.span is None

    def to_mapping(self) -> int | str:
        """Return it as it appears in a network file."""
        if self.tuples is not None:
            return self.tuples
        return _ALL if self.span is None else str(self.span)

    def __str__(self) -> str:
        """Return it as text for a message."""
        return f"{self.tuples:,} tuples" if self.tuples is not None else str(self.to_mapping())


KEEP_ALL = Keep()
DEFAULT_KEEP = Keep(span=Duration(3_600_000_000))
"""What a point or a view keeps unless it says so: one hour, as in Aurora's examples of ad hoc questions."""


@dataclass(frozen=True, slots=True)
class Roll:
    """When an output's file is finished and the next one begins: after a `span` of time, or at a `size` in bytes."""

    span: Duration | None = None
    size: int | None = None

    @classmethod
    def parse(cls, value: object) -> Roll:
        """Read ``1 hour`` or ``100 MB``; raise a NetworkError that says how to write it."""
        if isinstance(value, Roll):
            return value
        if isinstance(value, Duration):
            return cls(span=parse_duration(value))
        if not isinstance(value, str):
            raise NetworkError(f"must be {ROLL_HINT}, not {value!r}")
        if match := _SIZE.fullmatch(value):
            factor = _FACTORS.get(match[2].lower())
            if factor is not None:
                size = Fraction(match[1]) * factor
                if size.denominator != 1 or not 0 < size <= _MOST:
                    raise NetworkError(f"'{value}' is not a whole number of bytes above zero that fits into 62 bits")
                return cls(size=int(size))
        try:
            return cls(span=parse_duration(value))
        except NetworkError as error:
            if DURATION_HINT not in str(error):
                raise
            raise NetworkError(f"must be {ROLL_HINT}, not '{value}'") from None

    def to_mapping(self) -> str:
        """Return it as it appears in a network file."""
        if self.size is None:
            return str(self.span)
        unit, factor = max(
            ((unit, factor) for unit, factor in _BYTES.items() if self.size % factor == 0), key=lambda pair: pair[1]
        )
        return f"{self.size // factor} {unit}"


def distance(span: Duration, type_: pa.DataType) -> int | float:
    """Return a span in the unit of a `time` field: microseconds of timestamps, days of dates, seconds of numbers.

    A date's distance is rounded up to whole days, an integer's to whole seconds, so that never too little is kept.
    """
    if pa.types.is_timestamp(type_):
        return span.microseconds
    if pa.types.is_date(type_):
        return -(-span.microseconds // DAY)
    return span.seconds if pa.types.is_floating(type_) else -(-span.microseconds // 1_000_000)
