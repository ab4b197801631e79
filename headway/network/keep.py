"""How much is kept: of the tuples that pass a point, of results, and in one file of an output that rolls over."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pyarrow as pa

from headway.durations import DAY, Duration, parse_duration
from headway.errors import NetworkError, did_you_mean
from headway.sizes import parse_size, show_size

KEEP_HINT = "a duration such as '1 hour', a number of tuples such as 100000, or 'all'"
ROLL_HINT = "a duration such as '1 hour', a size such as '100 MB', or a list of both"
_ALL = "all"
_MOST = 2**62
_SIZE = re.compile(r"\d\s*[kmgt]?i?b\s*$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Keep:
    """How much is kept: the latest `tuples`, those of the latest `span` of time, or all if both are None.

    A span is measured on a point's `time` field, by `distance`, or on the time of arrival if there is none.
    """

    tuples: int | None = None
    span: Duration | None = None

    def __post_init__(self) -> None:
        """Refuse both at once, and less than a tuple."""
        if self.tuples is not None and (self.span is not None or not 0 < self.tuples <= _MOST):
            raise NetworkError("must be one tuple or more, and fit into 62 bits, or a duration, not both")

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
    """When an output's file is complete and the next one begins.

    After a `span` of time since its first tuple, at a `size` in bytes, or at whichever is first.
    """

    span: Duration | None = None
    size: int | None = None

    def __post_init__(self) -> None:
        """Refuse neither, and what no file can be."""
        if (self.span is None and self.size is None) or (self.size is not None and not 0 < self.size <= _MOST):
            raise NetworkError(f"must be {ROLL_HINT}, not {self.size}")

    @classmethod
    def parse(cls, value: object) -> Roll:
        """Read ``1 hour``, ``100 MB``, or both in a list; raise a NetworkError that says how to write it.

        A size has a unit that ends in b; ``5m`` alone means minutes.
        """
        if isinstance(value, Roll):
            return value
        given = value if isinstance(value, list | tuple) else [value]
        parts = [one for one in given if isinstance(one, str | Duration)]
        if not given or len(parts) < len(given):
            raise NetworkError(f"must be {ROLL_HINT}, not {value!r}")
        sizes = [one for one in parts if isinstance(one, str) and _SIZE.search(one)]
        spans = [one for one in parts if one not in sizes]
        if len(spans) > 1 or len(sizes) > 1:
            raise NetworkError(f"must be {ROLL_HINT}, not two {'durations' if len(spans) > 1 else 'sizes'}")
        try:
            return cls(parse_duration(spans[0]) if spans else None, parse_size(sizes[0]) if sizes else None)
        except NetworkError as error:
            raise NetworkError(f"must be {ROLL_HINT}: {error}") from None

    def to_mapping(self) -> str | list[str]:
        """Return it as it appears in a network file."""
        given = [] if self.span is None else [str(self.span)]
        given += [] if self.size is None else [f"{show_size(self.size)}B"]
        return given if len(given) > 1 else given[0]


def distance(span: Duration, type_: pa.DataType) -> int | float:
    """Return a span in the unit of a `time` field: microseconds of timestamps, days of dates, seconds of numbers.

    Fractions of a day or of an integer's second are ignored: whole values that are at most so far apart are the same.
    """
    if pa.types.is_timestamp(type_):
        return span.microseconds
    if pa.types.is_date(type_):
        return span.microseconds // DAY
    return span.seconds if pa.types.is_floating(type_) else span.microseconds // 1_000_000
