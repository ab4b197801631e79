"""Carrying out steps: the boxes of a unit in their order, trains handed on without queues where that is possible."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headway.clock import stopwatch
from headway.engines.fusion import chains
from headway.engines.local.runtime import ALL, Arc, Runtime
from headway.kernels.base import Kernel
from headway.scheduling.base import Unit
from headway.storage.queues import Cursor
from headway.trains import Train


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a step: a box, or neighbouring boxes fused into one kernel."""

    boxes: tuple[int, ...]
    fused: Kernel | None
    slim: Kernel | None = None
    """The same with only the columns that the next box of the step reads, for when it gets them directly."""
    next: Cursor | None = None
    """That box's cursor."""


class StepRunner:
    """Knows for each unit which calls a step of it makes.

    `run` may be called from several threads at once, for units that have no box in common.
    """

    def __init__(self, runtime: Runtime, units: Sequence[Unit]) -> None:
        """Prepare the calls of every unit."""
        self._runtime = runtime
        self._calls = [self._prepare(unit) for unit in units]
        self._own = [frozenset(unit.boxes) for unit in units]

    def _prepare(self, unit: Unit) -> tuple[Call, ...]:
        runtime = self._runtime
        parts = chains(unit.boxes, lambda at: runtime.boxes[at].fusible, runtime.only_consumer)
        calls = []
        for part in parts:
            fused = runtime.fuse(part) if len(part) > 1 else None
            consumer = runtime.only_consumer(part[-1]) if runtime.boxes[part[-1]].is_filter else None
            wanted = None if consumer not in unit.boxes else getattr(runtime.boxes[consumer].kernel, "reads", None)
            if wanted is None or consumer is None:
                calls.append(Call(part, fused))
            else:
                calls.append(Call(part, fused, runtime.fuse(part, wanted), runtime.boxes[consumer].cursors[0]))
        return tuple(calls)

    def run(self, unit: int, limit: int) -> None:
        """Run a step on at most `limit` tuples of each queue."""
        handed: dict[int, tuple[Train, ...]] = {}
        calls, own = self._calls[unit], self._own[unit]
        for call in calls:
            trains = handed.pop(call.boxes[0], None)
            if trains is None:
                trains = self._take(call, limit, own)
            if trains is not None:
                self._process(call, trains, handed, own)

    def _take(self, call: Call, limit: int, own: frozenset[int]) -> tuple[Train, ...] | None:
        runtime = self._runtime
        box = runtime.boxes[call.boxes[0]]
        begun = stopwatch()
        taken: tuple[Train, ...] | None
        if len(box.cursors) > 1:
            upto = runtime.takeable(box, own)
            taken = None if upto is None else runtime.take(box, limit, upto)
        else:
            cursor = box.cursors[0]
            taken = None if cursor.idle else (cursor.take(limit),)
        runtime.storage += stopwatch() - begun
        return taken

    def _process(
        self, call: Call, trains: Sequence[Train], handed: dict[int, tuple[Train, ...]], own: frozenset[int]
    ) -> None:
        runtime = self._runtime
        if len(call.boxes) == 1 and call.slim is None:
            box = runtime.boxes[call.boxes[0]]
            box.state, result = runtime.call(call.boxes, box.kernel, box.state, trains)
            if box.timed:
                box.deadline = box.kernel.deadline(box.state)
            self._pass_on(box.arcs, result.outputs, handed, own)
            return
        boxes = [runtime.boxes[at] for at in call.boxes]
        fused = call.slim if call.next is not None and call.next.idle else call.fused
        if fused is not None and all(box.cursors[0].idle for box in boxes[1:]):
            _, result = runtime.call(call.boxes, fused, None, trains)
            self._pass_on(boxes[-1].arcs, result.outputs, handed, own)
            return
        for place, box in enumerate(boxes):
            box.state, result = runtime.call((box.index,), box.kernel, box.state, trains)
            if box.timed:
                box.deadline = box.kernel.deadline(box.state)
            if place + 1 < len(boxes):
                arc = box.arcs[0]
                assert arc is not None
                arc.queue.push(result.outputs[0])
                trains = (boxes[place + 1].cursors[0].take(ALL),)
            else:
                self._pass_on(box.arcs, result.outputs, handed, own)

    def _pass_on(
        self,
        arcs: Sequence[Arc | None],
        outputs: Sequence[Train],
        handed: dict[int, tuple[Train, ...]],
        own: frozenset[int],
    ) -> None:
        """Hand outputs to the next box of the step where it alone consumes them, otherwise through the queue."""
        runtime = self._runtime
        for arc, train in zip(arcs, outputs, strict=False):
            if arc is None:
                continue
            if arc.deliveries:
                begun = stopwatch()
                for delivery in arc.deliveries:
                    delivery.deliver(train)
                runtime.delivering += stopwatch() - begun
            cursors = arc.queue.cursors
            if len(cursors) == 1:
                consumer = runtime.boxes[int(runtime.cursor_box[cursors[0].number])]
                if consumer.index in own and len(consumer.cursors) == 1 and cursors[0].idle:
                    if train.progress > arc.queue.progress:
                        arc.queue.progress = train.progress
                    if len(train) or train.ticks or train.end:
                        handed[consumer.index] = (train,)
                    if train.end:
                        cursors[0].ended = True
                    continue
            if cursors:
                begun = stopwatch()
                arc.queue.push(train)
                runtime.storage += stopwatch() - begun
