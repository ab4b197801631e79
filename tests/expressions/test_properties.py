"""Random expressions against a naive interpreter that works on one tuple at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from headway.columns import Column, to_arrow
from headway.expressions import EvaluationError, Scope, compile_expression
from headway.network.schema import Schema
from tests.expressions.helpers import columns_of
from tests.searching import examples

SCHEMA = Schema.parse("x bigint, y bigint, p boolean, q boolean, v double, w double")
Row = tuple[object, ...]


class FailError(Exception):
    """The naive interpreter's evaluation error."""


@dataclass(frozen=True)
class Tree:
    """SQL text and what computes it naively."""

    sql: str
    run: Callable[[Row], object]


def checked(value: int) -> int:
    if not -(2**63) <= value < 2**63:
        raise FailError
    return value


def divided(one: int, two: int) -> int:
    if two == 0:
        raise FailError
    return checked(abs(one) // abs(two) * (1 if (one < 0) == (two < 0) else -1))


def remainder(one: int, two: int) -> int:
    if two == 0:
        raise FailError
    return abs(one) % abs(two) * (-1 if one < 0 else 1)


ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: checked(a + b),
    "-": lambda a, b: checked(a - b),
    "*": lambda a, b: checked(a * b),
    "div": divided,
    "%": remainder,
}


def rank(value: object) -> tuple[int, float]:
    """Order doubles as Spark does: NaN is equal to itself and above all numbers."""
    assert isinstance(value, int | float)
    return (1, 0.0) if value != value else (0, value)


COMPARISON: dict[str, Callable[[object, object], bool]] = {
    "=": lambda a, b: rank(a) == rank(b),
    "<>": lambda a, b: rank(a) != rank(b),
    "<": lambda a, b: rank(a) < rank(b),
    "<=": lambda a, b: rank(a) <= rank(b),
    ">": lambda a, b: rank(a) > rank(b),
    ">=": lambda a, b: rank(a) >= rank(b),
}


def strict(operation: Callable[..., object], *parts: Tree) -> Callable[[Row], object]:
    def run(row: Row) -> object:
        values = [part.run(row) for part in parts]
        return None if None in values else operation(*values)

    return run


def field(index: int) -> Tree:
    return Tree(SCHEMA.names[index], lambda row: row[index])


def conjunction(left: Tree, right: Tree) -> Tree:
    def run(row: Row) -> object:
        one = left.run(row)
        if one is False:
            return False
        two = right.run(row)
        return False if two is False else None if one is None or two is None else True

    return Tree(f"({left.sql} AND {right.sql})", run)


def disjunction(left: Tree, right: Tree) -> Tree:
    def run(row: Row) -> object:
        one = left.run(row)
        if one is True:
            return True
        two = right.run(row)
        return True if two is True else None if one is None or two is None else False

    return Tree(f"({left.sql} OR {right.sql})", run)


def case(pairs: list[tuple[Tree, Tree]], default: Tree) -> Tree:
    def run(row: Row) -> object:
        for condition, result in pairs:
            if condition.run(row) is True:
                return result.run(row)
        return default.run(row)

    branches = " ".join(f"WHEN {condition.sql} THEN {result.sql}" for condition, result in pairs)
    return Tree(f"(CASE {branches} ELSE {default.sql} END)", run)


def coalesce(parts: list[Tree]) -> Tree:
    def run(row: Row) -> object:
        for part in parts:
            value = part.run(row)
            if value is not None:
                return value
        return None

    return Tree(f"coalesce({', '.join(part.sql for part in parts)})", run)


def member(argument: Tree, items: list[int | None]) -> Tree:
    def run(row: Row) -> object:
        value = argument.run(row)
        if value is None:
            return None
        return True if value in items else None if None in items else False

    listed = ", ".join("NULL" if item is None else f"{item}L" for item in items)
    return Tree(f"({argument.sql} IN ({listed}))", run)


def binary(operator: str, operation: Callable[..., object], left: Tree, right: Tree) -> Tree:
    return Tree(f"({left.sql} {operator} {right.sql})", strict(operation, left, right))


def any_known(items: list[int | None]) -> bool:
    return any(item is not None for item in items)


small = st.integers(-4, 4)
number_leaf = st.one_of(
    st.sampled_from([field(0), field(1)]), small.map(lambda value: Tree(f"({value}L)", lambda row: value))
)
boolean_leaf = st.one_of(
    st.sampled_from([field(2), field(3)]),
    st.sampled_from([True, False]).map(lambda value: Tree(str(value).upper(), lambda row: value)),
)
double_leaf = st.sampled_from([field(4), field(5), Tree("1.5D", lambda row: 1.5), Tree("2", lambda row: 2)])


def extend_number(numbers: st.SearchStrategy[Tree], booleans: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
    return st.one_of(
        st.builds(
            lambda op, a, b: binary(op, ARITHMETIC[op], a, b), st.sampled_from(list(ARITHMETIC)), numbers, numbers
        ),
        numbers.map(lambda part: Tree(f"(- {part.sql})", strict(lambda value: checked(-value), part))),
        st.builds(case, st.lists(st.tuples(booleans, numbers), min_size=1, max_size=2), numbers),
        st.lists(numbers, min_size=1, max_size=3).map(coalesce),
    )


def extend_boolean(numbers: st.SearchStrategy[Tree], booleans: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
    operators = st.sampled_from(list(COMPARISON))
    return st.one_of(
        st.builds(conjunction, booleans, booleans),
        st.builds(disjunction, booleans, booleans),
        booleans.map(lambda part: Tree(f"(NOT {part.sql})", strict(lambda value: not value, part))),
        st.one_of(numbers, booleans).map(lambda part: Tree(f"({part.sql} IS NULL)", lambda row: part.run(row) is None)),
        st.builds(lambda op, a, b: binary(op, COMPARISON[op], a, b), operators, numbers, numbers),
        st.builds(lambda op, a, b: binary(op, COMPARISON[op], a, b), operators, double_leaf, double_leaf),
        # with NULL alone, as in Spark, the argument is not even looked at
        st.builds(member, numbers, st.lists(st.one_of(small, st.none()), min_size=1, max_size=6).filter(any_known)),
        st.builds(case, st.lists(st.tuples(booleans, booleans), min_size=1, max_size=2), booleans),
    )


def trees(depth: int) -> tuple[st.SearchStrategy[Tree], st.SearchStrategy[Tree]]:
    numbers: st.SearchStrategy[Tree] = number_leaf
    booleans: st.SearchStrategy[Tree] = boolean_leaf
    for _ in range(depth):
        numbers, booleans = (
            st.one_of(number_leaf, extend_number(numbers, booleans)),
            st.one_of(boolean_leaf, extend_boolean(numbers, booleans)),
        )
    return numbers, booleans


NUMBERS, BOOLEANS = trees(3)
integers = st.one_of(small, st.sampled_from([2**63 - 1, -(2**63), 2**62, 2**32, -(2**31)]), st.none())
doubles = st.one_of(st.sampled_from([float("nan"), 0.0, -0.0, 1.5, 2.0, float("inf")]), st.none())
rows_ = st.lists(
    st.tuples(integers, integers, *[st.one_of(st.booleans(), st.none())] * 2, doubles, doubles), min_size=1, max_size=6
)


@examples(250)
@given(tree=st.one_of(NUMBERS, BOOLEANS), rows=rows_)
def test_against_the_naive_interpreter(tree: Tree, rows: list[Row]) -> None:
    expected: list[object] | None
    try:
        expected = [tree.run(row) for row in rows]
    except FailError:
        expected = None
    expression = compile_expression(tree.sql, Scope.of(SCHEMA))
    columns = columns_of(SCHEMA, rows)
    assert run(expression.evaluate, columns, rows, expression.type) == expected
    again = compile_expression(expression.sql, Scope.of(SCHEMA))
    assert run(again.evaluate, columns, rows, again.type) == expected


def run(
    evaluate: Callable[..., Column], columns: list[Column | None], rows: list[Row], type_: object
) -> list[object] | None:
    try:
        values: list[object] = to_arrow(evaluate(columns, len(rows)), type_).to_pylist()
        return values
    except EvaluationError:
        return None


@examples(100)
@given(
    operator=st.sampled_from(["+", "-", "*"]),
    ones=st.lists(st.one_of(st.integers(-(2**63), 2**63 - 1), st.none()), min_size=65, max_size=130),
    twos=st.lists(st.one_of(st.integers(-3, 3), st.integers(-(2**31), 2**31)), min_size=130, max_size=130),
    narrow=st.booleans(),
)
def test_long_trains(operator: str, ones: list[int | None], twos: list[int], narrow: bool) -> None:
    """Long trains take another way to find overflows; it must find the same."""
    if narrow:
        ones = [None if one is None else one // 2**40 for one in ones]
    rows = [(one, two, None, None, None, None) for one, two in zip(ones, twos, strict=False)]
    tree = binary(operator, ARITHMETIC[operator], field(0), field(1))
    try:
        expected: list[object] | None = [tree.run(row) for row in rows]
    except FailError:
        expected = None
    expression = compile_expression(tree.sql, Scope.of(SCHEMA))
    assert run(expression.evaluate, columns_of(SCHEMA, rows), list(rows), expression.type) == expected
