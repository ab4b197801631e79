"""Built-in functions as table rows: signature, argument conversions and node builder."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from headway.errors import ExpressionError
from headway.expressions.casts import cast
from headway.expressions.nodes import Node, binary, over_values, unary
from headway.expressions.types import (
    BIGINT,
    BINARY,
    DATE,
    DOUBLE,
    INT,
    STRING,
    VOID,
    is_integer,
    is_numeric,
    is_time,
    is_timestamp,
)
from headway.network.schema import TIMESTAMP, type_name

Test = Callable[[pa.DataType], bool]
Take = Callable[[Node, str], Node]
"""(argument, function name) -> the argument as the function takes it; may raise an ExpressionError."""


def as_given(node: Node, name: str) -> Node:
    """Return an argument unchanged."""
    return node


@dataclass(frozen=True, slots=True)
class Builtin:
    """A built-in scalar function: its signature as documented, its node builder, and how it converts its arguments.

    `takes` converts by position; the last one also applies to all arguments after it. `synonyms` are alternative names.
    `over_bytes` builds the variant for binary values, used if all its text arguments are binary.
    """

    signature: str
    build: Callable[..., Node]
    takes: tuple[Take, ...] = (as_given,)
    synonyms: tuple[str, ...] = ()
    over_bytes: Callable[..., Node] | None = None
    least: int | None = None
    """The minimum number of arguments if the signature does not show it."""

    @property
    def name(self) -> str:
        """The primary name."""
        return self.signature.partition("(")[0]

    @property
    def counts(self) -> tuple[int, int | None]:
        """The minimum and maximum number of arguments; a maximum of None means unlimited."""
        words = self.signature.partition("(")[2]
        needed, every = (len(re.findall(r"\w+", part)) for part in (re.sub(r"\[.*?]", "", words), words))
        if "…" in words:
            return self.least or 1, None
        return needed, every

    def named(self) -> Iterator[Builtin]:
        """Yield this function under each of its names."""
        for name in (self.name, *self.synonyms):
            yield replace(self, signature=name + self.signature.removeprefix(self.name), synonyms=())

    def __call__(self, arguments: Sequence[Node]) -> Node:
        """Return the node of a call, or raise an ExpressionError."""
        count, (least, most) = len(arguments), self.counts
        if count < least or (most is not None and count > most):
            raise ExpressionError(f"{self.name} is called as {self.signature}; {count} arguments were given")
        build, takes = self.build, [self.takes[min(at, len(self.takes) - 1)] for at in range(count)]
        if self.over_bytes is not None:
            types = {argument.type for argument, take in zip(arguments, takes, strict=True) if take is text}
            if BINARY in types and types <= {BINARY, VOID}:
                build, takes = self.over_bytes, [as_given if take is text else take for take in takes]
        return build(*[take(one, self.name) for take, one in zip(takes, arguments, strict=True)])


def over_numpy(type_: pa.DataType, kernel: Callable[..., Any]) -> Callable[..., Node]:
    """Return a builder for a numpy function of one or two arguments; NULL in, NULL out."""

    def build(*nodes: Node) -> Node:
        if len(nodes) == 1:
            return unary(type_, nodes[0], lambda values, valid: kernel(values))
        return binary(type_, nodes[0], nodes[1], lambda one, two, valid: kernel(one, two))

    return build


def over_each(type_: pa.DataType, function: Callable[..., object], strict: bool = True) -> Callable[..., Node]:
    """Return a builder for a Python function that is called per tuple."""
    return lambda *nodes: over_values(type_, nodes, function, strict)


def text(node: Node, name: str = "") -> Node:
    """Cast an argument to string; numbers, dates and booleans are accepted, as in Spark."""
    return cast(node, STRING)


def _taking(what: str, good: Test, type_: pa.DataType, kept: Test | None = None) -> Take:
    """Return a converter that casts good types, text and NULL, and rejects others; `kept` types are not cast."""

    def take(node: Node, name: str) -> Node:
        if not good(node.type) and node.type not in (STRING, VOID):
            raise ExpressionError(f"{name} takes {what}, not {type_name(node.type)}")
        return node if kept is not None and kept(node.type) else cast(node, type_)

    return take


double = _taking("a number", is_numeric, DOUBLE)
numeric = _taking("a number", is_numeric, DOUBLE, is_numeric)
integer = _taking("a whole number", is_integer, INT)
bigint = _taking("a whole number", is_integer, BIGINT)
date = _taking("a date", is_time, DATE)
timestamp = _taking("a timestamp", is_time, TIMESTAMP, is_timestamp)


def fixed(node: Node, name: str, what: str) -> Any:
    """Return the Python value of an argument that must be a literal."""
    if node.constant is None:
        raise ExpressionError(f"{name}: {what} must be a literal")
    return node.value
