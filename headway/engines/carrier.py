"""One run: what the carriers of all engines have in common."""

from __future__ import annotations

import contextlib
import threading
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol

import pyarrow as pa

from headway.checking import CheckedNetwork
from headway.clock import SECOND, Clock, WallClock, stopwatch
from headway.columns import quiet
from headway.connectors.protocol import Malformed
from headway.engines.control import Ask
from headway.engines.ingest import Feed, Ingest
from headway.engines.instructions import Manner, Renewed, Seal
from headway.engines.loop import Carrier, Loop
from headway.engines.monitor import Sheddable
from headway.engines.opening import AnOutlet, Outlets
from headway.engines.reading import Reading
from headway.engines.runs import OutputStatus, RunResult, RunSettings, Status
from headway.engines.signals import Stopping
from headway.engines.steering import Steering
from headway.engines.traces import Recorder
from headway.errors import RunError
from headway.living.changes import Changes
from headway.living.since import Since
from headway.network.secrets import masked
from headway.program import Program
from headway.scheduling.policy import Policy
from headway.totals import SYSTEM, Spent, Totals
from headway.trains import NOTHING

LOOK_AGAIN = SECOND // 4
"""Nanoseconds between status reports, and the longest sleep before a run checks for stop requests."""


class Given(NamedTuple):
    """What a run is given."""

    checked: CheckedNetwork
    settings: RunSettings
    clock: Clock
    stack: contextlib.ExitStack
    """What is closed when the run ends, however it ends."""
    stopping: Stopping


@contextlib.contextmanager
def giving(checked: CheckedNetwork, settings: RunSettings, clock: Clock) -> Iterator[Given]:
    """Provide what a run is given; its stack is unwound at the end, undisturbed by signals."""
    with quiet(), Stopping(settings.control) as stopping, contextlib.ExitStack() as stack:
        try:
            yield Given(checked, settings, clock, stack, stopping)
        finally:
            stopping.shield()


class KeptHistories(Protocol):
    """What connection points keep, for whoever prepares a change; thread-safe."""

    def check(self, checked: CheckedNetwork, anew: Collection[str] = ()) -> None:
        """Raise a RunError if the history of a point that is new could not be opened, or begin anew."""

    def of(self, point: str) -> object:
        """Return the history of a point; raises why it has failed."""

    def table(self, point: str) -> pa.Table:
        """Return all that a point keeps."""

    def plan(self, point: str, since: Since | None, key: object) -> object:
        """Return what reading history would take, as text."""


class Run(Carrier):
    """One run, as far as engines do not differ. `steer` creates the loop that it is the carrier for.

    Back pressure is the same for all engines. Sources are held back while queues exceed the memory limit (`full`).
    Those without rates are read only while the consumer that is furthest behind has less than `enough` (`hungry`).
    """

    engine: ClassVar[str]
    replays: ClassVar[bool] = True
    """Whether recordings can be replayed: they contain the arrivals and the tuples by arc."""

    def __init__(
        self,
        given: Given,
        readings: Reading,
        outlets: Outlets[AnOutlet],
        feeds: Sequence[Feed],
        refuse: Callable[[Sequence[Malformed]], None],
        *,
        chunk: int,
        enough: int,
        full: Callable[[], bool] = lambda: True,
        issued: int = NOTHING,
        wake: threading.Event | None = None,
        begun: int | None = None,
        confirms: bool = True,
    ) -> None:
        """Connect sources and outputs with the reading, and begin a recording if the user wants one.

        `begun` is the run's begin by the stopwatch, if not now; the rest is for `Ingest`.
        """
        self.checked, self.settings, self.clock, self.stack, self.stopping = given
        self.schedule = self.settings.schedule
        self.readings, self.outlets, self.enough = readings, outlets, enough
        self.peak = 0
        """Peak of queued bytes."""
        self.intake = 0
        """Nanoseconds spent on reading sources."""
        self.waited = 0
        """Nanoseconds slept while nothing was under way."""
        self._next_status = 0
        self.recorder: Recorder | None = None
        if self.settings.trace:
            network, names = self.checked.network, [unit.name for unit in readings.units]
            about = network.name, names, readings.topology.boxes, self.settings.policy_text
            described = masked(network.to_mapping()) if self.replays else None
            self.recorder = Recorder(*about, start=self.clock.now(), description=described)
            if self.replays:
                self.recorder.hear(feeds)
        half_life = self.settings.half_life
        self.sources = Ingest(feeds, self.clock, chunk, refuse, issued, half_life, full, wake, confirms)
        self.stack.callback(self.sources.stop)
        if self.settings.control is not None:
            self.settings.control.rouse(self.sources.wake.set)
        deliveries = list(outlets.deliveries.values())
        readings.attach(self.sources, feeds, deliveries, outlets.letters, self.schedule)
        self.begun = stopwatch() if begun is None else begun

    def steer(
        self,
        workers: int,
        policy: Policy | None,
        drops: Sheddable,
        manner: Manner | None = None,
        *,
        ended: bool = False,
    ) -> None:
        """Create the loop, and the steering for it."""
        self.readings.workers = workers
        self._asked, now = policy or self.settings.make_policy(), self.clock.now()
        self.steering = Steering(self.settings, self._asked, self.readings, drops, now, self.recorder)
        self.loop = Loop(self, policy, self.schedule, self.steering, self.recorder, manner, ended=ended)

    def steer_on(self, drops: Sheddable, manner: Manner) -> Renewed:
        """Create the steering for the network after a seam; its readings are set."""
        self.readings.workers = self.steering.workers
        self.steering = self.steering.follow(self.readings, drops, self.clock.now(), self.settings.tables)
        return Renewed(self.steering, manner)

    # What the loop reads

    @property
    @abstractmethod
    def queued(self) -> int:
        """The bytes in queues."""

    def filled(self) -> bool:
        """Return whether queues exceed the memory limit."""
        return self.queued > self.settings.memory

    @property
    def full(self) -> bool:
        """Whether queues exceed the memory limit, as far as the loop is concerned."""
        return self.filled()

    @property
    def hungry(self) -> bool:
        """Whether sources without rates should be read: the consumer that is furthest behind has little left."""
        return self.sources.more_in_turn and self.readings.longest < self.enough

    @property
    def more(self) -> bool:
        """Whether a policy may wait for more tuples: they may still come, and will be let in."""
        return not self.sources.ended and not self.full

    # Commands

    def answer(self, ask: Ask) -> None:
        """Answer a question about the run; what is wrong with it is the caller's, not the run's."""
        if not ask.answer.set_running_or_notify_cancel():
            return
        try:
            ask.answer.set_result(ask.question(self))
        except Exception as error:
            ask.answer.set_exception(error)

    def processed(self, number: int) -> bool:
        """Return whether everything up to an arrival number has been processed and delivered."""
        raise NotImplementedError

    def keep_behind(self) -> None:
        """Take note that what nobody waits for may have changed."""

    @property
    def histories(self) -> KeptHistories:
        """What connection points keep."""
        raise RunError(f"the engine '{self.engine}' keeps no history")

    @property
    def program(self) -> Program | None:
        """The program that runs, if a change can use what was compiled for it."""
        return None

    def check_alteration(self, checked: CheckedNetwork, changes: Changes) -> None:
        """Raise a RunError if this run cannot change in this way. Called by whoever prepares a change."""
        if self.schedule.threads:
            raise RunError("policy 'threads' runs without a scheduler, which changes need: choose another policy")
        if self.recorder is not None:
            raise RunError("a run that is traced cannot change: start it without trace")

    # Instructions of the loop

    def begin_seam(self, seal: Seal) -> Renewed | None:
        """Begin a seam. Carriers that cannot are not asked to."""
        raise NotImplementedError

    def exchange(self) -> Renewed:
        """Exchange the network. Carriers that cannot are not asked to."""
        raise NotImplementedError

    def close(self) -> None:
        """Stop reading from sources."""
        self.sources.stop()

    def tick(self) -> None:
        """Let a clock tick arrive for windows that have timed out."""
        self.sources.tick()
        self.entered()

    def end(self) -> None:
        """Let the end of all inputs arrive."""
        self.sources.end()
        self.entered()

    def entered(self) -> None:
        """Note that something has arrived."""
        self.peak = max(self.peak, self.queued)

    def sleep(self, until: int) -> None:
        """Sleep in real time until a moment, or until a live source delivers or a step ends."""
        before = self.clock.now()
        pause = min(until - before, LOOK_AGAIN)
        if pause <= 0:
            return
        busy = self.busy
        if busy or self.sources.listening or isinstance(self.clock, WallClock):
            self.sources.wake.wait(pause / SECOND)
            self.sources.wake.clear()
        else:
            self.clock.sleep(pause)
        if not busy:
            self.waited += self.clock.now() - before

    # Status and results

    @property
    def seconds(self) -> float:
        """How long the run has taken so far."""
        return (stopwatch() - self.begun) / 1e9

    @property
    @abstractmethod
    def waiting(self) -> int:
        """The tuples in queues, for the status."""

    @abstractmethod
    def time(self) -> Mapping[str, float]:
        """Return the seconds spent so far, by activity."""

    def flows(self) -> Mapping[str, int]:
        """Return the tuples by arc so far, where they are known."""
        return {}

    def totals(self) -> Totals:
        """Return the running totals."""
        return self.steering.totals(self.clock.now(), Spent(self.time(), self.loop.plans, self.peak))

    def report(self, moment: int) -> None:
        """Look after the outputs, and report the status if it is due by the clock from which `moment` was read."""
        self.outlets.look()
        if self.settings.on_status is None or moment < self._next_status:
            return
        self._next_status = moment + LOOK_AGAIN
        self.settings.on_status(self.status())

    def status(self) -> Status:
        """Return the run's progress."""
        readings, totals = self.readings, self.totals()
        sums = totals.delivered.tolist(), totals.latency.tolist(), totals.utility.tolist(), totals.shed.tolist()
        outputs = {
            name: OutputStatus(tuples, latency / tuples if tuples else None, utility / tuples if tuples else None, shed)
            # totals have one more element, for the whole run
            for name, tuples, latency, utility, shed in zip(readings.topology.outputs, *sums, strict=False)
        }
        return Status(
            self.seconds,
            int(totals.arrived.sum()),
            int(totals.delivered[SYSTEM]),
            self.waiting,
            self.queued,
            readings.letters.total,
            self.filled(),
            self.loop.paused,
            outputs,
            tuples_before=readings.ingest.before,
        )

    def result(self, stopped_by: str | None, of_engine: Mapping[str, Any]) -> RunResult:
        """Complete the outputs and return the run's result; `of_engine` extends the summary."""
        tables, totals = self.outlets.complete(), self.totals()
        trace = None if self.recorder is None else self.recorder.trace(self.flows())
        summary = self.steering.summary(self.engine, totals, self.seconds, stopped_by, of_engine)
        return RunResult(tables, summary, self.outlets.letters.table(), trace)
