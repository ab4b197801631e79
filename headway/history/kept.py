"""What a point keeps: its fields, storage key, time and `keep`; positions of tuples; units of times."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pyarrow as pa

from headway.boxes.order import orderable
from headway.durations import Duration
from headway.errors import InputError, NetworkError, first_line
from headway.network.keep import distance
from headway.network.schema import HIDDEN_PREFIX, Schema, type_name
from headway.trains import NOTHING

NUMBER = f"{HIDDEN_PREFIX}_number"
PLACE = f"{HIDDEN_PREFIX}_place"
STAMP = f"{HIDDEN_PREFIX}_stamp"
"""The hidden columns, after the user's: arrival number (bigint), place among the tuples of that number on this arc
(int), and timestamp (bigint, nanoseconds: Spark cannot read nanosecond timestamps)."""
HIDDEN = ((NUMBER, pa.int64()), (PLACE, pa.int32()), (STAMP, pa.int64()))

LAST_PLACE = 2**31 - 1

Moment = int | float
"""A time as files and comparisons have it: microseconds, days, a plain number, or nanoseconds of timestamps."""


class Position(NamedTuple):
    """Where a tuple stands on its arc; positions compare in the order of arrival."""

    number: int
    place: int


def through(number: int) -> Position:
    """Return the position after which there is nothing more of an arrival number."""
    return Position(number, LAST_PLACE)


START = through(NOTHING)
"""The position before every tuple."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What a point keeps of an arc.

    Tuples are stored sorted by `key`, a field (None: the arrival number). `time` is what `keep` and `since` refer to, a
    field that can order a stream (None: the tuple's timestamp). `keep` is a number of tuples, a duration, or None for
    all.

    A duration reaches back from the largest time seen: the smallest arrival number whose time is not further behind is
    kept, and everything after it. So late tuples never leave gaps, and what is kept is a stream as it arrived. In a
    field of numbers a duration counts seconds, in one of dates whole days; fractions of these units are ignored, except
    in float and double fields.
    """

    schema: Schema
    key: str | None = None
    time: str | None = None
    keep: int | Duration | None = None

    def __post_init__(self) -> None:
        """Check that the fields exist and fit."""
        if self.key is not None:
            field = self.schema.field(self.key)
            if pa.types.is_nested(field.type):
                raise NetworkError(
                    f"key: field '{field.name}' is a {type_name(field.type)}; a storage key has values in an order: "
                    "numbers, strings, binary, booleans, decimals, dates or timestamps"
                )
            object.__setattr__(self, "key", field.name)
        if self.time is not None:
            field = self.schema.field(self.time)
            if not orderable(field.type):
                raise NetworkError(
                    f"time: field '{field.name}' is a {type_name(field.type)}; a time is a tinyint, smallint, int, "
                    "bigint, float, double, date, timestamp or timestamp_ntz"
                )
            object.__setattr__(self, "time", field.name)
        if isinstance(self.keep, bool) or not isinstance(self.keep, int | Duration | None):
            raise NetworkError(f"keep: must be a number of tuples, a duration or all, not {self.keep!r}")
        if self.keep is not None and (self.keep.microseconds if isinstance(self.keep, Duration) else self.keep) <= 0:
            raise NetworkError(f"keep: must be larger than zero, not {self.keep}")

    @property
    def key_type(self) -> pa.DataType:
        """The type of the storage key."""
        return pa.int64() if self.key is None else self.schema.field(self.key).type

    @property
    def time_type(self) -> pa.DataType | None:
        """The type of the time field; None for timestamps of tuples."""
        return None if self.time is None else self.schema.field(self.time).type

    def reach(self, duration: Duration) -> Moment:
        """Return a duration in the unit of the time."""
        type_ = self.time_type
        return duration.nanoseconds if type_ is None else distance(duration, type_)

    def moment(self, value: object) -> Moment:
        """Return a moment of the time field as a number, or raise an InputError if it is of another type."""
        type_ = self.time_type
        if type_ is None:
            if isinstance(value, datetime):
                value = value if value.tzinfo else value.replace(tzinfo=UTC)
                return pa.scalar(value, pa.timestamp("ns", tz="UTC")).value  # type: ignore[no-any-return]
            if isinstance(value, int) and not isinstance(value, bool):
                return value
            raise InputError(f"{value!r} is not a moment; expected a datetime, or nanoseconds since 1970")
        try:
            moment = _number(pa.scalar(value, type_))
            if pa.types.is_integer(type_) and moment != value:  # it truncates
                raise ValueError("it is not a whole number")
        except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
            raise InputError(
                f"{value!r} is not a moment of '{self.time}', a {type_name(type_)}: {first_line(error)}"
            ) from None
        if moment is None or moment != moment:
            raise InputError(f"{value!r} is not a moment of '{self.time}', a {type_name(type_)}")
        return moment

    def shown(self, moment: Moment) -> str:
        """Return a moment for a message."""
        type_ = self.time_type
        if type_ is not None and not (pa.types.is_timestamp(type_) or pa.types.is_date(type_)):
            return str(moment)
        try:
            if type_ is None:
                return str(pa.scalar(int(moment) // 1000, pa.timestamp("us", tz="UTC")).as_py())
            return str(pa.scalar(int(moment), pa.int32() if pa.types.is_date(type_) else pa.int64()).cast(type_))
        except (pa.ArrowException, ValueError, OverflowError):
            return str(moment)

    def form(self) -> dict[str, Any]:
        """Return what files depend on, for the manifest and for messages; `keep` may change freely."""
        fields = [[field.name, type_name(field.type)] for field in self.schema]
        return {"fields": fields, "key": self.key, "time": self.time}


def difference(then: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Return in which respect the forms of two points differ, or an empty text."""
    for name, what in (("fields", "fields"), ("key", "storage key"), ("time", "time")):
        if then.get(name) != now[name]:
            were, are = ("were", "are") if what == "fields" else ("was", "is")
            return f"its {what} {were} {_told(then.get(name))}, and {are} now {_told(now[name])}"
    return ""


def _told(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(" ".join(map(str, field)) for field in value)
    return "that of arrival" if value is None else f"'{value}'"


def _number(scalar: pa.Scalar) -> Moment | None:
    if not scalar.is_valid:
        return None
    if pa.types.is_timestamp(scalar.type) or pa.types.is_date(scalar.type):
        return scalar.value  # type: ignore[no-any-return]
    return scalar.as_py()  # type: ignore[no-any-return]


def finite_span(low: Moment, high: Moment) -> float:
    """Return how much time lies between two moments; infinite if that is not known."""
    span = float(high) - float(low)
    return span if math.isfinite(span) else math.inf
