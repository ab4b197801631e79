"""Windows, and the functions over them."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.reference.order import Axis, Partition
from tests.reference.tuples import Row, Tuple

WindowFunction = Callable[[Sequence[Row]], Any]
"""A function over the rows of a window, in the order (A, arrival)."""

Select = dict[str, WindowFunction]
"""Result names and their functions."""


@dataclass
class Window:
    """An open window. Its rows are kept with their order values and arrivals at this box."""

    partition: Partition
    start: Axis
    opened: int
    held: list[tuple[Axis, int, Tuple]] = field(default_factory=list)

    @property
    def tuples(self) -> list[Tuple]:
        """The tuples in the order (A, arrival).

        Decision: so that the identity with BSort also holds for first, last, collect and user aggregates.
        """
        return [held[2] for held in sorted(self.held, key=lambda held: held[:2])]

    @property
    def stamp(self) -> int:
        """The oldest timestamp in the window."""
        return min(held[2].stamp for held in self.held)

    def results(self, select: Select) -> Row:
        """Apply the functions to the rows."""
        rows = [tuple_.row for tuple_ in self.tuples]
        return {name: function(rows) for name, function in select.items()}


def _values(rows: Sequence[Row], name: str) -> list[Any]:
    return [row[name] for row in rows if row[name] is not None]


def count() -> WindowFunction:
    """count(*): all rows, NULL or not."""
    return len


def count_of(name: str) -> WindowFunction:
    """count(x): the values that are not NULL."""
    return lambda rows: len(_values(rows, name))


def count_distinct(name: str) -> WindowFunction:
    """count(distinct x): NULL does not count."""
    return lambda rows: len(set(_values(rows, name)))


def total(name: str) -> WindowFunction:
    """sum(x): NULLs are skipped; the sum of nothing is NULL."""
    return lambda rows: sum(_values(rows, name)) if _values(rows, name) else None


def mean(name: str) -> WindowFunction:
    """avg(x)."""
    return lambda rows: statistics.fmean(_values(rows, name)) if _values(rows, name) else None


def low(name: str) -> WindowFunction:
    """min(x)."""
    return lambda rows: min(_values(rows, name), default=None)


def high(name: str) -> WindowFunction:
    """max(x)."""
    return lambda rows: max(_values(rows, name), default=None)


def first(name: str) -> WindowFunction:
    """first(x): of the first row, also if it is NULL."""
    return lambda rows: rows[0][name]


def last(name: str) -> WindowFunction:
    """last(x): of the last row, also if it is NULL."""
    return lambda rows: rows[-1][name]


def collect(name: str) -> WindowFunction:
    """collect_list(x): the values that are not NULL, in the order of the window."""
    return lambda rows: _values(rows, name)


def median(name: str) -> WindowFunction:
    """median(x): the mean of the two middle values, as a double."""
    return lambda rows: float(statistics.median(_values(rows, name))) if _values(rows, name) else None


def stddev(name: str) -> WindowFunction:
    """stddev(x): of the sample; NULL for fewer than two values."""
    return lambda rows: statistics.stdev(_values(rows, name)) if len(_values(rows, name)) > 1 else None


def variance(name: str) -> WindowFunction:
    """variance(x): of the sample; NULL for fewer than two values."""
    return lambda rows: float(statistics.variance(_values(rows, name))) if len(_values(rows, name)) > 1 else None
