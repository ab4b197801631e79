"""The JSON Schema of the network file, for editors. Generated from the specifications' keys.

``python -m headway.jsonschema`` writes it beside this module as ``network.schema.json``, with Headway's own operators;
``python -m headway.jsonschema PATH`` writes it to a path, including those of installed packages.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from headway.boxes.aggregate import ALIGNMENTS, When
from headway.boxes.costs import MOST_RANKS
from headway.boxes.keys import IN, OP, Key
from headway.boxes.operator import REGISTRY, Operator, operators
from headway.boxes.order import Order
from headway.boxes.universal import MODES, MOST
from headway.errors import HeadwayError, unknown
from headway.files import NETWORK_KEYS, OUTPUT_KEYS, QOS_KEYS, SOURCE_KEYS, TABLE_KEYS, VALUE_KEYS
from headway.options.kinds import KINDS
from headway.options.table import SCHEDULE

DIALECT = "https://json-schema.org/draft/2020-12/schema"
PATH = Path(__file__).with_name("network.schema.json")

_TEXT = {"type": "string", "minLength": 1}
_NAMES: dict[str, Any] = {"type": "array", "items": _TEXT}
_EXPRESSION = {"type": ["string", "number", "boolean"], "minLength": 1}
_SIZE: dict[str, Any] = {
    "oneOf": [
        {"type": "number", "exclusiveMinimum": 0},
        {"type": "string", "pattern": r"^(\s*\d+(\.\d+)?\s*[A-Za-zµμ]+\s*)+$"},
    ]
}
_SPAN: dict[str, Any] = {"oneOf": [{"type": "number", "minimum": 0}, _SIZE["oneOf"][1]]}
_SIMPLE: dict[str, dict[str, Any]] = {
    "text": _EXPRESSION,
    "texts": {"oneOf": [_EXPRESSION, {"type": "array", "items": _EXPRESSION, "minItems": 1}]},
    "select": {"oneOf": [_EXPRESSION, {"type": "array", "items": _EXPRESSION, "minItems": 1}]},
    "field": _TEXT,
    "names": {"oneOf": [_TEXT, {"type": "array", "items": _TEXT}]},
    "count": {"type": "integer", "minimum": 0},
    "positive": {"type": "integer", "minimum": 1},
    "flag": {"type": "boolean"},
    "align": {"enum": list(ALIGNMENTS)},
    "size": _SIZE,
    "duration": {"type": "string", "pattern": r"^(\s*\d+(\.\d+)?\s*[A-Za-zµμ]+\s*)+$"},
    "selectivity": {"type": "number", "minimum": 0, "maximum": MOST},
    "mode": {"enum": list(MODES)},
    "arc": _TEXT,
    "name": {"type": "string", "pattern": r"^[^\s.]+$"},
    "op": _TEXT,
    "connector": {"oneOf": [_TEXT, {"type": "object", "minProperties": 1, "maxProperties": 1}]},
    "schema": {"oneOf": [_TEXT, {"type": "object", "minProperties": 1, "additionalProperties": _TEXT}]},
    "graph": {
        "type": "array",
        "minItems": 1,
        "items": {"type": "array", "prefixItems": [{"type": "number"}, {"type": "number", "minimum": 0, "maximum": 1}]}
        | {"minItems": 2, "maxItems": 2},
    },
}


def schema(kinds: Mapping[str, type[Operator]] | None = None) -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of the network file, for these operators by name; None: for all."""
    kinds = operators() if kinds is None else kinds
    top = _object(NETWORK_KEYS)
    definitions: dict[str, Any] = {
        "order": _object(Order.keys),
        "when": _object(When.keys),
        "table": _object(TABLE_KEYS),
        "source": _object(SOURCE_KEYS),
        "output": _object(OUTPUT_KEYS),
        "qos": _object(QOS_KEYS),
        "value": _object(VALUE_KEYS),
        "schedule": {
            "type": "object",
            "properties": {key.name: {"description": key.key_text, **KINDS[key.kind].schema} for key in SCHEDULE},
            "additionalProperties": False,
        },
        "box": {
            "type": "object",
            "required": ["op", "in"],
            "properties": {"op": _operator(kinds), "in": _property(IN)},
            "allOf": [
                {"if": {"properties": {"op": {"const": op}}, "required": ["op"]}, "then": {"$ref": f"#/$defs/{op}"}}
                for op in kinds
            ],
        },
    }
    for op, spec in kinds.items():
        keys = _object((OP, IN, *spec.keys))
        keys["properties"]["op"] = _operator(kinds)
        definitions[op] = {"description": spec.doc, **keys}
    return {
        "$schema": DIALECT,
        "title": "Headway network",
        "description": "A network of boxes and arcs over streams, with QoS graphs at its outputs.",
        **top,
        "$defs": definitions,
    }


def text(kinds: Mapping[str, type[Operator]] | None = REGISTRY) -> str:
    """Return the JSON Schema as the text of its file."""
    return json.dumps(schema(kinds), indent=2, ensure_ascii=False) + "\n"


def write(path: str | None = None) -> None:
    """Write the JSON Schema to its own file, or, with the operators of installed packages, to a path."""
    Path(path or PATH).write_text(text() if path is None else text(None), "utf-8")


def _object(keys: Sequence[Key]) -> dict[str, Any]:
    required = [key.name for key in keys if key.required]
    result: dict[str, Any] = {"type": "object", "properties": {key.name: _property(key) for key in keys}}
    if required:
        result["required"] = required
    return {**result, "additionalProperties": False}


def _operator(kinds: Mapping[str, type[Operator]]) -> dict[str, Any]:
    return {"description": OP.doc, "enum": list(kinds)}


def _property(key: Key) -> dict[str, Any]:
    return {"description": key.doc, **_kind(key.kind)}


def _kind(kind: str) -> Mapping[str, Any]:
    """Return the fragment for a kind of value."""
    if kind in _SIMPLE:
        return _SIMPLE[kind]
    if kind in ("order", "qos", "value", "schedule"):
        return {"$ref": f"#/$defs/{kind}"}
    if kind == "orders":
        one: dict[str, Any] = {"$ref": "#/$defs/order"}
        return {"oneOf": [one, {"type": "array", "items": one, "minItems": 2, "maxItems": 2}]}
    if kind == "advance":
        return {"oneOf": [*_SIZE["oneOf"], {"$ref": "#/$defs/when"}]}
    if kind == "cost":
        ranks = {"type": "integer", "minimum": 1, "maximum": MOST_RANKS}
        drawn: dict[str, list[dict[str, Any]]] = {"uniform": [_SPAN, _SPAN], "zipf": [{"type": "number"}, ranks, _SPAN]}
        return {"oneOf": [*_SPAN["oneOf"], *[_distribution(name, parts) for name, parts in drawn.items()]]}
    if kind == "inputs":
        one = {"oneOf": [_TEXT, {"$ref": "#/$defs/table"}]}
        return {"oneOf": [_TEXT, {"type": "array", "items": one, "minItems": 1}]}
    item = {"sources": "source", "boxes": "box", "outputs": "output"}.get(kind)
    if item is None:
        raise HeadwayError(unknown("kind of key", kind, (*_SIMPLE, "order", "orders", "advance", "cost")))
    least = {} if kind == "boxes" else {"minProperties": 1}
    names = {"propertyNames": _SIMPLE["name"]}
    return {"type": "object", **least, **names, "additionalProperties": {"$ref": f"#/$defs/{item}"}}


def _distribution(name: str, parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the fragment for a mapping with one key, whose value is a list of these parts."""
    listed = {"type": "array", "prefixItems": list(parts), "minItems": len(parts), "maxItems": len(parts)}
    return {"type": "object", "properties": {name: listed}, "required": [name], "additionalProperties": False}


if __name__ == "__main__":
    write(*sys.argv[1:])
