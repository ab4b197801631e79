"""What one expression may make: refused for constants when a network is checked, a failed tuple otherwise."""

from __future__ import annotations

import pytest

from headway.errors import ExpressionError
from headway.expressions import Scope, compile_aggregates
from headway.expressions.texts import MOST_BYTES
from headway.network.schema import Schema
from tests.expressions.helpers import evaluate, fails, refused, value

SCHEMA = "s string, n int"
LONG = "x" * 600_000


@pytest.mark.parametrize(
    "text",
    [
        "repeat('x', 2000000000)",
        "repeat(repeat('x', 1000), 1001)",
        "repeat('é', 500001)",
        "lpad('x', 2000000000)",
        "lpad('x', 600000, 'é')",
        "rpad('x', 2147483647, 'ab')",
        "concat(repeat('x', 600000), repeat('y', 600000))",
        "repeat('x', 600000) || repeat('y', 600000)",
        "concat_ws(repeat(',', 400000), 'a', 'b', 'c', 'd')",
        "replace(repeat('a', 100000), 'a', repeat('b', 100000))",
        "regexp_replace(repeat('a', 100000), 'a', repeat('b', 100000))",
        "regexp_replace(repeat('a', 600000), '(a+)', '$1$1')",
    ],
)
def test_constants_that_make_too_much_are_refused(text: str) -> None:
    assert "longer than 1,000,000 bytes" in refused(text)


@pytest.mark.parametrize(
    ("text", "row"),
    [
        ("repeat(s, n)", ("ab", 2_000_000_000)),
        ("lpad(s, n)", ("ab", 2_000_000_000)),
        ("rpad(s, n, s)", ("ab", 2_000_000_000)),
        ("s || s", (LONG, 0)),
        ("concat(s, 'a', s)", (LONG, 0)),
        ("concat_ws(s, '', '', s)", (LONG, 0)),
        ("replace(s, 'x', 'yy')", (LONG, 0)),
        ("replace(s, left(s, 1), 'yy')", (LONG, 0)),
        ("regexp_replace(s, 'x', 'yy')", (LONG, 0)),
    ],
)
def test_a_tuple_that_makes_too_much_fails(text: str, row: tuple[str, int]) -> None:
    reason = fails(text, SCHEMA, [("a", 1), row])
    assert reason.endswith("the text would be longer than 1,000,000 bytes, which is the limit")
    assert evaluate(text, SCHEMA, [("a", 1), ("b", 2), (None, 3)])[2] is None


def test_up_to_the_limit() -> None:
    assert value(f"length(repeat('x', {MOST_BYTES}))") == MOST_BYTES
    assert value("length(lpad('x', 500000, 'é')) + length(rpad('', 1000000))") == 1_500_000
    assert evaluate("length(s || s)", SCHEMA, [("x" * 500_000, 0)] * 3) == [MOST_BYTES] * 3
    assert value("length(replace(repeat('ab', 250000), 'a', 'xyz'))") == MOST_BYTES


def test_a_text_that_came_long_may_stay_so() -> None:
    rows = [("x" * 1_200_000, 0)]
    assert evaluate("length(replace(s, 'y', 'zzz')) + length(regexp_replace(s, '(y)', '$1$1'))", SCHEMA, rows) == [
        2_400_000
    ]


def test_long_texts_are_refused() -> None:
    assert "it has 100,001 characters; at most 100,000 are allowed" in refused("1".rjust(100_001))


@pytest.mark.parametrize(
    "text",
    [
        "(" * 40 + "n" + ")" * 40,
        "abs(" * 40 + "n" + ")" * 40,
        "case when true then " * 40 + "n" + " end" * 40,
        "+".join(["n"] * 5_000),
        "not " * 5_000 + "true",
        "- " * 5_000 + "n",
    ],
)
def test_deep_nesting_is_refused_in_one_line(text: str) -> None:
    assert "brackets, calls and CASE may be nested 30 deep" in refused(text, SCHEMA)


def test_what_is_not_too_deep() -> None:
    assert evaluate("(" * 30 + "n" + ")" * 30, SCHEMA, [("a", 1)]) == [1]
    assert evaluate("+".join(["n"] * 190), SCHEMA, [("a", 1)]) == [190]
    assert evaluate(" or ".join(["n = 2"] * 999), SCHEMA, [("a", 1)]) == [False]


@pytest.mark.parametrize("levels", [31, 400, 3000])
def test_deep_types_of_casts_are_refused(levels: int) -> None:
    for start, end in (("array<", ">"), ("struct<a:", ">")):
        assert "deep" in refused(f"cast(NULL as {start * levels}int{end * levels})")


def test_lists_of_lists_stop_at_the_limit() -> None:
    scope = Scope.of(Schema.parse("a " + "array<" * 30 + "int" + ">" * 30))
    for name in ("collect_list", "array_agg"):
        with pytest.raises(ExpressionError, match="more than 30 deep"):
            compile_aggregates(f"{name}(a) as b", scope)
