"""Whole networks: shape, schemas of every arc, warnings, static tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from headway.checking import check
from headway.errors import NetworkError
from headway.expressions import BUILTIN, ScalarFunction
from headway.files import load
from headway.network import Table
from headway.network.schema import Schema
from headway.structure import Consumer, check_structure
from headway.tables import load_table, table_schema
from tests.networks import ALL, BORDER


def test_the_example_of_the_design() -> None:
    checked = check(load(BORDER))
    assert {arc: str(schema) for arc, schema in checked.arcs.items()} == {
        "positions": "sid int, time bigint, pos int",
        "across": "sid int, time bigint, pos int",
        "across.else": "sid int, time bigint, pos int",
        "counts": "time bigint, n bigint, mean double",
        "crowded.1": "time bigint, n bigint, mean double",
        "crowded.2": "time bigint, n bigint, mean double",
        "crowded.else": "time bigint, n bigint, mean double",
        "names": "time bigint, n bigint, twice bigint",
    }
    assert [box.name for box in checked.order] == ["across", "counts", "crowded", "names"]
    assert checked.consumers["crowded.1"] == (Consumer("box", "names"),)
    assert checked.consumers["names"] == (Consumer("output", "alarms"),)
    assert checked.consumers["crowded.2"] == ()
    assert checked.output_schema("alarms") == checked.arcs["names"]
    assert checked.warnings == ()


def test_every_operator() -> None:
    people = Schema.parse("person int, name string, sid bigint")
    checked = check(load(ALL), tables={"people": people})
    stream = "sid int, time timestamp, pos double, name string"
    pair = f"{stream}, right_sid int, right_time timestamp, right_pos double, right_name string"
    assert {arc: str(schema) for arc, schema in checked.arcs.items()} == {
        "a": stream,
        "b": stream,
        "both": stream,
        "sorted": stream,
        "sessions": "time timestamp, sid int, n bigint, high double",
        "windows": "time timestamp, n bigint",
        "tens": "tuple bigint, name string, pos double",
        "near": pair,
        "close": "time timestamp, gap double",
        "around": "sid int, time timestamp, pos double",
        "named": f"{pair}, person int, right_right_name string, right_right_sid bigint",
        "loaded": "tuple bigint, name string, pos double",
    }
    assert checked.inputs["named"] == ("near", Table("people"))
    assert checked.input_schemas("named") == (checked.arcs["near"], people)
    assert checked.tables == {"people": people}


def test_a_prefix_may_be_taken_too() -> None:
    text = """
network: x
sources: {a: {schema: "k int, t int"}, b: {schema: "k int, right_k int, u int"}}
boxes: {j: {op: join, in: [a, b], on: left.k = right.k, size: 1, order: [{on: t}, {on: u}]}}
outputs: {o: {from: j}}
"""
    assert check(load(text)).arcs["j"].names == ("k", "t", "right_right_k", "right_k", "u")


def test_boxes_may_stand_in_any_order() -> None:
    text = """
network: x
sources: {s: {schema: a int}}
boxes:
  c: {op: map, in: b, select: a}
  b: {op: filter, in: d.1, where: a > 1}
  e: {op: union, in: [c, d.else, s]}
  d: {op: filter, in: s, where: a > 0}
outputs: {o: {from: e}, d: {from: d}, b: {from: b.1}}
"""
    structure = check_structure(load(text))
    assert [box.name for box in structure.order] == ["d", "b", "c", "e"]
    assert structure.inputs["b"] == ("d",)
    assert structure.outputs == {"o": "e", "d": "d", "b": "b"}
    assert structure.consumers["d"] == (Consumer("box", "b"), Consumer("output", "d"))
    assert structure.consumers["s"] == (Consumer("box", "e", 2), Consumer("box", "d"))
    assert structure.arcs == ("s", "c", "b", "b.else", "e", "d", "d.else")


def test_the_same_arc_twice() -> None:
    text = """
network: x
sources: {s: {schema: a int}}
boxes: {u: {op: union, in: [s, s]}}
outputs: {o: {from: u}}
"""
    assert check(load(text)).consumers["s"] == (Consumer("box", "u", 0), Consumer("box", "u", 1))


def test_what_nobody_uses_is_allowed_with_a_warning() -> None:
    text = """
network: x
sources: {s: {schema: a int}, t: {schema: a int}}
boxes: {b: {op: filter, in: s, where: a > 1}, c: {op: map, in: b, select: a}}
outputs: {o: {from: b}}
"""
    assert check(load(text)).warnings == ("source 't': no output uses it", "box 'c': no output uses it")


def test_a_source_may_be_an_output() -> None:
    checked = check(load("network: x\nsources: {s: {schema: a int}}\noutputs: {s: {from: s}}\n"))
    assert checked.output_schema("s") == Schema.parse("a int")


def test_a_long_chain() -> None:
    sources = {"s": {"schema": "a int"}}
    boxes = {f"b{n}": {"op": "filter", "in": f"b{n + 1}" if n < 2999 else "s", "where": "a > 1"} for n in range(3000)}
    structure = check_structure(
        load({"network": "x", "sources": sources, "boxes": boxes, "outputs": {"o": {"from": "b0"}}})
    )
    assert structure.order[0].name == "b2999"


def test_windows_with_gaps_are_allowed() -> None:
    text = """
network: x
sources: {s: {schema: "time date, a float"}}
boxes:
  b: {op: aggregate, in: s, select: count(*) as n, order: {on: time}, size: 1 day, advance: 1w}
  c: {op: aggregate, in: s, select: count(*) as n, order: {on: a}, size: 0.5, advance: 1}
outputs: {o: {from: b}, c: {from: c}}
"""
    assert str(check(load(text)).arcs["b"]) == "time date, n bigint"


CALLS = """
network: x
sources: {s: {schema: a double}}
boxes: {b: {op: map, in: s, select: check_test_double(a) as b}}
outputs: {o: {from: b}}
"""


def test_user_functions() -> None:
    network = load(CALLS)
    with pytest.raises(NetworkError, match=r"box 'b': select: .*check_test_double"):
        check(network)
    twice = ScalarFunction("check_test_double", (pa.float64(),), pa.int64(), lambda value: int(value * 2))
    own = BUILTIN.with_function(twice)
    checked = check(network, own)
    assert str(checked.arcs["b"]) == "b bigint"
    assert checked.functions is own
    assert check(load(BORDER)).functions is not own


@pytest.fixture
def people() -> pa.Table:
    return pa.table({"sid": pa.array([1, 2], pa.int64()), "name": pa.array(["Ann", None])})


NAMED = """
network: x
sources: {s: {schema: "sid int, time bigint"}}
boxes: {j: {op: join, in: [s, {table: REF}], on: left.sid = right.sid}}
outputs: {o: {from: j}}
"""
JOINED = "sid int, time bigint, right_sid bigint, name string"


def test_tables_from_files(tmp_path: Path, people: pa.Table) -> None:
    (tmp_path / "people.csv").write_text("sid,name\n1,Ann\n2,\n", "utf-8")
    (tmp_path / "people.jsonl").write_text('{"sid": 1, "name": "Ann"}\n{"sid": 2, "name": null}\n', "utf-8")
    pyarrow.parquet.write_table(people, tmp_path / "people.parquet")
    for suffix in ("csv", "jsonl", "parquet"):
        path = tmp_path / "network.yaml"
        path.write_text(NAMED.replace("REF", f"people.{suffix}"), "utf-8")
        assert str(check(load(path)).arcs["j"]) == JOINED
        assert load_table(f"people.{suffix}", folder=tmp_path).equals(people)
        assert load_table(str(tmp_path / f"people.{suffix}")).equals(people)


def test_tables_by_name(people: pa.Table) -> None:
    network = load(NAMED.replace("REF", "people"))
    assert str(check(network, tables={"people": people}).arcs["j"]) == JOINED
    assert load_table("people", {"people": people.to_batches()[0]}).equals(people)
    assert table_schema("people", {"people": people}) == Schema.parse("sid bigint, name string")
    with pytest.raises(NetworkError, match=r"box 'j': in: table 'people': .*did you mean 'peoples'.*tables: peoples"):
        check(network, tables={"peoples": people})
    with pytest.raises(NetworkError, match=r"table 'people': a table is a path, a pyarrow\.Table.*, not list"):
        check(network, tables={"people": []})


def test_tables_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "bad.parquet").write_text("nonsense")
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "bad.csv").write_text("a,b\n1,2\n3\n")
    (tmp_path / "twice.csv").write_text("a,A\n1,2\n")
    for name in ("bad.parquet", "empty.csv", "bad.csv", "twice.csv"):
        with pytest.raises(NetworkError, match=f"table '{name}'") as caught:
            load_table(name, folder=tmp_path)
        assert "\n" not in str(caught.value)
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(NetworkError, match=r"no such file.*folder\.csv"):
        load_table("folder.csv", folder=tmp_path)


def test_types_of_tables(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b,c,d\n12:30:00,,2024-01-01,2024-01-01 10:00:00\n", "utf-8")
    assert str(table_schema("t.csv", folder=tmp_path)) == "a string, b string, c date, d timestamp_ntz"
    odd = pa.table({"a": pa.array([1], pa.duration("s"))})
    with pytest.raises(NetworkError, match="table 'odd': field 'a'"):
        load_table("odd", {"odd": odd})
    table = pa.table({"a": pa.array([1], pa.uint64()), "b": pa.array(["x"]).dictionary_encode()})
    assert str(table_schema("t", {"t": table})) == "a decimal(20,0), b string"


@pytest.mark.parametrize(
    ("qos", "doubt"),
    [
        ({"latency": [[0, 0], [1, 1]]}, "its latency graph rises, from 0 at 0 s to 1 at 1 s: later results would be"),
        ({"latency": [[0, 1], [2, 0.2], [3, 0.5]]}, "its latency graph rises, from 0.2 at 2 s to 0.5 at 3 s"),
        ({"loss": [[0, 1], [100, 0]]}, "its loss graph falls, from 1 at 0 % to 0 at 100 % delivered: less would be"),
        ({"latency": [[1, 1]]}, "its latency graph has one point: every result is worth the same, 1"),
        ({"loss": [[100, 0.5]]}, "its loss graph has one point: every result is worth the same, 0.5"),
        ({"value": {"field": "a", "graph": [[3, 1]]}}, "its value graph has one point"),
    ],
)
def test_graphs_that_are_probably_not_meant(qos: dict[str, Any], doubt: str) -> None:
    network = {
        "network": "n",
        "sources": {"s": {"schema": {"a": "int"}}},
        "outputs": {"o": {"from": "s", "qos": qos}},
    }
    [warning] = check(load(network)).warnings
    assert warning.startswith(f"output 'o': {doubt}")


def test_a_loss_graph_in_fractions_is_probably_not_meant() -> None:
    network = {
        "network": "n",
        "sources": {"s": {"schema": {"a": "int"}}},
        "outputs": {"o": {"from": "s", "qos": {"loss": [[1, 1], [0.99, 0.2], [0, 0]]}}},
    }
    [warning] = check(load(network)).warnings
    assert warning.startswith("output 'o': loss: x is the per cent of tuples delivered")
    network["outputs"]["o"]["qos"]["loss"] = [[100, 1], [0, 0]]  # type: ignore[index]
    assert not check(load(network)).warnings
