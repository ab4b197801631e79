"""What a built-in function is: one row of a table, with its signature, what it takes and what builds its node."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from headway.errors import ExpressionError, choices
from headway.expressions.casts import cast
from headway.expressions.nodes import Node, binary, over_values, unary
from headway.expressions.types import (
    BIGINT,
    BINARY,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMPS,
    VOID,
    is_integer,
    is_numeric,
)
from headway.network.schema import TIMESTAMP, type_name

Take = Callable[[Node, str], Node]
"""Makes of an argument what a function takes, or raises an ExpressionError; it is also given the function's name."""


def as_given(node: Node, name: str) -> Node:
    """Return an argument as it is."""
    return node


@dataclass(frozen=True, slots=True)
class Builtin:
    """A built-in scalar function: its signature as the docs show it, what builds its node, and what it takes.

    `takes` is by argument, the last also for all that follow. `synonyms` are its other
    names. `over_bytes` builds its form over binary values, where all arguments that it would take as text are binary.
    """

    signature: str
    build: Callable[..., Node]
    takes: tuple[Take, ...] = (as_given,)
    synonyms: tuple[str, ...] = ()
    over_bytes: Callable[..., Node] | None = None
    least: int | None = None
    """The least number of arguments, where the signature does not say it."""

    @property
    def name(self) -> str:
        """The name by which it is called."""
        return self.signature.partition("(")[0]

    @property
    def counts(self) -> tuple[int, int | None]:
        """The least and the greatest number of arguments; None: any."""
        words = self.signature.partition("(")[2]
        needed, every = (len(re.findall(r"\w+", part)) for part in (re.sub(r"\[.*?]", "", words), words))
        if "…" in words:
            return self.least or 1, None
        return needed, every

    def named(self) -> Iterator[Builtin]:
        """Yield it under each of its names."""
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


def over_numpy(type_: pa.DataType, kernel: Callable[..., Any], warns: bool = False) -> Callable[..., Node]:
    """Return what builds a function of one or two arguments' numpy values; NULL in, NULL out."""

    def build(*nodes: Node) -> Node:
        if len(nodes) == 1:
            return unary(type_, nodes[0], lambda values, valid: kernel(values), warns)
        return binary(type_, nodes[0], nodes[1], lambda one, two, valid: kernel(one, two), warns)

    return build


def over_each(type_: pa.DataType, function: Callable[..., object], strict: bool = True) -> Callable[..., Node]:
    """Return what builds a function of the arguments' Python values, tuple by tuple."""
    return lambda *nodes: over_values(type_, nodes, function, strict)


def text(node: Node, name: str = "") -> Node:
    """Return an argument as a string; numbers, dates and booleans are cast, as in Spark."""
    return cast(node, STRING)


def double(node: Node, name: str) -> Node:
    """Return an argument as a double."""
    _accept(node, name, "a number", is_numeric(node.type) or node.type == STRING)
    return cast(node, DOUBLE)


def numeric(node: Node, name: str) -> Node:
    """Return an argument as a number, text as a double."""
    _accept(node, name, "a number", is_numeric(node.type) or node.type == STRING)
    return cast(node, DOUBLE) if node.type in (STRING, VOID) else node


def integer(node: Node, name: str) -> Node:
    """Return an argument as an int."""
    _accept(node, name, "a whole number", is_integer(node.type) or node.type == STRING)
    return cast(node, INT)


def bigint(node: Node, name: str) -> Node:
    """Return an argument as a bigint."""
    _accept(node, name, "a whole number", is_integer(node.type) or node.type == STRING)
    return cast(node, BIGINT)


def date(node: Node, name: str) -> Node:
    """Return an argument as a date; text and timestamps are cast."""
    _accept(node, name, "a date", node.type in (DATE, STRING) or node.type in TIMESTAMPS)
    return cast(node, DATE)


def timestamp(node: Node, name: str) -> Node:
    """Return an argument as a timestamp; text and dates are cast, timestamp_ntz stays."""
    _accept(node, name, "a timestamp", node.type in (DATE, STRING) or node.type in TIMESTAMPS)
    return node if node.type in TIMESTAMPS else cast(node, TIMESTAMP)


def fixed(node: Node, name: str, what: str) -> object:
    """Return the Python value of an argument that must be a literal."""
    if node.constant is None:
        raise ExpressionError(f"{name}: {what} must be a literal")
    return node.value


def one_of(word: str, words: Sequence[str], name: str, what: str) -> str:
    """Return a word of a fixed list, or raise."""
    if word.lower() not in words:
        raise ExpressionError(f"{name}: unknown {what} '{word}'; choices: {choices(words)}")
    return word.lower()


def _accept(node: Node, name: str, what: str, good: bool) -> None:
    if not good and node.type != VOID:
        raise ExpressionError(f"{name} takes {what}, not {type_name(node.type)}")
