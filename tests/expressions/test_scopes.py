"""Names, select lists and join conditions."""

from __future__ import annotations

import pytest

from headway.columns import from_pylist
from headway.errors import ExpressionError
from headway.expressions import Relation, Scope, compile_expression, compile_join, compile_select
from headway.network.schema import Schema, type_name

LEFT = Schema.parse("id int, time bigint, pos int, name string, v double")
RIGHT = Schema.parse("id bigint, time bigint, Speed double, name string")
BOTH = Scope((Relation("left", LEFT), Relation("right", RIGHT)))


def test_names_resolve() -> None:
    assert compile_expression("left.id", BOTH).field == 0
    assert compile_expression("RIGHT.SPEED", BOTH).field == 7
    assert compile_expression("pos", BOTH).field == 2
    assert compile_expression("`speed`", BOTH).field == 7
    with pytest.raises(ExpressionError, match=r"'time' is ambiguous; write left\.time or right\.time"):
        compile_expression("time", BOTH)
    with pytest.raises(ExpressionError, match=r"unknown field 'left\.speed'"):
        compile_expression("left.speed", BOTH)
    with pytest.raises(ExpressionError, match=r"unknown qualifier 'middle'.*qualifiers: left, right"):
        compile_expression("middle.speed", BOTH)


def test_bare_names_prefer_the_unqualified_relation() -> None:
    scope = Scope((Relation("first", LEFT), Relation(None, RIGHT)))
    assert compile_expression("time", scope).field == 6
    assert compile_expression("first.time", scope).field == 1
    assert compile_expression("pos", scope).field == 2


def test_select() -> None:
    scope = Scope.of(LEFT)
    made = compile_select("TIME, pos, pos * 2 as twice, upper(name)", scope)
    assert [name for name, _ in made] == ["time", "pos", "twice", "upper(name)"]
    assert [expression.field for _, expression in made] == [1, 2, None, None]
    assert [name for name, _ in compile_select("*, pos + 1", scope)] == [*LEFT.names, "pos + 1"]
    assert [name for name, _ in compile_select(["id", "pos p, v"], scope)] == ["id", "p", "v"]
    assert [e.sql for _, e in compile_select("left.*, right.speed", BOTH)][:2] == ["left.id", "left.time"]
    with pytest.raises(ExpressionError, match="the name 'id' appears twice"):
        compile_select("*", BOTH)


def test_odd_names_are_quoted() -> None:
    schema = Schema.parse({"odd name": "int", "select": "int"})
    made = compile_select("*", Scope.of(schema))
    assert made[0][1].sql == "`odd name`"
    for _, expression in made:
        assert compile_expression(expression.sql, Scope.of(schema)).field == expression.field


def test_join_condition() -> None:
    made = compile_join("left.id = right.id and right.name = left.name and left.v > right.speed", LEFT, RIGHT)
    assert made.names == (("id", "id"), ("name", "name"))
    (one, two), (three, four) = made.equalities
    assert (type_name(one.type), one.slots, one.field) == ("bigint", (0,), None)
    assert (type_name(two.type), two.field) == ("bigint", 0)
    assert (three.field, four.field) == (3, 3)
    assert made.residual is not None
    assert made.residual.sql == "left.v > right.Speed"
    assert made.residual.slots == (4, 7)


def test_join_equality_of_expressions() -> None:
    made = compile_join("(left.pos + 1 = right.id * 2)", LEFT, RIGHT)
    ((one, two),) = made.equalities
    assert made.names == ()
    assert made.residual is None
    columns = [None, None, from_pylist([1, 2], LEFT.types[2]), None, None]
    assert one.evaluate(columns, 2).values.tolist() == [2, 3]
    assert two.slots == (0,)


@pytest.mark.parametrize(
    "text",
    [
        "left.v = right.speed",
        "left.id = right.id or left.pos = 3",
        "left.pos = 3",
        "left.id + right.id = 3",
        "left.pos < right.id",
        "not left.id = right.id",
        "true",
    ],
)
def test_join_without_equality(text: str) -> None:
    made = compile_join(text, LEFT, RIGHT)
    assert made.equalities == ()
    assert made.residual is not None


def test_join_residuals_keep_their_brackets() -> None:
    made = compile_join("(left.pos = 1 or left.pos = 2) and (left.v > 1 or right.speed > 1)", LEFT, RIGHT)
    assert made.residual is not None
    columns = [
        None, None, from_pylist([3, 1, 1], LEFT.types[2]), None, from_pylist([2.0, 2.0, 0.0], LEFT.types[4]),
        None, None, from_pylist([2.0, 0.0, 0.0], RIGHT.types[2]), None,
    ]  # fmt: skip
    assert made.residual.evaluate(columns, 3).values.tolist() == [False, True, False]
    again = compile_expression(made.residual.sql, BOTH)
    assert again.evaluate(columns, 3).values.tolist() == [False, True, False]


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("left.id", "a condition must be boolean"),
        ("id = id", "'id' is ambiguous"),
        ("left.id = right.nope", "unknown field 'right.nope'"),
        ("left.name = right.time and", "missing"),
    ],
)
def test_bad_joins(text: str, part: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        compile_join(text, LEFT, RIGHT)
    assert part in str(caught.value)
