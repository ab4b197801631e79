"""What compiling gives: expressions and descriptions made of them."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from sqlglot import exp

from headway.columns import Column
from headway.errors import ExpressionError
from headway.expressions.nodes import Columns, Node, Run
from headway.expressions.parsing import to_sql
from headway.expressions.registry import UserAggregate
from headway.expressions.types import VOID


@dataclass(frozen=True)
class Expression:
    """An expression that is checked and ready to run.

    `text` is what the user wrote, `sql` the same as normalised Spark SQL, `slots` the slots it reads and
    `field` the slot if it is just a field. ``evaluate(columns, count)`` takes columns by slot (those that are
    not read may be None) and returns a column of `count` values: numpy values of ``numpy_type(type)`` or an
    Arrow array of exactly `type`. It raises an EvaluationError if it fails on any tuple. It may return an
    input column itself; it never writes to one. Safe to call from several threads at once.
    """

    text: str
    sql: str
    type: pa.DataType
    slots: tuple[int, ...]
    field: int | None
    evaluate: Run = dataclasses.field(repr=False, compare=False)
    loud: Run | None = dataclasses.field(default=None, repr=False, compare=False)
    """The same, but numpy may warn of infinities and NaN unless the caller sees to it; None: it never warns."""


@dataclass(frozen=True)
class AggregateCall:
    """One call of an aggregate function over the tuples of a window.

    `function` is the canonical lower-case name, `arguments` are over the input scope (none for ``count(*)``),
    `parameters` are literals such as ``(0.95,)`` for percentile, `where` is its FILTER. A user's aggregate
    comes along as `user`.
    """

    function: str
    arguments: tuple[Expression, ...]
    parameters: tuple[object, ...]
    where: Expression | None
    type: pa.DataType
    user: UserAggregate | None = None


@dataclass(frozen=True)
class AggregateSelect:
    """A select list over aggregates.

    The results' slots: call i is slot i, then the extra fields follow.
    """

    calls: tuple[AggregateCall, ...]
    results: tuple[tuple[str, Expression], ...]


@dataclass(frozen=True)
class JoinCondition:
    """A join's condition, split for hashing.

    `equalities` are pairs of an expression over the left schema alone and one over the right schema alone, of
    the same type. `residual` is the rest, over the scope of both (qualifiers left and right). `names` are the
    pairs of fields where an equality is plainly field = field.
    """

    equalities: tuple[tuple[Expression, Expression], ...]
    residual: Expression | None
    names: tuple[tuple[str, str], ...]


def finish(node: Node, text: str, tree: exp.Expression) -> Expression:
    """Return a node as an expression."""
    if node.type == VOID:
        raise ExpressionError("NULL has no type here; write cast(NULL as type)")
    run, loud = (_quiet(node.run), node.run) if node.warns else (node.run, None)
    return Expression(text, to_sql(tree), node.type, tuple(sorted(node.slots)), node.field, run, loud)


def _quiet(step: Run) -> Run:
    """Run with numpy's floating-point warnings off: infinities and NaN are values here."""

    def run(columns: Columns, count: int) -> Column:
        with np.errstate(all="ignore"):
            return step(columns, count)

    return run
