"""Order specifications: partitions, slack, the frontier, and order values as plain numbers."""

from __future__ import annotations

import bisect
import datetime as dt
from dataclasses import dataclass, field
from typing import Any

from tests.reference.tuples import Row

NUMBER = "#"
"""The virtual field that counts the tuples of a partition."""

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
EPOCH_NTZ = dt.datetime(1970, 1, 1)
EPOCH_DAY = dt.date(1970, 1, 1)
MICROSECOND = dt.timedelta(microseconds=1)

Axis = int | float
"""An order value as a number: microseconds for timestamps, days for dates."""


def to_axis(value: Any) -> Axis | None:
    """Return an order value as a number; NULL stays NULL."""
    if value is None:
        return None
    if isinstance(value, dt.datetime):
        return (value - (EPOCH if value.tzinfo else EPOCH_NTZ)) // MICROSECOND
    if isinstance(value, dt.date):
        return (value - EPOCH_DAY).days
    assert isinstance(value, int | float)
    return value


def from_axis(number: Axis, like: Any) -> Any:
    """Return a number as an order value of the same type as `like`."""
    if isinstance(like, dt.datetime):
        assert isinstance(number, int)
        return (EPOCH if like.tzinfo else EPOCH_NTZ) + number * MICROSECOND
    if isinstance(like, dt.date):
        return EPOCH_DAY + dt.timedelta(days=number)
    return type(like)(number)


@dataclass(frozen=True)
class Order:
    """`order: {on: A, slack: n, by: [B…]}`."""

    on: str
    slack: int = 0
    by: tuple[str, ...] = ()

    def key(self, row: Row) -> tuple[Any, ...]:
        """Return the partition of a row; NULL is a value like any other here."""
        return tuple(row[name] for name in self.by)


@dataclass
class Partition:
    """What is known of one partition: every order value that has arrived, also of ignored tuples, ascending.

    `place` says as which of all partitions it first appeared; `first` is its first value that is not NULL.
    """

    order: Order
    key: tuple[Any, ...]
    place: int
    seen: list[Axis] = field(default_factory=list)
    first: Axis | None = None
    count: int = 0

    @property
    def frontier(self) -> Axis | None:
        """The (slack + 1)-th largest value seen, or None as long as fewer have been seen."""
        if len(self.seen) <= self.order.slack:
            return None
        return self.seen[-1 - self.order.slack]

    def take(self, row: Row) -> tuple[Axis | None, bool]:
        """Note the arrival of a row; return its order value and whether it is in order."""
        value = self.count if self.order.on == NUMBER else to_axis(row[self.order.on])
        self.count += 1
        if value is None:
            return None, False
        larger = sum(1 for earlier in self.seen if earlier > value)
        bisect.insort(self.seen, value)
        self.first = value if self.first is None else self.first
        return value, larger <= self.order.slack


class Partitions:
    """All partitions of one input, in the order of their first appearance."""

    def __init__(self, order: Order) -> None:
        self.order = order
        self.known: dict[tuple[Any, ...], Partition] = {}

    def of(self, row: Row) -> Partition:
        """Return the partition of a row; it is known from its first tuple, also if that has no A."""
        key = self.order.key(row)
        if key not in self.known:
            self.known[key] = Partition(self.order, key, len(self.known))
        return self.known[key]
