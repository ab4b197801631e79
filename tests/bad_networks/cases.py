"""Bad network files: the text, and what its one message must say. Also used to test the command line."""

from __future__ import annotations

from typing import NamedTuple


class Bad(NamedTuple):
    """A bad file. `stage` is ``load`` or ``check``: where the mistake is found."""

    id: str
    text: str
    expected: tuple[str, ...]
    stage: str


SOURCES = """network: bad
sources:
  s: {schema: {sid: int, time: bigint, pos: int, name: string, v: double, ts: timestamp, day: date, ok: boolean,
               price: "decimal(10,2)", tags: "array<int>"}}
  r: {schema: {sid: int, time: bigint, pos: int, name: string}}
"""


def boxes(*lines: str, out: str = "b") -> str:
    """Return a network with these boxes, over the sources s and r."""
    return SOURCES + "boxes:\n" + "".join(f"  {line}\n" for line in lines) + f"outputs: {{o: {{from: {out}}}}}\n"


def output(settings: str) -> str:
    """Return a network with one output over s."""
    return SOURCES + f"outputs: {{o: {settings}}}\n"


def aggregate(settings: str) -> str:
    """Return a network with one aggregate over s."""
    return boxes(f"b: {{op: aggregate, in: s, {settings}}}")


def join(settings: str) -> str:
    """Return a network with one join of s and r."""
    return boxes(f"b: {{op: join, in: [s, r], {settings}}}")


def resample(settings: str) -> str:
    """Return a network with one resample of s and r."""
    return boxes(f"b: {{op: resample, in: [s, r], {settings}}}")


COUNT = 'select: "count(*) as n"'
ORDERS = "order: [{on: time}, {on: time}]"

_LOAD: dict[str, tuple[str, tuple[str, ...]]] = {
    # the file itself
    "empty": ("\n\n", ("empty",)),
    "only a comment": ("# nothing\n# here\n", ("empty",)),
    "a list": ("- network: x\n- sources\n", ("mapping", "list")),
    "text": ("just some words\nand more\n", ("mapping", "just some words")),
    "unclosed bracket": ("network: x\nsources: {s: {schema: [\n", ("line", "not valid YAML")),
    "a tab": ("network: x\nsources:\n\ts: 1\n", ("line 3", "not valid YAML")),
    "bad indentation": ("network: x\n sources: 1\n", ("line 2", "not valid YAML")),
    "two documents": ("network: x\n---\nnetwork: y\n", ("not valid YAML", "single document")),
    "a Python object": ("network: !!python/object/apply:os.getcwd []\nx: 1\n", ("line 1", "unknown tag '!!python")),
    "an alias of itself": ("network: x\nsources: &a {s: *a}\noutputs: {}\n", ("nested too deeply",)),
    "an unknown alias": ("network: x\nsources: *a\n", ("line 2", "undefined alias")),
    "a doubled key": ("network: x\nsources: {}\nnetwork: y\n", ("line 3", "'network'", "twice", "line 1")),
    "a doubled box": (
        boxes("b: {op: filter, in: s, where: ok}", "b: {op: filter, in: s, where: ok}"),
        ("'b'", "appears twice", "line"),
    ),
    "a doubled key in JSON": ('{"network": "x",\n "sources": {}, "sources": {}}', ("line 2", "'sources'", "twice")),
    "a list as a key": ("network: x\n? [a, b]\n: 1\n", ("line 2", "key must be plain text")),
    "a huge number": (f"network: x\nsources: {'9' * 5000}\n", ("number is too long",)),
    # the top level
    "no name": ("sources: {s: {schema: a int}}\noutputs: {o: {from: s}}\n", ("network: is missing",)),
    "name of the network": (
        "network: a b\nsources: {s: {schema: a int}}\noutputs: {o: {from: s}}\n",
        ("'a b'", "spaces"),
    ),
    "number as a name": ("network: 5\nsources: {s: {schema: a int}}\noutputs: {o: {from: s}}\n", ("5", "text")),
    "unknown top key": (SOURCES + "output: {o: {from: s}}\n", ("unknown key 'output'", "did you mean 'outputs'")),
    "no sources": ("network: x\noutputs: {o: {from: s}}\n", ("sources: is missing",)),
    "empty sources": ("network: x\nsources: {}\noutputs: {o: {from: s}}\n", ("sources", "at least one source")),
    "sources as a list": ("network: x\nsources: [s]\noutputs: {o: {from: s}}\n", ("sources", "mapping", "list")),
    "no outputs": (SOURCES, ("outputs: is missing",)),
    "empty outputs": (SOURCES + "outputs: {}\n", ("outputs", "at least one output")),
    "boxes as text": (SOURCES + "boxes: none\noutputs: {o: {from: s}}\n", ("boxes", "mapping", "'none'")),
    "bad train": (output("{from: s}") + "schedule: {train: 0}\n", ("schedule: train", "one or more", "0")),
    "bad policy": (output("{from: s}") + "schedule: {policy: 3}\n", ("schedule: policy", "name")),
    "unknown schedule key": (output("{from: s}") + "schedule: {trains: 3}\n", ("schedule", "did you mean 'train'")),
    # sources
    "source without schema": (
        "network: x\nsources: {s: {}}\noutputs: {o: {from: s}}\n",
        ("source 's'", "schema", "missing"),
    ),
    "source as text": (
        "network: x\nsources: {s: a int}\noutputs: {o: {from: s}}\n",
        ("source 's'", "mapping", "a int"),
    ),
    "unknown source key": (
        "network: x\nsources: {s: {shema: a int}}\noutputs: {o: {from: s}}\n",
        ("source 's'", "'shema'", "did you mean 'schema'"),
    ),
    "unknown type": (
        "network: x\nsources: {s: {schema: {a: integr}}}\noutputs: {o: {from: s}}\n",
        ("source 's'", "field 'a'", "'integr'", "did you mean 'int'"),
    ),
    "type that is a number": (
        "network: x\nsources: {s: {schema: {a: 5}}}\noutputs: {o: {from: s}}\n",
        ("source 's'", "field 'a'", "5", "bigint"),
    ),
    "empty schema": (
        "network: x\nsources: {s: {schema: {}}}\noutputs: {o: {from: s}}\n",
        ("source 's'", "at least one field"),
    ),
    "fields that differ in case": (
        "network: x\nsources: {s: {schema: {a: int, A: int}}}\noutputs: {o: {from: s}}\n",
        ("source 's'", "'A'", "twice"),
    ),
    "reserved field": (
        "network: x\nsources: {s: {schema: {__hw_n: int}}}\noutputs: {o: {from: s}}\n",
        ("source 's'", "'__hw_n'", "reserved"),
    ),
    "bad decimal": (
        "network: x\nsources: {s: {schema: {a: 'decimal(50,2)'}}}\noutputs: {o: {from: s}}\n",
        ("source 's'", "decimal(p,s)"),
    ),
    "name of a source": (
        "network: x\nsources: {s.a: {schema: a int}}\noutputs: {o: {from: s}}\n",
        ("source 's.a'", "no dots"),
    ),
    "two connectors": (
        "network: x\nsources: {s: {schema: a int, source: {csv: a, jsonl: b}}}\noutputs: {o: {from: s}}\n",
        ("source 's'", "one connector"),
    ),
    # boxes: names, operators, inputs
    "name of a box": (boxes("a b: {op: filter, in: s, where: ok}"), ("box 'a b'", "spaces")),
    "empty name": (boxes('"": {op: filter, in: s, where: ok}'), ("box", "empty name")),
    "box named like a source": (boxes("r: {op: filter, in: s, where: ok}", out="r"), ("box 'r'", "taken by a source")),
    "box without keys": (boxes("b:"), ("box 'b'", "mapping", "nothing")),
    "no op": (boxes("b: {in: s, where: ok}"), ("box 'b'", "op: is missing")),
    "unknown op": (
        boxes("b: {op: filtr, in: s, where: ok}"),
        ("box 'b'", "'filtr'", "did you mean 'filter'", "resample"),
    ),
    "op that is a list": (boxes("b: {op: [filter], in: s, where: ok}"), ("box 'b'", "unknown op")),
    "no in": (boxes("b: {op: filter, where: ok}"), ("box 'b'", "in: is missing")),
    "in that is a number": (boxes("b: {op: filter, in: 3, where: ok}"), ("box 'b'", "in", "3")),
    "in that is empty": (boxes("b: {op: union, in: []}"), ("box 'b'", "in", "at least one input")),
    "unknown input": (
        boxes("b: {op: filter, in: ss, where: ok}"),
        ("box 'b'", "in", "'ss'", "did you mean 's'", "r, s"),
    ),
    "unknown port": (
        boxes("a: {op: filter, in: s, where: [ok, not ok]}", "b: {op: filter, in: a.3, where: ok}"),
        ("box 'b'", "'a' has no output '3'", "a.1, a.2, a.else"),
    ),
    "port of a source": (boxes("b: {op: filter, in: s.1x, where: ok}"), ("box 'b'", "'s' has no output '1x'")),
    "no port": (
        boxes("a: {op: filter, in: s, where: [ok, not ok]}", "b: {op: filter, in: a, where: ok}"),
        ("box 'b'", "'a' has several outputs", "a.1, a.2, a.else"),
    ),
    "loop of one": (boxes("b: {op: filter, in: b, where: ok}"), ("loop", "b -> b")),
    "loop of three": (
        boxes("a: {op: union, in: [s, c]}", "b: {op: filter, in: a, where: ok}", "c: {op: filter, in: b, where: ok}"),
        ("loop", "a -> b -> c -> a"),
    ),
    "filter with two inputs": (boxes("b: {op: filter, in: [s, r], where: ok}"), ("box 'b'", "in", "1 input", "2")),
    "union with one input": (boxes("b: {op: union, in: s}"), ("box 'b'", "in", "2 or more inputs", "1")),
    "join with three inputs": (
        boxes(f"b: {{op: join, in: [s, r, r], on: 'true', size: 1, {ORDERS}}}"),
        ("box 'b'", "in", "2 inputs", "3"),
    ),
    "a table into a filter": (boxes("b: {op: filter, in: {table: x.csv}, where: ok}"), ("box 'b'", "only a join")),
    "a table with another key": (
        boxes("b: {op: join, in: [s, {tabel: x}], on: ok}"),
        ("box 'b'", "did you mean 'table'"),
    ),
    "two tables": (boxes("b: {op: join, in: [{table: x}, {table: y}], on: ok}"), ("box 'b'", "in", "stream")),
    # filter, map, union, bsort
    "filter without where": (boxes("b: {op: filter, in: s}"), ("box 'b'", "where: is missing")),
    "unknown key": (boxes("b: {op: filter, in: s, were: ok}"), ("box 'b'", "'were'", "did you mean 'where'")),
    "key of another op": (boxes("b: {op: filter, in: s, where: ok, select: a}"), ("box 'b'", "unknown key 'select'")),
    "empty where": (boxes("b: {op: filter, in: s, where: ''}"), ("box 'b'", "where", "empty")),
    "no predicates": (boxes("b: {op: filter, in: s, where: []}"), ("box 'b'", "where", "at least one predicate")),
    "where as a mapping": (boxes("b: {op: filter, in: s, where: {a: 1}}"), ("box 'b'", "where", "text")),
    "map without select": (boxes("b: {op: map, in: s}"), ("box 'b'", "select: is missing")),
    "ordered maybe": (boxes("b: {op: union, in: [s, s], ordered: maybe}"), ("box 'b'", "ordered", "true or false")),
    "negative cost": (boxes("b: {op: universal, in: s, cost: -2ms}"), ("box 'b'", "cost", "zero or more", "-2ms")),
    "cost without a unit": (boxes("b: {op: universal, in: s, cost: '2'}"), ("box 'b'", "cost", "'2'", "units: w, d")),
    "unknown distribution": (
        boxes("b: {op: universal, in: s, cost: {unifrom: [1ms, 2ms]}}"),
        ("box 'b'", "cost", "'unifrom'", "did you mean 'uniform'", "zipf"),
    ),
    "uniform upside down": (
        boxes("b: {op: universal, in: s, cost: {uniform: [2ms, 1ms]}}"),
        ("box 'b'", "cost: uniform", "2ms is above", "1ms"),
    ),
    "zipf without a unit": (
        boxes("b: {op: universal, in: s, cost: {zipf: [1.5, 10]}}"),
        ("box 'b'", "cost: zipf", "[exponent, number of ranks, unit]"),
    ),
    "negative selectivity": (
        boxes("b: {op: universal, in: s, selectivity: -0.5}"),
        ("box 'b'", "selectivity", "zero or more", "-0.5"),
    ),
    "huge selectivity": (boxes("b: {op: universal, in: s, selectivity: 99999}"), ("box 'b'", "selectivity", "10000")),
    "unknown mode": (
        boxes("b: {op: universal, in: s, mode: evenly}"),
        ("box 'b'", "mode", "'evenly'", "did you mean 'even'", "random"),
    ),
    "seed that is text": (boxes("b: {op: universal, in: s, seed: x}"), ("box 'b'", "seed", "whole number", "'x'")),
    "bsort without order": (boxes("b: {op: bsort, in: s}"), ("box 'b'", "order: is missing")),
    "order as text": (boxes("b: {op: bsort, in: s, order: time}"), ("box 'b'", "order", "{on: time")),
    "order without on": (boxes("b: {op: bsort, in: s, order: {slack: 2}}"), ("box 'b'", "order", "on: is missing")),
    "unknown order key": (
        boxes("b: {op: bsort, in: s, order: {on: time, slak: 2}}"),
        ("box 'b'", "did you mean 'slack'"),
    ),
    "negative slack": (boxes("b: {op: bsort, in: s, order: {on: time, slack: -1}}"), ("box 'b'", "slack", "-1")),
    "slack that is no integer": (
        boxes("b: {op: bsort, in: s, order: {on: time, slack: 1.5}}"),
        ("box 'b'", "slack", "1.5"),
    ),
    "slack that is true": (
        boxes("b: {op: bsort, in: s, order: {on: time, slack: true}}"),
        ("box 'b'", "slack", "True"),
    ),
    "huge slack": (
        boxes("b: {op: bsort, in: s, order: {on: time, slack: 99999999}}"),
        ("box 'b'", "slack", "too large"),
    ),
    "by as a number": (
        boxes("b: {op: bsort, in: s, order: {on: time, by: 3}}"),
        ("box 'b'", "by", "list of field names"),
    ),
    "by twice": (
        boxes("b: {op: bsort, in: s, order: {on: time, by: [sid, SID]}}"),
        ("box 'b'", "by", "'SID'", "twice"),
    ),
    # windows
    "aggregate without order": (aggregate(f"{COUNT}, size: 1"), ("box 'b'", "order: is missing")),
    "aggregate without size": (aggregate(f"{COUNT}, order: {{on: time}}"), ("box 'b'", "size: is missing")),
    "size zero": (aggregate(f"{COUNT}, order: {{on: time}}, size: 0"), ("box 'b'", "size", "larger than zero", "0")),
    "negative size": (
        aggregate(f"{COUNT}, order: {{on: time}}, size: -5"),
        ("box 'b'", "size", "larger than zero", "-5"),
    ),
    "infinite size": (aggregate(f"{COUNT}, order: {{on: v}}, size: .inf"), ("box 'b'", "size", "finite")),
    "negative duration": (aggregate(f"{COUNT}, order: {{on: ts}}, size: -5s"), ("box 'b'", "size", "larger than zero")),
    "zero duration": (aggregate(f"{COUNT}, order: {{on: ts}}, size: 0s"), ("box 'b'", "size", "larger than zero")),
    "unknown unit": (
        aggregate(f"{COUNT}, order: {{on: ts}}, size: 5 lightyears"),
        ("box 'b'", "size", "'lightyears'", "ms"),
    ),
    "no duration": (aggregate(f"{COUNT}, order: {{on: ts}}, size: soon"), ("box 'b'", "size", "'soon'", "duration")),
    "fraction of a microsecond": (
        aggregate(f"{COUNT}, order: {{on: ts}}, size: 0.5us"),
        ("box 'b'", "size", "whole number of microseconds"),
    ),
    "advance zero": (aggregate(f"{COUNT}, order: {{on: time}}, size: 1, advance: 0"), ("box 'b'", "advance", "zero")),
    "advance with a wrong key": (
        aggregate(f"{COUNT}, order: {{on: time}}, advance: {{wen: ok}}"),
        ("box 'b'", "advance", "did you mean 'when'"),
    ),
    "unknown alignment": (
        aggregate(f"{COUNT}, order: {{on: time}}, size: 1, align: frist"),
        ("box 'b'", "align", "did you mean 'first'", "grid"),
    ),
    "timeout without a unit": (
        aggregate(f"{COUNT}, order: {{on: time}}, size: 1, timeout: 5"),
        ("box 'b'", "timeout", "5", "duration"),
    ),
    "timeout zero": (aggregate(f"{COUNT}, order: {{on: time}}, size: 1, timeout: 0s"), ("box 'b'", "timeout", "zero")),
    "join without on": (join(f"size: 1, {ORDERS}"), ("box 'b'", "on: is missing")),
    "join without size": (join(f"on: left.sid = right.sid, {ORDERS}"), ("box 'b'", "size: is missing")),
    "join without order": (join("on: left.sid = right.sid, size: 1"), ("box 'b'", "order: is missing")),
    "join with one order": (join("on: 'true', size: 1, order: [{on: time}]"), ("box 'b'", "order", "two orders")),
    "mistake in the second order": (
        join("on: 'true', size: 1, order: [{on: time}, {on: time, slack: x}]"),
        ("box 'b'", "order: 2: slack", "'x'"),
    ),
    "size with a table": (
        boxes("b: {op: join, in: [s, {table: x.csv}], on: 'true', size: 1}"),
        ("box 'b'", "size", "static table"),
    ),
    "resample without size": (resample(f"{COUNT}, {ORDERS}"), ("box 'b'", "size: is missing")),
    # outputs
    "output without from": (output("{qos: {}}"), ("output 'o'", "from: is missing")),
    "output from a list": (output("{from: [s, r]}"), ("output 'o'", "from", "union")),
    "output from nowhere": (output("{from: t}"), ("output 'o'", "from", "'t'", "r, s")),
    "unknown output key": (output("{form: s}"), ("output 'o'", "did you mean 'from'")),
    "unknown qos key": (output("{from: s, qos: {latncy: [[0, 1]]}}"), ("output 'o'", "qos", "did you mean 'latency'")),
    "qos as a list": (output("{from: s, qos: [[0, 1]]}"), ("output 'o'", "qos", "mapping")),
    "graph as a number": (output("{from: s, qos: {latency: 5}}"), ("output 'o'", "latency", "list of points", "5")),
    "empty graph": (output("{from: s, qos: {latency: []}}"), ("output 'o'", "latency", "list of points")),
    "graph with a bad point": (
        output("{from: s, qos: {latency: [[0, 1, 2]]}}"),
        ("output 'o'", "latency", "[x, utility]"),
    ),
    "graph not ascending": (
        output("{from: s, qos: {latency: [[2, 1], [1, 0]]}}"),
        ("output 'o'", "latency", "ascending"),
    ),
    "utility above one": (output("{from: s, qos: {latency: [[0, 2], [1, 0]]}}"), ("output 'o'", "latency", "0 to 1")),
    "negative latency": (
        output("{from: s, qos: {latency: [[-1, 1], [1, 0]]}}"),
        ("output 'o'", "latency", "seconds", "-1"),
    ),
    "loss above 100": (output("{from: s, qos: {loss: [[200, 1], [0, 0]]}}"), ("output 'o'", "loss", "0 to 100", "200")),
    "value without a field": (
        output("{from: s, qos: {value: {graph: [[0, 1]]}}}"),
        ("output 'o'", "value", "field: is missing"),
    ),
    "bad sink": (output("{from: s, sink: 5}"), ("output 'o'", "sink", "path", "5")),
    "name of an output": (SOURCES + "outputs: {o.1: {from: s}}\n", ("output 'o.1'", "no dots")),
}

_CHECK: dict[str, tuple[str, tuple[str, ...]]] = {
    "unknown field": (
        boxes("b: {op: filter, in: s, where: poss > 3}"),
        ("box 'b'", "where", "poss", "did you mean 'pos'"),
    ),
    "predicate that is a number": (boxes("b: {op: filter, in: s, where: pos}"), ("box 'b'", "where", "boolean")),
    "second predicate": (
        boxes("b: {op: filter, in: s, where: [ok, pos]}", out="b.1"),
        ("box 'b'", "where 2", "boolean"),
    ),
    "bad syntax": (boxes("b: {op: filter, in: s, where: 'pos >'}"), ("box 'b'", "where")),
    "types that do not compare": (boxes("b: {op: filter, in: s, where: tags > 3}"), ("box 'b'", "where")),
    "unknown function": (
        boxes("b: {op: map, in: s, select: 'uper(name) as n'}"),
        ("box 'b'", "select", "uper", "upper"),
    ),
    "an aggregate in a map": (boxes("b: {op: map, in: s, select: 'count(*) as n'}"), ("box 'b'", "select", "count")),
    "a result twice": (
        boxes("b: {op: map, in: s, select: 'pos as a, sid as a'}"),
        ("box 'b'", "select", "'a'", "twice"),
    ),
    "field of an earlier box": (
        boxes("a: {op: map, in: s, select: pos}", "b: {op: filter, in: a, where: sid > 1}"),
        ("box 'b'", "where", "sid"),
    ),
    "universal, inputs that differ": (
        boxes("a: {op: map, in: s, select: pos}", "b: {op: universal, in: [s, a]}"),
        ("box 'b'", "in", "schemas do not agree"),
    ),
    "union, number of fields": (
        boxes(
            "a: {op: map, in: s, select: pos}", "c: {op: map, in: s, select: 'pos, sid'}", "b: {op: union, in: [a, c]}"
        ),
        ("box 'b'", "in", "do not agree", "input 2", "sid"),
    ),
    "union, name": (
        boxes("a: {op: map, in: s, select: pos}", "c: {op: map, in: s, select: sid}", "b: {op: union, in: [a, c]}"),
        ("box 'b'", "in", "do not agree", "'pos'", "'sid'"),
    ),
    "union, type": (
        boxes(
            "a: {op: map, in: s, select: pos}", "c: {op: map, in: s, select: time as pos}", "b: {op: union, in: [a, c]}"
        ),
        ("box 'b'", "in", "do not agree", "'pos'", "int", "bigint"),
    ),
    "unknown order field": (
        boxes("b: {op: bsort, in: s, order: {on: tyme}}"),
        ("box 'b'", "order: on", "'tyme'", "did you mean 'time'"),
    ),
    "order on text": (boxes("b: {op: bsort, in: s, order: {on: name}}"), ("box 'b'", "order: on", "'name'", "string")),
    "order on a decimal": (
        boxes("b: {op: bsort, in: s, order: {on: price}}"),
        ("box 'b'", "order: on", "decimal(10,2)"),
    ),
    "unknown by field": (
        boxes("b: {op: bsort, in: s, order: {on: time, by: [sit]}}"),
        ("box 'b'", "order: by", "'sit'", "'sid'"),
    ),
    "by an array": (
        boxes("b: {op: bsort, in: s, order: {on: time, by: [tags]}}"),
        ("box 'b'", "order: by", "'tags'", "array"),
    ),
    "number of seconds": (aggregate(f"{COUNT}, order: {{on: ts}}, size: 5"), ("box 'b'", "size", "timestamp", "'5s'")),
    "number of days": (aggregate(f"{COUNT}, order: {{on: day}}, size: 5"), ("box 'b'", "size", "date", "'1 day'")),
    "hours of dates": (aggregate(f"{COUNT}, order: {{on: day}}, size: 5h"), ("box 'b'", "size", "days")),
    "duration of numbers": (
        aggregate(f"{COUNT}, order: {{on: time}}, size: 5s"),
        ("box 'b'", "size", "'5s'", "bigint"),
    ),
    "duration of tuples": (aggregate(f"{COUNT}, order: {{on: '#'}}, size: 5s"), ("box 'b'", "size", "'5s'", "number")),
    "fraction of a tuple": (aggregate(f"{COUNT}, order: {{on: '#'}}, size: 1.5"), ("box 'b'", "size", "1.5", "whole")),
    "advance of another kind": (
        aggregate(f"{COUNT}, order: {{on: ts}}, size: 5s, advance: 1"),
        ("box 'b'", "advance", "timestamp"),
    ),
    "when that is no predicate": (
        aggregate(f"{COUNT}, order: {{on: time}}, advance: {{when: time - last.time}}"),
        ("box 'b'", "advance: when", "boolean"),
    ),
    "when with an unknown window field": (
        aggregate(f"{COUNT}, order: {{on: time}}, advance: {{when: 'time > last.tyme'}}"),
        ("box 'b'", "advance: when", "tyme"),
    ),
    "no aggregate": (aggregate("select: pos, order: {on: time}, size: 1"), ("box 'b'", "select", "pos")),
    "sum of text": (aggregate("select: sum(name) as n, order: {on: time}, size: 1"), ("box 'b'", "select", "sum")),
    "result named like the order field": (
        aggregate('select: "count(*) as time", order: {on: time}, size: 1'),
        ("box 'b'", "select", "'time'", "twice", "as"),
    ),
    "join on an unknown side": (join(f"on: lft.sid = right.sid, size: 1, {ORDERS}"), ("box 'b'", "on", "lft")),
    "join on a field of the other side": (join(f"on: left.sid = right.v, size: 1, {ORDERS}"), ("box 'b'", "on", "v")),
    "join on an ambiguous field": (join(f"on: sid = 3, size: 1, {ORDERS}"), ("box 'b'", "on", "sid", "ambiguous")),
    "join on a number": (join(f"on: left.sid, size: 1, {ORDERS}"), ("box 'b'", "on", "boolean")),
    "orders that do not compare": (
        join("on: 'true', size: 1, order: [{on: ts}, {on: time}]"),
        ("box 'b'", "size", "timestamp", "bigint", "compared"),
    ),
    "right order field": (
        join("on: 'true', size: 1, order: [{on: time}, {on: v}]"),
        ("box 'b'", "order: 2", "'v'", "sid, time"),
    ),
    "join select": (join(f"on: 'true', size: 1, {ORDERS}, select: left.x"), ("box 'b'", "select", "x")),
    "a table that is not there": (
        boxes("b: {op: join, in: [s, {table: nowhere.csv}], on: 'true'}"),
        ("box 'b'", "in", "nowhere.csv", "no such file"),
    ),
    "a table that nobody gave": (
        boxes("b: {op: join, in: [s, {table: names}], on: 'true'}"),
        ("box 'b'", "in", "'names'", ".csv, .jsonl, .parquet"),
    ),
    "resample of a field of the first": (
        resample(f"select: avg(v) as v, size: 1, {ORDERS}"),
        ("box 'b'", "select", "v"),
    ),
    "resample by the order field": (
        resample(f"{COUNT}, size: 1, order: [{{on: time}}, {{on: time, by: [time]}}]"),
        ("box 'b'", "'time'", "twice"),
    ),
    "value of an unknown field": (
        output("{from: s, qos: {value: {field: posi, graph: [[0, 1]]}}}"),
        ("output 'o'", "value", "'posi'", "did you mean 'pos'"),
    ),
    "value of text": (
        output("{from: s, qos: {value: {field: name, graph: [[0, 1]]}}}"),
        ("output 'o'", "value", "'name'", "number"),
    ),
}

CASES = tuple(
    Bad(name, text, expected, stage)
    for stage, table in (("load", _LOAD), ("check", _CHECK))
    for name, (text, expected) in table.items()
)
