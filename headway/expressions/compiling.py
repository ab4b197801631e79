"""The entry points: expressions, predicates, select lists, aggregates and join conditions from text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache, lru_cache

from sqlglot import exp

from headway.errors import ExpressionError, choices
from headway.expressions import nodes
from headway.expressions.calls import AggregateTree, aggregate_call, find_calls
from headway.expressions.casts import cast
from headway.expressions.compiler import compile_tree
from headway.expressions.model import AggregateCall, AggregateSelect, Expression, JoinCondition, finish
from headway.expressions.nodes import Node
from headway.expressions.notes import note, noting
from headway.expressions.parsing import check_text, parse_items, parse_one, to_sql
from headway.expressions.registry import BUILTIN, Functions
from headway.expressions.scopes import Relation, Scope
from headway.expressions.types import BOOLEAN, VOID, common, is_float
from headway.schema import Field, Schema, type_name

Named = tuple[str, Expression]
_NOTHING = Schema(())
_REMEMBERED = 16_384
"""Compiled texts are remembered: a network is checked first and compiled for its engine later, and large networks
repeat themselves."""


def compile_expression(text: str, scope: Scope) -> Expression:
    """Return a checked expression, or raise an ExpressionError."""
    made, notes = _compile_expression(check_text(text), scope)
    note(notes)
    return made


@lru_cache(maxsize=_REMEMBERED)
def _compile_expression(text: str, scope: Scope) -> tuple[Expression, tuple[str, ...]]:
    with _about(text), noting() as notes:
        (tree,) = _spelled([parse_one(text)], scope)
        return finish(compile_tree(tree, scope), text, tree), tuple(notes)


def compile_predicate(text: str, scope: Scope) -> Expression:
    """Return a checked boolean expression, or raise an ExpressionError."""
    made, notes = _compile_predicate(check_text(text), scope)
    note(notes)
    return made


@lru_cache(maxsize=_REMEMBERED)
def _compile_predicate(text: str, scope: Scope) -> tuple[Expression, tuple[str, ...]]:
    with _about(text), noting() as notes:
        (tree,) = _spelled([parse_one(text)], scope)
        node = compile_tree(tree, scope)
        if node.type not in (BOOLEAN, VOID):
            raise ExpressionError(f"a condition must be boolean, not {type_name(node.type)}")
        return finish(cast(node, BOOLEAN), text, tree), tuple(notes)


def compile_select(text: str | Sequence[str], scope: Scope) -> tuple[Named, ...]:
    """Return the named expressions of a select list; ``*`` and ``left.*`` stand for all fields.

    An expression without a name gets its own text as its name.
    """
    made, notes = _compile_select(text if isinstance(text, str) else tuple(text), scope)
    note(notes)
    return made


@lru_cache(maxsize=_REMEMBERED)
def _compile_select(text: str | tuple[str, ...], scope: Scope) -> tuple[tuple[Named, ...], tuple[str, ...]]:
    with _about(text), noting() as notes:
        results: list[Named] = []
        for item in _spelled(parse_items(text), scope):
            results.extend(_star(item, scope) if _is_star(item) else [_named(item, scope)])
        return _distinct(results), tuple(notes)


def compile_aggregates(text: str | Sequence[str], scope: Scope, extra: Schema = _NOTHING) -> AggregateSelect:
    """Return a select list of expressions over aggregate calls.

    `extra` are fields that are constant in a window, such as those it is grouped by; they may be used outside
    of the calls. The results read call i from slot i, and extra field j from slot len(calls) + j.
    """
    with _about(text):
        items = _spelled(parse_items(text), scope)
        found: dict[exp.Expression, AggregateTree] = {}
        for item in items:
            found.update(find_calls(item, scope.functions))
        calls = [aggregate_call(tree, scope) for tree in found.values()]
        unique = list(dict.fromkeys(calls))
        fields = {tree: nodes.field(unique.index(call), call.type) for tree, call in zip(found, calls, strict=True)}
        outside = _Outside(extra, scope, unique)
        results = []
        for item in items:
            if _is_star(item):
                raise ExpressionError("* cannot be selected beside aggregates; name the fields")
            tree = item.this if isinstance(item, exp.Alias) else item
            results.append(_name(item, compile_tree(tree, outside, fields)))
        return AggregateSelect(tuple(unique), _distinct(results))


def compile_join(text: str, left: Schema, right: Schema, functions: Functions = BUILTIN) -> JoinCondition:
    """Return a join's condition, split into equalities between the sides and the rest."""
    both = Scope((Relation("left", left), Relation("right", right)), functions)
    with _about(text):
        (tree,) = _spelled([parse_one(text)], both)
        if compile_tree(tree, both).type not in (BOOLEAN, VOID):
            raise ExpressionError("a condition must be boolean")
        equalities: list[tuple[Expression, Expression]] = []
        names: list[tuple[str, str]] = []
        rest: list[exp.Expression] = []
        for part in _conjuncts(tree):
            pair = _equality(part, both, len(left))
            if pair is None:
                rest.append(part)
                continue
            equalities.append(_sides(part, pair, both, left, right))
            one, two = pair[0], pair[1]
            if one.field is not None and two.field is not None:
                names.append((left.fields[one.field].name, right.fields[two.field - len(left)].name))
        residual = None
        if rest:
            remaining = _joined(rest)
            node = cast(compile_tree(remaining, both), BOOLEAN)
            residual = finish(node, text if len(rest) == 1 and not equalities else to_sql(remaining), remaining)
        return JoinCondition(tuple(equalities), residual, tuple(names))


class _Outside(Scope):
    """What surrounds the aggregate calls: the extra fields, in the slots after the calls' results."""

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
    """Spell the fields as their schema does, so that equal expressions look equal."""
    for tree in trees:
        for column in tree.find_all(exp.Column):
            if isinstance(column.this, exp.Identifier) and not column.args.get("db"):
                try:
                    slot = scope.resolve(column.name, column.table or None)
                except ExpressionError:  # an extra field, a struct's part or an error that compiling will raise
                    continue
                column.this.set("this", scope.fields[slot].name)
                if column.table:
                    column.args["table"].set("this", scope.qualifier_of(slot))
    return list(trees)


@cache
def _is_bare(name: str) -> bool:
    """Whether a field's name can be written without backticks."""
    try:
        tree = parse_one(name)
    except ExpressionError:
        return False
    return isinstance(tree, exp.Column) and tree.name == name


@contextmanager
def _about(text: str | Sequence[str]) -> Iterator[None]:
    """Name the expression in what is raised inside."""
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
    for slot in scope.slots_of(qualifier or None):
        name = scope.fields[slot].name
        owner = scope.qualifier_of(slot)
        tree = exp.column(exp.to_identifier(name, quoted=not _is_bare(name)), table=owner)
        results.append((name, finish(nodes.field(slot, scope.fields[slot].type), to_sql(tree), tree)))
    return results


def _named(item: exp.Expression, scope: Scope) -> Named:
    tree = item.this if isinstance(item, exp.Alias) else item
    node = compile_tree(tree, scope)
    if node.field is not None and not isinstance(item, exp.Alias):  # as the schema spells it
        return scope.fields[node.field].name, finish(node, to_sql(tree), tree)
    return _name(item, node)


def _name(item: exp.Expression, node: Node) -> Named:
    if isinstance(item, exp.Alias):
        return item.alias, finish(node, to_sql(item.this), item.this)
    name = item.name if isinstance(item, exp.Column) else to_sql(item)
    return name, finish(node, to_sql(item), item)


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


def _joined(parts: list[exp.Expression]) -> exp.Expression:
    tree = parts[0].copy()
    for part in parts[1:]:
        tree = exp.And(this=tree, expression=part.copy())
    return tree


def _equality(part: exp.Expression, both: Scope, split: int) -> tuple[Node, Node] | None:
    """Return the left and the right side of an equality between the two schemas, or None."""
    if not isinstance(part, exp.EQ):
        return None
    one, two = compile_tree(part.this, both), compile_tree(part.expression, both)
    if not one.slots or not two.slots:
        return None
    if min(one.slots) >= split > max(two.slots):
        one, two = two, one
    if not (max(one.slots) < split <= min(two.slots)):
        return None
    type_ = common(one.type, two.type)
    if type_ is None or is_float(type_):  # NaN and -0.0 do not hash as they compare
        return None
    return one, two


def _sides(
    part: exp.Expression, pair: tuple[Node, Node], both: Scope, left: Schema, right: Schema
) -> tuple[Expression, Expression]:
    one, two = pair
    type_ = common(one.type, two.type)
    trees = [part.this, part.expression]
    if compile_tree(trees[0], both).slots != one.slots:
        trees.reverse()
    sides = []
    for tree, relation in zip(trees, (Relation("left", left), Relation("right", right)), strict=True):
        alone = compile_tree(tree, Scope((relation,), both.functions))
        sides.append(finish(cast(alone, type_), to_sql(tree), tree))
    return sides[0], sides[1]
