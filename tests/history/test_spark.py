"""Spark reads files of history as they are."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from headway.history import NUMBER, PLACE, STAMP, Kept, read_files, write_file
from headway.storage.filesystems import locate
from tests.connectors.helpers import EVERY_TYPE
from tests.history.test_files import NAME, as_train, example


@pytest.mark.slow
def test_spark_reads_them_as_they_are(tmp_path: Path, spark: SparkSession) -> None:
    place, file, kept = example(tmp_path)
    frame = spark.read.parquet(str(tmp_path / NAME))
    assert frame.columns == ["sid", "time", "v", NUMBER, PLACE, STAMP]
    expected = sorted(number for train in read_files(place, [file], kept, key=17) for number in train.numbers.tolist())
    assert sorted(row[NUMBER] for row in frame.where("sid = 17").collect()) == expected


@pytest.mark.slow
def test_spark_reads_every_type(tmp_path: Path, spark: SparkSession) -> None:
    row = {
        **{"b": True, "i8": 1, "i16": 2, "i32": 3, "i64": 4, "f": 0.5, "d": 0.25, "s": "text", "y": b"bytes"},
        **{"day": date(2020, 1, 2), "t": datetime(2020, 1, 2, tzinfo=UTC), "n": datetime(2020, 1, 2)},
        **{"m": Decimal("1.5"), "l": [1, None], "r": {"x": 1, "y": None}, "q": [datetime(2020, 1, 2, tzinfo=UTC)]},
    }
    table = pa.Table.from_pylist([row, dict.fromkeys(row)], EVERY_TYPE.to_arrow())
    write_file(locate(str(tmp_path)), NAME, Kept(EVERY_TYPE, "s"), as_train(table))
    frame = spark.read.parquet(str(tmp_path / NAME)).orderBy(NUMBER)
    assert [row["s"] for row in frame.collect()] == table.column("s").to_pylist()
    assert [dict(frame.dtypes)[name] for name in ("i64", "t", "m", "l", STAMP)] == [
        "bigint",
        "timestamp",
        "decimal(12,3)",
        "array<int>",
        "bigint",
    ]
