"""Values and texts that nobody expects, and ways to put them into good ones."""

from __future__ import annotations

import copy
import json
import math
from random import Random
from typing import Any

NUMBERS: tuple[Any, ...] = (
    0, -1, 1, 2, 3, 7, 100, 2**31 - 1, 2**31, 2**53 + 1, 2**62, 2**63 - 1, 2**63, -(2**63), 2**64, 10**20, 10**38,
    10**400, 0.5, -0.0, 1.5, 1e-9, 1e-300, 5e-324, 1e18, 1e300, 1.7976931348623157e308, -1e308, math.inf, -math.inf,
    math.nan,
)  # fmt: skip
TEXTS: tuple[str, ...] = (
    "", " ", "x", "\0", "\n", "\t", "'", '"', "`", "''", "--", "/*", ";", "%", "_", "\\", "é", "名", "\U0001f600",
    "\u0301", "\x1b[31m", "x" * 300, "x" * 5_000, "null", "true", "on", "#", "*", "a.b", "..", "../x", "/", ".", "-",
    "~", "<<", "&a", "*a", "!!x", "1s", "0s", "-1s", "1.5s", "0.0000001s", "99999999999999w", "9" * 500 + "s",
    "1h30m", "5 minutes", "1e400", "0x1F", "50%", "-50%", "64kB", "2024-02-30", "2024-01-01T00:00:00Z", "99999-01-01",
    "$(x)", "{x}", "${x}", "x.csv", "x" * 300 + ".csv", "a\0b.csv", "s3://x/y.csv",
)  # fmt: skip
WORDS: tuple[str, ...] = (
    "filter", "map", "union", "bsort", "aggregate", "join", "resample", "universal", "op", "in", "where", "select",
    "order", "on", "by", "slack", "size", "advance", "align", "first", "timeout", "when", "ordered", "left", "right",
    "table", "cost", "selectivity", "mode", "seed", "from", "qos", "latency", "loss", "value", "field", "graph",
    "sink", "source", "schema", "generate", "replay", "csv", "jsonl", "parquet", "rate", "count", "fields", "burst",
    "phases", "arrivals", "every", "off", "uniform", "normal", "zipf", "sequence", "choice", "weights", "policy",
    "train", "wait", "workers", "shed", "adaptive", "amos", "optimizer", "engine", "model", "units", "spread",
    "shards", "plan", "remember", "half_life", "use", "most", "qos/superbox/mc/auto", "chain/box", "round-robin",
    "int", "bigint", "double", "string", "timestamp", "decimal(38,18)", "array<int>", "struct<a:int>",
    "count(*) as n", "avg(pos) as m", "time", "pos", "sid", "a", "b",
)  # fmt: skip


def value(random: Random) -> Any:
    """Return something that a key may be given."""
    kind = random.random()
    if kind < 0.35:
        return random.choice(NUMBERS)
    if kind < 0.6:
        return random.choice(TEXTS)
    if kind < 0.85:
        return random.choice(WORDS)
    if kind < 0.9:
        return random.choice((True, False, None))
    some = [value(random) for _ in range(random.randrange(4))]
    return some if kind < 0.95 else {str(value(random)): one for one in some}


def mutate_tree(random: Random, tree: Any, times: int) -> Any:
    """Return a copy of plain data with so many changes at random places."""
    tree = copy.deepcopy(tree)
    for _ in range(times):
        places = list(_places(tree))
        if not places:
            return value(random)
        holder, key = random.choice(places)
        kind = random.random()
        if kind < 0.45:
            holder[key] = value(random)
        elif kind < 0.55:
            del holder[key]
        elif kind < 0.65:
            holder[key] = [holder[key]] if random.random() < 0.5 else {str(value(random)): holder[key]}
        elif kind < 0.8:
            other, name = random.choice(places)
            holder[key] = copy.deepcopy(other[name]) if name in other or isinstance(other, list) else value(random)
        elif kind < 0.9 and isinstance(holder, dict):
            holder[random.choice(WORDS)] = value(random)
        elif isinstance(holder[key], str):
            holder[key] = mutate_text(random, holder[key], 1)
        else:
            holder[key] = value(random)
    return tree


def mutate_leaves(random: Random, tree: Any, times: int) -> Any:
    """Return a copy with so many leaves replaced by others of their kind: most of these still pass for good."""
    tree = copy.deepcopy(tree)
    for _ in range(times):
        leaves = [(holder, key) for holder, key in _places(tree) if not isinstance(holder[key], dict | list)]
        if not leaves:
            return tree
        holder, key = random.choice(leaves)
        if isinstance(holder[key], bool):
            holder[key] = not holder[key]
        elif isinstance(holder[key], int | float):
            holder[key] = random.choice(NUMBERS)
        else:
            others = [other[name] for other, name in leaves if isinstance(other[name], str)]
            holder[key] = random.choice(others or TEXTS) if random.random() < 0.7 else random.choice(TEXTS + WORDS)
    return tree


def _places(tree: Any, depth: int = 0) -> Any:
    items = list(tree.items()) if isinstance(tree, dict) else list(enumerate(tree)) if isinstance(tree, list) else []
    for key, inner in items:
        yield tree, key
        if depth < 12:
            yield from _places(inner, depth + 1)


def mutate_text(random: Random, text: str, times: int) -> str:
    """Return a text with so many changes at random places."""
    for _ in range(times):
        at = random.randrange(len(text) + 1)
        to = min(len(text), at + random.choice((0, 1, 1, 2, 5, 20)))
        kind = random.random()
        if kind < 0.3:
            middle = str(value(random))[:6_000]
        elif kind < 0.5:
            middle = ""
        elif kind < 0.7:
            middle = text[at:to] * 2
        elif kind < 0.85:
            middle = random.choice("\"'`()[]{}<>,:;.*&!|?%#@-+=/\\ \t\n\r\0é0x9")
        else:
            start = random.randrange(len(text) + 1)
            middle = text[start : start + random.randrange(30)]
        text = text[:at] + middle + text[to:]
    return text


def mutate_bytes(random: Random, data: bytes, times: int) -> bytes:
    """Return bytes with so many changes at random places."""
    for _ in range(times):
        at = random.randrange(len(data) + 1)
        kind = random.random()
        if kind < 0.4 and at < len(data):
            data = data[:at] + bytes([data[at] ^ (1 << random.randrange(8))]) + data[at + 1 :]
        elif kind < 0.55:
            data = data[:at]
        elif kind < 0.7:
            data = data[:at] + data[at + random.randrange(1, 40) :]
        elif kind < 0.85:
            data = data[:at] + random.randbytes(random.randrange(1, 9)) + data[at:]
        else:
            data = (
                data[:at]
                + random.choice((b"\xff", b"\0", b'"', b"\n", b"{", b"\xff\xff\xff\xff\xff\xff\xff\x7f"))
                + data[at:]
            )
    return data


def to_text(tree: Any) -> str:
    """Return plain data as JSON, which is YAML in flow style; also what JSON does not have."""
    return json.dumps(tree, ensure_ascii=False).replace("Infinity", ".inf").replace("NaN", ".nan")
