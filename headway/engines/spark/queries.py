"""The streaming queries of a run: started, watched and stopped."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headway.clock import SECOND, stopwatch
from headway.engines.spark.failures import STOPPED, describe_failure, is_damage, is_loss, is_slow
from headway.engines.spark.gate import Gate
from headway.engines.spark.rows import Row
from headway.engines.spark.sealed import Sealed
from headway.engines.spark.session import STREAMING, jvm_alive, open_session
from headway.engines.spark.units import RunningUnit
from headway.engines.spark.wire import ROWS
from headway.engines.spark.work import Work
from headway.errors import HeadwayError, RunError
from headway.trains import Train

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from headway.engines.spark.native import NativePlan

Deliver = Callable[[RunningUnit, Work, list[Row], Mapping[int, Train], int], None]
"""Takes a micro-batch: the rows that travelled, or the trains of lanes that Spark computed itself, and its number."""

_MOST_SHARDS = 64
_ATTEMPTS = 3
"""How often a query is started before a process that is lost meanwhile counts as a failure."""
PATIENCE = 300 * SECOND
"""For how long processes that Spark does not give the time to start are started again."""
_STOP_PATIENCE = 30.0
"""Seconds for which a query may take to stop; Spark itself gives up after 20."""
_PARTING = 2.0
"""Seconds by which the connections of a JVM may break before it is gone."""
_warm: set[str] = set()


@dataclass(frozen=True)
class Launch:
    """What a unit's query is started with; with a native plan, Spark itself runs the boxes."""

    unit: RunningUnit
    work: Work
    native: NativePlan | None
    checkpoint: str
    gate: Gate
    deliver: Deliver


class Queries:
    """Spark, as far as a run needs it."""

    def __init__(self, master: str | None, settings: Mapping[str, str] | None = None) -> None:
        """Open a session, with the user's own settings of Spark."""
        self._session = open_session(master, settings)
        context = self._session.sparkContext
        self.master: str = context.master or ""
        self.parallelism: int = max(1, min(_MOST_SHARDS, context.defaultParallelism))
        self.default_workers = self.parallelism
        """Half of a step's time is not computing: what another unit does meanwhile costs little. With one worker
        instead of two on two cores, urgent results waited for long steps of others (5 s instead of 3 s at worst)."""
        self._application: str = context.applicationId
        self._launches: dict[int, Launch] = {}

    @property
    def executors(self) -> int:
        """How many processes can run tasks now."""
        context: Any = self._session.sparkContext
        known = len(context._jsc.sc().statusTracker().getExecutorInfos())
        return known if self.master.startswith("local") else known - 1  # one of them is the driver

    @property
    def warm(self) -> bool:
        """Whether a query has run in this application: the first one loads classes for all."""
        return self._application in _warm

    @warm.setter
    def warm(self, value: bool) -> None:
        if value:
            _warm.add(self._application)

    def start(self, launch: Launch) -> None:
        """Start a unit's query."""
        self._launches[launch.unit.number] = launch
        self.restart(launch.unit)

    def restart(self, unit: RunningUnit) -> None:
        """Start a unit's query again, where its checkpoint says."""
        left, until = _ATTEMPTS, stopwatch() + PATIENCE
        while True:
            try:
                self._launches[unit.number].gate.forget(unit.number)
                unit.query = self._start(self._launches[unit.number])
                return
            except Exception as error:
                if is_damage(str(error)):
                    raise RunError(describe_failure(unit.cut.name, str(error))) from error
                left -= not is_slow(str(error))
                if not left or stopwatch() > until or not is_loss(str(error)):
                    raise

    def _start(self, launch: Launch) -> StreamingQuery:
        from headway.engines.spark.operator import ShardProcessor
        from headway.engines.spark.source import make_source

        session, unit, work, native = self._session, launch.unit, launch.work, launch.native
        for name, value in STREAMING.items():
            session.conf.set(name, value)
        session.conf.set("spark.sql.shuffle.partitions", str(work.shards))
        # A row is a train, which may be large, or, where Spark runs the boxes, a tuple.
        session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "1000" if native is None else "100000")
        format_ = f"headway-{work.run}"
        sealed = Sealed(work.key, work)
        plan = None if native is None else Sealed(f"{work.key} native", native)
        schema = ROWS if native is None else native.scan_schema
        address = launch.gate.port, launch.gate.secret, unit.number
        session.dataSource.register(make_source(format_, schema, sealed, plan, address, unit.begin))
        frame = session.readStream.format(format_).load()
        if native is not None:
            frame = native.frame(frame)
        elif unit.cut.stateful:
            frame = frame.groupBy("shard").transformWithStateInPandas(ShardProcessor(sealed), ROWS, "append", "none")

        def take(batch: DataFrame, number: int) -> None:
            table = batch.toArrow()
            if native is not None:
                launch.deliver(unit, work, [], native.split(table), number)
                return
            columns = [table.column(name).to_pylist() for name in ("shard", "lane", "first", "train")]
            launch.deliver(unit, work, [Row(*fields) for fields in zip(*columns, strict=True)], {}, number)

        context: Any = session.sparkContext
        context.setLocalProperty("spark.scheduler.pool", f"unit-{unit.number}")
        try:
            return (
                frame.writeStream.queryName(f"{unit.cut.name} ({work.run[:8]})")
                .option("checkpointLocation", launch.checkpoint)
                .foreachBatch(take)
                .start()
            )
        finally:
            context.setLocalProperty("spark.scheduler.pool", None)

    def alive(self, error: Exception) -> bool:
        """Return whether Spark's JVM still runs after an error; True where that cannot be known."""
        broken = not isinstance(error, HeadwayError) or "Py4J" in str(error)
        return jvm_alive(_PARTING if broken else 0.0)

    @property
    def stopped(self) -> bool:
        """Whether somebody has stopped the session, as far as Python knows without asking the JVM."""
        context: Any = self._session.sparkContext
        return getattr(context, "_jsc", None) is None

    def failure(self, unit: RunningUnit) -> str | None:
        """Return why a query has failed, or None."""
        if unit.query is None or unit.query.isActive:
            return None
        error = unit.query.exception()
        if error is None:
            return STOPPED
        texts, cause = [str(error)], unit.query._jsq.exception().get().getCause()
        while cause is not None:  # the message names a lost process only by the class of a cause
            texts.append(f"caused by {cause.toString()}")
            cause = cause.getCause()
        return "\n".join(texts)

    def stop(self) -> None:
        """Stop all queries; the gate must be closed before, so that none of them waits there."""

        def stop(unit: RunningUnit) -> None:
            with contextlib.suppress(Exception):
                unit.query.stop()

        units = [launch.unit for launch in self._launches.values()]
        threads = [threading.Thread(target=stop, args=(unit,), daemon=True) for unit in units]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(_STOP_PATIENCE)  # where the session was stopped before, nothing answers
        self._launches = {}
