"""Network files: read, written and read again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from headway.boxes import Aggregate, Duration, Filter, Map, Order
from headway.checking import check
from headway.errors import HeadwayError, NetworkError
from headway.files import dump, load
from headway.network import Table, thaw
from headway.network.qos import Graph, QoS, ValueGraph
from headway.network.schema import Schema
from headway.network.yamls import read_text
from tests.networks import ALL, BORDER, network_mappings
from tests.searching import examples


def test_the_example_of_the_design() -> None:
    network = load(BORDER)
    assert network.name == "border-watch"
    assert str(network.source("positions").schema) == "sid int, time bigint, pos int"
    assert network.box("across").spec == Filter(("pos >= 30",))
    order = Order("time", 1)
    select = "count(*) as n, avg(pos) as mean"
    assert network.box("counts").spec == Aggregate(select, order, 1, 1, "grid", Duration(5_000_000))
    assert network.box("crowded").spec.ports == ("1", "2", "else")
    assert network.box("names").inputs == ("crowded.1",)
    assert network.box("names").spec == Map("time, n, n * 2 as twice")
    assert network.output("alarms").qos == QoS(
        Graph(((0, 1), (2, 1), (10, 0))),
        Graph(((0, 0), (50, 0.2), (100, 1))),
        ValueGraph("n", Graph(((0, 0.1), (3, 1)))),
    )


def test_every_operator() -> None:
    network = load(ALL)
    assert network.box("named").inputs == ("near", Table("people"))
    assert thaw(network.schedule) == {"policy": "round-robin", "train": 100, "workers": 2}
    assert network.source("b").connector == "b.jsonl"
    assert thaw(network.source("a").connector) == {"csv": "a.csv"}


@pytest.mark.parametrize("text", [BORDER, ALL])
def test_round_trip(text: str) -> None:
    network = load(text)
    assert load(dump(network)) == network
    assert load(network.to_mapping()) == network
    assert load(json.dumps(network.to_mapping())) == network
    assert load(json.dumps(network.to_mapping(), indent="\t")) == network


def test_other_yaml_readers_make_true_of_on() -> None:
    mapping = yaml.safe_load(BORDER)
    assert True in mapping["boxes"]["counts"]["order"]
    assert load(mapping) == load(BORDER)


@examples(100)
@given(network_mappings())
def test_round_trip_of_any_network(mapping: dict[str, object]) -> None:
    network = load(mapping)
    text = dump(network)
    again = load(text)
    assert again == network
    assert hash(again) == hash(network)
    assert dump(again) == text


def test_a_path(tmp_path: Path) -> None:
    for name, text in (
        ("n.yaml", BORDER),
        ("n.json", json.dumps(load(BORDER).to_mapping())),
        ("bom.yaml", "\ufeff" + BORDER),
    ):
        path = tmp_path / name
        path.write_text(text, "utf-8")
        assert load(path) == load(str(path)) == load(BORDER)
        assert load(path).folder == tmp_path
    assert load(BORDER).folder is None


def test_a_path_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(NetworkError, match=r"no such file: bordr\.yaml"):
        load("bordr.yaml")
    with pytest.raises(NetworkError, match="no such file"):
        load(tmp_path / "nothing.yaml")
    with pytest.raises(NetworkError, match="folder"):
        load(tmp_path)
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"\xff\xfe\x00\x81")
    with pytest.raises(NetworkError, match="UTF-8"):
        load(binary)
    with pytest.raises(NetworkError, match=r"cannot be read|no such file"):
        load("a\0b")


def test_a_mistake_in_a_file_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text("network: x\nsources: [", "utf-8")
    with pytest.raises(NetworkError, match=r"bad\.yaml: line 2, column \d+: not valid YAML"):
        load(path)


def test_neither_path_nor_text_nor_mapping() -> None:
    with pytest.raises(NetworkError, match="not int"):
        load(5)  # type: ignore[arg-type]
    with pytest.raises(NetworkError, match="empty"):
        load("  ")


def test_one_line_of_yaml() -> None:
    assert load("{network: x, sources: {s: {schema: a int}}, outputs: {o: {from: s}}}").boxes == ()
    with pytest.raises(NetworkError, match="sources: is missing"):
        load("network: x")


def test_words_and_numbers_of_yaml() -> None:
    text = """
network: no
sources:
  on: {schema: {yes: int, off: bigint, time: timestamp}, source: {generate: {a: 1e3, b: 010, c: 1_000, d: 0x1f,
       e: 2024-01-01, f: 1:30, g: .5, h: ~, i: true, j: "1", k: .inf, l: -2, m: off}}}
outputs: {y: {from: on}}
"""
    network = load(text)
    assert network.name == "no"
    assert network.sources[0].schema.names == ("yes", "off", "time")
    connector = network.sources[0].connector
    assert connector is not None
    assert not isinstance(connector, str)
    assert list(connector["generate"].values()) == [
        *(1000.0, 10, 1000, 31, "2024-01-01", "1:30", 0.5, None, True, "1", float("inf"), -2, "off"),
    ]
    assert load(dump(network)) == network


def test_anchors_and_merges() -> None:
    text = """
network: merged
sources: {s: {schema: {a: int, time: bigint}}}
boxes:
  one: &one {op: aggregate, in: s, select: count(*) as n, order: &order {on: time, slack: 2}, size: 10}
  two: &two {<<: *one, size: 20}
  three: {<<: *two, size: 30}
  four: {op: bsort, in: s, order: *order}
outputs: {o: {from: three}}
"""
    network = load(text)
    sizes = [box.to_mapping().get("size") for box in network.boxes]
    assert sizes == [10, 20, 30, None]


def test_many_aliases_do_not_fill_the_memory() -> None:
    lines = ["network: x", "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines += [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]" for level in range(1, 12)]
    with pytest.raises(NetworkError, match="too large"):
        load("\n".join(lines))


def test_empty_values_are_as_if_left_out() -> None:
    text = """
network: x
sources: {s: {schema: {time: bigint}, source: }}
boxes:
  b: {op: aggregate, in: s, select: count(*) as n, order: {on: time, slack: , by: }, size: 1, advance: ,
      timeout: , align: }
outputs: {o: {from: b, qos: {latency: }, sink: }}
schedule:
"""
    network = load(text)
    assert network.boxes[0].spec == Aggregate("count(*) as n", Order("time"), 1)
    assert network.outputs[0].qos == QoS()
    assert network.schedule is None


def spots(value: object, path: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
    """Return the paths of everything in plain data."""
    inner: list[tuple[object, object]] = []
    if isinstance(value, dict):
        inner = list(value.items())
    elif isinstance(value, list):
        inner = list(enumerate(value))
    return [spot for key, item in inner for spot in [(*path, key), *spots(item, (*path, key))]]


ANYTHING: st.SearchStrategy[Any] = st.sampled_from(
    [
        None,
        True,
        0,
        -1,
        1.5,
        float("nan"),
        10**30,
        "",
        " ",
        "x",
        "s.t",
        "5s",
        "#",
        "*",
        "é\x00",
        [],
        [[]],
        {},
        {"a": 1},
        {1: 2},
    ]
)


@examples(100)
@given(st.data())
def test_a_mistake_anywhere_is_one_clear_message(data: st.DataObject) -> None:
    mapping = read_text(ALL)
    path = data.draw(st.sampled_from(spots(mapping)))
    at = mapping
    for key in path[:-1]:
        at = at[key]
    what = data.draw(st.sampled_from(["replace", "rename", "remove"]))
    value = at.pop(path[-1]) if what != "replace" else None
    if what == "replace":
        at[path[-1]] = data.draw(ANYTHING)
    elif what == "rename" and isinstance(at, dict):
        at[data.draw(st.sampled_from(["x", "in", "", 5, True, None, "a b"]))] = value
    message = "fine"
    try:
        check(load(mapping), tables={"people": Schema.parse("person int")})
    except HeadwayError as error:
        message = str(error)
    assert message
    assert "\n" not in message


CUT = "{network: x, sources: {s: {schema: a int}}, boxes: {f: {op: filter, in: s, where: a > 1}}, \
outputs: {o: {from: f}, p: {from: s}}, schedule: %s}"


@pytest.mark.parametrize(
    "schedule",
    [
        {"units": "one"},
        {"units": [["o", "p"]]},
        {"units": []},
        {"units": [["p"]], "spread": ["f"], "shards": 3},
        {"spread": "none"},
        {"spread": []},
        {"front": "kernels"},
    ],
)
def test_how_spark_cuts_a_network(schedule: dict[str, Any]) -> None:
    network = load(CUT % json.dumps(schedule))
    assert thaw(network.schedule) == schedule
    assert load(dump(network)) == network
    hash(network)


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("{units: outputs}", "schedule: units: unknown rule 'outputs'; did you mean 'output'.*lists of outputs"),
        ("{units: [o, p]}", "schedule: units: must be one of qos, loss, one, output, or lists of outputs"),
        ("{units: [[]]}", "schedule: units: must be one of"),
        ("{units: 3}", "schedule: units: must be one of.*not 3"),
        ("{units: [[o, q]]}", "schedule: units: unknown output 'q'.*choices: o, p"),
        ("{units: [[o], [p, o]]}", "schedule: units: output 'o' is named twice"),
        ("{spread: all}", "schedule: spread: unknown rule 'all'.*list of boxes"),
        ("{spread: {f: 1}}", "schedule: spread: must be one of auto, none, or a list of boxes"),
        ("{spread: [g]}", "schedule: spread: unknown box 'g'.*choices: f"),
        ("{spread: [f, f]}", "schedule: spread: box 'f' is named twice"),
        ("{front: kernel}", "schedule: front: unknown front 'kernel'; did you mean 'kernels'"),
        ("{shards: 0}", "schedule: shards: must be a whole number"),
    ],
)
def test_cuts_that_cannot_be(schedule: str, expected: str) -> None:
    with pytest.raises(NetworkError, match=expected):
        load(CUT % schedule)


@pytest.mark.parametrize("name", ["readings.csv", "day.JSONL", "x.parquet"])
def test_a_data_file_is_no_network(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("a,b\n" * 1000)
    with pytest.raises(NetworkError, match=r"is a data file by its name.*--input SOURCE="):
        load(tmp_path / name)
