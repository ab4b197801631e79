"""Aggregate calls in a select list: found, checked and described."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from headway.errors import ExpressionError, choices
from headway.expressions import logic
from headway.expressions.aggregation import AGGREGATES, Aggregate
from headway.expressions.casts import cast
from headway.expressions.comparison import is_null
from headway.expressions.compiler import compile_tree
from headway.expressions.model import AggregateCall, Expression, finish
from headway.expressions.nodes import Node
from headway.expressions.parsing import fragment
from headway.expressions.registry import Functions, UserAggregate
from headway.expressions.scopes import Scope
from headway.expressions.types import BOOLEAN, DOUBLE, VOID, is_nested
from headway.expressions.users import coerce_arguments
from headway.schema import type_name

_FIRSTS = ("first", "last", "any_value")


@dataclass(frozen=True, slots=True)
class AggregateTree:
    """An aggregate call as it was written."""

    tree: exp.Expression
    name: str
    arguments: tuple[exp.Expression, ...]
    distinct: bool = False
    ignore_nulls: bool = False
    where: exp.Expression | None = None


def find_calls(tree: exp.Expression, functions: Functions) -> Iterator[tuple[exp.Expression, AggregateTree]]:
    """Yield the outermost aggregate calls of a tree."""
    call = _as_call(tree, functions)
    if call is not None:
        yield tree, call
        return
    if isinstance(tree, exp.Window | exp.Subquery | exp.Select):
        return  # refused with a better message when the tree is compiled
    for child in tree.iter_expressions():
        yield from find_calls(child, functions)


def aggregate_call(call: AggregateTree, scope: Scope) -> AggregateCall:
    """Return the description of a call, or raise an ExpressionError."""
    user = scope.functions.aggregates.get(call.name)
    if user is not None:
        return _user_call(call, user, scope)
    known = AGGREGATES["count_distinct" if call.name == "count" and call.distinct else call.name]
    if call.distinct and known.name != "count_distinct":
        raise ExpressionError(f"'{fragment(call.tree)}': DISTINCT is only supported in count(distinct x)")
    if known.name == "count" and len(call.arguments) == 1 and isinstance(call.arguments[0], exp.Star):
        return AggregateCall("count", (), (), _where(call, scope, None), known.result(VOID))
    parameters = call.arguments[known.arguments :]
    if known.name in _FIRSTS and len(parameters) == 1 and isinstance(parameters[0], exp.Boolean):
        call = AggregateTree(call.tree, call.name, call.arguments, False, bool(parameters[0].this), call.where)
        parameters = ()
    least, most = known.parameters
    if len(call.arguments) < known.arguments or not least <= len(parameters) <= most:
        raise ExpressionError(f"{call.name} is called as {known.signature}, not '{fragment(call.tree)}'")
    arguments = [compile_tree(tree, scope) for tree in call.arguments[: known.arguments]]
    if known.name == "count" and arguments[0].constant is not None and not arguments[0].is_null:
        return AggregateCall("count", (), (), _where(call, scope, None), known.result(VOID))
    _check(known, call, arguments)
    if call.ignore_nulls and known.name not in _FIRSTS:
        raise ExpressionError(f"'{fragment(call.tree)}': IGNORE NULLS belongs to {choices(_FIRSTS)}")
    where = _where(call, scope, arguments[0] if call.ignore_nulls else None)
    finished = tuple(
        _finish(node, tree) for node, tree in zip(arguments, call.arguments[: known.arguments], strict=True)
    )
    values = tuple(_parameter(known, position, tree, scope) for position, tree in enumerate(parameters))
    return AggregateCall(known.name, finished, values, where, known.result(arguments[0].type))


def _as_call(tree: exp.Expression, functions: Functions) -> AggregateTree | None:
    if isinstance(tree, exp.Filter):
        inner = _as_call(tree.this, functions)
        if inner is None:
            return None
        where = tree.expression.this
        return AggregateTree(tree, inner.name, inner.arguments, inner.distinct, inner.ignore_nulls, where)
    if isinstance(tree, exp.IgnoreNulls | exp.RespectNulls):
        inner = _as_call(tree.this, functions)
        if inner is None:
            return None
        ignore = isinstance(tree, exp.IgnoreNulls)
        return AggregateTree(tree, inner.name, inner.arguments, inner.distinct, ignore, inner.where)
    if isinstance(tree, exp.Any):  # sqlglot reads any(x) as the quantifier
        inside = tree.this.this if isinstance(tree.this, exp.Paren) else tree.this
        return AggregateTree(tree, "any", (inside,))
    if not isinstance(tree, exp.Anonymous):
        return None
    name = tree.name.lower()
    if name in functions.scalars or (name not in AGGREGATES and name not in functions.aggregates):
        return None
    arguments = tuple(tree.expressions)
    if len(arguments) == 1 and isinstance(arguments[0], exp.Distinct):
        return AggregateTree(tree, name, tuple(arguments[0].expressions), distinct=True)
    return AggregateTree(tree, name, arguments)


def _check(known: Aggregate, call: AggregateTree, arguments: list[Node]) -> None:
    type_ = arguments[0].type
    if type_ == VOID:
        raise ExpressionError(f"'{fragment(call.tree)}': NULL has no type here; write cast(NULL as type)")
    if not known.accepts(type_):
        raise ExpressionError(f"'{fragment(call.tree)}': {call.name} takes {known.expected}, not {type_name(type_)}")
    if known.arguments == 2 and is_nested(arguments[1].type):
        raise ExpressionError(f"'{fragment(call.tree)}': {type_name(arguments[1].type)} has no order")


def _where(call: AggregateTree, scope: Scope, present: Node | None) -> Expression | None:
    """Return the FILTER; `present` must not be NULL either, which is what IGNORE NULLS means."""
    node: Node | None = None
    tree = call.tree
    if call.where is not None:
        tree = call.where
        node = logic.boolean(compile_tree(call.where, scope), "the condition of FILTER")
    if present is not None:
        argument = call.arguments[0]
        known = logic.negation(is_null(present))
        shown = exp.Not(this=exp.Is(this=argument.copy(), expression=exp.Null()))
        tree = shown if node is None else exp.And(this=exp.Paren(this=tree.copy()), expression=shown)
        node = known if node is None else logic.conjunction(node, known)
    return None if node is None else finish(cast(node, BOOLEAN), fragment(tree, 10_000), tree)


def _parameter(known: Aggregate, position: int, tree: exp.Expression, scope: Scope) -> object:
    node = compile_tree(tree, scope)
    if node.constant is None or node.is_null:
        raise ExpressionError(f"{known.name}: '{fragment(tree)}' must be a literal number")
    value = cast(node, DOUBLE).value
    if position == 0 and known.name.endswith("percentile") and not 0 <= value <= 1:
        raise ExpressionError(f"{known.name}: the percentage must be between 0 and 1, not {fragment(tree)}")
    return value


def _finish(node: Node, tree: exp.Expression) -> Expression:
    return finish(node, fragment(tree, 10_000), tree)


def _user_call(call: AggregateTree, user: UserAggregate, scope: Scope) -> AggregateCall:
    if call.distinct or call.ignore_nulls:
        raise ExpressionError(f"'{fragment(call.tree)}': DISTINCT and IGNORE NULLS are not for users' aggregates")
    arguments = coerce_arguments(user, [compile_tree(tree, scope) for tree in call.arguments])
    finished = tuple(_finish(node, tree) for node, tree in zip(arguments, call.arguments, strict=True))
    return AggregateCall(user.name.lower(), finished, (), _where(call, scope, None), user.returns, user)
