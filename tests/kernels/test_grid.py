"""The arithmetic of windows against the definition."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headway.kernels.grid import NEVER, Grid
from tests.kernels.helpers import few

small = st.integers(1, 9)
ints = st.integers(-100, 100) | st.integers(-(2**55), 2**55)
steps = st.sampled_from([0.1, 0.25, 0.3, 1.0, 1 / 3, 2.5, 7.0, 1e-3])
floats = st.integers(-50, 50).map(lambda k: k * 0.1) | st.integers(-50, 50).map(lambda k: k / 3) | st.floats(-1e4, 1e4)


def _windows(value: Any, size: Any, advance: Any) -> list[int]:
    """Return the windows that hold a value, by trying all in question."""
    guess = int(value // advance)
    reach = int(size // advance) + 3
    return [j for j in range(guess - reach, guess + 3) if j * advance <= value < j * advance + size]


def _check(grid: Grid, values: list[Any], dtype: Any) -> None:
    array = np.array(values, dtype)
    first, last = grid.closed(array) + 1, grid.index(array)
    for value, low, high in zip(values, first.tolist(), last.tolist(), strict=True):
        assert list(range(low, high + 1)) == _windows(value, grid.size, grid.advance)
        assert (low - 1) * grid.advance + grid.size <= value < low * grid.advance + grid.size
        assert high * grid.advance <= value < (high + 1) * grid.advance
    assert (grid.start(last) == last * grid.advance).all()


@few
@given(size=small, advance=small, values=st.lists(ints, min_size=1, max_size=10))
def test_integers(size: int, advance: int, values: list[int]) -> None:
    _check(Grid(size, advance, np.int64), values, np.int64)


@few
@given(size=steps, advance=steps, values=st.lists(floats, min_size=1, max_size=10))
def test_floats(size: float, advance: float, values: list[float]) -> None:
    _check(Grid(size, advance, np.float64), values, np.float64)


@few
@given(size=small, advance=small, values=st.lists(ints, min_size=1, max_size=10))
def test_panes(size: int, advance: int, values: list[int]) -> None:
    grid = Grid(size, advance, np.int64)
    assert grid.panes == (size > advance)
    if not grid.panes:
        return
    panes = grid.pane_of(np.array(values, np.int64))
    first, last = grid.windows_of_pane(panes)
    for value, low, high in zip(values, first.tolist(), last.tolist(), strict=True):
        assert list(range(low, high + 1)) == _windows(value, size, advance)
    starts, stops = grid.panes_of_window(last)
    assert ((starts <= panes) & (panes < stops)).all()
    assert (starts * grid.pane == last * advance).all()
    assert ((stops - starts) * grid.pane == size).all()


def test_no_frontier_closes_nothing() -> None:
    assert Grid(5, 5, np.int64).closed(np.array([np.iinfo(np.int64).min, 5])).tolist() == [NEVER, 0]
    assert Grid(5, 5, np.float64).closed(np.array([-np.inf, 5.0])).tolist() == [NEVER, 0]


def test_no_panes_where_they_are_forbidden_or_useless() -> None:
    assert not Grid(6, 2, np.int64, whole=True).panes
    assert not Grid(6, 2, np.float64).panes
    assert Grid(6, 6, np.int64).tumbling
    assert Grid(6, 4, np.int64).pane == 2
