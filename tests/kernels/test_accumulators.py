"""Accumulators: bit by bit the same however the stream is cut, and equal to plain Python."""

from __future__ import annotations

import itertools
import math
import statistics
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.columns import Column, from_pylist, to_arrow
from headway.expressions import Scope, compile_aggregates
from headway.kernels.accumulators import Accumulator, Arrays, IntegerSum, accumulator
from headway.network.schema import Schema
from tests.kernels.helpers import few

SCHEMA = Schema.parse("d double, i int, b boolean, l bigint")
CALLS = [
    *[f"{name}(d)" for name in ("count", "sum", "avg", "min", "max", "stddev", "var_pop", "first", "last")],
    *[f"{name}(i)" for name in ("sum", "avg", "min", "max", "variance", "stddev_pop", "first", "any_value")],
    "count(*)",
    "count_if(b)",
    "bool_and(b)",
    "bool_or(b)",
    "approx_count_distinct(i)",
    "max(l)",
]
GROUPS = 3
doubles = st.floats(-1e6, 1e6) | st.sampled_from([0.1, 1e16, -1e16, 1e-9])
rows_ = st.lists(
    st.tuples(
        st.integers(0, GROUPS - 1),
        doubles | st.none(),
        st.integers(-50, 50) | st.none(),
        st.booleans() | st.none(),
        st.integers(-(2**63), 2**63 - 1) | st.none(),
    ),
    max_size=30,
)


def make(call: str) -> tuple[Accumulator, int | None, pa.DataType]:
    compiled = compile_aggregates(f"{call} as x", Scope.of(SCHEMA)).calls[0]
    made = accumulator(compiled, in_order=True, whole=True)
    assert made is not None
    return made, compiled.arguments[0].field if compiled.arguments else None, compiled.type


def fresh(made: Accumulator, groups: int = GROUPS) -> Arrays:
    return made.empty(groups)


def add(made: Accumulator, arrays: Arrays, slot: int | None, rows: list[Any]) -> None:
    ids = np.array([row[0] for row in rows], np.int64)
    column = None if slot is None else from_pylist([row[1 + slot] for row in rows], SCHEMA.types[slot])
    made.add(arrays, ids, column)


@pytest.mark.parametrize("call", CALLS)
@few
@given(rows=rows_, data=st.data())
def test_cuts_do_not_change_a_bit(call: str, rows: list[Any], data: st.DataObject) -> None:
    made, slot, _ = make(call)
    whole, cut = fresh(made), fresh(made)
    add(made, whole, slot, rows)
    edges = [0, *sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=4))), len(rows)]
    for start, stop in itertools.pairwise(edges):
        add(made, cut, slot, rows[start:stop])
    for name in whole:
        assert whole[name].tobytes() == cut[name].tobytes(), name
    one, other = made.result(whole), made.result(cut)
    valid = one.is_valid()
    assert (valid == other.is_valid()).all()
    assert one.values[valid].tobytes() == other.values[valid].tobytes()


def _expected(call: str, values: list[Any]) -> Any:
    name = call.partition("(")[0]
    some = [value for value in values if value is not None]
    match name:
        case "count":
            return len(values) if call == "count(*)" else len(some)
        case "count_if":
            return some.count(True)
        case "first" | "any_value":
            return values[0] if values else None
        case "last":
            return values[-1] if values else None
    if not some:
        return None
    match name:
        case "sum":
            return sum(some)
        case "avg":
            return math.fsum(some) / len(some)
        case "min" | "bool_and":
            return min(some)
        case "max" | "bool_or":
            return max(some)
        case "var_pop":
            return statistics.pvariance(some)
        case "stddev_pop":
            return statistics.pstdev(some)
    if len(some) < 2:
        return None
    return statistics.variance(some) if name == "variance" else statistics.stdev(some)


@pytest.mark.parametrize("call", [call for call in CALLS if "approx" not in call])
@few
@given(rows=rows_)
def test_against_python(call: str, rows: list[Any]) -> None:
    made, slot, type_ = make(call)
    arrays = fresh(made)
    add(made, arrays, slot, rows)
    actual = to_arrow(made.result(arrays), type_).to_pylist()
    for group in range(GROUPS):
        values = [row[1 + (slot or 0)] for row in rows if row[0] == group]
        expected = _expected(call, values)
        if isinstance(expected, float):
            scale = max(1.0, *(abs(value) for value in values if value is not None))
            tolerance = scale * scale if "var" in call else scale
            assert actual[group] == pytest.approx(expected, rel=1e-6, abs=1e-6 * tolerance)
        else:
            assert actual[group] == expected


@pytest.mark.parametrize("call", [call for call in CALLS if not call.startswith(("first", "last", "any_value"))])
@few
@given(rows=rows_)
def test_merged_panes_are_the_whole(call: str, rows: list[Any]) -> None:
    made, slot, type_ = make(call)
    panes, whole = fresh(made), fresh(made, 1)
    ordered = sorted(rows, key=lambda row: int(row[0]))
    add(made, panes, slot, ordered)
    add(made, whole, slot, [(0, *row[1:]) for row in ordered])
    merged = made.merge(panes, np.array([0, 1]), np.array([GROUPS, 2]))
    both = to_arrow(made.result(merged), type_).to_pylist()
    (expected,) = to_arrow(made.result(whole), type_).to_pylist()
    if isinstance(expected, float):
        scale = max(1.0, *(abs(row[1 + (slot or 0)] or 0) for row in rows))
        tolerance = scale * scale if "var" in call else scale
        assert both[0] == pytest.approx(expected, rel=1e-6, abs=1e-6 * tolerance)
    else:
        assert both[0] == expected
    assert both[1] == to_arrow(made.result(panes), type_).to_pylist()[1]


def test_integer_sums_notice_overflow() -> None:
    made = IntegerSum()
    arrays = fresh(made)
    big = 2**63 - 1
    made.add(arrays, np.array([0, 0, 1, 1, 2, 2]), Column(np.array([big, 1, -big, -2, big, -big])))
    assert made.overflowed(arrays).tolist() == [True, True, False]
    assert made.result(arrays).values[2] == 0


def test_nan_is_larger_than_every_number() -> None:
    nan = float("nan")
    for call, expected in (("max(d)", [nan, 2.0]), ("min(d)", [1.0, 2.0])):
        made, slot, _ = make(call)
        arrays = fresh(made, 2)
        add(made, arrays, slot, [(0, nan, 0), (0, 1.0, 0), (1, 2.0, 0)])
        np.testing.assert_array_equal(made.result(arrays).values, expected)


@pytest.mark.parametrize("call", ["sum(d)", "avg(d)", "stddev(d)"])
def test_infinities_and_overflow_are_values(call: str) -> None:
    made, slot, _ = make(call)
    arrays = fresh(made, 2)
    inf = float("inf")
    add(made, arrays, slot, [(0, inf, 0), (0, -inf, 0), (1, 1e308, 0), (1, 1.7e308, 0)])
    assert math.isnan(made.result(arrays).values[0])
