"""The outputs of a run in this process: opened together, completed together, given up together."""

from __future__ import annotations

import contextlib
from typing import Any

import pyarrow as pa

from headway.checking import CheckedNetwork
from headway.clock import Clock
from headway.connectors import TableSink, open_sink
from headway.connectors.base import Writer, prepare
from headway.engines.base import RunSettings
from headway.engines.delivery import Delivery, output_readings
from headway.engines.interrupts import Stopping
from headway.engines.opening import open_letters
from headway.network import thaw
from headway.scheduling.snapshot import OutputReadings
from headway.schema import Schema


class Outlets:
    """Deliveries by output, and the dead letters."""

    def __init__(
        self,
        checked: CheckedNetwork,
        settings: RunSettings,
        clock: Clock,
        stack: contextlib.ExitStack,
        stopping: Stopping | None = None,
    ) -> None:
        """Open all sinks; when `stack` ends before `complete`, they are given up."""
        self._stopping = stopping or Stopping()
        self._checked = checked
        self._settings = settings
        self._tables: dict[str, TableSink] = {}
        self.deliveries: dict[str, Delivery] = {}
        self._completed = False
        self._letter_sink: Writer | None = None
        stack.callback(self._abort)
        with self._stopping.held():  # a file that is made is known to whoever gives it up
            for output in checked.network.outputs:
                schema = checked.output_schema(output.name)
                writer = self._open(output.name, schema, thaw(output.sink))
                self.deliveries[output.name] = Delivery(output, schema, writer, clock, settings.half_life)
            self.letters, self._letter_sink = open_letters(settings)

    def _open(self, name: str, schema: Schema, sink: object) -> Any:
        network = self._checked.network
        if name in self._settings.outputs:
            return open_sink(name, schema, self._settings.outputs[name], trust=network.trust.by_operator())
        if sink is not None:
            return open_sink(name, schema, sink, network.folder, network.trust)
        self._tables[name] = TableSink(schema)
        return self._tables[name]

    @property
    def tuples(self) -> int:
        """Tuples delivered to all outputs."""
        return sum(one.tuples for one in self.deliveries.values())

    def readings(self) -> OutputReadings:
        """Return how the outputs do."""
        return output_readings(list(self.deliveries.values()))

    def complete(self) -> dict[str, pa.Table]:
        """Complete all outputs, or none; return the tables of those that no sink was named for.

        What takes long, and what may fail, comes first, and can be given up. Files then get their names all together.
        """
        for delivery in self.deliveries.values():
            delivery.prepare()
        if self._letter_sink is not None:
            prepare(self._letter_sink)
        self._stopping.shield()
        for delivery in self.deliveries.values():
            delivery.close()
        if self._letter_sink is not None:
            self._letter_sink.close()
        self._completed = True
        return {name: sink.table for name, sink in self._tables.items()}

    def _abort(self) -> None:
        if not self._completed:
            for delivery in self.deliveries.values():
                delivery.abort()
            if self._letter_sink is not None:
                self._letter_sink.abort()
