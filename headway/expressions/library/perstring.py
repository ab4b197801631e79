"""String functions in Python, one value at a time: what Arrow cannot do, or not with arguments that vary."""

from __future__ import annotations

from headway.expressions.limits import check_bytes, utf8_length
from headway.expressions.nodes import EvaluationError


def substring(value: str, position: int, length: int = 2**31 - 1) -> str:
    """Return a part; positions count from 1, negative ones from the end."""
    start = position - 1 if position > 0 else len(value) + position if position < 0 else 0
    return value[max(start, 0) : max(start + max(length, 0), 0)]


def left(value: str, count: int) -> str:
    """Return the first characters."""
    return value[: max(0, count)]


def right(value: str, count: int) -> str:
    """Return the last characters."""
    return value[-count:] if count > 0 else ""


def initcap(value: str) -> str:
    """Return the words, separated by spaces, with a capital first letter."""
    return " ".join(word[:1].title() + word.lower()[len(word[:1].lower()) :] for word in value.split(" "))


def replace(value: str, search: str, replacement: str = "") -> str:
    """Return the value with all occurrences replaced; an empty search changes nothing."""
    if not search:
        return value
    growth = utf8_length(replacement) - utf8_length(search)
    if growth > 0:
        check_bytes("replace", utf8_length(value) + growth * value.count(search))
    return value.replace(search, replacement)


def repeat(value: str, times: int) -> str:
    """Return the value several times."""
    check_bytes("repeat", utf8_length(value) * max(0, times))
    return value * max(0, times)


def instr(value: str, part: str) -> int:
    """Return the position of a part, from 1, or 0."""
    return value.find(part) + 1


def locate(part: str | None, value: str | None, position: int | None = 1) -> int | None:
    """Return the position of a part at or after a position, from 1, or 0; nothing is found at 1, and at NULL 0."""
    if position is None:
        return 0
    if part is None or value is None:
        return None
    if position <= 0:
        return 0
    return value.find(part, position - 1) + 1 if part else 1


def lpad(value: str, length: int, pad: str = " ") -> str:
    """Return the value filled or cut to a length, filled on the left."""
    missing = max(0, length) - len(value)
    return value[: max(0, length)] if missing <= 0 or not pad else _filling("lpad", value, missing, pad) + value


def rpad(value: str, length: int, pad: str = " ") -> str:
    """Return the value filled or cut to a length, filled on the right."""
    missing = max(0, length) - len(value)
    return value[: max(0, length)] if missing <= 0 or not pad else value + _filling("rpad", value, missing, pad)


def _filling(name: str, value: str, missing: int, pad: str) -> str:
    """Return the pad, repeated and cut to what is missing."""
    check_bytes(name, len(value) + missing)  # at least a byte for each character
    filling = (pad * (missing // len(pad) + 1))[:missing]
    check_bytes(name, utf8_length(value) + utf8_length(filling))
    return filling


def split_part(value: str, delimiter: str, number: int) -> str:
    """Return a part between delimiters, from 1, or from the end with -1; empty past the ends."""
    if number == 0:
        raise EvaluationError("split_part counts parts from 1; 0 is not allowed")
    parts = value.split(delimiter) if delimiter else [value]
    index = number - 1 if number > 0 else len(parts) + number
    return parts[index] if 0 <= index < len(parts) else ""


def ascii_code(value: str) -> int:
    """Return the code of the first character, or 0."""
    return ord(value[0]) if value else 0


def translation(before: str, after: str) -> dict[int, str | None]:
    """Return the table of translate: characters without a partner are deleted, the first mention counts."""
    table: dict[int, str | None] = {}
    for index, character in enumerate(before):
        table.setdefault(ord(character), after[index] if index < len(after) else None)
    return table


def re2_template(replacement: str) -> str:
    """Return Java's replacement text, with $1 for groups, as RE2 writes it."""
    out, position = [], 0
    while position < len(replacement):
        character = replacement[position]
        following = replacement[position + 1] if position + 1 < len(replacement) else ""
        if character == "$" and following.isdigit():
            out.append("\\" + following)
            position += 1
        elif character == "\\" and following:
            out.append("\\\\" if following == "\\" else following)
            position += 1
        else:
            out.append("\\\\" if character == "\\" else character)
        position += 1
    return "".join(out)
