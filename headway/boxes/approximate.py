"""Estimates: how an aggregate's select list is rewritten for ``approximate: true``.

In a stream that was thinned out at random, each remaining tuple stands for w = 1/p tuples, where p is the probability
that it was kept (the Horvitz-Thompson estimator). So tuples get two hidden columns, weight w and spread w(w - 1), and
the select list is rewritten over them:

    count   sum(w)               1.96 sqrt(sum w(w - 1))
    sum     sum(w x)             1.96 sqrt(sum w(w - 1) x²)
    avg m   sum(w x) / sum(w)    1.96 sqrt(sum w(w - 1) (x - m)²) / sum(w)

The right column is half the width of the 95% confidence interval, given enough tuples for a normal distribution. The
average's is that of a ratio of two estimates. It is computed from the sums of w(w - 1), w(w - 1) x and w(w - 1) x², so
that no tuples are stored; its rounding error is about 1e-8 of the average.

Everything here is text in, text out: the aggregate's kernels do not know about it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from headway import expressions
from headway.errors import ExpressionError, NetworkError, choices
from headway.expressions.compiling import AggregateTree, find_calls
from headway.expressions.library.table import AGGREGATES
from headway.expressions.parsing import parse_items, parse_one, to_sql
from headway.network.schema import Field, Schema

if TYPE_CHECKING:
    from headway.expressions import Functions

HIDDEN = 2
"""The number of hidden columns after the user's own: weight and spread."""

_ESTIMATED = ("count", "count_if", "sum", "avg")
_NEEDED = ("sum", "sqrt", "abs")
"""Functions that estimates call; a user's function may have taken the name."""
_SUFFIX = "_error"


def widened(schema: Schema) -> Schema:
    """Return an input's schema with the hidden columns at its end, under names that the user does not have."""
    return Schema((*schema.fields, *(Field(name, pa.float64()) for name in _hidden(schema))))


def estimating(
    select: str, names: Sequence[str], schema: Schema, taken: Iterable[str], functions: Functions | None
) -> str:
    """Return the select list that gives estimates and their errors over the widened schema.

    `select` was checked against the schema and gives fields of these `names`; `taken` are the names of the other
    fields of the result. Raises a NetworkError where the name of an error is taken.
    """
    known = functions or expressions.BUILTIN
    used = {name.lower() for name in (*names, *taken)}
    weight, spread = (_quoted(name) for name in _hidden(schema))
    written: list[str] = []
    for item, name in zip(parse_items(select), names, strict=True):
        tree = _bare(item)
        estimates = {
            id(call.tree): _estimate(call, weight, spread)
            for call in find_calls(tree, known)
            if call.name not in known.aggregates and not call.distinct and AGGREGATES[call.name].name in _ESTIMATED
        }
        if estimates:
            _check_needed(known)
        whole = estimates.get(id(tree))
        if whole is None:
            written.append(f"{to_sql(_replaced(tree, estimates))} as {_quoted(name)}")
            continue
        error = name + _SUFFIX
        if error.lower() in used:
            raise NetworkError(
                f"'{error}' is the name of the error of '{name}' (approximate: true), and it is taken; "
                f"rename a result with 'as'; names: {choices((*taken, *names))}"
            )
        used.add(error.lower())
        written += [f"{whole.value} as {_quoted(name)}", f"{whole.error} as {_quoted(error)}"]
    return ", ".join(written)


@dataclass(frozen=True, slots=True)
class _Estimate:
    """A call's estimate and its error, as SQL over the widened schema."""

    value: str
    error: str


def _estimate(call: AggregateTree, weight: str, spread: str) -> _Estimate:
    where = "" if call.where is None else f" filter (where {to_sql(call.where)})"

    def total(text: str) -> str:
        return f"sum({text}){where}"

    def or_zero(text: str) -> str:  # coalesce could be a user's function
        return f"case when {text} is null then 0e0 else {text} end"

    function, argument = AGGREGATES[call.name].name, call.arguments[0]
    if function == "count" and isinstance(argument, exp.Star):
        return _Estimate(or_zero(total(weight)), f"1.96e0 * sqrt({or_zero(total(spread))})")
    x = to_sql(argument) if isinstance(argument, exp.Column | exp.Anonymous) else f"({to_sql(argument)})"
    condition = x if function == "count_if" else f"{x} is not null"
    weights, spreads = (total(f"case when {condition} then {part} end") for part in (weight, spread))
    if function in ("count", "count_if"):
        return _Estimate(or_zero(weights), f"1.96e0 * sqrt({or_zero(spreads)})")
    values, squares = total(f"{weight} * {x}"), total(f"{spread} * {x} * {x}")
    if function == "sum":
        value, error = values, f"1.96e0 * sqrt({squares})"
    else:
        value, products = f"({values} / {weights})", total(f"{spread} * {x}")
        # Rounding may turn a value near 0 negative.
        about = f"{squares} - {value} * (2 * {products} - {value} * {spreads})"
        error = f"1.96e0 * sqrt(abs({about})) / {weights}"
    # Where nothing was dropped the error is 0, even if x is infinite; without a value it is NULL.
    return _Estimate(value, f"case when {spreads} > 0 then {error} when {spreads} = 0 then 0e0 end")


def _bare(item: exp.Expression) -> exp.Expression:
    """Return an item without its alias and enclosing parentheses."""
    while isinstance(item, exp.Alias | exp.Paren):
        item = item.this
    return item


def _replaced(tree: exp.Expression, estimates: dict[int, _Estimate]) -> exp.Expression:
    """Replace calls by the values of their estimates."""
    for found in list(tree.walk()):
        estimate = estimates.get(id(found))
        if estimate is not None:
            found.replace(exp.Paren(this=parse_one(estimate.value)))
    return tree


def _check_needed(functions: Functions) -> None:
    for name in _NEEDED:
        if name in functions.scalars or name in functions.aggregates:
            raise ExpressionError(f"approximate: true needs the built-in {name}, and a function of yours has its name")


def _hidden(schema: Schema) -> tuple[str, str]:
    """Return names for weight and spread. The select list was checked without them, so it cannot refer to them."""
    found = []
    for name in ("#weight", "#spread"):
        while schema.find(name) is not None:
            name += "#"
        found.append(name)
    return found[0], found[1]


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
