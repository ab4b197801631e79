"""Aggregate over windows of a grid and of counts."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.behaviour.running import PLAIN, check, fewer, rows_of, run, run_mapping
from tests.reference.compare import assert_same, by_partition
from tests.reference.kinds import BIGINT, DOUBLE, TIMESTAMP, Kind
from tests.reference.order import Order
from tests.reference.tuples import Row
from tests.reference.twins import Twin, aggregates, results
from tests.streams import Case, Running, grids, one_box, runnings, schema, sorted_first, streams


@given(case=one_box(grids), how=runnings(), other=runnings())
def test_aggregate(engine: str, case: Case, how: Running, other: Running) -> None:
    check(engine, case, how, other)


@given(case=one_box(grids), how=runnings())
def test_slack_is_the_same_as_a_sort_before(engine: str, case: Case, how: Running) -> None:
    box = case.twin.boxes[-1]
    if box.settings.get("align") == "first":
        return  # the first value of a partition is another one after a sort
    by = box.settings["order"]["by"]
    direct = rows_of(run(engine, case.twin, case.inputs, how))
    after = rows_of(run(engine, sorted_first(case), case.inputs, how))
    assert_same(by_partition(direct, by), by_partition(after, by))


@pytest.mark.parametrize("name", sorted(results("v")))
@fewer
@given(rows=streams(), kind=st.sampled_from((BIGINT, DOUBLE, TIMESTAMP)), how=runnings())
def test_each_function(engine: str, name: str, kind: Kind, rows: list[Row], how: Running) -> None:
    rows = [row | {"a": kind.value(row["a"])} for row in rows]
    box = aggregates("box", "s", [results("v")[name]], Order("a", 1, ("k",)), 5, 2, kind)
    check(engine, Case(Twin({"s": schema(kind)}, (box,), {"out": "box"}), {"s": rows}), how)


@given(rows=streams(), how=runnings())
def test_windows_over_windows(engine: str, rows: list[Row], how: Running) -> None:
    first = aggregates("one", "s", [results("v")["n"], results("v")["total"]], Order("a", 2, ("k",)), 2)
    second = aggregates("two", "one", [results("total")["total"], results("total")["listed"]], Order("a", 3), 6, 3)
    twin = Twin({"s": schema(BIGINT)}, (first, second), {"out": "two", "middle": "one"})
    check(engine, Case(twin, {"s": rows}), how)


def _run(engine: str, box: dict[str, Any], fields: dict[str, str], rows: list[Row], how: Running = PLAIN) -> Any:
    mapping = {
        "network": "windows",
        "sources": {"s": {"schema": fields}},
        "boxes": {"box": {"op": "aggregate", "in": "s", **box}},
        "outputs": {"out": {"from": "box"}},
    }
    return run_mapping(engine, mapping, {"s": rows}, how)


def test_expressions_over_aggregates_and_filters(engine: str) -> None:
    select = "sum(v) / count(*) as ratio, count(*) filter (where v > 1) as large, max(v * 2) + k as top"
    rows: list[Row] = [{"a": 0, "k": 5, "v": 1}, {"a": 1, "k": 5, "v": 2}, {"a": 1, "k": 5, "v": None}]
    box = {"select": select, "order": {"on": "a", "by": ["k"]}, "size": 10}
    result = _run(engine, box, {"a": "int", "k": "int", "v": "int"}, rows)
    assert rows_of(result) == [{"a": 0, "k": 5, "ratio": 1.0, "large": 1, "top": 9}]


def test_a_window_of_null_values(engine: str) -> None:
    select = "count(*) as n, count(v) as present, sum(v) as total, avg(v) as mean, min(v) as low, first(v) as head"
    box = {"select": select, "order": {"on": "a"}, "size": 1}
    result = _run(engine, box, {"a": "int", "v": "double"}, [{"a": 0, "v": None}, {"a": 0, "v": None}])
    expected = {"a": 0, "n": 2, "present": 0, "total": None, "mean": None, "low": None, "head": None}
    assert rows_of(result) == [expected]


def test_gaps_between_windows_hold_nothing(engine: str) -> None:
    box = {"select": "collect_list(a) as all", "order": {"on": "a"}, "size": 2, "advance": 5}
    result = _run(engine, box, {"a": "int"}, [{"a": a} for a in range(-6, 12)])
    assert rows_of(result) == [
        {"a": -5, "all": [-5, -4]},
        {"a": 0, "all": [0, 1]},
        {"a": 5, "all": [5, 6]},
        {"a": 10, "all": [10, 11]},
    ]
    assert result.summary["boxes"]["box"]["ignored"] == 0


def test_align_first_starts_the_grid_at_the_first_value(engine: str) -> None:
    box = {"select": "count(*) as n", "order": {"on": "a", "by": ["k"]}, "size": 10, "align": "first"}
    rows = [{"a": 3, "k": 1}, {"a": 7, "k": 2}, {"a": 12, "k": 1}, {"a": 13, "k": 1}, {"a": 17, "k": 2}]
    result = _run(engine, box, {"a": "int", "k": "int"}, rows)
    assert [tuple(row.values()) for row in rows_of(result)] == [(3, 1, 2), (7, 2, 1), (13, 1, 1), (17, 2, 1)]


def test_null_order_values_are_ignored_and_counted(engine: str) -> None:
    box = {"select": "count(*) as n", "order": {"on": "a", "slack": 1}, "size": 10}
    for train in (1, 2, 1000):
        result = _run(engine, box, {"a": "int"}, [{"a": 1}, {"a": None}, {"a": 2}, {"a": None}], Running(train=train))
        assert rows_of(result) == [{"a": 0, "n": 2}]
        assert result.summary["boxes"]["box"]["ignored"] == 2


def test_slack_counts_the_larger_values_seen_before(engine: str) -> None:
    """With slack 1, after 5, 9 and 8 the frontier is 8: 7 is ignored; after the second 9 it is 9: 8 is too."""
    box = {"select": "collect_list(a) as all", "order": {"on": "a", "slack": 1}, "size": 100}
    result = _run(engine, box, {"a": "int"}, [{"a": a} for a in (5, 9, 8, 7, 8, 9, 8)])
    assert rows_of(result) == [{"a": 0, "all": [5, 8, 8, 9, 9]}]
    assert result.summary["boxes"]["box"]["ignored"] == 2
