"""Static tables that Spark knows, and directories."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import headway as hw
from headway.connectors import spark_tables
from headway.connectors.spark_tables import load_directory, load_from_spark
from headway.errors import NetworkError
from headway.tables import load_table, table_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PEOPLE = pa.table({"sid": pa.array([1, 2], pa.int32()), "name": ["Ann", "Bob"]})


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
