"""The simulator: carries out the loop's instructions in virtual time, with real boxes and real tuples.

Everything that determines results is as in the engine `local`: sources, queues, kernels, outputs. Durations are
modelled: a call lasts as long as its tuples cost, its results leave when it ends, and the clock jumps from event to
event. So results are those of any other engine, and all times are exact and reproducible.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa

from headway.checking import CheckedNetwork
from headway.clock import SECOND, ManualClock, stopwatch
from headway.columns import NEVER
from headway.connectors.protocol import Chunk, Reader
from headway.connectors.readers import Wrapped
from headway.engines.carrier import Given, giving
from headway.engines.ingest import blame
from headway.engines.instructions import AT_ONCE, Manner, Renewed, Round, Seal, Start, Started, Wait
from headway.engines.loop import drive
from headway.engines.models import LOCAL, Model
from headway.engines.process.capacity import Effort
from headway.engines.process.drops import RuntimeDrops
from headway.engines.process.run import Process
from headway.engines.runs import RunResult, RunSettings, register_engine
from headway.engines.sim.processors import Following, Processors
from headway.engines.sim.work import Costs
from headway.errors import RunError
from headway.scheduling.policy import Policy
from headway.scheduling.snapshot import Snapshot

_STUCK = 10_000
"""How many times in a row a policy may be asked while nothing happens."""
_LOOK = 0.1
"""Seconds between checks for a stop request while waiting for a source."""
_PAUSED = 0.02
"""Seconds (real time) between checks of a paused run for commands."""


class SimEngine:
    """Runs networks in virtual time."""

    def run(self, checked: CheckedNetwork, settings: RunSettings) -> RunResult:
        """Run until all inputs have ended and everything is delivered."""
        if settings.clock is not None:
            raise RunError("clock is not for the engine 'sim', which has a virtual one of its own")
        with giving(checked, settings, ManualClock()) as given:
            return Simulation(given).go()


class Simulation(Process):
    """One run in virtual time."""

    engine = "sim"
    virtual = True
    clock: ManualClock
    _following: Following | None

    def __init__(self, given: Given) -> None:
        super().__init__(given)
        settings = self.settings
        count = settings.workers or 1
        policy = settings.make_policy()
        self._furnish(count, policy)
        self._spare = 0  # nanoseconds in which processors were idle
        self._queued_time = 0  # bytes in queues, integrated over nanoseconds
        self._issued = self.sources.issued  # when the round began
        self._ended = self._begun = 0  # calls and steps in this round
        self._moved = True  # whether the clock has moved since the previous round
        self._idle = 0  # consecutive rounds in which nothing happened
        self._stirred = True  # whether anything has happened since the last look
        self._looked = 0
        drops = RuntimeDrops(self.readings, self.train, self._effort)
        self.steer(count, policy, drops, Manner(virtual=self.virtual))

    def _furnish(self, count: int, policy: Policy, before: Processors | None = None) -> None:
        """Make the processors for the network as it is now; what those `before` a seam have done still counts."""
        for box in self.runtime.boxes:
            box.kernel = box.kernel.without_burning()
        model = self.settings.model or Model()
        self._costs = Costs(self.checked, model)
        self._costs.declare(self.runtime.statistics)
        # A preemptive policy is asked at any time, and several workers share no rounds: those remain exact.
        follows = model.like == LOCAL and count == 1 and not policy.preemptive
        self._processors = Processors(
            self.runtime, self.readings, self._costs, count, self.traversal, self.recorder, together=follows
        )
        intake = 0 if before is None or self._following is None else self._following.intake
        self._following = Following(self._processors, self._costs) if follows else None
        if before is not None:
            self._processors.count_on(before)
            if self._following is not None:
                self._following.intake = intake

    @property
    def next_command(self) -> int | None:
        """The moment of the next command."""
        return self.stopping.next

    @property
    def awaiting(self) -> bool:
        """Whether there is more to do that no step can be started for now, or the network will change."""
        return super().awaiting or (self.stopping.alters and not self.sources.stopped)

    @property
    def settled(self) -> bool:
        """Whether the network could be exchanged now."""
        return not self._processors.busy

    def begin_seam(self, seal: Seal) -> Renewed | None:
        """Begin a seam; where the runtime is exchanged for that, calls that were preempted end at once."""
        if seal.alter.alteration.opening is not None:
            self._processors.complete()
        return super().begin_seam(seal)

    def exchange(self) -> Renewed:
        """Exchange the network; calls that were preempted end at once."""
        self._processors.complete()
        return super().exchange()

    def exchanged(self) -> Renewed:
        """Prepare for the network after a seam."""
        assert self.loop.policy is not None
        self._furnish(self._processors.count, self.loop.policy, self._processors)
        return self.steer_on(RuntimeDrops(self.readings, self.train, self._effort), Manner(virtual=self.virtual))

    def wrap(self, given: Given, source: str, reader: Reader) -> Reader:
        """Make reads of a live source block until its tuples are there: virtual time stands still meanwhile."""
        if not reader.live:
            return reader
        return Portions(reader, source, lambda: given.stopping.by is not None)

    def go(self) -> RunResult:
        """Run until the end."""
        begun = stopwatch()
        self.stopping.begin()
        drive(self.loop, self)
        self.readings.check_drained()
        told = {
            "real_seconds": (stopwatch() - begun) / 1e9,
            "real_planning": self.loop.planning / SECOND,
            "preemptions": self._processors.preemptions,
            "mean_queued_bytes": self._queued_time / max(1, self.clock.now()),
            "idle": self._spare / SECOND,
        }
        return self.result(self.stopping.by, told)

    @property
    def seconds(self) -> float:
        """How long the run has taken so far, in virtual time."""
        return self.clock.now() / SECOND

    def time(self) -> Mapping[str, float]:
        """Return the seconds of virtual time spent so far, by activity."""
        costs, processors = self._costs, self._processors
        return {
            "scheduler": self.loop.plans * costs.scheduler / SECOND,
            "boxes": processors.worked / SECOND,
            "storage": processors.fetched * costs.storage / SECOND,
            "sources": 0.0 if self._following is None else self._following.intake / SECOND,
            "sinks": 0.0,
            "preemption": processors.preemptions * costs.preemption / SECOND,
        }

    # What the loop reads

    @property
    def free(self) -> int:
        """How many processors are free."""
        return self._processors.free

    @property
    def busy(self) -> bool:
        """Whether a processor is working."""
        return self._processors.busy

    @property
    def attentive(self) -> bool:
        """Whether tuples arrive at the moment at which they are due: not while a plan is being followed."""
        return self._following is None or not self.busy

    def snapshot(self, seen: bool) -> Snapshot:
        """Return the current snapshot."""
        readings, processors, now = self.readings, self._processors, self.clock.now()
        readings.refresh(seen)
        found = readings.snapshot(
            now,
            train=self.train,
            room=self.schedule.plan if self._following is not None else processors.free or processors.count,
            more=self.more,
            free=processors.free,
            memory=self.runtime.board.bytes,
            planning=self._costs.scheduler / SECOND,
        )
        return processors.view(found, self.loop.preemptive)

    def _effort(self) -> Effort:
        """Return the work done by processors."""
        now = self.clock.now()
        return Effort(now * self._processors.count - self._spare, under_way=self._processors.under_way(now))

    # Instructions of the loop

    def admit(self, asks: bool) -> None:
        """Let all tuples of this moment arrive, and enough of sources without rates to fill trains.

        Policies are asked afterwards, so that they see everything that arrives at this moment.
        """
        self.catch_up()
        more = self.sources.pull(asks)
        while more and not self.full and self._following is None:
            more = self.sources.pull(self.hungry)
        self.peak = max(self.peak, self.runtime.board.bytes)

    def end(self) -> None:
        """Let the end of all inputs arrive, at no cost."""
        super().end()
        self._issued = self.sources.issued

    def start(self, start: Start) -> Started:
        """Have processors begin the steps of a plan."""
        assert start.snapshot is not None
        processors, snapshot, now = self._processors, start.snapshot, self.clock.now()
        if self.loop.preemptive:
            self._following = None  # a command may have changed the policy
            # Overheads come first: a time slice counts from when work on it begins, or a slice shorter than the
            # overheads would never get anything done.
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
        """Advance to the next event."""
        self._note_round()
        self._report()
        self._moved = self._advance(wait.until, wait.look)
        if self.loop.paused and not self._moved and wait is not AT_ONCE:  # only a command can change that
            self.sources.wake.wait(_PAUSED)
        return self._next_round()

    def _next_round(self) -> Round:
        """End the calls that are due, and continue a plan that is being followed until its end."""
        while True:
            now = self.clock.now()
            ended = self._processors.finish(now)
            if self._following is not None:
                self._following.in_parts = self.steering.active
                self._stirred = self._stirred or ended > 0
                if self._following.goes_on(now):
                    if self.settings.may_shed and now >= self.steering.next:
                        # Looking changes nothing: tuples that are due are counted, but only let in at the plan's end.
                        self.loop.part_ended(now, False)
                        self._stirred, self._looked = False, self.steering.next
                    self._report()
                    self._advance(NEVER, self.steering.next)
                    continue
            return self.begin(ended)

    def begin(self, ended: int = 0) -> Round:
        """Begin a round."""
        self._issued, self._ended, self._begun = self.sources.issued, ended, 0
        now = self.clock.now()
        return Round(now, ended, self.stopping.commands(now))

    def _note_round(self) -> None:
        """Note whether anything has happened in this round; a policy must not be asked forever without effect."""
        arrived, busy = self.sources.issued != self._issued, self._processors.busy
        looked, self._looked = self._looked != self.steering.next, self.steering.next
        self._stirred = self._begun > 0 or (not looked and (self._stirred or arrived or self._ended > 0))
        happened = self._ended or arrived or self._begun or (busy and self._moved) or self.loop.paused
        self._idle = 0 if happened else self._idle + 1
        if self._idle > _STUCK:
            if busy:
                raise RunError(f"policy '{self.schedule}' wants to be asked again at a moment that has passed")
            if self.awaiting:
                names = [f"'{self.runtime.boxes[at].name}'" for at in sorted(self.runtime.paused)]
                raise RunError(f"the simulation cannot end, as boxes are paused for good: {', '.join(names)}")
            raise self.loop.unserved()

    def _advance(self, until: int, look: int) -> bool:
        """Advance the clock to the next event; return False if that is now, or if there is none."""
        now, end = self.clock.now(), self._processors.next_end
        moment = until if end is None else min(until, end)
        # Without load shedding, nobody looks while a plan is being followed.
        if look < NEVER and (self.settings.may_shed or self._following is None):
            moment = min(moment, self._next_look(now))
        if moment <= now or moment == NEVER:
            return False
        worked = 0
        if self._following is not None and not self._processors.busy:
            worked, self._following.owed = self._following.owed, 0
            # Either it was asleep, and wakes a little late, or rounds without effect took longer than that.
            moment = moment + self._costs.wake if moment > now + worked else now + worked
        self._spare += self._processors.free * (moment - now - worked)
        self._queued_time += self.runtime.board.bytes * (moment - now)
        self.clock.advance(moment - now)
        return True

    def _next_look(self, now: int) -> int:
        """Return when to look during calls; not while nothing happens, however long the calls last."""
        soon = max(now + 1, self.steering.next)
        if self._stirred or self.steering.active or self.settings.adaptive is not None:
            return soon
        due = None if self.sources.ended else self.sources.next_due()
        return NEVER if due is None else max(soon, due)

    def _report(self) -> None:
        if self.recorder is not None:
            board = self.runtime.board
            self.recorder.queued(self.clock.now(), self.waiting + self._processors.held, board.bytes)
        self.report(stopwatch())


class Portions(Wrapped):
    """Reads a live source in full portions: waits until one is complete, the source ends, or the run is stopped.

    The size in which live tuples come in depends on timing, and a simulation must not. Each read has a thread of its
    own, so that a silent source cannot keep the run from ending.
    """

    def __init__(self, reader: Reader, source: str, stopped: Callable[[], bool]) -> None:
        """Wrap a source's reader; stop waiting when `stopped` returns True."""
        super().__init__(reader)
        self.live = False  # blocking the caller does not delay virtual time
        self._source = source
        self._stopped = stopped

    def read(self, limit: int) -> Chunk | None:
        """Return the next `limit` tuples, fewer at the end or among malformed rows.

        Blocks until they are available or the run is stopped.
        """
        chunks: list[Chunk] = []
        while limit > 0 and (chunk := self._next(limit)) is not None:
            chunks.append(chunk)
            limit -= len(chunk)
            if not len(chunk):
                break  # malformed rows, which must be collected first
        if len(chunks) < 2:
            return chunks[0] if chunks else None
        due = [chunk.due for chunk in chunks if chunk.due is not None]
        return Chunk(pa.concat_batches([chunk.batch for chunk in chunks]), np.concatenate(due) if due else None)

    def _next(self, limit: int) -> Chunk | None:
        answers: queue.SimpleQueue[Chunk | BaseException | None] = queue.SimpleQueue()

        def read() -> None:
            try:
                answers.put(self._reader.read(limit))
            except BaseException as error:  # passed to the run, which fails with it
                answers.put(error)

        if self._stopped():
            return None
        threading.Thread(target=read, name=f"headway-source-{self._source}", daemon=True).start()
        while True:
            try:
                answer = answers.get(timeout=_LOOK)
            except queue.Empty:
                if self._stopped():  # only now: what the source has said before it was stopped counts
                    return None
                continue
            if isinstance(answer, BaseException):
                raise blame(self._source, answer)
            return answer


register_engine("sim", SimEngine)
