"""How much history a fragment gets: all, none, what is recent enough, or what came after a moment."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa

from headway.durations import Duration, parse_duration
from headway.errors import NetworkError, finite
from headway.network.keep import distance
from headway.network.schema import type_name

SINCE_HINT = (
    "a duration such as '30 minutes', 'all', 'now', or a moment: a timestamp such as '2026-03-01 12:00:00' or a number"
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Since:
    """How much history a fragment gets: what is at most `back` old, or what comes at or after a `moment`.

    With neither, all of it, or with `now` nothing. A moment is measured as a point's `time` field is: a number, or a
    timestamp, which is in UTC unless it says otherwise.
    """

    back: Duration | None = None
    moment: int | float | datetime | None = None
    now: bool = False

    @classmethod
    def parse(cls, value: object) -> Since:
        """Read what users write; raise a NetworkError that says how to write it."""
        if isinstance(value, Since):
            return value
        if isinstance(value, Duration):
            return cls(back=parse_duration(value))
        if isinstance(value, datetime):
            return cls(moment=_in_utc(value))
        if isinstance(value, date):
            return cls(moment=datetime(value.year, value.month, value.day, tzinfo=UTC))
        if finite(value) is not None:
            assert isinstance(value, int | float)
            return cls(moment=value)
        if not isinstance(value, str) or not value.strip():
            raise NetworkError(f"must be {SINCE_HINT}, not {value!r}")
        text = value.strip()
        if text.lower() in _WORDS:
            return _WORDS[text.lower()]
        if (number := _number(text)) is not None:
            return cls(moment=number)
        try:
            return cls(moment=_in_utc(datetime.fromisoformat(text)))
        except (ValueError, OverflowError):
            pass
        try:
            return cls(back=parse_duration(text))
        except NetworkError as error:
            raise NetworkError(f"{error}; expected {SINCE_HINT}") from None

    def bound(self, latest: int | float, type_: pa.DataType) -> int | float | None:
        """Return the smallest value of a `time` field that is still history; None: there is no bound.

        `latest` is the field's largest value at the seam; both are in the field's unit, for timestamps microseconds and
        for dates days since 1970. Of points without `time`, `type_` is that of a timestamp. With `now` it is infinite.
        Raises a NetworkError for a moment that cannot be compared with the field.
        """
        if self.now:
            return math.inf
        if self.back is not None:
            return latest - distance(self.back, type_)
        if self.moment is None:
            return None
        timely = pa.types.is_timestamp(type_) or pa.types.is_date(type_)
        if timely != isinstance(self.moment, datetime):
            needed = "a timestamp such as '2026-03-01 12:00:00'" if timely else "a number"
            raise NetworkError(f"since: '{self}' cannot be compared with a {type_name(type_)}; write {needed}")
        if not isinstance(self.moment, datetime):
            return self.moment
        since_epoch = self.moment - _EPOCH
        # A date stands for its beginning, so a moment within a day is after it.
        return -(-since_epoch // timedelta(days=1)) if pa.types.is_date(type_) else since_epoch // _MICROSECOND

    def to_mapping(self) -> int | float | str:
        """Return it as it appears in a fragment's file."""
        if isinstance(self.moment, int | float):
            return self.moment
        return str(self)

    def __str__(self) -> str:
        """Return it as text that `parse` reads back."""
        if self.now:
            return "now"
        if self.back is not None:
            return str(self.back)
        if isinstance(self.moment, datetime):
            return self.moment.isoformat(" ")
        return "all" if self.moment is None else str(self.moment)


ALL = Since()
NOW = Since(now=True)
_WORDS = {"all": ALL, "now": NOW}


def _in_utc(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _number(text: str) -> Any:
    """Return a finite number, or None for any other text."""
    for kind in (int, float):
        try:
            number = kind(text)
        except ValueError:
            continue
        return number if finite(number) is not None else None
    return None
