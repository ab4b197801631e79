"""The JSON Schema of the network file, for editors. Generated from the specifications' keys.

``python -m headway.jsonschema`` writes it beside this module as ``network.schema.json``, with Headway's own operators;
``python -m headway.jsonschema PATH`` writes it to a path, including those of installed packages.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from headway.boxes.keys import IN, OP, one_of, schema_of
from headway.boxes.operator import REGISTRY, Operator, operators
from headway.boxes.order import Order
from headway.files import (
    NETWORK_KEYS,
    OUTPUT_KEYS,
    POINT_KEYS,
    POINTED_KEYS,
    QOS_KEYS,
    SCHEDULE_KEYS,
    SOURCE_KEYS,
    TABLE_KEYS,
    VALUE_KEYS,
    VIEW_KEYS,
)

DIALECT = "https://json-schema.org/draft/2020-12/schema"
PATH = Path(__file__).with_name("network.schema.json")


def schema(kinds: Mapping[str, type[Operator]] | None = None) -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of the network file, for these operators by name; None: for all."""
    kinds = operators() if kinds is None else kinds
    op = replace(OP, kind=one_of("op", kinds))
    definitions: dict[str, Any] = {
        "order": schema_of(Order.keys),
        "table": schema_of(TABLE_KEYS),
        "pointed": schema_of(POINTED_KEYS),
        "source": schema_of(SOURCE_KEYS),
        "point": {**schema_of(POINT_KEYS), "oneOf": [{"required": ["on"]}, {"required": ["data"]}]},
        "view": schema_of(VIEW_KEYS),
        "output": schema_of(OUTPUT_KEYS),
        "qos": schema_of(QOS_KEYS),
        "value": schema_of(VALUE_KEYS),
        "schedule": schema_of(SCHEDULE_KEYS),
        "box": {
            "type": "object",
            "required": ["op", "in"],
            "properties": schema_of((op, IN))["properties"],
            "allOf": [
                {"if": {"properties": {"op": {"const": name}}, "required": ["op"]}, "then": {"$ref": f"#/$defs/{name}"}}
                for name in kinds
            ],
        },
        **{name: {"description": spec.doc, **schema_of((op, IN, *spec.keys))} for name, spec in kinds.items()},
    }
    whole = schema_of(NETWORK_KEYS)
    whole["required"].remove("outputs")  # what is kept is of use, too
    return {
        "$schema": DIALECT,
        "title": "Headway network",
        "description": "A network of boxes and arcs over streams, with QoS graphs at its outputs.",
        **whole,
        "anyOf": [{"required": [key]} for key in ("outputs", "points", "views")],
        "$defs": definitions,
    }


def text(kinds: Mapping[str, type[Operator]] | None = REGISTRY) -> str:
    """Return the JSON Schema as the text of its file."""
    return json.dumps(schema(kinds), indent=2, ensure_ascii=False) + "\n"


def write(path: str | None = None) -> None:
    """Write the JSON Schema to its own file, or, with the operators of installed packages, to a path."""
    Path(path or PATH).write_text(text() if path is None else text(None), "utf-8")


if __name__ == "__main__":
    write(*sys.argv[1:])
