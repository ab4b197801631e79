"""Network files: good ones, changed as trees and as texts; what passes the check is run, twice."""

from __future__ import annotations

import math
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa

import headway as hw
from headway.checking import CheckedNetwork, check
from headway.cli.check import check_connectors
from headway.errors import HeadwayError
from headway.files import dump, load
from headway.network import Box, Network, thaw
from headway.network.schema import Schema
from headway.network.yamls import read_text, write_text
from tests.fuzz.grammar import tree
from tests.fuzz.judging import expect
from tests.fuzz.nasty import mutate_leaves, mutate_text, mutate_tree, to_text
from tests.fuzz.rows import as_text, make_rows
from tests.networks import ALL, BORDER

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
TABLES = {"people": pa.table({"person": pa.array([1, 2], pa.int32()), "who": ["a", "b"]})}
MANY = """
network: many
sources:
  a:
    schema: {id: bigint, time: timestamp, x: double, name: string, tags: array<int>, m: "decimal(12,3)"}
    source: {generate: {rate: 100, count: 50, seed: 3, fields: {id: i, time: {sequence: [2024-01-01, 1s]},
      x: {normal: [0, 1]}, name: {choice: [u, v], weights: [1, 2]}, tags: "array(1, 2)", m: {uniform: [0, 10]}}}}
  b:
    schema: {id: bigint, time: timestamp, x: double}
    source: {generate: {count: 20, phases: [[1s, 10], [2s, 5]], arrivals: poisson,
      fields: {id: {zipf: [1.5, 10]}, time: {sequence: [2024-01-01, 2s]}, x: {exponential: 2, null: 0.1}}}}
boxes:
  f: {op: filter, in: a, where: ["x > 0", "name = 'u'"]}
  g: {op: map, in: f.1, select: "id, time, x * 2 as y, upper(name) as name"}
  h: {op: aggregate, in: g, select: "count(*) as n, sum(y) as s, max(name) as z", order: {on: time, by: name, slack: 2},
    size: 10s, advance: 5s, timeout: 1m}
  j: {op: join, in: [f.2, b], on: left.id = right.id, size: 5s, order: [{on: time}, {on: time, slack: 1}],
    select: "left.time as time, right.x as x"}
  u: {op: union, in: [b, j], ordered: false}
  r: {op: bsort, in: u, order: {on: time, slack: 5}}
  k: {op: resample, in: [r, b], select: avg(x) as v, size: 10s, order: {on: time}}
  c: {op: universal, in: h, cost: 1us, selectivity: 0.5}
outputs:
  h: {from: c, qos: {latency: [[0, 1], [5, 0]], loss: [[100, 1], [0, 0]], value: {field: n, graph: [[0, 0], [9, 1]]}}}
  k: {from: k}
  rest: {from: f.else}
schedule: {policy: qos/superbox/mc/auto, workers: 1, shed: {most: 0.5}, wait: 10s}
"""


@lru_cache
def corpus() -> tuple[str, ...]:
    """Return good network files."""
    try:
        load(MANY)
        several = [MANY]
    except HeadwayError:
        raise
    return (*[path.read_text() for path in sorted(EXAMPLES.glob("*/*.yaml"))], ALL, BORDER, *several)


def network(random: Random, size: int, folder: Path) -> None:
    """Change a good file; load it, check it, write it and read it again, and run it if it can be."""
    kind = random.random()
    if kind < 0.1:
        text = mutate_text(random, random.choice(corpus()), size)
    else:
        made = tree(random, size) if kind < 0.6 else read_text(random.choice(corpus()))
        times = random.choice((0, 0, 1)) if kind < 0.6 else (size + 1) // 2
        made = mutate_tree(random, made, times) if kind < 0.8 else mutate_leaves(random, made, times)
        text = to_text(made) if random.random() < 0.5 else write_text(made)
    path = folder / "network.yaml"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    loaded = load(path)
    expect(
        load(dump(loaded)) == loaded or _has_nan(loaded.to_mapping()), "what is written is read back as another network"
    )
    checked = check(loaded, tables=TABLES)
    check_connectors(checked)
    if _cheap(loaded):
        _run_twice(random, checked)


def _run_twice(random: Random, checked: CheckedNetwork) -> None:
    found = checked.network
    inputs = {source.name: make_rows(random, source.schema, random.randrange(12)) for source in found.sources}
    schedule = {**(thaw(found.schedule) or {})}
    # Results may hang on real time where load is shed and windows time out, their order where nobody asked for one.
    loose = bool(schedule.get("shed")) or "adaptive" in schedule or any(map(_is_loose, found.boxes))
    results: list[dict[str, list[str]]] = []
    for train in (1, 1000):
        got: dict[str, list[pa.RecordBatch]] = {output.name: [] for output in found.outputs}
        outputs = {name: batches.append for name, batches in got.items()}
        hw.run(found, inputs, engine="local", outputs=outputs, tables=TABLES, train=train)
        results.append({name: _rows(checked.output_schema(name), some) for name, some in got.items()})
    if not loose:
        expect(
            repr(results[0]) == repr(results[1]), f"trains change results: {results[0]!r:.300} and {results[1]!r:.300}"
        )


def _rows(schema: Schema, batches: list[pa.RecordBatch]) -> list[str]:
    return as_text(pa.Table.from_batches(batches, schema.to_arrow()))


def _is_loose(box: Box) -> bool:
    keys = box.to_mapping()
    return keys.get("ordered") is False or keys.get("timeout") is not None


def _cheap(found: Network) -> bool:
    """Whether it can run here: no other engine, few threads, no box that only spends time."""
    schedule: Any = found.schedule or {}
    spends = any(box.spec.op == "universal" and thaw(box.to_mapping()).get("cost") for box in found.boxes)
    return not spends and schedule.get("workers", 1) <= 4 and schedule.get("engine", "local") == "local"


def _has_nan(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_nan, value.values()))
    return any(map(_has_nan, value)) if isinstance(value, list) else isinstance(value, float) and math.isnan(value)
