"""Small networks for the engine's tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

FIELDS = {"a": "bigint", "v": "int"}
POSITIVE = {"op": "filter", "in": "s", "where": "v > 0"}
COUNT = {"op": "aggregate", "in": "s", "select": "count(*) as n", "order": {"on": "a"}, "size": 10}


def network(
    boxes: Mapping[str, Any], outputs: Mapping[str, str], sources: tuple[str, ...] = ("s",), **more: Any
) -> dict[str, Any]:
    """Return a network file over sources with the fields `a bigint, v int`."""
    return {
        "network": "n",
        "sources": {name: {"schema": FIELDS} for name in sources},
        "boxes": dict(boxes),
        "outputs": {name: {"from": arc} for name, arc in outputs.items()},
        **more,
    }


def rows(count: int) -> list[tuple[int, int]]:
    """Return tuples that every filter here lets through."""
    return [(at, 1) for at in range(count)]
