"""The outputs of a run on Spark: opened together, completed together, given up together."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence

import pyarrow as pa

from headway.checking import CheckedNetwork
from headway.clock import Clock
from headway.connectors.base import Writer, prepare
from headway.engines.base import RunSettings
from headway.engines.interrupts import Stopping
from headway.engines.opening import open_letters
from headway.engines.spark.results import Result
from headway.network import thaw
from headway.storage.filesystems import Place


class SparkOutlets:
    """Results by output, and the dead letters."""

    def __init__(
        self,
        checked: CheckedNetwork,
        settings: RunSettings,
        clock: Clock,
        place: Place | None,
        delivered: Callable[[str], Sequence[str]],
        stack: contextlib.ExitStack,
        stopping: Stopping,
    ) -> None:
        """Open all sinks, and keep results at `place` if there is one; if `stack` ends first, they are given up.

        `delivered` tells of an output which files an earlier process has delivered.
        """
        self._stopping = stopping
        self.results: dict[str, Result] = {}
        self._letter_sink: Writer | None = None
        self._completed = False
        stack.callback(self._abort)
        with stopping.held():  # a file that is made is known to whoever gives it up
            network, half_life = checked.network, settings.half_life
            for output in network.outputs:
                given = output.name in settings.outputs
                what = settings.outputs[output.name] if given else thaw(output.sink)
                if given and what is None:
                    what = {"discard": None}
                schema = checked.output_schema(output.name)
                base, trust = (None, network.trust.by_operator()) if given else (network.folder, network.trust)
                old = delivered(output.name)
                self.results[output.name] = Result(output, schema, what, base, clock, place, half_life, old, trust)
            self.letters, self._letter_sink = open_letters(settings)

    def complete(self) -> dict[str, pa.Table]:
        """Complete all outputs, or none; return the tables of those that no sink was named for.

        What takes long, and what may fail, comes first, and can be given up. Files then get their names all together.
        """
        for result in self.results.values():
            result.prepare()
        if self._letter_sink is not None:
            prepare(self._letter_sink)
        self._stopping.shield()
        for result in self.results.values():
            result.close()
        if self._letter_sink is not None:
            self._letter_sink.close()
        self._completed = True
        return {name: one.table.table for name, one in self.results.items() if one.table is not None}

    def _abort(self) -> None:
        if not self._completed:
            for result in self.results.values():
                result.abort()
            if self._letter_sink is not None:
                self._letter_sink.abort()
