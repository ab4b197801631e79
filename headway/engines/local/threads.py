"""The baseline without a scheduler: every box has its own thread, and the operating system decides.

A thread blocks until its box has something to take, takes at most one train, runs the kernel, queues the result, and
wakes the boxes that may now have something to do. Costs, latencies and queues play no part. This is the thread-based
model that "Operator Scheduling in a Data Stream Manager" (section 3) compares its state-based model with: simple, but
every train costs a switch between threads, and there is no control over the order.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable

import numpy as np

from headway.catalog import members
from headway.clock import MILLISECOND, stopwatch
from headway.columns import NEVER, quiet
from headway.engines.carrier import Given
from headway.engines.instructions import AT_ONCE, Round, Start, Started, Wait
from headway.engines.loop import drive
from headway.engines.process.capacity import Effort
from headway.engines.process.drops import RuntimeDrops
from headway.engines.process.run import Process, fail
from headway.engines.process.runtime import RunningBox, Runtime
from headway.engines.runs import RunResult
from headway.errors import RunError
from headway.kernels.kernel import Result
from headway.scheduling.snapshot import Snapshot

_LOOK = 2 * MILLISECOND
"""Nanoseconds between the driver's checks whether sources may be read, while boxes are running."""
_WORK = 50 * MILLISECOND
"""The same if no source is waiting to be read."""
_NOBODY: frozenset[int] = frozenset()


class Threads(Process):
    """Runs every box in its own thread; there is no policy."""

    free = 0

    def __init__(self, given: Given) -> None:
        super().__init__(given)
        self._threads = BoxThreads(self.runtime, self.train, self.sources.wake)
        self.steer(1, None, RuntimeDrops(self.readings, self.train, lambda: Effort(0)))

    def go(self) -> RunResult:
        """Run until the end."""
        self.stopping.begin()
        try:
            self._threads.start()
            drive(self.loop, self)
        finally:
            self._threads.close()
        self.readings.check_drained()
        return self.result(self.stopping.by, {"preemptions": 0, "mean_queued_bytes": None, "idle": None})

    @property
    def busy(self) -> bool:
        """Whether any thread has something to do."""
        return not self._threads.idle()

    def snapshot(self, seen: bool) -> Snapshot:
        """Not used: there is no policy."""
        raise NotImplementedError

    def begin(self) -> Round:
        """Begin a round."""
        failed = self._threads.failed
        if failed is not None:
            at, error = failed
            fail(self.runtime.boxes[at].name, error)
        self.peak = max(self.peak, self.runtime.board.bytes)
        now = self.clock.now()
        return Round(now, 0, self.stopping.commands(now))

    def entered(self) -> None:
        """Note that something has arrived, and call the boxes that it is for."""
        super().entered()  # before boxes take it
        self._threads.notify()

    def start(self, start: Start) -> Started:
        """Not used: there are no plans."""
        raise NotImplementedError

    def wait(self, wait: Wait) -> Round:
        """Wait until something happens."""
        self.report(self.clock.now())
        until = wait.until
        if until == NEVER and not self.busy and not self.sources.listening:
            return self.begin()  # the last box has just become idle, which nothing else would tell
        if wait is not AT_ONCE and self.busy:  # threads do not say when there is room for more
            until = min(until, self.clock.now() + (_LOOK if self.sources.more_in_turn or self.full else _WORK))
        self.sleep(until)
        return self.begin()


class BoxThreads:
    """A thread for each box of a network.

    No wake-up is lost: a box is called after its input is queued, and a thread that was called since it last looked
    looks again before it sleeps. A box with several inputs may also become ready without new input, when a box upstream
    finishes without results; so at the end of each box call, all such boxes downstream that have tuples waiting are
    called. Calls come only from threads that are awake, or from the driver: if no thread is awake, no box can take
    anything until the driver brings something.
    """

    def __init__(self, runtime: Runtime, limit: int, wake: threading.Event) -> None:
        """Prepare threads that take at most `limit` tuples at a time.

        `wake` is set when all of them are asleep, or when one has failed.
        """
        self._runtime = runtime
        self._limit = limit
        self._wake = wake
        count = len(runtime.boxes)
        self._below = _below(runtime)
        self._lock = threading.Lock()  # guards everything below
        self._conditions = [threading.Condition(self._lock) for _ in range(count)]
        self._called = [False] * count
        self._asleep = [False] * count
        self._awake = count
        self._closing = False
        self.failed: tuple[int, BaseException] | None = None
        """The first box that failed, and its error; all threads then end."""
        self._threads: list[threading.Thread] = []
        # By box, each written by its own thread only, so that no update is lost.
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
        """Call all boxes that have input waiting. Must be called after tuples or marks have arrived."""
        board = self._runtime.board
        filled = np.flatnonzero(board.arrived - board.taken + board.marks)
        self._call(set(self._runtime.cursor_box[filled].tolist()))

    def idle(self) -> bool:
        """Return whether all threads are asleep and no box can take anything.

        This remains so until the driver calls `notify`.
        """
        with self._lock:
            return self._awake == 0

    def close(self) -> None:
        """Let the threads finish their current calls and end; then account for the time in queues and sinks."""
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
                    self._awake += 1  # counted here, so that not all threads appear asleep while a call is on its way
                    self._conditions[at].notify()

    def _sleep(self, at: int) -> bool:
        """Sleep unless the box was called since it last looked; return False if the threads are closing."""
        with self._lock:
            if not self._called[at] and not self._closing:
                self._asleep[at] = True
                self._awake -= 1
                if self._awake == 0:
                    self._wake.set()
                while not self._called[at] and not self._closing:
                    self._conditions[at].wait()
            self._called[at] = False  # before the box looks, so that what arrives meanwhile counts
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
        """Process a train of a box; return False if there is none."""
        runtime, at = self._runtime, box.index
        begun = stopwatch()
        upto = runtime.takeable(box, _NOBODY)
        if upto is None:
            return False
        # Set only if there is something to take: a box that waits because this one is busy is called later.
        runtime.busy[at] = True
        trains = runtime.take(box, self._limit, upto)
        self._storage[at] += stopwatch() - begun
        result = runtime.run(box, trains)
        self._pass_on(box, result)
        for piece in result.rest or ():
            self._call(self._below[at])  # they process the previous pieces meanwhile
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
    """Return by box which boxes may have something to take after it has run.

    These are its consumers, and all boxes with several inputs downstream: they wait for progress, which passes through
    idle boxes.
    """
    own = [0] * len(runtime.boxes)
    for box in runtime.several:
        own[box.index] = 1 << box.index
    topology = runtime.topology
    found = zip(map(members, topology.gather(own)), topology.consumers, strict=True)
    return [tuple(sorted({*several, *consumers} - {at})) for at, (several, consumers) in enumerate(found)]
