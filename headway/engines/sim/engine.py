"""The simulator: real boxes and real tuples in virtual time.

Everything that decides results is as in the engine `local`: sources, queues, kernels, outputs. What takes time is
modelled: a call lasts what its tuples cost, its results come when it ends, and the clock jumps from event to event. So
results are those of any other engine, and every moment is exact and the same in every repetition.
"""

from __future__ import annotations

import contextlib
from typing import Any

from headway.checking import CheckedNetwork
from headway.clock import SECOND, ManualClock, stopwatch
from headway.connectors.base import Reader
from headway.engines.base import RunResult, RunSettings, register_engine
from headway.engines.delivery import Outlets
from headway.engines.ingest import Ingest
from headway.engines.interrupts import Stopping, ending
from headway.engines.local.workers import quiet
from headway.engines.models import LOCAL, Model
from headway.engines.monitor import Effort
from headway.engines.opening import open_readers
from headway.engines.runtime import Runtime
from headway.engines.runtime_drops import RuntimeDrops
from headway.engines.runtime_reading import RuntimeReading
from headway.engines.sim.following import Following
from headway.engines.sim.processors import Processors
from headway.engines.sim.sources import Portions
from headway.engines.sim.work import Costs
from headway.engines.steering import Steering
from headway.engines.summary import status, summarise
from headway.engines.traces import Recorder
from headway.errors import RunError
from headway.kernels.universal import without_burning
from headway.scheduling.policy import Plan, is_preemptive
from headway.scheduling.snapshot import Snapshot
from headway.storage.queues import FAR
from headway.totals import Spent

_STATUS_EVERY = SECOND // 4
_MOST_READ = 65_536
_LEAST_READ = 1024
_STUCK = 10_000
"""Times in a row that a policy may be asked while nothing happens."""
_NAMED = 5
"""Units that an error names."""


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
        self._clock = ManualClock()
        network = checked.network
        readers = open_readers(checked, settings, stack)
        self._outlets = Outlets(checked, settings, self._clock, stack, stopping)
        self._runtime = Runtime(
            checked, self._outlets.deliveries, settings.tables, self._outlets.letters, self._clock, *settings.fading
        )
        for box in self._runtime.boxes:
            box.kernel = without_burning(box.kernel)
        model = settings.model or Model()
        self._costs = Costs(checked, model)
        self._costs.declare(self._runtime.statistics)
        self._units = self._schedule.units(self._runtime.topology)
        self._readings = RuntimeReading(checked, self._runtime, self._units)
        self._policy = settings.make_policy()
        self._preemptive = is_preemptive(self._policy)
        self._traversal = self._schedule.make_traversal(self._runtime.topology)
        self._recorder: Recorder | None = None
        if settings.trace:
            names = [unit.name for unit in self._units]
            boxes, described = self._runtime.topology.boxes, network.to_mapping()
            self._recorder = Recorder(network.name, names, boxes, settings.policy_text, start=0, description=described)
        count = settings.workers or 1
        self._processors = Processors(
            self._runtime, self._readings, self._costs, count, self._traversal, self._recorder
        )
        # A preemptive policy looks up all the time, and several workers share no rounds: for them all stays exact.
        self._following: Following | None = None
        if model.like == LOCAL and count == 1 and not self._preemptive:
            self._following = Following(self._processors, self._costs)
            self._processors.together = True
        self._feeds = [
            # There is no waiting for the outside world in virtual time: live sources are read to their end in turn.
            self._runtime.feed(source.name, self._portions(source.name, reader, stack) if reader.live else reader)
            for source, reader in zip(network.sources, readers, strict=True)
        ]
        if self._recorder is not None:
            self._recorder.hear(self._feeds)
        self._train = self._schedule.most
        self._chunk = min(max(16 * self._train, _LEAST_READ), _MOST_READ)
        refuse, half_life = self._outlets.letters.refuse, settings.half_life
        self._ingest = Ingest(self._feeds, self._clock, self._chunk, refuse, half_life=half_life)
        stack.callback(self._ingest.stop)
        outlets = list(self._outlets.deliveries.values())
        self._readings.attach(self._ingest, self._feeds, outlets, self._schedule)
        self._timed = [box for box in self._runtime.boxes if box.timed]
        self._spare = 0  # nanoseconds of processors that had nothing to do
        drops = RuntimeDrops(self._readings, count, self._train, self._effort)
        self._steering = Steering(settings, self._policy, self._readings, drops, 0, self._recorder)
        self._memory: Any = self._steering.begin(self._policy.start())
        self._plans = 0
        self._peak_queued = 0
        self._queued_time = 0  # bytes in queues times nanoseconds
        self._planning = 0  # nanoseconds that snapshots and plans took for real
        self._stopped_by: str | None = None
        self._idle = 0
        self._stirred = True  # something has happened since the last look
        self._next_status = 0

    def _portions(self, source: str, reader: Reader, stack: contextlib.ExitStack) -> Portions:
        portions = Portions(reader, source, lambda: self._stopping.by is not None)
        stack.callback(portions.release)
        return portions

    def go(self) -> RunResult:
        """Run to the end."""
        begun = stopwatch()
        self._stopping.begin()
        self._loop()
        self._stopped_by = self._stopping.by
        tables = self._outlets.complete()
        trace = None if self._recorder is None else self._recorder.trace(self._readings.flows())
        real = (stopwatch() - begun) / 1e9
        return RunResult(tables, self._summary(real), self._outlets.letters.table(), trace)

    # The loop: whatever happens at a moment, then what to do about it, then the next moment.

    def _loop(self) -> None:
        ended = False
        until: int | None = None
        moved = True  # whether the clock has moved since the last round
        held = False  # the policy lets all that is ready wait, so that more is wanted however much waits
        starved = False  # nothing was to be done the last time, so holding sources back would not help
        while True:
            now = self._clock.now()
            ended_calls = self._processors.finish(now)
            self._stirred = self._stirred or ended_calls > 0
            if self._following is not None:
                self._following.in_parts = self._steering.active
            if self._following is not None and self._following.goes_on(now):
                self._look_up(now)
                self._report()
                self._advance(now, None, False)
                continue
            issued = self._ingest.issued
            self._tick_if_due(now)
            open_ = self._runtime.board.bytes <= self._settings.memory or starved
            if not self._ingest.stopped and self._stopping.by is not None:
                self._ingest.stop()
            if open_:
                self._let_arrive(held)
            self._peak_queued = max(self._peak_queued, self._runtime.board.bytes)
            arrived = self._ingest.issued != issued
            self._stirred = self._stirred or arrived
            if now >= self._steering.next:
                self._look(now)
            due = until is not None and now >= until
            ready, started = False, 0
            if self._processors.free or (self._preemptive and (arrived or due or ended_calls)):
                ready, started, until = self._decide(now, open_, self._ingest.issued - issued)
            elif not self._preemptive:
                until = None  # nobody can be asked before a call ends
            self._stirred = self._stirred or started > 0
            self._report()
            busy = self._processors.busy
            starved, held = not ready and not busy, ready and not busy and not started
            if starved and self._ingest.ended:
                if ended:
                    self._readings.check_drained()
                    return
                ended = True
                self._ingest.end()
                continue
            self._idle = 0 if ended_calls or arrived or started or (busy and moved) else self._idle + 1
            if self._idle > _STUCK:
                self._give_up(busy)
            if held and open_ and self._ingest.more_in_turn:
                continue  # what comes in turn is there for the asking
            moved = self._advance(now, until if ready or busy else None, open_)

    def _decide(self, now: int, open_: bool, arrived: int) -> tuple[bool, int, int | None]:
        """Ask the policy as long as processors are free and there is something to do.

        Returns whether something was ready, how many steps began, and when the policy wants to be asked again.
        """
        readings, processors, following = self._readings, self._processors, self._following
        begun = 0
        while True:
            asked = stopwatch()
            readings.refresh()
            occupation, waits = processors.view(now, self._preemptive)
            snapshot = readings.snapshot(
                now,
                queued=self._runtime.board.bytes,
                train=self._train,
                room=self._schedule.plan if following is not None else processors.free or processors.count,
                more=open_ and (self._ingest.more_in_turn or not self._ingest.ended),
                occupation=occupation,
                waits=waits,
                planning=self._costs.scheduler / SECOND,
            )
            able = snapshot.ready if self._preemptive else snapshot.ready & ~snapshot.busy
            if not able.any():
                return bool(snapshot.ready.any()), begun, None
            plan, after = self._policy.plan(snapshot, self._memory)
            readings.told()
            self._plans += 1
            self._planning += stopwatch() - asked
            if self._recorder is not None:
                self._recorder.plan(snapshot, self._policy, self._memory, plan)
            self._memory = after
            if self._preemptive:
                return True, *self._switch(plan, snapshot, now)
            if following is not None:
                return True, following.follow(plan.steps, snapshot, now, self._plans, arrived), plan.until
            started = processors.start(plan.steps, snapshot, now, self._plans)
            begun += started
            if not started or not processors.free:
                return True, begun, plan.until

    def _switch(self, plan: Plan, snapshot: Snapshot, now: int) -> tuple[int, int | None]:
        """Let run what a preemptive policy wants; return how many steps began, and when it wants to be asked again.

        Overheads come first: a slice of time counts from when work on it begins, or one that is shorter than them
        would never get anything done.
        """
        before = self._processors.preemptions
        started = self._processors.switch(plan.steps, snapshot, now, self._plans)
        if plan.until is None:
            return started, None
        switched = self._processors.preemptions > before
        return started, plan.until + self._costs.scheduler + (self._costs.preemption if switched else 0)

    def _look_up(self, now: int) -> None:
        """Look at the run in the middle of a plan, where load may be shed: an overload does not wait for its end.

        Looking changes nothing: what is due meanwhile is counted, but let in only at the plan's end, as always.
        """
        if self._settings.may_shed and now >= self._steering.next:
            self._look(now)

    def _look(self, now: int) -> None:
        self._memory, self._stirred = self._steering.look(now, self._memory), False

    def _advance(self, now: int, until: int | None, open_: bool) -> bool:
        """Move the clock to the next event; False if that is now, or if there is none."""
        busy, following = self._processors.busy, self._following is not None
        moments = [] if self._processors.next_end is None else [self._processors.next_end]
        if not self._ingest.ended and not (following and busy):
            due = self._ingest.next_due()
            if following and self._nothing_comes():
                return False  # that is only known now: nobody waits for more any longer
            if due is not None and (open_ or due > now):
                moments.append(due)
            moments += [box.deadline for box in self._timed if box.deadline is not None]
        if until is not None:
            moments.append(until)
        looks = self._settings.may_shed or not following  # in the middle of a plan
        if moments and ((busy and looks) or self._steering.active):
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
        self._queued_time += self._runtime.board.bytes * (moment - now)
        self._clock.advance(moment - now)
        return True

    def _next_look(self, now: int) -> int:
        """Return when to look in the middle of calls: not while nothing has happened, however long they last."""
        soon = max(now + 1, self._steering.next)
        if self._stirred or self._steering.active or self._settings.adaptive is not None:
            return soon
        due = None if self._ingest.ended else self._ingest.next_due()
        return FAR if due is None else max(soon, due)

    def _nothing_comes(self) -> bool:
        """Return whether the sources have ended; looking for what is due next may have shown that."""
        return self._ingest.ended

    def _give_up(self, busy: bool) -> None:
        if busy:
            raise RunError(f"policy '{self._schedule}' wants to be asked again at a moment that has passed")
        ready = [self._units[at].name for at in self._readings.ready.nonzero()[0]]
        names = ", ".join(f"'{name}'" for name in ready[:_NAMED]) + (", ..." if len(ready) > _NAMED else "")
        raise RunError(f"policy '{self._schedule}' serves none of the units that are ready: {names}")

    def _let_arrive(self, held: bool) -> None:
        """Let all tuples of this moment arrive, and in turn so many that trains can be full.

        Policies are asked afterwards: what arrives at a moment is there at that moment, all of it.
        """
        ingest, board, memory = self._ingest, self._runtime.board, self._settings.memory
        more = ingest.pull(held or self._hungry())
        while more and board.bytes <= memory and self._following is None:
            more = ingest.pull(self._hungry())

    def _hungry(self) -> bool:
        """Whether sources without rates should give more: when the slowest reader has little left."""
        if not self._ingest.more_in_turn:
            return False
        return self._readings.longest < self._chunk

    def _tick_if_due(self, now: int) -> None:
        due = [box for box in self._timed if box.deadline is not None and box.deadline <= now]
        if due and not self._ingest.ended:
            for box in due:
                box.deadline = None  # until the tick has reached it
            self._ingest.tick()

    # Readings

    def _effort(self) -> Effort:
        """Return what processors have done."""
        now = self._clock.now()
        return Effort(now * self._processors.count - self._spare, under_way=self._processors.under_way(now))

    def _report(self) -> None:
        moment = stopwatch()
        board = self._runtime.board
        waiting = int((board.arrived - board.taken).sum()) + self._processors.held if self._recorder else 0
        if self._recorder is not None:
            self._recorder.queued(self._clock.now(), waiting, board.bytes)
        if self._settings.on_status is None or moment < self._next_status:
            return
        self._next_status = moment + _STATUS_EVERY
        totals, letters = self._steering.totals(self._clock.now(), self._spent()), self._outlets.letters.total
        known = int((board.arrived - board.taken).sum()), board.bytes, letters, board.bytes > self._settings.memory
        self._settings.on_status(status(totals, self._runtime.topology.outputs, self._clock.now() / SECOND, *known))

    def _spent(self) -> Spent:
        processors = self._processors
        spent = {
            "scheduler": self._plans * self._costs.scheduler / SECOND,
            "boxes": processors.worked / SECOND,
            "storage": processors.fetched * self._costs.storage / SECOND,
            "sources": 0.0 if self._following is None else self._following.intake / SECOND,
            "sinks": 0.0,
            "preemption": processors.preemptions * self._costs.preemption / SECOND,
        }
        return Spent(spent, self._plans, self._peak_queued)

    def _summary(self, real: float) -> dict[str, Any]:
        return summarise(
            "sim",
            self._settings,
            self._readings,
            self._steering.totals(self._clock.now(), self._spent()),
            self._steering,
            self._outlets.letters,
            {box.name: box.ignored for box in self._runtime.boxes},
            workers=self._processors.count,
            seconds=self._clock.now() / SECOND,
            stopped_by=self._stopped_by,
            more={
                "real_seconds": real,
                "real_planning": self._planning / SECOND,
                "preemptions": self._processors.preemptions,
                "mean_queued_bytes": self._queued_time / max(1, self._clock.now()),
                "idle": self._spare / SECOND,
            },
        )


register_engine("sim", SimEngine)
