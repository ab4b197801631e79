"""Workers: threads that carry out steps. With one worker the scheduler's own thread does it."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from headway.scheduling.base import Step


def quiet() -> np.errstate:
    """Return a context for boxes, in which numpy does not warn of infinities and NaN: they are values like others.

    It holds for the thread that enters it.
    """
    return np.errstate(over="ignore", invalid="ignore", divide="ignore")


class Done(NamedTuple):
    """A step that has ended, with the error that ended it, if any."""

    step: Step
    error: BaseException | None


class Workers(Protocol):
    """Who carries steps out."""

    free: int

    def start(self, step: Step) -> None:
        """Begin a step; only when a worker is free."""
        ...

    def done(self, timeout: float | None) -> list[Done]:
        """Return the steps that have ended since the last call; wait up to `timeout` seconds for the first."""
        ...

    def close(self) -> None:
        """Wait for the steps under way, and let the workers go."""
        ...


class Inline:
    """One worker: the calling thread. A step is done when `start` returns; no hand-over costs anything."""

    def __init__(self, run: Callable[[Step], None]) -> None:
        """Carry out steps by `run`."""
        self._run = run
        self._done: list[Done] = []
        self.free = 1

    def start(self, step: Step) -> None:
        """Carry the step out."""
        try:
            self._run(step)
            self._done.append(Done(step, None))
        except Exception as error:
            self._done.append(Done(step, error))

    def done(self, timeout: float | None) -> list[Done]:
        """Return what was carried out."""
        done, self._done = self._done, []
        return done

    def close(self) -> None:
        """Nothing is under way."""


class Pool:
    """Several threads."""

    def __init__(self, run: Callable[[Step], None], count: int, wake: threading.Event) -> None:
        """Start the threads; `wake` is set when a step ends."""
        self._run = run
        self._steps: queue.SimpleQueue[Step | None] = queue.SimpleQueue()
        self._ended: queue.SimpleQueue[Done] = queue.SimpleQueue()
        self._wake = wake
        self.free = count
        self._threads = [
            threading.Thread(target=self._work, name=f"headway-worker-{at}", daemon=True) for at in range(count)
        ]
        for thread in self._threads:
            thread.start()

    def _work(self) -> None:
        with quiet():
            self._carry_out()

    def _carry_out(self) -> None:
        while (step := self._steps.get()) is not None:
            try:
                self._run(step)
                done = Done(step, None)
            except BaseException as error:  # handed to the scheduler thread, which stops the run
                done = Done(step, error)
            self._ended.put(done)
            self._wake.set()

    def start(self, step: Step) -> None:
        """Hand the step to a thread."""
        self.free -= 1
        self._steps.put(step)

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
        """Let the threads finish what they do and end."""
        for _ in self._threads:
            self._steps.put(None)
        for thread in self._threads:
            thread.join(timeout=30)
