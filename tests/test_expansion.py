"""Networks as written, with points and views, become the plain networks that engines run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given

from headway.checking import check
from headway.errors import NetworkError
from headway.expansion import expand
from headway.files import dump, load
from headway.network import FrozenMap, Output, Point, Source, Table, freeze
from headway.network.schema import Schema
from headway.structure import check_structure
from tests.living.networks import TABLES, living_mappings
from tests.networks import ALL, BORDER
from tests.searching import examples
from tests.test_points import LIVING

SECTORS = {"sectors": Schema.parse("sid int, name string")}


@pytest.mark.parametrize("text", [BORDER, ALL])
def test_a_network_without_points_is_what_it_is(text: str) -> None:
    network = load(text)
    assert expand(network) is network


def test_what_becomes_of_points_and_views() -> None:
    network = load(LIVING)
    plain = expand(network, SECTORS)
    assert plain.sources == (
        network.source("positions"),
        Source("sectors", SECTORS["sectors"], FrozenMap({"csv": "sectors.txt"})),
    )
    assert {box.name: box.inputs for box in plain.boxes} == {
        "across": ("positions",),
        "counts": ("across",),
        "named": ("across", Table("sectors")),
        "once": ("sectors",),
    }
    busy = network.view("busy")
    assert plain.outputs[-1] == Output("busy", "counts", busy.qos, view=True)
    assert plain.output("alarms").input == "counts"
    assert plain.points == (*network.points, Point("busy", "counts", busy.keep))
    assert plain.views == ()
    assert plain.folder == network.folder


def test_arcs_are_canonical() -> None:
    text = LIVING.replace("on: across", "on: across.1")
    assert expand(load(text), SECTORS).point("crossings").on == "across"


@examples(60)
@given(living_mappings())
def test_expanding(mapping: dict[str, Any]) -> None:
    """Twice is once; the structure stays; it can be written and read, as traces do."""
    network = load(mapping)
    plain = expand(network, TABLES)
    assert expand(plain) is plain
    assert expand(load(dump(plain)), TABLES) == plain
    one, other = check_structure(network), check_structure(plain)
    for part in ("inputs", "outputs", "points", "consumers", "warnings"):
        assert getattr(one, part) == getattr(other, part)
    assert list(one.arcs) == list(other.arcs)
    assert check(network, tables=TABLES).network == plain


def test_streamed_data_has_the_schema_of_the_data(tmp_path: Path) -> None:
    (tmp_path / "sectors.txt").write_text("sid,name\n1,north\n")
    path = tmp_path / "border.yaml"
    path.write_text(LIVING)
    checked = check(load(path))
    assert checked.arcs["sectors"].names == ("sid", "name")
    assert checked.arcs["sectors"].fields[0].type == pa.int64()
    assert checked.tables["sectors"] == checked.arcs["sectors"]


@pytest.mark.parametrize(
    "data", ["a.parquet", {"parquet": "a.dat"}, {"sql": "sqlite:///x", "table": "t"}, {"spark": "t"}]
)
def test_the_source_of_streamed_data_is_described_by_the_data(data: Any) -> None:
    network = load({**load(LIVING).to_mapping(), "points": {"crossings": {"on": "across"}, "sectors": {"data": data}}})
    plain = expand(network, SECTORS)
    assert plain.source("sectors").connector == freeze(data)
    assert plain.streamed("sectors") == plain.stored("sectors") == plain.point("sectors")
    assert plain.streamed("positions") is None
    assert expand(load(dump(plain)), SECTORS) == plain


def test_errors_name_what_was_written() -> None:
    with pytest.raises(NetworkError, match=r"box 'counts': unknown field 'speed'|box 'counts'.*speed"):
        check(load(LIVING.replace("count(*) as n", "max(speed) as n")), tables=SECTORS)
    with pytest.raises(NetworkError, match=r"point 'sectors': data: .*no such file.*nowhere.csv"):
        check(load(LIVING.replace("{csv: sectors.txt}", "nowhere.csv")))


def test_each_fragment_has_its_own_stream_of_stored_data() -> None:
    network = load(LIVING)
    once = replace(network.box("once"), name="ask/once")
    grafted = replace(network, boxes=(*network.boxes, once))
    plain = expand(grafted, SECTORS)
    assert [source.name for source in plain.sources] == ["positions", "sectors", "ask/sectors"]
    assert plain.box("ask/once").inputs == ("ask/sectors",)
    written = plain.to_mapping()
    assert list(written["sources"]) == ["positions"]
    assert written["boxes"]["ask/once"]["in"] == {"point": "sectors", "as": "stream"}
    assert expand(plain) is plain
