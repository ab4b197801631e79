"""String functions: with Arrow if all other arguments are literals, otherwise in Python per value.

As in Spark, some also work on bytes: they count and cut bytes, and return bytes. Other string functions treat binary
values as UTF-8 text.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headway.errors import ExpressionError
from headway.expressions.library.builtin import Builtin, fixed, integer, over_each, text
from headway.expressions.nodes import EvaluationError, Node, literal, null, over_arrow, over_values
from headway.expressions.texts import (
    GROUP,
    check_bytes,
    check_group,
    check_joined,
    check_regex,
    check_replaced,
    extracting,
    references,
    utf8_length,
)
from headway.expressions.types import BINARY, BOOLEAN, INT, STRING


def _arrow(type_: pa.DataType, kernel: Callable[[Any], Any]) -> Callable[[Node], Node]:
    return lambda node: over_arrow(type_, (node,), kernel)


def _cased(ascii_kernel: Callable[[Any], Any], change: Callable[[str], str]) -> Callable[[Node], Node]:
    """Return a case conversion. Beyond ASCII a letter may become two, as in Java, but Arrow maps one to one."""

    def one(value: str) -> str:
        result = change(value)
        check_bytes(change.__name__, utf8_length(result))
        return result

    def changed(array: Any) -> Any:
        result, others = ascii_kernel(array), pc.fill_null(pc.invert(pc.string_is_ascii(array)), False)
        if not pc.any(others, min_count=0).as_py():
            return result
        made = pa.array([one(value) for value in array.filter(others).to_pylist()], STRING)
        return pc.replace_with_mask(result, others, made)

    return _arrow(STRING, changed)


def _constant(*nodes: Node) -> bool:
    return all(node.constant is not None and not node.is_null for node in nodes)


def _trim(kernel: Any, characters_first: bool = False) -> Callable[..., Node]:
    def build(string: Node, characters: Node | None = None) -> Node:
        if characters_first and characters is not None:
            string, characters = characters, string
        wanted = " " if characters is None else fixed(characters, "trim", "the characters")
        if wanted is None:
            return null(STRING)
        return over_arrow(STRING, (string,), lambda array: kernel(array, characters=wanted))

    return build


def _substring(string: Node, position: Node, *length: Node) -> Node:
    if _constant(position, *length):
        start = position.value - 1 if position.value > 0 else position.value
        stop = start + max(0, length[0].value) if length else None
        if start >= 0 or stop is None or stop < 0:  # from the end, substring(s, -2, 5) could run past it
            return over_arrow(STRING, (string,), lambda array: pc.utf8_slice_codeunits(array, start, stop))
    return over_values(STRING, (string, position, *length), _part)


def _left(string: Node, count: Node) -> Node:
    return _substring(string, literal(1, INT), count)


def _concat(*arguments: Node) -> Node:
    type_ = STRING if all(node.type == STRING for node in arguments) else BINARY
    if any(node.is_null for node in arguments):
        return null(type_)

    def joined(*arrays: Any) -> Any:
        check_joined("concat", list(arrays))
        return pc.binary_join_element_wise(*arrays, pa.scalar("", type_))

    return over_arrow(type_, arguments, joined)


def _concat_ws(separator: Node, *arguments: Node) -> Node:
    if separator.is_null:
        return null(STRING)
    if not arguments:
        return over_values(STRING, (separator,), lambda joint: "")

    def joined(joint: Any, *arrays: Any) -> Any:
        check_joined("concat_ws", list(arrays), len(arrays) - 1, joint)
        # Arrow skips rows whose parts are all NULL, but the result for them is empty text.
        empty = functools.reduce(pc.and_, [pc.is_null(array) for array in arrays])
        first = pc.if_else(empty, pa.scalar("", arrays[0].type), arrays[0])
        return pc.binary_join_element_wise(first, *arrays[1:], joint, null_handling="skip")

    return over_arrow(STRING, (separator, *arguments), joined)


def _replace(*nodes: Node) -> Node:
    if _constant(*nodes[1:]) and nodes[1].value:
        old, new = nodes[1].value, nodes[2].value if len(nodes) == 3 else ""
        growth = utf8_length(new) - utf8_length(old)

        def replaced(array: Any) -> Any:
            if growth > 0:
                check_replaced("replace", array, lambda some: pc.count_substring(some, old), growth)
            return pc.replace_substring(array, old, new)

        return over_arrow(STRING, nodes[:1], replaced)
    return over_values(STRING, nodes, _replaced)


def _search(
    signature: str, kernel: Any, function: Callable[[str, str], bool], over_bytes: Callable[..., bool]
) -> Builtin:
    """Return the table row of a function that searches for text; Arrow's kernel only takes a literal."""

    def build(string: Node, part: Node) -> Node:
        if not _constant(part):
            return over_values(BOOLEAN, (string, part), function)
        pattern = part.value
        return over_arrow(BOOLEAN, (string,), lambda array: kernel(array, pattern))

    return Builtin(signature, build, _TEXT, (), over_each(BOOLEAN, over_bytes))


def _regexp_replace(string: Node, pattern: Node, replacement: Node) -> Node:
    regex = fixed(pattern, "regexp_replace", "the pattern")
    new = fixed(replacement, "regexp_replace", "the replacement")
    if regex is None or new is None:
        return null(STRING)
    check_regex(regex)
    template = _re2_template(new)
    groups = references(template)
    check_group("regexp_replace", regex, max(groups, default=0))
    growth, copies = utf8_length(template), len(groups)

    def replaced(array: Any) -> Any:
        if growth:
            check_replaced("regexp_replace", array, lambda some: pc.count_substring_regex(some, regex), growth, copies)
        return pc.replace_substring_regex(array, regex, template)

    return over_arrow(STRING, (string,), replaced)


def _regexp_extract(string: Node, pattern: Node, group: Node | None = None) -> Node:
    regex = fixed(pattern, "regexp_extract", "the pattern")
    number = 1 if group is None else fixed(group, "regexp_extract", "the group")
    if regex is None or number is None:
        return null(STRING)
    check_regex(regex)
    check_group("regexp_extract", regex, number)
    pattern_ = extracting(regex, number)

    def extracted(array: Any) -> Any:
        found = pc.struct_field(pc.extract_regex(array, pattern_), GROUP)
        return pc.if_else(pc.is_null(array), found, pc.fill_null(found, ""))

    return over_arrow(STRING, (string,), extracted)


def _translate(string: Node, old: Node, new: Node) -> Node:
    before, after = (fixed(node, "translate", "a list of characters") for node in (old, new))
    if before is None or after is None:
        return null(STRING)
    table: dict[int, str | None] = {}
    for one, other in itertools.zip_longest(before, after[: len(before)]):  # no counterpart: deleted
        table.setdefault(ord(one), other)  # the first occurrence wins
    return over_values(STRING, (string,), lambda value: value.translate(table))


def _split_part(string: Node, delimiter: Node, number: Node) -> Node:
    if _constant(number) and number.value == 0:
        raise ExpressionError("split_part counts parts from 1, or from the end with -1; 0 is not allowed")
    return over_values(STRING, (string, delimiter, number), _split)


def _part(value: str, position: int, length: int = 2**31 - 1) -> str:
    """Return a substring; positions count from 1, negative ones from the end."""
    start = position - 1 if position > 0 else len(value) + position if position < 0 else 0
    return value[max(start, 0) : max(start + max(length, 0), 0)]


def _capitalised(value: str) -> str:
    return " ".join(word[:1].title() + word.lower()[len(word[:1].lower()) :] for word in value.split(" "))


def _replaced(value: str, search: str, replacement: str = "") -> str:
    """Replace all occurrences; an empty search text changes nothing."""
    if not search:
        return value
    growth = utf8_length(replacement) - utf8_length(search)
    if growth > 0:
        check_bytes("replace", utf8_length(value) + growth * value.count(search))
    return value.replace(search, replacement)


def _repeated(value: str, times: int) -> str:
    check_bytes("repeat", utf8_length(value) * max(0, times))
    return value * max(0, times)


def _located(part: str | None, value: str | None, position: int | None = 1) -> int | None:
    """Find a part at or after `position`, counted from 1; 0 if absent or `position` is NULL; 1 for an empty part."""
    if position is None:
        return 0
    if part is None or value is None:
        return None
    if position <= 0:
        return 0
    return value.find(part, position - 1) + 1 if part else 1


def _padding(name: str) -> Callable[..., str]:
    """Return lpad or rpad, which pad or cut a value to a length."""

    def padded(value: str, length: int, pad: str = " ") -> str:
        missing = max(0, length) - len(value)
        if missing <= 0 or not pad:
            return value[: max(0, length)]
        check_bytes(name, len(value) + missing)  # at least one byte per character
        filling = (pad * (missing // len(pad) + 1))[:missing]
        check_bytes(name, utf8_length(value) + utf8_length(filling))
        return filling + value if name == "lpad" else value + filling

    return padded


def _split(value: str, delimiter: str, number: int) -> str:
    """Return a part between delimiters, counted from 1, or from -1 at the end; empty if out of range."""
    if number == 0:
        raise EvaluationError("split_part counts parts from 1; 0 is not allowed")
    parts = value.split(delimiter) if delimiter else [value]
    index = number - 1 if number > 0 else len(parts) + number
    return parts[index] if 0 <= index < len(parts) else ""


def _re2_template(replacement: str) -> str:
    """Rewrite Java's replacement text, with $1 for groups, to RE2's form."""

    def written(match: re.Match[str]) -> str:
        group, character = match.groups()
        if group:
            return "\\" + group
        return character if character not in ("", "\\") else r"\\"

    return re.sub(r"\$([0-9])|\\(.?)", written, replacement, flags=re.DOTALL)


_TEXT, _COUNTED, _PADDED = (text,), (text, integer), (text, integer, text)
STRINGS = (
    Builtin("upper(s)", _cased(pc.ascii_upper, str.upper), _TEXT, ("ucase",)),
    Builtin("lower(s)", _cased(pc.ascii_lower, str.lower), _TEXT, ("lcase",)),
    Builtin("initcap(s)", over_each(STRING, _capitalised), _TEXT),
    Builtin("length(s)", _arrow(INT, pc.utf8_length), _TEXT, ("char_length",), _arrow(INT, pc.binary_length)),
    Builtin("trim(s)", _trim(pc.utf8_trim), _TEXT),
    Builtin("btrim(s[, characters])", _trim(pc.utf8_trim), _TEXT),
    Builtin("ltrim([characters, ]s)", _trim(pc.utf8_ltrim, characters_first=True), _TEXT),
    Builtin("rtrim([characters, ]s)", _trim(pc.utf8_rtrim, characters_first=True), _TEXT),
    Builtin("substring(s, position[, length])", _substring, _COUNTED, ("substr",), over_each(BINARY, _part)),
    Builtin("left(s, n)", _left, _COUNTED, (), over_each(BINARY, lambda value, n: value[: max(0, n)])),
    Builtin("right(s, n)", over_each(STRING, lambda value, count: value[-count:] if count > 0 else ""), _COUNTED),
    Builtin("concat(x, y, …)", _concat, _TEXT, (), _concat),
    Builtin("concat_ws(separator, x, y, …)", _concat_ws, _TEXT),
    Builtin("replace(s, search[, replacement])", _replace, _TEXT),
    Builtin("translate(s, from, to)", _translate, _TEXT),
    Builtin("instr(s, part)", over_each(INT, lambda value, part: value.find(part) + 1), _TEXT),
    Builtin(
        "locate(part, s[, position])", over_each(INT, _located, strict=False), (text, text, integer), ("position",)
    ),
    _search("startswith(s, part)", pc.starts_with, str.startswith, bytes.startswith),
    _search("endswith(s, part)", pc.ends_with, str.endswith, bytes.endswith),
    _search("contains(s, part)", pc.match_substring, str.__contains__, bytes.__contains__),
    Builtin("lpad(s, length[, pad])", over_each(STRING, _padding("lpad")), _PADDED),
    Builtin("rpad(s, length[, pad])", over_each(STRING, _padding("rpad")), _PADDED),
    Builtin("reverse(s)", _arrow(STRING, pc.utf8_reverse), _TEXT),
    Builtin("repeat(s, n)", over_each(STRING, _repeated), _COUNTED),
    Builtin("split_part(s, delimiter, n)", _split_part, (text, text, integer)),
    Builtin("ascii(s)", over_each(INT, lambda value: ord(value[0]) if value else 0), _TEXT),
    Builtin("regexp_replace(s, pattern, replacement)", _regexp_replace, _TEXT),
    Builtin("regexp_extract(s, pattern[, group])", _regexp_extract, (text, text, integer)),
)
