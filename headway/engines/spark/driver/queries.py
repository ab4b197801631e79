"""The streaming queries of a run: started, watched, stopped, and what went wrong with them in plain words."""

from __future__ import annotations

import contextlib
import logging
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headway.clock import SECOND, stopwatch
from headway.engines.spark.driver.gate import Gate
from headway.engines.spark.driver.session import STREAMING, jvm_alive, open_session
from headway.engines.spark.driver.units import RunningUnit
from headway.engines.spark.wire.packing import Row
from headway.engines.spark.wire.protocol import ROWS, Pickled
from headway.engines.spark.wire.work import Work
from headway.errors import HeadwayError, RunError
from headway.trains import Train

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from headway.engines.spark.wire.native import NativePlan

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
        from headway.engines.spark.worker.source import ShardProcessor, make_source

        session, unit, work, native = self._session, launch.unit, launch.work, launch.native
        for name, value in STREAMING.items():
            session.conf.set(name, value)
        session.conf.set("spark.sql.shuffle.partitions", str(work.shards))
        # A row is a train, which may be large, or, where Spark runs the boxes, a tuple.
        session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "1000" if native is None else "100000")
        format_ = f"headway-{work.run}"
        pickled = Pickled(work.key, work)
        plan = None if native is None else Pickled(f"{work.key} native", native)
        schema = ROWS if native is None else native.scan_schema
        address = launch.gate.port, launch.gate.secret, unit.number
        session.dataSource.register(make_source(format_, schema, pickled, plan, address, unit.begin))
        frame = session.readStream.format(format_).load()
        if native is not None:
            frame = native.frame(frame)
        elif unit.cut.stateful:
            frame = frame.groupBy("shard").transformWithStateInPandas(ShardProcessor(pickled), ROWS, "append", "none")

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


_RAISED = re.compile(r"^(?:headway\.\S+\.|pyspark\.\S+\.)?(\w*(?:Error|Exception)): (.+)$", re.MULTILINE)
STOPPED = "the query has stopped"
"""What is known of a query that neither runs nor has failed."""
_SLOW = ("failed to connect back", "Python worker to connect back")
_LOST = (
    *_SLOW,
    "Python worker exited unexpectedly",
    "Python worker process terminated",
    "java.io.EOFException",
    "Connection reset",
    "Broken pipe",
)
_OURS = ("RunError", "InputError", "OutputError", "NetworkError")
_UNREADABLE = (
    "ChecksumException",
    "CANNOT_LOAD_STATE_STORE",
    "MALFORMED_LOG_FILE",
    "ChangelogReader",
    "RocksDB.load",
    "RocksDB.replayChangelog",
    "RocksDBFileManager",
    "RocksDBException",
    "HDFSMetadataLog",
    "OffsetSeqLog",
    "CommitLog",
    "StreamMetadata",
    "OperatorStateMetadata",
    "StateSchemaCompatibilityChecker",
    "STDS_FAILED_TO_READ",
    "BATCH_METADATA_NOT_FOUND",
    "com.fasterxml.jackson",
    "org.json4s",
    "Unexpected end-of-input",
    "Unexpected character",
    "Illegal unquoted character",
    "Unrecognized token",
    "Multiple streaming queries are concurrently using",
    "CONCURRENT_STREAM_LOG_UPDATE",
)
"""What stands in Spark's stack when it fails to read what its checkpoint holds, and in no other one.

The last two are what it makes of an offset file that is gone while its checksum is there: that nobody else uses a state
is certain, since a run locks it.
"""
_OTHERWISE = ("No space left", "UNRELEASED_THREAD_ERROR")
"""What fails there too, and is no damage: a full disk, and a task that still holds the state."""
_GONE = re.compile(r"File \S*/checkpoints/\S+ does not exist")
_FILE = re.compile(r"(?:file:)?(/[^\s'\",;()\[\]]*/checkpoints/[^\s'\",;()\[\]]+)")


def is_damage(error: str) -> bool:
    """Return whether a query failed because Spark cannot read what its checkpoint holds."""
    read = any(sign in error for sign in _UNREADABLE) or _GONE.search(error) is not None
    return read and not any(sign in error for sign in _OTHERWISE) and not _own(error)


def is_loss(error: str) -> bool:
    """Return whether a query failed because a process of it was lost, and not because of what the process did."""
    return any(sign in error for sign in _LOST) and not _raised(error) and not is_damage(error)


def _own(error: str) -> bool:
    """Return whether a message of ours is in it."""
    return any(match[1] in _OURS for match in _raised(error))


def is_slow(error: str) -> bool:
    """Return whether a query failed because its Python process did not start within the ten seconds of Spark's.

    They are a constant in Spark. On a busy machine they are not much, and nothing is wrong but that.
    """
    return any(sign in error for sign in _SLOW) and not _raised(error)


def _raised(error: str) -> list[re.Match[str]]:
    """Return what Python code raised, in Spark's words for a failure."""
    return [match for match in _RAISED.finditer(error) if "SparkException" not in match[1]]


def describe_failure(unit: str, error: str) -> str:
    """Return one line for a query's failure: what was raised last in our own words, not Spark's stack."""
    if is_damage(error):
        return _describe_damage(unit, error)
    found = _raised(error)
    kind, text = (found[-1][1], found[-1][2].strip()) if found else ("", (error.strip() or "no reason").splitlines()[0])
    return text if kind in _OURS else f"'{unit}' failed on Spark: {f'{kind}: ' if kind else ''}{text}"


def _describe_damage(unit: str, error: str) -> str:
    """Return one line for a checkpoint that Spark cannot read: the longest path in it that Spark names."""
    named = max((match[1].rstrip(".:") for match in _FILE.finditer(error)), key=len, default="")
    where = f"'{named}', or a file in it," if named else "a file under 'checkpoints' in the state"
    return f"'{unit}' cannot go on: {where} is missing or damaged; restore it, or give another --state"


def describe_losses(unit: str, count: int) -> str:
    """Return one line for a query that loses processes again and again."""
    return (
        f"'{unit}' failed on Spark: a Python process of it was lost {count} times in the same micro-batch; was it "
        "killed, for want of memory, or does a function of yours end it? (HEADWAY_SPARK_LOG=warn shows what Spark says)"
    )


def describe_slow(unit: str, seconds: float) -> str:
    """Return one line for a query whose Python process does not start in time, again and again."""
    return (
        f"'{unit}' could not start on Spark: its Python process was not up within Spark's ten seconds, tried again and "
        f"again for {seconds:.0f} s; is the machine busy with something else? (--units one starts fewer processes)"
    )


def describe_stopped(unit: str) -> str:
    """Return one line for a query that somebody else has stopped."""
    return (
        f"'{unit}' was stopped on Spark from outside of the run: by stop() of its streaming query or of the Spark "
        "session; hw.Control().stop() ends a run in order"
    )


def describe_gone(state: str | None) -> str:
    """Return one line for a JVM that is no more."""
    goes_on = "the same command goes on from there" if state else "with --state, a run can go on after that"
    return (
        "Spark's JVM has ended amid the run: was it killed, or short of memory (--conf spark.driver.memory=4g)? "
        f"Nothing was written to files; {goes_on}"
    )


def no_executors(master: str) -> str:
    """Return what to tell somebody whose cluster runs nothing."""
    return (
        f"'{master}' has not started any executor for this run yet; it waits for free cores and memory: are workers "
        "running, and is something else using them? (--conf spark.cores.max=N and spark.executor.memory ask for less)"
    )
