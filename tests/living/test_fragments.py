"""Fragments: read, grafted onto a network, and pruned again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.checking import check
from headway.errors import NetworkError
from headway.expansion import expand
from headway.files import load, parse_network
from headway.living.fingerprints import fingerprints
from headway.living.fragments import (
    Fragment,
    check_since,
    fragments_of,
    graft,
    prune,
    read_fragment,
    since_of,
    start_of,
)
from headway.living.since import ALL, NOW, Since
from headway.network import FrozenMap, Streamed, Table
from headway.network.trust import Trust
from headway.structure import check_structure
from tests.living.networks import TABLES, fragment_mappings, living_mappings
from tests.searching import examples
from tests.test_points import LIVING, SECTORS

NETWORK = load(LIVING)
BUSIEST = """
attach: busiest
since: 30 minutes
until: now
boxes:
  per_sector: {op: aggregate, in: crossings, select: "count(*) as n", order: {on: time, by: [sid]}, size: 60}
  large: {op: filter, in: per_sector.1, where: n > 3}
outputs:
  busiest: {from: large, qos: {latency: [[0, 1], [5, 1], [30, 0]]}}
"""


def fragment(inputs: object = "crossings", since: object = None, output: str = "b", **more: Any) -> Fragment:
    """Return a fragment with one filter."""
    box = {"op": "filter", "in": inputs, "where": "sid > 1"}
    given = {"attach": "ask", "boxes": {"b": box}, "outputs": {"o": {"from": output}}, "since": since, **more}
    return read_fragment({key: value for key, value in given.items() if value is not None})


def test_what_a_file_says(tmp_path: Path) -> None:
    (tmp_path / "busiest.yaml").write_text(BUSIEST)
    found = read_fragment(tmp_path / "busiest.yaml")
    assert found == read_fragment(str(tmp_path / "busiest.yaml")) == read_fragment(BUSIEST)
    assert (found.name, found.until_now, str(found.since)) == ("busiest", True, "30m")
    assert [box.name for box in found.boxes] == ["per_sector", "large"]
    assert found.outputs[0].qos.latency is not None
    assert read_fragment(found.to_mapping()) == found
    assert read_fragment(found) is found
    assert read_fragment(found, since="now").since == read_fragment(BUSIEST, since="now").since == NOW
    assert read_fragment('{"attach": "a", "outputs": {"o": {"from": "s"}}}').since is None


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("", "the fragment file is empty"),
        (5, "a fragment is a path, YAML text or a mapping, not int"),
        ("none.yaml", "no such file: none.yaml"),
        ("data.csv", "'data.csv' is a data file by its name, and a fragment is a YAML or JSON file"),
        ("a: [", "line 1"),
        (
            "[a, b]\n\n",
            "no such file|a fragment is a mapping with the keys attach, since, until, boxes, outputs, not a list",
        ),
        ({"outputs": {"o": {"from": "s"}}}, "attach: is missing"),
        ({"attach": "a"}, "outputs: is missing"),
        ({"attach": "a", "outputs": {}}, "fragment 'a': outputs: a fragment needs at least one output"),
        ({"attach": "a/b", "outputs": {"o": {"from": "s"}}}, "fragment 'a/b': a name has letters"),
        ({"attach": "a", "output": 1}, "unknown key 'output'; did you mean 'outputs'"),
        (
            {"attach": "a", "until": "then", "outputs": {"o": {"from": "s"}}},
            "fragment 'a': until: unknown end .*'then'",
        ),
        ({"attach": "a", "since": "then", "outputs": {"o": {"from": "s"}}}, "fragment 'a': since: 'then' is not a dur"),
        ({"attach": "a", "boxes": {"b/c": {}}, "outputs": {"o": {"from": "s"}}}, "fragment 'a': box 'b/c': a name"),
        (
            {"attach": "a", "boxes": {"b": {"op": "fliter"}}, "outputs": {"o": {"from": "s"}}},
            "'a': box 'b': in: is miss",
        ),
    ],
)
def test_bad_fragments(what: Any, message: str) -> None:
    with pytest.raises(NetworkError, match=message):
        read_fragment(what)


def test_a_file_too_large_to_be_one() -> None:
    with pytest.raises(NetworkError, match="more than"):
        read_fragment({"attach": "a", "boxes": {str(at): [None] * 1000 for at in range(1001)}, "outputs": {}})


def test_grafting() -> None:
    grafted = graft(NETWORK, read_fragment(BUSIEST))
    assert [box.name for box in grafted.boxes[-2:]] == ["busiest/per_sector", "busiest/large"]
    assert [box.inputs for box in grafted.boxes[-2:]] == [("crossings",), ("busiest/per_sector.1",)]
    assert (grafted.outputs[-1].name, grafted.outputs[-1].input) == ("busiest/busiest", "busiest/large")
    assert grafted.boxes[:-2] == NETWORK.boxes
    checked = check(grafted, tables=SECTORS)
    assert checked.inputs["busiest/per_sector"] == ("across",)
    assert checked.output_schema("busiest/busiest").names == ("time", "sid", "n")
    assert fragments_of(grafted) == ("busiest",)
    assert prune(grafted, "busiest") == NETWORK


def test_own_boxes_come_first() -> None:
    box = {"op": "filter", "in": "crossings", "where": "sid > 1"}
    boxes = {"across": box, "b": {**box, "in": "across"}}
    grafted = graft(NETWORK, fragment(boxes=boxes))
    assert grafted.box("ask/b").inputs == ("ask/across",)


def test_fragments_read_each_other() -> None:
    one = graft(NETWORK, fragment())
    two = graft(one, read_fragment({**fragment("ask/b", "now").to_mapping(), "attach": "more"}))
    assert two.box("more/b").inputs == ("ask/b",)
    check(two, tables=SECTORS)
    with pytest.raises(NetworkError, match=r"fragment 'ask': box 'more/b' reads from 'ask/b'; take that out first"):
        prune(two, "ask")
    assert prune(prune(two, "more"), "ask") == NETWORK
    with pytest.raises(NetworkError, match=r"no fragment 'asc' is attached; did you mean 'ask'.*ask, more"):
        prune(two, "asc")


@pytest.mark.parametrize(
    ("inputs", "since", "message"),
    [
        (
            "crosings",
            None,
            "unknown input 'crosings'; did you mean 'crossings'.*choices: crossings, busy, sectors, rules, b",
        ),
        ("counts.else", "now", "'counts' has no output 'else'"),
        (
            "positions",
            "all",
            "box 'b': in: 'positions' is an arc without a point, which offers only 'now', and since is 'all'",
        ),
        ("positions", "1h", "and since is '1h'"),
        ("sectors", None, "'sectors' is stored data, which only a join looks up"),
        ({"point": "crossings", "as": "stream"}, None, "'crossings' is a stream already"),
    ],
)
def test_bad_inputs(inputs: object, since: object, message: str) -> None:
    with pytest.raises(NetworkError, match=rf"fragment 'ask': .*{message}"):
        graft(NETWORK, fragment(inputs, since))


def test_bad_outputs() -> None:
    with pytest.raises(
        NetworkError, match=r"fragment 'ask': output 'o': from: unknown input 'd'; choices: crossings, busy"
    ):
        graft(NETWORK, fragment(output="d"))
    with pytest.raises(NetworkError, match=r"output 'o': from: 'positions' is an arc without a point"):
        graft(NETWORK, fragment(output="positions"))


def test_a_name_is_taken_once() -> None:
    with pytest.raises(NetworkError, match="fragment 'ask': there is one of this name; detach it first"):
        graft(graft(NETWORK, fragment()), fragment("positions"))


def test_types_are_checked_with_the_network() -> None:
    with pytest.raises(NetworkError, match=r"box 'ask/b'.*'sid'"):
        check(graft(NETWORK, fragment("counts", "now")), tables=SECTORS)


@pytest.mark.parametrize(
    ("inputs", "since", "starts", "found"),
    [
        ("crossings", None, {"ask/b": {0: "crossings"}}, ALL),
        ("crossings", "5m", {"ask/b": {0: "crossings"}}, Since.parse("5m")),
        ("crossings", "now", {}, NOW),
        ("across", None, {"ask/b": {0: "crossings"}}, ALL),
        ("across.1", None, {"ask/b": {0: "crossings"}}, ALL),
        ("busy", None, {"ask/b": {0: "busy"}}, ALL),
        ("across.else", None, {}, NOW),
        ("positions", None, {}, NOW),
        ({"point": "sectors", "as": "stream"}, None, {}, NOW),
        ({"point": "sectors", "as": "stream"}, "all", {}, ALL),
    ],
)
def test_where_history_is_read(inputs: object, since: object, starts: object, found: Since) -> None:
    ask = fragment(inputs, since)
    assert start_of(ask, NETWORK) == starts
    assert since_of(ask, NETWORK) == found
    grafted = graft(NETWORK, ask)
    assert start_of(ask, grafted) == starts
    assert start_of(ask, expand(grafted, {**SECTORS, "sectors": TABLES["sectors"]})) == starts


def test_a_mixture_needs_history_everywhere() -> None:
    boxes = {"b": {"op": "union", "in": ["crossings", "positions"]}}
    with pytest.raises(
        NetworkError, match=r"'positions' is an arc without a point, .*since is 'all'; put a point on it"
    ):
        graft(NETWORK, fragment(boxes=boxes))
    assert start_of(fragment(boxes=boxes, since="now"), NETWORK) == {}
    both = {"b": {"op": "union", "in": ["crossings", "across"]}}
    assert start_of(fragment(boxes=both), NETWORK) == {"ask/b": {0: "crossings", 1: "crossings"}}


def test_an_output_of_a_point_has_a_box_for_the_history() -> None:
    ask = fragment(output="busy", outputs={"o": {"from": "busy"}, "b": {"from": "crossings"}})
    grafted = graft(NETWORK, ask)
    assert [box.name for box in grafted.boxes[-3:]] == ["ask/b", "ask/o", "ask/b_"]
    assert [output.input for output in grafted.outputs[-2:]] == ["ask/o", "ask/b_"]
    assert start_of(ask, NETWORK) == {"ask/b": {0: "crossings"}, "ask/o": {0: "busy"}, "ask/b_": {0: "crossings"}}
    assert check(grafted, tables=SECTORS).output_schema("ask/o").names == ("time", "n")
    plain = graft(NETWORK, fragment(output="busy", since="now"))
    assert plain.outputs[-1].input == "busy"


def test_stored_data_is_looked_up_and_streamed() -> None:
    given = {
        "attach": "ask",
        "boxes": {"b": {"op": "join", "in": ["crossings", "sectors"], "on": "left.sid = right.sid"}},
        "outputs": {"o": {"from": "b"}},
    }
    ask = read_fragment(given, network=NETWORK)
    assert ask.boxes[0].inputs == ("crossings", Table("sectors"))
    given["boxes"]["b"]["in"] = ["crossings", {"point": "sectors"}]  # type: ignore[index]
    assert read_fragment(given) == ask
    check(graft(NETWORK, ask), tables=SECTORS)
    once = graft(NETWORK, fragment({"point": "sectors", "as": "stream"}))
    assert once.box("ask/b").inputs == (Streamed("sectors"),)
    sources = check(once, tables=SECTORS).network.sources
    assert [one.name for one in sources] == ["positions", "sectors", "ask/sectors"]


def test_paths_are_relative_to_the_fragments_file(tmp_path: Path) -> None:
    text = """
attach: ask
boxes: {b: {op: join, in: [crossings, {table: people.csv}], on: left.sid = right.sid}}
outputs: {o: {from: b, sink: o.csv}, p: {from: b, sink: {parquet: p.parquet}}, q: {from: b, sink: "-"},
          r: {from: b, sink: {spark: {table: t}}}}
"""
    (tmp_path / "ask.yaml").write_text(text)
    ask = read_fragment(tmp_path / "ask.yaml")
    assert ask.boxes[0].inputs[1] == Table(str(tmp_path / "people.csv"))
    assert [output.sink for output in ask.outputs[:3]] == [
        str(tmp_path / "o.csv"),
        FrozenMap({"parquet": str(tmp_path / "p.parquet")}),
        "-",
    ]
    assert read_fragment(text).boxes[0].inputs[1] == Table("people.csv")


def test_a_stranger_may_do_no_more_than_in_a_network(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("sid\n1\n")
    boxes = {"b": {"op": "join", "in": ["crossings", {"table": "people.csv"}], "on": "left.sid = right.sid"}}
    given: dict[str, Any] = {"attach": "ask", "boxes": boxes, "outputs": {"o": {"from": "b"}}}
    path = tmp_path / "ask.yaml"
    path.write_text(str(given))
    with pytest.raises(
        NetworkError, match=r"fragment 'ask': box 'b': in: table 'people.csv': a file from a stranger may not"
    ):
        read_fragment(path, trust="stranger")
    allowed = read_fragment(path, trust=Trust(read_only=[str(tmp_path)]))
    assert allowed.boxes[0].inputs[1] == Table(str(tmp_path / "people.csv"))
    given["boxes"] = {}
    given["outputs"] = {"o": {"from": "crossings", "sink": "o.csv"}}
    for trust in ("stranger", Trust(paths=[str(tmp_path)])):
        with pytest.raises(NetworkError, match="output 'o': sink: a fragment from a stranger may not write"):
            read_fragment(given, trust=trust)
    given["boxes"] = {"b": {"op": "join", "in": ["crossings", "sectors"], "on": "left.sid = right.sid"}}
    given["outputs"] = {"o": {"from": "b"}}
    read_fragment(given, trust="stranger", network=NETWORK)  # the network names it, not the fragment


def test_a_moment_must_fit_the_points_time() -> None:
    for since, fits in ((5, True), ("2026-03-01", False), ("5m", True), ("all", True), ("now", True)):
        ask = fragment(since=since)
        checked = check(graft(NETWORK, ask), tables=SECTORS)
        if fits:
            check_since(ask, checked)
        else:
            with pytest.raises(
                NetworkError, match=r"fragment 'ask': point 'crossings': since: '2026-03-01 00:.*a bigint"
            ):
                check_since(ask, checked)
    ask = read_fragment({"attach": "ask", "since": 5, "outputs": {"o": {"from": "busy"}}})
    with pytest.raises(NetworkError, match="point 'busy': since: '5' cannot be compared with a timestamp"):
        check_since(ask, check(graft(NETWORK, ask), tables=SECTORS))


@examples(60)
@given(st.data())
def test_grafting_and_pruning(data: st.DataObject) -> None:
    mapping = data.draw(living_mappings())
    network = load(mapping)
    given = data.draw(fragment_mappings(mapping))
    ask = read_fragment(given, network=network)
    assert read_fragment(ask.to_mapping()) == ask
    grafted = graft(network, ask)
    assert prune(grafted, "ask") == network
    assert parse_network(grafted.to_mapping(), grafted=True) == grafted
    starts = start_of(ask, network)
    assert starts == start_of(ask, grafted) == start_of(ask, expand(grafted, TABLES))
    checked, before = check(grafted, tables=TABLES), check(network, tables=TABLES)
    for box, places in starts.items():
        for at, point in places.items():
            assert checked.inputs[box][at] == checked.points[point]
    marks = fingerprints(checked)
    assert {name: marks[name] for name in before.inputs} == fingerprints(before)


@examples(30)
@given(st.data())
def test_fragments_come_and_go_in_any_order(data: st.DataObject) -> None:
    mapping = data.draw(living_mappings())
    network = grafted = load(mapping)
    names = ["one", "two", "three"]
    for name in names:
        given = data.draw(fragment_mappings(mapping, name))
        grafted = graft(grafted, read_fragment(given, network=network))
    assert fragments_of(grafted) == tuple(names)
    check_structure(grafted)
    for name in data.draw(st.permutations(names)):
        grafted = prune(grafted, name)
    assert grafted == network
