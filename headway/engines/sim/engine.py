"""The simulator: carries the loop's instructions out in virtual time, with real boxes and real tuples.

Everything that decides results is as in the engine `local`: sources, queues, kernels, outputs. What takes time is
modelled: a call lasts what its tuples cost, its results come when it ends, and the clock jumps from event to event. So
results are those of any other engine, and every moment is exact and the same in every repetition.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from headway.checking import CheckedNetwork
from headway.clock import SECOND, ManualClock, stopwatch
from headway.connectors.protocol import Chunk, Reader
from headway.connectors.readers import Awaited
from headway.engines.control import Stopping, ending
from headway.engines.ingest import blame
from headway.engines.loop import Manner, Round, Start, Started, Wait, drive
from headway.engines.models import LOCAL, Model
from headway.engines.process.capacity import Effort
from headway.engines.process.run import Process, quiet
from headway.engines.runs import RunResult, RunSettings, register_engine
from headway.engines.sim.processors import Following, Processors
from headway.engines.sim.work import Costs
from headway.errors import RunError
from headway.kernels.universal import without_burning
from headway.scheduling.snapshot import Snapshot
from headway.storage.queues import FAR

_STUCK = 10_000
"""Times in a row that a policy may be asked while nothing happens."""
_LOOK = 0.1
"""Seconds after which whoever waits for a source looks whether the run shall end."""
_PAUSED = 0.02
"""Seconds after which a paused run looks whether it may go on."""


class SimEngine:
    """Runs networks in virtual time."""

    def run(self, checked: CheckedNetwork, settings: RunSettings) -> RunResult:
        """Run until all inputs have ended and everything is delivered.

        The first Ctrl-C, SIGTERM or SIGHUP ends the inputs: what has arrived is processed and delivered. A second one
        gives up: nothing is delivered to files.
        """
        if settings.clock is not None:
            raise RunError("clock is not for the engine 'sim', which has a virtual one of its own")
        with ending(settings.control) as (stack, stopping), quiet():
            return Simulation(checked, settings, stack, stopping).go()


class Simulation(Process):
    """One run in virtual time."""

    engine = "sim"

    def __init__(
        self, checked: CheckedNetwork, settings: RunSettings, stack: contextlib.ExitStack, stopping: Stopping
    ) -> None:
        self._now = ManualClock()
        super().__init__(checked, settings, self._now, stack, stopping)
        for box in self.runtime.boxes:
            box.kernel = without_burning(box.kernel)
        model = settings.model or Model()
        self._costs = Costs(checked, model)
        self._costs.declare(self.runtime.statistics)
        count = settings.workers or 1
        self._processors = Processors(self.runtime, self.readings, self._costs, count, self.traversal, self.recorder)
        self._spare = 0  # nanoseconds of processors that had nothing to do
        self._queued_time = 0  # bytes in queues times nanoseconds
        self._issued = self.sources.issued  # when the round began
        self._ended = self._begun = 0  # calls and steps in this round
        self._moved = True  # whether the clock has moved since the round before
        self._idle = 0  # rounds in a row in which nothing happened
        self._stirred = True  # something has happened since the last look
        self._looked = 0
        self.steer(count, settings.make_policy(), self._effort, Manner(switches=True))
        # A preemptive policy looks up all the time, and several workers share no rounds: for them all stays exact.
        self._following: Following | None = None
        if model.like == LOCAL and count == 1 and not self.loop.preemptive:
            self._following = Following(self._processors, self._costs)
            self._processors.together = True

    def wrap(self, source: str, reader: Reader) -> Reader:
        """Return a reader that waits for live sources: there is no outside world in virtual time."""
        if not reader.live:
            return reader
        portions = Portions(reader, source, lambda: self.stopping.by is not None)
        self.stack.callback(portions.release)
        return portions

    def read_until(self) -> Callable[[], bool]:
        """Return when reading what is due stops: at once, and `admit` sees to the rest."""
        return lambda: True

    def go(self) -> RunResult:
        """Run to the end."""
        begun, costs, processors = stopwatch(), self._costs, self._processors
        self.stopping.begin()
        drive(self.loop, self)
        self.readings.check_drained()
        time = {
            "scheduler": self.loop.plans * costs.scheduler / SECOND,
            "boxes": processors.worked / SECOND,
            "storage": processors.fetched * costs.storage / SECOND,
            "sources": 0.0 if self._following is None else self._following.intake / SECOND,
            "sinks": 0.0,
            "preemption": processors.preemptions * costs.preemption / SECOND,
        }
        told = {
            "real_seconds": (stopwatch() - begun) / 1e9,
            "real_planning": self.loop.planning / SECOND,
            "preemptions": processors.preemptions,
            "mean_queued_bytes": self._queued_time / max(1, self._now.now()),
            "idle": self._spare / SECOND,
        }
        return self.result(self._now.now() / SECOND, time, told)

    # What the loop reads

    @property
    def free(self) -> int:
        """How many processors are free."""
        return self._processors.free

    @property
    def busy(self) -> bool:
        """Whether a processor is at work."""
        return self._processors.busy

    ready = False

    def snapshot(self, admits: bool, seen: bool) -> Snapshot:
        """Return what is true now."""
        readings, processors, now = self.readings, self._processors, self._now.now()
        readings.refresh(seen)
        found = readings.snapshot(
            now,
            train=self.train,
            room=self.schedule.plan if self._following is not None else processors.free or processors.count,
            more=admits and (self.sources.more_in_turn or not self.sources.ended),
            free=processors.free,
            memory=self.runtime.board.bytes,
            planning=self._costs.scheduler / SECOND,
        )
        return processors.view(found, self.loop.preemptive)

    def _effort(self) -> Effort:
        """Return what processors have done."""
        now = self._now.now()
        return Effort(now * self._processors.count - self._spare, under_way=self._processors.under_way(now))

    # What the loop has done

    def admit(self, held: bool) -> None:
        """Let all tuples of this moment arrive, and in turn so many that trains can be full.

        Policies are asked afterwards: what arrives at a moment is there at that moment, all of it.
        """
        more = self.sources.pull(held or self.hungry)
        while more and not self.full and self._following is None:
            more = self.sources.pull(self.hungry)
        self.peak = max(self.peak, self.runtime.board.bytes)

    def end(self) -> None:
        """Let the end arrive: it costs nothing."""
        super().end()
        self._issued = self.sources.issued

    def start(self, start: Start) -> Started:
        """Let processors begin the steps of a plan."""
        assert start.snapshot is not None
        processors, snapshot, now = self._processors, start.snapshot, self._now.now()
        if self.loop.preemptive:
            self._following = None  # another policy may have begun to decide
            # Overheads come first: a slice of time counts from when work on it begins, or one that is shorter than
            # they are would never get anything done.
            before = processors.preemptions
            begun = processors.switch(start.steps, snapshot, now, start.plan)
            switched = self._costs.preemption if processors.preemptions > before else 0
            done = Started(begun, postponed=self._costs.scheduler + switched)
        elif self._following is not None:
            arrived = self.sources.issued - self._issued
            done = Started(self._following.follow(start.steps, snapshot, now, start.plan, arrived))
        else:
            begun = processors.start(start.steps, snapshot, now, start.plan)
            done = Started(begun, again=processors.free > 0)
        self._begun += done.begun
        return done

    def wait(self, wait: Wait) -> Round:
        """Move on to the next event."""
        self._note_round()
        self._report()
        if wait.held and wait.admits and self.sources.more_in_turn:  # what comes in turn is there for the asking
            self._moved = True
        else:
            self._moved = self._advance(wait.until, wait.admits)
            if self.loop.paused and not self._moved:  # only somebody outside can change that, in real time
                self.sources.wake.wait(_PAUSED)
        return self._next_round()

    def _next_round(self) -> Round:
        """End the calls whose moment has come; a plan that is being followed goes on until its end."""
        while True:
            now = self._now.now()
            ended = self._processors.finish(now)
            if self._following is not None:
                self._following.in_parts = self.steering.active
                self._stirred = self._stirred or ended > 0
                if self._following.goes_on(now):
                    if self.settings.may_shed and now >= self.steering.next:
                        # Looking changes nothing: what is due is counted, but let in only at the plan's end.
                        self.loop.part_ended(now, False)
                        self._stirred, self._looked = False, self.steering.next
                    self._report()
                    self._advance(None, False)
                    continue
            return self.begin(ended)

    def begin(self, ended: int = 0) -> Round:
        """Begin a round."""
        self._issued, self._ended, self._begun = self.sources.issued, ended, 0
        return Round(self._now.now(), ended, self.stopping.commands())

    def _note_round(self) -> None:
        """Note whether anything has happened in this round; a policy must not be asked again and again for nothing."""
        arrived, busy = self.sources.issued != self._issued, self._processors.busy
        looked, self._looked = self._looked != self.steering.next, self.steering.next
        self._stirred = self._begun > 0 or (not looked and (self._stirred or arrived or self._ended > 0))
        happened = self._ended or arrived or self._begun or (busy and self._moved) or self.loop.paused
        self._idle = 0 if happened else self._idle + 1
        if self._idle > _STUCK:
            if busy:
                raise RunError(f"policy '{self.schedule}' wants to be asked again at a moment that has passed")
            raise self.loop.unserved()

    def _advance(self, until: int | None, admits: bool) -> bool:
        """Move the clock to the next event; False if that is now, or if there is none."""
        now, busy, following = self._now.now(), self._processors.busy, self._following is not None
        ended = self.sources.ended
        moments = [] if self._processors.next_end is None else [self._processors.next_end]
        if not ended and not (following and busy):
            due = self.sources.next_due()
            if following and self.sources.ended:
                return False  # that is only known now: nobody waits for more any longer
            if due is not None and (admits or due > now):
                moments.append(due)
            moments += [] if self.deadline is None else [self.deadline]
        if until is not None:
            moments.append(until)
        looks = self.settings.may_shed or not following  # in the middle of a plan
        if moments and ((busy and looks) or self.steering.active):
            moments.append(self._next_look(now))
        moment = min(moments, default=now)
        if moment <= now:
            return False
        worked = 0
        if self._following is not None and not busy:
            worked, self._following.owed = self._following.owed, 0
            # Either it was asleep, and wakes a little late, or what it looked at came to nothing and took longer.
            moment = moment + self._costs.wake if moment > now + worked else now + worked
        self._spare += self._processors.free * (moment - now - worked)
        self._queued_time += self.runtime.board.bytes * (moment - now)
        self._now.advance(moment - now)
        return True

    def _next_look(self, now: int) -> int:
        """Return when to look in the middle of calls: not while nothing has happened, however long they last."""
        soon = max(now + 1, self.steering.next)
        if self._stirred or self.steering.active or self.settings.adaptive is not None:
            return soon
        due = None if self.sources.ended else self.sources.next_due()
        return FAR if due is None else max(soon, due)

    def _report(self) -> None:
        if self.recorder is not None:
            board = self.runtime.board
            waiting = int((board.arrived - board.taken).sum()) + self._processors.held
            self.recorder.queued(self._now.now(), waiting, board.bytes)
        self.report(stopwatch(), self._now.now() / SECOND)


class Portions(Awaited):
    """A live source that is waited for until a whole portion is there, or its end, or somebody ends the run.

    How many of its tuples come at a time is the outside world's doing; here a run must not depend on it. A thread asks
    the source, one question at a time, so that one that says nothing does not keep the run from ending.
    """

    def __init__(self, reader: Reader, source: str, stopped: Callable[[], bool]) -> None:
        """Wait for a reader of a source until `stopped`; it is asked first when somebody reads."""
        super().__init__(reader)
        self._source = source
        self._stopped = stopped
        self._questions: queue.SimpleQueue[int | None] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[Chunk | BaseException | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def read(self, limit: int) -> Chunk | None:
        """Return the next `limit` tuples, fewer at the end or among malformed rows.

        Blocks until they are there or the run shall end.
        """
        chunks: list[Chunk] = []
        while limit > 0 and (chunk := self._next(limit)) is not None:
            chunks.append(chunk)
            limit -= len(chunk)
            if not len(chunk):
                break  # it brings malformed rows, which somebody has to take first
        if len(chunks) < 2:
            return chunks[0] if chunks else None
        due = [chunk.due for chunk in chunks if chunk.due is not None]
        return Chunk(pa.concat_batches([chunk.batch for chunk in chunks]), np.concatenate(due) if due else None)

    def _next(self, limit: int) -> Chunk | None:
        if self._stopped():
            return None
        if self._thread is None:
            name = f"headway-source-{self._source}"
            self._thread = threading.Thread(target=self._answer, name=name, daemon=True)
            self._thread.start()
        self._questions.put(limit)
        while True:
            try:
                answer = self._answers.get(timeout=_LOOK)
            except queue.Empty:
                if self._stopped():
                    return None
                continue
            if isinstance(answer, BaseException):
                raise blame(self._source, answer)
            return answer

    def release(self) -> None:
        """Ask nothing any more; the source is closed by whoever opened it."""
        self._questions.put(None)

    def _answer(self) -> None:
        answer: Chunk | BaseException | None
        while (limit := self._questions.get()) is not None:
            try:
                answer = self._reader.read(limit)
            except BaseException as error:  # handed to the run, which fails with it
                answer = error
            self._answers.put(answer)


register_engine("sim", SimEngine)
