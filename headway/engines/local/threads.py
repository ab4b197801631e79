"""The baseline without a scheduler: every box has a thread of its own, and the operating system decides.

A thread blocks until its box has something to take, takes at most a train, runs the kernel, queues the result and
wakes those who may now have something to do. Nobody looks at costs, latencies or queues. This is the thread-based
model that "Operator Scheduling in a Data Stream Manager" (section 3) measures its state-based model against: simple,
but every train costs a switch between threads, and nobody can say who comes first.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any

import numpy as np

from headway.catalog import members
from headway.clock import SECOND, WallClock, stopwatch
from headway.engines.loop import Round, Start, Started, Wait, drive
from headway.engines.process.capacity import Effort
from headway.engines.process.run import InRealTime, fail, quiet
from headway.engines.process.runtime import RunningBox, Runtime
from headway.engines.runs import RunResult
from headway.errors import RunError
from headway.kernels.kernel import Result
from headway.scheduling.snapshot import Snapshot

_LOOK = 0.002
"""Seconds after which the driver looks again whether sources may go on, while boxes are at work."""
_WORK = 0.05
"""Seconds for which it leaves boxes at work alone where no source waits."""
_NOBODY: frozenset[int] = frozenset()


class Threads(InRealTime):
    """Lets every box run in a thread of its own, and nobody decide."""

    free = 0
    ready = False

    def __init__(self, *given: Any) -> None:
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
            fail(self.runtime.boxes[at].name, error)
        self.peak = max(self.peak, self.runtime.board.bytes)
        return Round(self.clock.now(), 0, self.stopping.commands())

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
        sources = self.sources
        if not self._threads.idle():  # at the latest until a tuple is due; not for long where sources are held back
            pause = _LOOK if sources.more_in_turn or self.full else _WORK
            due = sources.next_due() if isinstance(self.clock, WallClock) and not sources.ended else None
            sources.wake.wait(pause if due is None else min(pause, max(0.0, (due - self.clock.now()) / SECOND)))
            sources.wake.clear()
        elif not self._arrived and not sources.more_in_turn:
            self.sleep(wait.until)
        return self.begin()


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
        self.failed: tuple[int, BaseException] | None = None
        """The box that failed first, and its error; all threads then end by themselves."""
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

    def notify(self) -> None:
        """Call all boxes that have something waiting; to be called after tuples or marks have arrived."""
        board = self._runtime.board
        filled = np.flatnonzero(board.arrived - board.taken + board.marks)
        self._call(set(self._runtime.cursor_box[filled].tolist()))

    def idle(self) -> bool:
        """Return whether all threads wait and no box can take anything.

        It stays so until the driver calls `notify`.
        """
        with self._lock:
            return self._awake == 0

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
                if self.failed is None:
                    self.failed = (box.index, error)
            self._stop()
            self._wake.set()

    def _run(self, box: RunningBox) -> bool:
        """Process a train of a box; return whether there was one."""
        runtime, at = self._runtime, box.index
        begun = stopwatch()
        upto = runtime.takeable(box, _NOBODY)
        if upto is None:
            return False
        # Only when there is something to take: whoever sees a busy box below which it waits is called afterwards.
        runtime.busy[at] = True
        trains = runtime.take(box, self._limit, upto)
        self._storage[at] += stopwatch() - begun
        result = runtime.run(box, trains)
        self._pass_on(box, result)
        for piece in result.rest or ():
            self._call(self._below[at])  # they work the pieces before it off meanwhile
            self._pass_on(box, piece)
        if result.rest is not None:
            box.note_deadline()
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
    own = [0] * len(runtime.boxes)
    for box in runtime.several:
        own[box.index] = 1 << box.index
    topology = runtime.topology
    found = zip(map(members, topology.gather(own)), topology.consumers, strict=True)
    return [tuple(sorted({*several, *consumers} - {at})) for at, (several, consumers) in enumerate(found)]
