"""Parse text to sqlglot trees, with our own error messages.

The dialect is Spark's with one change: functions have no classes of their own. A call thus keeps the name that the
user wrote, and only Headway's tables decide which functions exist.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, ClassVar

import pyarrow as pa
from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError
from sqlglot.tokens import TokenType  # type: ignore[attr-defined]

from headway.errors import ExpressionError, SchemaError
from headway.network.schema import parse_type

_PREFIX = "SELECT "
_KEPT = ("CAST", "TRY_CAST", "EXTRACT")
LONGEST = 100_000
"""The longest text of an expression list, in characters."""
MOST_BRACKETS = 30
"""How deep brackets and calls may be nested, so that Python's stack suffices wherever an expression is parsed, even
deep in other calls; without a limit, an expression that passes `check` might fail in a worker."""
DEEPEST = 200
"""How deep a tree may be; ``a + b + c`` has depth two, ``a AND b AND c`` one."""


TOO_DEEP = (
    f"it is nested too deeply; brackets, calls and CASE may be nested {MOST_BRACKETS} deep, and all {DEEPEST} deep"
)


class Dialect(Spark):
    """Spark SQL in which all functions are parsed the same way."""

    class Parser(Spark.Parser):  # type: ignore[misc, valid-type]
        """Spark's parser without function classes."""

        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            name: parse for name, parse in Spark.Parser.FUNCTION_PARSERS.items() if name in _KEPT
        }


def check_text(text: object) -> str:
    """Return an expression's text, or raise an ExpressionError if it is not text."""
    if not isinstance(text, str):
        raise ExpressionError(f"an expression is text, not {text!r}")
    return text


def parse_list(text: str) -> list[exp.Expression]:
    """Parse a list of expressions, including aliases and stars, or raise an ExpressionError."""
    check_text(text)
    if not text.strip():
        raise ExpressionError("it is empty")
    if len(text) > LONGEST:
        raise ExpressionError(f"it has {len(text):,} characters; at most {LONGEST:,} are allowed")
    statement = _PREFIX + text
    dialect = Dialect()
    try:
        tokens = dialect.tokenize(statement)
        _check_brackets(tokens)
        if any(token.token_type == TokenType.SEMICOLON for token in tokens):
            raise ExpressionError("';' is not allowed; write one expression")
        if tokens[-1].token_type == TokenType.COMMA:
            raise ExpressionError("there is nothing after the last comma")
        parsed = dialect.parser().parse(tokens, statement)
    except SqlglotError as error:
        raise ExpressionError(_message(error)) from None
    except RecursionError:
        raise ExpressionError(TOO_DEEP) from None
    tree = parsed[0] if len(parsed) == 1 else None
    if not isinstance(tree, exp.Select):
        raise ExpressionError("only expressions are allowed here, not statements or set operations")
    for key, value in tree.args.items():
        if value and key != "expressions":
            clause = key.rstrip("_").replace("_", " ").upper()
            raise ExpressionError(f"only expressions are allowed here, not a {clause} clause or a statement")
    items = tree.expressions
    if not items:
        raise ExpressionError("it is empty")
    for item in items:
        _check_depth(item)
        _check_sizes(item)
        _bracket_intervals(item)
    return list(items)


def _check_brackets(tokens: Sequence[Any]) -> None:
    depth = 0
    for token in tokens:
        if token.token_type in (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.CASE):
            depth += 1
            if depth > MOST_BRACKETS:
                raise ExpressionError(TOO_DEEP)
        elif token.token_type in (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.END):
            depth -= 1


def _check_depth(item: exp.Expression) -> None:
    pending = [(item, 1)]
    while pending:
        tree, depth = pending.pop()
        if depth > DEEPEST:
            raise ExpressionError(TOO_DEEP)
        for part in tree.iter_expressions():
            chained = isinstance(tree, exp.And | exp.Or) and type(part) is type(tree)
            pending.append((part, depth if chained else depth + 1))


def _check_sizes(item: exp.Expression) -> None:
    """Reject ``float(x)``: sqlglot parses it, but fails when it renders the tree."""
    for size in item.find_all(exp.DataTypeParam):
        if re.fullmatch("[0-9]{1,9}", size.name) is None:
            raise ExpressionError("a type's size is a whole number, as in decimal(10,2) and varchar(20)")


def parse_one(text: str) -> exp.Expression:
    """Parse one expression without an alias."""
    items = parse_list(text)
    if len(items) > 1:
        raise ExpressionError(f"one expression is expected here, not {len(items)}; is there a comma too many?")
    if isinstance(items[0], exp.Alias):
        raise ExpressionError(f"an alias is not allowed here; leave out 'as {items[0].alias}'")
    return items[0]


def parse_items(text: str | Sequence[str]) -> list[exp.Expression]:
    """Parse a select list, given as one text or one text per item."""
    if isinstance(text, str):
        return parse_list(text)
    if not isinstance(text, list | tuple):
        raise ExpressionError(f"a select list is text or a list of texts, not {text!r}")
    items = [item for part in text for item in parse_list(part)]
    if not items:
        raise ExpressionError("it selects nothing; name at least one expression")
    return items


def read_type(tree: exp.Expression) -> pa.DataType:
    """Return the type named in a cast, or raise an ExpressionError."""
    try:
        return parse_type(tree.sql(dialect="spark"))
    except SchemaError as error:
        raise ExpressionError(str(error)) from None


def to_sql(tree: exp.Expression) -> str:
    """Render a tree as Spark SQL on one line."""
    return str(tree.sql(dialect=Dialect, normalize_functions="lower", comments=False))


def fragment(tree: exp.Expression, length: int = 60) -> str:
    """Render part of an expression for a message, truncated."""
    text = to_sql(tree)
    return text if len(text) <= length else text[: length - 1] + "…"


def _bracket_intervals(item: exp.Expression) -> None:
    """Parenthesise ``interval 1 day 2 hours``, which sqlglot parses as a sum of two intervals."""
    for tree in list(item.find_all(exp.Add)):
        if isinstance(tree.this, exp.Interval) and isinstance(tree.expression, exp.Interval):
            parent = tree.parent
            if isinstance(parent, exp.Add | exp.Sub) and tree.arg_key == "expression":
                tree.replace(exp.Paren(this=tree.copy()))


def _message(error: SqlglotError) -> str:
    details: list[dict[str, Any]] = getattr(error, "errors", None) or [{}]
    highlight = str(details[0].get("highlight") or "")
    line, column = details[0].get("line"), details[0].get("col")
    if not highlight or not isinstance(line, int) or not isinstance(column, int):
        return "it does not parse; is a quote or a bracket missing?"
    start = column - len(highlight) + 1 - (len(_PREFIX) if line == 1 else 0)
    where = f"at character {max(start, 1)}" if line == 1 else f"at line {line}, character {max(start, 1)}"
    description = str(details[0].get("description") or "")
    if description.startswith("Required keyword"):
        return f"something is missing after '{highlight}' {where}"
    if description.startswith("Expecting "):
        return f"'{description.removeprefix('Expecting ').strip()}' is expected, not '{highlight}', {where}"
    hint = "; write AND" if highlight == "&&" else ""
    return f"'{highlight}' is not expected {where}{hint}"
