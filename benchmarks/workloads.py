"""The workloads W1, W2 and W3: made-up tuples from a seed, and the network that Headway runs over them.

All three read one stream ``time timestamp, key int, value double``: 10,000 tuples per second of event time in
ascending order, keys 0 to 99 and values in [0, 1), both uniform.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

TUPLES = 5_000_000
KEYS = 100
QUERIES = 20
RATE = 10_000
"""Tuples per second of event time."""

SECOND = 1_000_000
"""A second in the stream's time: microseconds."""

START = 1_700_000_000 * SECOND

W1_FILTERS = ("value < 0.9", "key >= 10", "value >= 0.09", "key < 91", "value < 0.819")
"""Each passes 90 % of the tuples that reach it."""

THRESHOLDS = tuple(round((at + 1) / (QUERIES + 1), 3) for at in range(QUERIES))
"""W3's query number `at` counts the values below its threshold; on average a half passes."""

_SOURCE = """\
sources:
  events:
    schema: {time: timestamp, key: int, value: double}
"""


@dataclass(frozen=True)
class Workload:
    """Work that every contender does: a network over the one stream, and what it gives.

    `sort` names the fields that order results, because contenders give them in orders of their own.
    """

    name: str
    about: str
    network: str
    sort: tuple[str, ...]


def make_table(tuples: int = TUPLES, seed: int = 1, rate: int = RATE) -> pa.Table:
    """Return the stream as an Arrow table of one chunk, `rate` tuples per second of event time."""
    random = np.random.default_rng(seed)
    time = START + np.arange(tuples, dtype=np.int64) * (SECOND // rate)
    key = random.integers(0, KEYS, tuples, dtype=np.int32)
    value = random.random(tuples)
    return pa.table(
        {
            "time": pa.array(time).view(pa.timestamp("us", tz="UTC")),
            "key": pa.array(key),
            "value": pa.array(value),
        }
    )


def _w1() -> Workload:
    boxes, previous = "", "events"
    for at, predicate in enumerate(W1_FILTERS):
        boxes += f'  f{at}: {{op: filter, in: {previous}, where: "{predicate}"}}\n'
        previous = f"f{at}"
    boxes += f'  scaled: {{op: map, in: {previous}, select: "time, key, value * 2 + 1 as scaled"}}\n'
    text = f"network: w1\n{_SOURCE}boxes:\n{boxes}outputs:\n  result: {{from: scaled}}\n"
    return Workload("W1", "5 filters that pass 90 % each, then a map", text, ("time",))


def _w2() -> Workload:
    text = f"""\
network: w2
{_SOURCE}boxes:
  means: {{op: aggregate, in: events, select: "avg(value) as mean", order: {{on: time, by: [key]}}, size: 1s}}
outputs:
  result: {{from: means}}
"""
    return Workload("W2", f"a tumbling one-second average by {KEYS} keys", text, ("time", "key"))


def _w3() -> Workload:
    boxes, outputs = "", ""
    for at, threshold in enumerate(THRESHOLDS):
        boxes += f'  f{at}: {{op: filter, in: events, where: "value < {threshold}"}}\n'
        boxes += (
            f'  c{at}: {{op: aggregate, in: f{at}, select: "count(*) as n", '
            "order: {on: time, by: [key]}, size: 1s}\n"
        )
        outputs += f"  result{at}: {{from: c{at}}}\n"
    text = f"network: w3\n{_SOURCE}boxes:\n{boxes}outputs:\n{outputs}"
    about = f"{QUERIES} queries over one stream: a filter, then a tumbling count by key"
    return Workload("W3", about, text, ("time", "key"))


_MAKERS: tuple[Callable[[], Workload], ...] = (_w1, _w2, _w3)

WORKLOADS: dict[str, Workload] = {workload.name: workload for workload in (make() for make in _MAKERS)}
