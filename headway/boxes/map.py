"""Map: one output tuple per input tuple, each field an expression."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headway import expressions
from headway.boxes.base import Fused, Key, Operator, Origin, Settings, inside, parse_select, register, result_schema
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
    traceable = True
    stateful = False
    tuplewise = True
    fusable = True
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

    def fused(self, schema: Schema, functions: Functions | None) -> Fused:
        """Return the fields."""
        return Fused(fields=tuple(one for _, one in self.results(schema, functions)))

    def origin(self, port: str, slot: int, schema: Schema, functions: Functions | None) -> Origin:
        """Return the field that is renamed, or the expression."""
        name, expression = self.results(schema, functions)[slot]
        return Origin(expression if expression.field is None else expression.field, name)
