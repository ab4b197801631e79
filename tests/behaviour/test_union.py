"""Union: all tuples of all inputs, in the order of their arrival."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.behaviour.running import check, rows_of, run_mapping
from tests.reference.compare import in_any_order
from tests.reference.kinds import BIGINT
from tests.reference.order import Order
from tests.reference.tuples import Row
from tests.reference.twins import Twin, bsorts, filters, maps, unions
from tests.streams import Case, Running, runnings, schema, streams


@given(rows=st.lists(streams(most=15), min_size=2, max_size=4), how=runnings())
def test_sources_in_turn(engine: str, rows: list[list[Row]], how: Running) -> None:
    inputs = {f"s{at}": [row | {"side": at} for row in stream] for at, stream in enumerate(rows)}
    twin = Twin({name: schema(BIGINT) for name in inputs}, (unions("box", *reversed(inputs)),), {"out": "box"})
    check(engine, Case(twin, inputs), how)


@given(rows=streams(), slack=st.integers(0, 3), how=runnings())
def test_branches_of_one_source_keep_the_order_of_the_inputs(
    engine: str, rows: list[Row], slack: int, how: Running
) -> None:
    boxes = (
        filters("split", "s", ("v > 0", lambda row: None if row["v"] is None else row["v"] > 0)),
        maps("marked", "s", "id, a, k, g, v, 9 as side", lambda row: row | {"side": 9}),
        bsorts("late", "split", Order("a", slack)),
        unions("box", "late", "marked", "split.else"),
    )
    check(engine, Case(Twin({"s": schema(BIGINT)}, boxes, {"out": "box"}), {"s": rows}), how)


@given(rows=streams(), how=runnings())
def test_the_same_arc_twice(engine: str, rows: list[Row], how: Running) -> None:
    twin = Twin({"s": schema(BIGINT)}, (unions("box", "s", "s"),), {"out": "box"})
    check(engine, Case(twin, {"s": rows}), how)


@given(rows=streams(), op=st.sampled_from(("union", "universal")), how=runnings())
def test_an_unordered_union_loses_nothing(engine: str, rows: list[Row], op: str, how: Running) -> None:
    mapping: dict[str, Any] = {
        "network": "unordered",
        "sources": {"s": {"schema": schema(BIGINT)}, "r": {"schema": schema(BIGINT)}},
        "boxes": {"box": {"op": op, "in": ["s", "r"], "ordered": False}},
        "outputs": {"out": {"from": "box"}},
    }
    result = run_mapping(engine, mapping, {"s": rows, "r": rows[:7]}, how)
    assert in_any_order(rows_of(result)) == in_any_order([*rows, *rows[:7]])


def test_a_source_without_tuples_holds_nobody_up(engine: str) -> None:
    twin = Twin({"s": {"n": "int"}, "r": {"n": "int"}}, (unions("box", "s", "r"),), {"out": "box"})
    check(engine, Case(twin, {"s": [], "r": [{"n": n} for n in range(10)]}), Running(train=1), Running())
