"""BSort: a buffer of slack + 1 tuples per partition."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.behaviour.running import check, rows_of, run
from tests.reference.kinds import BIGINT, Kind
from tests.reference.order import Order
from tests.reference.tuples import Row
from tests.reference.twins import Pair, Twin, bsorts
from tests.streams import Case, Running, one_box, orders, runnings, schema, streams


def boxes(kind: Kind) -> st.SearchStrategy[Pair]:
    return orders(numbered=True).map(lambda order: bsorts("box", "s", order))


@given(case=one_box(boxes), how=runnings(), other=runnings())
def test_bsort(engine: str, case: Case, how: Running, other: Running) -> None:
    check(engine, case, how, other)


@given(rows=streams(), how=runnings())
def test_two_sorts_in_a_row(engine: str, rows: list[Row], how: Running) -> None:
    pairs = (bsorts("one", "s", Order("a", 2, ("k",))), bsorts("two", "one", Order("v", 3)))
    check(engine, Case(Twin({"s": schema(BIGINT)}, pairs, {"out": "two", "middle": "one"}), {"s": rows}), how)


@given(rows=streams(), how=runnings())
def test_enough_slack_sorts_fully(engine: str, rows: list[Row], how: Running) -> None:
    twin = Twin({"s": schema(BIGINT)}, (bsorts("box", "s", Order("a", 60)),), {"out": "box"})

    def key(row: Row) -> tuple[Any, ...]:
        return row["a"] is not None, row["a"] or 0, row["id"]

    assert rows_of(run(engine, twin, {"s": rows}, how)) == sorted(rows, key=key)
