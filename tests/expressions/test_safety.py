"""What is said never to fail does not; and what can fail is not said to be safe."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from headway.errors import ExpressionError
from headway.expressions import EvaluationError, Functions, ScalarFunction, Scope, compile_expression
from headway.expressions.safety import risk
from headway.network.schema import Schema
from tests.expressions.helpers import columns_of
from tests.searching import examples

FIELDS = "i bigint, k int, h smallint, v double, g float, p boolean, s string, t timestamp, n timestamp_ntz, d date"
SCHEMA = Schema.parse(f"{FIELDS}, m decimal(10,2), big decimal(38,20), y binary, l array<int>, r struct<a:int>")


def safe(text: str) -> bool:
    return risk(compile_expression(text, Scope.of(SCHEMA)), SCHEMA) is None


@pytest.mark.parametrize(
    "text",
    [
        "i", "l", "l is null", "i > 5 and not (v < 1 or p)", "i between 1 and 2.5", "s like 'a%'", "s in ('a', NULL)",
        "v + 1", "g * v - i", "-v", "-7", "v / 2", "i % 10", "i / -3", "~k & 3", "cast(k as bigint)", "k::double",
        "cast(m as decimal(12,4))", "cast(i as decimal(20,0))", "cast(i as string)", "m > 1.5", "i > 1.5", "big > v",
        "d > '2026-02-28'", "t < timestamp '2026-01-31 10:00:00.25'", "case when p then v else i end", "if(p, k, i)",
        "case k when 1 then 'a' end", "coalesce(v, 0)", "nullif(i, 1)", "length(s) > 3", "upper(trim(s))",
        "greatest(v, 1e0)", "isnan(g)", "abs(v)", "unix_micros(t)", "v <=> NULL", "`i` is distinct from 3",
    ],
)  # fmt: skip
def test_safe(text: str) -> None:
    assert safe(text)


@pytest.mark.parametrize(
    "text",
    [
        "i + 1", "k * 2", "-i", "abs(k)", "m + m", "m * 2", "v / g", "i / 0", "i % k", "i % 0", "v % 2", "i div 2",
        "m / 2", "cast(i as int)", "cast(v as bigint)", "cast(v as float)", "cast(s as int)", "s > 5", "s = d",
        "cast(m as decimal(10,4))", "cast(v as decimal(38,2))", "d > '2026-02-30'", "d = 'soon'", "t > d", "t = n",
        "cast(d as timestamp)", "d + 1", "t + interval 1 day", "big = i", "floor(v)", "round(v)", "pow(v, 2)",
        "if(p, m, 1.5)", "r.a", "try_cast(s as int)", "s rlike 'a'", "substring(s, 1)", "repeat(s, 9)", "i in (1, 2.5)",
        "case when i + 1 > 0 then 1 end", "coalesce(v, 1 / i)", "p and i + 1 > 0", "greatest(i, k)", "length(y)",
        "s || 'x'", "concat(s, s)",
    ],
)  # fmt: skip
def test_not_known_to_be_safe(text: str) -> None:
    assert not safe(text)


def test_a_risk_names_the_part() -> None:
    def of(text: str) -> str | None:
        return risk(compile_expression(text, Scope.of(SCHEMA)), SCHEMA)

    assert of("p and v > i + 1") == "'i + 1' may overflow"
    assert of("v / k > 1") == "'v / k' may divide by zero"
    assert of("v > 1") is None


def test_users_functions_and_endless_nesting_are_risks() -> None:
    function = ScalarFunction("twice", (SCHEMA.field("v").type,), SCHEMA.field("v").type, lambda v: v, False, True)
    scope = Scope.of(SCHEMA, Functions().with_function(function))
    assert risk(compile_expression("twice(v) > 1", scope), SCHEMA) is not None
    long = compile_expression(" and ".join(["v > 0"] * 2_000), Scope.of(SCHEMA))
    assert isinstance(risk(long, SCHEMA), str | None)


ROWS = st.tuples(
    st.none() | st.integers(-(2**63), 2**63 - 1) | st.sampled_from([0, 2**63 - 1, -(2**63)]),
    st.none() | st.integers(-(2**31), 2**31 - 1) | st.just(-(2**31)),
    st.none() | st.integers(-(2**15), 2**15 - 1),
    st.none() | st.floats(),
    st.none() | st.floats(width=32),
    st.none() | st.booleans(),
    st.none() | st.text(max_size=4),
    st.none() | st.datetimes(timezones=st.just(dt.UTC)),
    st.none() | st.datetimes(),
    st.none() | st.dates(),
    st.none() | st.decimals(-99_999_999, 99_999_999, places=2),
    st.none() | st.decimals(-(10**15), 10**15, places=20),
    st.none() | st.binary(max_size=3),
    st.none() | st.lists(st.integers(0, 9), max_size=2),
    st.none() | st.fixed_dictionaries({"a": st.integers(0, 9)}),
)
NUMBERS = st.sampled_from(["i", "k", "h", "v", "g", "m", "big", "0", "1", "-3", "2.5", "1e300", "NULL", "1e0"])
TEXTS = st.sampled_from(["s", "'a'", "''", "NULL", "cast(k as string)"])
BOOLEANS = st.sampled_from(["p", "true", "NULL", "s is null", "d > '2026-01-31'", "t <= n", "t > t", "y = y"])


def _grow(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Combine parts in any way; most of what comes out compiles, and part of that is safe."""
    two, three = st.tuples(parts, parts), st.tuples(parts, parts, parts)
    binary = st.sampled_from(["+", "-", "*", "/", "%", "div", "&", "=", "<", ">=", "<>", "<=>", "and", "or", "||"])
    calls = st.sampled_from(["coalesce", "nullif", "greatest", "least", "nanvl", "concat", "contains", "pmod", "pow"])
    unary = st.sampled_from(
        [
            "-({})", "not ({})", "({}) is null", "abs({})", "upper({})", "length({})", "trim({})", "sqrt({})",
            "floor({})", "isnan({})", "cast({} as double)", "cast({} as bigint)", "cast({} as string)",
            "cast({} as decimal(20,4))",
        ]
    )  # fmt: skip
    return st.one_of(
        st.builds(lambda operator, pair: f"({pair[0]}) {operator} ({pair[1]})", binary, two),
        st.builds(lambda name, pair: f"{name}({pair[0]}, {pair[1]})", calls, two),
        st.builds(lambda form, part: form.format(part), unary, parts),
        three.map(lambda trio: f"if({trio[0]}, {trio[1]}, {trio[2]})"),
        three.map(lambda trio: f"case when {trio[0]} then {trio[1]} else {trio[2]} end"),
        three.map(lambda trio: f"({trio[0]}) between ({trio[1]}) and ({trio[2]})"),
        three.map(lambda trio: f"({trio[0]}) in ({trio[1]}, {trio[2]})"),
        st.tuples(parts, st.integers(-3, 9)).map(lambda pair: f"({pair[0]}) % {pair[1]}"),
        st.tuples(parts, st.integers(-3, 9)).map(lambda pair: f"({pair[0]}) / {pair[1]}"),
    )


@examples(300)
@given(st.recursive(NUMBERS | TEXTS | BOOLEANS, _grow, max_leaves=6), st.lists(ROWS, min_size=1, max_size=6))
def test_what_is_safe_never_fails(text: str, rows: list[tuple[object, ...]]) -> None:
    try:
        expression = compile_expression(text, Scope.of(SCHEMA))
    except ExpressionError:
        return
    if risk(expression, SCHEMA) is None:
        event("safe")
        try:
            expression.evaluate(columns_of(SCHEMA, rows), len(rows))
        except EvaluationError as error:
            pytest.fail(f"{text} fails: {error}")
