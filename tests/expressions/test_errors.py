"""What is refused, and how it is said."""

from __future__ import annotations

import pyarrow as pa
import pytest

from headway.columns import from_pylist
from headway.errors import ExpressionError, NetworkError
from headway.expressions import Scope, compile_expression, compile_predicate, compile_select
from headway.network.schema import Schema
from tests.expressions.helpers import refused

SCHEMA = "time bigint, speed double, name string, flag boolean, at timestamp, tags array<string>"


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("sped > 1", "unknown field 'sped'; did you mean 'speed'? fields: time, speed"),
        ("left.speed", "unknown qualifier 'left'"),
        ("", "it is empty"),
        ("   ", "it is empty"),
        ("speed +", "something is missing after '+' at character 7"),
        ("speed - 1e5-3", "'1e5-3' is not a number; if it is a difference or a sum, write spaces around the sign"),
        ("speed > 1 && flag", "'&&' is not expected at character 11; write AND"),
        ("cast(speed as float(B))", "a type's size is a whole number, as in decimal(10,2)"),
        ("nope(cast(speed as float(B)))", "a type's size is a whole number, as in decimal(10,2)"),
        ("speed > 1 2", "'2' is not expected at character 11"),
        ("(speed", "is expected"),
        ("'abc", "quote"),
        ("speed; speed", "';' is not allowed"),
        ("select speed", "'select' is not expected"),
        ("speed from x", "FROM clause"),
        ("speed where flag", "WHERE clause"),
        ("speed union select 1", "not statements"),
        ("(select 1)", "subqueries"),
        ("exists(select 1)", "subqueries"),
        ("speed in (select 1)", "IN takes a list"),
        ("sum(speed) over (partition by name)", "window functions"),
        ("sum(speed)", "aggregate functions are only allowed"),
        ("count(*)", "aggregate functions are only allowed"),
        ("count(distinct name)", "aggregate functions are only allowed"),
        ("x -> x + 1", "lambdas"),
        ("tags[0]", "indexing"),
        ("*", "* is only allowed"),
        ("speed, time", "one expression is expected here, not 2"),
        ("speed as s", "an alias is not allowed here"),
        (":p", "parameters"),
        ("?", "parameters"),
        ("NULL", "NULL has no type here"),
        ("name + at", "cannot add string and timestamp"),
        ("flag + 1", "cannot add boolean and int"),
        ("-name > at", "cannot compare double with timestamp"),
        ("-flag", "cannot negate a boolean"),
        ("flag > 1", "cannot compare boolean with int by >; cast one side"),
        ("tags = tags", "cannot compare"),
        ("not speed", "the argument of NOT must be boolean, not double"),
        ("flag and name", "the right side of AND must be boolean, not string"),
        ("case when speed then 1 end", "a condition of CASE must be boolean"),
        ("case when flag then 1 else at end", "have no type in common"),
        ("coalesce(flag, 1)", "have no type in common"),
        ("speed & 1", "& takes whole numbers, not double"),
        ("time & 1 | 2", "brackets"),
        ("name || 1 + 2", "brackets"),
        ("~speed", "~ takes whole numbers"),
        ("speed div 2", "div takes whole numbers"),
        ("cast(name as intt)", "intt"),
        ("cast(tags as int)", "cannot cast array<string> to int"),
        ("cast(flag as timestamp)", "cannot cast boolean to timestamp"),
        ("cast(cast(at as date) as int)", "cannot cast date to int; use unix_seconds"),
        ("time like 'a'", "LIKE takes strings, not bigint"),
        ("name like name", "must be a literal"),
        ("name rlike '('", "not a regular expression"),
        ("name like 'a\\\\b'", "must stand before"),
        ("name like any ('a', 'b')", "LIKE ANY"),
        ("fuzz(speed)", "unknown function 'fuzz'"),
        ("current_timestamp()", "depends on the clock"),
        ("uuid()", "depends on chance"),
        ("at at time zone 'CET'", "AT TIME ZONE"),
        ("(1, 2)", "tuples"),
        ("speed is 1", "IS takes"),
        ("1.23456789012345678901234567890123456789", "more than 38 digits"),
        ("a" * 10, "unknown field"),
        ("max(max(speed))", "aggregate functions"),
        ("values", "is not expected"),
        ("drop table x", "is not expected"),
        ("create table x", "is not expected"),
        ("if(flag, 1)", "if is called as if(condition, then, else)"),
        ("name escape 'x'", ""),
        ("interval speed minutes + at", "interval"),
    ],
)
def test_refused(text: str, part: str) -> None:
    assert part in refused(text, SCHEMA)


def test_deep_nesting_is_refused_or_compiled() -> None:
    text = "(" * 5000 + "speed" + ")" * 5000
    assert "nested too deeply" in refused(text, SCHEMA)
    text = " or ".join(["speed > 1"] * 5000)
    expression = compile_predicate(text, Scope.of(Schema.parse(SCHEMA)))
    columns = [None, from_pylist([0.0, 2.0], pa.float64())]
    assert expression.evaluate(columns, 2).values.tolist() == [False, True]


def test_errors_are_network_errors() -> None:
    with pytest.raises(NetworkError):
        compile_expression("nope", Scope.of(Schema.parse(SCHEMA)))


@pytest.mark.parametrize("text", [None, 3, ["a"]])
def test_not_text(text: object) -> None:
    with pytest.raises(ExpressionError, match="an expression is text"):
        compile_expression(text, Scope.of(Schema.parse(SCHEMA)))  # type: ignore[arg-type]


def test_predicates_are_boolean() -> None:
    scope = Scope.of(Schema.parse(SCHEMA))
    with pytest.raises(ExpressionError, match="a condition must be boolean, not double"):
        compile_predicate("speed", scope)
    assert compile_predicate("NULL", scope).evaluate([], 2).is_valid().tolist() == [False, False]


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("speed, speed", "the name 'speed' appears twice"),
        ("*, speed + 1 as Time", "the name 'Time' appears twice"),
        ("left.*", "unknown qualifier 'left'"),
        ("* except (speed)", "is not supported; name the fields"),
        ("", "it is empty"),
        ([], "selects nothing"),
        ("speed,", "nothing after the last comma"),
    ],
)
def test_bad_select(text: str | list[str], part: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        compile_select(text, Scope.of(Schema.parse(SCHEMA)))
    assert part in str(caught.value)
