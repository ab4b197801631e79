"""Expressions from a grammar, some of them spoilt: checked, and run on a few rows with different trains."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Any

import headway as hw
from headway.checking import check
from headway.expressions.library.table import AGGREGATES, BUILTINS
from headway.files import load
from headway.network.schema import Schema
from tests.fuzz.judging import expect
from tests.fuzz.nasty import mutate_text
from tests.fuzz.rows import as_text, make_rows

SCHEMA = Schema.parse(
    "k bigint, b boolean, i int, j smallint, l bigint, f float, d double, m decimal(12,3), w decimal(38,10), s string, "
    "u string, t timestamp, n timestamp_ntz, y date, z binary, a array<int>, q array<string>, r struct<x:int,v:string>"
)
LEAVES: dict[str, tuple[str, ...]] = {
    "whole": ("i", "j", "l", "k", "0", "1", "-1", "2", "7", "127", "32768", "2147483648", "9223372036854775807", "400",
              "-400", "1000", "1000000", "2000000000", "NULL", "r.x", "length(s)"),
    "number": ("f", "d", "m", "w", "1.5", "0.001", "1e300", "1e-300", "-0.0", "99999999999999999999999999999999999999",
               "123456789012345678901234567890.5", "cast('nan' as double)", "cast('inf' as double)", "NULL",
               "9223372036854775808"),
    "text": ("s", "u", "r.v", "''", "'a'", "'%a_'", "'é'", "'(a+)+$'", "'[a-'", "'2024-02-29'", "'12'", "'-1e400'",
             "'\\\\'", "repeat('a', 30)", "NULL", "cast(d as string)", "'\\0'"),
    "truth": ("b", "true", "false", "NULL", "s is null", "d > 1", "i = 1"),
    "date": ("y", "date '2024-01-31'", "date '0001-01-01'", "date '9999-12-31'", "NULL", "'2024-02-30'",
             "cast(t as date)"),
    "time": ("t", "n", "timestamp '2024-01-01T00:00:00Z'", "NULL", "timestamp '9999-12-31T23:59:59Z'", "'x'"),
    "format": ("'yyyy-MM-dd'", "'HH:mm'", "'yyyy'", "''", "'qqq'", "'day'", "'month'", "'week'", "'second'", "'%Y'",
               "s"),
    "other": ("a", "q", "r", "z", "array(1, 2)", "interval '1' day", "interval 5 minutes", "x'00ff'", "NULL"),
}  # fmt: skip
ARGUMENTS = {
    "text": "s part pad characters search replacement from to pattern separator delimiter",
    "whole": "n position length digits group days months seconds year month day",
    "date": "d end start",
    "time": "ts",
    "format": "format unit",
}
RESULTS = {
    "whole": "length char_length instr locate position ascii year quarter month weekofyear day dayofmonth dayofweek "
    "weekday dayofyear hour minute second unix_timestamp unix_seconds unix_millis unix_micros unix_date "
    "datediff date_diff",
    "truth": "startswith endswith contains isnan isnull isnotnull",
    "text": "upper ucase lower lcase initcap trim btrim ltrim rtrim substring substr left right concat concat_ws "
    "replace translate lpad rpad reverse repeat split_part regexp_replace regexp_extract date_format from_unixtime",
    "date": "trunc to_date date_add dateadd date_sub add_months last_day make_date",
    "time": "date_trunc to_timestamp timestamp_seconds timestamp_millis timestamp_micros",
}
TYPES = {
    "whole": ("tinyint", "smallint", "int", "bigint"),
    "number": ("float", "double", "decimal(10,2)", "decimal(38,0)", "decimal(38,38)"),
    "text": ("string",),
    "truth": ("boolean",),
    "date": ("date",),
    "time": ("timestamp", "timestamp_ntz"),
    "other": ("binary", "array<int>", "struct<x:int>"),
}
ANY = ("whole", "number", "text", "truth", "date", "time", "other")


@lru_cache
def functions() -> dict[str, list[tuple[str, list[str], list[str]]]]:
    """Return by kind of result the functions: name, kinds of the needed arguments, and of those that may follow."""
    known = {name: kind for kind, names in RESULTS.items() for name in names.split()}
    kinds = {name: kind for kind, names in ARGUMENTS.items() for name in names.split()}
    made: dict[str, list[tuple[str, list[str], list[str]]]] = {}
    for name, function in BUILTINS.items():
        words = function.signature.partition("(")[2].rstrip(")")
        needed, _, more = re.sub(r"\[(\w+), \](\w+)", r"\2[, \1]", words).partition("[")
        given = [kinds.get(word, "number") for word in re.findall(r"\w+", needed)]
        extra = [kinds.get(word, "number") for word in re.findall(r"\w+", more)] + (
            ["number"] * 2 if "…" in words else []
        )
        made.setdefault(known.get(name, "number"), []).append((name, given, extra))
    return made


def make(random: Random, kind: str, depth: int) -> str:
    """Return an expression of a kind, mostly: some mistakes are made on purpose."""
    if random.random() < 0.06:
        kind = random.choice(ANY)
    if depth <= 0 or random.random() < 0.12 or kind in ("format", "other"):
        return random.choice(LEAVES[kind])
    inner, form = depth - 1, random.random()
    if form < 0.1:
        some = make(random, "truth", inner), make(random, kind, inner), make(random, kind, inner)
        return random.choice(("case when {} then {} else {} end", "if({}, {}, {})")).format(*some)
    if form < 0.25 and kind in TYPES:
        how = random.choice(("cast", "try_cast")) if random.random() < 0.2 else "cast"
        return f"{how}({make(random, random.choice(ANY), inner)} as {random.choice(TYPES[kind])})"
    if form < 0.4 and kind in ("whole", "number"):
        return f"({make(random, kind, inner)} {random.choice('+-*/%')} {make(random, kind, inner)})"
    if form < 0.45 and kind in ("date", "time"):
        return f"({make(random, kind, inner)} {random.choice('+-')} interval {random.choice((1, 99999, 5))} days)"
    if form < 0.7 and kind == "truth":
        return _condition(random, inner)
    choices = functions().get(kind) or functions()["number"]
    name, needed, more = random.choice(choices)
    kinds = needed + more[: random.randrange(len(more) + 1)]
    return f"{name}({', '.join(make(random, one, inner) for one in kinds)})"


def _condition(random: Random, depth: int) -> str:
    kind = random.choice(("whole", "number", "text", "date", "time"))
    one, other = make(random, kind, depth), make(random, kind, depth)
    form = random.random()
    if form < 0.4:
        return f"({one} {random.choice(('=', '<>', '<', '<=', '>', '>=', '<=>'))} {other})"
    if form < 0.6:
        return f"({make(random, 'truth', depth)} {random.choice(('and', 'or'))} {make(random, 'truth', depth)})"
    if form < 0.7:
        return f"{one} in ({other}, {make(random, kind, depth)})"
    if form < 0.8:
        return f"{one} between {other} and {make(random, kind, depth)}"
    if form < 0.9:
        return f"{make(random, 'text', depth)} {random.choice(('like', 'rlike'))} {random.choice(LEAVES['text'])}"
    return (
        f"{random.choice(('not ', ''))}({make(random, 'truth', depth)}) {random.choice(('is null', 'is not null', ''))}"
    )


def expression(random: Random, size: int, folder: Path) -> None:
    """Check an expression as a predicate, in a select or in an aggregate, and run it with trains of 1 and of 1,000."""
    box = make_box(random, size)
    network: dict[str, Any] = {
        "network": "n",
        "sources": {"a": {"schema": str(SCHEMA)}},
        "boxes": {"e": box},
        "outputs": {"o": {"from": "e"}},
    }
    checked = check(load(network))
    rows = make_rows(random, SCHEMA, 9)
    for at, row in enumerate(rows):
        row["k"] = at
    results = []
    for train in (1, 1000):
        done = hw.run(checked.network, {"a": rows}, engine="local", train=train)
        results.append((as_text(done.outputs["o"]), done.summary.get("dead_letters")))
    expect(repr(results[0]) == repr(results[1]), f"trains change {box}: {results[0]!r:.400} and {results[1]!r:.400}")


def make_box(random: Random, size: int) -> dict[str, Any]:
    """Return a box that uses an expression."""
    form = random.random()
    text = make(random, "truth" if form < 0.25 else random.choice(ANY[:-1]), min(size, 3))
    if random.random() < 0.12:
        text = mutate_text(random, text, 1)
    if form < 0.25:
        return {"op": "filter", "in": "a", "where": text}
    if form < 0.75:
        return {"op": "map", "in": "a", "select": f"{text} as v, k"}
    name = random.choice(sorted(AGGREGATES))
    distinct = "distinct " if name == "count" and random.random() < 0.5 else ""
    order: dict[str, Any] = {"on": "k", "slack": random.randrange(3)}
    if random.random() < 0.3:
        order["by"] = random.choice(("b", "i", "s", "d", "t", "m"))
    sizes = {"size": random.choice((1, 3, 100)), "advance": random.choice((1, 2))}
    return {"op": "aggregate", "in": "a", "select": f"{name}({distinct}{text}) as v", "order": order, **sizes}
