"""A small network that runs, and fragments for it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

PATIENCE = 20.0


def network(floor: int = 0, size: int = 3, **more: Any) -> dict[str, Any]:
    return {
        "network": "living",
        "sources": {"s": {"schema": {"a": "bigint", "v": "int"}, "push": True}},
        "boxes": {
            "f": {"op": "filter", "in": "s", "where": f"v >= {floor}"},
            "w": {"op": "aggregate", "in": "f", "select": "count(*) as n", "order": {"on": "a"}, "size": size},
        },
        "outputs": {"passed": {"from": "f"}, "counts": {"from": "w"}},
    } | more


COUNT = {
    "attach": "q",
    "since": "now",
    "boxes": {"c": {"op": "aggregate", "in": "f", "select": "count(*) as n", "order": {"on": "a"}, "size": 2}},
    "outputs": {"x": {"from": "c"}},
}


def rows(first: int, last: int) -> list[dict[str, int]]:
    return [{"a": at, "v": at} for at in range(first, last)]


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)


POINT: dict[str, Any] = {"points": {"p": {"on": "s", "keep": "all"}}}


def query(name: str, item: str = "p", **more: Any) -> dict[str, Any]:
    return {
        "attach": name,
        "boxes": {"b": {"op": "filter", "in": item, "where": "true"}},
        "outputs": {"x": {"from": "b"}},
    } | more


def pairs(count: int) -> list[tuple[int, int]]:
    return [(at, 1) for at in range(count)]
