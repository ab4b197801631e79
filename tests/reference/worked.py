"""The worked examples of squal.md and of the paper's section 5, with what must come out of them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.reference.kinds import TIMESTAMP
from tests.reference.order import Order
from tests.reference.tuples import Row
from tests.reference.twins import (
    Result,
    Twin,
    aggregates,
    bsorts,
    filters,
    joins,
    maps,
    resamples,
    results,
    sessions,
    unions,
)

POSITIONS = {"sid": "int", "time": "bigint", "pos": "int"}


@dataclass(frozen=True)
class Worked:
    """A network, its finite inputs, and the rows of each output in their order."""

    name: str
    twin: Twin
    inputs: Mapping[str, Sequence[Row]]
    expected: Mapping[str, Sequence[Row]]


def table(names: str, *rows: Sequence[Any]) -> list[Row]:
    """Return rows from their values."""
    return [dict(zip(names.split(), row, strict=True)) for row in rows]


def _at(text: str) -> dt.datetime:
    hour, minute = text.split(":")
    return dt.datetime(2003, 7, 1, int(hour), int(minute), tzinfo=dt.UTC)


def _more(name: str, value: float) -> Callable[[Row], bool | None]:
    return lambda row: None if row[name] is None else row[name] >= value


BSORT = Worked(
    "bsort with slack 2",
    Twin({"s": {"a": "int"}}, (bsorts("sorted", "s", Order("a", 2)),), {"out": "sorted"}),
    {"s": table("a", *[[a] for a in (1, 3, 1, 2, 4, 4, 8, 3, 4, 4)])},
    {"out": table("a", *[[a] for a in (1, 1, 2, 3, 4, 3, 4, 4, 4, 8)])},
)

QUOTES = [
    {"sid": sid, "time": _at(time), "price": price}
    for sid, time, price in (
        ("MSF", "1:00", 20.0),
        ("INT", "1:00", 16.0),
        ("IBM", "1:00", 24.0),
        ("IBM", "1:15", 20.0),
        ("IBM", "1:30", 23.0),
        ("MSF", "1:30", 24.0),
        ("INT", "1:30", 12.0),
        ("IBM", "2:00", 17.0),
        ("INT", "2:00", 16.0),
        ("MSF", "2:00", 22.0),
        ("IBM", "1:45", 13.0),
    )
]


def _stocks(slack: int, *expected: tuple[str, str, float]) -> Worked:
    mean = results("price")["mean"]
    order = Order("time", slack, ("sid",))
    return Worked(
        f"stock averages with slack {slack}",
        Twin(
            {"quotes": {"sid": "string", "time": "timestamp", "price": "double"}},
            (aggregates("hourly", "quotes", [mean], order, 60, kind=TIMESTAMP),),
            {"out": "hourly"},
        ),
        {"quotes": QUOTES},
        {"out": [{"time": _at(time), "sid": sid, "mean": mean} for time, sid, mean in expected]},
    )


STOCKS_1 = _stocks(
    1,
    ("1:00", "MSF", 22.0),
    ("1:00", "INT", 14.0),
    ("1:00", "IBM", 20.0),
    ("2:00", "MSF", 22.0),
    ("2:00", "INT", 16.0),
    ("2:00", "IBM", 17.0),
)
STOCKS_0 = _stocks(
    0,
    ("1:00", "IBM", 67 / 3),
    ("1:00", "INT", 14.0),
    ("1:00", "MSF", 22.0),
    ("2:00", "MSF", 22.0),
    ("2:00", "INT", 16.0),
    ("2:00", "IBM", 17.0),
)

ROUTES = Worked(
    "a filter routes to the first predicate that is true; NULL is not true",
    Twin(
        {"s": {"n": "int"}},
        (filters("route", "s", ("n >= 3", _more("n", 3)), ("n >= 2", _more("n", 2))),),
        {"many": "route.1", "some": "route.2", "rest": "route.else"},
    ),
    {"s": table("n", [5], [None], [2], [1], [3])},
    {"many": table("n", [5], [3]), "some": table("n", [2]), "rest": table("n", [None], [1])},
)

UNION = Worked(
    "a union follows the arrivals; of equal numbers its first input comes first",
    Twin(
        {"s": {"n": "int"}, "r": {"n": "int"}},
        (
            filters("big", "s", ("n >= 10", _more("n", 10))),
            maps("tenth", "s", "cast(n * 10 as int) as n", lambda row: {"n": row["n"] * 10}),
            unions("all", "tenth", "r", "big"),
        ),
        {"out": "all"},
    ),
    {"s": table("n", [1], [10], [11]), "r": table("n", [2], [3])},
    {"out": table("n", [10], [2], [100], [10], [3], [110], [11])},
)

SESSIONS = Worked(
    "a session window ends where the gap is longer than 30",
    Twin(
        {"clicks": {"time": "bigint", "user": "string"}},
        (
            sessions(
                "visits",
                "clicks",
                [results("time")["n"], results("time")["tail"]],
                Order("time", 0, ("user",)),
                "time - last.time > 30",
                lambda row, first, last: row["time"] - last["time"] > 30,
            ),
        ),
        {"out": "visits"},
    ),
    {
        "clicks": table(
            "time user", [0, "a"], [5, "b"], [30, "a"], [25, "a"], [60, "a"], [91, "a"], [36, "b"], [100, "b"]
        )
    },
    {
        "out": table(
            "time user n tail",
            [0, "a", 3, 60],
            [5, "b", 1, 5],
            [36, "b", 1, 36],
            [91, "a", 1, 91],
            [100, "b", 1, 100],
        )
    },
)

JOIN = Worked(
    "pairs of soldiers at the same place within 10 minutes",
    Twin(
        {"x": POSITIONS, "y": POSITIONS},
        (
            joins(
                "meet",
                ("x", "y"),
                ("left.pos = right.pos", lambda left, right: left["pos"] == right["pos"]),
                10,
                (Order("time"), Order("time")),
            ),
        ),
        {"out": "meet"},
    ),
    {
        "x": table("sid time pos", [1, 120, 20], [2, 125, 30], [3, 131, 20], [4, 130, 25]),
        "y": table("sid time pos", [5, 115, 20], [6, 130, 20], [7, 141, 20], [8, 142, 25]),
    },
    {
        "out": table(
            "sid time pos right_sid right_time right_pos",
            [1, 120, 20, 5, 115, 20],
            [1, 120, 20, 6, 130, 20],
            [3, 131, 20, 6, 130, 20],
            [3, 131, 20, 7, 141, 20],
        )
    },
)

RESAMPLE = Worked(
    "the position of every soldier at each heartbeat; partitions answer independently",
    Twin(
        {"beats": {"time": "bigint"}, "positions": POSITIONS},
        (
            resamples(
                "near",
                ("beats", "positions"),
                [results("pos")["mean"]],
                10,
                (Order("time"), Order("time", 0, ("sid",))),
            ),
        ),
        {"out": "near"},
    ),
    {
        "beats": table("time", [120], [135]),
        "positions": table(
            "sid time pos",
            [1, 110, 20],
            [2, 113, 30],
            [2, 131, 10],  # past 120 + 10: soldier 2 answers 120, although soldier 1 came first
            [1, 128, 40],
            [1, 130, 60],  # not past 130 yet: |120 - 130| <= 10
            [2, 146, 99],  # soldier 2 answers 135
            [1, 131, 10],  # soldier 1 answers 120
        ),
    },
    {
        "out": table(
            "sid time mean",
            [2, 120, 30.0],
            [2, 135, 10.0],
            [1, 120, 40.0],
            [1, 135, 110 / 3],
        )
    },
)

REPORTS = table(
    "sid time pos",
    [1, 1, 31],
    [2, 1, 29],
    [3, 2, 33],
    [4, 1, 35],
    [1, 2, 30],
    [2, 2, 40],
    [5, 3, 50],
    [4, 2, 45],  # one larger has been seen: in order with slack 1
    [3, 3, 44],
    [5, 2, 31],  # two larger have been seen: out of order
    [1, 4, 30],
    [2, 4, 12],
    [2, 5, 30],
)

QUERY_1 = Worked(
    "query 1: three soldiers across the border at the same time",
    Twin(
        {"positions": POSITIONS},
        (
            filters("across", "positions", ("pos >= 30", _more("pos", 30))),
            aggregates("counts", "across", [results("pos")["n"]], Order("time", 1), 1),
            filters("crowded", "counts", ("n >= 3", _more("n", 3))),
        ),
        {"alarms": "crowded", "counts": "counts"},
    ),
    {"positions": REPORTS},
    {"alarms": table("time n", [2, 4]), "counts": table("time n", [1, 2], [2, 4], [3, 2], [4, 1], [5, 1])},
)

QUERY_1_STREAMLINED = Worked(
    "query 1, streamlined: a sort, then windows of three tuples",
    Twin(
        {"positions": POSITIONS},
        (
            filters("across", "positions", ("pos >= 30", _more("pos", 30))),
            bsorts("sorted", "across", Order("time", 1)),
            aggregates(
                "threes",
                "sorted",
                [
                    Result("time", "min(time)", results("time")["low"].function),
                    Result("latest", "max(time)", results("time")["high"].function),
                ],
                Order("#"),
                3,
                1,
            ),
            filters("same", "threes", ("time = latest", lambda row: row["time"] == row["latest"])),
        ),
        {"alarms": "same"},
    ),
    {"positions": REPORTS},
    {"alarms": table("tuple time latest", [2, 2, 2], [3, 2, 2])},
)

COUNTS = Worked(
    "windows of three tuples, every two, per partition; unfinished ones are dropped",
    Twin(
        {"s": {"k": "int", "v": "int"}},
        (aggregates("threes", "s", [results("v")["listed"]], Order("#", 0, ("k",)), 3, 2),),
        {"out": "threes"},
    ),
    {"s": table("k v", [1, 10], [2, 20], [1, 11], [1, 12], [2, 21], [1, 13], [1, 14], [2, 22], [1, 15])},
    {
        "out": table(
            "tuple k listed",
            [0, 1, [10, 11, 12]],
            [2, 1, [12, 13, 14]],
            [0, 2, [20, 21, 22]],
        )
    },
)

NEGATIVE = Worked(
    "windows of 3 every 2 from a negative value: starts are multiples of 2, below zero too",
    Twin(
        {"s": {"a": "bigint", "v": "int"}},
        (aggregates("windows", "s", [results("v")["listed"]], Order("a"), 3, 2),),
        {"out": "windows"},
    ),
    {"s": table("a v", [-3, 1], [-2, 2], [None, 3], [0, 4], [-1, 5], [3, 6])},
    {
        "out": table(
            "a listed",
            [-4, [1, 2]],
            [-2, [2, 4]],
            [0, [4]],
            [2, [6]],
        )
    },
)

WORKED = (
    BSORT,
    STOCKS_1,
    STOCKS_0,
    ROUTES,
    UNION,
    SESSIONS,
    JOIN,
    RESAMPLE,
    QUERY_1,
    QUERY_1_STREAMLINED,
    COUNTS,
    NEGATIVE,
)
