"""The log as a Spark streaming source whose offsets are arrival numbers, granted by the scheduler.

`latestOffset` blocks at the gate until the unit is granted a train: that is how Headway decides what a micro-batch
contains, and Spark's offset log how a replay after a crash finds the same batch again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from headway.engines.spark.exchange import send
from headway.engines.spark.gate import Asker
from headway.engines.spark.rows import Marks, Row, to_arrow_rows
from headway.engines.spark.unitcode import unit_code
from headway.engines.spark.work import ROWS, Work
from headway.storage.segments import Slice, read_slice
from headway.trains import Tick, Train, join_trains

if TYPE_CHECKING:
    from headway.engines.spark.native import NativePlan


@dataclass
class Task(InputPartition):
    """One range of arrival numbers, with the slices of the log that hold it; the first of a batch brings the marks."""

    number: int
    slices: list[Any]
    now: int
    marks: list[Any] | None


class LogReader(DataSourceStreamReader):
    """Reads a unit's trains."""

    def __init__(self, work: Work, native: NativePlan | None, port: int, secret: str, unit: int, begin: int) -> None:
        """Read for a unit, asking at the gate; without a checkpoint begin after the number `begin`."""
        self._begin = begin
        self._work = work
        self._native = native
        self._gate = port, secret, unit
        self._asker: Asker | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Leave the connection behind when Spark sends the reader to executors."""
        return {**self.__dict__, "_asker": None}

    def _ask(self, question: dict[str, Any]) -> dict[str, Any]:
        if self._asker is None:
            self._asker = Asker(*self._gate)
        answer = self._asker.ask(question)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        """Begin where the run says."""
        return {"upto": self._begin}

    def latestOffset(self, start: dict[str, int], limit: Any) -> dict[str, int]:  # noqa: N802 - Spark's name
        """Wait for a grant."""
        answer = self._ask({"latest": start["upto"]})
        return start if "stop" in answer else {"upto": answer["upto"]}

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
        code = unit_code(self._work)
        parts: dict[str, list[Train]] = {}
        for fields in partition.slices:
            one = Slice(*fields)
            parts.setdefault(one.source, []).append(read_slice(one, code.checked.arcs[one.source]))
        if self._native is not None:
            for source, trains in parts.items():
                for train in trains:
                    yield self._native.scan_batch(source, train)
            return
        schemas = {name: code.checked.arcs[name] for name in self._work.unit.sources}
        trains_of = {
            name: join_trains(parts[name]) if name in parts else Train.empty(schema) for name, schema in schemas.items()
        }
        rows: list[Row] = []
        if partition.marks is not None and self._work.unit.stateful:
            progress, ticks, end = partition.marks
            rows += code.marks(Marks(progress, tuple(Tick(*tick) for tick in ticks), end, partition.now))
        for row in code.front(trains_of, partition.now, partition.number):
            rows.append(send(row, self._work.exchange))
            if len(rows[-1].train) > 1 << 20:
                yield to_arrow_rows(rows)
                rows = []
        if rows:
            yield to_arrow_rows(rows)


def make_source(
    name: str, work: Work, native: NativePlan | None, port: int, secret: str, unit: int, begin: int
) -> type[DataSource]:
    """Return a data source class for one unit. It is made here, so that Spark sends it with what it refers to."""

    class LogSource(DataSource):
        @classmethod
        def name(cls) -> str:
            return name

        def schema(self) -> str:
            return ROWS if native is None else native.scan_schema

        def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
            return LogReader(work, native, port, secret, unit, begin)

    return LogSource
