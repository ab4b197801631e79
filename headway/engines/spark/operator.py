"""The one stateful operator of a unit: its keys are shards, its state a blob per shard.

Spark imports this module in helper processes too that never run a task, hence the late imports.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from headway.engines.spark.sealed import Sealed

if TYPE_CHECKING:
    import pandas as pd

    from headway.engines.spark.work import Work


class ShardProcessor(StatefulProcessor):
    """Runs a shard's kernels over the trains of a micro-batch, on Spark's fault-tolerant state."""

    def __init__(self, work: Sealed[Work]) -> None:
        """Run this unit's shards."""
        self._work = work

    def init(self, handle: Any) -> None:
        """Find the state."""
        self._saved = handle.getValueState("shard", "state binary")

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timers: Any) -> Iterator[pd.DataFrame]:  # noqa: N802
        """Process one micro-batch of one shard."""
        from headway.engines.spark.tasks import run_shard

        saved = self._saved.get()
        out, state = run_shard(self._work, int(key[0]), rows, None if saved is None else bytes(saved[0]))
        if state is not None:
            self._saved.update((state,))
        yield out

    def close(self) -> None:
        """Do nothing."""
