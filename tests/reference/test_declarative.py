"""The reference against squal.md read as definitions over the whole input, not as a process."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.reference import Aggregate, Arrival, Graph, Join, Node, Resample, in_turn, run_reference
from tests.reference.compare import in_any_order
from tests.reference.order import Order
from tests.reference.tuples import Row
from tests.streams import orders, sizes, streams


def in_order(rows: list[Row], order: Order) -> list[Row]:
    """Return the rows before which at most `slack` of the same partition have a larger A."""
    kept = []
    for at, row in enumerate(rows):
        before = [other for other in rows[:at] if order.key(other) == order.key(row) and other["a"] is not None]
        if row["a"] is not None and sum(other["a"] > row["a"] for other in before) <= order.slack:
            kept.append(row)
    return kept


def ids(rows: Any) -> list[int]:
    return sorted(row["id"] for row in rows)


@given(rows=streams(), order=orders(), size=sizes, advance=sizes)
def test_aggregate_by_definition(rows: list[Row], order: Order, size: int, advance: int) -> None:
    graph = Graph([Node("box", Aggregate({"ids": ids}, order, size, advance), ("s",))], {"out": "box"})
    actual = run_reference(graph, [Arrival("s", row) for row in rows])["out"]
    windows: dict[Any, list[Row]] = defaultdict(list)
    for row in in_order(rows, order):
        for start in range(-100, 100):
            if start % advance == 0 and start <= row["a"] < start + size:
                windows[start, order.key(row)].append(row)
    expected = [
        {"a": start} | dict(zip(order.by, key, strict=True)) | {"ids": ids(held)}
        for (start, key), held in windows.items()
    ]
    assert in_any_order(actual) == in_any_order(expected)


@given(left=streams(most=25), right=streams(most=25), one=orders(), other=orders(), size=sizes)
def test_join_by_definition(left: list[Row], right: list[Row], one: Order, other: Order, size: int) -> None:
    box = Join(lambda t, u: t["k"] == u["k"], size, one, other, lambda t, u: {"t": t["id"], "u": u["id"]})
    graph = Graph([Node("box", box, ("s", "r"))], {"out": "box"})
    actual = run_reference(graph, in_turn({"s": left, "r": right}))["out"]
    expected = [
        {"t": t["id"], "u": u["id"]}
        for t in in_order(left, one)
        for u in in_order(right, other)
        if abs(t["a"] - u["a"]) <= size and t["k"] == u["k"]
    ]
    assert in_any_order(actual) == in_any_order(expected)


@given(left=streams(most=25), right=streams(most=25), one=orders(), other=orders(), size=sizes, end=st.booleans())
def test_resample_by_definition(
    left: list[Row], right: list[Row], one: Order, other: Order, size: int, end: bool
) -> None:
    """A partition announced in the beginning answers every t; a first row without A announces it."""
    partitions = list(dict.fromkeys(other.key(row) for row in right))
    blank: Row = dict.fromkeys(("id", "a", "k", "g", "v", "side"))
    known = [blank | dict(zip(other.by, key, strict=True)) for key in partitions]
    graph = Graph([Node("box", Resample({"ids": ids}, size, one, other), ("s", "r"))], {"out": "box"})
    arrivals = [Arrival("r", row) for row in known] + in_turn({"s": left, "r": right})
    actual = run_reference(graph, arrivals, end=end)["out"]
    expected = []
    for t in in_order(left, one):
        for key in partitions:
            near = [u for u in in_order(right, other) if other.key(u) == key and abs(t["a"] - u["a"]) <= size]
            values = sorted((u["a"] for u in right if other.key(u) == key and u["a"] is not None), reverse=True)
            passed = len(values) > other.slack and values[other.slack] > t["a"] + size
            if near and (end or passed):
                expected.append(dict(zip(other.by, key, strict=True)) | {"a": t["a"], "ids": ids(near)})
    assert in_any_order(actual) == in_any_order(expected)
