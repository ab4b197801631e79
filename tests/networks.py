"""Good networks: examples, and a hypothesis strategy for whole network files that are well formed."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from headway.boxes import Duration
from headway.boxes.sizes import write_size

BORDER = """
network: border-watch
sources:
  positions:
    schema: {sid: int, time: bigint, pos: int}        # Spark SQL type names
boxes:
  across:  {op: filter, in: positions, where: "pos >= 30"}
  counts:
    op: aggregate
    in: across
    select: "count(*) as n, avg(pos) as mean"
    order: {on: time, slack: 1, by: []}
    size: 1
    advance: 1                                         # default: size (tumbling)
    timeout: 5s                                        # optional
  crowded: {op: filter, in: counts, where: ["n >= 3", "n = 2"]}   # routes; outputs crowded.1, crowded.2, crowded.else
  names:   {op: map, in: crowded.1, select: "time, n, n * 2 as twice"}
outputs:
  alarms:
    from: names
    qos:
      latency: [[0, 1], [2, 1], [10, 0]]               # seconds, utility
      loss:    [[100, 1], [50, 0.2], [0, 0]]           # per cent delivered, utility
      value:   {field: n, graph: [[0, 0.1], [3, 1]]}
"""
"""The example of the design, word for word."""

ALL = """
network: all-operators
sources:
  a: {schema: {sid: int, time: timestamp, pos: double, name: string}, source: {csv: a.csv}}
  b: {schema: "sid int, time timestamp, pos double, name string", source: b.jsonl}
boxes:
  both: {op: union, in: [a, b], ordered: false}
  sorted: {op: bsort, in: both, order: {on: time, slack: 3, by: [sid]}}
  sessions:
    {op: aggregate, in: sorted, select: [count(*) as n, max(pos) as high], order: {on: time, by: sid},
     advance: {when: "pos > last.pos + 1 or sid <> first.sid"}}
  windows:
    {op: aggregate, in: sorted, select: count(*) as n, order: {on: time}, size: 10 minutes, advance: 1m, align: first}
  tens: {op: aggregate, in: both, select: avg(pos) as pos, order: {on: "#", by: [name]}, size: 10}
  near: {op: join, in: [a, b], on: left.sid = right.sid, size: 5s, order: [{on: time}, {on: time, slack: 2}]}
  close:
    {op: join, in: [a, b], on: "left.sid = right.sid and left.pos < right.pos", size: 5s, order: {on: time},
     select: "left.time as time, right.pos - left.pos as gap", ordered: false}
  around: {op: resample, in: [a, b], select: avg(pos) as pos, size: 1m, order: [{on: time}, {on: time, by: [sid]}]}
  named: {op: join, in: [near, {table: people}], on: left.sid = right.person}
  loaded: {op: universal, in: tens, cost: {uniform: [1us, 3us]}, selectivity: 0.5, mode: even, seed: 7}
outputs:
  sessions: {from: sessions}
  windows: {from: windows, sink: {parquet: w.parquet}}
  tens: {from: loaded}
  close: {from: close}
  around: {from: around}
  named: {from: named, sink: out.csv}
schedule: {policy: round-robin, train: 100, workers: 2}
"""
"""Every operator and nearly every key."""

_names = st.from_regex(r"[a-z_][a-z0-9_-]{0,5}", fullmatch=True)
_texts = st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "S", "Zs")), min_size=1, max_size=12).filter(
    lambda text: bool(text.strip())
)
_one_or_more: st.SearchStrategy[Any] = _texts | st.lists(_texts, min_size=1, max_size=3)
_numbers = st.integers(1, 10**9) | st.floats(0.001, 1e9)
_durations = st.integers(1, 10**13).map(Duration)
_sizes = (_numbers | _durations).map(write_size)
_spans = st.floats(0, 9) | st.integers(0, 10**7).map(lambda micros: str(Duration(micros)))
_costs = (
    _spans
    | st.tuples(st.integers(0, 5), st.integers(5, 9)).map(lambda pair: {"uniform": list(pair)})
    | st.tuples(st.floats(0, 3), st.integers(1, 99), _spans).map(lambda three: {"zipf": list(three)})
)
_types = st.sampled_from(
    ["int", "bigint", "double", "string", "timestamp", "date", "decimal(12,3)", "array<int>", "struct<a:int,b:string>"]
)
_plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | _texts
    | st.sampled_from(["on", "no", "1e3", "010", "1:30"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_texts, inner, max_size=3),
    max_leaves=6,
)
_connectors = _texts | st.dictionaries(_texts, _plain, min_size=1, max_size=1)


@st.composite
def _orders(draw: st.DrawFn) -> dict[str, Any]:
    order: dict[str, Any] = {"on": draw(st.sampled_from(["time", "#", "on"]) | _names)}
    if draw(st.booleans()):
        order["slack"] = draw(st.integers(0, 5))
    if draw(st.booleans()):
        order["by"] = draw(st.lists(_names, max_size=3, unique=True))
    return order


@st.composite
def _graphs(draw: st.DrawFn, most: int = 1000) -> list[list[float]]:
    xs = sorted(draw(st.sets(st.integers(0, most) | st.floats(0, most), min_size=1, max_size=4)))
    return [[x, draw(st.floats(0, 1))] for x in xs]


@st.composite
def _boxes(draw: st.DrawFn, arcs: list[str]) -> dict[str, Any]:
    arc = st.sampled_from(arcs)
    box: dict[str, Any]
    op = draw(st.sampled_from(["filter", "map", "union", "universal", "bsort", "aggregate", "join", "resample"]))
    if op == "filter":
        return {"op": op, "in": draw(arc), "where": draw(_one_or_more)}
    if op == "map":
        return {"op": op, "in": [draw(arc)], "select": draw(_one_or_more)}
    if op == "union":
        return {"op": op, "in": draw(st.lists(arc, min_size=2, max_size=4)), "ordered": draw(st.booleans())}
    if op == "universal":
        box = {"op": op, "in": draw(st.lists(arc, min_size=1, max_size=3)), "cost": draw(_costs)}
        return box | {"selectivity": draw(st.floats(0, 9)), "mode": draw(st.sampled_from(["random", "even", None]))}
    if op == "bsort":
        return {"op": op, "in": draw(arc), "order": draw(_orders())}
    select = draw(_texts)
    if op == "aggregate":
        size = {"size": draw(_sizes), "advance": draw(st.none() | _sizes)}
        when = {"advance": {"when": draw(_texts)}}
        box = {
            "op": op,
            "in": draw(arc),
            "select": select,
            "order": draw(_orders()),
            **draw(st.sampled_from([size, when])),
        }
        box["align"] = draw(st.sampled_from(["grid", "first", None]))
        box["timeout"] = draw(st.none() | _durations.map(str))
        return box
    pair = {"size": draw(_sizes), "order": draw(_orders() | st.tuples(_orders(), _orders()).map(list))}
    two = [draw(arc), draw(arc)]
    if op == "resample":
        return {"op": op, "in": two, "select": select, **pair}
    ordered = draw(st.booleans())
    if draw(st.booleans()):
        return {"op": op, "in": [two[0], {"table": draw(_texts)}], "on": draw(_texts), "ordered": ordered}
    return {"op": op, "in": two, "on": draw(_texts), **pair, "select": draw(st.none() | _texts)}


@st.composite
def network_mappings(draw: st.DrawFn) -> dict[str, Any]:
    """Whole network files as mappings: well formed, but with expressions that mean nothing."""
    names = draw(st.lists(_names, min_size=2, max_size=8, unique=True))
    split = draw(st.integers(1, len(names) - 1))
    sources: dict[str, Any] = {}
    for name in names[:split]:
        sources[name] = {"schema": draw(st.dictionaries(_names, _types, min_size=1, max_size=4))}
        if draw(st.booleans()):
            sources[name]["source"] = draw(_connectors)
    arcs, boxes = list(sources), {}
    for name in names[split:]:
        box = draw(_boxes(arcs))
        boxes[name] = box
        where = box.get("where")
        if isinstance(where, list) and len(where) > 1:
            arcs += [f"{name}.{number + 1}" for number in range(len(where))] + [f"{name}.else"]
        else:
            arcs += [name, *([f"{name}.else", f"{name}.1"] if where else [])]
    outputs: dict[str, Any] = {}
    for name in draw(st.lists(_names, min_size=1, max_size=3, unique=True)):
        outputs[name] = {"from": draw(st.sampled_from(arcs))}
        graphs = {
            "latency": _graphs(),
            "loss": _graphs(100),
            "value": st.fixed_dictionaries({"field": _names, "graph": _graphs()}),
        }
        outputs[name]["qos"] = {key: draw(graph) for key, graph in graphs.items() if draw(st.booleans())}
        if draw(st.booleans()):
            outputs[name]["sink"] = draw(_connectors)
    mapping = {"network": draw(_names), "sources": sources, "boxes": boxes, "outputs": outputs}
    if draw(st.booleans()):
        mapping["schedule"] = {"policy": draw(_names), "train": draw(st.integers(1, 1000))}
    return mapping
