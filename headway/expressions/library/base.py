"""What a built-in function is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from headway.errors import ExpressionError, choices
from headway.expressions.casts import cast
from headway.expressions.nodes import Node
from headway.expressions.types import BIGINT, DATE, DOUBLE, INT, STRING, TIMESTAMPS, VOID, is_integer, is_numeric
from headway.schema import TIMESTAMP, type_name


@dataclass(frozen=True, slots=True)
class Builtin:
    """A built-in scalar function: its name, its signature as the docs show it, and what builds its node."""

    name: str
    signature: str
    build: Callable[..., Node]
    least: int
    most: int | None

    def __call__(self, arguments: Sequence[Node]) -> Node:
        """Return the node of a call, or raise an ExpressionError."""
        count = len(arguments)
        if count < self.least or (self.most is not None and count > self.most):
            raise ExpressionError(f"{self.name} is called as {self.signature}; {count} arguments were given")
        return self.build(*arguments)


def text(node: Node) -> Node:
    """Return an argument as a string; numbers, dates and booleans are cast, as in Spark."""
    return cast(node, STRING)


def double(node: Node, name: str) -> Node:
    """Return an argument as a double."""
    _accept(node, name, "a number", is_numeric(node.type) or node.type == STRING)
    return cast(node, DOUBLE)


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


def relabel(node: Node, type_: pa.DataType) -> Node:
    """Return the same values under another type of the same numpy type (days as a date, and the like)."""
    return Node(type_, node.run, node.slots, node.constant, None, node.warns)
