"""The baseline without a scheduler: every box has a thread of its own, and the operating system decides.

A thread blocks until its box has something to take, takes at most a train, runs the kernel, queues the result and
wakes those who may now have something to do. Nobody looks at costs, latencies or queues. This is the thread-based
model that "Operator Scheduling in a Data Stream Manager" (section 3) measures its state-based model against: simple,
but every train costs a switch between threads, and nobody can say who comes first.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable

import numpy as np

from headway.clock import SECOND, Clock, WallClock, stopwatch
from headway.engines.ingest import Ingest
from headway.engines.local.workers import quiet
from headway.engines.runtime import RunningBox, Runtime
from headway.errors import RunError
from headway.kernels.kernel import Result

_LOOK = 0.002
"""Seconds after which the driver looks again whether sources may go on, while boxes are at work."""
_WORK = 0.05
"""Seconds for which it leaves boxes at work alone where no source waits."""
_NOBODY: frozenset[int] = frozenset()


class BoxThreads:
    """A thread for each box of a network.

    Wake-ups are not lost: a box is called after what it may take is queued, and a thread that was called since it
    last looked looks again before it sleeps. A box with several inputs may also become ready when nothing is pushed
    to it, because a box above it has let nothing through and is done; so the end of each box call calls all such boxes
    below it that have something waiting. Everybody who calls is awake, or is the driver: if nobody is awake, nobody
    can take anything until the driver brings something.
    """

    def __init__(self, runtime: Runtime, limit: int, wake: threading.Event) -> None:
        """Prepare threads that take at most `limit` tuples at a time.

        `wake` is set when all of them have fallen asleep, or when one has failed.
        """
        self._runtime = runtime
        self._limit = limit
        self._wake = wake
        count = len(runtime.boxes)
        self._below = _below(runtime)
        self._lock = threading.Lock()  # guards all that follows
        self._conditions = [threading.Condition(self._lock) for _ in range(count)]
        self._called = [False] * count
        self._asleep = [False] * count
        self._awake = count
        self._closing = False
        self._failed: tuple[int, BaseException] | None = None
        self._threads: list[threading.Thread] = []
        # By box, each written by its own thread only, so that no nanosecond is lost between two of them.
        self._storage = [0] * count
        self._delivering = [0] * count

    def start(self) -> None:
        """Start the threads."""
        for box in self._runtime.boxes:
            thread = threading.Thread(target=self._work, args=(box,), name=f"headway-box-{box.name}", daemon=True)
            try:
                thread.start()
            except RuntimeError as error:
                raise RunError(
                    f"policy 'threads' needs a thread for each of {len(self._runtime.boxes)} boxes, and the system "
                    f"started only {len(self._threads)}: choose another policy, or a smaller network"
                ) from error
            self._threads.append(thread)

    def notify(self, boxes: Iterable[int] | None = None) -> None:
        """Call these boxes, or all that have something waiting; to be called after tuples or marks have arrived."""
        if boxes is None:
            board = self._runtime.board
            filled = np.flatnonzero(board.arrived - board.taken + board.marks)
            boxes = set(self._runtime.cursor_box[filled].tolist())
        self._call(boxes)

    def idle(self) -> bool:
        """Return whether all threads wait and no box can take anything.

        It stays so until the driver calls `notify`.
        """
        with self._lock:
            return self._awake == 0

    @property
    def failed(self) -> tuple[int, BaseException] | None:
        """The box that failed first, and its error; all threads then end by themselves."""
        with self._lock:
            return self._failed

    def wait(self, sources: Ingest, full: bool, clock: Clock) -> None:
        """Leave boxes at work alone, at the latest until a tuple is due; not for long where sources are held back."""
        pause = _LOOK if sources.more_in_turn or full else _WORK
        due = sources.next_due() if isinstance(clock, WallClock) and not sources.ended else None
        sources.wake.wait(pause if due is None else min(pause, max(0.0, (due - clock.now()) / SECOND)))
        sources.wake.clear()

    def close(self) -> None:
        """Let the threads finish the call that they are in and end; then add what queues and sinks have cost."""
        self._stop()
        for thread in self._threads:
            thread.join(timeout=30)
        self._threads.clear()
        self._runtime.storage += sum(self._storage)
        self._runtime.delivering += sum(self._delivering)
        self._storage = [0] * len(self._storage)
        self._delivering = [0] * len(self._delivering)

    def _stop(self) -> None:
        with self._lock:
            self._closing = True
            for condition in self._conditions:
                condition.notify()

    def _call(self, boxes: Iterable[int]) -> None:
        with self._lock:
            for at in boxes:
                self._called[at] = True
                if self._asleep[at]:
                    self._asleep[at] = False
                    self._awake += 1  # by the caller, so that nobody finds all asleep while a call is on its way
                    self._conditions[at].notify()

    def _sleep(self, at: int) -> bool:
        """Wait until the box is called, if it was not since it last looked; return whether to go on."""
        with self._lock:
            if not self._called[at] and not self._closing:
                self._asleep[at] = True
                self._awake -= 1
                if self._awake == 0:
                    self._wake.set()
                while not self._called[at] and not self._closing:
                    self._conditions[at].wait()
            self._called[at] = False  # before the box looks, so that what comes while it looks counts
            return not self._closing

    def _work(self, box: RunningBox) -> None:
        try:
            with quiet():
                while self._sleep(box.index):
                    while self._run(box) and not self._closing:
                        pass
        except BaseException as error:  # handed to the driver, which stops the run
            with self._lock:
                if self._failed is None:
                    self._failed = (box.index, error)
            self._stop()
            self._wake.set()

    def _run(self, box: RunningBox) -> bool:
        """Process a train of a box; return whether there was one."""
        runtime, at = self._runtime, box.index
        upto: int | None = None
        begun = stopwatch()
        if len(box.cursors) > 1:
            upto = runtime.takeable(box, _NOBODY)
            if upto is None:
                return False
        elif box.cursors[0].idle:
            return False
        # Only when there is something to take: whoever sees a busy box below which it waits is called afterwards.
        runtime.busy[at] = True
        trains = runtime.take(box, self._limit, upto)
        self._storage[at] += stopwatch() - begun
        box.state, result = runtime.call((at,), box.kernel, box.state, trains)
        if box.timed:
            box.deadline = box.kernel.deadline(box.state)
        self._pass_on(box, result)
        for piece in result.rest or ():
            self._call(self._below[at])  # they work the pieces before it off meanwhile
            self._pass_on(box, piece)
        if result.rest is not None and box.timed:
            box.deadline = box.kernel.deadline(box.state)
        runtime.busy[at] = False
        boxes = runtime.boxes
        called = [one for one in self._below[at] if not all(cursor.idle for cursor in boxes[one].cursors)]
        if called:
            self._call(called)
        return True

    def _pass_on(self, box: RunningBox, result: Result) -> None:
        at = box.index
        for arc, train in zip(box.arcs, result.outputs, strict=False):
            if arc is None:
                continue
            begun = stopwatch()
            for delivery in arc.deliveries:
                delivery.deliver(train)
            pushing = stopwatch()
            arc.queue.push(train)
            self._delivering[at] += pushing - begun
            self._storage[at] += stopwatch() - pushing


def _below(runtime: Runtime) -> list[tuple[int, ...]]:
    """Return by box who may have something to take after it has run.

    Those are its consumers, and all boxes with several inputs below it: they wait for progress, which passes through
    boxes that have nothing to do.
    """
    several = {box.index for box in runtime.several}
    consumers = runtime.topology.consumers
    reach: list[set[int]] = [set() for _ in runtime.boxes]
    for at in range(len(reach) - 1, -1, -1):
        for consumer in consumers[at]:
            reach[at] |= reach[consumer]
            if consumer in several:
                reach[at].add(consumer)
    return [tuple(sorted({*reach[at], *consumers[at]})) for at in range(len(reach))]
