"""Filter: routing, NULL, and what leaves unchanged."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.behaviour.running import check, rows_of, run, run_mapping
from tests.reference.kinds import BIGINT
from tests.reference.tuples import Row
from tests.reference.twins import Twin, filters
from tests.streams import Case, Running, runnings, schema, streams


@given(rows=streams(), floors=st.lists(st.integers(-9, 9), min_size=1, max_size=4), how=runnings())
def test_filter_routes_like_the_reference(engine: str, rows: list[Row], floors: list[int], how: Running) -> None:
    def at_least(floor: int) -> tuple[str, object]:
        return f"v >= {floor}", lambda row: None if row["v"] is None else row["v"] >= floor

    box = filters("box", "s", *[at_least(floor) for floor in floors])  # type: ignore[arg-type]
    ports = {f"out{at}": f"box.{at + 1}" for at in range(len(floors))} | {"rest": "box.else"}
    check(engine, Case(Twin({"s": schema(BIGINT)}, (box,), ports), {"s": rows}), how)


def test_null_is_not_true_and_not_false(engine: str) -> None:
    rows: list[Row] = [{"n": 1}, {"n": None}, {"n": 0}]
    for text, kept in (("n = 1", [1]), ("not (n = 1)", [0]), ("n = 1 or n is null", [1, None]), ("null", [])):
        mapping = {
            "network": "nulls",
            "sources": {"s": {"schema": {"n": "int"}}},
            "boxes": {"box": {"op": "filter", "in": "s", "where": f"cast({text} as boolean)"}},
            "outputs": {"out": {"from": "box"}, "rest": {"from": "box.else"}},
        }
        result = run_mapping(engine, mapping, {"s": rows})
        assert [row["n"] for row in rows_of(result)] == kept
        assert [row["n"] for row in rows_of(result, "rest")] == [row["n"] for row in rows if row["n"] not in kept]


def test_one_predicate_has_a_plain_name_a_number_and_an_else(engine: str) -> None:
    box = filters("box", "s", ("v > 0", lambda row: row["v"] > 0))
    twin = Twin({"s": {"v": "int"}}, (box,), {"plain": "box", "number": "box.1", "rest": "box.else"})
    result = run(engine, twin, {"s": [{"v": 1}, {"v": -1}]})
    assert rows_of(result, "plain") == rows_of(result, "number") == [{"v": 1}]
    assert rows_of(result, "rest") == [{"v": -1}]


def test_all_types_pass_unchanged(engine: str) -> None:
    fields = {"flag": "boolean", "tiny": "tinyint", "name": "string", "price": "decimal(10,2)", "list": "array<int>"}
    box = filters("box", "s", ("flag", lambda row: row["flag"]))
    twin = Twin({"s": fields}, (box,), {"out": "box", "rest": "box.else"})
    full: Row = {"flag": True, "tiny": -128, "name": "é", "price": None, "list": [1, None]}
    bare: Row = dict.fromkeys(fields)
    result = run(engine, twin, {"s": [full, bare, full]}, Running(train=1))
    assert rows_of(result) == [full, full]
    assert rows_of(result, "rest") == [bare]
