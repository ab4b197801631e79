"""Aggregate over data-driven windows."""

from __future__ import annotations

from hypothesis import given

from tests.behaviour.running import check, rows_of, run
from tests.reference.compare import assert_same, by_partition
from tests.reference.kinds import BIGINT
from tests.reference.order import Order
from tests.reference.tuples import Row
from tests.reference.twins import Twin, results, sessions
from tests.streams import Case, Running, data_driven, one_box, runnings, schema, sorted_first, streams


@given(case=one_box(data_driven), how=runnings(), other=runnings())
def test_data_driven_windows(engine: str, case: Case, how: Running, other: Running) -> None:
    check(engine, case, how, other)


@given(case=one_box(data_driven), how=runnings())
def test_slack_is_the_same_as_a_sort_before(engine: str, case: Case, how: Running) -> None:
    by = case.twin.boxes[-1].settings["order"]["by"]
    direct = rows_of(run(engine, case.twin, case.inputs, how))
    after = rows_of(run(engine, sorted_first(case), case.inputs, how))
    assert_same(by_partition(direct, by), by_partition(after, by))


@given(rows=streams(), how=runnings())
def test_sessions_by_gap(engine: str, rows: list[Row], how: Running) -> None:
    box = sessions(
        "box",
        "s",
        [results("v")["n"], results("id")["listed"]],
        Order("a", 1, ("g",)),
        "a - last.a > 2",
        lambda row, first, last: row["a"] - last["a"] > 2,
    )
    check(engine, Case(Twin({"s": schema(BIGINT)}, (box,), {"out": "box"}), {"s": rows}), how)
