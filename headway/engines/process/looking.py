"""Looking into a run in this process: what passes an arc, what waits at a box; and boxes that are held or stepped."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping

import pyarrow as pa

from headway.engines.process.runtime import RunningBox, Runtime
from headway.errors import RunError, check_known
from headway.network import arc_name
from headway.network.schema import Schema
from headway.trains import Train

_MOST = 10_000
"""The latest tuples of an arc that can be looked at."""


class Watch:
    """Keeps the latest tuples that passed an arc. Thread-safe."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema.to_arrow()
        self._change = threading.Condition()
        self._trains: deque[Train] = deque()
        self._tuples = 0

    def offer(self, train: Train) -> None:
        """Keep a train, and as many of those before it as are needed."""
        if not len(train):
            return
        with self._change:
            self._trains.append(train)
            self._tuples += len(train)
            while self._tuples - len(self._trains[0]) >= _MOST:
                self._tuples -= len(self._trains.popleft())
            self._change.notify_all()

    def latest(self, tuples: int, wait: float) -> pa.Table:
        """Return the latest tuples; if none has passed yet, wait up to so many seconds."""
        with self._change:
            self._change.wait_for(lambda: self._trains, wait)
            trains = list(self._trains)
        table = pa.Table.from_batches([train.to_batch(self._schema) for train in trains], schema=self._schema)
        return table.slice(max(0, len(table) - tuples))


def watch(runtime: Runtime, arc: str) -> Watch:
    """Return the watch on an arc; from the first look on, its tuples pass through the queue."""
    check_known("arc", [arc], runtime.arcs, RunError)
    found = runtime.arcs[arc]
    for listener in found.queue.listeners:
        if isinstance(listener, Watch):
            return listener
    made = Watch(found.schema)
    for train in found.queue.held_trains():
        made.offer(train)
    found.queue.listen(made)
    set_apart(runtime)
    return made


def set_apart(runtime: Runtime) -> None:
    """Let boxes get everything through their queues where somebody listens there, or they are paused."""
    for box in runtime.boxes:
        for place, cursor in enumerate(box.cursors):
            branched = box.branches is not None and box.branches[place] is not None
            listened = bool(runtime.arcs[box.inputs[place]].queue.listeners)
            cursor.apart = branched or listened or box.index in runtime.paused


def find(runtime: Runtime, name: str) -> RunningBox:
    """Return a box by name, or raise a RunError that lists them."""
    check_known("box", [name], runtime.index, RunError)
    return runtime.boxes[runtime.index[name]]


def hold(runtime: Runtime, name: str, active: bool) -> None:
    """Let a box take nothing more, or go on."""
    box = find(runtime, name)
    if active:
        runtime.paused.add(box.index)
    else:
        runtime.paused.discard(box.index)
    for cursor in box.cursors:
        runtime.board.moved[cursor.number] = 1
    set_apart(runtime)


def step(runtime: Runtime, name: str, tuples: int) -> int:
    """Let a paused box take some tuples at once, with all of their arrival numbers; return how many it took."""
    box = find(runtime, name)
    if box.index not in runtime.paused:
        raise RunError(f"box '{name}' is not paused, and only a paused box takes single steps: pause it first")
    if runtime.busy[box.index]:
        raise RunError(f"box '{name}' is still at work on what it took before it was paused: try again")
    runtime.paused.discard(box.index)
    try:
        trains = runtime.take_next(box, tuples, frozenset())
    finally:
        runtime.paused.add(box.index)
    if trains is None:
        return 0
    result = runtime.run(box, trains)
    for piece in (result, *(result.rest or ())):
        for arc, train in zip(box.arcs, piece.outputs, strict=False):
            if arc is not None:
                arc.push(train)
    box.note_deadline()
    return sum([len(train) for train in trains])


def queue_of(runtime: Runtime, name: str, tuples: int) -> Mapping[str, pa.Table]:
    """Return by input of a box the next tuples that wait there."""
    box = find(runtime, name)
    found = {}
    for arc, cursor in zip(box.inputs, box.cursors, strict=True):
        schema = runtime.arcs[arc].schema.to_arrow()
        found[arc] = pa.Table.from_batches([cursor.peek(tuples).to_batch(schema)], schema=schema)
    return found


def windows_of(runtime: Runtime, name: str) -> pa.Table:
    """Return the open windows of a box with what is in them: the results it would give if its input ended now."""
    box = find(runtime, name)
    program = runtime.program.boxes[box.index]
    schema = runtime.program.checked.arcs[arc_name(name, program.spec.ports[0])].to_arrow()
    if runtime.busy[box.index]:
        raise RunError(f"box '{name}' is at work: try again, or pause it first")
    if not program.spec.stateful:
        return schema.empty_table()
    numbers = [runtime.arcs[arc].queue.progress for arc in box.inputs]
    ends = [Train.empty(runtime.arcs[arc].schema, max(numbers), end=True) for arc in box.inputs]
    copy = box.kernel.load(box.kernel.dump(box.state))
    _, result = box.kernel.run(copy, ends, runtime.clock.now())
    batches = [piece.outputs[0].to_batch(schema) for piece in (result, *(result.rest or ()))]
    return pa.Table.from_batches(batches, schema=schema)
