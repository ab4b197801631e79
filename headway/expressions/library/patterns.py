"""Java's date-time patterns, the numeric part of them, read and written per value."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable

from headway.errors import ExpressionError
from headway.expressions.nodes import EvaluationError

_LETTERS = {"y": "year", "M": "month", "d": "day", "H": "hour", "m": "minute", "s": "second", "S": "fraction"}
_WIDEST = {"y": 4, "M": 2, "d": 2, "H": 2, "m": 2, "s": 2, "S": 9}
_TOKEN = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']")


def tokens(pattern: str) -> list[tuple[str, str]]:
    """Return a pattern's parts as ('field', 'yyyy') and ('text', 'T'), or raise an ExpressionError."""
    parts, position = [], 0
    while position < len(pattern):
        match = _TOKEN.match(pattern, position)
        if match is None or pattern[position] in "[]{}#":
            raise ExpressionError(f"format '{pattern}': '{pattern[position]}' is not supported")
        word = match[0]
        if match[1] is not None:
            parts.append(("text", match[1].replace("''", "'") or "'"))
        elif match[2] is None:
            parts.append(("text", word))
        elif word[0] in _LETTERS and len(word) <= _WIDEST[word[0]] and word != "yyy":
            parts.append(("field", word))
        else:
            known = "yyyy, yy, MM, M, dd, d, HH, H, mm, m, ss, s, S to SSSSSSSSS and 'text'"
            raise ExpressionError(f"format '{pattern}': '{word}' is not supported; choices: {known}")
        position = match.end()
    return parts


def reader(pattern: str) -> Callable[[str], dt.datetime]:
    """Return the function that reads text by a pattern, as UTC, or raises an EvaluationError."""
    regex, names = [], []
    for kind, word in tokens(pattern):
        if kind == "text":
            regex.append(re.escape(word))
            continue
        names.append(word)
        if word[0] == "S" or len(word) > 1:
            regex.append(rf"(\d{{{len(word)}}})")
        else:
            regex.append(r"(\d{4,5})" if word == "y" else r"(\d{1,2})")
    compiled = re.compile("".join(regex), re.ASCII)

    def read(value: str) -> dt.datetime:
        match = compiled.fullmatch(value)
        if match:
            fields = {"year": 1970, "month": 1, "day": 1, "hour": 0, "minute": 0, "second": 0, "fraction": 0}
            for word, digits in zip(names, match.groups(), strict=True):
                number = int(digits[:6].ljust(6, "0")) if word[0] == "S" else int(digits)
                fields[_LETTERS[word[0]]] = 2000 + number if word == "yy" else number
            try:
                year, month, day, hour, minute, second, fraction = fields.values()
                return dt.datetime(year, month, day, hour, minute, second, fraction, dt.UTC)
            except ValueError:
                pass
        raise EvaluationError(f"'{value}' does not have the format '{pattern}'")

    return read


def writer(pattern: str) -> Callable[[dt.datetime], str]:
    """Return the function that writes a timestamp by a pattern."""
    parts = tokens(pattern)

    def one(word: str, value: dt.datetime) -> str:
        letter = word[0]
        if letter == "S":
            return f"{value.microsecond:06d}".ljust(9, "0")[: len(word)]
        if word == "yy":
            return f"{value.year % 100:02d}"
        return str(getattr(value, _LETTERS[letter])).rjust(len(word), "0")

    def write(value: dt.datetime) -> str:
        return "".join(word if kind == "text" else one(word, value) for kind, word in parts)

    return write
