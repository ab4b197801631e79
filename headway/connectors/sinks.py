"""Sinks in memory: a table, a function, or nowhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from headway.connectors.base import SinkRequest, Writer, permit_anyone, register_sink
from headway.errors import HeadwayError, OutputError
from headway.schema import Schema


class TableSink:
    """Collects an output as an Arrow table."""

    def __init__(self, schema: Schema) -> None:
        """Collect tuples of this schema."""
        self._schema = schema.to_arrow()
        self._batches: list[pa.RecordBatch] = []
        self.count = 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Keep the batch."""
        self.count += batch.num_rows
        self._batches.append(batch)

    def close(self) -> None:
        """Do nothing: the table is complete at any time."""

    def abort(self) -> None:
        """Let go of what was collected."""
        self._batches, self.count = [], 0

    @property
    def table(self) -> pa.Table:
        """What was written so far."""
        return pa.Table.from_batches(self._batches, schema=self._schema)


class DiscardSink:
    """Counts the tuples of an output and lets them go."""

    def __init__(self) -> None:
        """Count from 0."""
        self.count = 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Count the tuples."""
        self.count += batch.num_rows

    def close(self) -> None:
        """Do nothing."""

    def abort(self) -> None:
        """Do nothing."""


class CallbackSink:
    """Hands each batch of an output to a function; the run waits until it returns."""

    def __init__(self, name: str, function: Callable[[pa.RecordBatch], object]) -> None:
        """Call `function` with each batch."""
        self._name = name
        self._function = function

    def write(self, batch: pa.RecordBatch) -> None:
        """Call the function; what it raises becomes an OutputError."""
        try:
            self._function(batch)
        except HeadwayError:
            raise
        except Exception as error:
            raise OutputError(f"output '{self._name}': the callback raised {type(error).__name__}: {error}") from error

    def close(self) -> None:
        """Do nothing."""

    def abort(self) -> None:
        """Do nothing."""


def _discard(request: SinkRequest) -> Writer:
    return DiscardSink()


def _callback(request: SinkRequest) -> Writer:
    function: Any = request.settings
    if not callable(function):
        raise OutputError(f"{request.who}: a callback is a function of a record batch, not {function!r}")
    return CallbackSink(request.name, function)


register_sink("discard", _discard, permit=permit_anyone)
register_sink("callback", _callback, permit=permit_anyone)  # a file holds no functions
