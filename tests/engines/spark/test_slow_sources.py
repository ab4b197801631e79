"""A source that is read in turn and takes its time: units do not wait for its end, and what arrived becomes durable."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

import headway as hw

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FIELDS = pa.schema({"v": pa.int64()})
NETWORK = {
    "network": "slow",
    "sources": {"s": {"schema": {"v": "bigint"}}},
    "boxes": {"twice": {"op": "map", "in": "s", "select": "2 * v as w"}},
    "outputs": {"twice": {"from": "twice", "qos": {"latency": [[0, 1], [0.2, 1], [2, 0]]}}},
}


def test_results_come_before_a_slow_source_ends(spark: SparkSession) -> None:
    taken: list[int] = []
    delivered: list[int] = []

    def pieces() -> Iterator[pa.RecordBatch]:
        while len(delivered) < 2 and len(taken) < 300:  # it ends when it has seen what it waits for, or gives up
            time.sleep(0.1)
            taken.append(len(taken))
            yield pa.record_batch([pa.array(taken[-1:])], schema=FIELDS)

    reader = pa.RecordBatchReader.from_batches(FIELDS, pieces())
    outputs = {"twice": lambda batch: delivered.append(batch.num_rows)}
    hw.run(NETWORK, {"s": reader}, engine="spark", outputs=outputs)
    assert sum(delivered) == len(taken) < 300
