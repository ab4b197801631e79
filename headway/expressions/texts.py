"""Values as text and back, one Python value at a time: what Arrow does not do as Spark does."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from headway.errors import ExpressionError
from headway.expressions.nodes import EvaluationError
from headway.expressions.types import BOOLEAN, DATE, DOUBLE, FLOAT, STRING, is_decimal, is_timestamp
from headway.schema import TIMESTAMP, type_name

CONTEXT = decimal.Context(prec=80, rounding=ROUND_HALF_UP)
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND = dt.timedelta(microseconds=1)
_WHOLE = re.compile(r"[+-]?\d+", re.ASCII)
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_HEXADECIMAL = re.compile(r"[+-]?0[xX]([0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?\d+", re.ASCII)
_SUFFIXES = ("d", "D", "f", "F")
"""What may end a floating-point number, as in Java."""
_SPECIAL = {"nan": "nan", "inf": "inf", "+inf": "inf", "infinity": "inf", "+infinity": "inf"}
_SPECIAL |= {"-inf": "-inf", "-infinity": "-inf"}
_TRUE, _FALSE = {"t", "true", "y", "yes", "1"}, {"f", "false", "n", "no", "0"}
_DATE = re.compile(r"(\d{4,5})(?:-(\d{1,2})(?:-(\d{1,2}))?)?(?:[T ].*)?")
_TIMESTAMP = re.compile(
    r"(\d{4,5})(?:-(\d{1,2})(?:-(\d{1,2})"
    r"(?:[T ](\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,9}))?)?)?\s*(Z|UTC|GMT|[+-]\d{1,2}(?::?\d{2})?)?)?)?)?"
)


def fit(value: Decimal, type_: pa.DataType) -> Decimal:
    """Round half up to a decimal type's scale, or raise if the digits do not fit."""
    if value and value.adjusted() >= 40:  # more digits than the context has
        raise EvaluationError(f"{value} does not fit {type_name(type_)}")
    rounded = value.quantize(Decimal((0, (1,), -type_.scale)), context=CONTEXT)
    if rounded and rounded.adjusted() >= type_.precision - type_.scale:
        raise EvaluationError(f"{value} does not fit {type_name(type_)}")
    return rounded


def finite(value: float, float32: bool = False) -> Decimal:
    """Return a float as the decimal that it prints as."""
    text = str(np.float32(value)) if float32 else repr(value)
    number = Decimal(text)
    if not number.is_finite():
        raise EvaluationError(f"{text} does not fit a decimal")
    return number


def micros(value: dt.datetime) -> int:
    """Return microseconds since 1970."""
    if value.tzinfo is None:
        value = value.replace(tzinfo=dt.UTC)
    return (value - EPOCH) // _MICROSECOND


def moment(microseconds: int, type_: pa.DataType) -> dt.datetime:
    """Return the timestamp of microseconds since 1970."""
    try:
        value = EPOCH + dt.timedelta(microseconds=microseconds)
    except OverflowError:
        raise EvaluationError(f"{microseconds} microseconds do not fit {type_name(type_)}") from None
    return value if type_ == TIMESTAMP else value.replace(tzinfo=None)


def float_text(value: float) -> str:
    """Return a double as Spark prints it: 1.0, 1.0E10, NaN."""
    return _java(repr(value))


def float32_text(value: float) -> str:
    """Return a float as Spark prints it."""
    return _java(str(np.float32(value)))


def _java(text: str) -> str:
    special = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(text)
    if special is not None:
        return special
    number = Decimal(text)
    sign, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    mark = "-" if sign else ""
    if not number:
        return f"{mark}0.0"
    figures = "".join(map(str, digits)).rstrip("0") or "0"
    power = number.adjusted()
    if -3 <= power < 7:
        plain = format(abs(number), "f")
        whole, _, rest = plain.partition(".")
        return f"{mark}{whole}.{rest.rstrip('0') or '0'}"
    return f"{mark}{figures[0]}.{figures[1:] or '0'}E{power}"


def read_date(text: str) -> dt.date:
    """Read a date, or raise."""
    match = _DATE.fullmatch(text.strip())
    if match:
        try:
            return dt.date(int(match[1]), int(match[2] or 1), int(match[3] or 1))
        except ValueError:
            pass
    raise EvaluationError(f"'{text}' is not a date")


def read_timestamp(text: str, type_: pa.DataType = TIMESTAMP) -> dt.datetime:
    """Read a timestamp, in UTC unless it names an offset; for timestamp_ntz the offset is dropped."""
    match = _TIMESTAMP.fullmatch(text.strip())
    if match:
        year, month, day, hour, minute, second = (int(part) if part else None for part in match.groups()[:6])
        fraction = int((match[7] or "0")[:6].ljust(6, "0"))
        try:
            value = dt.datetime(year or 0, month or 1, day or 1, hour or 0, minute or 0, second or 0, fraction)
            if type_ != TIMESTAMP:
                return value
            return value.replace(tzinfo=dt.UTC) - _offset(match[8])
        except (ValueError, OverflowError):
            pass
    raise EvaluationError(f"'{text}' is not a {type_name(type_)}")


def _offset(zone: str | None) -> dt.timedelta:
    if zone is None or zone in ("Z", "UTC", "GMT"):
        return dt.timedelta()
    digits = zone[1:].replace(":", "")
    hours, minutes = (int(digits[:-2]), int(digits[-2:])) if len(digits) > 2 else (int(digits), 0)
    offset = dt.timedelta(hours=hours, minutes=minutes)
    return -offset if zone[0] == "-" else offset


def reader(target: pa.DataType) -> Callable[[Any], object]:
    """Return the function that reads a type from text, or raises an EvaluationError."""
    if target == BOOLEAN:
        return _read_boolean
    if target in (FLOAT, DOUBLE):
        return lambda text: read_number(text, type_name(target))
    if is_decimal(target):
        return lambda text: fit(_read_decimal(text, target), target)
    if target == DATE:
        return read_date
    if is_timestamp(target):
        return lambda text: read_timestamp(text, target)
    if pa.types.is_binary(target):
        return lambda text: text.encode()
    if target == STRING:
        return lambda text: text
    if not pa.types.is_integer(target):
        raise ExpressionError(f"cannot cast string to {type_name(target)}")
    limits = np.iinfo(target.to_pandas_dtype())
    low, high, name = int(limits.min), int(limits.max), type_name(target)

    def whole(text: str) -> int:
        stripped = text.strip()
        if _WHOLE.fullmatch(stripped):
            value = int(stripped)
            if low <= value <= high:
                return value
        raise EvaluationError(f"'{text}' is not {'an' if name == 'int' else 'a'} {name}")

    return whole


def _read_boolean(text: str) -> bool:
    word = text.strip().lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise EvaluationError(f"'{text}' is not a boolean")


def read_number(text: str, name: str = "double") -> float:
    """Read a double, or raise."""
    word = text.strip()
    special = _SPECIAL.get(word.lower())
    if special is not None:
        return float(special)
    if word.endswith(_SUFFIXES):
        word = word[:-1]
    if _NUMBER.fullmatch(word):
        return float(word)
    if _HEXADECIMAL.fullmatch(word):
        try:
            return float.fromhex(word)
        except OverflowError:
            return -math.inf if word.startswith("-") else math.inf
    raise EvaluationError(f"'{text}' is not a {name}")


def _read_decimal(text: str, target: pa.DataType) -> Decimal:
    word = text.strip()
    if _NUMBER.fullmatch(word):
        return Decimal(word)
    raise EvaluationError(f"'{text}' is not a {type_name(target)}")
