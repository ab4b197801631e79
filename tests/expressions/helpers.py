"""Shared by the expression tests: evaluate text over rows of Python values."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from headway.columns import Column, from_pylist, numpy_type, to_arrow
from headway.errors import ExpressionError
from headway.expressions import BUILTIN, EvaluationError, Expression, Functions, Scope, compile_expression
from headway.network.schema import Schema, type_name

NOTHING = Schema.parse("unused int")


def columns_of(schema: Schema, rows: Sequence[Sequence[object]]) -> list[Column | None]:
    return [from_pylist([row[i] for row in rows], field.type) for i, field in enumerate(schema)]


def check_column(expression: Expression, column: Column, count: int) -> list[object]:
    """Check that the result keeps its contract, and return its values."""
    assert len(column) == count
    dtype = numpy_type(expression.type)
    if dtype is None:
        assert column.is_arrow
        assert column.values.type == expression.type
    else:
        assert column.values.dtype == dtype
    values: list[object] = to_arrow(column, expression.type).to_pylist()
    return values


def evaluate(
    text: str,
    schema: Schema | str = NOTHING,
    rows: Sequence[Sequence[object]] = ((0,),),
    functions: Functions = BUILTIN,
) -> list[object]:
    """Evaluate text over rows: as written, from its own normalised SQL, tuple by tuple, and over none."""
    schema = Schema.parse(schema) if isinstance(schema, str) else schema
    scope = Scope.of(schema, functions)
    results = []
    text_now = text
    for _ in range(2):
        expression = compile_expression(text_now, scope)
        columns = columns_of(schema, rows)
        read: list[Column | None] = [c if i in expression.slots else None for i, c in enumerate(columns)]
        results.append(check_column(expression, expression.evaluate(read, len(rows)), len(rows)))
        cut = []
        for start in range(len(rows)):
            one = [None if c is None else c.slice(start, start + 1) for c in read]
            cut += check_column(expression, expression.evaluate(one, 1), 1)
        assert repr(cut) == repr(results[-1])
        empty = [None if c is None else c.slice(0, 0) for c in read]
        assert check_column(expression, expression.evaluate(empty, 0), 0) == []
        text_now = expression.sql
    assert repr(results[0]) == repr(results[1])
    return results[0]


def value(text: str) -> object:
    """Return the value of an expression without fields, both folded and evaluated over columns."""
    return evaluate(text)[0]


def type_of(text: str, schema: Schema | str = NOTHING) -> str:
    schema = Schema.parse(schema) if isinstance(schema, str) else schema
    return type_name(compile_expression(text, Scope.of(schema)).type)


def fails(text: str, schema: Schema | str = NOTHING, rows: Sequence[Sequence[object]] = ((0,),)) -> str:
    """Return the reason for which an expression fails on tuples."""
    with pytest.raises(EvaluationError) as caught:
        evaluate(text, schema, rows)
    return str(caught.value)


def refused(text: str, schema: Schema | str = NOTHING, functions: Functions = BUILTIN) -> str:
    """Return the message with which an expression is refused."""
    schema = Schema.parse(schema) if isinstance(schema, str) else schema
    with pytest.raises(ExpressionError) as caught:
        compile_expression(text, Scope.of(schema, functions))
    message = str(caught.value)
    assert message.startswith(f"expression '{text[:299]}")
    assert "\x1b" not in message
    assert "sqlglot" not in message
    return message
