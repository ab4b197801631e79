"""The entry points: compile expressions, predicates, select lists, aggregates and join conditions from text."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from sqlglot import exp

from headway.errors import ExpressionError, choices
from headway.expressions import logic, nodes
from headway.expressions.casts import cast
from headway.expressions.compiler import compile_tree, note, noting
from headway.expressions.library.table import AGGREGATES, AggregateFunction
from headway.expressions.logic import is_null
from headway.expressions.model import AggregateCall, AggregateSelect, Expression, JoinCondition, Relation, Scope, finish
from headway.expressions.nodes import Node
from headway.expressions.parsing import check_text, fragment, parse_items, parse_one, to_sql
from headway.expressions.types import DOUBLE, VOID, common, is_float, is_nested
from headway.expressions.userfunctions import Functions, UserAggregate, coerce_arguments
from headway.network.schema import Field, Schema, type_name

_FIRSTS = ("first", "last", "any_value")


@dataclass(frozen=True, slots=True)
class AggregateTree:
    """An aggregate call as written."""

    tree: exp.Expression
    name: str
    arguments: tuple[exp.Expression, ...]
    distinct: bool = False
    ignore_nulls: bool = False
    where: exp.Expression | None = None


def find_calls(tree: exp.Expression, functions: Functions) -> Iterator[AggregateTree]:
    """Yield the outermost aggregate calls of a tree."""
    call = _as_call(tree, functions)
    if call is not None:
        yield call
        return
    if isinstance(tree, exp.Window | exp.Subquery | exp.Select):
        return  # rejected with a better message when the tree is compiled
    for child in tree.iter_expressions():
        yield from find_calls(child, functions)


def _aggregate_call(call: AggregateTree, scope: Scope) -> AggregateCall:
    """Compile an aggregate call, or raise an ExpressionError."""
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
        call = replace(call, ignore_nulls=bool(parameters[0].this))
        parameters = ()
    least, most = known.parameters
    if len(call.arguments) < known.arguments or not least <= len(parameters) <= most:
        raise ExpressionError(f"{call.name} is called as {known.signature}, not '{fragment(call.tree)}'")
    trees = call.arguments[: known.arguments]
    arguments = [compile_tree(tree, scope) for tree in trees]
    if known.name == "count" and arguments[0].constant is not None and not arguments[0].is_null:
        return AggregateCall("count", (), (), _where(call, scope, None), known.result(VOID))
    _check(known, call, arguments)
    if call.ignore_nulls and known.name not in _FIRSTS:
        raise ExpressionError(f"'{fragment(call.tree)}': IGNORE NULLS belongs to {choices(_FIRSTS)}")
    where = _where(call, scope, arguments[0] if call.ignore_nulls else None)
    finished = tuple(map(finish, arguments, trees))
    values = tuple(_parameter(known, position, tree, scope) for position, tree in enumerate(parameters))
    return AggregateCall(known.name, finished, values, where, known.result(arguments[0].type))


def _as_call(tree: exp.Expression, functions: Functions) -> AggregateTree | None:
    if isinstance(tree, exp.Filter | exp.IgnoreNulls | exp.RespectNulls):
        inner = _as_call(tree.this, functions)
        if inner is None:
            return None
        if isinstance(tree, exp.Filter):
            return replace(inner, tree=tree, where=tree.expression.this)
        return replace(inner, tree=tree, ignore_nulls=isinstance(tree, exp.IgnoreNulls))
    if isinstance(tree, exp.Any):  # sqlglot parses any(x) as the quantifier
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


def _check(known: AggregateFunction, call: AggregateTree, arguments: list[Node]) -> None:
    type_ = arguments[0].type
    if type_ == VOID:
        raise ExpressionError(f"'{fragment(call.tree)}': NULL has no type here; write cast(NULL as type)")
    expected, accepts = known.takes
    if not accepts(type_):
        raise ExpressionError(f"'{fragment(call.tree)}': {call.name} takes {expected}, not {type_name(type_)}")
    if known.arguments == 2 and is_nested(arguments[1].type):
        raise ExpressionError(f"'{fragment(call.tree)}': {type_name(arguments[1].type)} has no order")


def _where(call: AggregateTree, scope: Scope, present: Node | None) -> Expression | None:
    """Return the FILTER condition; for IGNORE NULLS, `present` must also not be NULL."""
    tree = call.where
    node = None if tree is None else logic.boolean(compile_tree(tree, scope), "the condition of FILTER")
    if present is not None:
        known = logic.negation(is_null(present))
        shown = exp.Not(this=exp.Is(this=call.arguments[0].copy(), expression=exp.Null()))
        tree = shown if tree is None else exp.And(this=exp.Paren(this=tree.copy()), expression=shown)
        node = known if node is None else logic.conjunction(node, known)
    return None if node is None or tree is None else finish(node, tree)


def _parameter(known: AggregateFunction, position: int, tree: exp.Expression, scope: Scope) -> object:
    node = compile_tree(tree, scope)
    if node.constant is None or node.is_null:
        raise ExpressionError(f"{known.name}: '{fragment(tree)}' must be a literal number")
    value = cast(node, DOUBLE).value
    if position == 0 and known.name.endswith("percentile") and not 0 <= value <= 1:
        raise ExpressionError(f"{known.name}: the percentage must be between 0 and 1, not {fragment(tree)}")
    return value


def _user_call(call: AggregateTree, user: UserAggregate, scope: Scope) -> AggregateCall:
    if call.distinct or call.ignore_nulls:
        raise ExpressionError(f"'{fragment(call.tree)}': DISTINCT and IGNORE NULLS are not for users' aggregates")
    arguments = coerce_arguments(user, [compile_tree(tree, scope) for tree in call.arguments])
    finished = tuple(map(finish, arguments, call.arguments))
    return AggregateCall(user.name.lower(), finished, (), _where(call, scope, None), user.returns, user)


Named = tuple[str, Expression]
T = TypeVar("T")
X = TypeVar("X")
_NOTHING = Schema(())
_REMEMBERED = 49_152
"""The size of the cache of compiled texts: a network is compiled for the check and again for its engine, and large
networks repeat expressions."""


def _remembered(compile_: Callable[[X, Scope], T]) -> Callable[[X, Scope], T]:
    """Cache what texts compile to; notes are repeated with a cached result."""

    @functools.wraps(compile_)
    def found(text: Any, scope: Scope) -> T:
        key = tuple(text) if isinstance(text, list | tuple) else check_text(text)
        made, notes = _compiled(compile_, key, scope)
        note(notes)
        result: T = made
        return result

    return found


@functools.lru_cache(maxsize=_REMEMBERED)
def _compiled(compile_: Callable[[Any, Scope], Any], text: Any, scope: Scope) -> tuple[Any, tuple[str, ...]]:
    with _about(text), noting() as notes:
        return compile_(text, scope), tuple(notes)


@_remembered
def compile_expression(text: str, scope: Scope) -> Expression:
    """Compile an expression, or raise an ExpressionError."""
    (tree,) = _spelled([parse_one(text)], scope)
    return finish(compile_tree(tree, scope), tree, text)


@_remembered
def compile_predicate(text: str, scope: Scope) -> Expression:
    """Compile a boolean expression, or raise an ExpressionError."""
    (tree,) = _spelled([parse_one(text)], scope)
    return finish(_condition(tree, scope), tree, text)


def _condition(tree: exp.Expression, scope: Scope) -> Node:
    return logic.boolean(compile_tree(tree, scope), "a condition")


@_remembered
def compile_select(text: str | Sequence[str], scope: Scope) -> tuple[Named, ...]:
    """Compile a select list to named expressions; ``*`` and ``left.*`` stand for all fields.

    An expression without a name is named by its own text.
    """
    results: list[Named] = []
    for item in _spelled(parse_items(text), scope):
        if _is_star(item):
            results += _star(item, scope)
        else:
            results.append(_named(item, compile_tree(_unnamed(item), scope), scope.fields))
    return _distinct(results)


def compile_aggregates(text: str | Sequence[str], scope: Scope, extra: Schema = _NOTHING) -> AggregateSelect:
    """Compile a select list of expressions over aggregate calls.

    `extra` are fields that are constant within a window, such as the grouping fields; they may be used outside
    the calls. The results read call i from slot i, and extra field j from slot len(calls) + j.
    """
    with _about(text):
        items = _spelled(parse_items(text), scope)
        found = {call.tree: call for item in items for call in find_calls(item, scope.functions)}
        calls = [_aggregate_call(call, scope) for call in found.values()]
        unique = list(dict.fromkeys(calls))
        fields = {tree: nodes.field(unique.index(call), call.type) for tree, call in zip(found, calls, strict=True)}
        outside = _Outside(extra, scope, unique)
        results = []
        for item in items:
            if _is_star(item):
                raise ExpressionError("* cannot be selected together with aggregates; name the fields")
            results.append(_named(item, compile_tree(_unnamed(item), outside, fields)))
        return AggregateSelect(tuple(unique), _distinct(results))


def compile_join(text: str, left: Schema, right: Schema, functions: Functions | None = None) -> JoinCondition:
    """Compile a join's condition, split into equalities between the sides and the rest."""
    both = Scope((("left", left), ("right", right)), functions)
    with _about(text):
        (tree,) = _spelled([parse_one(text)], both)
        _condition(tree, both)
        sides = [Scope((relation,), functions) for relation in both.relations]
        equalities: list[tuple[Expression, Expression]] = []
        names: list[tuple[str, str]] = []
        rest: list[exp.Expression] = []
        for part in _conjuncts(tree):
            nodes_ = _sides(part, *sides)
            if nodes_ is None:
                rest.append(part)
                continue
            (one, mine), (two, other) = nodes_
            type_ = common(one.type, two.type)
            equalities.append((finish(cast(one, type_), mine), finish(cast(two, type_), other)))
            if one.field is not None and two.field is not None:
                names.append((left.fields[one.field].name, right.fields[two.field].name))
        residual = None
        if rest:
            remaining: Any = exp.and_(*rest, wrap=False)
            shown = text if len(rest) == 1 and not equalities else None
            residual = finish(_condition(remaining, both), remaining, shown)
        return JoinCondition(tuple(equalities), residual, tuple(names))


class _Outside(Scope):
    """The scope outside the aggregate calls: the extra fields, in the slots after the calls' results."""

    aggregates = True

    def __init__(self, extra: Schema, inner: Scope, calls: Sequence[AggregateCall]) -> None:
        super().__init__((Relation(None, extra),), inner.functions)
        self.inner = inner
        self.calls = len(calls)
        self.fields = (*(Field(call.function, call.type) for call in calls), *extra.fields)

    def has_qualifier(self, name: str) -> bool:
        return self.inner.has_qualifier(name)

    def resolve(self, name: str, qualifier: str | None = None) -> int:
        schema = self.relations[0].schema
        position = schema.find(name)
        if position is not None and (qualifier is None or self.inner.has_qualifier(qualifier)):
            return self.calls + position
        self.inner.resolve(name, qualifier)
        label = name if qualifier is None else f"{qualifier}.{name}"
        raise ExpressionError(
            f"'{label}' stands outside of an aggregate function and is not a by field; "
            f"fields usable outside: {choices(schema.names)}"
        )


def _spelled(trees: Sequence[exp.Expression], scope: Scope) -> list[exp.Expression]:
    """Spell field names as in their schema, so that equal expressions compare equal."""
    for tree in trees:
        for column in tree.find_all(exp.Column):
            if isinstance(column.this, exp.Identifier) and not column.args.get("db"):
                try:
                    slot = scope.resolve(column.name, column.table or None)
                except ExpressionError:  # an extra field, a part of a struct, or an error that compiling raises
                    continue
                column.this.set("this", scope.fields[slot].name)
                if column.table:
                    column.args["table"].set("this", scope.owners[slot])
    return list(trees)


@functools.cache
def _is_bare(name: str) -> bool:
    """Whether a field's name needs no backticks."""
    try:
        tree = parse_one(name)
    except ExpressionError:
        return False
    return isinstance(tree, exp.Column) and tree.name == name


@contextmanager
def _about(text: str | Sequence[str]) -> Iterator[None]:
    """Prefix ExpressionErrors raised in the body with the expression."""
    try:
        yield
    except ExpressionError as error:
        raise type(error)(f"expression '{_shown(text)}': {error}") from None
    except RecursionError:
        raise ExpressionError(f"expression '{_shown(text)}': it is nested too deeply") from None


def _shown(text: object) -> str:
    shown = ", ".join(map(str, text)) if isinstance(text, list | tuple) else str(text)
    return shown if len(shown) <= 300 else shown[:299] + "…"


def _is_star(item: exp.Expression) -> bool:
    return isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star))


def _star(item: exp.Expression, scope: Scope) -> list[Named]:
    if isinstance(item, exp.Star) and any(item.args.values()):
        raise ExpressionError(f"'{to_sql(item)}' is not supported; name the fields")
    qualifier = item.table if isinstance(item, exp.Column) else None
    if qualifier and not scope.has_qualifier(qualifier):
        scope.resolve("*", qualifier)
    results = []
    for slot, (owner, field) in enumerate(zip(scope.owners, scope.fields, strict=True)):
        if not qualifier or (owner or "").lower() == qualifier.lower():
            tree = exp.column(exp.to_identifier(field.name, quoted=not _is_bare(field.name)), table=owner)
            results.append((field.name, finish(nodes.field(slot, field.type), tree)))
    return results


def _unnamed(item: exp.Expression) -> exp.Expression:
    return item.this if isinstance(item, exp.Alias) else item


def _named(item: exp.Expression, node: Node, fields: Sequence[Field] = ()) -> Named:
    """Name an item's expression; for one of `fields`, with the schema's spelling."""
    if isinstance(item, exp.Alias):
        name = item.alias
    elif node.field is not None and fields:
        name = fields[node.field].name
    else:
        name = item.name if isinstance(item, exp.Column) else to_sql(item)
    return name, finish(node, _unnamed(item))


def _distinct(results: Sequence[Named]) -> tuple[Named, ...]:
    seen: set[str] = set()
    for name, _ in results:
        if name.lower() in seen:
            raise ExpressionError(f"the name '{name}' appears twice; rename one with 'as'")
        seen.add(name.lower())
    return tuple(results)


def _conjuncts(tree: exp.Expression) -> list[exp.Expression]:
    if isinstance(tree, exp.And):
        return [*_conjuncts(tree.this), *_conjuncts(tree.expression)]
    if isinstance(tree, exp.Paren):
        parts = _conjuncts(tree.this)
        if len(parts) > 1 or isinstance(parts[0], exp.EQ):
            return parts
    return [tree]


_Side = tuple[Node, exp.Expression]


def _sides(part: exp.Expression, left: Scope, right: Scope) -> tuple[_Side, _Side] | None:
    """Split an equality between the two scopes into its left and its right side; None if it is not one."""
    if not isinstance(part, exp.EQ):
        return None
    for mine, other in ((part.this, part.expression), (part.expression, part.this)):
        try:
            one, two = compile_tree(mine, left), compile_tree(other, right)
        except ExpressionError:  # it refers to a field of the other side
            continue
        type_ = common(one.type, two.type)
        # Floats are excluded because NaN and -0.0 do not hash the way they compare.
        if one.slots and two.slots and type_ is not None and not is_float(type_):
            return (one, mine), (two, other)
    return None
