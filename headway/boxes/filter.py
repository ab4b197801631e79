"""Filter: route each tuple to the output of the first predicate that is true."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headway import expressions
from headway.boxes.keys import Key, Settings, inside, parse_text
from headway.boxes.operator import Operator, Projection, register
from headway.boxes.scopes import scope_of
from headway.errors import NetworkError
from headway.schema import Schema

if TYPE_CHECKING:
    from headway.expressions import Expression, Functions


@register
@dataclass(frozen=True, slots=True)
class Filter(Operator):
    """Predicates in order. A tuple goes to the first one that is true, else to ``else``; NULL is not true.

    One predicate: the ports are ``""`` and ``else``. More: ``1``, ``2``, … and ``else``.
    """

    where: tuple[str, ...]

    op = "filter"
    doc = "Route each tuple to the output of the first predicate that is true."
    keys = (Key("where", "texts", "a predicate, or a list of predicates, one per route", required=True),)
    projects = True
    passes = True
    traceable = True

    @property
    def ports(self) -> tuple[str, ...]:
        """The routes, then ``else``."""
        if len(self.where) == 1:
            return ("", "else")
        return (*(str(number + 1) for number in range(len(self.where))), "else")

    @classmethod
    def read(cls, settings: Settings) -> Filter:
        """Read ``where``."""
        return cls(settings.need("where", _predicates))

    def to_mapping(self) -> dict[str, Any]:
        """Return ``where`` as text, or as a list when there are several."""
        return {"where": self.where[0] if len(self.where) == 1 else list(self.where)}

    def schemas(self, inputs: Sequence[Schema], functions: Functions | None) -> tuple[Schema, ...]:
        """Return the input's schema for every port."""
        self.predicates(inputs[0], functions)
        return (inputs[0],) * len(self.ports)

    def predicates(self, schema: Schema, functions: Functions | None = None) -> tuple[Expression, ...]:
        """Return the compiled predicates."""
        scope = scope_of(schema, functions)
        compiled = []
        for number, text in enumerate(self.where):
            with inside("where" if len(self.where) == 1 else f"where {number + 1}"):
                compiled.append(expressions.compile_predicate(text, scope))
        return tuple(compiled)

    def projection(self, schema: Schema, functions: Functions | None) -> Projection:
        """Return the predicates."""
        return Projection(self.predicates(schema, functions))


def _predicates(value: object) -> tuple[str, ...]:
    if isinstance(value, list | tuple):
        if not value:
            raise NetworkError("needs at least one predicate")
        return tuple(parse_text(text) for text in value)
    return (parse_text(value),)
