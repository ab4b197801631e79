"""Join: every pair of in-order tuples within the size, once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.behaviour.running import check, rows_of, run, run_mapping
from tests.reference.compare import assert_same, in_any_order
from tests.reference.kinds import BIGINT
from tests.reference.order import Order
from tests.reference.tuples import Row
from tests.reference.twins import Twin, filters, joins, table_joins
from tests.streams import (
    CONDITIONS,
    TABLE,
    Case,
    Running,
    join_boxes,
    runnings,
    schema,
    sorted_first,
    streams,
    two_streams,
)


@given(case=two_streams(join_boxes), how=runnings(), other=runnings())
def test_join(engine: str, case: Case, how: Running, other: Running) -> None:
    check(engine, case, how, other)


@given(case=two_streams(join_boxes), how=runnings())
def test_slack_is_the_same_as_sorts_before(engine: str, case: Case, how: Running) -> None:
    direct = rows_of(run(engine, case.twin, case.inputs, how))
    after = rows_of(run(engine, sorted_first(case), case.inputs, how))
    assert_same(in_any_order(direct), in_any_order(after))


def _interleave(left: Sequence[Row], right: Sequence[Row], turns: Sequence[int]) -> list[Row]:
    sides = (iter(left), iter(right))
    return [next(sides[turn]) | {"side": turn} for turn in turns]


@given(
    left=streams(most=20),
    right=streams(most=20, start=100),
    condition=st.sampled_from(CONDITIONS),
    data=st.data(),
    how=runnings(),
)
def test_pairs_do_not_depend_on_the_interleaving(
    engine: str, left: list[Row], right: list[Row], condition: Any, data: st.DataObject, how: Running
) -> None:
    split = filters("split", "s", ("side = 0", lambda row: row["side"] == 0))
    box = joins("box", ("split", "split.else"), condition, 3, (Order("a", 1, ("k",)), Order("a", 2)))
    twin = Twin({"s": schema(BIGINT)}, (split, box), {"out": "box"})
    turns = [0] * len(left) + [1] * len(right)
    one, other = (
        rows_of(run(engine, twin, {"s": _interleave(left, right, data.draw(st.permutations(turns)))}, how))
        for _ in range(2)
    )
    assert_same(in_any_order(one), in_any_order(other))


@given(rows=streams(most=30), how=runnings())
def test_a_stream_with_itself(engine: str, rows: list[Row], how: Running) -> None:
    box = joins("box", ("s", "s"), CONDITIONS[0], 2, (Order("a", 1), Order("a", 1)))
    check(engine, Case(Twin({"s": schema(BIGINT)}, (box,), {"out": "box"}), {"s": rows}), how)


@given(case=two_streams(join_boxes), how=runnings())
def test_an_unordered_join_finds_the_same_pairs(engine: str, case: Case, how: Running) -> None:
    mapping = case.twin.mapping()
    mapping["boxes"]["box"]["ordered"] = False
    result = run_mapping(engine, mapping, case.inputs, how)
    assert_same(in_any_order(rows_of(result)), in_any_order(case.twin.expected(case.inputs)["out"]))


def test_select_names_the_fields(engine: str) -> None:
    def combine(left: Row, right: Row) -> Row:
        return {"who": left["id"], "whom": right["id"], "gap": right["a"] - left["a"]}

    select = ("left.id as who, right.id as whom, right.a - left.a as gap", combine)
    box = joins("box", ("s", "r"), CONDITIONS[-1], 2, (Order("a"), Order("a")), select=select)
    fields = {"id": "int", "a": "int"}
    inputs = {"s": [{"id": 1, "a": 0}, {"id": 2, "a": 3}], "r": [{"id": 3, "a": 1}, {"id": 4, "a": 5}]}
    twin = Twin({"s": fields, "r": fields}, (box,), {"out": "box"})
    check(engine, Case(twin, inputs), Running())
    assert rows_of(run(engine, twin, inputs))[0] == {"who": 1, "whom": 3, "gap": 1}


@given(rows=streams(), how=runnings())
def test_a_static_table(engine: str, table: Path, rows: list[Row], how: Running) -> None:
    def same(left: Row, right: Row) -> bool | None:
        return None if left["k"] is None or right["k"] is None else left["k"] == right["k"]

    box = table_joins("box", "s", str(table), TABLE, ("left.k = right.k", same))
    check(engine, Case(Twin({"s": schema(BIGINT)}, (box,), {"out": "box"}), {"s": rows}), how)


@given(rows=streams(most=20), how=runnings())
def test_a_static_table_without_an_equality(engine: str, table: Path, rows: list[Row], how: Running) -> None:
    def less(left: Row, right: Row) -> bool | None:
        return None if left["k"] is None or right["k"] is None else left["k"] <= right["k"]

    box = table_joins("box", "s", str(table), TABLE, ("left.k <= right.k", less))
    check(engine, Case(Twin({"s": schema(BIGINT)}, (box,), {"out": "box"}), {"s": rows}), how)
