"""Looks after the queries of a run: raises what failed, and starts again what has only lost a process."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from headway.clock import SECOND, stopwatch
from headway.engines.spark.failures import (
    STOPPED,
    describe_failure,
    describe_losses,
    describe_slow,
    describe_stopped,
    is_loss,
    is_slow,
)
from headway.engines.spark.gate import Gate
from headway.engines.spark.queries import PATIENCE, Queries
from headway.engines.spark.units import RunningUnit
from headway.errors import RunError

_log = logging.getLogger("headway")
_LOOK_EVERY = SECOND // 5
"""How often queries are looked at: each look is a call into the JVM."""
_LOSSES = 3
"""How often a query may lose a process without committing anything in between."""


class Watch:
    """Used by the scheduler thread."""

    def __init__(self, queries: Queries, gate: Gate, units: Sequence[RunningUnit]) -> None:
        """Look after these units."""
        self._queries, self._gate, self._units = queries, gate, units
        self._next = 0

    def look(self) -> None:
        """Look at all queries, if it is time; raises a RunError for one that failed."""
        if stopwatch() < self._next:
            return
        self._next = stopwatch() + _LOOK_EVERY
        if self._queries.stopped:  # a query that waits at the gate does not notice
            raise RunError(describe_stopped(self._units[0].cut.name))
        failed = {unit.number: error for unit in self._units if (error := self._queries.failure(unit)) is not None}
        for number, error in failed.items():
            if not is_loss(error):
                self._give_up(self._units[number].cut.name, error)
        # One after the other, as at the beginning: each starts a process.
        starting = (unit for unit in self._units if unit.query is not None and not self._gate.met(unit.number))
        if failed and all(unit.number in failed for unit in starting):
            number, error = min(failed.items())
            self._revive(self._units[number], error)

    def _give_up(self, name: str, error: str) -> None:
        if error == STOPPED or self._queries.stopped or "stopped SparkContext" in error:
            raise RunError(describe_stopped(name))
        raise RunError(describe_failure(name, error))

    def _revive(self, unit: RunningUnit, error: str) -> None:
        """Start a query again that has lost a process: it repeats its last micro-batch.

        Who did not get the time to start has lost nothing, and is started again for much longer.
        """
        name = unit.cut.name
        if is_slow(error):
            unit.slow_since = unit.slow_since or stopwatch()
            took = stopwatch() - unit.slow_since
            if took > PATIENCE:
                raise RunError(describe_slow(name, took / SECOND))
            _log.warning("'%s' did not start within Spark's ten seconds: a busy machine? It is started again", name)
        else:
            unit.losses += 1
            if unit.losses > _LOSSES:
                raise RunError(describe_losses(name, unit.losses))
            _log.warning("'%s' has lost a process; it goes on where it last committed", name)
        unit.asking, unit.replayed, unit.position = False, True, unit.committed
        unit.restarts += 1
        self._queries.restart(unit)
