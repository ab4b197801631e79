"""The streaming queries of a run, one per unit: their progress and costs; starting, watching and stopping them.

Their failures are described in plain words.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from headway.clock import SECOND, stopwatch
from headway.columns import NEVER
from headway.connectors.spark import java_context
from headway.engines.spark.driver.failures import (
    STOPPED,
    describe_failure,
    describe_stopped,
    is_damage,
    is_loss,
    is_slow,
)
from headway.engines.spark.driver.gate import Gate
from headway.engines.spark.driver.relays import Inputs
from headway.engines.spark.driver.session import STREAMING, jvm_alive, open_session
from headway.engines.spark.driver.tasks import Tasks
from headway.engines.spark.wire.messages import CutUnit, Row, Work, to_rows
from headway.engines.spark.worker.source import ROWS, Pickled, ShardProcessor, make_source
from headway.errors import HeadwayError, RunError
from headway.fading import Faded, slope
from headway.program import Program
from headway.trains import NOTHING, Train

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

_FADE = 0.8
"""The weight that a step keeps at the next one: costs change as the JVM warms up and as state grows."""
_SPREAD = 1e-6
"""Least spread of sizes, as a share of their squares, at which overhead and cost can be separated."""
_JITTER = 4.0
"""Multiples of the fixed part that count as jitter, not as work: durations vary with what else runs."""
_GOOD_PART = 0.25
_FEW = 3
"""Micro-batches before a cost is given: the first ones run cold."""
_ENOUGH = 6
"""Micro-batches before their durations are trusted."""
_REMEMBERED = 12
"""Micro-batches that are remembered."""
_UNREPRESENTATIVE = 1
"""First steps that are ignored: they load classes and start processes."""


class Batch(NamedTuple):
    """A completed micro-batch."""

    seconds: float
    work: float
    """Seconds in boxes, summed over tasks."""
    tuples: int
    """Tuples that passed its drop boxes."""


@dataclass
class StepCost:
    """The cost of a unit's steps except the first: their duration, for policies, and their work, for load shedding.

    A step lasts ``overhead + cost * tuples`` seconds, by fading least squares. A fit separates the two only if steps
    differ in size, and under load they do not. For the work, boxes report their own time; the smallest remainder of the
    latest steps is the fixed part.
    """

    overhead: float = 0.0
    cost: float = 0.0
    _steps: int = 0
    _sums: Faded = field(default_factory=lambda: Faded(5))
    _latest: deque[Batch] = field(default_factory=lambda: deque(maxlen=_REMEMBERED))

    def learn(self, batch: Batch) -> None:
        """Add a step."""
        self._steps += 1
        if self._steps <= _UNREPRESENTATIVE:
            return
        self._latest.append(batch)
        seconds, _, tuples = batch
        sums = self._sums.add((1.0, tuples, seconds, tuples * tuples, tuples * seconds), _FADE)
        weight, n, t = sums[:3].tolist()
        cost = float(slope(sums, _SPREAD))
        if not cost > 0:  # steps of similar size separate the two only by the overhead known before
            cost = max(0.0, (t / weight - self.overhead) * weight / n) if n and self.overhead else 0.0
        self.cost = cost
        self.overhead = max(0.01, (t - cost * n) / weight)

    @property
    def fixed(self) -> float:
        """Seconds of a step that are not work; 0 if unknown."""
        return max(0.0, min((one.seconds - one.work for one in self._latest), default=0.0))

    @property
    def work(self) -> float:
        """Seconds of work per tuple, in boxes and on the way to them and back; 0 if unknown."""
        tuples = sum(one.tuples for one in self._latest)
        if not tuples or len(self._latest) < _FEW:
            return 0.0
        spared, work = _JITTER * self.fixed, sum(one.work for one in self._latest)
        lasted = sum(max(0.0, one.seconds - spared) for one in self._latest)
        # If boxes report a good part of the time, their report is better: durations depend on what else runs. The first
        # durations say nothing in any case, as classes are loaded and processes started.
        told = work > _GOOD_PART * lasted or len(self._latest) < _ENOUGH
        return (work if told else max(work, lasted)) / tuples


@dataclass(eq=False)
class RunningUnit:
    """One streaming query at run time."""

    number: int
    """Its place among the run's units; a seam may change it."""
    key: int
    """The number by which the gate knows its query; another one after a seam at which the query was started again."""
    id: str
    """The name of its files; it stays the same when outputs are added or removed."""
    program: Program
    """The network as it is since the latest seam."""
    cut: CutUnit
    work: Work
    inputs: Inputs
    checkpoint: str
    """The directory of its Spark checkpoint."""
    begin: int
    """The arrival number after which a query without a checkpoint starts."""
    query: Any = None
    until: int | None = None
    """The seam at which a micro-batch of it ends; it is granted nothing beyond. None: there is none."""
    flush: tuple[str, ...] = ()
    """The boxes that end at that seam, and whose open windows are emitted."""
    held: bool = False
    """Whether one of its boxes is paused."""
    ends: int | None = None
    """The arrival number at which its input ends, if that is at a seam; its boxes are flushed there."""
    starting: bool = False
    """Whether its query is being started while the run goes on."""
    position: int = NOTHING
    """The arrival number up to which it has been granted."""
    committed: int = NOTHING
    asking: bool = False
    started: int = 0
    granted: int = 0
    """Tuples in the step under way, including those that its drop box drops."""
    expected: float = 0.0
    """How many of these are expected to pass the drop box."""
    dropped: int = 0
    """How many of these the drop box has dropped."""
    worked: int = 0
    """Nanoseconds that its boxes have reported for this step."""
    granted_at: int = 0
    plan: int = 0
    """The number of the plan of the current step, which was granted at `granted_at` on the run's clock; 0: no plan."""
    cost: StepCost = field(default_factory=StepCost)
    batches: int = 0
    tuples: int = 0
    seconds: float = 0.0
    taken: int = -1
    """The last micro-batch whose results were collected."""
    covering: tuple[int, int] = (NOTHING, NOTHING)
    """The arrival numbers of the current micro-batch: above the first, up to the second."""
    losses: int = 0
    """How many processes its query has lost since its last commit."""
    slow_since: int | None = None
    """Since when its process has failed to start within Spark's ten seconds; None if it has not."""
    restarts: int = 0
    """How many times its query was restarted in this run."""
    replayed: bool = True
    """Whether the current micro-batch may be a replay: after each start, until the query asks for the first time."""

    @property
    def busy(self) -> bool:
        """Whether a step is under way."""
        return not self.asking

    @property
    def limit(self) -> int:
        """The arrival number beyond which it is granted nothing."""
        limits = [one for one in (self.until, self.ends) if one is not None]
        return min(limits, default=NEVER)

    @property
    def over(self) -> bool:
        """Whether its input has ended at a seam, and it has processed all of it."""
        return self.ends is not None and self.committed >= self.ends

    @property
    def drained(self) -> bool:
        """Whether it has processed everything up to the seam, if it ends there."""
        return self.until is None or (self.asking and self.committed >= self.limit)


Deliver = Callable[[RunningUnit, list[Row], Mapping[int, Train], int], None]
"""Handles a micro-batch: the unit, rows from shards or trains by lane if Spark ran the boxes, and its number."""

_log = logging.getLogger("headway")
_MOST_SHARDS = 64
_ATTEMPTS = 3
"""How many times a query is started before the loss of a process during the start counts as a failure."""
PATIENCE = 300 * SECOND
"""How long processes that miss Spark's time limit for starting are started again."""
_STOP_PATIENCE = 30.0
"""Seconds that a query may take to stop; Spark itself gives up after 20."""
_PARTING = 2.0
"""Seconds by which a JVM's connections may break before its process has ended."""
_LOOK_EVERY = SECOND // 5
"""The interval at which queries are checked: each check is a call into the JVM."""
_CLUSTER_PATIENCE = 20 * SECOND
"""How long a cluster may take to start executors before the user is told."""
_LOSSES = 3
"""How many processes a query may lose without a commit in between."""
warm: set[str] = set()
"""Applications in which a query has run: the first one loads classes for all."""


class Queries:
    """A run's access to Spark. Used by the scheduler thread."""

    def __init__(self, master: str | None, settings: Mapping[str, str], gate: Gate, deliver: Deliver) -> None:
        """Open a session with the user's own Spark settings.

        Queries ask for grants at `gate`, and `deliver` handles their results.
        """
        self._gate, self._deliver = gate, deliver
        self._session = open_session(master, settings)
        self.tasks = Tasks(self._session)
        """What executors do beside queries."""
        context = self._session.sparkContext
        self.master: str = context.master or ""
        self.parallelism: int = max(1, min(_MOST_SHARDS, context.defaultParallelism))
        self.application: str = context.applicationId
        self._units: list[RunningUnit] = []
        self._starting = threading.RLock()
        """One query is started at a time: what it starts with is set for the whole session."""
        self._next_look = 0
        self._complained = False

    def start(self, unit: RunningUnit) -> None:
        """Start a unit's query from its checkpoint, if it has one; also used to restart it."""
        if unit not in self._units:
            self._units.append(unit)
        left, until = _ATTEMPTS, stopwatch() + PATIENCE
        while True:
            try:
                self._gate.forget(unit.key)
                with self._starting:
                    unit.query = self._start(unit)
                return
            except Exception as error:
                if is_damage(str(error)):
                    raise RunError(describe_failure(unit.cut.name, str(error))) from error
                left -= not is_slow(str(error))
                if not left or stopwatch() > until or not is_loss(str(error)):
                    raise

    def _start(self, unit: RunningUnit) -> StreamingQuery:
        session, work, native = self._session, unit.work, unit.work.native
        for name, value in STREAMING.items():
            session.conf.set(name, value)
        session.conf.set("spark.sql.shuffle.partitions", str(work.shards))
        # A row is a train, which may be large, or, if Spark runs the boxes, a tuple.
        session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "1000" if native is None else "100000")
        format_ = f"headway-{work.run}"
        pickled = Pickled(work.key, work)
        schema = ROWS if native is None else native.scan_schema
        address = self._gate.port, self._gate.secret, unit.key
        session.dataSource.register(make_source(format_, schema, pickled, address, unit.begin))
        frame = session.readStream.format(format_).load()
        if native is not None:
            frame = native.frame(frame)
        elif unit.cut.stateful:
            frame = frame.groupBy("shard").transformWithStateInPandas(ShardProcessor(pickled), ROWS, "append", "none")

        def take(batch: DataFrame, number: int) -> None:
            table = batch.toArrow()
            if native is not None:
                self._deliver(unit, [], native.split(table), number)
            else:
                self._deliver(unit, to_rows(table.to_pydict()), {}, number)

        context: Any = session.sparkContext
        context.setLocalProperty("spark.scheduler.pool", f"unit-{unit.key}")
        try:
            return (
                frame.writeStream.queryName(f"{unit.cut.name} ({work.run[:8]})")
                .option("checkpointLocation", unit.checkpoint)
                .foreachBatch(take)
                .start()
            )
        finally:
            context.setLocalProperty("spark.scheduler.pool", None)

    def retire(self, unit: RunningUnit) -> StreamingQuery:
        """Return a unit's query, which is not watched any more, so that it can be ended."""
        self._units.remove(unit)
        query: StreamingQuery = unit.query
        unit.query = None
        return query

    def stop(self) -> None:
        """Stop all queries. The gate must be closed first, so that none of them waits there."""

        def stop(unit: RunningUnit) -> None:
            with contextlib.suppress(Exception):
                unit.query.stop()

        threads = [threading.Thread(target=stop, args=(unit,), daemon=True) for unit in self._units]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(_STOP_PATIENCE)  # if the session was stopped before, there is no response

    # Watching

    def look(self) -> None:
        """Check all queries if it is time, and restart one that has lost a process.

        Raises a RunError for a query that failed.
        """
        if not self._units or stopwatch() < self._next_look:
            return
        self._next_look = stopwatch() + _LOOK_EVERY
        if self._stopped:  # a query that waits at the gate does not notice
            raise RunError(describe_stopped(self._units[0].cut.name))
        failed = [(unit, error) for unit in self._units if (error := _failure(unit)) is not None]
        for unit, error in failed:
            if not is_loss(error):
                stopped = error == STOPPED or self._stopped or "stopped SparkContext" in error
                name = unit.cut.name
                raise RunError(describe_stopped(name) if stopped else describe_failure(name, error))
        # One at a time, as at the beginning: each starts a process.
        starting = [unit for unit in self._units if not self._gate.met(unit.key)]
        if failed and all(unit in [one for one, _ in failed] for unit in starting):
            self._revive(*failed[0])

    def look_for_executors(self) -> None:
        """Warn once if the first step keeps waiting because there is no executor."""
        first = min((unit.started for unit in self._units if unit.busy and unit.started), default=None)
        if self._complained or first is None or any(unit.batches for unit in self._units):
            return
        if stopwatch() - first > _CLUSTER_PATIENCE:
            self._complained = True
            known = len(java_context(self._session).sc().statusTracker().getExecutorInfos())
            if known == (0 if self.master.startswith("local") else 1):  # on a cluster one of them is the driver
                _log.warning(
                    "'%s' has not started any executor for this run yet; it waits for free cores and memory: are "
                    "workers running, and is something else using them? (--conf spark.cores.max=N and "
                    "spark.executor.memory ask for less)",
                    self.master,
                )

    def alive(self, error: Exception) -> bool:
        """Return whether Spark's JVM still runs after an error; True if that cannot be determined."""
        broken = not isinstance(error, HeadwayError) or "Py4J" in str(error)
        return jvm_alive(_PARTING if broken else 0.0)

    @property
    def _stopped(self) -> bool:
        """Whether the session was stopped, as far as Python knows without asking the JVM."""
        return java_context(self._session) is None

    def _revive(self, unit: RunningUnit, error: str) -> None:
        """Restart a query that has lost a process: it repeats its last micro-batch.

        A process that only failed to start in time has lost nothing, and is restarted for much longer.
        """
        name = unit.cut.name
        if is_slow(error):
            unit.slow_since = unit.slow_since or stopwatch()
            took = stopwatch() - unit.slow_since
            if took > PATIENCE:
                raise RunError(
                    f"'{name}' could not start on Spark: its Python process was not up within Spark's ten seconds, "
                    f"tried again and again for {took / SECOND:.0f} s; is the machine busy with something else? "
                    "(--units one starts fewer processes)"
                )
            _log.warning("'%s' did not start within Spark's ten seconds: a busy machine? It is started again", name)
        else:
            unit.losses += 1
            if unit.losses > _LOSSES:
                raise RunError(
                    f"'{name}' failed on Spark: a Python process of it was lost {unit.losses} times in the same "
                    "micro-batch; was it killed, for want of memory, or does a function of yours end it? "
                    "(HEADWAY_SPARK_LOG=warn shows what Spark says)"
                )
            _log.warning("'%s' has lost a process; it goes on where it last committed", name)
        unit.asking, unit.replayed, unit.position = False, True, unit.committed
        unit.restarts += 1
        self.start(unit)


def _failure(unit: RunningUnit) -> str | None:
    """Return why a unit's query has failed, or None."""
    if unit.query is None or unit.query.isActive:
        return None
    error = unit.query.exception()
    if error is None:
        return STOPPED
    texts, cause = [str(error)], unit.query._jsq.exception().get().getCause()
    while cause is not None:  # a lost process is only visible in the class of a cause
        texts.append(f"caused by {cause.toString()}")
        cause = cause.getCause()
    return "\n".join(texts)
