"""Spark's batch writers as sinks, with a real session."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import headway as hw
from headway.connectors import open_sink, output_files
from headway.connectors.spark import SparkSink
from headway.errors import OutputError
from headway.network.schema import Schema
from headway.network.trust import Trust
from tests.connectors.helpers import EVERY_TYPE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = Schema.parse("a int, b string")


def _batch(*values: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"a": list(values), "b": [str(one) for one in values]}, SCHEMA.to_arrow())


def _open(settings: object, base: Path | None = None, schema: Schema = SCHEMA) -> SparkSink:
    sink = open_sink("o", schema, {"spark": settings}, base=base)
    assert isinstance(sink, SparkSink)
    return sink


def test_a_repeated_micro_batch_is_there_once_and_in_order(spark: SparkSession, tmp_path: Path) -> None:
    batches = ((0, (3, 1, 2)), (1, (5, 4)))
    for part in (batches, batches[1:]):  # the second process repeats the last micro-batch
        sink = _open({"format": "parquet", "path": "out"}, tmp_path)
        for batch, values in part:
            sink.begin("0f", batch)
            sink.write(_batch(*values))
        sink.close()
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["batch=0f-0000000000", "batch=0f-0000000001"]
    found = spark.read.parquet(str(tmp_path / "out")).toArrow().to_pylist()
    by_batch = [[row["a"] for row in found if row["batch"] == f"0f-000000000{at}"] for at in range(2)]
    assert by_batch == [[3, 1, 2], [5, 4]]


def test_without_micro_batches_tuples_are_gathered(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output_files, "GROUP_ROWS", 3)
    for _ in range(2):  # another run adds to it
        sink = _open({"format": "json", "path": f"{tmp_path}/out/"})
        for at in range(4):
            sink.write(_batch(at))
        sink.close()
        sink.close()
    assert len(list((tmp_path / "out").iterdir())) == 4
    found = spark.read.json(str(tmp_path / "out")).toArrow().column("a").to_pylist()
    assert sorted(found) == [0, 0, 1, 1, 2, 2, 3, 3]


def test_every_type(spark: SparkSession, tmp_path: Path) -> None:
    row = dict.fromkeys(EVERY_TYPE.names)
    table = pa.Table.from_pylist([row], schema=EVERY_TYPE.to_arrow())
    sink = _open({"format": "parquet", "path": str(tmp_path / "out")}, schema=EVERY_TYPE)
    sink.write(table.to_batches()[0])
    sink.close()
    written = spark.read.parquet(str(tmp_path / "out")).drop("batch")
    given = [f"{field.name} {field.dataType.simpleString()}" for field in written.schema.fields]
    assert ", ".join(given) == str(EVERY_TYPE)


def test_a_field_named_batch(spark: SparkSession, tmp_path: Path) -> None:
    schema = Schema.parse("batch int")
    sink = _open({"format": "orc", "path": str(tmp_path / "out")}, schema=schema)
    sink.write(pa.RecordBatch.from_pydict({"batch": [7]}, schema.to_arrow()))
    sink.close()
    found = spark.read.orc(str(tmp_path / "out")).toArrow()
    assert found.column_names == ["batch", "headway_batch"]
    assert found.column("batch").to_pylist() == [7]


def test_jdbc(spark: SparkSession, tmp_path: Path) -> None:
    machine: Any = spark._jvm
    machine.java.lang.System.setProperty("derby.stream.error.file", str(tmp_path / "derby.log"))
    url = f"jdbc:derby:{tmp_path}/db;create=true"
    sink = _open({"format": "jdbc", "options": {"url": url, "dbtable": "alarms"}})
    for batch in range(2):
        sink.begin("0f", batch)
        sink.write(_batch(batch))
    sink.close()
    found = spark.read.format("jdbc").options(url=url, dbtable="alarms").load().toArrow()
    assert sorted(found.column(0).to_pylist()) == [0, 1]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("parquet", "output 'o': spark expects a mapping with the keys format, path, table, options, mode"),
        ({}, "spark: give a format, such as parquet"),
        ({"format": "jdbc", "modus": "append"}, "unknown key 'modus'; did you mean 'mode'"),
        ({"format": "jdbc", "mode": "apend"}, "unknown mode 'apend'; did you mean 'append'"),
        ({"format": "parquet", "path": 5}, "path is text"),
        ({"format": "parquet", "path": "a", "table": "b"}, "give a path or a table, not both"),
        ({"format": "parquet", "path": "a", "mode": "overwrite"}, "mode overwrite cannot go with files"),
        ({"format": "jdbc", "options": {"x": None}}, "option 'x' is text, a number, true or false"),
        ({"format": "nonesuch"}, "unknown format 'nonesuch'; choices: .*--allow-format nonesuch lets it be used"),
        ({"format": "jdbc", "options": {"driver": "x.Y"}}, "option 'driver' of jdbc is not known to be harmless"),
        ({"format": "parquet", "table": "parquet.`/etc/x`"}, "table is a name such as alarms or shop.alarms"),
    ],
)
def test_settings(settings: object, message: str) -> None:
    with pytest.raises(OutputError, match=message):
        open_sink("o", SCHEMA, {"spark": settings})


def test_what_spark_cannot_write(spark: SparkSession, tmp_path: Path) -> None:
    sink = open_sink("o", SCHEMA, {"spark": {"format": "nonesuch"}}, trust=Trust(own=True, formats=("nonesuch",)))
    assert isinstance(sink, SparkSink)
    sink.begin("0f", 0)
    with pytest.raises(OutputError, match=r"output 'o': Spark's 'nonesuch' cannot write: .*nonesuch") as caught:
        sink.write(_batch(1))
    assert "\n" not in str(caught.value)


def test_in_a_network(spark: SparkSession, tmp_path: Path) -> None:
    network = {
        "network": "n",
        "sources": {"s": {"schema": {"a": "int"}}},
        "boxes": {"f": {"op": "filter", "in": "s", "where": "a > 1"}},
        "outputs": {"o": {"from": "f"}},
    }
    for engine in ("local", "spark"):
        path = str(tmp_path / engine)
        outputs = {"o": {"spark": {"format": "parquet", "path": path}}}
        hw.run(network, {"s": [{"a": 1}, {"a": 2}, {"a": 3}]}, engine=engine, outputs=outputs)
        assert sorted(row["a"] for row in spark.read.parquet(path).toArrow().to_pylist()) == [2, 3]
