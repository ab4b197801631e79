"""The universal box: a set selectivity at a set cost, whatever runs it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.behaviour.running import EVERY_WAY, check, rows_of, run_mapping
from tests.reference.kinds import BIGINT
from tests.reference.order import Order
from tests.reference.tuples import Row
from tests.reference.twins import Pair, Twin, aggregates, bsorts, filters, results, unions
from tests.reference.universal import Universal
from tests.streams import Case, Running, long_stream, runnings, schema, streams

SELECTIVITIES = ("0", "0.3", "0.5", "1", "1.25", "2")
HERE = ("local", "sharded")
"""On Spark tests run together, as one network with other names and arrival numbers: exact draws differ there."""


def universals(name: str, *arcs: str, selectivity: str, mode: str = "random", seed: int = 0, cost: Any = 0) -> Pair:
    settings = {"op": "universal", "selectivity": float(selectivity), "mode": mode, "seed": seed, "cost": cost}
    return Pair(name, arcs, settings, lambda: Universal(name, selectivity, mode, seed))


def case(rows: list[Row], *boxes: Pair, others: list[Row] | None = None) -> Case:
    inputs = {"s": rows} | ({} if others is None else {"r": others})
    return Case(Twin({name: schema(BIGINT) for name in inputs}, boxes, {"out": boxes[-1].name}), inputs)


@given(rows=streams(), selectivity=st.sampled_from(SELECTIVITIES), how=runnings())
def test_even(engine: str, rows: list[Row], selectivity: str, how: Running) -> None:
    check(engine, case(rows, universals("box", "s", selectivity=selectivity, mode="even")), how)


@given(
    rows=streams(most=25),
    others=streams(most=25, start=100),
    first=st.sampled_from(SELECTIVITIES),
    second=st.sampled_from(SELECTIVITIES),
    how=runnings(),
)
def test_even_boxes_after_each_other_and_other_boxes(
    engine: str, rows: list[Row], others: list[Row], first: str, second: str, how: Running
) -> None:
    boxes = (
        universals("some", "s", "r", "s", selectivity=first, mode="even"),
        bsorts("sorted", "some", Order("a", 2, ("k",))),
        universals("more", "sorted", "some", selectivity=second, mode="even"),
        aggregates("box", "more", list(results("v").values())[:4], Order("a", 1, ("k",)), 3),
    )
    check(engine, case(rows, *boxes, others=others), how)


@given(rows=streams(), selectivity=st.sampled_from(("0", "1", "3")), how=runnings())
def test_whole_selectivities_leave_nothing_to_chance(
    engine: str, rows: list[Row], selectivity: str, how: Running
) -> None:
    boxes = (
        filters("split", "s", ("side = 0", lambda row: row["side"] == 0)),
        universals("copied", "split", "split.else", selectivity=selectivity, cost={"uniform": [0, "1us"]}),
        aggregates("box", "copied", list(results("v").values())[:4], Order("a", 1, ("k",)), 3),
    )
    check(engine, case(rows, *boxes), how)


@given(rows=streams(), mode=st.sampled_from(("random", "even")), how=runnings())
def test_each_tuple_comes_as_often_as_it_may_and_in_order(
    engine: str, rows: list[Row], mode: str, how: Running
) -> None:
    found = case(rows, universals("box", "s", selectivity="1.5", mode=mode))
    passed = [row["id"] for row in rows_of(run_mapping(engine, found.twin.mapping(), found.inputs, how))]
    assert passed == sorted(passed)
    assert all(passed.count(row["id"]) in (1, 2) for row in rows)
    assert len(passed) >= len(rows)


@pytest.mark.parametrize("where", HERE)
@given(
    rows=streams(most=40),
    others=streams(most=20, start=100),
    selectivity=st.sampled_from(SELECTIVITIES),
    seed=st.integers(0, 3),
    how=runnings(),
)
def test_random(where: str, rows: list[Row], others: list[Row], selectivity: str, seed: int, how: Running) -> None:
    boxes = (
        universals("some", "s", "r", selectivity=selectivity, seed=seed),
        unions("twice", "some", "s", "some"),
        universals("box", "twice", selectivity="0.6", seed=seed, cost={"zipf": [1.2, 3, 1e-7]}),
    )
    check(where, case(rows, *boxes, others=others), how)


@pytest.mark.parametrize("where", HERE)
@given(rows=streams(most=40), selectivity=st.sampled_from(SELECTIVITIES), how=runnings())
def test_random_behind_boxes_with_state(where: str, rows: list[Row], selectivity: str, how: Running) -> None:
    boxes = (
        aggregates("counts", "s", list(results("v").values())[:4], Order("a", 1, ("k", "g")), 3, 1),
        universals("box", "counts", selectivity=selectivity, seed=1),
    )
    check(where, case(rows, *boxes), how)


@pytest.mark.parametrize("mode", ["random", "even"])
@pytest.mark.parametrize("where", HERE)
def test_every_way_of_running_gives_the_same(where: str, mode: str) -> None:
    boxes = (
        universals("copied", "s", selectivity="2.5", mode=mode),
        universals("box", "copied", selectivity="0.37", mode=mode, cost={"uniform": [0, "2us"]}),
    )
    check(where, case(long_stream(3, 150), *boxes), *EVERY_WAY)


def test_the_time_that_it_takes_is_in_the_summary() -> None:
    found = case(long_stream(1, 20), universals("box", "s", selectivity="0.5", cost="2ms"))
    summary = run_mapping("local", found.twin.mapping(), found.inputs).summary
    box = summary["boxes"]["box"]
    assert box["tuples_in"] == 20
    assert box["seconds"] >= 0.04
