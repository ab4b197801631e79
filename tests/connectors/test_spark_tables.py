"""Static tables that Spark knows, and directories."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import headway as hw
from headway.connectors import spark_tables
from headway.connectors.spark_tables import load_directory, load_from_spark
from headway.connectors.stored import open_data
from headway.errors import NetworkError
from headway.network.keep import Roll
from headway.network.trust import Trust
from headway.tables import data_schema, data_table, load_table, lookup, read_data, table_schema
from tests.connectors.helpers import drain

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PEOPLE = pa.table({"sid": pa.array([1, 2], pa.int32()), "name": ["Ann", "Bob"]})


def test_directories_of_csv_keep_what_is_written(tmp_path: Path) -> None:
    folder = tmp_path / "t.csv" / "part=007"
    folder.mkdir(parents=True)
    (folder / "1.csv").write_text("zip,id,code,n\n01234,12345678901234567890,NA,1\n")
    (folder / "2.csv").write_text("zip,id,code,n\n1234,2,,2\n")
    found = load_directory("t.csv", tmp_path)
    assert found is not None
    assert found.sort_by("n").to_pylist() == [
        {"zip": "01234", "id": "12345678901234567890", "code": "NA", "n": 1, "part": "007"},
        {"zip": "1234", "id": "2", "code": None, "n": 2, "part": "007"},
    ]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "people").mkdir()
    for at in range(2):
        pq.write_table(PEOPLE.slice(at, 1), tmp_path / "people" / f"{at}.parquet")
    return tmp_path


def test_directories_need_no_session(folder: Path) -> None:
    found = load_directory("people", folder)
    assert found is not None
    assert found.sort_by("sid").equals(PEOPLE)
    assert load_directory("nobody", folder) is None
    (folder / "people.csv").mkdir()
    (folder / "people.csv" / "1.csv").write_text("sid,name\n1,Ann\n")
    assert load_table("people.csv", folder=folder).to_pylist() == [{"sid": 1, "name": "Ann"}]
    (folder / "times.json").mkdir()
    (folder / "times.json" / "1.json").write_text('{"k":"2024-01-01","n":1}\n')
    assert load_table("times.json", folder=folder).to_pylist() == [{"k": "2024-01-01", "n": 1}]
    (folder / "bad").mkdir()
    (folder / "bad" / "x.parquet").write_text("nonsense")
    with pytest.raises(NetworkError, match="table 'bad': cannot read") as caught:
        load_directory("bad", folder)
    assert "\n" not in str(caught.value)


def test_views_and_paths(spark: SparkSession, folder: Path) -> None:
    spark.createDataFrame(PEOPLE).createOrReplaceTempView("crew")
    assert load_table("crew").equals(PEOPLE)
    assert str(table_schema("crew")) == "sid int, name string"
    spark.createDataFrame(PEOPLE).write.orc(str(folder / "people.orc"))
    for ref in ("people", "people.orc", (folder / "people").as_uri(), f"parquet.`{folder}/people`"):
        assert load_table(ref, folder=folder).sort_by("sid").equals(PEOPLE), ref
    assert load_from_spark("nobody", folder) is None


def test_given_tables_and_files_come_first(spark: SparkSession, tmp_path: Path) -> None:
    spark.createDataFrame(PEOPLE).createOrReplaceTempView("crew")
    other = pa.table({"x": [1]})
    assert load_table("crew", {"crew": other}).equals(other)


def test_what_is_nowhere(spark: SparkSession, folder: Path) -> None:
    with pytest.raises(NetworkError, match="table 'nobody': no table of this name is given"):
        load_table("nobody", folder=folder)
    with pytest.raises(NetworkError, match=r"table 'nobody\.csv': no such file"):
        load_table("nobody.csv", folder=folder)
    with pytest.raises(NetworkError, match=r"table 'parquet\.`/no/where`': Spark cannot read it") as caught:
        load_table("parquet.`/no/where`")
    assert "\n" not in str(caught.value)


def test_too_long(spark: SparkSession, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_tables, "MOST_ROWS", 1)
    for load in (load_directory, load_from_spark):
        with pytest.raises(NetworkError, match="table 'people' has more than 1 rows; every process holds"):
            load("people", folder)


def test_in_a_network(spark: SparkSession) -> None:
    spark.createDataFrame(PEOPLE).createOrReplaceTempView("crew")
    join = {"op": "join", "in": ["s", {"table": "crew"}], "on": "left.sid = right.sid", "select": "right.name as name"}
    network = {
        "network": "n",
        "sources": {"s": {"schema": {"sid": "int"}}},
        "boxes": {"j": join},
        "outputs": {"o": {"from": "j"}},
    }
    for engine in ("local", "spark"):
        found = hw.run(network, {"s": [{"sid": 2}, {"sid": 1}]}, engine=engine)
        assert found.outputs["o"].to_pydict() == {"name": ["Bob", "Ann"]}


def test_a_data_set(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    spark.createDataFrame(PEOPLE).createOrReplaceTempView("squad")
    data = read_data({"spark": "squad"}, "point 'p': data")
    assert str(data_schema(data)) == "sid int, name string"
    assert data_table(data).sort_by("sid").equals(PEOPLE)
    assert lookup(data, "sid", [2, 3, None]).to_pylist() == [{"sid": 2, "name": "Bob"}]
    assert lookup(data, "NAME", ["Ann"]).to_pylist() == [{"sid": 1, "name": "Ann"}]
    assert load_table("p", {"p": data}).num_rows == 2
    pushed, _, _ = drain(open_data("p", data))
    assert pushed is not None
    assert pushed.sort_by("sid").equals(PEOPLE)
    with pytest.raises(NetworkError, match=r"^point 'p': data: Spark has no table 'squat'; tables: .*squad"):
        data_schema(read_data({"spark": "squat"}, "point 'p': data"))
    with pytest.raises(NetworkError, match="is not the name of a table of Spark"):
        data_schema(read_data({"spark": "parquet.`/etc`"}, "p"))
    with pytest.raises(NetworkError, match="p: a file from a stranger may not use the table 'squad' of Spark"):
        data_schema(read_data({"spark": "squad"}, "p", None, Trust()))
    data_schema(read_data({"spark": "squad"}, "p", None, Trust(tables=["squ*"])))
    monkeypatch.setattr(spark_tables, "find_session", lambda: None)
    with pytest.raises(NetworkError, match="'squad' is a table of Spark, and no Spark session runs in this process"):
        data_schema(read_data({"spark": "squad"}, "p"))


@pytest.mark.parametrize("state", [False, True])
def test_outputs_in_parts(spark: SparkSession, tmp_path: Path, state: bool) -> None:
    network = {
        "network": "n",
        "sources": {"s": {"schema": {"a": "int"}}},
        "outputs": {"o": {"from": "s", "sink": str(tmp_path / "o.csv")}},
    }
    loaded = hw.load(network)
    rolled = replace(loaded, outputs=(replace(loaded.outputs[0], roll=Roll.parse("1 kB")),))
    kept: dict[str, Any] = {"state": str(tmp_path / "state")} if state else {}
    hw.run(rolled, {"s": [{"a": at} for at in range(1000)]}, engine="spark", **kept)
    found = sorted(tmp_path.glob("o-*.csv"))
    assert len(found) >= 4
    assert all(path.stat().st_size <= 1024 for path in found)
    values = [int(line) for path in found for line in path.read_text().splitlines()[1:]]
    assert values == list(range(1000))
    if state:  # once more: all is delivered already
        hw.run(rolled, {"s": [{"a": at} for at in range(1000)]}, engine="spark", **kept)
        assert sorted(tmp_path.glob("o-*.csv")) == found
