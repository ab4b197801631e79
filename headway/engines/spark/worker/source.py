"""What Spark calls: a unit's source, whose offsets are arrival numbers, and its only stateful operator, the shards.

`latestOffset` blocks at the gate until the unit is granted a train: this is how Headway determines the contents of a
micro-batch, and Spark's offset log makes a replay after a crash use the same ones.

Spark imports this module in several helper processes per query, which only ask for grants and pass the work on.
Importing all of Headway took each of them a second: hence the late imports, and work that travels pickled and is
unpickled where it is used. Like Spark's own code objects, it comes from the driver over authenticated connections; it
is never written to a state directory or read from one.
"""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from headway.errors import RunError

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from headway.engines.spark.wire.messages import Work


ROWS = "shard int, lane int, first long, train binary"
"""The schema of what travels: the shard it is for, the lane, the first arrival number, and the packed train."""

Content = TypeVar("Content")


class Pickled(Generic[Content]):
    """A value that travels pickled, with a key that identifies it across processes; unpickled on first use."""

    def __init__(self, key: str, content: Content) -> None:
        """Wrap a value."""
        self.key = key
        self._content: Content | None = content
        self._packed = b""

    def open(self) -> Content:
        """Return the value."""
        if self._content is None:
            from pyspark import cloudpickle

            content: Content = cloudpickle.loads(self._packed)
            self._content = content
        return self._content

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the value with cloudpickle, as Spark does with everything that it sends."""
        if not self._packed:
            from pyspark import cloudpickle

            self._packed = cloudpickle.dumps(self._content)  # type: ignore[no-untyped-call]
        return {"key": self.key, "_content": None, "_packed": self._packed}


class Lines:
    """Reads the lines of JSON on a connection."""

    def __init__(self, connection: socket.socket, rest: bytes = b"") -> None:
        """Continue with a connection of which `rest` was already read."""
        self.connection = connection
        self._rest = bytearray(rest)

    def next(self, limit: int | None = None) -> bytes | None:
        """Return the next line; None at the end, or if it is longer than `limit`. Blocks."""
        seen = 0
        while (end := self._rest.find(b"\n", seen)) < 0:
            seen = len(self._rest)
            if limit is not None and seen > limit:
                return None
            came = self.connection.recv(1 << 16)
            if not came:
                return None
            self._rest += came
        line = bytes(self._rest[:end])
        del self._rest[: end + 1]
        return line


def send_line(connection: socket.socket, message: dict[str, Any]) -> None:
    """Send one line of JSON."""
    with contextlib.suppress(OSError):  # a peer that has disconnected needs no answer
        connection.sendall(json.dumps(message).encode() + b"\n")


_TRIES = 40
_PAUSE = 0.05


class GateClient:
    """A query's side of the gate, in the process of its source."""

    def __init__(self, port: int, secret: str, unit: int) -> None:
        """Ask at this port on behalf of a unit; connects with the first question."""
        self._address = ("127.0.0.1", port)
        self._hello = {"secret": secret, "unit": unit}
        self._lines: Lines | None = None

    def ask(self, question: dict[str, Any]) -> dict[str, Any]:
        """Ask and wait for the answer; if the driver has gone, the answer is to stop."""
        line = None
        with contextlib.suppress(OSError):
            self._lines = self._lines or self._connect()
            if self._lines is not None:
                send_line(self._lines.connection, question)
                line = self._lines.next()
        answer: dict[str, Any] = json.loads(line) if line else {"stop": True}
        return answer

    def _connect(self) -> Lines | None:
        """Return an authenticated connection, or None; if strangers crowd the gate, this may take several attempts."""
        for _ in range(_TRIES):
            connection = socket.create_connection(self._address)  # raises if the driver has gone
            lines, answer = Lines(connection), None
            send_line(connection, self._hello)
            with contextlib.suppress(OSError):
                answer = lines.next()
            if answer is not None and json.loads(answer).get("welcome"):
                return lines
            connection.close()
            if answer is not None:
                return None
            threading.Event().wait(_PAUSE)
        return None

    def close(self) -> None:
        """Close the connection."""
        if self._lines is not None:
            self._lines.connection.close()
            self._lines = None


@dataclass
class Task(InputPartition):
    """One range of arrival numbers, with the slices of the log that hold it; a batch's first task has the marks."""

    number: int
    slices: list[Any]
    now: int
    marks: list[Any] | None
    sieves: dict[str, Any] | None = None
    """By source: the sieve of the unit's drop box."""


class LogReader(DataSourceStreamReader):
    """Reads a unit's trains from the log."""

    def __init__(self, work: Pickled[Work], address: tuple[int, str, int], begin: int) -> None:
        """Read for a unit, with the gate at `address`; without a checkpoint start after the number `begin`."""
        self._begin = begin
        self._work = work
        self._address = address
        self._gate: GateClient | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Omit the connection when Spark sends the reader to executors."""
        return {**self.__dict__, "_gate": None}

    def _ask(self, question: dict[str, Any]) -> dict[str, Any]:
        if self._gate is None:
            self._gate = GateClient(*self._address)
        answer = self._gate.ask(question)
        if "error" in answer:
            raise RunError(answer["error"])
        return answer

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        """Return the run's beginning."""
        return {"upto": self._begin}

    def latestOffset(self, start: dict[str, int], limit: Any) -> dict[str, int]:  # noqa: N802 - Spark's name
        """Wait for a grant, and return its last arrival number."""
        answer = self._ask({"latest": start["upto"]})
        if "stop" in answer:
            if start["upto"] == self._begin:
                # Any other answer would make a query that has not run yet record an empty micro-batch.
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
        """Do nothing: the next question tells the driver what is committed."""

    def read(self, partition: Task) -> Iterator[pa.RecordBatch]:  # type: ignore[override]
        """Read a task's slices and run the front over them."""
        from headway.engines.spark.worker.tasks import read_task

        return read_task(self._work, partition)


def make_source(
    name: str, schema: str, work: Pickled[Work], address: tuple[int, str, int], begin: int
) -> type[DataSource]:
    """Return a data source class for one unit. It is a local class, so that Spark sends all that it refers to."""

    class LogSource(DataSource):
        @classmethod
        def name(cls) -> str:
            return name

        def schema(self) -> str:
            return rows

        def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
            return LogReader(work, address, begin)

    rows = schema
    return LogSource


class ShardProcessor(StatefulProcessor):
    """The stateful operator: its keys are shards, its state is one blob per shard.

    Runs a shard's kernels over the trains of a micro-batch, on Spark's fault-tolerant state.
    """

    def __init__(self, work: Pickled[Work]) -> None:
        """Run this unit's shards."""
        self._work = work

    def init(self, handle: Any) -> None:
        """Bind the state."""
        self._saved = handle.getValueState("shard", "state binary")

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timers: Any) -> Iterator[pd.DataFrame]:  # noqa: N802
        """Process one micro-batch of one shard."""
        from headway.engines.spark.worker.tasks import run_shard

        saved = self._saved.get()
        out, state = run_shard(self._work, int(key[0]), rows, None if saved is None else bytes(saved[0]))
        if state is not None:
            self._saved.update((state,))
        yield out

    def close(self) -> None:
        """Do nothing."""
