"""Map: one tuple out per tuple in, and chains with filters, which an engine may fuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.behaviour.running import check, rows_of, run_mapping
from tests.reference.kinds import BIGINT
from tests.reference.tuples import Row
from tests.reference.twins import Pair, Twin, filters, maps
from tests.streams import Case, Running, runnings, schema, streams

Step = tuple[str, str, Callable[[Row], Any]]


def _null_safe(function: Callable[[Any], Any]) -> Callable[[Row], Any]:
    return lambda row: None if row["v"] is None else function(row["v"])


STEPS: tuple[Step, ...] = (
    ("map", "v + 3", _null_safe(lambda v: v + 3)),
    ("map", "v * 2", _null_safe(lambda v: v * 2)),
    ("map", "-v", _null_safe(lambda v: -v)),
    ("map", "coalesce(v, 7)", lambda row: 7 if row["v"] is None else row["v"]),
    ("map", "case when v > 0 then v else 0 - v end", lambda row: None if row["v"] is None else abs(row["v"])),
    ("map", "if(v > 4, null, v)", lambda row: None if row["v"] is None or row["v"] > 4 else row["v"]),
    ("filter", "v > -3", _null_safe(lambda v: v > -3)),
    ("filter", "v is null or v < 6", lambda row: row["v"] is None or row["v"] < 6),
    ("filter", "v between -8 and 8", _null_safe(lambda v: -8 <= v <= 8)),
    ("filter", "v not in (1, 2)", _null_safe(lambda v: v not in (1, 2))),
)


@given(rows=streams(), steps=st.lists(st.sampled_from(STEPS), min_size=1, max_size=6), how=runnings())
def test_chains_of_maps_and_filters(engine: str, rows: list[Row], steps: list[Step], how: Running) -> None:
    boxes: list[Pair] = []
    for at, (op, text, function) in enumerate(steps):
        arc = boxes[-1].name if boxes else "s"
        if op == "filter":
            boxes.append(filters(f"b{at}", arc, (text, function)))
        else:
            select = f"id, a, k, g, {text} as v, side"
            boxes.append(maps(f"b{at}", arc, select, lambda row, call=function: row | {"v": call(row)}))  # type: ignore[misc]
    outputs = {"out": boxes[-1].name, "middle": boxes[len(boxes) // 2].name}
    check(engine, Case(Twin({"s": schema(BIGINT)}, tuple(boxes), outputs), {"s": rows}), how)


def test_map_may_repeat_reorder_and_name_fields(engine: str) -> None:
    mapping = {
        "network": "names",
        "sources": {"s": {"schema": {"a": "int", "b": "string"}}},
        "boxes": {"box": {"op": "map", "in": "s", "select": "b, a as first, a * 2 as second, upper(b) as loud"}},
        "outputs": {"out": {"from": "box"}},
    }
    result = run_mapping(engine, mapping, {"s": [{"a": 1, "b": "x"}, {"a": None, "b": None}]})
    assert rows_of(result) == [
        {"b": "x", "first": 1, "second": 2, "loud": "X"},
        {"b": None, "first": None, "second": None, "loud": None},
    ]


def test_integer_division_gives_a_double(engine: str) -> None:
    mapping = {
        "network": "division",
        "sources": {"s": {"schema": {"a": "int"}}},
        "boxes": {"box": {"op": "map", "in": "s", "select": "a / 2 as half, a div 2 as whole"}},
        "outputs": {"out": {"from": "box"}},
    }
    result = run_mapping(engine, mapping, {"s": [{"a": 3}, {"a": -3}]})
    assert rows_of(result) == [{"half": 1.5, "whole": 1}, {"half": -1.5, "whole": -1}]
