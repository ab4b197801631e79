"""Aggregates over the tuples of groups."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.columns import from_pylist, to_arrow
from headway.expressions import Scope, compile_aggregates
from headway.kernels.selects import Rows, over_rows
from headway.network.schema import Schema
from tests.kernels.helpers import few

SCHEMA = Schema.parse("v int, s string, d decimal(6,2), x double, keep boolean")
GROUPS = 4
rows_ = st.lists(
    st.tuples(
        st.integers(0, GROUPS - 1),
        st.integers(-5, 5) | st.none(),
        st.sampled_from(["a", "b", "é", ""]) | st.none(),
        st.decimals(-99, 99, places=2) | st.none(),
        st.floats(-10, 10) | st.none(),
        st.booleans() | st.none(),
    ),
    max_size=25,
)


def run(text: str, rows: list[Any]) -> list[Any]:
    """Return a call's value by group, over rows (group, fields...)."""
    call = compile_aggregates(f"{text} as r", Scope.of(SCHEMA)).calls[0]
    ordered = sorted(rows, key=lambda row: int(row[0]))
    columns = [from_pylist([row[1 + at] for row in ordered], type_) for at, type_ in enumerate(SCHEMA.types)]
    groups = Rows(np.array([row[0] for row in ordered], np.int64), GROUPS)
    arguments = [one.evaluate(columns, len(ordered)) for one in call.arguments]
    where = None if call.where is None else call.where.evaluate(columns, len(ordered))
    failed: list[tuple[int, str]] = []
    result = over_rows(call, groups, arguments, where, failed)
    assert failed == []
    values: list[Any] = to_arrow(result, call.type).to_pylist()
    return values


def _some(rows: list[Any], at: int) -> list[Any]:
    return [row[at] for row in rows if row[at] is not None]


def _by(rows: list[Any], value: int, key: int, largest: bool) -> Any:
    keyed = [row for row in rows if row[key] is not None]
    if not keyed:
        return None
    return (max if largest else min)(keyed, key=lambda row: row[key])[value]


def _unique(values: list[Any]) -> list[Any]:
    return list(dict.fromkeys(values))


NAIVE: dict[str, Callable[[list[Any]], Any]] = {
    "median(v)": lambda rows: statistics.median(_some(rows, 1)) if _some(rows, 1) else None,
    "median(d)": lambda rows: float(statistics.median(_some(rows, 3))) if _some(rows, 3) else None,
    "count(distinct v)": lambda rows: len(set(_some(rows, 1))),
    "count(distinct s)": lambda rows: len(set(_some(rows, 2))),
    "collect_list(v)": lambda rows: _some(rows, 1),
    "collect_list(s)": lambda rows: _some(rows, 2),
    "collect_set(s)": lambda rows: _unique(_some(rows, 2)),
    "first(s)": lambda rows: rows[0][2] if rows else None,
    "last(v)": lambda rows: rows[-1][1] if rows else None,
    "min(s)": lambda rows: min(_some(rows, 2), default=None),
    "max(d)": lambda rows: max(_some(rows, 3), default=None),
    "sum(d)": lambda rows: sum(_some(rows, 3)) if _some(rows, 3) else None,
    "min_by(s, v)": lambda rows: _by(rows, 2, 1, False),
    "max_by(v, d)": lambda rows: _by(rows, 1, 3, True),
    "count(*)": len,
    "count(v) filter (where keep)": lambda rows: len([r for r in rows if r[5] and r[1] is not None]),
    "collect_list(v) filter (where keep)": lambda rows: [r[1] for r in rows if r[5] and r[1] is not None],
}


@pytest.mark.parametrize("text", NAIVE)
@few
@given(rows=rows_)
def test_against_python(text: str, rows: list[Any]) -> None:
    actual = run(text, rows)
    for group in range(GROUPS):
        expected = NAIVE[text]([row for row in rows if row[0] == group])
        assert actual[group] == (pytest.approx(expected) if isinstance(expected, float) else expected)


def test_percentiles_are_between_the_neighbours() -> None:
    rows = [(0, v, None, None, None, None) for v in (1, 2, 3, 4)]
    assert run("percentile(v, 0.5)", rows)[0] == 2.5
    assert run("percentile(v, 0)", rows) == [1.0, None, None, None]
    assert run("percentile(v, 1)", rows)[0] == 4.0
    assert run("approx_percentile(v, 0.5)", rows)[0] == 2


def test_decimals_are_exact() -> None:
    rows = [(0, None, None, Decimal("0.10"), None, None)] * 3
    assert run("sum(d)", rows)[0] == Decimal("0.30")
    assert run("avg(d)", rows)[0] == Decimal("0.10")
