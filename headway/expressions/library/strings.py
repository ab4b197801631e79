"""String functions. Arrow does those whose other arguments are literals; `perstring` does the rest per value."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headway.errors import ExpressionError
from headway.expressions.library import perstring
from headway.expressions.library.base import Builtin, fixed, integer, text
from headway.expressions.limits import check_bytes, check_joined, check_replaced, utf8_length
from headway.expressions.nodes import Node, null, over_arrow, over_values
from headway.expressions.regexes import GROUP, check_regex, check_replacement, copies, count_groups, extracting
from headway.expressions.types import BOOLEAN, INT, STRING


def _arrow(type_: pa.DataType, kernel: Callable[[Any], Any]) -> Callable[[Node], Node]:
    return lambda node: over_arrow(type_, (text(node),), kernel)


def _cased(ascii_kernel: Callable[[Any], Any], change: Callable[[str], str]) -> Callable[[Node], Node]:
    """Return a change of case. Beyond ASCII one letter may become two, as in Java, and Arrow changes one for one."""

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


def _values(
    type_: pa.DataType, function: Callable[..., object], numbers: tuple[int, ...] = (), strict: bool = True
) -> Callable[..., Node]:
    """Return a builder that calls a function per value; the arguments at `numbers` are ints, the others text."""

    def build(*arguments: Node) -> Node:
        name = function.__name__
        nodes = [integer(node, name) if index in numbers else text(node) for index, node in enumerate(arguments)]
        return over_values(type_, nodes, function, strict)

    return build


def _constant(*nodes: Node) -> bool:
    return all(node.constant is not None and not node.is_null for node in nodes)


def _trim(kernel: Any) -> Callable[..., Node]:
    def build(string: Node, characters: Node | None = None) -> Node:
        wanted = " " if characters is None else fixed(text(characters), "trim", "the characters")
        if wanted is None:
            return null(STRING)
        return over_arrow(STRING, (text(string),), lambda array: kernel(array, characters=wanted))

    return build


def _side_trim(kernel: Any) -> Callable[..., Node]:
    plain = _trim(kernel)  # Spark's ltrim and rtrim take the characters first
    return lambda first, second=None: plain(first) if second is None else plain(second, first)


def _substring(string: Node, position: Node, length: Node | None = None) -> Node:
    string, position = text(string), integer(position, "substring")
    if length is not None:
        length = integer(length, "substring")
    if not _constant(position, *([] if length is None else [length])):
        nodes = (string, position) if length is None else (string, position, length)
        return over_values(STRING, nodes, perstring.substring)
    start = int(position.value)
    start = start - 1 if start > 0 else start
    stop = None if length is None else start + max(0, int(length.value))
    if start < 0 and stop is not None and stop >= 0:
        # such as substring(s, -2, 5): counted from the end, it runs past it
        return over_values(STRING, (string, position, length or position), perstring.substring)
    return over_arrow(STRING, (string,), lambda array: pc.utf8_slice_codeunits(array, start, stop))


def _left(string: Node, count: Node) -> Node:
    string, count = text(string), integer(count, "left")
    if not _constant(count):
        return over_values(STRING, (string, count), perstring.left)
    stop = max(0, int(count.value))
    return over_arrow(STRING, (string,), lambda array: pc.utf8_slice_codeunits(array, 0, stop))


def _concat(*arguments: Node) -> Node:
    nodes = [text(node) for node in arguments]
    if any(node.is_null for node in nodes):
        return null(STRING)

    def joined(*arrays: Any) -> Any:
        check_joined("concat", list(arrays))
        return pc.binary_join_element_wise(*arrays, "")

    return over_arrow(STRING, nodes, joined)


def _concat_ws(separator: Node, *arguments: Node) -> Node:
    nodes = [text(separator), *(text(node) for node in arguments)]
    if nodes[0].is_null:
        return null(STRING)
    if len(nodes) == 1:
        return over_values(STRING, nodes, lambda joint: "")

    def joined(joint: Any, *arrays: Any) -> Any:
        check_joined("concat_ws", list(arrays), len(arrays) - 1, joint)
        # Arrow leaves out rows of which all parts are NULL: theirs is the empty text.
        empty = functools.reduce(pc.and_, [pc.is_null(array) for array in arrays])
        first = pc.if_else(empty, pa.scalar("", arrays[0].type), arrays[0])
        return pc.binary_join_element_wise(first, *arrays[1:], joint, null_handling="skip")

    return over_arrow(STRING, nodes, joined)


def _replace(string: Node, search: Node, replacement: Node | None = None) -> Node:
    nodes = [text(node) for node in (string, search, replacement) if node is not None]
    if _constant(*nodes[1:]) and nodes[1].value:
        old, new = nodes[1].value, nodes[2].value if len(nodes) == 3 else ""
        growth = utf8_length(new) - utf8_length(old)

        def replaced(array: Any) -> Any:
            if growth > 0:
                check_replaced("replace", array, lambda some: pc.count_substring(some, old), growth)
            return pc.replace_substring(array, old, new)

        return over_arrow(STRING, nodes[:1], replaced)
    return over_values(STRING, nodes, perstring.replace)


def _search(kernel: Any, function: Callable[[str, str], bool]) -> Callable[[Node, Node], Node]:
    def build(string: Node, part: Node) -> Node:
        string, part = text(string), text(part)
        if not _constant(part):
            return over_values(BOOLEAN, (string, part), function)
        pattern = part.value
        return over_arrow(BOOLEAN, (string,), lambda array: kernel(array, pattern))

    return build


def _repeat(string: Node, count: Node) -> Node:
    return over_values(STRING, (text(string), integer(count, "repeat")), perstring.repeat)


def _regexp_replace(string: Node, pattern: Node, replacement: Node) -> Node:
    regex = fixed(text(pattern), "regexp_replace", "the pattern")
    new = fixed(text(replacement), "regexp_replace", "the replacement")
    if regex is None or new is None:
        return null(STRING)
    check_regex(str(regex))
    template = perstring.re2_template(str(new))
    check_replacement(str(regex), template)
    growth, groups = utf8_length(template), copies(template)

    def replaced(array: Any) -> Any:
        if growth:
            check_replaced(
                "regexp_replace", array, lambda some: pc.count_substring_regex(some, str(regex)), growth, groups
            )
        return pc.replace_substring_regex(array, str(regex), template)

    return over_arrow(STRING, (text(string),), replaced)


def _regexp_extract(string: Node, pattern: Node, group: Node | None = None) -> Node:
    regex = fixed(text(pattern), "regexp_extract", "the pattern")
    number = 1 if group is None else fixed(integer(group, "regexp_extract"), "regexp_extract", "the group")
    if regex is None or number is None:
        return null(STRING)
    check_regex(str(regex))
    wanted, groups = int(str(number)), count_groups(str(regex))
    if not 0 <= wanted <= groups:
        raise ExpressionError(f"regexp_extract: '{str(regex)[:60]}' has {groups} groups; group {wanted} does not exist")
    pattern_ = extracting(str(regex), wanted)

    def extracted(array: Any) -> Any:
        found = pc.struct_field(pc.extract_regex(array, pattern_), GROUP)
        return pc.if_else(pc.is_null(array), found, pc.fill_null(found, ""))

    return over_arrow(STRING, (text(string),), extracted)


def _translate(string: Node, old: Node, new: Node) -> Node:
    before, after = (fixed(text(node), "translate", "a list of characters") for node in (old, new))
    if before is None or after is None:
        return null(STRING)
    table = perstring.translation(str(before), str(after))
    return over_values(STRING, (text(string),), lambda value: value.translate(table))


def _split_part(string: Node, delimiter: Node, number: Node) -> Node:
    number = integer(number, "split_part")
    if _constant(number) and number.value == 0:
        raise ExpressionError("split_part counts parts from 1, or from the end with -1; 0 is not allowed")
    return over_values(STRING, (text(string), text(delimiter), number), perstring.split_part)


_LENGTH = _arrow(INT, pc.utf8_length)
STRINGS = (
    Builtin("upper", "upper(s)", _cased(pc.ascii_upper, str.upper), 1, 1),
    Builtin("ucase", "ucase(s)", _cased(pc.ascii_upper, str.upper), 1, 1),
    Builtin("lower", "lower(s)", _cased(pc.ascii_lower, str.lower), 1, 1),
    Builtin("lcase", "lcase(s)", _cased(pc.ascii_lower, str.lower), 1, 1),
    Builtin("initcap", "initcap(s)", _values(STRING, perstring.initcap), 1, 1),
    Builtin("length", "length(s)", _LENGTH, 1, 1),
    Builtin("char_length", "char_length(s)", _LENGTH, 1, 1),
    Builtin("trim", "trim(s)", _trim(pc.utf8_trim), 1, 1),
    Builtin("btrim", "btrim(s[, characters])", _trim(pc.utf8_trim), 1, 2),
    Builtin("ltrim", "ltrim([characters, ]s)", _side_trim(pc.utf8_ltrim), 1, 2),
    Builtin("rtrim", "rtrim([characters, ]s)", _side_trim(pc.utf8_rtrim), 1, 2),
    Builtin("substring", "substring(s, position[, length])", _substring, 2, 3),
    Builtin("substr", "substr(s, position[, length])", _substring, 2, 3),
    Builtin("left", "left(s, n)", _left, 2, 2),
    Builtin("right", "right(s, n)", _values(STRING, perstring.right, (1,)), 2, 2),
    Builtin("concat", "concat(x, y, …)", _concat, 1, None),
    Builtin("concat_ws", "concat_ws(separator, x, y, …)", _concat_ws, 1, None),
    Builtin("replace", "replace(s, search[, replacement])", _replace, 2, 3),
    Builtin("translate", "translate(s, from, to)", _translate, 3, 3),
    Builtin("instr", "instr(s, part)", _values(INT, perstring.instr), 2, 2),
    Builtin("locate", "locate(part, s[, position])", _values(INT, perstring.locate, (2,), strict=False), 2, 3),
    Builtin("position", "position(part, s[, position])", _values(INT, perstring.locate, (2,), strict=False), 2, 3),
    Builtin("startswith", "startswith(s, part)", _search(pc.starts_with, str.startswith), 2, 2),
    Builtin("endswith", "endswith(s, part)", _search(pc.ends_with, str.endswith), 2, 2),
    Builtin("contains", "contains(s, part)", _search(pc.match_substring, str.__contains__), 2, 2),
    Builtin("lpad", "lpad(s, length[, pad])", _values(STRING, perstring.lpad, (1,)), 2, 3),
    Builtin("rpad", "rpad(s, length[, pad])", _values(STRING, perstring.rpad, (1,)), 2, 3),
    Builtin("reverse", "reverse(s)", _arrow(STRING, pc.utf8_reverse), 1, 1),
    Builtin("repeat", "repeat(s, n)", _repeat, 2, 2),
    Builtin("split_part", "split_part(s, delimiter, n)", _split_part, 3, 3),
    Builtin("ascii", "ascii(s)", _values(INT, perstring.ascii_code), 1, 1),
    Builtin("regexp_replace", "regexp_replace(s, pattern, replacement)", _regexp_replace, 3, 3),
    Builtin("regexp_extract", "regexp_extract(s, pattern[, group])", _regexp_extract, 2, 3),
)
