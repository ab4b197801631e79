"""Expressions from a grammar, some of them spoilt: checked, and run on a few rows with different trains."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa

import headway as hw
from headway.checking import check
from headway.expressions.library.table import BUILTINS
from headway.files import load
from headway.schema import Schema
from tests.fuzz.judging import expect
from tests.fuzz.nasty import mutate_text
from tests.fuzz.rows import make_rows

SCHEMA = Schema.parse(
    "k bigint, b boolean, i int, j smallint, l bigint, f float, d double, m decimal(12,3), w decimal(38,10), s string, u string, "
    "t timestamp, n timestamp_ntz, y date, z binary, a array<int>, q array<string>, r struct<x:int,v:string>"
)
LITERALS = (
    "NULL", "true", "false", "0", "1", "-1", "2", "7", "127", "32768", "2147483648", "9223372036854775807", "9223372036854775808",
    "99999999999999999999999999999999999999", "1e300", "1e-300", "1.5", "0.001", "123456789012345678901234567890.5", "''", "'a'", "'%a_'",
    "'é'", "'(a+)+$'", "'[a-'", "'yyyy-MM-dd'", "'2024-02-29'", "'12'", "'UTC'", "'day'", "date '2024-01-31'",
    "timestamp '2024-01-01T00:00:00Z'", "interval '1' day", "interval 5 minutes", "interval '1' month", "x'00ff'", "array(1, 2)", "array()",
    "400", "-400", "1000", "cast('nan' as double)", "cast('inf' as double)", "1000000",
)  # fmt: skip
TYPES = ("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal(10,2)", "decimal(38,0)", "string", "timestamp",
         "timestamp_ntz", "date", "binary", "array<int>", "struct<x:int>")  # fmt: skip
BINARY = (
    "+",
    "-",
    "*",
    "/",
    "%",
    "div",
    "=",
    "<>",
    "<",
    "<=",
    ">",
    ">=",
    "<=>",
    "and",
    "or",
    "||",
    "like",
    "&",
    "|",
    "^",
    "rlike",
    "==",
    "!=",
)
AGGREGATES = ("count", "sum", "avg", "min", "max", "first", "last", "stddev", "variance", "collect_list", "count_if", "any_value", "median",
              "collect_set", "stddev_pop", "var_pop", "bool_and", "bool_or", "approx_count_distinct", "mode", "percentile")  # fmt: skip


def make(random: Random, depth: int) -> str:
    """Return an expression of at most this depth; most have types that fit badly."""
    if depth <= 0 or random.random() < 0.15:
        return random.choice(SCHEMA.names) if random.random() < 0.6 else random.choice(LITERALS)
    kind, inner = random.random(), depth - 1
    if kind < 0.3:
        return f"({make(random, inner)} {random.choice(BINARY)} {make(random, inner)})"
    if kind < 0.7:
        name = random.choice(_functions())
        return f"{name}({', '.join(make(random, inner) for _ in range(random.choice((0, 1, 1, 1, 2, 2, 3, 4))))})"
    if kind < 0.8:
        return f"{random.choice(('cast', 'try_cast'))}({make(random, inner)} as {random.choice(TYPES)})"
    if kind < 0.85:
        return f"case when {make(random, inner)} then {make(random, inner)} else {make(random, inner)} end"
    if kind < 0.9:
        return f"{make(random, inner)} in ({make(random, inner)}, {make(random, inner)})"
    if kind < 0.93:
        return f"{make(random, inner)} between {make(random, inner)} and {make(random, inner)}"
    if kind < 0.96:
        return (
            f"{random.choice(('not ', '-', ''))}{make(random, inner)} {random.choice(('is null', 'is not null', ''))}"
        )
    return random.choice(
        (f"{make(random, inner)}[{make(random, inner)}]", f"r.{random.choice('xvo')}", f"{make(random, inner)}.x")
    )


@lru_cache
def _functions() -> tuple[str, ...]:
    return tuple(sorted(BUILTINS))


def expression(random: Random, size: int, folder: Path) -> None:
    """Check an expression as a predicate, in a select or in an aggregate, and run it with trains of 1 and of 1,000."""
    text = make(random, min(size, 4))
    if random.random() < 0.15:
        text = mutate_text(random, text, 1)
    network: dict[str, Any] = {
        "network": "n",
        "sources": {"a": {"schema": str(SCHEMA)}},
        "boxes": {"e": box(random, text)},
        "outputs": {"o": {"from": "e"}},
    }
    checked = check(load(network))
    rows = make_rows(random, SCHEMA, 9)
    for at, row in enumerate(rows):
        row["k"] = at
    results = []
    for train in (1, 1000):
        done = hw.run(checked.network, {"a": rows}, engine="local", train=train)
        results.append((_plain(done.outputs["o"]), done.summary.get("dead_letters")))
    expect(
        repr(results[0]) == repr(results[1]),
        f"trains change '{text[:200]}': {results[0]!r:.400} and {results[1]!r:.400}",
    )


def box(random: Random, text: str) -> dict[str, Any]:
    """Return a box that uses the expression."""
    kind = random.random()
    if kind < 0.25:
        return {"op": "filter", "in": "a", "where": text}
    if kind < 0.75:
        return {"op": "map", "in": "a", "select": f"{text} as v, k"}
    name = random.choice(AGGREGATES)
    distinct = "distinct " if random.random() < 0.2 else ""
    order: dict[str, Any] = {"on": "k", "slack": random.randrange(3)}
    if random.random() < 0.3:
        order["by"] = random.choice(("b", "i", "s", "d", "t", "m"))
    sizes = {"size": random.choice((1, 3, 100)), "advance": random.choice((1, 2))}
    return {"op": "aggregate", "in": "a", "select": f"{name}({distinct}{text}) as v", "order": order, **sizes}


def _plain(table: pa.Table) -> list[Any]:
    return list(table.to_pylist())
