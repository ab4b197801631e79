"""The identities of squal.md, and others that follow from it, hold in the reference."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.reference import Arrival, Filter, Graph, Node, run_reference
from tests.reference.compare import assert_same, by_partition, in_any_order
from tests.reference.order import Order, Partition
from tests.streams import (
    COMMON,
    Case,
    data_driven,
    grids,
    join_boxes,
    networks,
    one_box,
    sorted_first,
    streams,
    two_streams,
)


def _by(case: Case) -> tuple[str, ...]:
    by: tuple[str, ...] = tuple(case.twin.boxes[-1].settings["order"]["by"])
    return by


@given(case=one_box(grids))
def test_aggregate_with_slack_is_aggregate_after_bsort(case: Case) -> None:
    if case.twin.boxes[-1].settings.get("align") == "first":
        return  # the first value of a partition is another one after a sort
    composed = sorted_first(case)
    direct, after = (twin.expected(case.inputs)["out"] for twin in (case.twin, composed))
    assert_same(by_partition(direct, _by(case)), by_partition(after, _by(case)))


@given(case=one_box(data_driven))
def test_data_driven_windows_with_slack_are_windows_after_bsort(case: Case) -> None:
    composed = sorted_first(case)
    direct, after = (twin.expected(case.inputs)["out"] for twin in (case.twin, composed))
    assert_same(by_partition(direct, _by(case)), by_partition(after, _by(case)))


@given(case=two_streams(join_boxes))
def test_join_with_slack_is_join_after_bsort(case: Case) -> None:
    direct, after = (twin.expected(case.inputs)["out"] for twin in (case.twin, sorted_first(case)))
    assert_same(in_any_order(direct), in_any_order(after))


@given(case=two_streams(join_boxes), data=st.data())
def test_join_pairs_do_not_depend_on_the_interleaving(case: Case, data: Any) -> None:
    if len(case.inputs) != 2:
        return
    turns = data.draw(st.permutations([name for name in case.inputs for _ in case.inputs[name]]))
    rows = {name: iter(rows) for name, rows in case.inputs.items()}
    other = run_reference(case.twin.graph(), [Arrival(name, next(rows[name])) for name in turns])
    assert_same(in_any_order(case.twin.expected(case.inputs)["out"]), in_any_order(other["out"]))


@given(rows=streams(), slack=st.integers(0, 5))
def test_the_two_definitions_of_out_of_order_agree(rows: list[dict[str, Any]], slack: int) -> None:
    partition = Partition(Order("a", slack), (), 0)
    for row in rows:
        frontier = partition.frontier
        value, in_order = partition.take(row)
        if value is not None:
            assert in_order == (frontier is None or frontier <= value)


@given(case=networks())
def test_a_network_gives_the_same_twice(case: Case) -> None:
    assert case.twin.expected(case.inputs) == case.twin.expected(case.inputs)
    assert all(list(row) == list(COMMON) for rows in case.twin.expected(case.inputs).values() for row in rows)


@given(rows=streams())
def test_filter_loses_nothing(rows: list[dict[str, Any]]) -> None:
    box = Filter(lambda row: row["k"] == 0, lambda row: row["v"] is None)
    graph = Graph([Node("box", box, ("s",))], {"one": "box.1", "two": "box.2", "rest": "box.else"})
    shown = run_reference(graph, [Arrival("s", row) for row in rows])
    assert sorted(row["id"] for rows in shown.values() for row in rows) == [row["id"] for row in rows]
