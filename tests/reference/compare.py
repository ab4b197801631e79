"""Comparing rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tests.reference.tuples import Row


def same_value(one: Any, other: Any) -> bool:
    """Say whether two values are equal; doubles may differ in their last digits."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9) or (math.isnan(one) and math.isnan(other))
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same_value, one, other))
    return type(one) is type(other) and bool(one == other)


def same_row(one: Row, other: Row) -> bool:
    """Say whether two rows have the same fields, in the same order, with the same values."""
    return list(one) == list(other) and all(same_value(one[name], other[name]) for name in one)


def assert_same(actual: Sequence[Row], expected: Sequence[Row], what: str = "") -> None:
    """Fail, showing the rows around the first difference, unless both have the same rows in the same order."""
    pairs = zip(actual, expected, strict=False)
    at = next((at for at, pair in enumerate(pairs) if not same_row(*pair)), min(len(actual), len(expected)))
    if at < max(len(actual), len(expected)):
        around = slice(max(0, at - 5), at + 5)
        lines = [
            f"{what}: row {at} differs; {len(actual)} rows, expected {len(expected)}",
            *(f"actual   {row}" for row in actual[around]),
            *(f"expected {row}" for row in expected[around]),
        ]
        raise AssertionError("\n  ".join(lines))


def in_any_order(rows: Sequence[Row]) -> list[Row]:
    """Return the rows in an order that depends on their values only."""
    return sorted(rows, key=lambda row: repr(list(row.values())))


def by_partition(rows: Sequence[Row], fields: Sequence[str]) -> list[Row]:
    """Return the rows partition by partition, each partition in its order."""
    return sorted(rows, key=lambda row: repr([row[name] for name in fields]))
