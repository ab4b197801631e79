"""Functions that do not exist: what is close comes first, aggregates where they belong, and no long lists."""

from __future__ import annotations

import pytest

from headway.errors import ExpressionError, UnknownFunctionError
from headway.expressions import Scope, compile_aggregates, compile_expression
from headway.expressions.library.table import AGGREGATES, BUILTINS, MEANT
from headway.network.schema import Schema
from tests.expressions.helpers import refused

SCHEMA = Schema.parse("pos int, name string, at timestamp, other timestamp, day date, local timestamp_ntz")


def message(select: str) -> str:
    with pytest.raises(ExpressionError) as caught:
        compile_aggregates(select, Scope.of(SCHEMA))
    return str(caught.value)


def test_an_unknown_aggregate_lists_aggregates() -> None:
    text = message("avgg(pos) as a")
    assert "unknown function 'avgg'; did you mean 'avg'? aggregate functions: any, any_value, " in text
    assert "stddev" in text
    assert len(text) < 700
    assert "did you mean 'upper'?" in message("uperr(name) as a"), "of the window's fields"
    assert "did you mean 'upper'?" in message("max(uperr(name)) as a")


def test_a_list_of_functions_has_a_bound() -> None:
    text = refused("lenght(name)", SCHEMA)
    assert "did you mean 'length'? functions: length, " in text
    assert "more (docs/expressions.md)" in text
    assert len(text) < 350


def test_an_aggregate_where_none_may_be() -> None:
    assert "did you mean 'avg'? (an aggregate: only in the select of" in refused("avgg(pos)", SCHEMA)


def test_names_of_other_systems() -> None:
    known = {*BUILTINS, *AGGREGATES, "if"}
    assert set(MEANT.values()) <= known
    assert not set(MEANT) & known
    assert "did you mean 'percentile'? aggregate functions: any, " in message("quantile(pos, 0.5) as q")
    assert "did you mean 'percentile'? (an aggregate: only in the select of" in refused("quantile(pos, 0.5)", SCHEMA)
    assert "did you mean 'length'? functions: length, " in refused("len(name)", SCHEMA)
    assert "did you mean 'avg'?" in message("Average(pos) as q")


@pytest.mark.parametrize(("text", "later"), [("lenght(name)", False), ("mine(pos)", True), ("fuzz(pos)", True)])
def test_a_name_that_is_nearly_right_is_no_function_to_come(text: str, later: bool) -> None:
    with pytest.raises(ExpressionError) as caught:
        compile_expression(text, Scope.of(SCHEMA))
    assert isinstance(caught.value, UnknownFunctionError) is later


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("at - other", ("unix_seconds(a) - unix_seconds(b)", "unix_millis", "datediff(a, b)")),
        ("local - at", ("unix_seconds(a)",)),
        ("day - day", ("datediff(end, start)",)),
        ("at - day", ("datediff(end, start)",)),
        ("at + other", ("ts + interval 5 minutes",)),
    ],
)
def test_times_between_times(text: str, parts: tuple[str, ...]) -> None:
    for part in parts:
        assert part in refused(text, SCHEMA)


@pytest.mark.parametrize(
    "text",
    [
        "unix_seconds(at) - unix_seconds(other)",
        "unix_millis(at) - unix_millis(other)",
        "unix_micros(at) - unix_micros(other)",
        "datediff(at, other)",
        "datediff(day, day)",
        "datediff(at, day)",
        "at + interval 5 minutes",
        "unix_seconds(cast(local as timestamp)) - unix_seconds(at)",
    ],
)
def test_what_is_suggested_works(text: str) -> None:
    assert compile_expression(text, Scope.of(SCHEMA))
