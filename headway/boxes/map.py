"""Map: one output tuple per input tuple, each field an expression."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headway.boxes.keys import Key, inside
from headway.boxes.operator import Operator, Projection, register, result_schema
from headway.expressions import Expression, Functions
from headway.expressions.compiling import compile_select
from headway.expressions.model import Scope
from headway.network.schema import Schema


@register
@dataclass(frozen=True, slots=True)
class Map(Operator):
    """A select list over the input's fields."""

    select: str

    op = "map"
    doc = "One output tuple per input tuple, each field an expression."
    keys = (Key("select", "select", "the fields of the result, such as `time, n * 2 as twice`", True),)
    projects = True
    traceable = True
    selectivity = 1.0

    def schemas(self, inputs: Sequence[Schema], functions: Functions | None) -> tuple[Schema, ...]:
        """Return the schema of the select list."""
        results = self.results(inputs[0], functions)
        with inside("select"):
            return (result_schema((), results),)

    def results(self, schema: Schema, functions: Functions | None = None) -> tuple[tuple[str, Expression], ...]:
        """Return the compiled select list."""
        with inside("select"):
            return compile_select(self.select, Scope.of(schema, functions))

    def projection(self, schema: Schema, functions: Functions | None) -> Projection:
        """Return the select list."""
        return Projection(results=self.results(schema, functions))
