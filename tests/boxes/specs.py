"""Shared by the tests of the specifications."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from headway.boxes import Operator
from headway.network.schema import Schema

S = Schema.parse("sid int, time bigint, pos double, name string, ts timestamp, price decimal(10,2)")
R = Schema.parse("sid int, time bigint, label string")
T = TypeVar("T", bound=Operator)


def parse(kind: type[T], **keys: Any) -> T:
    """Read a specification and check that what it writes reads back as the same."""
    given: Mapping[str, Any] = keys
    spec = kind.parse("b", given)
    tables = {"in": keys["in"]} if "in" in keys else {}
    assert kind.parse("b", {**tables, **spec.to_mapping()}) == spec
    assert hash(kind.parse("b", {**tables, **spec.to_mapping()})) == hash(spec)
    return spec


def infer(spec: Operator, *inputs: Schema) -> list[str]:
    """Return the inferred schemas as text."""
    return [str(schema) for schema in spec.infer("b", inputs)]
