"""The input and output of compilation: the scope in which names are resolved, and expressions."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa
from sqlglot import exp

from headway.errors import ExpressionError, choices, did_you_mean
from headway.expressions.nodes import Node, Run
from headway.expressions.parsing import to_sql
from headway.expressions.types import VOID
from headway.expressions.userfunctions import BUILTIN, Functions, UserAggregate
from headway.network.schema import Field, Schema


class Relation(NamedTuple):
    """A schema whose fields an expression may name, with or without a qualifier."""

    qualifier: str | None
    schema: Schema


class Scope:
    """The relations and functions visible to an expression; slots number the fields of all relations in order.

    A bare name is resolved in the relation without a qualifier, or else in the only relation that has it;
    ``left.x`` in the relation left. As in Spark, names are case-insensitive.
    """

    aggregates = False
    """Whether aggregate functions may be called."""

    def __init__(self, relations: Sequence[tuple[str | None, Schema]], functions: Functions | None = None) -> None:
        """Store the relations and assign slots to their fields."""
        self.relations = tuple([Relation(*relation) for relation in relations])
        self.functions = functions or BUILTIN
        self.fields: tuple[Field, ...] = tuple(field for relation in self.relations for field in relation.schema)
        self.owners = tuple([relation.qualifier for relation in self.relations for _ in relation.schema])
        """The qualifier of each slot's relation."""

    def __eq__(self, other: object) -> bool:
        """Compare by value, except functions, which must be the same object."""
        return isinstance(other, Scope) and self.relations == other.relations and self.functions is other.functions

    def __hash__(self) -> int:
        """Hash by value, so that compiled expressions can be cached by scope."""
        return hash(self.relations)

    @classmethod
    def of(cls, schema: Schema, functions: Functions | None = None) -> Scope:
        """Return a scope with one relation without a qualifier."""
        return cls(((None, schema),), functions)

    @property
    def qualifiers(self) -> tuple[str, ...]:
        """The relations' qualifiers, in order."""
        return tuple(relation.qualifier for relation in self.relations if relation.qualifier is not None)

    def has_qualifier(self, name: str) -> bool:
        """Whether a relation has this qualifier."""
        return name.lower() in (qualifier.lower() for qualifier in self.qualifiers)

    def resolve(self, name: str, qualifier: str | None = None) -> int:
        """Return the slot of a field, or raise an ExpressionError that lists the fields."""
        found: list[int] = []
        start = 0
        for owner, schema in self.relations:
            position = schema.find(name)
            if position is not None and (qualifier is None or (owner or "").lower() == qualifier.lower()):
                if owner is None or qualifier is not None:
                    return start + position
                found.append(start + position)
            start += len(schema)
        if len(found) == 1:
            return found[0]
        if found:
            labels = self._labels()
            raise ExpressionError(f"'{name}' is ambiguous; write {' or '.join(labels[slot] for slot in found)}")
        raise ExpressionError(self._unknown(name, qualifier))

    def _unknown(self, name: str, qualifier: str | None) -> str:
        if qualifier is not None and not self.has_qualifier(qualifier):
            known = f"qualifiers: {choices(self.qualifiers)}" if self.qualifiers else "fields have no qualifier here"
            return (
                f"unknown qualifier '{qualifier}' in '{qualifier}.{name}'; {known}; fields: {choices(self._labels())}"
            )
        labels = self._labels()
        word = name if qualifier is None else f"{qualifier}.{name}"
        bare = [label.rpartition(".")[2] for label in labels]
        hint = did_you_mean(word, labels) or did_you_mean(name, bare) or ";"
        return f"unknown field '{word}'{hint} fields: {choices(labels)}"

    def _labels(self) -> list[str]:
        pairs = zip(self.owners, self.fields, strict=True)
        return [field.name if owner is None else f"{owner}.{field.name}" for owner, field in pairs]


@dataclass(frozen=True)
class Expression:
    """An expression that is checked and ready to run.

    `text` is what the user wrote, `sql` the same as normalised Spark SQL, `slots` the slots it reads and
    `field` the slot if it is only a field. ``evaluate(columns, count)`` takes columns by slot (those that are
    not read may be None) and returns a column of `count` values: numpy values of ``numpy_type(type)`` or an
    Arrow array of exactly `type`. It raises an EvaluationError if it fails on any tuple. It may return an
    input column itself, and never writes to one. Safe to call from several threads at once.
    """

    text: str
    sql: str
    type: pa.DataType
    slots: tuple[int, ...]
    field: int | None
    evaluate: Run = dataclasses.field(repr=False, compare=False)


@dataclass(frozen=True)
class AggregateCall:
    """One call of an aggregate function over the tuples of a window.

    `function` is the canonical lower-case name, `arguments` are over the input scope (none for ``count(*)``),
    `parameters` are literals such as ``(0.95,)`` for percentile, `where` is its FILTER. `user` is set for
    user-defined aggregates.
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

    The results read call i from slot i; the extra fields follow.
    """

    calls: tuple[AggregateCall, ...]
    results: tuple[tuple[str, Expression], ...]


@dataclass(frozen=True)
class JoinCondition:
    """A join's condition, split for hashing.

    `equalities` are pairs of an expression over the left schema only and one over the right schema only, of the same
    type. `residual` is the rest, over the scope of both (qualifiers left and right). `names` are the pairs of fields
    for equalities of the plain form field = field.
    """

    equalities: tuple[tuple[Expression, Expression], ...]
    residual: Expression | None
    names: tuple[tuple[str, str], ...]


def finish(node: Node, tree: exp.Expression, text: str | None = None) -> Expression:
    """Return a node as an expression; without a `text` from the user, the tree's SQL is used."""
    if node.type == VOID:
        raise ExpressionError("NULL has no type here; write cast(NULL as type)")
    sql = to_sql(tree)
    return Expression(text or sql, sql, node.type, tuple(sorted(node.slots)), node.field, node.run)
