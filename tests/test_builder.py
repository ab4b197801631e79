"""The fluent builder makes the same networks as files."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any

import pytest

from headway.boxes import Duration, Order, When
from headway.builder import NetworkBuilder
from headway.checking import check
from headway.clock import SECOND, processor
from headway.errors import HeadwayError, NetworkError
from headway.files import load
from headway.network import Network, Table
from headway.network.schema import Schema
from tests.networks import ALL, BORDER


def test_the_example_of_the_design() -> None:
    net = NetworkBuilder("border-watch")
    positions = net.source("positions", "sid int, time bigint, pos int")
    across = positions.filter("pos >= 30", name="across")
    counts = across.aggregate(
        "count(*) as n, avg(pos) as mean", on="time", slack=1, size=1, advance=1, timeout="5s", name="counts"
    )
    crowded = counts.filter("n >= 3", "n = 2", name="crowded")
    names = crowded.route(1).map("time, n, n * 2 as twice", name="names")
    names.output(
        "alarms",
        latency=[(0, 1), (2, 1), (10, 0)],
        loss=[[100, 1], [50, 0.2], [0, 0]],
        value=("n", [[0, 0.1], [3, 1]]),
    )
    assert net.build() == load(BORDER)


def build_all() -> Network:
    net = NetworkBuilder("all-operators", schedule={"policy": "round-robin", "train": 100, "workers": 2})
    schema = Schema.parse("sid int, time timestamp, pos double, name string")
    a = net.source("a", schema, {"csv": "a.csv"})
    b = net.source("b", {"sid": "int", "time": "timestamp", "pos": "double", "name": "string"}, "b.jsonl")
    both = a.union(b, ordered=False, name="both")
    ordered = both.bsort("time", slack=3, by="sid", name="sorted")
    sessions = ordered.aggregate(
        "count(*) as n",
        "max(pos) as high",
        order=Order("time", by=("sid",)),
        advance=When("pos > last.pos + 1 or sid <> first.sid"),
        name="sessions",
    )
    windows = ordered.aggregate(
        "count(*) as n", on="time", size="10 minutes", advance=Duration(60_000_000), align="first", name="windows"
    )
    tens = both.aggregate("avg(pos) as pos", order={"on": "#", "by": ["name"]}, size=10, name="tens")
    near = a.join(b, "left.sid = right.sid", size="5s", order=["time", {"on": "time", "slack": 2}], name="near")
    close = a.join(
        b,
        "left.sid = right.sid and left.pos < right.pos",
        size="5s",
        order="time",
        select="left.time as time, right.pos - left.pos as gap",
        ordered=False,
        name="close",
    )
    around = a.resample(b, "avg(pos) as pos", size="1m", order=["time", Order("time", by=("sid",))], name="around")
    named = near.join(net.table("people"), "left.sid = right.person", name="named")
    loaded = tens.universal(cost={"uniform": ["1us", 3e-6]}, selectivity=0.5, mode="even", seed=7, name="loaded")
    sessions.output("sessions")
    windows.output("windows", sink={"parquet": "w.parquet"})
    loaded.output("tens")
    close.output("close")
    around.output("around")
    named.output("named", sink="out.csv")
    return net.build()


def test_every_operator() -> None:
    assert build_all() == load(ALL)


def test_default_names_are_readable_and_unique() -> None:
    net = NetworkBuilder("x")
    s = net.source("s", "a int")
    s.filter("a > 1", name="filter_2")
    names = [s.filter("a > 1").name, s.filter("a > 2").name, s.map("a").name, s.map("a").name]
    assert names == ["filter_1", "filter_3", "map_1", "map_2"]


def test_routes_and_otherwise() -> None:
    net = NetworkBuilder("x")
    s = net.source("s", "a int")
    one = s.filter("a > 1")
    assert one.name == one.route(1).name == "filter_1"
    assert one.otherwise.name == "filter_1.else"
    two = s.filter("a > 1", "a > 2")
    assert [two.route(1).name, two.route(2).name, two.otherwise.name] == ["filter_2.1", "filter_2.2", "filter_2.else"]
    with pytest.raises(NetworkError, match="no route 3; it has 2"):
        two.route(3)
    with pytest.raises(NetworkError, match="only a filter"):
        s.route(1)
    with pytest.raises(NetworkError, match="only a filter"):
        _ = s.otherwise
    with pytest.raises(NetworkError, match=r"output 'o': from: 'filter_2' has several outputs; choices: filter_2\.1"):
        two.output("o")
    with pytest.raises(NetworkError, match=r"box 'map_1': in: 'filter_2' has several outputs; choices: filter_2\.1"):
        two.map("a")


def test_output_returns_the_stream() -> None:
    net = NetworkBuilder("x")
    s = net.source("s", "a int")
    assert s.output("o") is s
    assert repr(s) == "Stream('s')"
    assert net.build().outputs[0].input == "s"


def test_mistakes_are_told_at_once() -> None:
    net = NetworkBuilder("x")
    s = net.source("s", "a int, time bigint")
    bad: list[tuple[Callable[[], object], str]] = [
        (lambda: NetworkBuilder("a b"), "a b"),
        (lambda: net.source("s", "a int"), "source 's': the name is taken"),
        (lambda: net.source("t", "a integr"), "source 't': schema"),
        (lambda: s.filter(), "where: needs at least one predicate"),
        (lambda: s.map(), "box 'map_1': select: is missing"),
        (lambda: s.filter("a > 1", name="s"), "box 's': the name is taken"),
        (lambda: s.aggregate("count(*)", on="time", size=0), "box 'aggregate_1': size"),
        (
            lambda: s.aggregate("count(*)", size=1),
            "box 'aggregate_1': on= is missing: the order field, such as on='time'",
        ),
        (lambda: s.bsort(slack=2, name="sorted"), "box 'sorted': on= is missing"),
        (lambda: s.aggregate("count(*)", on="time", order="time", size=1), "not both"),
        (lambda: s.bsort("time", slack=-1), "slack"),
        (lambda: s.union(), "2 or more inputs"),
        (lambda: s.union("t"), "a stream or a table"),  # type: ignore[arg-type]
        (lambda: s.union(NetworkBuilder("y").source("q", "a int")), "another network"),
        (lambda: s.join(Table("x.csv"), "true", size=1), "static table"),
        (lambda: s.output("o", latency=[[1, 5]]), "output 'o': qos: latency"),
        (lambda: net.build(), "at least one output"),
    ]
    for action, expected in bad:
        with pytest.raises(HeadwayError) as caught:
            action()
        assert expected in str(caught.value)
    s.output("o")
    with pytest.raises(NetworkError, match="another output"):
        s.output("o")


def test_a_box_is_checked_at_the_line_that_adds_it() -> None:
    net = NetworkBuilder("x")
    s = net.source("s", "a int, name string, time bigint")
    bad: list[tuple[Callable[[], object], str]] = [
        (lambda: s.filter("b > 1"), "box 'filter_1': where: expression 'b > 1': unknown field 'b'"),
        (lambda: s.map("upperr(name) as n"), "unknown function 'upperr'; did you mean 'upper'?"),
        (lambda: s.aggregate("avgg(a) as m", on="time", size=1), "unknown function 'avgg'; did you mean 'avg'?"),
        (lambda: s.aggregate("avg(a) as m", on="tim", size=1), "tim"),
        (lambda: s.union(s.map("a")), "box 'union_1'"),
        (lambda: s.map("a").join(s, "left.b = right.a", order="time", size=1), "box 'join_1'"),
        (lambda: s.output("o", value=("name", [[0, 0], [1, 1]])), "output 'o': qos: value: field"),
    ]
    for action, expected in bad:
        with pytest.raises(NetworkError) as caught:
            action()
        assert expected in str(caught.value)
    s.map("a", name="fine").output("o")
    assert [box.name for box in net.build().boxes] == ["map_1", "map_2", "fine"], "what is refused leaves no trace"


def test_the_message_is_the_files() -> None:
    with pytest.raises(NetworkError) as at_the_line:
        NetworkBuilder("x").source("s", "a int").filter("b > 1", name="f")
    text = (
        "{network: x, sources: {s: {schema: {a: int}}}, outputs: {o: {from: f}}, "
        "boxes: {f: {op: filter, in: s, where: 'b > 1'}}}"
    )
    with pytest.raises(NetworkError) as in_a_file:
        check(load(text))
    assert str(at_the_line.value) == str(in_a_file.value)


def test_what_only_the_run_can_tell_is_checked_then() -> None:
    net = NetworkBuilder("x")
    s = net.source("s", "a int")
    named = s.join(net.table("names"), "left.a = right.a", select="name, mine(left.a) as m")
    named.map("nothing").output("o")
    s.filter("mine(a) > 1").map("a + 1 as b").output("p")
    network = net.build()
    with pytest.raises(NetworkError, match="box 'join_1'"):
        check(network, tables={"names": Schema.parse("a int, name string")})


def test_a_large_network_is_built_fast() -> None:
    net = NetworkBuilder("x")
    s = net.source("s", "a int, b string")
    begun = processor()
    for number in range(5000):
        s.map("a", "b").output(f"o{number}")
    assert len(net.build().boxes) == 5000
    assert (processor() - begun) / SECOND < 5, "about 0.5 s; with sets of all names made anew for each box 6 s"


def test_a_misspelt_method_is_suggested() -> None:
    stream: Any = NetworkBuilder("n").source("s", "a int")
    with pytest.raises(AttributeError, match=r"a stream has no 'agregate'; did you mean 'aggregate'\?$"):
        stream.agregate("count(*) as n")
    with pytest.raises(AttributeError, match=r"a stream has no 'xyz'; choices: name, route, otherwise, .*output$"):
        stream.xyz()
    assert not hasattr(stream, "__array__")  # protocols that probe for attributes still work
    assert copy(stream).name == "s"
