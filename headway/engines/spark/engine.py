"""The Spark engine: arrivals go to the log, the policy grants trains to streaming queries, results come back."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

from headway.checking import CheckedNetwork
from headway.clock import SECOND, WallClock, stopwatch
from headway.connectors.input_files import describe
from headway.connectors.protocol import Resumable
from headway.engines.alteration import Alteration
from headway.engines.carrier import Given, Run, giving
from headway.engines.control import Alter, Ask
from headway.engines.instructions import AT_ONCE, Manner, Renewed, Round, Seal, Start, Started, Wait
from headway.engines.loop import drive
from headway.engines.runs import RunResult, RunSettings
from headway.engines.spark.driver.backend import Backend
from headway.engines.spark.driver.drops import QueryDrops
from headway.engines.spark.driver.failures import describe_gone
from headway.engines.spark.driver.points import Points
from headway.engines.spark.driver.queries import RunningUnit
from headway.engines.spark.driver.reading import QueryReading, commit_letters
from headway.engines.spark.driver.seams import pending_in, read_back, resumed, written
from headway.errors import HeadwayError, RunError, check_known
from headway.living.changes import Changes
from headway.program import Program, compile_program
from headway.scheduling.policy import Step
from headway.scheduling.snapshot import Snapshot

_PULL_EVERY = SECOND // 50
"""Least interval between pulls from sources that deliver continually: often enough for any micro-batch."""
_CHUNK = 65_536
_MOST = 1_000_000
"""Most tuples that a query gets at a time on its way to a seam."""
_BACKLOG = 2_000_000
"""Tuples that may wait for a unit before sources without rates are held back."""


class SparkEngine:
    """Runs networks on Spark."""

    def run(self, checked: CheckedNetwork, settings: RunSettings) -> RunResult:
        """Run until all inputs have ended and everything is delivered.

        With a state directory, the first signal only stops the run, and it can be continued. While queries start, the
        first one aborts.
        """
        checked, settings = resumed(checked, settings)
        with giving(checked, settings, settings.clock or WallClock()) as given:
            stopping = given.stopping
            backend = Backend(given)
            try:
                stopping.begin()
                started = backend.start()
                run = Granting(given, backend)
                if started:
                    drive(run.loop, run)
                    if run.loop.stopped_by is not None and settings.state is not None:
                        run.write()  # what is logged but not processed continues in a later run
                stopped_by = stopping.by
            except Exception as error:
                if backend.queries.alive(error):
                    raise
                raise RunError(describe_gone(settings.state)) from error
            finally:
                backend.stop()
            told = {"master": backend.queries.master, **run.readings.summary(), **backend.points.summary()}
            if settings.state is not None and not backend.finished:
                told["state"] = {"path": settings.state, "can_continue": True}
            return run.result(stopped_by, told)


class Granting(Run):
    """One run on Spark, whose queries have started: carries out steps by granting them to queries."""

    engine = "spark"
    replays = False
    readings: QueryReading

    def __init__(self, given: Given, backend: Backend) -> None:
        settings = given.settings
        self._backend, self._arrivals, self._log = backend, backend.arrivals, backend.log
        log, units = backend.log, backend.units
        self._feeds = backend.feeds()
        super().__init__(
            given,
            QueryReading(backend.state.program, units, backend.arrivals, backend.takings, settings),
            backend.outlets,
            self._feeds,
            backend.arrivals.refuse,
            chunk=_CHUNK,
            enough=_BACKLOG,
            issued=max(log.issued, backend.points.issued, *(unit.position for unit in units)),
            wake=backend.wake,
            begun=backend.begun,
            confirms=False,
        )
        drops = self._drop_boxes()
        # Half of a step's time is not computing, so another unit can use it at little cost. With one worker instead of
        # two on two cores, urgent results waited for long steps of other units (5 s instead of 3 s at worst).
        workers = max(1, min(settings.workers or backend.queries.parallelism, len(units)))
        self._manner = Manner(ends_at_once=True, keeps=settings.state is not None, logs=True)
        self.steer(workers, settings.make_policy(), drops, self._manner, ended=log.end is not None)
        if log.end is not None:
            self.sources.stop()
        elif backend.recovered:
            self.sources.go_on(log.newest.reached, log.newest.positions)
            if any(box.spec.timeout is not None for box in self.checked.order):
                self.sources.tick()  # windows may have timed out between the processes
        self._asks: list[Ask] | None = None
        self._held: frozenset[str] = frozenset()
        found = pending_in(log, backend.state.seam)
        if found is not None and found.seam is not None:
            again, self.settings = read_back(found.seam, self.checked, settings)
            self._alter = Alter(again, Future(), Future())
            backend.seams.begin(found.issued, again, *backend.seams.plan(again.program, again.changes))
            self.loop.go_on(self._alter)
            self._asks = []

    def _drop_boxes(self) -> QueryDrops:
        """Return the places for drop boxes, which drop nothing so far."""
        backend = self._backend
        for unit in backend.units:
            backend.sifting.clear(unit.id, unit.position)  # drops so far were for the load at that time
        drops = QueryDrops(self.readings, backend.sifting, backend.queries.parallelism)
        backend.takings.sifted = drops.count
        return drops

    # What the loop reads

    @property
    def queued(self) -> int:
        """The bytes that have arrived and have not been processed by all units."""
        return self.readings.queued

    @property
    def full(self) -> bool:
        """Whether queues exceed the memory limit, so that sources without rates are held back, if there are any."""
        return not self.sources.pressing and self.filled()

    @property
    def free(self) -> int:
        """How many grants can be given now."""
        under_way = sum(unit.busy and not unit.starting for unit in self._backend.units)
        return max(0, self.readings.workers - under_way)

    @property
    def busy(self) -> bool:
        """Whether a micro-batch is under way."""
        return any(unit.busy for unit in self._backend.units)

    @property
    def deadline(self) -> int | None:
        """The moment at which the next window times out."""
        return self._backend.takings.deadline

    def snapshot(self, seen: bool) -> Snapshot:
        """Return the current snapshot."""
        snapshot = self.readings.snapshot(self.more, self.loop.planning_seconds)
        if self.recorder is not None:
            self.recorder.queued(snapshot.now, int(snapshot.waiting.sum()), snapshot.memory)
        return snapshot

    # Instructions of the loop

    def begin(self) -> Round:
        """Begin a round: check which units have committed."""
        heard = self._backend.listen()
        if self._backend.seams.pending is not None and not self.loop.paused:
            self._hurry()
        self.peak = max(self.peak, self.queued)
        now = self.clock.now()
        if self.recorder is not None:
            for unit in heard:
                if unit.plan:
                    self.recorder.step(unit.number, unit.number, unit.granted_at, now, unit.granted, plan=unit.plan)
        return Round(now, len(heard), self.stopping.commands(self.clock.now()))

    def close(self) -> None:
        """Stop reading from sources; boxes that are paused go on, or the run could not end."""
        self._held = frozenset()
        self._hold_units()
        super().close()

    def tick(self) -> None:
        """Let a clock tick arrive for windows that have timed out."""
        self._backend.takings.forget_deadlines()
        super().tick()

    def admit(self, asks: bool) -> None:
        """Let tuples arrive, and seal them in the log if it is time.

        Sources without rates are read on, up to as many tuples as a long train takes, but only for a short time: units
        that ask meanwhile are not noticed yet, and a slow source would keep them waiting until its end.
        """
        begun = stopwatch()
        patience = begun + _PULL_EVERY
        while self.sources.pull(asks) and self.sources.more_in_turn:
            if stopwatch() > patience and (self._backend.called or self._arrivals.due):
                break
            asks = self.hungry and not self.full
        if self._arrivals.due:
            self.write()
        self.intake += stopwatch() - begun

    def start(self, start: Start) -> Started:
        """Grant the steps of a plan."""
        return Started(sum([self._carry_out(step, start.plan) for step in start.steps[: self.free]]))

    def wait(self, wait: Wait) -> Round:
        """Wait until something happens."""
        now = self.clock.now()
        self.report(now)
        if wait is not AT_ONCE:
            self._backend.queries.look_for_executors()
            self.sleep(max(min(wait.until, wait.look), now + _PULL_EVERY))
        return self.begin()

    def _carry_out(self, step: Step, plan: int) -> bool:
        """Grant a step, cut at one arrival number; return whether there was anything to grant."""
        unit = self._backend.units[step.unit]
        if not unit.asking or unit.held:
            return False
        self.write()
        return self._grant(unit, step.tuples, plan)

    def _grant(self, unit: RunningUnit, most: int, plan: int = 0) -> bool:
        upto = unit.inputs.cut(unit.position, most)
        upto = min(upto, unit.limit)
        if upto <= unit.position:
            return False
        tuples = unit.inputs.count(unit.position, upto)
        self._backend.grant(unit, upto, tuples, plan)
        return True

    def write(self, seam: Mapping[str, Any] | None = None) -> None:
        """Make everything durable that has arrived, and a seam, if the network changes here."""
        positions = {feed.name: feed.tuples for feed in self._feeds}
        ended = [feed.name for feed in self._feeds if feed.ended]
        inputs = describe({feed.name: feed.reader for feed in self._feeds}, self._log.newest.inputs, ended)
        commit = self._arrivals.seal(self.sources.issued, positions, self.sources.reached, inputs, seam)
        if commit is not None and commit.malformed:
            letters = commit_letters(commit)
            self._backend.state.keep_letters(f"log-{commit.sequence:012d}", letters)
            self.outlets.letters.add(letters)
        logged, refused = self._log.positions, self._log.refused
        for feed in self._feeds:
            if isinstance(feed.reader, Resumable):
                feed.reader.acknowledge(logged.get(feed.name, 0), refused.get(feed.name, 0))
        self.sources.confirm()

    # Seams

    def answer(self, ask: Ask) -> None:
        """Answer a question about the run; not before a change that an earlier process began is made."""
        if self._asks is not None:
            self._asks.append(ask)
        else:
            super().answer(ask)

    def hold(self, box: str, active: bool) -> None:
        """Pause all queries that contain a box, or let them go on."""
        check_known("box", [box], self.program.index, RunError)
        self._held = self._held | {box} if active else self._held - {box}
        self._hold_units()
        self.steering.takes(f"{'pause' if active else 'resume'} {box}", self.clock.now())

    def _hold_units(self) -> None:
        self._held &= self.program.index.keys()
        for unit in self._backend.units:
            unit.held = bool(self._held & set(unit.cut.boxes))

    def step(self, box: str, tuples: int) -> int:
        """Let the queries that contain a paused box have some tuples; return how many at most."""
        check_known("box", [box], self.program.index, RunError)
        if box not in self._held:
            raise RunError(f"box '{box}' is not paused: only a paused box takes single steps")
        self.write()
        mine = [unit for unit in self._backend.units if box in unit.cut.boxes and unit.asking]
        return max([unit.granted for unit in mine if self._grant(unit, tuples)], default=0)

    def watch(self, arc: str) -> None:
        """Refuse: what passes an arc is in Spark's processes."""
        raise self._unseen(f"what passes '{arc}'", "attach a fragment, or let an output deliver it")

    def queue_of(self, box: str, tuples: int) -> None:
        """Refuse: what waits at a box is in the log."""
        raise self._unseen(f"what waits at '{box}'", "look at the status")

    def windows_of(self, box: str) -> None:
        """Refuse: the windows of a box are in Spark's state."""
        raise self._unseen(f"the windows of '{box}'", "detach or restart it with flush")

    def _unseen(self, what: str, advice: str) -> RunError:
        return RunError(f"{what} cannot be looked at on the engine 'spark'; {advice}")

    def processed(self, number: int) -> bool:
        """Return whether everything up to an arrival number has been processed and delivered."""
        self.write()
        return self._backend.seams.pending is None and all(
            not unit.busy and (unit.position >= number or not unit.inputs.count(unit.position, number))
            for unit in self._backend.units
        )

    @property
    def histories(self) -> Points:
        """What connection points keep."""
        return self._backend.points

    @property
    def program(self) -> Program:
        """The program that runs."""
        return self._backend.state.program

    def check_alteration(self, checked: CheckedNetwork, changes: Changes) -> None:
        """Raise a HeadwayError if this run cannot change in this way. Called by whoever prepares a change."""
        super().check_alteration(checked, changes)
        self._backend.seams.plan(compile_program(checked), changes)

    @property
    def settled(self) -> bool:
        """Whether the network could be exchanged now: always, as only queries that have ended are exchanged."""
        return True

    @property
    def awaiting(self) -> bool:
        """Whether a seam is under way, or something waits for a box that is paused."""
        held = any(unit.held and unit.position < min(unit.limit, unit.inputs.issued) for unit in self._backend.units)
        return held or self._backend.seams.pending is not None

    @property
    def drained(self) -> bool:
        """Whether all queries that end at the seam have processed everything up to it."""
        return self._backend.seams.drained

    def begin_seam(self, seal: Seal) -> None:
        """Begin a seam, unless the change cannot be made; who asked for it is told."""
        self._alter = alter = seal.alter
        seams = self._backend.seams
        try:
            if self._arrivals.ended:
                raise RunError("the run has ended: all its inputs have, so nothing can be changed")
            change, cut = seams.plan(alter.alteration.program, alter.alteration.changes, alter.alteration.histories)
        except HeadwayError as error:
            for answer in (alter.sealed, alter.done):
                answer.set_exception(error)
            return
        number = self.sources.seam()
        self.write(written(alter.alteration))
        seams.begin(number, alter.alteration, change, cut)
        alter.sealed.set_result(number)

    def exchange(self) -> Renewed:
        """Exchange the network for the one after the seam."""
        if self._backend.seams.pending is None:  # it was refused
            return Renewed(self.steering, self._manner)
        seam = self._backend.seams.exchange()
        self.checked = seam.alteration.new
        self._exchange_feeds(seam.alteration)
        backend, before = self._backend, self.readings
        self.readings = QueryReading(
            backend.state.program, backend.units, backend.arrivals, backend.takings, self.settings
        )
        deliveries = list(self.outlets.deliveries.values())
        self.readings.attach(self.sources, self._feeds, deliveries, before.letters, self.schedule)
        self._hold_units()
        renewed = self.steer_on(self._drop_boxes(), self._manner)
        self._alter.done.set_result(seam.number)
        asks, self._asks = self._asks, None
        for ask in asks or ():
            self.answer(ask)
        return renewed

    def _exchange_feeds(self, alteration: Alteration) -> None:
        """Go on with the feeds of sources that stay, and begin those of new ones."""
        old = {feed.name: feed for feed in self._feeds}
        for name in alteration.changes.sources_removed:
            old.pop(name).reader.close()
        self._feeds = [
            old.get(source.name) or self._backend.feed(source, alteration.readers[source.name])
            for source in self.checked.network.sources
        ]
        self.sources.exchange(self._feeds)

    def _hurry(self) -> None:
        """Grant queries that end at a seam what is left for them, as others wait for it."""
        for unit in self._backend.units:
            waits = unit.until is not None and unit.position < unit.until
            if waits and unit.asking and not unit.held and self.free:
                self._grant(unit, _MOST)

    # Status and results

    @property
    def waiting(self) -> int:
        """The tuples that wait for the unit that is furthest behind."""
        return self.readings.longest

    def time(self) -> Mapping[str, float]:
        """Return the seconds spent so far, by activity."""
        in_boxes = float(self.readings.statistics.readings().busy.sum()) / 1e9
        return {
            "scheduler": self.loop.planning / 1e9,
            "boxes": in_boxes,
            "storage": max(0.0, sum(unit.seconds for unit in self._backend.units) - in_boxes),
            "sources": self.intake / 1e9,
            "sinks": self._backend.takings.spent / 1e9,
        }
