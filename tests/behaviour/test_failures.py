"""An expression that fails on a tuple sends that tuple away; it does not stop the network."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.behaviour.running import rows_of, run_mapping
from tests.reference.tuples import Row
from tests.streams import Running, runnings


def _network(box: dict[str, Any], fields: dict[str, str], outputs: dict[str, str] | None = None) -> dict[str, Any]:
    return {
        "network": "failures",
        "sources": {"s": {"schema": fields}},
        "boxes": {"box": {"in": "s", **box}},
        "outputs": {name: {"from": arc} for name, arc in (outputs or {"out": "box"}).items()},
    }


def _reasons(result: Any) -> list[tuple[str, str]]:
    letters: list[Row] = result.dead_letters.to_pylist()
    return [(letter["box"], letter["reason"]) for letter in letters]


values = st.lists(st.one_of(st.integers(-2, 2), st.none()), max_size=40)


@given(drawn=values, how=runnings())
def test_division_by_zero_in_a_map(engine: str, drawn: list[int | None], how: Running) -> None:
    network = _network({"op": "map", "select": "id, 12 / v as q"}, {"id": "int", "v": "int"})
    result = run_mapping(engine, network, {"s": [{"id": at, "v": v} for at, v in enumerate(drawn)]}, how)
    kept = [(at, v) for at, v in enumerate(drawn) if v != 0]
    assert rows_of(result) == [{"id": at, "q": None if v is None else 12 / v} for at, v in kept]
    reasons = _reasons(result)
    assert len(reasons) == drawn.count(0)
    assert all(box == "box" and "zero" in reason.lower() for box, reason in reasons)


@given(drawn=values, how=runnings())
def test_division_by_zero_in_a_filter(engine: str, drawn: list[int | None], how: Running) -> None:
    network = _network(
        {"op": "filter", "where": ["v > 1", "1 / v < 0"]},
        {"id": "int", "v": "int"},
        {"one": "box.1", "two": "box.2", "rest": "box.else"},
    )
    rows = [{"id": at, "v": v} for at, v in enumerate(drawn)]
    result = run_mapping(engine, network, {"s": rows}, how)
    assert rows_of(result, "one") == [row for row in rows if row["v"] is not None and row["v"] > 1]
    assert rows_of(result, "two") == [row for row in rows if row["v"] is not None and row["v"] < 0]
    assert rows_of(result, "rest") == [row for row in rows if row["v"] in (None, 1)]
    assert len(_reasons(result)) == drawn.count(0)


@given(drawn=values, how=runnings())
def test_a_failure_in_the_middle_of_a_chain_names_its_box(engine: str, drawn: list[int | None], how: Running) -> None:
    network = {
        "network": "chain",
        "sources": {"s": {"schema": {"v": "int"}}},
        "boxes": {
            "near": {"op": "filter", "in": "s", "where": "v < 2"},
            "inverse": {"op": "map", "in": "near", "select": "v, 2 / v as w"},
            "last": {"op": "map", "in": "inverse", "select": "v, 1 / (w + 1) as x"},
        },
        "outputs": {"out": {"from": "last"}},
    }
    result = run_mapping(engine, network, {"s": [{"v": v} for v in drawn]}, how)
    kept = [v for v in drawn if v is not None and v < 2 and v not in (0, -2)]
    assert rows_of(result) == [{"v": v, "x": 1 / (2 / v + 1)} for v in kept]
    boxes = [box for box, _ in _reasons(result)]
    assert (boxes.count("inverse"), boxes.count("last")) == (drawn.count(0), drawn.count(-2))
    assert len(boxes) == drawn.count(0) + drawn.count(-2)


@pytest.mark.parametrize(
    ("select", "value", "reason"),
    [
        ("v + 1 as w", 2**31 - 1, "overflow"),
        ("v % 0 as w", 1, "zero"),
        ("cast(cast(v as string) || 'x' as int) as w", 1, "int"),
    ],
)
def test_other_failures(engine: str, select: str, value: int, reason: str) -> None:
    result = run_mapping(engine, _network({"op": "map", "select": select}, {"v": "int"}), {"s": [{"v": value}]})
    assert rows_of(result) == []
    [(box, said)] = _reasons(result)
    assert box == "box"
    assert reason in said.lower()


@given(drawn=values, how=runnings())
def test_a_failing_argument_keeps_the_tuple_out_of_its_window(
    engine: str, drawn: list[int | None], how: Running
) -> None:
    box = {"op": "aggregate", "select": "count(*) as n, sum(4 div v) as total", "order": {"on": "a"}, "size": 10}
    rows = [{"a": at, "v": v} for at, v in enumerate(drawn)]
    result = run_mapping(engine, _network(box, {"a": "int", "v": "int"}), {"s": rows}, how)
    expected = []
    for start in range(0, len(rows), 10):
        kept = [row["v"] for row in rows[start : start + 10] if row["v"] != 0]
        numbers = [int(4 / v) for v in kept if v is not None]
        if kept:
            expected.append({"a": start, "n": len(kept), "total": sum(numbers) if numbers else None})
    assert rows_of(result) == expected
    assert len(_reasons(result)) == drawn.count(0)
