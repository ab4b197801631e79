"""The one stateful operator of a unit: its keys are shards, its state a blob per shard."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from headway.engines.spark.exchange import receive, send
from headway.engines.spark.rows import Row
from headway.engines.spark.unitcode import unit_code
from headway.engines.spark.work import Work


class ShardProcessor(StatefulProcessor):
    """Runs a shard's kernels over the trains of a micro-batch, on Spark's fault-tolerant state."""

    def __init__(self, work: Work) -> None:
        """Run this unit's shards."""
        self._work = work

    def init(self, handle: Any) -> None:
        """Find the state."""
        self._saved = handle.getValueState("shard", "state binary")

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timers: Any) -> Iterator[pd.DataFrame]:  # noqa: N802
        """Process one micro-batch of one shard."""
        code = unit_code(self._work)
        arrived = [
            self._receive(Row(int(shard), int(lane), int(first), bytes(train)))
            for frame in rows
            for shard, lane, first, train in zip(frame.shard, frame.lane, frame["first"], frame.train, strict=True)
        ]
        saved = self._saved.get()
        out, state = code.shard(int(key[0]), arrived, None if saved is None else bytes(saved[0]))
        if state is not None:
            self._saved.update((state,))
        out = [send(row, self._work.exchange) for row in out]
        yield pd.DataFrame(
            {
                "shard": pd.Series([row.shard for row in out], dtype="int32"),
                "lane": pd.Series([row.lane for row in out], dtype="int32"),
                "first": pd.Series([row.first for row in out], dtype="int64"),
                "train": pd.Series([bytes(row.train) for row in out], dtype="object"),
            }
        )

    def _receive(self, row: Row) -> Row:
        """Return a row with its train, unless it only passes through on its way to the driver."""
        passing = row.lane < 0 or self._work.lanes[row.lane].out
        return row if passing else receive(row, self._work.exchange)

    def close(self) -> None:
        """Do nothing."""
