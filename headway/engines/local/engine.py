"""The local engine: snapshot, policy, plan, steps, readings, until all inputs have ended."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from headway.catalog import Floats
from headway.checking import CheckedNetwork
from headway.clock import SECOND, Clock, WallClock, stopwatch
from headway.columns import Int64s, Mask
from headway.connectors import TableSink, open_sink
from headway.connectors.base import Writer
from headway.engines.base import RunResult, RunSettings, Status, register_engine
from headway.engines.delivery import Delivery
from headway.engines.ingest import Feed, Ingest
from headway.engines.local.runtime import Runtime
from headway.engines.local.steps import StepRunner
from headway.engines.local.workers import Pool, quiet
from headway.engines.opening import open_letters, open_readers
from headway.engines.summaries import summarise_boxes
from headway.errors import HeadwayError, RunError
from headway.network import thaw
from headway.scheduling.base import OutputReadings, QueueReadings, Snapshot, Step, UnitCosts
from headway.scheduling.costs import CostModel
from headway.scheduling.members import Members
from headway.schema import Schema
from headway.storage.queues import Ages
from headway.trains import Train

_STATUS_EVERY = SECOND // 4
_MOST_READ = 65_536
_LEAST_READ = 1024
_ROOM = 256


class LocalEngine:
    """Runs networks in this process."""

    def run(self, checked: CheckedNetwork, settings: RunSettings) -> RunResult:
        """Run until all inputs have ended and everything is delivered.

        The first Ctrl-C ends the inputs: what has arrived is processed and delivered. A second one gives up.
        """
        with contextlib.ExitStack() as stack, quiet():
            return _Run(checked, settings, stack).go()


class _Run:
    """One run."""

    def __init__(self, checked: CheckedNetwork, settings: RunSettings, stack: contextlib.ExitStack) -> None:
        self._checked = checked
        self._settings = settings
        self._schedule = settings.schedule
        self._clock: Clock = settings.clock or WallClock()
        self._stack = stack
        network = checked.network
        readers = open_readers(checked, settings, stack)
        self._tables: dict[str, TableSink] = {}
        self._deliveries: dict[str, Delivery] = {}
        self._completed = False
        self._letter_sink: Writer | None = None
        stack.callback(self._abort_outputs)
        for output in network.outputs:
            schema = checked.output_schema(output.name)
            writer = self._open_output(output.name, schema, settings.outputs, thaw(output.sink))
            self._deliveries[output.name] = Delivery(output, schema, writer, self._clock)
        self._letters, self._letter_sink = open_letters(settings)
        self._runtime = Runtime(checked, self._deliveries, settings.tables, self._letters, self._clock)
        self._units = self._schedule.units(self._runtime.topology)
        self._steps = StepRunner(self._runtime, self._units)
        self._members = Members(self._units)
        self._policy = self._schedule.make_policy()
        feeds = [
            self._feed(source.name, source.schema, reader)
            for source, reader in zip(network.sources, readers, strict=True)
        ]
        self._train = self._schedule.most
        chunk = min(max(16 * self._train, _LEAST_READ), _MOST_READ)
        self._ingest = Ingest(feeds, self._clock, chunk, self._letters.refuse)
        stack.callback(self._ingest.stop)
        self._feeds = feeds
        self._low_water = chunk
        # One is the default: kernels are many short array operations, between which threads would wait for each
        # other; two workers ran W3 at 0.8 of one's speed. More are for boxes or sinks that wait or release the lock.
        self._worker_count = max(1, min(settings.workers or 1, len(self._units)))
        self._workers: Pool | None = None  # with one worker, the scheduler's own thread carries steps out
        if self._worker_count > 1:
            self._workers = Pool(self._run_step, self._worker_count, self._ingest.wake)
            stack.callback(self._workers.close)
        self._nothing_spent: Floats = np.zeros(len(self._units))
        self._nothing_held: Int64s = np.zeros(len(self._units), np.int64)
        self._nothing_busy: Mask = np.zeros(len(self._units), np.bool_)
        self._ages: Ages | None = None  # these two are made when a policy first asks
        self._cost_model: CostModel | None = None
        self._scheduling = 0
        self._reading = 0
        self._plans = 0
        self._interrupted = False
        self._peak_queued = 0

    def _open_output(self, name: str, schema: Schema, given: Mapping[str, object], sink: object) -> Any:
        if name in given:
            return open_sink(name, schema, given[name])
        if sink is not None:
            return open_sink(name, schema, sink, base=self._checked.network.folder)
        self._tables[name] = TableSink(schema)
        return self._tables[name]

    def _feed(self, name: str, schema: Schema, reader: Any) -> Feed:
        arc = self._runtime.arcs[name]

        def promise(number: int) -> None:
            if number > arc.queue.progress:
                arc.queue.progress = number

        return Feed(name, reader, arc.push, promise, Train.empty(schema))

    def _abort_outputs(self) -> None:
        if not self._completed:
            for delivery in self._deliveries.values():
                delivery.abort()
            if self._letter_sink is not None:
                self._letter_sink.abort()

    # The loop

    def go(self) -> RunResult:
        """Run to the end."""
        begun = stopwatch()
        self._begun = begun
        try:
            with self._interruptible():
                self._loop()
        finally:
            if self._workers is not None:
                self._workers.close()
        for delivery in self._deliveries.values():
            delivery.close()
        if self._letter_sink is not None:
            self._letter_sink.close()
        self._completed = True
        seconds = (stopwatch() - begun) / 1e9
        tables = {name: sink.table for name, sink in self._tables.items()}
        return RunResult(tables, self._summary(seconds), self._letters.table())

    @contextlib.contextmanager
    def _interruptible(self) -> Iterator[None]:
        """Let the first Ctrl-C end the inputs, between two steps, so that no tuple is lost; a second one raises."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        previous = signal.getsignal(signal.SIGINT)

        def interrupt(number: int, frame: object) -> None:
            self._interrupted = True
            self._ingest.wake.set()
            signal.signal(signal.SIGINT, previous)

        if previous is signal.default_int_handler:
            signal.signal(signal.SIGINT, interrupt)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, previous)

    def _loop(self) -> None:
        memory = self._policy.start()
        ended = False
        next_status = self._clock.now() + _STATUS_EVERY
        runtime, ingest = self._runtime, self._ingest
        under_way = 0
        starved = False  # nothing was to be done the last time, so holding sources back would not help
        until: int | None = None  # the policy lets units wait until then
        held = False  # and nothing else was to be done, so that more tuples are wanted however many wait
        while True:
            read_from = stopwatch()
            self._tick_if_due()
            queued = runtime.board.bytes
            if queued > self._peak_queued:
                self._peak_queued = queued
            if self._interrupted and not ingest.stopped:
                ingest.stop()
            if queued <= self._settings.memory or starved:
                ingest.pull(held or self._hungry())
            scheduling_from = stopwatch()
            self._reading += scheduling_from - read_from
            snapshot = self._snapshot(queued)
            ready = np.count_nonzero(snapshot.ready)
            if ready:
                plan, memory = self._policy.plan(snapshot, memory)
                self._plans += 1
                steps, until = plan
            else:
                steps, until = (), None
            self._scheduling += stopwatch() - scheduling_from
            started = len(steps)
            under_way = self._carry_out(steps, under_way)
            held = not steps and until is not None
            starved = not steps and not held and not under_way
            collected = self._collect(None)
            under_way -= collected
            now = self._clock.now()
            if now >= next_status:
                self._report(snapshot)
                next_status = now + _STATUS_EVERY
            if started or collected:
                continue  # the snapshot is out of date
            if under_way:
                pause = 0.05 if until is None else min(0.05, max(0.0, (until - now) / SECOND))
                under_way -= self._collect(pause)
                continue
            if ready:
                if until is not None and not ingest.more_in_turn:
                    self._wait(min(until, next_status))
                continue
            if ingest.ended:
                if ended:
                    self._check_drained(snapshot)
                    return
                ended = True
                ingest.end()
                continue
            if not ingest.more_in_turn:
                self._wait(next_status)

    def _carry_out(self, steps: Sequence[Step], under_way: int) -> int:
        """Start all steps of a plan, in its order as far as units do not share boxes; return how many are under way.

        A step whose boxes are at work waits for them while later ones go ahead. It is never dropped: a unit
        that shares boxes with others would starve.
        """
        workers = self._workers
        if workers is None:
            run = self._steps.run
            for step in steps:
                try:
                    run(step.unit, step.tuples)
                except Exception as error:
                    self._fail(step, error)
            return 0
        pending = list(steps)
        while pending:
            waiting = []
            for step in pending:
                if workers.free and self._claim(step):
                    workers.start(step)
                    under_way += 1
                else:
                    waiting.append(step)
            pending = waiting
            if pending:
                under_way -= self._collect(1.0)
        return under_way

    def _hungry(self) -> bool:
        """Whether sources without rates should give more: when the slowest reader has little left."""
        if not self._ingest.more_in_turn:
            return False
        board = self._runtime.board
        return int((board.arrived - board.taken).max(initial=0)) < self._low_water

    def _wait(self, until: int) -> None:
        """Sleep until something can happen: a tuple is due, a window times out, a live source speaks."""
        moments = [until]
        due = self._ingest.next_due()
        if due is not None:
            moments.append(due)
        if self._ingest.ended:
            return
        moments += [box.deadline for box in self._runtime.boxes if box.timed and box.deadline is not None]
        pause = min(moments) - self._clock.now()
        if pause <= 0:
            return
        if self._ingest.listening or isinstance(self._clock, WallClock):
            self._ingest.wake.wait(pause / SECOND)
            self._ingest.wake.clear()
        else:
            self._clock.sleep(pause)

    def _tick_if_due(self) -> None:
        if not self._timeouts:
            return
        now = self._clock.now()
        due = [box for box in self._timeouts if box.deadline is not None and box.deadline <= now]
        if due and not self._ingest.ended:
            for box in due:
                box.deadline = None  # until the tick has reached it
            self._ingest.tick()

    def _claim(self, step: Step) -> bool:
        """Reserve a unit's boxes, or refuse the step because one of them is at work."""
        boxes = self._members.boxes[step.unit]
        busy = self._runtime.busy
        if busy[boxes].any():
            return False
        busy[boxes] = True
        return True

    def _collect(self, timeout: float | None) -> int:
        """Take back the steps that workers have ended; wait up to `timeout` seconds for the first."""
        done = [] if self._workers is None else self._workers.done(timeout)
        for step, error in done:
            self._runtime.busy[self._members.boxes[step.unit]] = False
            if error is not None:
                self._fail(step, error)
        return len(done)

    def _fail(self, step: Step, error: BaseException) -> None:
        if isinstance(error, HeadwayError | KeyboardInterrupt):
            raise error
        name = self._units[step.unit].name
        raise RunError(f"'{name}' failed: {type(error).__name__}: {error}") from error

    def _run_step(self, step: Step) -> None:
        self._steps.run(step.unit, step.tuples)

    @property
    def _timeouts(self) -> list[Any]:
        timed = self.__dict__.get("_timed_boxes")
        if timed is None:
            timed = self.__dict__["_timed_boxes"] = [box for box in self._runtime.boxes if box.timed]
        return timed

    def _check_drained(self, snapshot: Snapshot) -> None:
        left = snapshot.box_waiting
        if left.any():
            names = [self._runtime.boxes[at].name for at in np.flatnonzero(left)]
            raise RunError(f"the run ended with tuples left at: {', '.join(names)}")

    # Readings

    def _snapshot(self, queued: int) -> Snapshot:
        runtime = self._runtime
        board = runtime.board
        waiting = board.arrived - board.taken
        box_waiting = runtime.per_box(np.add, waiting)
        box_ready: Mask = runtime.per_box(np.add, waiting + board.marks) > 0
        box_oldest = runtime.per_box(np.minimum, board.oldest.copy())
        memo: dict[str, int] = {}
        for box in runtime.several:
            if box_ready[box.index]:
                box_ready[box.index] = runtime.is_ready(box, memo)
        members = self._members
        ready, unit_waiting, oldest = members.gather(box_ready, box_waiting, box_oldest)
        now, workers = self._clock.now(), self._workers
        return Snapshot(
            now,
            runtime.topology,
            self._units,
            ready,
            unit_waiting,
            oldest,
            box_waiting,
            box_oldest,
            queued,
            self._train,
            self._nothing_busy if workers is None else members.any(runtime.busy),
            self._worker_count,
            1 if workers is None else workers.free,
            _ROOM,
            None,
            self._nothing_spent,
            self._nothing_held,
            queued <= self._settings.memory and (self._ingest.more_in_turn or not self._ingest.ended),
            self._rates,
            runtime.statistics.readings,
            self._output_readings,
            partial(self._queues, now, box_waiting, box_oldest),
            partial(self._latencies, now),
            partial(self._costs, box_waiting),
        )

    def _box_ages(self, now: int) -> tuple[Floats, Int64s]:
        runtime = self._runtime
        if self._ages is None:
            self._ages = Ages(runtime.board, runtime.cursors())
        seconds, counts = self._ages.read(now)
        return runtime.per_box(np.add, seconds), runtime.per_box(np.add, counts)

    def _latencies(self, now: int) -> Floats:
        return self._members.means(*self._box_ages(now))

    def _queues(self, now: int, waiting: Int64s, oldest: Int64s) -> QueueReadings:
        seconds, counts = self._box_ages(now)
        age = np.where(waiting > 0, (now - oldest) / SECOND, 0.0)
        sizes = self._runtime.statistics.readings().tuple_size
        return QueueReadings(waiting, (waiting * sizes).astype(np.int64), seconds / np.maximum(counts, 1), age)

    def _costs(self, box_waiting: Int64s) -> UnitCosts:
        if self._cost_model is None:
            self._cost_model = CostModel(self._runtime.topology, self._units)
        return self._cost_model.read(self._runtime.statistics.readings(), box_waiting)

    def _rates(self) -> Floats:
        seconds = max(1e-9, (stopwatch() - self._begun) / 1e9)
        return np.array([feed.tuples / seconds for feed in self._feeds])

    def _output_readings(self) -> OutputReadings:
        every = list(self._deliveries.values())
        return OutputReadings(
            np.array([one.tuples for one in every], np.int64),
            np.array([one.latencies.mean or 0.0 for one in every]),
            np.array([1.0 if one.utility is None else one.utility for one in every]),
        )

    def _report(self, snapshot: Snapshot) -> None:
        if self._settings.on_status is None:
            return
        board = self._runtime.board
        status = Status(
            (stopwatch() - self._begun) / 1e9,
            self._ingest.tuples,
            sum(one.tuples for one in self._deliveries.values()),
            int(snapshot.box_waiting.sum()),
            board.bytes,
            self._letters.total,
            board.bytes > self._settings.memory,
        )
        self._settings.on_status(status)

    def _summary(self, seconds: float) -> dict[str, Any]:
        runtime = self._runtime
        readings = runtime.statistics.readings()
        tuples_in = self._ingest.tuples
        ignored = {box.name: box.ignored for box in runtime.boxes}
        boxes = summarise_boxes(runtime.topology.boxes, readings, ignored, self._letters.counts)
        sources = {
            feed.name: {"tuples": feed.tuples, "malformed": self._letters.counts[feed.name]} for feed in self._feeds
        }
        return {
            "network": self._checked.network.name,
            "engine": "local",
            "policy": str(self._schedule),
            "workers": self._worker_count,
            "seconds": seconds,
            "interrupted": self._interrupted,
            "tuples_in": tuples_in,
            "tuples_out": sum(one.tuples for one in self._deliveries.values()),
            "tuples_per_second": tuples_in / seconds if seconds else 0.0,
            "sources": sources,
            "outputs": {name: one.summary() for name, one in self._deliveries.items()},
            "boxes": boxes,
            "dead_letters": self._letters.summary(),
            "time": {
                "scheduler": self._scheduling / 1e9,
                "boxes": float(readings.busy.sum()) / 1e9,
                "storage": runtime.storage / 1e9,
                "sources": self._reading / 1e9,
                "sinks": runtime.delivering / 1e9,
            },
            "plans": self._plans,
            "box_calls": int(readings.calls.sum()),
            "peak_queued_bytes": self._peak_queued,
        }


register_engine("local", LocalEngine)
