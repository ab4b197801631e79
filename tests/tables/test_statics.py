"""Static tables of a network, dangling points included: what they are, and that they stay as they were read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headway.checking import check
from headway.errors import NetworkError
from headway.files import load
from headway.network import Network, Table
from headway.network.schema import Schema
from headway.network.trust import OWN, STRANGER, Trust
from headway.tables import Statics, load_static, static_schema

TABLE = pa.table({"sid": [1, 2], "name": ["north", "south"]})
OTHER = [{"sid": 7, "name": "west"}]
SECTORS = Table("sectors")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("a.csv", "a.txt"):
        (tmp_path / name).write_text("sid,name\n1,north\n2,south\n")
    (tmp_path / "a.jsonl").write_text('{"sid": 1, "name": "north"}\n{"sid": 2, "name": "south"}\n')
    pq.write_table(TABLE, tmp_path / "a.parquet")
    pq.write_table(TABLE, tmp_path / "a.dat")
    return tmp_path


def network(folder: Path | None, data: Any = "a.csv", trust: Trust = OWN) -> Network:
    join = {"op": "join", "in": ["s", "sectors"], "on": "left.sid = right.sid"}
    other = {**join, "in": ["known", {"table": "a.parquet"}]}
    made = load(
        {
            "network": "x",
            "sources": {"s": {"schema": "sid bigint"}},
            "points": {"sectors": {"data": data}},
            "boxes": {"known": join, "other": other},
            "outputs": {"o": {"from": "other"}},
        }
    )
    return replace(made, folder=folder, trust=trust)


@pytest.mark.parametrize(
    "data",
    ["a.csv", "a.jsonl", "a.parquet", {"csv": "a.txt"}, {"csv": "a.csv"}, {"parquet": "a.dat"}, {"jsonl": "a.jsonl"}],
)
def test_files(folder: Path, data: Any) -> None:
    made = network(folder, data)
    assert load_static(made, SECTORS) == load_static(made, Table("a.parquet")) == TABLE
    assert static_schema(made, SECTORS, None, OWN) == Schema.from_arrow(TABLE.schema)
    assert set(check(made).tables) == {"sectors", "a.parquet"}


def test_the_run_may_give_it(folder: Path) -> None:
    made = network(folder)
    for tables in ({"sectors": OTHER}, Statics({"sectors": OTHER})):
        assert load_static(made, SECTORS, tables).to_pylist() == OTHER
    assert load_static(made, SECTORS, {"sectors": folder / "a.parquet"}) == TABLE
    assert static_schema(made, SECTORS, {"sectors": Schema.parse("b int")}, OWN).names == ("b",)


@pytest.mark.parametrize("data", ["none.csv", {"csv": "none"}, {"sql": "sqlite:///none.db", "table": "t"}])
def test_what_cannot_be_read(folder: Path, data: Any) -> None:
    with pytest.raises(NetworkError, match=r"point 'sectors': data: .*no.* file"):
        load_static(network(folder, data), SECTORS)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("a.csv", "may not read"),
        ({"csv": "a.txt"}, "may not read"),
        ({"parquet": "../a.dat"}, "may not read"),
        ({"sql": "sqlite:///a.db", "table": "t"}, "may not read"),
        ({"sql": "postgresql://h/d", "table": "t"}, "contact 'h'"),
        ({"spark": "people"}, "use the table 'people' of Spark|no Spark session"),
    ],
)
def test_a_stranger_reads_only_what_is_allowed(folder: Path, data: Any, message: str) -> None:
    with pytest.raises(NetworkError, match=rf"point 'sectors': data: .*({message})"):
        load_static(network(folder, data, STRANGER), SECTORS)
    with pytest.raises(NetworkError, match=rf"point 'sectors': data: .*({message})"):
        static_schema(network(folder, data), SECTORS, None, STRANGER)
    assert load_static(network(folder, "a.csv", Trust(read_only=[str(folder)])), SECTORS) == TABLE


def test_what_was_read_stays(folder: Path) -> None:
    made = network(folder)
    statics = Statics().having(made, {"sectors": load_static(made, SECTORS)})
    (folder / "a.csv").write_text("id\n7\n")
    assert load_static(made, SECTORS, statics) == TABLE
    assert static_schema(made, SECTORS, statics, STRANGER).names == ("sid", "name")
    assert load_static(made, SECTORS, statics.again(["sectors"])).to_pylist() == [{"id": 7}]
    assert load_static(made, SECTORS, statics).num_rows == 2, "it is frozen"
    assert load_static(network(folder, "a.jsonl"), SECTORS, statics) == TABLE
    assert load_static(network(folder, {"csv": "a.csv"}), SECTORS, statics).num_rows == 1, "something else is read"
    with pytest.raises(NetworkError, match="no such file"):
        load_static(network(folder / "elsewhere"), SECTORS, statics)


def test_of_what_is_streamed_the_fields_stay(folder: Path) -> None:
    made = network(folder)
    statics = Statics().having(made, {"sectors": static_schema(made, SECTORS, None, OWN)})
    (folder / "a.csv").write_text("id\n7\n")
    assert static_schema(made, SECTORS, statics, OWN).names == ("sid", "name")
    assert load_static(made, SECTORS, statics).column_names == ["id"]


def test_what_a_network_has_not_is_forgotten(folder: Path) -> None:
    made = network(folder)
    statics = Statics({"t": OTHER}).having(made, {"sectors": TABLE, "a.parquet": TABLE, "t": TABLE})
    assert [statics.of(made).read(made, ref) is None for ref in ("sectors", "a.parquet", "t")] == [False, False, True]
    without = replace(made, boxes=())
    assert [statics.of(without).read(made, ref) is None for ref in ("sectors", "a.parquet")] == [False, True]
    assert dict(statics.of(without)) == {"t": OTHER}
