"""Points, views, pushed sources and what is kept of outputs: in files, in the builder, in the picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given

import headway as hw
from headway.boxes import Duration
from headway.checking import check
from headway.errors import HeadwayError, NetworkError
from headway.files import dump, load
from headway.jsonschema import schema
from headway.mermaid import mermaid
from headway.network import FrozenMap, Keep, Network, Point, Roll, Streamed, Table, View
from headway.network.yamls import read_text
from headway.structure import check_structure
from tests.living.networks import living_mappings
from tests.searching import examples

VALIDATOR = jsonschema.Draft202012Validator(schema())
HOUR, DAY = Keep(span=Duration.parse("1h")), Keep(span=Duration.parse("1 day"))

LIVING = """
network: border
sources:
  positions: {schema: {sid: int, time: bigint, pos: int}, push: true}
points:
  crossings: {on: across, keep: 100000, time: time, key: sid}
  sectors: {data: {csv: sectors.txt}, key: sid}
  rules: {data: {sql: "sqlite:///rules.db", table: rules}}
boxes:
  across: {op: filter, in: positions, where: "pos >= 30"}
  counts: {op: aggregate, in: crossings, select: "count(*) as n", order: {on: time}, size: 60}
  named: {op: join, in: [crossings, sectors], on: left.sid = right.sid}
  once: {op: filter, in: {point: sectors, as: stream}, where: "sid > 1"}
views:
  busy: {from: counts, keep: 1 day, qos: {latency: [[0, 1], [5, 0]]}}
outputs:
  alarms: {from: busy, keep: all, roll: 100 MB}
  named: {from: named}
  once: {from: once}
"""
SECTORS = {"sectors": [{"sid": 1, "name": "north"}]}


def test_what_a_file_says() -> None:
    network = load(LIVING)
    assert network.source("positions").push
    assert network.points == (
        Point("crossings", "across", Keep(tuples=100_000), "time", "sid"),
        Point("sectors", None, Keep(), None, "sid", FrozenMap({"csv": "sectors.txt"})),
        Point("rules", None, Keep(), data=FrozenMap({"sql": "sqlite:///rules.db", "table": "rules"})),
    )
    assert network.view("busy") == View("busy", "counts", DAY, network.view("busy").qos)
    assert network.view("busy").qos.latency is not None
    assert network.point("rules").data is not None
    assert network.box("counts").inputs == ("crossings",)
    assert network.box("named").inputs == ("crossings", Table("sectors"))
    assert network.box("once").inputs == (Streamed("sectors"),)
    assert network.output("alarms").keep == Keep()
    assert network.output("alarms").roll == Roll(size=100 << 20)


def test_it_is_written_as_it_is_read() -> None:
    network = load(LIVING)
    assert load(dump(network)) == network
    VALIDATOR.validate(read_text(LIVING))
    VALIDATOR.validate(network.to_mapping())


def test_what_is_not_said_is_an_hour() -> None:
    network = load("network: x\nsources: {s: {schema: a int}}\npoints: {p: {on: s}}\nviews: {v: {from: p}}")
    assert network.points == (Point("p", "s", HOUR),)
    assert network.views == (View("v", "p", HOUR),)
    assert "keep" not in dump(network)
    assert load(dump(network)) == network  # without outputs: what is kept can be asked for later


@examples(60)
@given(living_mappings())
def test_random_networks_are_written_as_they_are_read(mapping: dict[str, Any]) -> None:
    network = load(mapping)
    assert load(dump(network)) == network
    VALIDATOR.validate(network.to_mapping())


def test_the_structure_has_arcs_only() -> None:
    structure = check_structure(load(LIVING))
    assert structure.points == {"crossings": "across", "busy": "counts"}
    assert structure.inputs["counts"] == ("across",)
    assert structure.inputs["once"] == ("sectors",)
    assert structure.outputs == {"alarms": "counts", "named": "named", "once": "once", "busy": "counts"}
    assert list(structure.arcs)[:2] == ["positions", "sectors"]
    assert [one.name for one in structure.consumers["counts"]] == ["alarms", "busy"]
    assert structure.warnings == ()


def test_what_is_kept_is_used() -> None:
    network = load(
        "network: x\nsources: {s: {schema: a int}}\nboxes: {b: {op: filter, in: s, where: a > 1}}\npoints: {p: {on: b}}"
    )
    assert check_structure(network).warnings == ()


SMALL = """
network: bad
sources: {s: {schema: {a: int, t: timestamp, x: "array<int>", w: string}}}
boxes: {b: {op: filter, in: s, where: a > 1}, m: {op: filter, in: s, where: [a > 1, a > 2]}}
outputs: {o: {from: b}}
"""


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (
            "points: {p: {}}",
            "point 'p': a point is either on an arc, with 'on', or a stored data set, .*it has neither",
        ),
        ("points: {p: {on: b, data: x.csv}}", "it has both"),
        ("points: {p: {on: c}}", r"point 'p': on: unknown input 'c'.*choices: b, b.else, m.1, m.2, m.else, s"),
        ("points: {p: {on: m}}", "point 'p': on: 'm' has several outputs; choices: m.1, m.2, m.else"),
        ("points: {p: {on: b}, q: {on: p}}", "point 'q': on: 'p' is no arc; choices: s, b, b.else"),
        ("points: {p: {on: [b]}}", "on: must be the name of one source"),
        ("points: {p: {on: b, since: 1h}}", "point 'p': unknown key 'since'; choices: data, keep, key, on, time"),
        ("points: {p: {on: b, keep: x}}", "point 'p': keep: must be a duration such as '1 hour'"),
        ("points: {p: {data: x.csv, keep: 1h}}", "point 'p': keep: a stored data set is kept by whoever stores it"),
        ("points: {p: {data: 5}}", "point 'p': data: a data set is a path, {csv: path}.*not 5"),
        ("points: {p: {data: {xml: a}}}", "point 'p': data: unknown kind of data 'xml'; choices: csv, jsonl"),
        ("points: {p: {data: {csv: a, table: b}}}", "data: csv has no key 'table'"),
        ("points: {p: {data: {sql: a}}}", "data: sql needs the name of a table: {sql: URL, table: NAME}"),
        ("points: {p.q: {on: b}}", "point 'p.q': a name has letters"),
        ("points: {p/q: {on: b}}", "point 'p/q': a name has letters"),
        ("points: {b: {on: s}}", "point 'b': the name is taken by a box; sources, boxes, points and views"),
        ("points: {s: {on: s}}", "point 's': the name is taken by a source"),
        ("points: [p]", "points: must be a mapping"),
        ("views: {b: {from: s}}", "view 'b': the name is taken by a box"),
        ("points: {p: {on: b}}\nviews: {p: {from: s}}", "view 'p': the name is taken by a point"),
        ("views: {o: {from: s}}", "output 'o': there is a view of this name"),
        ("views: {v: {}}", "view 'v': from: is missing"),
        ("views: {v: {from: 3}}", "view 'v': from: must be the name"),
        ("views: {v: {from: w}, w: {from: v}}", "views: there is a loop: v -> w -> v"),
        ("views: {v: {from: x}}", "view 'v': from: unknown input 'x'"),
        ("views: {v: {from: s, qos: {loss: 3}}}", "view 'v': qos: loss"),
        (
            "points: {p: {data: x.csv}}\nviews: {v: {from: p}}",
            "view 'v': from: 'p' is stored data, which only boxes read",
        ),
    ],
)
def test_bad_points_and_views(more: str, message: str) -> None:
    with pytest.raises(NetworkError, match=message):
        load(SMALL + more)


@pytest.mark.parametrize(
    ("box", "message"),
    [
        (
            "{op: filter, in: d, where: a > 1}",
            "box 'c': in: 'd' is stored data, which only a join looks up; a filter can",
        ),
        ("{op: filter, in: {point: p, as: stream}, where: a > 1}", "box 'c': in: 'p' is a stream already"),
        ("{op: filter, in: {point: x, as: stream}, where: a > 1}", "unknown stored data set 'x'; choices: d"),
        ("{op: filter, in: {point: d, as: a stream}, where: a > 1}", "box 'c': in: as: unknown way.*stream, table"),
        ("{op: filter, in: {point: [d]}, where: a > 1}", "box 'c': in: point: must be text"),
        ("{op: filter, in: {pont: d}, where: a > 1}", "box 'c': in: unknown key 'pont'"),
        ("{op: filter, in: crossing, where: a > 1}", "unknown input 'crossing'; choices: b, b.else, c, .*d, .*p, s"),
        (
            "{op: join, in: [s, {point: p}], on: left.a = right.a}",
            "'p' is a stream, not stored data; write only its name",
        ),
        ("{op: join, in: [s, {point: d, as: stream}], on: left.a = right.a}", "box 'c': size: is missing"),
    ],
)
def test_bad_inputs(box: str, message: str) -> None:
    text = SMALL.replace("boxes: {", f"points: {{p: {{on: s}}, d: {{data: d.csv}}}}\nboxes: {{c: {box}, ")
    with pytest.raises(NetworkError, match=message):
        load(text)


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("{from: b}", "{from: b, keep: 0}", "output 'o': keep: must be one tuple or more"),
        ("{from: b}", "{from: b, roll: 7}", "output 'o': roll: must be a duration such as '1 hour', a size"),
        ("w: string}}", "w: string}, push: 1}", "source 's': push: must be true or false, not 1"),
        (
            "w: string}}",
            "w: string}, push: true, source: a.csv}",
            "source 's': push: callers give this source its tuples",
        ),
        ("outputs: {o: {from: b}}", "", "outputs: is missing"),
    ],
)
def test_bad_sources_and_outputs(before: str, after: str, message: str) -> None:
    with pytest.raises(NetworkError, match=message):
        load(SMALL.replace(before, after))


@pytest.mark.parametrize(
    ("point", "message"),
    [
        ("{on: b, time: at}", "point 'p': time: unknown field 'at'"),
        (
            "{on: b, time: w}",
            "point 'p': time: field 'w' is a string; how old a tuple is needs a number, a timestamp or",
        ),
        ("{on: b, key: x}", "point 'p': key: field 'x' is a array<int>; history is sorted by a single value"),
        ("{on: b, key: kee}", "point 'p': key: unknown field 'kee'"),
    ],
)
def test_fields_of_points_are_checked(point: str, message: str) -> None:
    with pytest.raises(NetworkError, match=message):
        check(load(SMALL + f"points: {{p: {point}}}"))


@pytest.mark.parametrize("point", ["{on: b, time: t, key: w}", "{on: s, time: a}", "{on: s, key: t}"])
def test_good_fields_of_points(point: str) -> None:
    checked = check(load(SMALL + f"points: {{p: {point}}}"))
    assert checked.points == {"p": "b" if "on: b" in point else "s"}


def test_fields_of_stored_data_are_checked_once_it_is_read() -> None:
    text = SMALL.replace("boxes: {", "points: {d: {data: d.csv, key: kee}}\nboxes: {")
    check(load(text))
    text = text.replace("boxes: {", "boxes: {c: {op: join, in: [s, d], on: left.a = right.a}, ")
    with pytest.raises(NetworkError, match="point 'd': key: unknown field 'kee'"):
        check(load(text), tables={"d": [{"a": 1}]})


def built() -> Network:
    net = hw.Network("border")
    positions = net.source("positions", "sid int, time bigint, pos int", push=True)
    across = positions.filter("pos >= 30", name="across")
    crossings = net.point("crossings", across, keep=100_000, time="time", key="sid")
    sectors = net.point("sectors", data={"csv": "sectors.txt"}, key="sid")
    net.point("rules", data={"sql": "sqlite:///rules.db", "table": "rules"})
    counts = crossings.aggregate("count(*) as n", on="time", size=60, name="counts")
    named = crossings.join(sectors, "left.sid = right.sid", name="named")
    once = sectors.once.filter("sid > 1", name="once")
    busy = net.view("busy", counts, keep="1 day", latency=[[0, 1], [5, 0]])
    busy.output("alarms", keep="all", roll="100 MB")
    named.output("named")
    once.output("once")
    return net.build()


def test_the_builder_makes_the_same() -> None:
    assert built() == load(LIVING)


def test_mistakes_in_the_builder() -> None:
    net = hw.Network("x")
    stream = net.source("s", "a int")
    other = hw.Network("y").source("s", "a int")
    with pytest.raises(NetworkError, match="'s' belongs to another network"):
        net.point("p", other)
    with pytest.raises(NetworkError, match="'s' belongs to another network"):
        net.view("p", other)
    with pytest.raises(NetworkError, match="point 's': the name is taken"):
        net.point("s", stream)
    with pytest.raises(NetworkError, match="it has neither"):
        net.point("p")
    with pytest.raises(NetworkError, match="no stored data set"):
        _ = stream.once
    net.view("v", stream)
    with pytest.raises(NetworkError, match="output 'v': there is a view of this name"):
        stream.output("v")
    with pytest.raises(NetworkError, match="view 'w': qos: value: field"):
        net.view("w", stream, value=("b", [[0, 1]]))
    stream.output("o")
    with pytest.raises(NetworkError, match="there is another output of this name"):
        net.view("o", stream)
    with pytest.raises(NetworkError, match="box 'v': the name is taken"):
        stream.filter("a > 1", name="v")


def test_the_schema_of_a_point_is_that_of_its_arc() -> None:
    net = hw.Network("x")
    point = net.point("p", net.source("s", "a int"))
    with pytest.raises(NetworkError, match="unknown field 'b'"):
        point.filter("b > 1")


def test_the_picture() -> None:
    drawn = mermaid(check(load(LIVING), tables=SECTORS)).splitlines()
    assert '    p0[("crossings<br/>100,000 tuples")]' in drawn
    assert "    b0 -.-> p0" in drawn
    assert '    t0[("sectors")]' in drawn
    assert "    t0 -.-> b2" in drawn
    assert '    s1(["sectors"])' in drawn
    assert '    o3[["busy"]]' in drawn
    assert not [line for line in drawn if "p1" in line]


def test_a_run_and_the_command_line_take_such_files(tmp_path: Path) -> None:
    from headway.cli.main import main

    (tmp_path / "sectors.txt").write_text("sid,name\n1,north\n2,south\n")
    path = tmp_path / "border.yaml"
    path.write_text(LIVING)
    assert main(["check", str(path)]) == 0
    rows = [{"sid": at % 3, "time": at * 30, "pos": at * 10} for at in range(9)]
    result = hw.run(path, {"positions": rows}, engine="local")
    assert result.outputs["alarms"].column("n").to_pylist() == [1, 2, 2, 1]
    assert result.outputs["named"].column("name").to_pylist() == ["north", "south", "north", "south"]
    assert result.outputs["once"].column("name").to_pylist() == ["south"]


def test_stored_data_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "sectors.txt").write_text("sid,name\n1,north\n")
    path = tmp_path / "border.yaml"
    looked_up = LIVING.replace("{op: filter, in: {point: sectors, as: stream}", "{op: filter, in: positions")
    path.write_text(looked_up.replace("named: {from: named}", "named: {from: named, sink: {csv: sectors.txt}}"))
    with pytest.raises(
        HeadwayError, match=r"output 'named' would write to .*sectors.txt', which point 'sectors' reads"
    ):
        hw.run(path, {"positions": []}, engine="local")
