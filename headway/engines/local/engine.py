"""The local engine: snapshot, policy, plan, steps, readings, until all inputs have ended."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

from headway.checking import CheckedNetwork
from headway.clock import SECOND, Clock, WallClock, stopwatch
from headway.engines.base import RunResult, RunSettings, register_engine
from headway.engines.delivery import Outlets
from headway.engines.ingest import Ingest
from headway.engines.interrupts import Stopping, ending
from headway.engines.local.steps import StepRunner
from headway.engines.local.threads import BoxThreads, drive
from headway.engines.local.workers import Job, Pool, quiet
from headway.engines.monitor import Effort
from headway.engines.opening import open_readers
from headway.engines.parts import Parts
from headway.engines.runtime import Runtime
from headway.engines.runtime_drops import RuntimeDrops
from headway.engines.runtime_reading import RuntimeReading
from headway.engines.steering import Steering
from headway.engines.summary import status, summarise
from headway.engines.traces import Recorder
from headway.errors import HeadwayError, RunError, raised
from headway.scheduling.policy import Plan, Step, is_indifferent, is_preemptive
from headway.scheduling.snapshot import Snapshot
from headway.storage.queues import Cursor
from headway.totals import Spent

_STATUS_EVERY = SECOND // 4
_MOST_READ = 65_536
_LEAST_READ = 1024
_PART = SECOND // 1000
"""How long a preemptive policy has to wait for the end of a part of a train, as far as costs are known."""
_FIRST_PART = 64
"""Tuples in such a part where they are not."""


class LocalEngine:
    """Runs networks in this process."""

    def run(self, checked: CheckedNetwork, settings: RunSettings) -> RunResult:
        """Run until all inputs have ended and everything is delivered.

        The first Ctrl-C, SIGTERM or SIGHUP ends the inputs: what has arrived is processed and delivered. A second one
        gives up: nothing is delivered to files.
        """
        with ending(settings.control) as (stack, stopping), quiet():
            return _Run(checked, settings, stack, stopping).go()


class _Run:
    """One run."""

    def __init__(
        self, checked: CheckedNetwork, settings: RunSettings, stack: contextlib.ExitStack, stopping: Stopping
    ) -> None:
        self._checked = checked
        self._stopping = stopping
        self._settings = settings
        self._schedule = settings.schedule
        self._clock: Clock = settings.clock or WallClock()
        self._started = self._clock.now()
        network = checked.network
        readers = open_readers(checked, settings, stack)
        self._outlets = Outlets(checked, settings, self._clock, stack, stopping)
        self._letters = self._outlets.letters
        self._runtime = Runtime(
            checked, self._outlets.deliveries, settings.tables, self._letters, self._clock, *settings.fading
        )
        self._timeouts = [box for box in self._runtime.boxes if box.timed]
        self._units = self._schedule.units(self._runtime.topology)
        # One is the default: kernels are many short array operations, between which threads would wait for each
        # other; two workers ran W3 at 0.8 of one's speed. More are for boxes or sinks that wait or release the lock.
        self._worker_count = max(1, min(settings.workers or 1, len(self._units)))
        self._steps = StepRunner(self._runtime, self._units, settings.memory, self._worker_count)
        self._parts = Parts()
        self._readings = RuntimeReading(checked, self._runtime, self._units)
        self._policy = settings.make_policy()
        self._preemptive = is_preemptive(self._policy)
        self._traversal = self._schedule.make_traversal(self._runtime.topology)
        self._recorder: Recorder | None = None
        if settings.trace:
            names = [unit.name for unit in self._units]
            boxes, start, told = self._runtime.topology.boxes, self._clock.now(), network.to_mapping()
            self._recorder = Recorder(network.name, names, boxes, settings.policy_text, start=start, description=told)
        feeds = [
            self._runtime.feed(source.name, reader) for source, reader in zip(network.sources, readers, strict=True)
        ]
        if self._recorder is not None:
            self._recorder.hear(feeds)
        self._train = self._schedule.most
        chunk = min(max(16 * self._train, _LEAST_READ), _MOST_READ)
        half_life = settings.half_life
        self._ingest = Ingest(feeds, self._clock, chunk, self._letters.refuse, half_life=half_life, full=self._full)
        stack.callback(self._ingest.stop)
        outlets = list(self._outlets.deliveries.values())
        self._readings.attach(self._ingest, feeds, outlets, self._schedule)
        self._low_water = chunk
        self._workers: Pool | None = None  # with one worker, the scheduler's own thread carries steps out
        if self._worker_count > 1:
            self._workers = Pool(self._run_job, self._worker_count, self._ingest.wake)
            stack.callback(self._workers.close)
        self._waited = 0
        self._idled = 0
        self._worked = [0] * self._worker_count
        self._scheduling = 0
        self._reading = 0
        self._plans = 0
        self._stopped_by: str | None = None
        self._peak_queued = 0
        self._queued = 0.0  # bytes in queues times nanoseconds
        self._decided, self._cursors = self._nothing_to_decide()
        self._preemptions = 0
        self._overtaken = -1  # the unit whose step was ended early
        drops = RuntimeDrops(self._readings, self._worker_count, self._train, self._effort)
        now = self._clock.now()
        self._steering = Steering(settings, self._policy, self._readings, drops, now, self._recorder)

    def _nothing_to_decide(self) -> tuple[Job | None, list[Cursor]]:
        """Return the step that every plan would hold, and the cursors that tell if it has anything to do; or None.

        With one unit, an indifferent policy has nothing to decide. A snapshot would cost more than a decision is worth:
        long trains leave none of the scheduler's memory in the processor's caches.
        """
        runtime = self._runtime
        trivial = (
            len(self._units) == 1
            and is_indifferent(self._policy)
            and self._workers is None
            and not self._settings.may_shed
        )
        if not trivial or runtime.several or self._traversal or self._recorder:
            return None, []
        return Job(0, self._train, None, None, 0), runtime.cursors()

    # The loop

    def go(self) -> RunResult:
        """Run to the end."""
        begun = self._begun = stopwatch()
        try:
            self._stopping.begin()
            self._drive_threads() if self._schedule.threads else self._loop()
            self._stopped_by = self._stopping.by
        except BaseException:
            self._steps.give_up()
            raise
        finally:
            if self._workers is not None:
                self._workers.close()
        tables = self._outlets.complete()
        seconds = (stopwatch() - begun) / 1e9
        trace = None if self._recorder is None else self._recorder.trace(self._readings.flows())
        return RunResult(tables, self._summary(seconds), self._letters.table(), trace)

    def _loop(self) -> None:
        self._memory = self._steering.begin(self._policy.start())
        ended = False
        next_status = self._clock.now() + _STATUS_EVERY
        runtime, ingest = self._runtime, self._ingest
        under_way = 0
        starved = False  # nothing was to be done the last time, so holding sources back would not help
        until: int | None = None  # the policy lets units wait until then
        held = False  # and nothing else was to be done, so that more tuples are wanted however many wait
        before, left = stopwatch(), 0  # when the round before began, and the bytes that were queued then
        while True:
            read_from = stopwatch()
            self._tick_if_due()
            queued = runtime.board.bytes
            self._queued += (queued + left) * (read_from - before) / 2
            if not ingest.stopped and self._stopping.by is not None:
                ingest.stop()
            arrived = 0
            if starved or not self._full():
                arrived = ingest.pull(held or self._hungry())
            before, left, scheduling_from = read_from, runtime.board.bytes if arrived else queued, stopwatch()
            self._peak_queued = max(self._peak_queued, left)
            self._reading += scheduling_from - read_from
            jobs: list[Job] = []
            until = None
            if self._decided is not None:
                ready = not all(cursor.idle for cursor in self._cursors)
                if ready:
                    self._plans += 1
                    jobs = [self._decided]
            else:
                snapshot = self._snapshot(queued)
                ready = bool(snapshot.ready.any())
                if ready and snapshot.free:
                    jobs, until = self._plan(snapshot)
            self._scheduling += stopwatch() - scheduling_from
            started = len(jobs)
            under_way = self._carry_out(jobs, under_way)
            held = not jobs and until is not None
            starved = not jobs and not held and not under_way
            if self._recorder is not None:
                self._recorder.queued(snapshot.now, int(self._readings.box_waiting.sum()), queued)
            collected = self._collect(None)
            under_way -= collected
            now = self._clock.now()
            self._steer(now)
            if now >= next_status:
                self._report()
                next_status = now + _STATUS_EVERY
            if started or collected:
                continue  # the snapshot is out of date
            self._idled += stopwatch() - read_from  # nothing was to be done but to look
            if under_way:
                moments = [until, ingest.next_due() if self._preemptive else None]
                pause = min([0.05, *(max(0.0, (one - now) / SECOND) for one in moments if one is not None)])
                under_way -= self._collect(pause)
                continue
            if ready:
                if until is None and ingest.ended:
                    raise RunError(f"policy '{self._schedule}' serves none of the units that are ready")
                if not ingest.more_in_turn:
                    self._wait(next_status if until is None else min(until, next_status))
                continue
            if ingest.ended:
                if ended:
                    self._readings.check_drained()
                    return
                ended = True
                ingest.end()
                continue
            if not ingest.more_in_turn:
                self._wait(next_status)

    def _steer(self, now: int) -> None:
        """Let monitor, load shedder and adaptive layer look at the run, if it is time."""
        if now >= self._steering.next:
            begun = stopwatch()
            self._memory = self._steering.look(now, self._memory)
            self._scheduling += stopwatch() - begun

    def _plan(self, snapshot: Snapshot) -> tuple[list[Job], int | None]:
        """Ask the policy; return what to do, and until when units may wait."""
        plan, after = self._policy.plan(snapshot, self._memory)
        self._readings.told()
        self._plans += 1
        if self._recorder is not None:
            self._recorder.plan(snapshot, self._policy, self._memory, plan)
        self._memory = after
        if self._preemptive:
            self._note_preemption(snapshot, plan)
        steps = plan.steps
        if self._preemptive and self._workers is not None:  # what should run and does needs no start
            steps = tuple([step for step in steps if not snapshot.busy[step.unit]])[: self._workers.free]
        jobs = []
        for step in steps:
            order = None if self._traversal is None else self._traversal.order(step.unit, snapshot)
            part = self._part(step, snapshot) if self._preemptive or self._settings.may_shed else None
            jobs.append(Job(step.unit, step.tuples, order, part, self._plans, plan.until))
        return jobs, plan.until

    def _part(self, step: Step, snapshot: Snapshot) -> int:
        """Return how many tuples of a step are processed before somebody else may come first."""
        if not self._preemptive:
            return self._parts.length(step.unit)
        cost = float(snapshot.costs.cost[step.unit])
        return max(1, int(_PART / SECOND / cost)) if cost > 0 else _FIRST_PART

    def _note_preemption(self, snapshot: Snapshot, plan: Plan) -> None:
        overtaken, self._overtaken = self._overtaken, -1
        if overtaken >= 0 and plan.steps and plan.steps[0].unit != overtaken and snapshot.waiting[overtaken]:
            self._preemptions += 1

    def _overtaking(self, until: int | None) -> Callable[[], bool]:
        """Return a question for the moments between two parts of a train: is it time to ask the policy again.

        It is when anything has arrived, or `until` has passed.

        In the scheduler's own thread asking lets due tuples arrive; workers only see that they did.
        """
        before, alone = self._ingest.issued, self._workers is None

        def ask() -> bool:
            if alone and not self._full():
                self._ingest.pull(False)
            return self._ingest.issued != before or (until is not None and self._clock.now() >= until)

        return ask

    def _look_up(self) -> bool:
        """Look at the run between two parts of a train: an overload does not wait for the end of a long one."""
        now = self._clock.now()
        if self._workers is None and now >= self._steering.next:
            if not self._full():
                self._ingest.pull(False)
            self._steer(now)
        return False

    def _carry_out(self, jobs: Sequence[Job], under_way: int) -> int:
        """Start all steps of a plan, in its order as far as units do not share boxes; return how many are under way.

        A step whose boxes are at work waits for them while later ones go ahead. It is never dropped: a unit
        that shares boxes with others would starve.
        """
        workers = self._workers
        if workers is None:
            for job in jobs:
                try:
                    self._run_job(job, 0)
                except Exception as error:
                    self._fail(job, error)
                if self._overtaken >= 0:
                    break  # something has arrived: the rest of the plan is out of date
            return 0
        pending = list(jobs)
        while pending:
            waiting = []
            for job in pending:
                if workers.free and self._runtime.reserve(self._readings.members.boxes[job.unit]):
                    workers.start(job)
                    under_way += 1
                else:
                    waiting.append(job)
            pending = waiting
            if pending:  # not for long: a step that relieves full queues releases boxes without a word
                under_way -= self._collect(0.05)
        return under_way

    def _run_job(self, job: Job, worker: int) -> None:
        """Carry a step out, in the scheduler's thread or in a worker's."""
        if self._workers is None:
            self._run_step(job, worker)
            return
        begun = self._clock.now()
        self._run_step(job, worker)
        self._worked[worker] += self._clock.now() - begun

    def _run_step(self, job: Job, worker: int) -> None:
        if self._recorder is None and job.part is None:
            self._steps.run(job.unit, job.tuples, job.order)
            return
        log: list[Any] | None = None if self._recorder is None else []
        begun, stopped = self._clock.now(), False
        if job.part is None:
            taken = self._steps.run(job.unit, job.tuples, job.order, log)
        else:
            stop = self._overtaking(job.until) if self._preemptive else self._look_up
            parts = None if self._preemptive else self._parts
            taken, stopped = self._steps.run_in_parts(job.unit, job.tuples, job.part, stop, job.order, log, parts)
            if stopped and self._workers is None:
                self._overtaken = job.unit
        if self._recorder is not None and log is not None:
            end = self._clock.now()
            self._recorder.step(job.unit, worker, begun, end, taken, log, stopped, job.plan)

    def _full(self) -> bool:
        """Whether queues hold as much as they may."""
        return self._runtime.board.bytes > self._settings.memory

    def _hungry(self) -> bool:
        """Whether sources without rates should give more: when the slowest reader has little left."""
        if not self._ingest.more_in_turn:
            return False
        return self._readings.longest < self._low_water

    def _wait(self, until: int) -> None:
        """Sleep until something can happen: a tuple is due, a window times out, a live source speaks."""
        moments = [until]
        due = self._ingest.next_due()
        if due is not None:
            moments.append(due)
        if self._ingest.ended:
            return
        moments += [box.deadline for box in self._timeouts if box.deadline is not None]
        pause = min(moments) - self._clock.now()
        if pause <= 0:
            return
        before = self._clock.now()
        if self._ingest.listening or isinstance(self._clock, WallClock):
            self._ingest.wake.wait(pause / SECOND)
            self._ingest.wake.clear()
        else:
            self._clock.sleep(pause)
        self._waited += self._clock.now() - before

    def _tick_if_due(self) -> None:
        if not self._timeouts:
            return
        now = self._clock.now()
        due = [box for box in self._timeouts if box.deadline is not None and box.deadline <= now]
        if due and not self._ingest.ended:
            for box in due:
                box.deadline = None  # until the tick has reached it
            self._ingest.tick()

    def _collect(self, timeout: float | None) -> int:
        """Take back the steps that workers have ended; wait up to `timeout` seconds for the first."""
        done = [] if self._workers is None else self._workers.done(timeout)
        for job, error in done:
            self._runtime.release(self._readings.members.boxes[job.unit])
            if error is not None:
                self._fail(job, error)
        return len(done)

    def _fail(self, job: Job, error: BaseException) -> None:
        if isinstance(error, HeadwayError | KeyboardInterrupt):
            raise error
        name = self._units[job.unit].name
        raise RunError(f"'{name}' failed: {raised(error)}") from error

    def _drive_threads(self) -> None:
        """Let every box run in a thread of its own, and nobody decide."""
        threads = BoxThreads(self._runtime, self._train, self._ingest.wake)
        try:
            driven = drive(
                self._runtime,
                self._ingest,
                threads,
                lambda: self._stopping.by is not None,
                self._tick_if_due,
                self._report,
                self._settings.memory,
                self._low_water,
            )
            self._reading, self._peak_queued = driven
        finally:
            threads.close()

    # Readings

    def _effort(self) -> Effort:
        """Return what was done: alone, all time is spent but that of waiting; workers measure theirs.

        To look around and find nothing to do is waiting, too: a policy that lets trains grow is asked all the time.
        """
        if self._workers is None:
            return Effort(self._clock.now() - self._started - self._waited - self._idled)
        return Effort(sum(self._worked))

    def _snapshot(self, queued: int) -> Snapshot:
        workers, readings = self._workers, self._readings
        readings.refresh()
        return readings.snapshot(
            self._clock.now(),
            queued=queued,
            train=self._train,
            room=self._schedule.plan,
            more=queued <= self._settings.memory and (self._ingest.more_in_turn or not self._ingest.ended),
            occupation=readings.occupation(1, 1)
            if workers is None
            else readings.occupation(self._worker_count, workers.free, readings.members.any(self._runtime.busy)),
            planning=self._scheduling / SECOND / self._plans if self._plans else 0.0,
        )

    def _report(self) -> None:
        if self._settings.on_status is None:
            return
        board, seconds = self._runtime.board, (stopwatch() - self._begun) / 1e9
        totals = self._steering.totals(self._clock.now(), self._spent())
        known = seconds, int((board.arrived - board.taken).sum()), board.bytes, self._letters.total, self._full()
        self._settings.on_status(status(totals, self._runtime.topology.outputs, *known))

    def _spent(self) -> Spent:
        runtime = self._runtime
        spent = {
            "scheduler": self._scheduling / 1e9,
            "boxes": float(runtime.statistics.readings().busy.sum()) / 1e9,
            "storage": runtime.storage / 1e9,
            "sources": self._reading / 1e9,
            "sinks": runtime.delivering / 1e9,
        }
        return Spent(spent, self._plans, max(self._peak_queued, self._steps.peak))

    def _summary(self, seconds: float) -> dict[str, Any]:
        threads = self._schedule.threads
        return summarise(
            "local",
            self._settings,
            self._readings,
            self._steering.totals(self._clock.now(), self._spent()),
            self._steering,
            self._letters,
            {box.name: box.ignored for box in self._runtime.boxes},
            workers=self._worker_count,
            seconds=seconds,
            stopped_by=self._stopped_by,
            more={
                "preemptions": self._preemptions,
                "mean_queued_bytes": None if threads else self._queued / 1e9 / max(1e-9, seconds),
                "idle": None if threads else self._waited / 1e9,
            },
        )


register_engine("local", LocalEngine)
