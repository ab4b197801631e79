"""The log as a Spark streaming source whose offsets are arrival numbers, granted by the scheduler.

`latestOffset` blocks at the gate until the unit is granted a train: that is how Headway decides what a micro-batch
contains, and Spark's offset log how a replay after a crash finds the same batch again.

Spark imports this module in several helper processes per query, which only ask and pass on, hence the late imports.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from headway.engines.spark.gate import Asker
from headway.engines.spark.sealed import Sealed
from headway.errors import RunError

if TYPE_CHECKING:
    import pyarrow as pa

    from headway.engines.spark.native import NativePlan
    from headway.engines.spark.work import Work


@dataclass
class Task(InputPartition):
    """One range of arrival numbers, with the slices of the log that hold it; the first of a batch brings the marks."""

    number: int
    slices: list[Any]
    now: int
    marks: list[Any] | None
    sieves: dict[str, Any] | None = None
    """By source: what the drop box of the unit lets through."""


class LogReader(DataSourceStreamReader):
    """Reads a unit's trains."""

    def __init__(
        self, work: Sealed[Work], native: Sealed[NativePlan] | None, address: tuple[int, str, int], begin: int
    ) -> None:
        """Read for a unit, asking at the gate's address; without a checkpoint begin after the number `begin`."""
        self._begin = begin
        self._work = work
        self._native = native
        self._address = address
        self._asker: Asker | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Leave the connection behind when Spark sends the reader to executors."""
        return {**self.__dict__, "_asker": None}

    def _ask(self, question: dict[str, Any]) -> dict[str, Any]:
        if self._asker is None:
            self._asker = Asker(*self._address)
        answer = self._asker.ask(question)
        if "error" in answer:
            raise RunError(answer["error"])
        return answer

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        """Begin where the run says."""
        return {"upto": self._begin}

    def latestOffset(self, start: dict[str, int], limit: Any) -> dict[str, int]:  # noqa: N802 - Spark's name
        """Wait for a grant."""
        answer = self._ask({"latest": start["upto"]})
        if "stop" in answer:
            if start["upto"] == self._begin:
                # To a query that has not run yet any answer is news: it would write down a micro-batch of nothing.
                raise RuntimeError("the driver has gone")
            return start
        return {"upto": answer["upto"]}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[Task]:
        """Return the tasks of a micro-batch."""
        answer = self._ask({"tasks": [start["upto"], end["upto"]]})
        if "stop" in answer:
            raise RuntimeError("the driver has gone")
        return [Task(at, *task) for at, task in enumerate(answer["tasks"])]

    def commit(self, end: dict[str, int]) -> None:
        """Do nothing: the driver learns from the next question what is committed."""

    def read(self, partition: Task) -> Iterator[pa.RecordBatch]:  # type: ignore[override]
        """Read a task's slices and run the front over them."""
        from headway.engines.spark.tasks import read_task

        return read_task(self._work, self._native, partition)


def make_source(
    name: str,
    schema: str,
    work: Sealed[Work],
    native: Sealed[NativePlan] | None,
    address: tuple[int, str, int],
    begin: int,
) -> type[DataSource]:
    """Return a data source class for one unit. It is made here, so that Spark sends it with what it refers to."""

    class LogSource(DataSource):
        @classmethod
        def name(cls) -> str:
            return name

        def schema(self) -> str:
            return rows

        def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
            return LogReader(work, native, address, begin)

    rows = schema
    return LogSource
