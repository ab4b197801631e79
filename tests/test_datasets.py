"""Stored data sets of dangling points."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headway import datasets
from headway.checking import check
from headway.datasets import data_schema, load_data, load_static, register_data_loader, stored_point
from headway.errors import NetworkError
from headway.files import load
from headway.network import FrozenMap, Point, freeze
from headway.network.schema import Schema
from headway.network.trust import OWN, STRANGER, Trust

TABLE = pa.table({"sid": [1, 2], "name": ["north", "south"]})


def point(data: Any) -> Point:
    return Point("sectors", data=freeze(data))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("a.csv", "a.txt"):
        (tmp_path / name).write_text("sid,name\n1,north\n2,south\n")
    (tmp_path / "a.jsonl").write_text('{"sid": 1, "name": "north"}\n{"sid": 2, "name": "south"}\n')
    pq.write_table(TABLE, tmp_path / "a.parquet")
    pq.write_table(TABLE, tmp_path / "a.dat")
    return tmp_path


@pytest.mark.parametrize(
    "data",
    ["a.csv", "a.jsonl", "a.parquet", {"csv": "a.txt"}, {"csv": "a.csv"}, {"parquet": "a.dat"}, {"jsonl": "a.jsonl"}],
)
def test_files(folder: Path, data: Any) -> None:
    assert load_data(point(data), None, folder) == TABLE
    assert data_schema(point(data), None, folder) == Schema.from_arrow(TABLE.schema)


def test_the_run_may_give_it(folder: Path) -> None:
    other = [{"sid": 7, "name": "west"}]
    assert load_data(point("a.csv"), {"sectors": other}, folder).to_pylist() == other
    assert load_data(point("a.csv"), {"sectors": folder / "a.parquet"}) == TABLE
    assert data_schema(point("a.csv"), {"sectors": Schema.parse("b int")}).names == ("b",)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("none.csv", "point 'sectors': data: .*no such file: .*none.csv"),
        ({"csv": "none"}, "point 'sectors': data: .*no such file"),
        (
            {"sql": "sqlite:///x.db", "table": "t"},
            "point 'sectors': data: nothing here reads sql; choices: csv, jsonl, par",
        ),
    ],
)
def test_what_cannot_be_read(folder: Path, data: Any, message: str) -> None:
    with pytest.raises(NetworkError, match=message):
        load_data(point(data), None, folder)


@pytest.mark.parametrize("data", ["a.csv", {"csv": "a.txt"}, {"parquet": "../a.dat"}])
def test_a_stranger_reads_only_what_is_allowed(folder: Path, data: Any) -> None:
    with pytest.raises(NetworkError, match=r"point 'sectors': data: .*a file from a stranger may not read"):
        load_data(point(data), None, folder, STRANGER)
    if data != {"parquet": "../a.dat"}:
        assert load_data(point(data), None, folder, Trust(read_only=[str(folder)])) == TABLE


@pytest.mark.parametrize(
    ("data", "message"),
    [({"spark": "people"}, "use the table 'people' of Spark"), ({"sql": "a://b", "table": "t"}, "--allow-format sql")],
)
def test_a_stranger_names_no_other_tables(folder: Path, data: Any, message: str) -> None:
    with pytest.raises(NetworkError, match=message):
        load_data(point(data), None, folder, STRANGER)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    monkeypatch.setattr(datasets, "_loaders", {})
    seen: list[Any] = []

    def loader(data: FrozenMap, who: str, folder: Path | None, trust: Trust) -> pa.Table:
        seen.append((data["sql"], data["table"], who, folder, trust))
        return TABLE

    register_data_loader("sql", loader)
    return seen


def test_other_kinds_are_registered(asked: list[Any], folder: Path) -> None:
    sql = point({"sql": "sqlite:///x.db", "table": "t"})
    assert load_data(sql, None, folder) == TABLE
    assert asked == [("sqlite:///x.db", "t", "point 'sectors': data", folder, OWN)]
    with pytest.raises(NetworkError, match="--allow-format sql"):
        load_data(sql, None, folder, STRANGER)
    assert len(asked) == 1
    assert load_data(sql, None, folder, Trust(formats=["sql"])) == TABLE


NETWORK = """
network: x
sources: {s: {schema: sid bigint}}
points: {sectors: {data: a.csv}}
boxes:
  known: {op: join, in: [s, sectors], on: left.sid = right.sid}
  other: {op: join, in: [known, {table: a.parquet}], on: left.sid = right.sid}
outputs: {o: {from: other}}
"""


def test_static_tables_of_a_network(folder: Path) -> None:
    (folder / "x.yaml").write_text(NETWORK)
    network = load(folder / "x.yaml")
    assert stored_point(network, "sectors") == network.points[0]
    assert stored_point(network, "a.parquet") is None
    assert load_static(network, "sectors") == load_static(network, "a.parquet") == TABLE
    assert set(check(network).tables) == {"sectors", "a.parquet"}
