"""What runs gave: a row for each run, as in the CSV file, and the questions that checks and plots ask of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from headway_experiments.intervals import Interval

Value = float | int | str | bool
Row = Mapping[str, Value]
"""By column: the setting of a run (policy, seed, ...) and what was measured."""


class Rows(Sequence[Row]):
    """Rows in the order of the runs."""

    def __init__(self, rows: Iterable[Row]) -> None:
        """Hold rows as they are."""
        self._rows = list(rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows)

    def __getitem__(self, at: Any) -> Any:
        return self._rows[at]

    def where(self, **columns: Value) -> Rows:
        """Return the rows that have these values; raises KeyError if there is none, for a check must not be empty."""
        found = [row for row in self._rows if all(name in row and row[name] == want for name, want in columns.items())]
        if not found:
            raise KeyError(f"no run has {columns}")
        return Rows(found)

    def levels(self, column: str) -> list[Any]:
        """Return the values of a column, each once: numbers in order, texts as they come."""
        found = list(dict.fromkeys(row[column] for row in self._rows if column in row))
        return found if any(isinstance(value, str) for value in found) else sorted(found)

    def values(self, column: str) -> list[float]:
        """Return a column of numbers."""
        return [float(row[column]) for row in self._rows if column in row]

    def mean(self, column: str) -> Interval:
        """Return the mean over all these rows, which should differ by their seed only."""
        return Interval.of(self.values(column))

    def curve(self, x: str, column: str) -> tuple[list[float], list[Interval]]:
        """Return the levels of `x` and at each the mean of a column."""
        levels = self.levels(x)
        return [float(level) for level in levels], [self.where(**{x: level}).mean(column) for level in levels]

    def paired(self, column: str, other: Rows, how: Callable[[float, float], float], by: str = "seed") -> Interval:
        """Return the mean of `how(own, other's)` over pairs of runs with the same seed.

        Pairs have the same arrivals, so that their difference is known far better than either of them.
        """
        own = {row[by]: float(row[column]) for row in self._rows}
        theirs = {row[by]: float(row[column]) for row in other}
        if len(own) != len(self._rows) or own.keys() != theirs.keys():
            raise ValueError(f"runs cannot be paired by '{by}': {sorted(own, key=str)} and {sorted(theirs, key=str)}")
        return Interval.of([how(own[key], theirs[key]) for key in own])

    def ratio(self, column: str, other: Rows, by: str = "seed") -> Interval:
        """Return the mean of own / other's over pairs of runs."""
        return self.paired(column, other, lambda mine, theirs: mine / theirs, by)

    def reduction(self, column: str, other: Rows, by: str = "seed") -> Interval:
        """Return by how many per cent these rows are below the others, over pairs of runs."""
        return self.paired(column, other, lambda mine, theirs: 100 * (1 - mine / theirs), by)
