"""String functions that Spark also has over bytes: there they count and cut bytes, and bytes come out.

Other string functions take binary values for UTF-8 text, as in Spark.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headway.expressions.library import perstring
from headway.expressions.library.base import Builtin, integer
from headway.expressions.limits import check_joined
from headway.expressions.nodes import Node, null, over_arrow, over_values
from headway.expressions.types import BOOLEAN, INT, VOID

BINARY = pa.binary()


def over_bytes(function: Builtin) -> Builtin:
    """Return a string function that takes its form over bytes where its arguments are binary."""
    if function.name not in _FORMS:
        return function
    (build, count), plain = _FORMS[function.name], function.build

    def choose(*arguments: Node) -> Node:
        types = [argument.type for argument in arguments[:count]]
        return (build if BINARY in types and set(types) <= {BINARY, VOID} else plain)(*arguments)

    return replace(function, build=choose)


def _concat(*arguments: Node) -> Node:
    if any(node.is_null for node in arguments):
        return null(BINARY)

    def joined(*arrays: Any) -> Any:
        check_joined("concat", list(arrays))
        return pc.binary_join_element_wise(*arrays, pa.scalar(b"", BINARY))

    return over_arrow(BINARY, arguments, joined)


def _length(node: Node) -> Node:
    return over_arrow(INT, (node,), pc.binary_length)


def _cut(function: Callable[..., object], name: str) -> Callable[..., Node]:
    return lambda node, *numbers: over_values(BINARY, (node, *(integer(one, name) for one in numbers)), function)


def _search(found: Callable[[bytes, bytes], bool]) -> Callable[[Node, Node], Node]:
    return lambda node, part: (
        null(BOOLEAN) if part.is_null or node.is_null else over_values(BOOLEAN, (node, part), found)
    )


_FORMS: dict[str, tuple[Callable[..., Node], int | None]] = {
    "concat": (_concat, None),
    "length": (_length, 1),
    "char_length": (_length, 1),
    "substring": (_cut(perstring.substring, "substring"), 1),
    "substr": (_cut(perstring.substring, "substr"), 1),
    "left": (_cut(perstring.left, "left"), 1),
    "startswith": (_search(bytes.startswith), 2),
    "endswith": (_search(bytes.endswith), 2),
    "contains": (_search(lambda whole, part: part in whole), 2),
}
"""By name: what builds the form over bytes, and how many of the first arguments must be binary for it; None is all."""
