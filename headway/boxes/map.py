"""Map: one output tuple per input tuple, each field an expression."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headway import expressions
from headway.boxes.keys import Key, Settings, inside, parse_select
from headway.boxes.operator import Operator, Projection, register, result_schema
from headway.boxes.scopes import fields_of, scope_of
from headway.schema import Schema

if TYPE_CHECKING:
    from headway.expressions import Expression, Functions


@register
@dataclass(frozen=True, slots=True)
class Map(Operator):
    """A select list over the input's fields."""

    select: str

    op = "map"
    doc = "One output tuple per input tuple, each field an expression."
    keys = (Key("select", "select", "the fields of the result, such as `time, n * 2 as twice`", required=True),)
    projects = True
    traceable = True
    selectivity = 1.0

    @classmethod
    def read(cls, settings: Settings) -> Map:
        """Read ``select``."""
        return cls(settings.need("select", parse_select))

    def to_mapping(self) -> dict[str, Any]:
        """Return ``select``."""
        return {"select": self.select}

    def schemas(self, inputs: Sequence[Schema], functions: Functions | None) -> tuple[Schema, ...]:
        """Return the schema of the select list."""
        results = self.results(inputs[0], functions)
        with inside("select"):
            return (result_schema(fields_of(results)),)

    def results(self, schema: Schema, functions: Functions | None = None) -> tuple[tuple[str, Expression], ...]:
        """Return the compiled select list."""
        with inside("select"):
            return expressions.compile_select(self.select, scope_of(schema, functions))

    def projection(self, schema: Schema, functions: Functions | None) -> Projection:
        """Return the select list."""
        return Projection(results=self.results(schema, functions))
