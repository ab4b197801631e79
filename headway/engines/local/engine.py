"""The local engine: carries the loop's instructions out in this process, in real time."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

from headway.checking import CheckedNetwork
from headway.clock import SECOND, Clock, WallClock, stopwatch
from headway.engines.base import RunResult, RunSettings, register_engine
from headway.engines.interrupts import Stopping, ending
from headway.engines.local.steps import StepRunner
from headway.engines.local.threads import BoxThreads
from headway.engines.local.workers import Job, Pool, quiet
from headway.engines.loop import Manner, Round, Start, Started, Wait, drive
from headway.engines.monitor import Effort
from headway.engines.parts import Parts
from headway.engines.process import LOOK_AGAIN, Process
from headway.errors import HeadwayError, RunError, raised
from headway.scheduling.policy import Step
from headway.scheduling.snapshot import Snapshot
from headway.storage.queues import Cursor

_PART = SECOND // 1000
"""How long a preemptive policy has to wait for the end of a part of a train, as far as costs are known."""
_FIRST_PART = 64
"""Tuples in such a part where they are not."""
_ONE = Started(1)
_AT_WORK = 0.05
"""Seconds for which workers are left alone."""


class LocalEngine:
    """Runs networks in this process."""

    def run(self, checked: CheckedNetwork, settings: RunSettings) -> RunResult:
        """Run until all inputs have ended and everything is delivered.

        The first Ctrl-C, SIGTERM or SIGHUP ends the inputs: what has arrived is processed and delivered. A second one
        gives up: nothing is delivered to files.
        """
        with ending(settings.control) as (stack, stopping), quiet():
            carrier = Threads if settings.schedule.threads else Local
            return carrier(checked, settings, settings.clock or WallClock(), stack, stopping).go()


class InRealTime(Process):
    """What both ways to run boxes in real time share."""

    engine = "local"

    def __init__(
        self,
        checked: CheckedNetwork,
        settings: RunSettings,
        clock: Clock,
        stack: contextlib.ExitStack,
        stopping: Stopping,
    ) -> None:
        """Prepare a run."""
        super().__init__(checked, settings, clock, stack, stopping)
        self.reading = 0
        self.waited = 0
        self.begun = stopwatch()

    def sleep(self, until: int | None) -> None:
        """Sleep until something can happen: a tuple is due, a window times out, a live source speaks."""
        ended, due, before = self.sources.ended, self.sources.next_due(), self.clock.now()
        if self.sources.ended and not ended:  # reading on has found the end of an input
            return
        moments = [before + LOOK_AGAIN, until, *(() if ended else (due, self.deadline))]
        pause = min([one for one in moments if one is not None]) - before
        if pause <= 0:
            return
        if self.sources.listening or isinstance(self.clock, WallClock):
            self.sources.wake.wait(pause / SECOND)
            self.sources.wake.clear()
        else:
            self.clock.sleep(pause)
        self.waited += self.clock.now() - before

    def summed_up(self, more: dict[str, Any]) -> RunResult:
        """Complete the outputs and return what the run gave."""
        runtime, seconds = self.runtime, (stopwatch() - self.begun) / 1e9
        time = {
            "scheduler": self.loop.planning / 1e9,
            "boxes": float(runtime.statistics.readings().busy.sum()) / 1e9,
            "storage": runtime.storage / 1e9,
            "sources": self.reading / 1e9,
            "sinks": runtime.delivering / 1e9,
        }
        return self.result(seconds, time, {"preemptions": self.loop.preemptions, **more})


class Local(InRealTime):
    """Carries steps out in the scheduler's own thread, or by several workers."""

    def __init__(self, *given: Any) -> None:
        """Prepare a run."""
        super().__init__(*given)
        # One is the default: kernels are many short array operations, between which threads would wait for each
        # other; two workers ran W3 at 0.8 of one's speed. More are for boxes or sinks that wait or release the lock.
        self.worker_count = max(1, min(self.settings.workers or 1, len(self.units)))
        self._steps = StepRunner(self.runtime, self.units, self.settings.memory, self.worker_count)
        self._parts = Parts()
        self._workers: Pool | None = None  # with one worker, the scheduler's own thread carries steps out
        if self.worker_count > 1:
            self._workers = Pool(self._run_job, self.worker_count, self.sources.wake)
            self.stack.callback(self._workers.close)
        self._under_way = 0
        self._moved = False  # whether a step was started in this round
        self._worked = [0] * self.worker_count
        self._idled = 0
        self._round = self._sampled = self.begun
        self._bytes_before = 0
        self._byte_time = 0.0  # bytes in queues times nanoseconds
        policy = self.settings.make_policy()
        only = self._only_step(policy.indifferent)
        self._cursors = self.runtime.cursors() if only else list[Cursor]()
        self.steer(self.worker_count, policy, self._effort, Manner(only=only))

    def _only_step(self, indifferent: bool) -> Step | None:
        """Return the step that every plan would consist of, or None.

        With one unit, an indifferent policy has nothing to decide. A snapshot would cost more than a decision is worth:
        long trains leave none of the scheduler's memory in the processor's caches.
        """
        alone = len(self.units) == 1 and self._workers is None
        watched = self.settings.may_shed or self.runtime.several or self.traversal or self.recorder
        return Step(0, self.train) if alone and indifferent and not watched else None

    def go(self) -> RunResult:
        """Run to the end."""
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
        return self.summed_up({"mean_queued_bytes": mean, "idle": self.waited / 1e9})

    # What the loop reads

    @property
    def full(self) -> bool:
        """Whether queues held as much as they may when this round began."""
        return self._bytes_before > self.settings.memory

    @property
    def free(self) -> int:
        """How many steps can be started now."""
        return 1 if self._workers is None else self._workers.free

    @property
    def busy(self) -> bool:
        """Whether workers carry steps out."""
        return self._under_way > 0

    @property
    def ready(self) -> bool:
        """Whether anything could be done."""
        return not all(cursor.idle for cursor in self._cursors)

    def snapshot(self, admits: bool, seen: bool) -> Snapshot:
        """Return what is true now."""
        workers, readings, board = self._workers, self.readings, self.runtime.board
        if seen:
            readings.told()
        readings.refresh()
        now = self.clock.now()
        if self.recorder is not None:
            self.recorder.queued(now, int(readings.box_waiting.sum()), board.bytes)
        busy = None if workers is None else readings.members.any(self.runtime.busy)
        return readings.snapshot(
            now,
            queued=board.bytes,
            train=self.train,
            room=self.schedule.plan,
            more=not self.filled() and (self.sources.more_in_turn or not self.sources.ended),
            free=self.free,
            busy=busy,
            planning=self.loop.planning_seconds,
        )

    def _effort(self) -> Effort:
        """Return what was done: alone, all time is spent but that of waiting; workers measure theirs.

        To look around and find nothing to do is waiting, too: a policy that lets trains grow is asked all the time.
        """
        if self._workers is None:
            return Effort(self.clock.now() - self.started - self.waited - self._idled)
        return Effort(sum(self._worked))

    # What the loop has done

    def begin(self) -> Round:
        """Begin the first round."""
        return self._begin_round(0)

    def _begin_round(self, ended: int) -> Round:
        self._round, queued = stopwatch(), self.runtime.board.bytes
        self._byte_time += (queued + self._bytes_before) * (self._round - self._sampled) / 2
        self._sampled, self._bytes_before = self._round, queued
        if queued > self.peak:
            self.peak = queued
        self._moved = ended > 0
        return Round(self.clock.now(), ended, self.commands())

    def admit(self, held: bool) -> None:
        """Let tuples arrive."""
        begun = stopwatch()
        if self.sources.pull(held or self.hungry):
            self._bytes_before = self.runtime.board.bytes
            self.peak = max(self.peak, self._bytes_before)
        self.reading += stopwatch() - begun

    def start(self, start: Start) -> Started:
        """Carry the steps of a plan out, or hand them to workers.

        A step whose boxes are at work waits for them while later ones go ahead. It is never dropped: a unit
        that shares boxes with others would starve.
        """
        if start.snapshot is None:
            self._moved = True
            try:
                self._steps.run(0, self.train)
            except Exception as error:
                self._fail(0, error)
            return _ONE
        jobs, workers = self._jobs(start, start.snapshot), self._workers
        self._moved = self._moved or bool(jobs)
        if workers is None:
            for job in jobs:
                try:
                    if self._run_step(job, 0):  # something has arrived: the rest of the plan is out of date
                        return Started(len(jobs), overtaken=job.unit)
                except Exception as error:
                    self._fail(job.unit, error)
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
            if pending:  # not for long: a step that relieves full queues releases boxes without a word
                self._collect(0.05)
        return Started(len(jobs))

    def wait(self, wait: Wait) -> Round:
        """Wait until something happens; not at all if something has happened in this round."""
        if self.settings.on_status is not None:
            self.report(self.clock.now(), (stopwatch() - self.begun) / 1e9)
        if self._moved and self._workers is None:
            return self._begin_round(0)
        ended, now = self._collect(None), self.clock.now()
        if not self._moved and not ended:
            self._idled += stopwatch() - self._round  # nothing was to be done but to look
            if self._under_way:
                moments = [wait.until, self.sources.next_due() if self.loop.preemptive else None]
                pauses = [max(0.0, (one - now) / SECOND) for one in moments if one is not None]
                ended = self._collect(min([_AT_WORK, *pauses]))
            elif not self.sources.more_in_turn or (wait.held and not wait.admits):
                self.sleep(wait.until)
        return self._begin_round(ended)

    # Steps

    def _jobs(self, start: Start, snapshot: Snapshot) -> Sequence[Job]:
        steps = start.steps
        if self.loop.preemptive and self._workers is not None:  # what should run and does needs no start
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
        """Return how many tuples of a step are processed before somebody else may come first."""
        if not self.loop.preemptive:
            return self._parts.length(step.unit)
        cost = float(snapshot.costs.cost[step.unit])
        return max(1, int(_PART / SECOND / cost)) if cost > 0 else _FIRST_PART

    def _run_job(self, job: Job, worker: int) -> None:
        """Carry a step out in a worker's thread."""
        begun = self.clock.now()
        self._run_step(job, worker)
        self._worked[worker] += self.clock.now() - begun

    def _run_step(self, job: Job, worker: int) -> bool:
        """Carry a step out; return whether it was ended early."""
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
        """Return what to ask between two parts of a train in the scheduler's own thread: it lets tuples arrive."""
        issued = self.sources.issued

        def ask() -> bool:
            now = self.clock.now()
            if (self.loop.preemptive or now >= self.steering.next) and not self.filled():
                self.sources.pull(False)
            return self.loop.part_ended(now, self.sources.issued != issued)

        return ask

    def _overtaking(self, until: int | None) -> Callable[[], bool]:
        """Return the same for workers, who only see that tuples have arrived or time has passed."""
        issued = self.sources.issued

        def ask() -> bool:
            late = until is not None and self.clock.now() >= until
            return self.loop.preemptive and (late or self.sources.issued != issued)

        return ask

    def _collect(self, timeout: float | None) -> int:
        """Take back the steps that workers have ended; wait up to `timeout` seconds for the first."""
        done = [] if self._workers is None else self._workers.done(timeout)
        for job, error in done:
            self.runtime.release(self.readings.members.boxes[job.unit])
            if error is not None:
                self._fail(job.unit, error)
        self._under_way -= len(done)
        return len(done)

    def _fail(self, unit: int, error: BaseException) -> None:
        if isinstance(error, HeadwayError | KeyboardInterrupt):
            raise error
        raise RunError(f"'{self.units[unit].name}' failed: {raised(error)}") from error


class Threads(InRealTime):
    """Lets every box run in a thread of its own, and nobody decide."""

    free = 0
    ready = False

    def __init__(self, *given: Any) -> None:
        """Prepare a run."""
        super().__init__(*given)
        self._threads = BoxThreads(self.runtime, self.train, self.sources.wake)
        self._arrived = False
        self.steer(1, None, lambda: Effort(0))

    def go(self) -> RunResult:
        """Run to the end."""
        self.stopping.begin()
        try:
            self._threads.start()
            drive(self.loop, self)
        finally:
            self._threads.close()
        self.readings.check_drained()
        return self.summed_up({"mean_queued_bytes": None, "idle": None})

    @property
    def busy(self) -> bool:
        """Whether a thread has something to do."""
        return not self._threads.idle()

    def snapshot(self, admits: bool, seen: bool) -> Snapshot:
        """Nobody decides."""
        raise NotImplementedError

    def begin(self) -> Round:
        """Begin a round."""
        self._arrived = False
        failed = self._threads.failed
        if failed is not None:
            at, error = failed
            if isinstance(error, HeadwayError | KeyboardInterrupt):
                raise error
            raise RunError(f"'{self.runtime.boxes[at].name}' failed: {raised(error)}") from error
        self.peak = max(self.peak, self.runtime.board.bytes)
        return Round(self.clock.now(), 0, self.commands())

    def tick(self) -> None:
        """Let a clock tick arrive."""
        super().tick()
        self._threads.notify()

    def admit(self, held: bool) -> None:
        """Let tuples arrive."""
        begun = stopwatch()
        if self.sources.pull(self.hungry):
            self._arrived = True
            self.peak = max(self.peak, self.runtime.board.bytes)  # before anybody takes it
            self._threads.notify()
        self.reading += stopwatch() - begun

    def end(self) -> None:
        """Let the end arrive."""
        super().end()
        self._threads.notify()

    def start(self, start: Start) -> Started:
        """Nobody plans."""
        raise NotImplementedError

    def wait(self, wait: Wait) -> Round:
        """Wait until something happens."""
        self.report(self.clock.now(), (stopwatch() - self.begun) / 1e9)
        if not self._threads.idle():
            self._threads.wait(self.sources, self.full, self.clock)
        elif not self._arrived and not self.sources.more_in_turn:
            self.sleep(wait.until)
        return self.begin()


register_engine("local", LocalEngine)
