"""How specifications name the inputs of their expressions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from headway import expressions
from headway.schema import Field, Schema

if TYPE_CHECKING:
    from headway.expressions import Expression, Functions, Scope


def scope_of(schema: Schema, functions: Functions | None = None) -> Scope:
    """Return the scope of one stream, whose fields need no qualifier."""
    return make_scope([(None, schema)], functions)


def make_scope(relations: Sequence[tuple[str | None, Schema]], functions: Functions | None = None) -> Scope:
    """Return the scope of several streams by qualifier."""
    named = [expressions.Relation(qualifier, schema) for qualifier, schema in relations]
    return expressions.Scope(named) if functions is None else expressions.Scope(named, functions)


def fields_of(results: Sequence[tuple[str, Expression]]) -> tuple[Field, ...]:
    """Return the fields that named expressions give."""
    return tuple(Field(name, expression.type) for name, expression in results)
