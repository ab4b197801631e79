"""What names an expression may use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from headway.errors import ExpressionError, choices, did_you_mean
from headway.expressions.registry import BUILTIN, Functions
from headway.schema import Field, Schema


class Relation(NamedTuple):
    """A schema whose fields an expression may name, behind a qualifier or without one."""

    qualifier: str | None
    schema: Schema


class Scope:
    """The relations and functions of an expression; slots number the fields of all relations in order.

    A bare name is looked up in the relation without qualifier, else in the only relation that has it.
    ``left.x`` is looked up in that relation. As in Spark, case does not matter.
    """

    aggregates = False
    """Whether aggregate functions may be called here."""

    def __init__(self, relations: Sequence[Relation], functions: Functions = BUILTIN) -> None:
        """Take the relations and count their slots."""
        self.relations = tuple(relations)
        self.functions = functions
        self.fields: tuple[Field, ...] = tuple(field for relation in self.relations for field in relation.schema)
        starts, position = [], 0
        for relation in self.relations:
            starts.append(position)
            position += len(relation.schema)
        self._starts = tuple(starts)

    def __eq__(self, other: object) -> bool:
        """Compare by value; functions are the same only if they are one object."""
        return isinstance(other, Scope) and self.relations == other.relations and self.functions is other.functions

    def __hash__(self) -> int:
        """Hash by value, so that what was compiled in a scope can be found again."""
        return hash(self.relations)

    @classmethod
    def of(cls, schema: Schema, functions: Functions = BUILTIN) -> Scope:
        """Return the scope of one relation without a qualifier."""
        return cls((Relation(None, schema),), functions)

    @property
    def qualifiers(self) -> tuple[str, ...]:
        """The qualifiers in order."""
        return tuple(relation.qualifier for relation in self.relations if relation.qualifier is not None)

    def has_qualifier(self, name: str) -> bool:
        """Whether a relation has this qualifier."""
        return name.lower() in (qualifier.lower() for qualifier in self.qualifiers)

    def slots_of(self, qualifier: str | None) -> list[int]:
        """Return the slots of a relation, or of all of them for None."""
        slots: list[int] = []
        for relation, start in zip(self.relations, self._starts, strict=True):
            if qualifier is None or (relation.qualifier or "").lower() == qualifier.lower():
                slots.extend(range(start, start + len(relation.schema)))
        return slots

    def qualifier_of(self, slot: int) -> str | None:
        """Return the qualifier of a slot's relation."""
        owners = [
            relation.qualifier for relation, start in zip(self.relations, self._starts, strict=True) if start <= slot
        ]
        return owners[-1]

    def resolve(self, name: str, qualifier: str | None = None) -> int:
        """Return the slot of a field, or raise an ExpressionError that lists the fields."""
        found: list[tuple[str, int]] = []
        for relation, start in zip(self.relations, self._starts, strict=True):
            position = relation.schema.find(name)
            if qualifier is not None:
                if (relation.qualifier or "").lower() == qualifier.lower() and position is not None:
                    return start + position
                continue
            if position is not None:
                if relation.qualifier is None:
                    return start + position
                found.append((f"{relation.qualifier}.{relation.schema.fields[position].name}", start + position))
        if len(found) == 1:
            return found[0][1]
        if found:
            raise ExpressionError(f"'{name}' is ambiguous; write {' or '.join(label for label, _ in found)}")
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
        return [
            field.name if relation.qualifier is None else f"{relation.qualifier}.{field.name}"
            for relation in self.relations
            for field in relation.schema
        ]
