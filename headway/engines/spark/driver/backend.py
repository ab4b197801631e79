"""Spark's side of a run: its log, its streaming queries, and what they ask and bring."""

from __future__ import annotations

import itertools
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any
from uuid import uuid4

from headway.clock import stopwatch
from headway.columns import NEVER
from headway.connectors.protocol import Reader
from headway.engines.alteration import Alteration
from headway.engines.carrier import Given
from headway.engines.ingest import Feed
from headway.engines.opening import Destination, Outlets, open_readers
from headway.engines.runs import Status
from headway.engines.signals import leave
from headway.engines.spark.driver.cut import choose_front, make_work
from headway.engines.spark.driver.delivery import Collector, OutputResults
from headway.engines.spark.driver.drops import SieveHistory
from headway.engines.spark.driver.gate import Gate
from headway.engines.spark.driver.points import Past, Points
from headway.engines.spark.driver.queries import Batch, Queries, RunningUnit, warm
from headway.engines.spark.driver.reading import Arrivals, commit_letters, read_on, split_tasks
from headway.engines.spark.driver.relays import Inputs, Part, Relays, alias, program_of
from headway.engines.spark.driver.seams import Seams
from headway.engines.spark.driver.session import hushed, ship_functions
from headway.engines.spark.driver.state import State, UnitFiles, open_directory
from headway.engines.spark.wire.messages import CutUnit, Row, Work, clear
from headway.errors import HeadwayError, RunError
from headway.network import Source
from headway.program import Program
from headway.storage.log import Log
from headway.storage.segments import quote_name
from headway.trains import NOTHING, Train


class _StoppedEarlyError(Exception):
    """The run was asked to end before it began."""


class Backend:
    """The log, the streaming queries and the results of a run. Used by the scheduler thread."""

    def __init__(self, given: Given) -> None:
        """Open everything; `start` starts the queries."""
        checked, settings, clock, stack, stopping = given
        self._checked, self.settings, self._clock, self._stopping = checked, settings, clock, stopping
        self.begun = stopwatch()
        self.wake = threading.Event()
        """Set when a query asks for a grant, or fails."""
        self.failure: BaseException | None = None
        """Why the run cannot go on."""
        network = checked.network
        self._readers = open_readers(checked, settings, stack)
        directory = open_directory(network.sources, self._readers, settings, stack)
        stack.enter_context(hushed())
        self._tell("the session")
        self.gate = Gate(self._tasks, self.wake.set)
        stack.callback(self.gate.shut)
        self.queries = Queries(settings.master, settings.spark, self.gate, self._deliver)
        ship_functions(checked.functions)
        self.state = state = State(directory, checked, settings, self.queries.parallelism)
        program, place = state.program, None if settings.state is None else state.place

        self._running = False

        def deliver_to(to: Destination) -> OutputResults:
            name = to.output.name
            mine, ever = ((), None) if self._running else (state.results(name), state.results(name, ever=True))
            heard = settings.control is not None  # a run with a handle may be subscribed to
            return OutputResults(to, clock, settings.half_life, place, mine, ever, not self._running, heard)

        self.outlets = Outlets(checked, settings, stack, stopping, deliver_to, clock)
        self.log = state.open_log(network, settings.keep)
        self.recovered = self.log.issued > NOTHING
        """Whether an earlier process has begun this run."""
        for commit in self.log.commits:
            state.keep_letters(f"log-{commit.sequence:012d}", commit_letters(commit))
        self.outlets.letters.add(state.letters(self.log.refused))
        self.sifting = SieveHistory(state.place)
        self.takings = Collector(self.outlets, state, settings.fading, lambda: self.sifting.written)
        self.arrivals = Arrivals(self.log, clock)
        self.tables = state.write_tables(settings.tables)
        """By ref: the file of a static table, within the place."""
        self.relays = Relays(state.place.name("relays"), settings.state is not None)
        self.relays.follow(program, state.relays)
        kept_in = settings.history or (None if settings.state is None else state.place.name("history"))
        self.points = Points(kept_in, self._log_of, self.queries.tasks)
        stack.callback(self.points.close)
        self.points.follow(checked)
        self.points.recover(checked)
        self._keys = itertools.count()
        self.by_key: dict[int, RunningUnit] = {}
        """By the number that the gate knows: the units."""
        self.units = [
            self.make_unit(at, program, unit, files)
            for at, (unit, files) in enumerate(zip(state.cut.units, state.files, strict=True))
        ]
        self.seams = Seams(self)
        self.takings.export = self._export
        self.arrivals.kept = self.points.keep
        for unit, files in zip(self.units, state.files, strict=True):
            if files.past is not None:
                self.fill(unit, files.past)
        self._running = True

    def make_unit(self, number: int, program: Program, unit: CutUnit, files: UnitFiles) -> RunningUnit:
        """Return a unit whose query has not been started."""
        key, own = next(self._keys), program_of(unit, program)
        work, inputs = self.make_work(own, unit, files), self.inputs_of(unit, files, own)
        place = self.state.checkpoint(files.id)
        made = RunningUnit(number, key, files.id, own, unit, work, inputs, place, files.begin)
        if files.past is not None and files.past.ends:
            made.ends, made.flush = files.past.seam, unit.boxes
        self.by_key[key] = made
        return made

    def inputs_of(self, unit: CutUnit, files: UnitFiles, program: Program) -> Inputs:
        """Return what a unit reads."""
        past = files.past
        named = {alias(arc): self.relays[arc] for arc in unit.relays}
        logs = {name: named.get(name, self.log) for name in unit.sources}
        if past is None:
            return Inputs(self.log, unit.sources, {name: (Part(log),) for name, log in logs.items() if name in named})
        parts: dict[str, tuple[Part, ...]] = {}
        for name, log in logs.items():
            live: tuple[Part, ...] = (Part(log, past.seam, past.seam if past.ends else NEVER),)
            arc = next((arc for arc in past.points if name in (arc, alias(arc))), None)
            if arc is not None:
                folder = f"{past.folder}-{quote_name(name)}"
                live = (Part(self.relays.open_past(folder, {name: program.checked.arcs[name]}), -1, past.seam), *live)
            parts[name] = live
        return Inputs(self.log, unit.sources, parts, past.seam)

    def fill(self, unit: RunningUnit, past: Past) -> None:
        """Fill the logs of the history with which a unit begins."""
        for arc in past.points:
            name = arc if arc in unit.inputs.named else alias(arc)
            log = unit.inputs.named[name][0].log
            if log.issued < past.seam:
                self.points.fill(past, arc, log, name, self._clock.now())

    def make_work(self, program: Program, unit: CutUnit, files: UnitFiles) -> Work:
        """Return the work of a unit, as sent to executors."""
        results = self.outlets.outlets
        outputs = {name: program.checked.outputs[name] for name in unit.outputs}
        counted = {name for name in outputs if results[name].counted}
        discarded = frozenset(outputs.values()) - {arc for name, arc in outputs.items() if name not in counted}
        exchange = self.state.exchange_folder(files.id, self.queries.master)
        shards, tables = self.state.cut.shards, {ref: self.state.place.name(one) for ref, one in self.tables.items()}
        work = make_work(program, unit, shards, discarded, tables, uuid4().hex, exchange, files.keys)
        if self.settings.may_shed:  # Spark's own operations could not report how much was dropped
            return work
        front = choose_front(program, work, self.state.front)
        return replace(work, native=None if isinstance(front, str) else front)

    def read_tables(self, seam: int, alteration: Alteration) -> None:
        """Read static tables that the network did not have before a seam, or that are to be read again."""
        known = {ref: file for ref, file in self.tables.items() if ref not in alteration.changes.refreshed}
        given = {**(self.settings.tables or {}), **alteration.tables}
        self.tables = self.state.write_tables(given, alteration.program, known, f"{seam}-")

    def forget(self, unit: RunningUnit) -> None:
        """Forget a unit that has ended."""
        del self.by_key[unit.key]
        self.takings.forget_unit(unit.id)

    def rekey(self, unit: RunningUnit) -> None:
        """Let the gate know a unit by another number, so that its old query is not taken for the new one."""
        self.gate.leave(unit.key)
        del self.by_key[unit.key]
        unit.key = next(self._keys)
        self.by_key[unit.key] = unit

    # Starting and stopping

    def start(self) -> bool:
        """Start all queries. Return False if `control` ends the run before all are ready; a signal raises."""
        try:
            self._start_queries()
            if any(reader.timed or reader.live for reader in self._readers):
                self._warm_up()
        except _StoppedEarlyError:
            if self._stopping.by != "control":
                leave(signal.Signals[self._stopping.by or "SIGINT"], None)
            return False
        return True

    def _start_queries(self) -> None:
        for unit in self.units:
            doing = f"query {unit.number + 1} of {len(self.units)}"
            self._tell(doing)
            self.queries.start(unit)
            # Each query starts a Python process, for which Spark allows ten seconds, so they start one by one. A query
            # that was killed first repeats its last micro-batch; that may continue while the next one starts.
            self._await(partial(self.gate.met, unit.key), doing)
        self._await(lambda: all(unit.asking for unit in self.units), "waiting for all queries")

    def _warm_up(self) -> None:
        """Run every query once without tuples, so that the first tuples do not wait for classes to load."""
        if self.recovered or self.queries.application in warm:
            return
        self.log.append({}, 0, self._clock.now(), positions=self.log.positions)
        for unit in self.units:
            self.grant(unit, 0, 0)
        self._await(lambda: all(unit.asking for unit in self.units), "the first micro-batch of each query")
        warm.add(self.queries.application)

    def _tell(self, doing: str) -> None:
        """Report what is being started, before tuples can arrive."""
        if self.settings.on_status is not None:
            seconds = (stopwatch() - self.begun) / 1e9
            self.settings.on_status(Status(seconds, 0, 0, 0, 0, 0, False, starting=doing))

    def _await(self, condition: Callable[[], bool], doing: str) -> None:
        while True:
            self._tell(doing)
            self.listen()
            if condition():
                return
            if self._stopping.by is not None:
                raise _StoppedEarlyError
            self.queries.look_for_executors()
            self.wake.wait(0.25)
            self.wake.clear()

    def stop(self) -> None:
        """Stop all queries."""
        self.queries.tasks.close()
        self.seams.stop()
        self.gate.close()
        self.queries.stop()

    @property
    def finished(self) -> bool:
        """Whether all queries have processed everything up to the end of the inputs."""
        end = self.log.end
        return end is not None and all(unit.asking and (unit.over or unit.committed >= end) for unit in self.units)

    def feeds(self) -> list[Feed]:
        """Return the sources, to be read from where the log ends."""
        positions, feeds = self.log.positions, []
        places = None if self.settings.state is None else self.state.place.name("feeds")
        for source, reader in zip(self._checked.network.sources, self._readers, strict=True):
            behind = read_on(reader, source.name, self.log, places)
            feeds.append(self.feed(source, behind))
            feeds[-1].tuples = positions[source.name]
        return feeds

    def feed(self, source: Source, reader: Reader) -> Feed:
        """Return a source that pushes its tuples towards the log."""
        push = self.arrivals.feeder(source.name)
        return Feed(source.name, reader, push, lambda number: None, Train.empty(source.schema))

    # Granting, and what queries ask and bring

    @property
    def called(self) -> bool:
        """Whether any query waits for a grant, or has called without having been noticed yet."""
        return any(unit.asking for unit in self.units) or bool(self.gate.waiting())

    def grant(self, unit: RunningUnit, upto: int, tuples: int, plan: int = 0) -> None:
        """Let a unit process its tuples up to an arrival number."""
        unit.asking = False
        self.sifting.write(self.settings.state is not None)
        unit.expected = tuples * self.sifting.share(unit.id, unit.position)
        if self.gate.grant(unit.key, upto):
            unit.position, unit.granted, unit.started = upto, tuples, stopwatch()
            unit.dropped = unit.worked = 0
            unit.granted_at, unit.plan = self._clock.now(), plan

    def listen(self) -> list[RunningUnit]:
        """Note which units have committed and ask for more, and return them; raise failures.

        A unit's `plan` is that of the step that it has ended, or 0.
        """
        if self.failure is not None:
            raise self.failure
        heard = []
        for number, committed in self.gate.waiting().items():
            unit = self.by_key.get(number)
            if unit is None or unit.asking:
                continue
            unit.asking, unit.starting = True, False
            clear(unit.work.exchange)
            if unit.replayed or not unit.started:
                unit.plan = 0
            else:
                seconds = (stopwatch() - unit.started) / 1e9
                unit.cost.learn(Batch(seconds, unit.worked / 1e9, unit.granted - unit.dropped))
                unit.seconds += seconds
            unit.replayed, unit.slow_since = False, None
            unit.losses = 0 if committed > unit.committed else unit.losses
            unit.committed = committed
            unit.position = committed  # also if a grant was lost on its way
            if unit.over:
                for name in unit.cut.outputs:
                    self.outlets.outlets[name].delivery.end("")
            heard.append(unit)
        if self.units:
            reached = min(NEVER if unit.over else max(unit.committed, unit.inputs.since) for unit in self.units)
            now = self._clock.now()
            owed = min((self.points.owed(arc) for arc in self.points.arcs if arc not in self.relays), default=NEVER)
            self.log.drop(min(reached, self.seams.needed, owed), now)
            self.relays.drop(self._needed_of_relays(), now)
        self.queries.look()
        return heard

    def _needed_of_relays(self) -> dict[str, int]:
        """Return by arc up to which arrival number all readers of its relay have come; some may begin at a seam."""
        reached = {arc: min(self.points.owed(arc), self.seams.needed) for arc in self.relays.names}
        for unit in self.units:
            for arc in () if unit.over else unit.cut.relays:
                reached[arc] = min(unit.committed, reached.get(arc, unit.committed))
        return reached

    def _tasks(self, unit: int, after: int, upto: int) -> list[Any]:
        """Return the tasks of a micro-batch. Called from the gate's threads."""
        one = self.by_key[unit]
        states = self.state.before(one, after, upto, self.log.issued)
        one.covering = after, upto
        ticks, end = one.inputs.marks(after, upto)
        flush = one.flush if upto in (one.until, one.ends) else ()
        marks = [upto, ticks, end is not None, self.sifting.kept(one.id), states, flush]
        sieves = self.sifting.at(one.id, after)
        return split_tasks(one.inputs, after, upto, self.queries.parallelism, marks, sieves)

    def _export(self, arc: str, train: Train | None, upto: int) -> None:
        """Deliver what a micro-batch has made on an arc to its relay. Called from Spark's callback threads."""
        self.relays.append(arc, train, upto, self._clock.now())
        if train is not None:
            self.points.keep(arc, train)

    def _log_of(self, arc: str) -> tuple[Log, str]:
        """Return the log that holds what has passed the arc of a point, and its name there."""
        return (self.relays[arc], alias(arc)) if arc in self.relays else (self.log, arc)

    def _deliver(self, unit: RunningUnit, rows: Sequence[Row], trains: Mapping[int, Train], batch: int) -> None:
        """Handle the results of a micro-batch. Called from Spark's callback thread."""
        try:
            self.takings.take(unit, rows, trains, batch)
        except BaseException as error:
            plain = RunError(f"'{unit.cut.name}' failed: {type(error).__name__}: {error}")
            self.failure = self.failure or (error if isinstance(error, HeadwayError) else plain)
            self.wake.set()
            raise
