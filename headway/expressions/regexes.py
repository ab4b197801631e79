"""Regular expressions: RE2 through Arrow, whose time is linear in the text, so that no pattern hangs.

What RE2 lacks of Java's syntax is refused when a network is checked, and so is what both read differently.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from headway.errors import ExpressionError

GROUP = "g"
"""The name of the one group in what `extracting` returns."""
_CAPTURING = ("(?P<", "(?<")
_ADVICE = "RE2 syntax: no backreferences, lookahead, lookbehind or possessive quantifiers"


def check_regex(regex: str) -> None:
    """Raise an ExpressionError if a regular expression cannot be used, or means something else in Java."""
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


def check_replacement(regex: str, template: str) -> None:
    """Raise an ExpressionError if a replacement, in RE2's form, asks for groups that do not exist."""
    wanted = max((int(template[at + 1]) for at in _references(template)), default=0)
    found = count_groups(regex)
    if wanted > found:
        raise ExpressionError(f"regexp_replace: '{_short(regex)}' has {found} groups; group {wanted} does not exist")


def copies(template: str) -> int:
    """Return how many groups a replacement, in RE2's form, copies into each place."""
    return len(_references(template))


def count_groups(regex: str) -> int:
    """Return how many capturing groups a regular expression has."""
    return sum(1 for kind, _ in _parts(regex) if kind == "group")


def extracting(regex: str, group: int) -> str:
    """Return the same regular expression with one capturing group, called GROUP: the one asked for, 0 is the match."""
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


def _references(template: str) -> list[int]:
    """Return where a replacement names groups."""
    found, at = [], 0
    while at < len(template):
        if template[at] == "\\":
            if template[at + 1 : at + 2].isdigit():
                found.append(at)
            at += 1
        at += 1
    return found


def _parts(regex: str) -> Iterator[tuple[str, int]]:
    """Yield where capturing groups begin, and where a character class has one inside it, as Java has it."""
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
            at += 1 if regex.startswith("]", at + 1) else 0  # first in a class it is a character
        elif (character == "(" and not regex.startswith("(?", at)) or (
            regex.startswith(_CAPTURING, at) and not regex.startswith(("(?<=", "(?<!"), at)
        ):
            yield "group", at
        at += 1


def _short(regex: str) -> str:
    return regex if len(regex) <= 60 else regex[:59] + "…"
