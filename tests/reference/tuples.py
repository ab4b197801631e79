"""The tuples of the reference, and what every reference operator offers."""

from __future__ import annotations

from typing import Any, NamedTuple

Row = dict[str, Any]
"""The user's fields of one tuple; NULL is None."""


class Tuple(NamedTuple):
    """One tuple: the user's fields, its QoS timestamp and its arrival number."""

    row: Row
    stamp: int = 0
    number: int = 0


class Emitted(NamedTuple):
    """A tuple that leaves a box through one of its ports."""

    port: int
    tuple: Tuple


class Operator:
    """A box that takes one tuple at a time.

    `now` is the engine's clock; whoever drives the operator sets it before each call. `ignored` counts
    the tuples that were out of order. `ports` is the number of outputs.
    """

    ports: int = 1

    def __init__(self) -> None:
        self.now = 0
        self.ignored = 0

    def push(self, at: int, arrived: Tuple) -> list[Emitted]:
        """Take one tuple of input number `at`; return what leaves the box because of it, in order."""
        raise NotImplementedError

    def end(self, number: int) -> list[Emitted]:
        """All inputs have ended; return what the box still holds. Every such tuple carries `number`."""
        return []

    def tick(self, number: int) -> list[Emitted]:
        """The clock has moved to `now`; return what leaves the box because of it."""
        return []


def emit(row: Row, stamp: int, number: int) -> Emitted:
    """Return a tuple that leaves through the first port."""
    return Emitted(0, Tuple(row, stamp, number))
