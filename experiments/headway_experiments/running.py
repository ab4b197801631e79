"""Carry experiments out: simulated runs side by side in processes; those that measure real time alone, one by one."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import NamedTuple

from headway.clock import SECOND, stopwatch
from headway.engines.signals import at_once
from headway_experiments.checks import Check
from headway_experiments.disturbance import MOST, share, used
from headway_experiments.experiment import ENGINES, Experiment, Task, judge
from headway_experiments.rows import Row, Rows

TICK = 0.5
"""Seconds between two calls of `on_wait`."""
TRIES = 5
"""How often a run in real time is made, in full, until others leave it the machine."""
AHEAD = 4
"""How many runs a pool holds, for each process: enough to be busy while a plot is drawn here."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of an experiment."""

    experiment: Experiment
    quick: bool
    rows: Rows
    checks: tuple[Check, ...]
    verdict: str
    seconds: float
    """How long its runs took, added up: less time has passed where they were side by side."""
    runs: int
    stolen: float = 0.0
    """Of real time: which share of the processors' time other machines took meanwhile."""


@dataclass(frozen=True, slots=True)
class Failure:
    """An experiment that could not be carried out."""

    experiment: Experiment
    error: Exception
    seconds: float = 0.0

    @property
    def where(self) -> str:
        """The file and line that raised, such as `trees.py:12`."""
        notes = getattr(self.error, "__notes__", None)
        return notes[-1] if notes else _place(self.error)


Progress = Callable[[Experiment, int, int], None]
"""Told before the first task and after each: the experiment, how many of its tasks are done, and of how many.

One that is to be made again is not done.
"""


def carry_out(
    experiment: Experiment,
    quick: bool = False,
    pool: Pool | None = None,
    on_progress: Progress | None = None,
) -> Outcome:
    """Run all tasks of an experiment and judge them.

    With a pool, tasks of simulated experiments are spread over its processes; those that measure real time always
    run here, alone. An exception of a task ends the experiment and is raised.
    """
    [result] = carry_out_each([experiment], quick, pool, on_progress)
    if isinstance(result, Failure):
        raise result.error
    return result


def carry_out_each(
    experiments: Sequence[Experiment],
    quick: bool = False,
    pool: Pool | None = None,
    on_progress: Progress | None = None,
    on_wait: Callable[[], None] | None = None,
) -> Iterator[Outcome | Failure]:
    """Carry out several experiments; yields each as it ends.

    Simulated ones come first. They share the pool's processes, so that the end of one leaves no processor idle. Then,
    when nothing else runs, those on `local` and on `spark`, one after the other. In full, a run from which other
    machines took too much of the processors' time is made again, after the others of its experiment; the least
    disturbed one counts. An exception ends its experiment only. While processes are busy, `on_wait` is called now and
    then. Ctrl-C raises KeyboardInterrupt.
    """
    begun: list[_UnderWay] = []
    for experiment in sorted(experiments, key=lambda one: ENGINES.index(one.engine)):
        try:
            begun.append(_UnderWay(experiment, quick, on_progress))
        except Exception as error:
            yield Failure(experiment, error)
    together = [one for one in begun if pool is not None and one.experiment.engine == "sim"]
    if pool is not None and together:
        yield from _side_by_side(together, pool, on_wait or (lambda: None))
    for one in begun:
        if one not in together:
            yield _alone(one)


class _Measured(NamedTuple):
    rows: list[Row]
    seconds: float
    stolen: float = 0.0
    """Of real time: which share of the processors' time other machines took."""


class _UnderWay:
    """An experiment that has begun, and what its tasks gave so far."""

    def __init__(self, experiment: Experiment, quick: bool, tell: Progress | None) -> None:
        self.experiment = experiment
        self.tasks: list[Task] = list(experiment.tasks(quick))
        self.ended = False
        self.quick = quick
        self._tell = tell
        self._found: dict[int, _Measured] = {}
        if not self.tasks:
            raise ValueError("there are no runs")
        self._progress()

    @property
    def disturbed(self) -> list[int]:
        """The tasks from which others took too much, so far."""
        return [at for at, one in sorted(self._found.items()) if one.stolen > MOST]

    def add(self, at: int, measured: _Measured) -> bool:
        """Take what a task gave, and of what it gave before the least disturbed; returns whether all gave something."""
        before = self._found.get(at)
        if before is None or measured.stolen < before.stolen:
            self._found[at] = measured
        self._progress()
        return len(self._found) == len(self.tasks)

    def fail(self, error: Exception) -> Failure:
        """End it early."""
        self.ended = True
        return Failure(self.experiment, error, self._seconds())

    def _progress(self) -> None:
        if self._tell is not None:
            again = 0 if self.quick else len(self.disturbed)
            self._tell(self.experiment, len(self._found) - again, len(self.tasks))

    def _seconds(self) -> float:
        return sum(one.seconds for one in self._found.values())

    def outcome(self) -> Outcome:
        """Judge what all tasks gave."""
        experiment = self.experiment
        rows = Rows(row for at in sorted(self._found) for row in self._found[at].rows)
        checks = tuple(experiment.check(rows))
        keys = [check.key for check in checks]
        if len(set(keys)) < len(keys):
            raise ValueError(f"{experiment.name}: two checks have the same key: {keys}")
        self.ended = True
        verdict = judge(experiment, checks)
        seconds = self._seconds()
        stolen = sum(one.seconds * one.stolen for one in self._found.values()) / seconds if seconds else 0.0
        return Outcome(experiment, self.quick, rows, checks, verdict, seconds, len(self.tasks), stolen)


def _alone(one: _UnderWay) -> Outcome | Failure:
    real = one.experiment.engine != "sim"
    left = list(range(len(one.tasks)))
    try:
        with at_once():  # an engine would rather end the inputs, and the figures would be of half a run
            for _ in range(TRIES if real and not one.quick else 1):
                for at in left:
                    one.add(at, (_measure_real if real else _measure)(one.experiment.measure, one.tasks[at]))
                left = one.disturbed
            return one.outcome()
    except Exception as error:
        return one.fail(error)


def _side_by_side(begun: Sequence[_UnderWay], pool: Pool, on_wait: Callable[[], None]) -> Iterator[Outcome | Failure]:
    # The pool gets a few runs ahead only, and none is ever cancelled: a pool that is stopped while it holds cancelled
    # ones complains. And a queue, not `as_completed`: that has no way to do something else while it waits.
    left = deque((one, at) for one in begun for at in range(len(one.tasks)))
    ahead: dict[Future[_Measured], tuple[_UnderWay, int]] = {}
    done: SimpleQueue[Future[_Measured]] = SimpleQueue()
    while left or ahead:
        while left and len(ahead) < AHEAD * pool.count:
            one, at = left.popleft()
            if one.ended:
                continue
            try:
                with _interrupts_held_back():
                    future = pool.submit(_measure, one.experiment.measure, one.tasks[at])
            except Exception as error:  # the pool is broken: a process was killed
                yield one.fail(error)
                continue
            ahead[future] = (one, at)
            future.add_done_callback(done.put)
        if not ahead:
            continue
        future = _next(done, on_wait)
        one, at = ahead.pop(future)
        if one.ended:
            continue
        result: Outcome | Failure | None
        try:
            result = one.outcome() if one.add(at, future.result()) else None
        except Exception as error:
            result = one.fail(error)
        if result is not None:
            yield result


def _next(done: SimpleQueue[Future[_Measured]], on_wait: Callable[[], None]) -> Future[_Measured]:
    while True:
        try:
            return done.get(timeout=TICK)
        except Empty:
            on_wait()


def _measure(measure: Callable[[Task], Sequence[Row]], task: Task) -> _Measured:
    began = stopwatch()
    try:
        rows: list[Row] = [dict(row) for row in measure(task)]
    except Exception as error:
        error.add_note(_place(error))  # a traceback does not come back from another process
        raise
    return _Measured(rows, (stopwatch() - began) / SECOND)


def _measure_real(measure: Callable[[Task], Sequence[Row]], task: Task) -> _Measured:
    gc.collect()  # what others left behind must not fall into what is measured here
    before = used()
    return _measure(measure, task)._replace(stolen=share(before, used()))


def _place(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""


_PAUSE = 0.5
"""Seconds that a process has to end until it is told so again."""


class Pool(ProcessPoolExecutor):
    """Processes that carry out runs."""

    def __init__(self, count: int) -> None:
        """Provide so many; they start when there is something to do."""
        # Spawned, not forked: Arrow's threads do not survive a fork.
        super().__init__(count, multiprocessing.get_context("spawn"), _die_at_once)
        self.count = count


@contextmanager
def processes(count: int | None = None) -> Iterator[Pool | None]:
    """Provide so many processes (default: one for each core), or none at all if that is one.

    If the body raises, for instance at Ctrl-C, they are stopped amid their work.
    """
    count = count or os.cpu_count() or 1
    if count == 1:
        yield None
        return
    before = set(multiprocessing.active_children())
    pool = Pool(count)
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)  # nobody begins anything any more
        while children := set(multiprocessing.active_children()) - before:  # one may just be starting
            for child in children:
                child.terminate()
            for child in children:
                child.join(_PAUSE)
        raise
    finally:
        pool.shutdown()


@contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """Let processes that are started here never hear of Ctrl-C: a terminal sends it to them as well as to us."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _die_at_once() -> None:
    """Let a process end at SIGTERM, amid a run: an engine would rather end the inputs."""
    signal.signal(signal.SIGTERM, lambda number, frame: os._exit(128 + number))
