"""Workers: threads that carry out steps. With one worker the scheduler's own thread does it."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import NamedTuple

import numpy as np


def quiet() -> np.errstate:
    """Return a context for boxes, in which numpy does not warn of infinities and NaN: they are values like others.

    It holds for the thread that enters it.
    """
    return np.errstate(over="ignore", invalid="ignore", divide="ignore")


class Job(NamedTuple):
    """A step to be carried out."""

    unit: int
    tuples: int
    order: tuple[int, ...] | None
    """The boxes to be called, where it is not the unit's own order."""
    part: int | None
    """After so many tuples it may be ended early; None: it may not."""
    plan: int
    """The number of the plan that it belongs to."""
    until: int | None = None
    """A moment after which it may be ended early."""


class Done(NamedTuple):
    """A step that has ended, with the error that ended it, if any."""

    job: Job
    error: BaseException | None


class Pool:
    """Several threads."""

    def __init__(self, run: Callable[[Job, int], None], count: int, wake: threading.Event) -> None:
        """Start the threads; `wake` is set when a step ends."""
        self._run = run
        self._steps: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._ended: queue.SimpleQueue[Done] = queue.SimpleQueue()
        self._wake = wake
        self.free = count
        self._threads = [
            threading.Thread(target=self._work, args=(at,), name=f"headway-worker-{at}", daemon=True)
            for at in range(count)
        ]
        for thread in self._threads:
            thread.start()

    def _work(self, number: int) -> None:
        with quiet():
            self._carry_out(number)

    def _carry_out(self, number: int) -> None:
        while (job := self._steps.get()) is not None:
            try:
                self._run(job, number)
                done = Done(job, None)
            except BaseException as error:  # handed to the scheduler thread, which stops the run
                done = Done(job, error)
            self._ended.put(done)
            self._wake.set()

    def start(self, job: Job) -> None:
        """Hand the step to a thread."""
        self.free -= 1
        self._steps.put(job)

    def done(self, timeout: float | None) -> list[Done]:
        """Return what has ended."""
        ended: list[Done] = []
        try:
            if timeout is not None:
                ended.append(self._ended.get(timeout=timeout))
            while True:
                ended.append(self._ended.get_nowait())
        except queue.Empty:
            pass
        self.free += len(ended)
        return ended

    def close(self) -> None:
        """Let the threads finish what they do and end; a second time does nothing."""
        threads, self._threads = self._threads, []
        for _ in threads:
            self._steps.put(None)
        for thread in threads:
            thread.join(timeout=30)
