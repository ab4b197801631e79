"""Execution of steps: a unit's boxes in order; trains bypass queues where possible."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from headway.clock import stopwatch
from headway.engines.process.run import Parts
from headway.engines.process.runtime import ALL, Arc, Runtime
from headway.engines.traces import CallRecord
from headway.kernels.kernel import Kernel, Result
from headway.kernels.results import whole
from headway.scheduling.snapshot import Unit
from headway.storage.queues import Cursor
from headway.trains import Train

Log = list[CallRecord]
_NOBODY: frozenset[int] = frozenset()
_PIECE = 1 << 16
"""Tuples that a downstream unit takes at a time while queues are full."""
_BETWEEN_LOOKS = 0.002
"""Seconds between the checks of a worker that waits for others."""
_LOOKS, _IDLE_LOOKS = 50, 40
"""Checks in a row without progress before it stops waiting: while others work, and while all running steps wait."""
_DEEPEST = 64
"""Limit on nested steps of one worker, as they use Python's stack."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a step: a box, or neighbouring boxes fused into one kernel."""

    boxes: tuple[int, ...]
    fused: Kernel | None
    slim: Kernel | None = None
    """The same kernel, producing only the columns that the step's next box reads; used if it gets them directly."""
    next: Cursor | None = None
    """The cursor of that next box."""
    within: tuple[Cursor, ...] = ()
    """The cursors between its boxes: while one has tuples waiting, the boxes cannot run as one."""


class CurrentStep(NamedTuple):
    """A step under way."""

    unit: int
    within: frozenset[int]
    """The boxes to which results are handed directly."""
    log: Log | None
    """Receives every call."""
    handed: dict[int, tuple[Train, ...]]
    """By box: trains handed to it that it has not taken yet."""


class GivenUpError(Exception):
    """The run has failed or was aborted: a step in another thread must not continue."""


class StepRunner:
    """Holds the calls that a step of each unit makes, and runs steps.

    `run` may be called from several threads at once, for units that have no box in common.
    """

    def __init__(self, runtime: Runtime, units: Sequence[Unit], memory: int = ALL, workers: int = 1) -> None:
        """Prepare the calls of every unit.

        `memory` is the limit of the queues, in bytes; up to `workers` steps run at the same time.
        """
        self._runtime = runtime
        self._memory = memory
        self._workers = workers
        self._waiting = self._running = 0  # of the running steps, those that wait for others; and all running steps
        self._hopeless = False  # the last wait for other workers was in vain
        self._change = threading.Condition()
        self._depth = threading.local()
        self._given_up = False
        self.peak = 0
        """Peak of queued bytes while pieces were passed on."""
        # In this order, units come after those upstream of them.
        self._downwards = sorted(range(len(units)), key=lambda at: min(units[at].boxes))
        self._calls = [self._prepare(unit) for unit in units]
        self._own = [frozenset(unit.boxes) for unit in units]
        self._boxes = [np.array(unit.boxes, np.intp) for unit in units]
        self._single = [Call((box.index,), None) for box in runtime.boxes]

    def _prepare(self, unit: Unit) -> tuple[Call, ...]:
        runtime = self._runtime
        program, kernels = runtime.program, [box.kernel for box in runtime.boxes]
        calls = []
        for part in program.chains(unit.boxes):
            fused = program.fuse(part) if len(part) > 1 else None
            within = tuple(runtime.boxes[at].cursors[0] for at in part[1:])
            consumer = program.only_consumer(part[-1])
            wanted = program.wanted(part[-1], unit.boxes, kernels)
            if wanted is None or consumer is None:
                calls.append(Call(part, fused, within=within))
            else:
                slim, follower = program.fuse(part, wanted), runtime.boxes[consumer].cursors[0]
                calls.append(Call(part, fused, slim, follower, within))
        return tuple(calls)

    def give_up(self) -> None:
        """Make steps in other threads end with a GivenUpError before their next call."""
        self._given_up = True

    def run(self, unit: int, limit: int, order: Sequence[int] | None = None, log: Log | None = None) -> int:
        """Run a step on at most `limit` tuples of each queue; see `_run`."""
        if self._workers == 1:
            return self._run(unit, limit, order, log)
        with self._change:
            self._running += 1
        try:
            return self._run(unit, limit, order, log)
        finally:
            with self._change:
                self._running -= 1

    def _run(self, unit: int, limit: int, order: Sequence[int] | None, log: Log | None) -> int:
        """Run a step on at most `limit` tuples of each queue; return how many it took from queues.

        With an `order`, boxes are called in that order, some perhaps several times, and all trains pass through the
        queues, so that a box's input cannot be overtaken by later input. `log` receives every call.
        """
        runtime, own, taken = self._runtime, self._own[unit], 0
        calls = self._calls[unit] if order is None else [self._single[at] for at in order]
        step = CurrentStep(unit, own if order is None else _NOBODY, log, {})
        handed = step.handed
        for at, call in enumerate(calls):
            if self._given_up:
                raise GivenUpError
            if runtime.paused and not runtime.paused.isdisjoint(call.boxes[1:]):
                taken += self._run_apart(step, call, limit)
                continue
            trains = handed.pop(call.boxes[0], None)
            if trains is None:
                begun = stopwatch()
                trains = runtime.take_next(runtime.boxes[call.boxes[0]], limit, own)
                runtime.storage += stopwatch() - begun
                if trains is not None:
                    taken += sum([len(train.numbers) for train in trains])
            if trains is None:
                if any(not cursor.idle for cursor in call.within):  # what a seam or a pause has left there
                    taken += self._run_apart(step, call, limit)
            else:
                rest = self._run_call(step, call, trains)
                if rest is not None:
                    self._work_off(step, call, rest, calls[at + 1 :])
        return taken

    def _run_apart(self, step: CurrentStep, call: Call, limit: int) -> int:
        """Call the boxes of a chain one by one, because one of them is paused; return the tuples taken from queues."""
        taken = 0
        for at in call.boxes:
            trains = step.handed.pop(at, None)
            if trains is None:
                trains = self._runtime.take_next(self._runtime.boxes[at], limit, step.within)
                taken += 0 if trains is None else sum([len(train.numbers) for train in trains])
            if trains is not None:
                self._run_call(step, self._single[at], trains)
        return taken

    def _run_call(self, step: CurrentStep, call: Call, trains: Sequence[Train]) -> Iterator[Result] | None:
        """Make a call and pass its results on; return an iterator over its remaining pieces, if any."""
        if step.log is None:
            return self._process(step, call, trains).rest
        begun = self._runtime.clock.now()
        result = self._process(step, call, trains)
        self._record(step.log, call, begun, sum([len(train.numbers) for train in trains]), result)
        return result.rest

    def _record(self, log: Log, call: Call, begun: int, tuples_in: int, result: Result) -> None:
        tuples_out = sum([len(train.numbers) for train in result.outputs])
        log.append(CallRecord(call.boxes, begun, self._runtime.clock.now(), tuples_in, tuples_out))

    def _work_off(self, step: CurrentStep, call: Call, rest: Iterator[Result], behind: Sequence[Call]) -> None:
        """Pass on the remaining pieces of a call, each after the boxes behind have processed the previous one.

        Boxes of the step do so immediately, other units once queues reach the memory limit.
        """
        box, busy, own = self._runtime.boxes[call.boxes[-1]], self._runtime.busy, self._boxes[step.unit]
        before = busy[own]
        busy[own] = True  # it has taken everything but not delivered it yet, so it must not appear done
        for result in rest:
            for at, one in enumerate(behind):
                trains = step.handed.pop(one.boxes[0], None)
                if trains is not None:
                    more = self._run_call(step, one, trains)
                    if more is not None:
                        self._work_off(step, one, more, behind[at + 1 :])
            self._relieve(step.log)
            begun = self._runtime.clock.now()
            self._pass_on(step, box.arcs, result.outputs)
            self.peak = max(self.peak, self._runtime.board.bytes)
            if step.log is not None:
                self._record(step.log, call, begun, 0, result)
        busy[own] = before
        box.note_deadline()

    def _relieve(self, log: Log | None) -> None:
        """If queues are full, have downstream units take what waits: the rest of a call would only add to it.

        With several workers, the others do that while this one waits for them. If all of them wait, or none makes
        progress, this worker does it itself; `log` receives these calls, too.
        """
        board, depth = self._runtime.board, getattr(self._depth, "now", 0)
        self._depth.now = depth + 1
        try:
            while board.bytes > self._memory and not (self._workers > 1 and self._others_relieve()):
                if depth >= _DEEPEST or (not self._take_what_waits(log) and not self._others_work()):
                    return
        finally:
            self._depth.now = depth

    def _take_what_waits(self, log: Log | None) -> int:
        """Run steps of free units until the queues are half empty; return how many tuples they took."""
        board, runtime, enough, taken = self._runtime.board, self._runtime, self._memory // 2, 0
        for other in self._downwards:
            if board.bytes <= enough:
                break
            if not runtime.reserve(self._boxes[other]):
                continue  # in use by a worker, perhaps this one
            try:
                while board.bytes > enough and (some := self._run(other, _PIECE, None, log)):
                    taken += some
            finally:
                runtime.release(self._boxes[other])
        return taken

    def _others_work(self) -> bool:
        """Whether another step is running rather than waiting: it may hold units that this worker cannot run."""
        with self._change:
            return self._running > self._waiting + 1

    def _others_relieve(self) -> bool:
        """Wait while queues are full and another worker may empty them; return whether they are no longer full."""
        board, looks = self._runtime.board, 0
        with self._change:
            self._waiting += 1
            while board.bytes > self._memory and self._waiting < self._workers and not self._given_up:
                before = board.bytes
                self._change.wait(_BETWEEN_LOOKS)
                looks = 0 if board.bytes < before else looks + 1
                alone = self._running == self._waiting
                if not alone or not looks:
                    self._hopeless = False
                elif looks >= _IDLE_LOOKS:
                    self._hopeless = True
                if self._hopeless or looks >= _LOOKS:
                    break
            self._waiting -= 1
        if self._given_up:
            raise GivenUpError
        return board.bytes <= self._memory

    def run_in_parts(
        self,
        unit: int,
        limit: int,
        part: int,
        stop: Callable[[], bool],
        order: Sequence[int] | None = None,
        log: Log | None = None,
        parts: Parts | None = None,
    ) -> tuple[int, bool]:
        """Run a step in parts until `stop` returns True after one; return the tuples taken, and whether it stopped.

        `parts` records how long each part lasted, and determines the length of the next one.
        """
        total = given = 0
        while given < limit:
            begun, size = stopwatch(), min(part, limit - given)
            given += size
            taken = self.run(unit, size, order, log)
            total += taken
            if not taken:
                break
            if parts is not None:
                parts.note(unit, min(size, taken), stopwatch() - begun)
                part = parts.length(unit)
            if stop():
                return total, True
        return total, False

    def _process(self, step: CurrentStep, call: Call, trains: Sequence[Train]) -> Result:
        runtime = self._runtime
        if len(call.boxes) == 1 and call.slim is None:
            box = runtime.boxes[call.boxes[0]]
            result = runtime.run(box, trains)
            self._pass_on(step, box.arcs, result.outputs)
            return result
        fused = call.slim if call.next is not None and call.next.idle and not call.next.apart else call.fused
        for cursor in call.within:
            if not cursor.idle or cursor.apart:
                fused = None
        if fused is not None:
            _, result = runtime.call(call.boxes, fused, None, trains)
            self._pass_on(step, runtime.boxes[call.boxes[-1]].arcs, result.outputs)
            return result
        boxes = [runtime.boxes[at] for at in call.boxes]
        for place, box in enumerate(boxes):
            result = runtime.run(box, trains)
            if place + 1 < len(boxes):
                arc = box.arcs[0]
                assert arc is not None
                arc.queue.push(whole(result).outputs[0])
                trains = (boxes[place + 1].cursors[0].take(ALL),)
            else:
                self._pass_on(step, box.arcs, result.outputs)
        return result

    def _pass_on(self, step: CurrentStep, arcs: Sequence[Arc | None], outputs: Sequence[Train]) -> None:
        """Hand outputs directly to the step's next box if it is the only consumer, otherwise through the queue."""
        if self._given_up:
            raise GivenUpError
        runtime = self._runtime
        for arc, train in zip(arcs, outputs, strict=False):
            if arc is None:
                continue
            if arc.deliveries:
                begun = stopwatch()
                for delivery in arc.deliveries:
                    delivery.deliver(train)
                runtime.delivering += stopwatch() - begun
            cursors, listeners = arc.queue.cursors, arc.queue.listeners
            if len(cursors) == 1 and not listeners:
                consumer = runtime.boxes[int(runtime.cursor_box[cursors[0].number])]
                if (
                    consumer.index in step.within
                    and len(consumer.cursors) == 1
                    and cursors[0].idle
                    and not cursors[0].apart
                ):
                    arc.handed += len(train.numbers)
                    if cursors[0].drop is not None:
                        train = cursors[0].drop.sift(train)
                    if train.progress > arc.queue.progress:
                        arc.queue.progress = train.progress
                    if len(train) or train.ticks or train.end:
                        step.handed[consumer.index] = (train,)
                    if train.end:
                        cursors[0].ended = True
                    continue
            if cursors or listeners:
                begun = stopwatch()
                arc.queue.push(train)
                runtime.storage += stopwatch() - begun
