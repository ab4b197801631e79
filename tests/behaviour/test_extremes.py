"""Order values and sizes at the ends of their types: what the reference says, or a dead letter, on every engine."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.behaviour.running import PLAIN, fewer, rows_of, run
from tests.reference.compare import assert_same
from tests.reference.kinds import Kind
from tests.reference.order import Order
from tests.reference.tuples import Row
from tests.reference.twins import Pair, Twin, aggregates, joins, resamples, results, sessions
from tests.streams import Running

Draw = Callable[[st.SearchStrategy[Any]], Any]
FAR = 2**61


class Raw(Kind):
    """Order values as they are."""

    def value(self, units: Any) -> Any:
        """Return the value itself."""
        return units

    def size(self, units: Any) -> Any:
        """Return the size itself."""
        return units

    def axis(self, units: Any) -> Any:
        """Return the size itself."""
        return units


BIGINT, DOUBLE = Raw("bigint"), Raw("double")
COUNTED = [results("v")["n"], results("v")["total"], results("v")["listed"]]
near = st.integers(-3, 3)
whole_sizes = st.sampled_from([1, 2, 3, 7, 10**6 + 3, 2**53 + 1, 2**59 - 1, 2**60])
whole_values = st.tuples(
    st.sampled_from([0, 2**53, FAR, -FAR, 2**62, -(2**62), 2**63 - 4, 4 - 2**63, 2**60, -(2**60)]), near
).map(sum)
steps = st.sampled_from([5e-324, 1e-300, 0.1, 1 / 3, 1.0, float(2**60), 7e291, 1e300])
wild = st.sampled_from([math.inf, -math.inf, math.nan, 1.7e308, -1.7e308, 0.0, -0.0, 1e300, -1e300, 5e-324])
counts = st.sampled_from([0, 1, 2, 5, 2**20, 2**50, 2**51 - 9, 9 - 2**51, 2**52, -1, -4])


def _rows(values: list[Any]) -> list[Row]:
    return [{"id": at, "a": value, "k": at % 2, "g": None, "v": at, "side": 0} for at, value in enumerate(values)]


def _fields(kind: Kind) -> dict[str, str]:
    return {"id": "int", "a": kind.type, "k": "int", "g": "string", "v": "int", "side": "int"}


def _ordered(values: list[Any], sort: bool) -> list[Any]:
    return sorted(values, key=lambda value: (value != value, value)) if sort else values


def _known(rows: list[Row], edge: Any) -> list[Row]:
    """Return what the reference gets: NaN is no order value; what is too far out never reaches a window."""
    kept = [row for row in rows if not (row["a"] == row["a"] and abs(row["a"]) > edge)]
    return [row if row["a"] == row["a"] else {**row, "a": None} for row in kept]


def _check(engine: str, kind: Kind, box: Pair, rows: dict[str, list[Row]], edge: Any, how: Running) -> None:
    twin = Twin(dict.fromkeys(rows, _fields(kind)), (box,), {"out": box.name})
    result = run(engine, twin, rows, how)
    known = {name: _known(some, edge) for name, some in rows.items()}
    assert result.dead_letters.num_rows == sum(len(rows[name]) - len(known[name]) for name in rows)
    if edge == math.inf or len(rows) == 1:
        assert_same(rows_of(result), twin.expected(known)["out"])


@st.composite
def grids(draw: Draw) -> tuple[Kind, Pair, list[Row], Any]:
    """An aggregate over far values, its rows, and how far they may be out."""
    order = Order("a", draw(st.sampled_from([0, 0, 1, 2])), draw(st.sampled_from([(), ("k",)])))
    sort, overlap = draw(st.booleans()), draw(st.sampled_from([0.5, 1, 1, 2, 3.5]))
    if draw(st.booleans()):
        size = draw(whole_sizes)
        advance = min(max(1, int(size / overlap)), 2**60)
        align = draw(st.booleans())
        rows = _rows(_ordered(draw(st.lists(whole_values, min_size=1, max_size=30)), sort))
        return BIGINT, aggregates("box", "s", COUNTED, order, size, advance, BIGINT, align), rows, FAR
    step = draw(steps)
    size = min(step * overlap, 1e300) or step
    values = st.tuples(counts, near).map(lambda pair: (pair[0] + pair[1] / 4) * step) | wild
    rows = _rows(_ordered(draw(st.lists(values, min_size=1, max_size=30)), sort))
    edge = min(step * 2.0**51, 1e300)
    return DOUBLE, aggregates("box", "s", COUNTED, order, size, step, DOUBLE), rows, edge


@given(case=grids(), train=st.sampled_from([1, 3, 1000]))
def test_windows(engine: str, case: tuple[Kind, Pair, list[Row], Any], train: int) -> None:
    kind, box, rows, edge = case
    _check(engine, kind, box, {"s": rows}, edge, Running(train=train))


def test_windows_far_apart_for_their_size() -> None:
    box = aggregates("box", "s", COUNTED, Order("a", 0, ()), 1, 2**60, BIGINT)
    _check("local", BIGINT, box, {"s": _rows([0, 5, 2**60])}, FAR, Running())
    small: Any = 5e-324
    wide: Any = 1e300  # their quotient is 0
    tiny = aggregates("box", "s", COUNTED, Order("a", 0, ()), small, wide, DOUBLE)
    _check("local", DOUBLE, tiny, {"s": _rows([0.0, 5.0])}, 1e300, Running())


@st.composite
def far_values(draw: Draw) -> tuple[Kind, Any, list[Any], list[Any]]:
    """A kind of order field, a size, and the values of two streams."""
    kind = draw(st.sampled_from([BIGINT, DOUBLE]))
    value = whole_values if kind is BIGINT else wild | st.tuples(counts, near).map(lambda pair: pair[0] + pair[1] / 4)
    size = draw(whole_sizes if kind is BIGINT else st.sampled_from([5e-324, 0.25, 1.0, 2.0**60, 1e300]))
    some = st.lists(value, max_size=15)
    return kind, size, _ordered(draw(some), draw(st.booleans())), _ordered(draw(some), draw(st.booleans()))


@fewer
@given(case=far_values(), slack=st.integers(0, 2), train=st.sampled_from([1, 1000]))
def test_joins(engine: str, case: tuple[Kind, Any, list[Any], list[Any]], slack: int, train: int) -> None:
    kind, size, left, right = case
    both = (Order("a", slack), Order("a", slack))
    box = joins("box", ("s", "r"), ("true", lambda one, other: True), size, both, kind)
    _check(engine, kind, box, {"s": _rows(left), "r": _rows(right)}, math.inf, Running(train=train))


@fewer
@given(case=far_values(), slack=st.integers(0, 2), train=st.sampled_from([1, 1000]))
def test_resamples(engine: str, case: tuple[Kind, Any, list[Any], list[Any]], slack: int, train: int) -> None:
    kind, size, left, right = case
    if kind is DOUBLE:
        # Where a beat and a size cancel out, a value smaller than their last places is both near and passed.
        size = min(size, 8.0)
        left, right = ([value for value in some if abs(value) != 5e-324] for some in (left, right))
    both = (Order("a", slack), Order("a", slack, ("k",)))
    box = resamples("box", ("s", "r"), COUNTED, size, both, kind)
    _check(engine, kind, box, {"s": _rows(left), "r": _rows(right)}, math.inf, Running(train=train))


@fewer
@given(case=far_values(), slack=st.integers(0, 2))
def test_data_driven_windows(engine: str, case: tuple[Kind, Any, list[Any], list[Any]], slack: int) -> None:
    kind, size, values, _ = case
    order = Order("a", slack, ("k",))
    box = sessions("box", "s", COUNTED, order, "v % 5 = 4", lambda row, first, last: row["v"] % 5 == 4, size, kind)
    _check(engine, kind, box, {"s": _rows(values)}, math.inf, PLAIN)
