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
_EPOCH = dt.date(1970, 1, 1).toordinal()
_CYCLE_YEARS, _CYCLE_DAYS = 400, 146_097
"""After so many years the calendar repeats."""
_DAY = 86_400_000_000
_NUMBER_BLANKS = "".join(map(chr, range(33)))
_BLANKS = _NUMBER_BLANKS + "\x7f"
"""What Spark leaves out around text that it casts: control characters and spaces of ASCII, and no others."""
_WHOLE = re.compile(r"[+-]?\d+", re.ASCII)
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_HEXADECIMAL = re.compile(r"[+-]?0[xX]([0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?\d+", re.ASCII)
_SUFFIXES = ("d", "D", "f", "F")
"""What may end a floating-point number, as in Java."""
_SPECIAL = {"nan": "nan", "inf": "inf", "+inf": "inf", "infinity": "inf", "+infinity": "inf"}
_SPECIAL |= {"-inf": "-inf", "-infinity": "-inf"}
_TRUE, _FALSE = {"t", "true", "y", "yes", "1"}, {"f", "false", "n", "no", "0"}
_DATE = re.compile(r"([+-]?\d{4,7})(?:-(\d{1,2})(?:-(\d{1,2}))?)?(?:[T ].*)?", re.ASCII | re.DOTALL)
_TIMESTAMP = re.compile(
    r"([+-]?\d{4,6})(?:-(\d{1,2})(?:-(\d{1,2})"
    r"(?:[T ](\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,9}))?)?)?\s*(Z|UTC|GMT|[+-]\d{1,2}(?::?\d{2})?)?)?)?)?",
    re.ASCII,
)


def fit(value: Decimal, type_: pa.DataType) -> Decimal:
    """Round half up to a decimal type's scale, or raise if the digits do not fit."""
    if value and value.adjusted() >= 40:  # more digits than the context has
        raise EvaluationError(f"{value} does not fit {type_name(type_)}")
    rounded = value.quantize(Decimal((0, (1,), -type_.scale)), context=CONTEXT)
    if rounded and rounded.adjusted() >= type_.precision - type_.scale:
        raise EvaluationError(f"{value} does not fit {type_name(type_)}")
    return rounded


def finite(value: float) -> Decimal:
    """Return a double as the decimal that it prints as; Spark takes a float for the double of the same value."""
    text = repr(value)
    number = Decimal(text)
    if not number.is_finite():
        raise EvaluationError(f"{text} does not fit a decimal")
    return number


def moment(microseconds: int, type_: pa.DataType) -> int:
    """Return microseconds since 1970 if a timestamp holds them, or raise."""
    if not -(2**63) <= microseconds < 2**63:
        raise EvaluationError(f"{microseconds} microseconds do not fit {type_name(type_)}")
    return microseconds


def days(year: int, month: int, day: int) -> int:
    """Return the days since 1970 of a date in any year, or raise a ValueError if there is none."""
    cycles = (year - 1) // _CYCLE_YEARS
    found = dt.date(year - cycles * _CYCLE_YEARS, month, day).toordinal() - _EPOCH + cycles * _CYCLE_DAYS
    if not -(2**31) <= found < 2**31:
        raise ValueError("the date does not fit")
    return found


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


def read_date(text: str) -> int:
    """Read a date as days since 1970, or raise."""
    match = _DATE.fullmatch(text.strip(_BLANKS))
    if match:
        try:
            return days(int(match[1]), int(match[2] or 1), int(match[3] or 1))
        except ValueError:
            pass
    raise EvaluationError(f"'{text}' is not a date")


def read_timestamp(text: str, type_: pa.DataType = TIMESTAMP) -> int:
    """Read a timestamp as microseconds since 1970, in UTC unless it names an offset; timestamp_ntz drops the offset."""
    match = _TIMESTAMP.fullmatch(text.strip(_BLANKS))
    if match:
        year, month, day, hour, minute, second = (int(part) if part else None for part in match.groups()[:6])
        fraction = int((match[7] or "0")[:6].ljust(6, "0"))
        try:
            dt.time(hour or 0, minute or 0, second or 0)
            seconds = ((hour or 0) * 60 + (minute or 0)) * 60 + (second or 0)
            if type_ == TIMESTAMP:
                seconds -= _offset(match[8])
            return moment(days(year or 0, month or 1, day or 1) * _DAY + seconds * 1_000_000 + fraction, type_)
        except (ValueError, EvaluationError):
            pass
    raise EvaluationError(f"'{text}' is not a {type_name(type_)}")


def _offset(zone: str | None) -> int:
    """Return a zone's seconds."""
    if zone is None or zone in ("Z", "UTC", "GMT"):
        return 0
    digits = zone[1:].replace(":", "")
    hours, minutes = (int(digits[:-2]), int(digits[-2:])) if len(digits) > 2 else (int(digits), 0)
    offset = hours * 3600 + minutes * 60
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
        stripped = text.strip(_BLANKS)
        if _WHOLE.fullmatch(stripped):
            value = int(stripped)
            if low <= value <= high:
                return value
        raise EvaluationError(f"'{text}' is not {'an' if name == 'int' else 'a'} {name}")

    return whole


def _read_boolean(text: str) -> bool:
    word = text.strip(_BLANKS).lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise EvaluationError(f"'{text}' is not a boolean")


def read_number(text: str, name: str = "double") -> float:
    """Read a double, or raise."""
    word = text.strip(_NUMBER_BLANKS)
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
    word = text.strip(_NUMBER_BLANKS)
    if _NUMBER.fullmatch(word):
        return Decimal(word)
    raise EvaluationError(f"'{text}' is not a {type_name(target)}")
