"""Aggregate calls: recognised, typed, deduplicated, and the expressions around them."""

from __future__ import annotations

import pytest

from headway.columns import from_pylist, to_arrow
from headway.errors import ExpressionError
from headway.expressions import AggregateSelect, Scope, compile_aggregates
from headway.network.schema import Schema, type_name

SCHEMA = Schema.parse(
    "time bigint, pos int, speed double, small float, price decimal(10,2), name string, ok boolean, "
    "day date, tags array<string>"
)
SCOPE = Scope.of(SCHEMA)
BY = Schema.parse("name string, sid int")


def compiled(text: str | list[str], extra: Schema = BY) -> AggregateSelect:
    return compile_aggregates(text, SCOPE, extra)


@pytest.mark.parametrize(
    ("text", "function", "type_"),
    [
        ("count(*)", "count", "bigint"),
        ("count(1)", "count", "bigint"),
        ("count(pos)", "count", "bigint"),
        ("count(distinct name)", "count_distinct", "bigint"),
        ("COUNT_IF(ok)", "count_if", "bigint"),
        ("approx_count_distinct(name)", "approx_count_distinct", "bigint"),
        ("approx_count_distinct(name, 0.01)", "approx_count_distinct", "bigint"),
        ("sum(pos)", "sum", "bigint"),
        ("sum(speed)", "sum", "double"),
        ("sum(small)", "sum", "double"),
        ("sum(price)", "sum", "decimal(20,2)"),
        ("avg(pos)", "avg", "double"),
        ("mean(speed)", "avg", "double"),
        ("avg(price)", "avg", "decimal(14,6)"),
        ("min(name)", "min", "string"),
        ("max(day)", "max", "date"),
        ("first(tags)", "first", "array<string>"),
        ("first_value(pos)", "first", "int"),
        ("last(pos)", "last", "int"),
        ("last_value(pos)", "last", "int"),
        ("any_value(pos)", "any_value", "int"),
        ("stddev(pos)", "stddev_samp", "double"),
        ("std(pos)", "stddev_samp", "double"),
        ("stddev_samp(pos)", "stddev_samp", "double"),
        ("stddev_pop(pos)", "stddev_pop", "double"),
        ("variance(pos)", "var_samp", "double"),
        ("var_samp(pos)", "var_samp", "double"),
        ("var_pop(pos)", "var_pop", "double"),
        ("median(pos)", "median", "double"),
        ("percentile(pos, 0.95)", "percentile", "double"),
        ("approx_percentile(pos, 0.5)", "approx_percentile", "int"),
        ("percentile_approx(price, 0.5, 100)", "approx_percentile", "decimal(10,2)"),
        ("collect_list(pos)", "collect_list", "array<int>"),
        ("array_agg(name)", "collect_list", "array<string>"),
        ("collect(name)", "collect_list", "array<string>"),
        ("collect_set(pos)", "collect_set", "array<int>"),
        ("bool_and(ok)", "bool_and", "boolean"),
        ("every(ok)", "bool_and", "boolean"),
        ("bool_or(ok)", "bool_or", "boolean"),
        ("some(ok)", "bool_or", "boolean"),
        ("any(ok)", "bool_or", "boolean"),
        ("max_by(name, speed)", "max_by", "string"),
        ("min_by(pos, speed)", "min_by", "int"),
    ],
)
def test_recognised(text: str, function: str, type_: str) -> None:
    made = compiled(f"{text} as r")
    assert [call.function for call in made.calls] == [function]
    assert type_name(made.calls[0].type) == type_
    (name, result) = made.results[0]
    assert name == "r"
    assert result.type == made.calls[0].type
    assert result.field == 0
    assert compiled(f"{result.sql} as r") == AggregateSelect(made.calls, ((name, result),))


def test_arguments_and_parameters() -> None:
    made = compiled("percentile(pos + 1, 0.95), count(*), max_by(name, speed), approx_percentile(pos, 0.5, 100)")
    percentile, count, best, approximate = made.calls
    assert percentile.parameters == (0.95,)
    assert [argument.sql for argument in percentile.arguments] == ["pos + 1"]
    assert count.arguments == ()
    assert [argument.field for argument in best.arguments] == [5, 2]
    assert approximate.parameters == (0.5, 100.0)


def test_expressions_over_calls() -> None:
    made = compiled("sum(pos) / count(*) as mean, name, 2 * count(*) + sid as odd, max(speed) - min(speed)")
    assert [call.function for call in made.calls] == ["sum", "count", "max", "min"]
    names = [name for name, _ in made.results]
    assert names == ["mean", "name", "odd", "max(speed) - min(speed)"]
    slots = [result.slots for _, result in made.results]
    assert slots == [(0, 1), (4,), (1, 5), (2, 3)]
    columns = [
        from_pylist([10, 3], made.calls[0].type),
        from_pylist([4, 2], made.calls[1].type),
        from_pylist([2.5, None], made.calls[2].type),
        from_pylist([0.5, 1.0], made.calls[3].type),
        from_pylist(["a", "b"], BY.types[0]),
        from_pylist([7, 8], BY.types[1]),
    ]
    results = [to_arrow(result.evaluate(columns, 2), result.type).to_pylist() for _, result in made.results]
    assert results == [[2.5, 1.5], ["a", "b"], [15, 12], [2.0, None]]


def test_calls_are_deduplicated_but_not_across_filters() -> None:
    made = compiled("sum(pos) as a, sum( POS ) + 1 as b, sum(pos) filter (where ok) as c")
    assert [(call.function, call.where is not None) for call in made.calls] == [("sum", False), ("sum", True)]
    assert made.calls[1].where is not None
    assert made.calls[1].where.sql == "ok"


def test_ignore_nulls_is_a_filter() -> None:
    for text in ("first(pos) ignore nulls", "first(pos, true)", "first_value(pos) ignore nulls"):
        (call,) = compiled(text).calls
        assert call.where is not None
        rows = from_pylist([1, None], SCHEMA.types[1])
        columns = [None, rows, *[None] * 7]
        assert call.where.evaluate(columns, 2).values.tolist() == [True, False]
    assert compiled("first(pos, false)").calls[0].where is None
    (call,) = compiled("last(pos) filter (where ok or speed > 1) ignore nulls").calls
    assert call.where is not None
    assert call.where.slots == (1, 2, 6)


def test_a_list_of_texts() -> None:
    made = compiled(["count(*) as n", "avg(pos) as mean"])
    assert [name for name, _ in made.results] == ["n", "mean"]


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("sum(name)", "sum takes a number, not string"),
        ("avg(ok)", "avg takes a number, not boolean"),
        ("count_if(pos)", "count_if takes a boolean, not int"),
        ("min(tags)", "min takes a value that has an order"),
        ("sum(nope)", "unknown field 'nope'"),
        ("pos", "'pos' stands outside of an aggregate function and is not a by field; fields usable outside: name"),
        ("sum(pos) + pos", "stands outside"),
        ("nope", "unknown field 'nope'"),
        ("*", "* cannot be selected"),
        ("sum(sum(pos))", "aggregate functions are only allowed"),
        ("sum()", "sum is called as sum(x)"),
        ("sum(pos, 1)", "sum is called as sum(x)"),
        ("percentile(pos)", "percentile is called as percentile(x, p)"),
        ("percentile(pos, 2)", "between 0 and 1"),
        ("percentile(pos, speed)", "must be a literal"),
        ("sum(distinct pos)", "only supported in count(distinct x)"),
        ("count(distinct pos, name)", "count is called as"),
        ("sum(pos) ignore nulls", "IGNORE NULLS belongs to"),
        ("sum(pos) filter (where speed)", "the condition of FILTER must be boolean"),
        ("upper(name) filter (where ok)", "only allowed after an aggregate"),
        ("sum(pos) over (order by time)", "window functions"),
        ("sum(pos) as a, count(*) as A", "appears twice"),
        ("count(NULL)", "NULL has no type"),
        ("summ(pos)", "unknown function 'summ'"),
        ("count(*", "is expected"),
    ],
)
def test_refused(text: str, part: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        compiled(text)
    assert part in str(caught.value)
    assert str(caught.value).startswith(f"expression '{text}': ")
