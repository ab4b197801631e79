"""Per-value text handling: size limits on results, and regular expressions.

Limits apply to single values, never to trains: whether a tuple fails must not depend on its neighbours. Regular
expressions use RE2, through Arrow, which takes linear time, so no pattern can hang. Java syntax that RE2 lacks or
interprets differently is rejected when a network is checked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headway.errors import ExpressionError
from headway.expressions.nodes import LimitError

MOST_BYTES = 1_000_000
"""The longest text that an expression may produce, in bytes of UTF-8."""
MOST_ITEMS = 1_000_000
"""The longest array that an aggregate may produce."""


def too_long(name: str) -> LimitError:
    """Return the error for a result that exceeds MOST_BYTES."""
    return LimitError(f"{name}: the text would be longer than {MOST_BYTES:,} bytes, which is the limit")


def check_bytes(name: str, length: int) -> None:
    """Raise if a text of this many bytes exceeds the limit."""
    if length > MOST_BYTES:
        raise too_long(name)


def utf8_length(text: str) -> int:
    """Return the length in bytes of UTF-8; ASCII text is not encoded for it."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def check_joined(name: str, parts: list[Any], joints: int = 0, joint: Any = None) -> None:
    """Raise if joining texts element by element (arrays or scalars) gives one that is too long."""
    every = parts if joint is None else [*parts, joint]
    if sum([_bytes(part) for part in every]) * max(1, joints) <= MOST_BYTES:
        return  # even their total size fits
    total: Any = np.zeros(1, np.int64)
    for part in parts:
        total = total + _lengths(part)
    if joint is not None and joints:
        total = total + joints * _lengths(joint)
    if (total > MOST_BYTES).any():
        raise too_long(name)


def check_replaced(name: str, array: Any, count: Callable[[Any], Any], growth: int, copies: int = 0) -> None:
    """Raise if texts may become too long when each match counted by `count` grows by `growth` bytes.

    `copies` is how often a replacement may copy the whole match.
    """
    before = _lengths(array)
    longest = int(before.max(initial=0))
    if longest * (1 + copies) + (longest + 1) * max(0, growth) <= MOST_BYTES:
        return
    places = _numbers(count(array))
    more = np.where(places > 0, before * copies + places * max(0, growth), 0)
    if ((before + more > MOST_BYTES) & (more > 0)).any():
        raise too_long(name)


def _bytes(part: Any) -> int:
    if isinstance(part, pa.Scalar):
        return len(part.as_buffer() or b"") if part.is_valid else 0
    return int(part.nbytes)


def _lengths(part: Any) -> Any:
    if isinstance(part, pa.Scalar):
        return np.array([_bytes(part)], np.int64)
    return _numbers(pc.binary_length(part))


def _numbers(array: Any) -> Any:
    if isinstance(array, pa.Scalar):
        array = pa.array([array.as_py()], array.type)
    return pc.fill_null(array, 0).to_numpy(zero_copy_only=False).astype(np.int64)


GROUP = "g"
"""The name of the only group in the result of `extracting`."""
_CAPTURING = ("(?P<", "(?<")
_ADVICE = "RE2 syntax: no backreferences, lookahead, lookbehind or possessive quantifiers"


def check_regex(regex: str) -> None:
    """Raise an ExpressionError if a regular expression is invalid in RE2, or has another meaning in Java."""
    try:
        pc.match_substring_regex(pa.array(["x"]), regex)
    except pa.ArrowException as error:
        reason = str(error).removeprefix("Invalid regular expression: ").splitlines()[0]
        shown = "" if reason.endswith(regex) and len(regex) > 20 else f": {reason[:80]}"
        raise ExpressionError(
            f"'{_short(regex)}' is not a regular expression that can be used here{shown} ({_ADVICE})"
        ) from None
    for kind, at in _parts(regex):
        if kind == "nested":
            raise ExpressionError(
                f"'{_short(regex)}': '{regex[at : at + 2]}' inside [ ] is Java's union or intersection of classes, "
                "which is not supported; write one class, or \\[ for the character"
            )


def check_group(name: str, regex: str, wanted: int) -> None:
    """Raise an ExpressionError if a regular expression lacks the requested group."""
    found = count_groups(regex)
    if not 0 <= wanted <= found:
        raise ExpressionError(f"{name}: '{_short(regex)}' has {found} groups; group {wanted} does not exist")


def references(template: str) -> list[int]:
    """Return the groups that a replacement in RE2's form refers to, with repetitions."""
    return [int(escaped) for escaped in re.findall(r"\\(.)", template, re.DOTALL) if escaped.isdigit()]


def count_groups(regex: str) -> int:
    """Return the number of capturing groups."""
    return sum(1 for kind, _ in _parts(regex) if kind == "group")


def extracting(regex: str, group: int) -> str:
    """Return the regular expression with one capturing group, GROUP: the requested one, or the whole match for 0."""
    made, last, number = [], 0, 0
    for kind, at in _parts(regex):
        if kind != "group":
            continue
        number += 1
        made += [regex[last:at], f"(?P<{GROUP}>" if number == group else "(?:"]
        last = at + 1
        if regex.startswith(_CAPTURING, at):
            last = regex.index(">", at) + 1
    made.append(regex[last:])
    plain = "".join(made)
    return plain if group else f"(?P<{GROUP}>{plain})"


def _parts(regex: str) -> Iterator[tuple[str, int]]:
    """Yield the positions of capturing groups, and of character classes nested in others, which is Java syntax."""
    at, count, inside = 0, len(regex), False
    while at < count:
        character = regex[at]
        if character == "\\":
            if regex.startswith("\\Q", at) and not inside:
                end = regex.find("\\E", at)
                at = count if end < 0 else end + 2
            else:
                at += 2
            continue
        if inside:
            if character == "]":
                inside = False
            elif regex.startswith("&&", at) or (character == "[" and not regex.startswith("[:", at)):
                yield "nested", at
            elif regex.startswith("[:", at):
                at = max(at, regex.find(":]", at) + 1)
        elif character == "[":
            inside = True
            at += 1 if regex.startswith("^", at + 1) else 0
            at += 1 if regex.startswith("]", at + 1) else 0  # "]" is literal at the start of a class
        elif (character == "(" and not regex.startswith("(?", at)) or (
            regex.startswith(_CAPTURING, at) and not regex.startswith(("(?<=", "(?<!"), at)
        ):
            yield "group", at
        at += 1


def _short(regex: str) -> str:
    return regex if len(regex) <= 60 else regex[:59] + "…"
