"""The local engine: carries out the loop's instructions in this process, in real time."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from headway.checking import CheckedNetwork
from headway.clock import SECOND, WallClock, stopwatch
from headway.columns import quiet
from headway.engines.carrier import Given, giving
from headway.engines.instructions import Manner, Renewed, Round, Start, Started, Wait
from headway.engines.local.steps import StepRunner
from headway.engines.local.threads import Threads
from headway.engines.loop import drive
from headway.engines.process.capacity import Effort
from headway.engines.process.drops import RuntimeDrops
from headway.engines.process.run import Parts, Process, fail
from headway.engines.runs import RunResult, RunSettings, register_engine
from headway.scheduling.policy import Policy, Step
from headway.scheduling.snapshot import Snapshot
from headway.storage.queues import Cursor

_PART = SECOND // 1000
"""How long (ns) a part of a train lasts before a preemptive policy may intervene, by the known costs."""
_FIRST_PART = 64
"""Tuples in such a part if costs are not known yet."""
_ONE = Started(1)
_AT_WORK = 0.05
"""Seconds that the scheduler thread waits for busy workers before it looks again."""


class LocalEngine:
    """Runs networks in this process."""

    def run(self, checked: CheckedNetwork, settings: RunSettings) -> RunResult:
        """Run until all inputs have ended and everything is delivered."""
        with giving(checked, settings, settings.clock or WallClock()) as given:
            return (Threads if settings.schedule.threads else Local)(given).go()


class Local(Process):
    """Carries out steps in the scheduler thread, or with several workers."""

    def __init__(self, given: Given) -> None:
        super().__init__(given)
        # One worker is the default: kernels are many short array operations, between which threads would wait for each
        # other; W3 ran at 0.8 of the speed with two. More workers help boxes or sinks that block or release the lock.
        self.worker_count = max(1, min(self.settings.workers or 1, len(self.units)))
        self._steps = StepRunner(self.runtime, self.units, self.settings.memory, self.worker_count)
        self._parts = Parts()
        self._workers: Pool | None = None  # with one worker, the scheduler thread carries out steps
        if self.worker_count > 1:
            self._workers = Pool(self._run_job, self.worker_count, self.sources.wake)
            self.stack.callback(self._workers.close)
        self._under_way = 0
        self._moved = False  # whether a step was started in this round
        self._worked = [0] * self.worker_count
        self._idled = 0
        self._round = self._sampled = self.begun
        self._bytes_before = 0
        self._byte_time = 0.0  # bytes in queues, integrated over nanoseconds
        policy = self.settings.make_policy()
        drops = RuntimeDrops(self.readings, self.train, self._effort)
        self.steer(self.worker_count, policy, drops, self._manner(policy))

    def exchanged(self) -> Renewed:
        """Prepare for the network after a seam."""
        self.peak = max(self.peak, self._steps.peak)
        self._steps = StepRunner(self.runtime, self.units, self.settings.memory, self.worker_count)
        self._parts = Parts()
        drops = RuntimeDrops(self.readings, self.train, self._effort)
        assert self.loop.policy is not None
        return self.steer_on(drops, self._manner(self.loop.policy))

    def _manner(self, policy: Policy) -> Manner:
        only = self._only_step(policy.indifferent)
        self._cursors = self.runtime.cursors if only else list[Cursor]()
        return Manner(only=only)

    def _only_step(self, indifferent: bool) -> Step | None:
        """Return the only step that any plan could contain, or None.

        With one unit, an indifferent policy has nothing to decide, and a snapshot would cost more than a decision is
        worth: long trains evict the scheduler's memory from the processor's caches.
        """
        alone = len(self.units) == 1 and self._workers is None
        watched = self.settings.may_shed or self.runtime.several or self.traversal or self.recorder
        return Step(0, self.train) if alone and indifferent and not watched else None

    def go(self) -> RunResult:
        """Run until the end."""
        try:
            self.stopping.begin()
            drive(self.loop, self)
        except BaseException:
            self._steps.give_up()
            raise
        finally:
            if self._workers is not None:
                self._workers.close()
        self.readings.check_drained()
        self.peak = max(self.peak, self._steps.peak)
        mean = self._byte_time / max(1, stopwatch() - self.begun)
        told = {"preemptions": self.loop.preemptions, "mean_queued_bytes": mean, "idle": self.waited / 1e9}
        return self.result(self.stopping.by, told)

    # What the loop reads

    @property
    def full(self) -> bool:
        """Whether queues exceeded the memory limit when this round began, or when tuples were let in."""
        return self._bytes_before > self.settings.memory

    @property
    def free(self) -> int:
        """How many steps can be started now."""
        return 1 if self._workers is None else self._workers.free

    @property
    def busy(self) -> bool:
        """Whether workers are carrying out steps."""
        return self._under_way > 0

    @property
    def attentive(self) -> bool:
        """Whether a worker is free for what arrives, or can be freed; looking would only hold up those that work."""
        return self.free > 0 or self.loop.preemptive

    @property
    def ready(self) -> bool:
        """Whether the only step has something to do."""
        return not all(cursor.idle for cursor in self._cursors)

    def snapshot(self, seen: bool) -> Snapshot:
        """Return the current snapshot."""
        workers, readings = self._workers, self.readings
        readings.refresh(seen)
        now = self.clock.now()
        if self.recorder is not None:
            self.recorder.queued(now, int(readings.box_waiting.sum()), self.runtime.board.bytes)
        busy = None if workers is None else readings.members.any(self.runtime.busy)
        memory = self.runtime.board.bytes
        return readings.snapshot(
            now,
            train=self.train,
            room=self.schedule.plan,
            more=memory <= self.settings.memory and not self.sources.ended,
            free=self.free,
            memory=memory,
            busy=busy,
            planning=self.loop.planning_seconds,
        )

    def _effort(self) -> Effort:
        """Return the work done: with one worker, all time except waiting; several workers measure their own.

        A round that finds nothing to do counts as waiting: a policy that lets trains grow is asked continually.
        """
        if self._workers is None:
            return Effort(self.clock.now() - self.started - self.waited - self._idled)
        return Effort(sum(self._worked))

    # Instructions of the loop

    def begin(self, ended: int = 0) -> Round:
        """Begin a round."""
        self._round, queued = stopwatch(), self.runtime.board.bytes
        self._byte_time += (queued + self._bytes_before) * (self._round - self._sampled) / 2
        self._sampled, self._bytes_before = self._round, queued
        if queued > self.peak:
            self.peak = queued
        self._moved = ended > 0
        now = self.clock.now()
        return Round(now, ended, self.stopping.commands(now))

    def entered(self) -> None:
        """Note that something has arrived."""
        self._bytes_before = self.runtime.board.bytes
        self.peak = max(self.peak, self._bytes_before)

    def start(self, start: Start) -> Started:
        """Carry out the steps of a plan, or hand them to workers.

        A step whose boxes are in use waits for them while later ones go ahead. It is never dropped, or a unit that
        shares boxes with others would starve.
        """
        if start.snapshot is None:
            self._moved = True
            try:
                self._steps.run(0, self.train)
            except Exception as error:
                fail(self.units[0].name, error)
            return _ONE
        jobs, workers = self._jobs(start, start.snapshot), self._workers
        self._moved = self._moved or bool(jobs)
        if workers is None:
            for job in jobs:
                try:
                    if self._run_step(job, 0):  # tuples have arrived: the rest of the plan is out of date
                        return Started(len(jobs), overtaken=job.unit)
                except Exception as error:
                    fail(self.units[job.unit].name, error)
            return Started(len(jobs))
        pending = jobs
        while pending:
            waiting = []
            for job in pending:
                if workers.free and self.runtime.reserve(self.readings.members.boxes[job.unit]):
                    workers.start(job)
                    self._under_way += 1
                else:
                    waiting.append(job)
            pending = waiting
            if pending:  # polls, because a step that relieves full queues releases boxes without notice
                self._collect(0.05)
        return Started(len(jobs))

    def wait(self, wait: Wait) -> Round:
        """Wait until something happens; not if a step was started, because there may be room for another plan."""
        if self.settings.on_status is not None or self.outlets.ageing:
            self.report(self.clock.now())
        ended = 0 if self._workers is None else self._collect(None)
        if not self._moved and not ended:
            self._idled += stopwatch() - self._round  # the round only looked, so it counts as idle
            moment = min(wait.until, wait.look)
            if self._under_way:
                ended = self._collect(min(_AT_WORK, max(0.0, (moment - self.clock.now()) / SECOND)))
            else:
                self.sleep(moment)
        return self.begin(ended)

    # Steps

    def _jobs(self, start: Start, snapshot: Snapshot) -> Sequence[Job]:
        steps = start.steps
        if self.loop.preemptive and self._workers is not None:  # a unit that should run and already does needs no start
            steps = tuple([step for step in steps if not snapshot.busy[step.unit]])[: self._workers.free]
        cut = self.loop.preemptive or self.settings.may_shed
        return [
            Job(
                step.unit,
                step.tuples,
                None if self.traversal is None else self.traversal.order(step.unit, snapshot),
                self._part(step, snapshot) if cut else None,
                start.plan,
                start.until,
            )
            for step in steps
        ]

    def _part(self, step: Step, snapshot: Snapshot) -> int:
        """Return how many tuples of a step are processed before the loop may intervene."""
        if not self.loop.preemptive:
            return self._parts.length(step.unit)
        cost = float(snapshot.costs.cost[step.unit])
        return max(1, int(_PART / SECOND / cost)) if cost > 0 else _FIRST_PART

    def _run_job(self, job: Job, worker: int) -> None:
        """Carry out a step in a worker thread."""
        begun = self.clock.now()
        self._run_step(job, worker)
        self._worked[worker] += self.clock.now() - begun

    def _run_step(self, job: Job, worker: int) -> bool:
        """Carry out a step; return whether it was ended early."""
        if self.recorder is None and job.part is None:
            self._steps.run(job.unit, job.tuples, job.order)
            return False
        log: list[Any] | None = None if self.recorder is None else []
        begun, stopped = self.clock.now(), False
        if job.part is None:
            taken = self._steps.run(job.unit, job.tuples, job.order, log)
        else:
            parts = None if self.loop.preemptive else self._parts
            stop = self._part_ended() if self._workers is None else self._overtaking(job.until)
            taken, stopped = self._steps.run_in_parts(job.unit, job.tuples, job.part, stop, job.order, log, parts)
        if self.recorder is not None and log is not None:
            self.recorder.step(job.unit, worker, begun, self.clock.now(), taken, log, stopped, job.plan)
        return stopped

    def _part_ended(self) -> Callable[[], bool]:
        """Return the check between two parts of a train in the scheduler thread, which also lets tuples arrive."""
        issued = self.sources.issued

        def ask() -> bool:
            now = self.clock.now()
            if (self.loop.preemptive or now >= self.steering.next) and not self.filled():
                self.sources.pull(False)
            return self.loop.part_ended(now, self.sources.issued != issued)

        return ask

    def _overtaking(self, until: int | None) -> Callable[[], bool]:
        """Return the check for workers, which only see whether tuples have arrived or the time is up."""
        issued = self.sources.issued

        def ask() -> bool:
            late = until is not None and self.clock.now() >= until
            return self.loop.preemptive and (late or self.sources.issued != issued)

        return ask

    def _collect(self, timeout: float | None) -> int:
        """Collect the steps that workers have ended; wait up to `timeout` seconds for the first."""
        done = [] if self._workers is None else self._workers.done(timeout)
        for job, error in done:
            self.runtime.release(self.readings.members.boxes[job.unit])
            if error is not None:
                fail(self.units[job.unit].name, error)
        self._under_way -= len(done)
        return len(done)


class Job(NamedTuple):
    """A step to be carried out by a worker or the scheduler thread."""

    unit: int
    tuples: int
    order: tuple[int, ...] | None
    """The boxes to call, if not in the unit's own order."""
    part: int | None
    """The number of tuples after which it may be ended early; None: never."""
    plan: int
    """The number of its plan."""
    until: int | None = None
    """The moment after which it may be ended early."""


class Pool:
    """A pool of threads that carry out steps. Not used with one worker."""

    def __init__(self, run: Callable[[Job, int], None], count: int, wake: threading.Event) -> None:
        """Start the threads; `wake` is set when a step ends."""
        self._run = run
        self._steps: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._ended: queue.SimpleQueue[tuple[Job, BaseException | None]] = queue.SimpleQueue()
        self._wake = wake
        self.free = count
        self._threads = [
            threading.Thread(target=self._work, args=(at,), name=f"headway-worker-{at}", daemon=True)
            for at in range(count)
        ]
        for thread in self._threads:
            thread.start()

    def _work(self, number: int) -> None:
        with quiet():
            while (job := self._steps.get()) is not None:
                failed: BaseException | None = None
                try:
                    self._run(job, number)
                except BaseException as error:  # handed to the scheduler thread, which stops the run
                    failed = error
                self._ended.put((job, failed))
                self._wake.set()

    def start(self, job: Job) -> None:
        """Hand a step to a thread."""
        self.free -= 1
        self._steps.put(job)

    def done(self, timeout: float | None) -> list[tuple[Job, BaseException | None]]:
        """Return the steps that have ended, each with its error if it failed."""
        ended: list[tuple[Job, BaseException | None]] = []
        with contextlib.suppress(queue.Empty):
            if timeout is not None:
                ended.append(self._ended.get(timeout=timeout))
        ended += [self._ended.get_nowait() for _ in range(self._ended.qsize())]
        self.free += len(ended)
        return ended

    def close(self) -> None:
        """Let the threads finish their current steps and end. Idempotent."""
        threads, self._threads = self._threads, []
        for _ in threads:
            self._steps.put(None)
        for thread in threads:
            thread.join(timeout=30)


register_engine("local", LocalEngine)
