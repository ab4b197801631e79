"""Union: all tuples of all inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headway.boxes.keys import Key
from headway.boxes.operator import Operator, register
from headway.errors import SchemaError, choices
from headway.expressions import Functions
from headway.network.schema import Schema, type_name

ORDERED = Key("ordered", "flag", "false: take tuples as they come, not in arrival order (default true)")


@register
@dataclass(frozen=True, slots=True)
class Union(Operator):
    """All tuples of all inputs in arrival order, or as they come when not `ordered`. Schemas must agree."""

    ordered: bool = True

    op = "union"
    doc = "All tuples of all inputs, in arrival order."
    keys = (ORDERED,)
    inputs = (2, None)
    projects = True
    passes = True
    traceable = True
    selectivity = 1.0

    def schemas(self, inputs: Sequence[Schema], functions: Functions | None) -> tuple[Schema, ...]:
        """Return the schema that all inputs have."""
        first = inputs[0]
        for number, other in enumerate(inputs[1:], 2):
            _agree(first, other, number)
        return (first,)


def _agree(first: Schema, other: Schema, number: int) -> None:
    for position, (mine, its) in enumerate(zip(first, other, strict=False), 1):
        if mine.name != its.name:
            raise SchemaError(
                f"in: schemas do not agree: field {position} is '{mine.name}' in input 1 "
                f"and '{its.name}' in input {number}; put a map before the union"
            )
        if mine.type != its.type:
            raise SchemaError(
                f"in: schemas do not agree: field '{mine.name}' is {type_name(mine.type)} in input 1 "
                f"and {type_name(its.type)} in input {number}; put a map with a cast before the union"
            )
    if len(first) != len(other):
        longer, shorter = (first, other) if len(first) > len(other) else (other, first)
        where, extra = (1 if longer is first else number), longer.names[len(shorter) :]
        raise SchemaError(f"in: schemas do not agree: input {where} alone has the fields {choices(extra)}")
