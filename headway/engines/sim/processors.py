"""Processors in virtual time: steps begin, are preempted, resume and end at exact moments."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

from headway.clock import SECOND
from headway.columns import Int64s, Mask, frozen
from headway.engines.process.reading import RuntimeReading
from headway.engines.process.run import Parts, fail
from headway.engines.process.runtime import RunningBox, Runtime
from headway.engines.sim.work import BegunStep, Costs, Stretch, UnderWay
from headway.engines.traces import CallRecord, Recorder
from headway.kernels.results import whole
from headway.scheduling.policy import Step
from headway.scheduling.snapshot import Snapshot
from headway.scheduling.superboxes import Traverser
from headway.trains import Train


class Processors:
    """A number of identical processors and their steps."""

    def __init__(
        self,
        runtime: Runtime,
        readings: RuntimeReading,
        costs: Costs,
        count: int,
        traversal: Traverser | None,
        recorder: Recorder | None,
        *,
        together: bool,
    ) -> None:
        """With `together`, all results of a call leave when it ends, not each when its tuple is done."""
        self._runtime = runtime
        self._readings = readings
        self._costs = costs
        self._traversal = traversal
        self._recorder = recorder
        self.count = count
        self._running: list[BegunStep | None] = [None] * count
        self._preempted: dict[int, BegunStep] = {}
        self._own = [frozenset(unit.boxes) for unit in readings.units]
        self.free = count
        self.worked = 0
        """Nanoseconds spent in box calls."""
        self.fetched = 0
        """How many times a box took tuples from storage."""
        self.preemptions = 0
        self._together = together
        """Whether all results of a call leave when it ends, instead of each when the tuple that caused it is done."""

    def count_on(self, before: Processors) -> None:
        """Continue the counts of the processors before a seam."""
        self.worked, self.fetched, self.preemptions = before.worked, before.fetched, before.preemptions

    @property
    def busy(self) -> bool:
        """Whether a step is under way."""
        return self.free < self.count

    def complete(self) -> None:
        """End all calls that were preempted, whatever is left of them; their steps are over."""
        for work in self._preempted.values():
            self._end_call(work)
            self._runtime.release(self._readings.members.boxes[work.unit])
            self._record(work, self._runtime.clock.now(), preempted=False)
        self._preempted.clear()

    @property
    def next_end(self) -> int | None:
        """The moment at which the next call ends."""
        return min([work.end for work in self._running if work is not None], default=None)

    @property
    def held(self) -> int:
        """Tuples taken by calls under way or preempted: they still use memory."""
        return sum(work.call.tuples for work in self._works() if work.call is not None)

    def under_way(self, now: int) -> int:
        """Return the nanoseconds that processors have spent on calls that have not ended."""
        calls = [work.call for work in self._running if work is not None]
        return sum(max(0, now - call.taken_up) for call in calls if call is not None)

    def _works(self) -> list[BegunStep]:
        return [*(work for work in self._running if work is not None), *self._preempted.values()]

    # The policy's view

    def view(self, snapshot: Snapshot, preemptive: bool) -> Snapshot:
        """Return the snapshot with steps under way added; a preemptive policy may choose their units, too.

        Such steps change the readings of their units without a notice, so for a preemptive policy any unit may have
        changed.
        """
        works = self._works()
        if not works:
            return snapshot
        readings, units, now = self._readings, len(self._readings.units), snapshot.now
        busy = readings.members.any(self._boxes_at_work())
        spent, held = np.zeros(units), np.zeros(units, np.int64)
        ready, waiting, oldest = snapshot.ready, snapshot.waiting, snapshot.oldest
        if preemptive:
            ready, waiting, oldest = ready.copy(), waiting.copy(), oldest.copy()
        for work in works:
            if work.call is None:
                continue
            spent[work.unit] = work.call.done(now) / SECOND
            held[work.unit] = work.call.tuples
            if preemptive:
                ready[work.unit] = True
                oldest[work.unit] = min(int(oldest[work.unit]), work.call.oldest)
                if work.worker < 0:
                    waiting[work.unit] += work.call.tuples
        snapshot = snapshot._replace(busy=frozen(busy), spent=frozen(spent), held=frozen(held))
        if not preemptive:
            return snapshot
        return snapshot._replace(ready=frozen(ready), waiting=frozen(waiting), oldest=frozen(oldest), changed=None)

    def _boxes_at_work(self) -> Mask:
        """Return which boxes belong to running steps; boxes of preempted ones may be chosen."""
        if not self._preempted:
            return self._runtime.busy
        at_work: Mask = np.zeros_like(self._runtime.busy)
        for work in self._running:
            if work is not None:
                at_work[self._readings.members.boxes[work.unit]] = True
        return at_work

    # Beginning

    def start(self, steps: Sequence[Step], snapshot: Snapshot, now: int, plan: int, wait: int = 0) -> int:
        """Begin steps while processors are free; return how many began. A step whose boxes are in use is refused."""
        begun = 0
        for step in steps:
            if not self.free:
                break
            begun += self._take_up(step, snapshot, now, now + self._costs.scheduler + wait, plan)
        return begun

    def _take_up(self, step: Step, snapshot: Snapshot, now: int, begin: int, plan: int) -> bool:
        work = self._preempted.get(step.unit) or self._holder(step.unit)
        if work is not None:
            del self._preempted[work.unit]
            work.plan = plan
            assert work.call is not None
            work.call.go_on(begin)
            work.call.taken_up = begin
        else:
            boxes = self._readings.members.boxes[step.unit]
            if not self._runtime.reserve(boxes):
                return False
            order = None if self._traversal is None else self._traversal.order(step.unit, snapshot)
            unit = self._readings.units[step.unit]
            work = BegunStep(step.unit, step.tuples, unit.boxes if order is None else order, plan)
            if not self._next_call(work, begin):
                self._runtime.release(boxes)
                return False  # nothing was left to do
        work.worker = self._running.index(None)
        work.started = now
        self._running[work.worker] = work
        self.free -= 1
        return True

    def _holder(self, unit: int) -> BegunStep | None:
        """Return a preempted step that holds a box of this unit, and must be completed first."""
        for work in self._preempted.values():
            if not self._own[unit].isdisjoint(self._own[work.unit]):
                return work
        return None

    def _next_call(self, work: BegunStep, begin: int) -> bool:
        """Begin the step's next call that has something to do; return False if there is none."""
        costs = self._costs
        while work.place < len(work.order):
            box = self._runtime.boxes[work.order[work.place]]
            work.place += 1
            fed = work.fed.pop(box.index, 0)
            others = sum([cursor.waiting for cursor in box.cursors]) - fed
            # At most the step's limit of each queue, or what the step itself has queued there.
            trains = self._runtime.take_next(box, max(fed, work.limit), self._own[work.unit])
            if trains is None:
                continue
            parts = [train.numbers for train in trains if len(train.numbers)]
            numbers = parts[0] if len(parts) == 1 else np.sort(np.concatenate([*parts, _NO_NUMBERS]))
            offsets, cost = costs.spend(box.index, numbers)
            fetched = min(others, len(numbers))  # those waited longer than the tuples that this step queued
            storage = costs.storage if fetched else 0
            work.taken += fetched
            self.fetched += fetched > 0
            begun = [Stretch(0, begin)]
            work.call = UnderWay(
                box.index, trains, len(numbers), numbers, offsets, cost + storage, storage, begun, begin
            )
            return True
        work.call = None
        return False

    # Preempting

    def switch(self, steps: Sequence[Step], snapshot: Snapshot, now: int, plan: int) -> int:
        """Run the first units of a plan, as many as there are processors, and preempt others for them."""
        wanted = {step.unit: step for step in steps[: self.count]}
        running = [work for work in self._running if work is not None]
        missing = [step for unit, step in wanted.items() if all(work.unit != unit for work in running)]
        begun = self.start(missing, snapshot, now, plan)
        stoppable = [work for work in reversed(running) if work.unit not in wanted]
        switched = 0
        for step in missing[begun:]:
            if not stoppable or not self._can_begin(step.unit):
                continue
            self._preempt(stoppable.pop(), now)
            switched += self.start([step], snapshot, now, plan, self._costs.preemption)
        if not begun and not switched and running and running[0].call is not None:
            # A processor was used to find that nothing changes.
            running[0].call.delay(now, self._costs.scheduler)
        return begun + switched

    def _can_begin(self, unit: int) -> bool:
        """Return whether no running step uses the unit's boxes."""
        own = self._own[unit]
        return all(work is None or own.isdisjoint(self._own[work.unit]) for work in self._running)

    def _preempt(self, work: BegunStep, now: int) -> None:
        assert work.call is not None
        work.call.halt(now)
        self._record(work, now, preempted=True)
        self._running[work.worker] = None
        work.worker = -1
        self._preempted[work.unit] = work
        self.free += 1
        self.preemptions += 1

    # Ending

    def finish(self, now: int) -> int:
        """End the calls that are due, and begin the next calls of their steps; return how many ended."""
        ended = 0
        for at, work in enumerate(self._running):
            while work is not None and work.end <= now:
                self._end_call(work)
                ended += 1
                if self._next_call(work, now):
                    continue
                self._runtime.release(self._readings.members.boxes[work.unit])
                self._record(work, now, preempted=False)
                self._running[at] = work = None
                self.free += 1
        return ended

    def _end_call(self, work: BegunStep) -> None:
        call = work.call
        assert call is not None
        box = self._runtime.boxes[call.box]
        try:
            outputs = self._call(box, call, work)
        except Exception as error:
            fail(box.name, error)
        if self._recorder is not None:
            tuples = sum([len(train) for train in outputs])
            work.log.append(CallRecord((box.index,), call.taken_up, call.end, call.tuples, tuples))

    def _call(self, box: RunningBox, call: UnderWay, work: BegunStep) -> Sequence[Train]:
        """Call a box and pass its results on; return them."""
        spent = call.cost - call.storage
        result = whole(self._runtime.run(box, call.trains, spent))
        box.note_deadline()
        self.worked += spent
        for arc, train in zip(box.arcs, result.outputs, strict=False):
            if arc is None:
                continue
            if arc.deliveries and len(train):
                moments = np.full(len(train), call.end, np.int64) if self._together else call.leaving(train)
                for delivery in arc.deliveries:
                    delivery.deliver(train, moments)
            if arc.queue.cursors or arc.queue.listeners:
                arc.queue.push(train)
                for cursor in arc.queue.cursors:
                    consumer = int(self._runtime.cursor_box[cursor.number])
                    if consumer in self._own[work.unit]:
                        work.fed[consumer] = work.fed.get(consumer, 0) + len(train)
        return result.outputs

    def _record(self, work: BegunStep, now: int, preempted: bool) -> None:
        if self._recorder is not None:
            self._recorder.step(work.unit, work.worker, work.started, now, work.taken, work.log, preempted, work.plan)
            work.log, work.taken = [], 0  # if it resumes, only what follows is recorded


class Following:
    """Executes plans as the engine `local` does: all steps one after the other before the loop looks again.

    Tuples that arrive meanwhile wait until the end of the plan, and are let in together. While load is shed, steps that
    were found to last longer than a look are cut into parts, between which drop boxes can be inserted and removed. For
    one processor, and for policies that do not preempt.
    """

    def __init__(self, processors: Processors, costs: Costs) -> None:
        self._processors = processors
        self._costs = costs
        self.in_parts = False
        """Whether long steps are cut, as they are while load is shed."""
        self._steps: deque[Step] = deque()
        self._snapshot: Snapshot | None = None
        self._plan = 0
        self._parts = Parts()
        self._begun: tuple[int, int, int] | None = None  # the part under way: its beginning, tuples and unit
        self.intake = 0
        """Nanoseconds spent on letting tuples in and on the rounds themselves."""
        self.owed = 0
        """Nanoseconds of rounds in which no step began, to be spent before anything else happens."""

    def follow(self, steps: Sequence[Step], snapshot: Snapshot, now: int, plan: int, arrived: int) -> int:
        """Take on a plan, for which `arrived` tuples were let in; return whether one of its steps began (0 or 1)."""
        self._steps, self._snapshot, self._plan, self._begun = deque(steps), snapshot, plan, None
        taking_in = self._costs.round + round(arrived * self._costs.arrival)
        self.intake += taking_in
        begun = self._begin(now, taking_in + self.owed)
        self.owed = 0 if begun else self.owed + taking_in + self._costs.scheduler
        return begun

    def goes_on(self, now: int) -> bool:
        """Begin the plan's next step if it is time; return whether the plan is still under way."""
        # The time for asking the policy was spent before the plan's first step.
        if self._processors.busy:
            return True
        if self._begun is not None:
            self._note(now)
        return bool(self._begin(now, -self._costs.scheduler))

    def _begin(self, now: int, wait: int) -> int:
        while self._steps:
            unit, tuples = self._steps.popleft()
            assert self._snapshot is not None
            part = self._parts.length(unit) if self.in_parts else tuples
            begun = self._processors.start([Step(unit, min(part, tuples))], self._snapshot, now, self._plan, wait)
            if begun:
                self._begun = now + max(wait, 0), self._processors.held, unit
                if tuples > part:
                    self._steps.appendleft(Step(unit, tuples - part))
                return begun
        return 0

    def _note(self, now: int) -> None:
        """Record the duration of the part that has ended."""
        assert self._begun is not None
        began, taken, unit = self._begun
        self._begun = None
        self._parts.note(unit, taken, now - began)


_NO_NUMBERS: Int64s = np.zeros(0, np.int64)
