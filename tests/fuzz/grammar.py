"""Networks from a grammar: well formed in the main, with sizes, slacks and expressions from everywhere."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.fuzz.expressions import LEAVES, SCHEMA, make
from tests.fuzz.nasty import NUMBERS

SIZES = (1, 2, 3, 10, 1000, 0.5, 2.5, 2**31, 2**53, 2**62, 2**62 - 1, 1e18, 1e300, 5e-324, 0.1, 3.3)
SPANS = ("1s", "5s", "1 minute", "1us", "250ms", "1w", "100000w", "1d", "36500d", "2d", "7000000w")
FIELDS = ("k", "k", "i", "l", "j", "d", "d", "f", "t", "t", "n", "y", "#")


def tree(random: Random, size: int) -> dict[str, Any]:
    """Return a network's tree: a chain or two of boxes that keep the source's fields, and then boxes that do not."""
    boxes: dict[str, Any] = {}
    whole = ["a", "b"]
    ends: list[str] = []
    for at in range(random.randrange(1, size + 2)):
        name = f"x{at}"
        op = random.choice(
            ("filter", "map", "union", "bsort", "aggregate", "aggregate", "join", "resample", "universal")
        )
        source, other = random.choice(whole), random.choice(whole)
        one, keeps = _box(random, op, source, other)
        boxes[name] = one
        out = f"{name}.{random.choice(('1', 'else'))}" if op == "filter" and isinstance(one["where"], list) else name
        if keeps:
            whole.append(out)
        ends.append(out)
    outputs: dict[str, Any] = {f"o{at}": {"from": end} for at, end in enumerate(ends)}
    if random.random() < 0.5:
        outputs["o0"]["qos"] = {"latency": [[0, 1], [random.choice((1, 1e-9, 1e18, 10**20)), 0]]}
    made: dict[str, Any] = {
        "network": "n",
        "sources": {name: {"schema": str(SCHEMA)} for name in ("a", "b")},
        "boxes": boxes,
        "outputs": outputs,
    }
    if random.random() < 0.3:
        policies = (
            "qos/superbox/mc/auto",
            "chain/box",
            "round-robin",
            "slope-slack",
            "fifo/box/10",
            "qos/spanner:2/ml/5ms",
            "threads",
        )
        made["schedule"] = {"policy": random.choice(policies)}
    return made


def _box(random: Random, op: str, source: str, other: str) -> tuple[dict[str, Any], bool]:
    """Return a box, and whether its result has the fields of its input."""
    if op == "filter":
        where = [make(random, "truth", 2) for _ in range(random.randrange(1, 3))]
        return {"op": op, "in": source, "where": where if random.random() < 0.5 else where[0]}, True
    if op == "map":
        return {"op": op, "in": source, "select": f"k, t, {make(random, random.choice(list(LEAVES)), 2)} as v"}, False
    if op == "union":
        return {"op": op, "in": [source, other], "ordered": random.random() < 0.5}, True
    if op == "bsort":
        return {"op": op, "in": source, "order": _order(random)}, True
    if op == "universal":
        return {"op": op, "in": source, "cost": 0, "selectivity": random.choice((0, 0.5, 1, 2, 1e-300, 3.7))}, True
    on_field = random.choice(FIELDS) if op == "aggregate" or random.random() < 0.1 else random.choice(FIELDS[:-1])
    size = _size(random, on_field)
    if op == "join":
        on = random.choice(("left.k = right.k", "left.i = right.i and left.d < right.d", "true", "left.s = right.s"))
        order = _order(random, on_field) if random.random() < 0.5 else [_order(random, on_field) for _ in range(2)]
        return {
            "op": op,
            "in": [source, other],
            "on": on,
            "size": size,
            "order": order,
            "select": "left.k as k, right.s as s",
        }, False
    aggregates = (
        "count(*) as c",
        "sum(i) as c",
        "avg(d) as c",
        "max(s) as c, min(t) as e",
        "first(d) as c",
        "sum(m) as c",
        "stddev(d) as c",
    )
    if op == "resample":
        return {
            "op": op,
            "in": [source, other],
            "select": random.choice(aggregates[:4]),
            "size": size,
            "order": _order(random),
        }, False
    made: dict[str, Any] = {
        "op": op,
        "in": source,
        "select": random.choice(aggregates),
        "order": _order(random, on_field),
    }
    if random.random() < 0.15:
        made["advance"] = {"when": random.choice(("k > last.k + 1", "s <> first.s", "d > first.d", "true", "b"))}
    else:
        made["size"] = size
        if random.random() < 0.5:
            made["advance"] = _size(random, on_field)
        if random.random() < 0.3:
            made["align"] = random.choice(("first", "grid"))
    if random.random() < 0.2:
        made["timeout"] = random.choice(SPANS)
    return made, False


def _size(random: Random, on: str) -> Any:
    """Return a size for an order field, nearly always of its kind."""
    kind = on if random.random() < 0.95 else random.choice(FIELDS)
    if kind in "tny":
        return random.choice(SPANS[-5:] if kind == "y" else SPANS)
    whole = [size for size in SIZES if size == int(size) and size < 2**63]
    return random.choice(SIZES if kind in "df" else whole)


def _order(random: Random, on: str = "") -> dict[str, Any]:
    order: dict[str, Any] = {"on": on or random.choice(FIELDS[:-1])}
    if random.random() < 0.4:
        order["slack"] = random.choice((0, 1, 2, 10)) if random.random() < 0.95 else random.choice(NUMBERS)
    if random.random() < 0.4:
        order["by"] = random.choice((["k"], ["s", "i"], "b", [], ["d"], ["m", "y"], ["t"]))
    return order
