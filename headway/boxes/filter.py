"""Filter: route each tuple to the output of the first predicate that is true."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from headway.boxes.keys import EXPRESSIONS, Key, KeyKind, inside, parse_text
from headway.boxes.lookups import wanted_keys
from headway.boxes.operator import Operator, Projection, register
from headway.errors import NetworkError
from headway.expressions import Expression, Functions
from headway.expressions.compiling import compile_predicate
from headway.expressions.model import Scope
from headway.network.schema import Schema


def _parse_where(value: object) -> tuple[str, ...]:
    if isinstance(value, list | tuple):
        if not value:
            raise NetworkError("needs at least one predicate")
        return tuple(parse_text(text) for text in value)
    return (parse_text(value),)


def _write_where(where: tuple[str, ...]) -> str | list[str]:
    return where[0] if len(where) == 1 else list(where)


_WHERE = KeyKind(EXPRESSIONS, _parse_where, _write_where)


@register
@dataclass(frozen=True, slots=True)
class Filter(Operator):
    """Predicates in order. A tuple goes to the port of the first true one, else to ``else``; NULL is not true.

    One predicate: the ports are ``""`` and ``else``. More: ``1``, ``2``, … and ``else``.
    """

    where: tuple[str, ...]

    op = "filter"
    doc = "Route each tuple to the output of the first predicate that is true."
    keys = (Key("where", _WHERE, "a predicate, or a list of predicates, one per route", True),)
    projects = True
    passes = True
    traceable = True

    @property
    def ports(self) -> tuple[str, ...]:
        """The routes, then ``else``."""
        if len(self.where) == 1:
            return ("", "else")
        return (*(str(number + 1) for number in range(len(self.where))), "else")

    def schemas(self, inputs: Sequence[Schema], functions: Functions | None) -> tuple[Schema, ...]:
        """Return the input's schema for every port."""
        self.predicates(inputs[0], functions)
        return (inputs[0],) * len(self.ports)

    def predicates(self, schema: Schema, functions: Functions | None = None) -> tuple[Expression, ...]:
        """Return the compiled predicates."""
        scope = Scope.of(schema, functions)
        compiled = []
        for number, text in enumerate(self.where):
            with inside("where" if len(self.where) == 1 else f"where {number + 1}"):
                compiled.append(compile_predicate(text, scope))
        return tuple(compiled)

    def lookup(self, key: str, schema: Schema, ports: Collection[str]) -> Any:
        """Return which values of a field pass, if only what passes is read."""
        if len(self.where) != 1 or "else" in ports:
            return None
        return wanted_keys(self.where[0], key, schema.field(key).type)

    def projection(self, schema: Schema, functions: Functions | None) -> Projection:
        """Return the predicates."""
        return Projection(self.predicates(schema, functions))
