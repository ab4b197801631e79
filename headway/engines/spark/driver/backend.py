"""Spark's side of a run: its log, its streaming queries, and what they ask and bring."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any
from uuid import uuid4

from headway.clock import stopwatch
from headway.engines.carrier import Given
from headway.engines.ingest import Feed
from headway.engines.opening import Destination, Outlets, open_readers
from headway.engines.runs import Status
from headway.engines.signals import leave
from headway.engines.spark.driver.cut import choose_front, make_work
from headway.engines.spark.driver.delivery import Collector, OutputResults
from headway.engines.spark.driver.drops import SieveHistory
from headway.engines.spark.driver.gate import Gate
from headway.engines.spark.driver.queries import Batch, Queries, RunningUnit, warm
from headway.engines.spark.driver.reading import Arrivals, commit_letters, read_on, split_tasks
from headway.engines.spark.driver.session import hushed, ship_functions
from headway.engines.spark.driver.state import State, open_directory
from headway.engines.spark.wire.messages import Row, clear
from headway.errors import HeadwayError, RunError
from headway.trains import NOTHING, Train


class _StoppedEarlyError(Exception):
    """The run was asked to end before it began."""


class Backend:
    """The log, the streaming queries and the results of a run. Used by the scheduler thread."""

    def __init__(self, given: Given) -> None:
        """Open everything; `start` starts the queries."""
        checked, settings, clock, stack, stopping = given
        self._checked, self._settings, self._clock, self._stopping = checked, settings, clock, stopping
        self.begun = stopwatch()
        self.wake = threading.Event()
        """Set when a query asks for a grant, or fails."""
        self._failure: BaseException | None = None
        network = checked.network
        self._readers = open_readers(checked, settings, stack)
        directory = open_directory(network.sources, self._readers, settings, stack)
        stack.enter_context(hushed())
        self._tell("the session")
        self._gate = Gate(self._tasks, self.wake.set)
        stack.callback(self._gate.shut)
        self.queries = Queries(settings.master, settings.spark, self._gate, self._deliver)
        ship_functions(checked.functions)
        self.state = state = State(directory, checked, settings, self.queries.parallelism)
        cut, program, place = state.cut, state.program, None if settings.state is None else state.place

        def deliver_to(to: Destination) -> OutputResults:
            return OutputResults(to, clock, settings.half_life, place, state.results(to.output.name))

        self.outlets = Outlets(checked, settings, stack, stopping, deliver_to, clock)
        results = self.outlets.outlets
        self.log = state.open_log(network, settings.keep)
        self.recovered = self.log.issued > NOTHING
        """Whether an earlier process has begun this run."""
        for commit in self.log.commits:
            state.keep_letters(f"log-{commit.sequence:012d}", commit_letters(commit))
        self.outlets.letters.add(state.letters(self.log.refused))
        self.sifting = SieveHistory(state.place)
        self.takings = Collector(self.outlets, state, settings.fading, lambda: self.sifting.written)
        self.arrivals = Arrivals(self.log, clock)
        discarded = frozenset(
            arc
            for arc in checked.outputs.values()
            if all(results[name].counted for name, one in checked.outputs.items() if one == arc)
        )
        tables = state.write_tables(settings.tables)
        self.units: list[RunningUnit] = []
        for at, unit in enumerate(cut.units):
            name, begin = state.ids[unit.name], state.begins[unit.name]
            exchange = state.exchange(name, self.queries.master)
            work = make_work(program, unit, cut.shards, discarded, tables, uuid4().hex, exchange)
            self.units.append(RunningUnit(at, name, unit, work, state.checkpoint(name), begin))

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
            if not self._settings.may_shed:  # Spark's own operations could not report how much was dropped
                front = choose_front(self.state.program, unit.work, self.state.front)
                unit.work = replace(unit.work, native=None if isinstance(front, str) else front)
            doing = f"query {unit.number + 1} of {len(self.units)}"
            self._tell(doing)
            self.queries.start(unit)
            # Each query starts a Python process, for which Spark allows ten seconds, so they start one by one. A query
            # that was killed first repeats its last micro-batch; that may continue while the next one starts.
            self._await(partial(self._gate.met, unit.number), doing)
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
        if self._settings.on_status is not None:
            seconds = (stopwatch() - self.begun) / 1e9
            self._settings.on_status(Status(seconds, 0, 0, 0, 0, 0, False, starting=doing))

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
        self._gate.close()
        self.queries.stop()

    @property
    def finished(self) -> bool:
        """Whether all queries have processed everything up to the end of the inputs."""
        end = self.log.end
        return end is not None and all(unit.asking and unit.committed >= end for unit in self.units)

    def feeds(self) -> list[Feed]:
        """Return the sources, to be read from where the log ends."""
        positions, feeds = self.log.positions, []
        places = None if self._settings.state is None else self.state.place.name("feeds")
        for source, reader in zip(self._checked.network.sources, self._readers, strict=True):
            behind = read_on(reader, source.name, self.log, places)
            push = self.arrivals.feeder(source.name)
            feed = Feed(source.name, behind, push, lambda number: None, Train.empty(source.schema))
            feed.tuples = positions[source.name]
            feeds.append(feed)
        return feeds

    # Granting, and what queries ask and bring

    @property
    def called(self) -> bool:
        """Whether any query waits for a grant, or has called without having been noticed yet."""
        return any(unit.asking for unit in self.units) or bool(self._gate.waiting())

    def grant(self, unit: RunningUnit, upto: int, tuples: int, plan: int = 0) -> None:
        """Let a unit process its tuples up to an arrival number."""
        unit.asking = False
        self.sifting.write(self._settings.state is not None)
        unit.expected = tuples * self.sifting.share(unit.id, unit.position)
        if self._gate.grant(unit.number, upto):
            unit.position, unit.granted, unit.started = upto, tuples, stopwatch()
            unit.dropped = unit.worked = 0
            unit.granted_at, unit.plan = self._clock.now(), plan

    def listen(self) -> list[RunningUnit]:
        """Note which units have committed and ask for more, and return them; raise failures.

        A unit's `plan` is that of the step that it has ended, or 0.
        """
        if self._failure is not None:
            raise self._failure
        heard = []
        for number, committed in self._gate.waiting().items():
            unit = self.units[number]
            if unit.asking:
                continue
            unit.asking = True
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
            heard.append(unit)
        if self.units:
            self.log.drop(min(unit.committed for unit in self.units), self._clock.now())
        self.queries.look()
        return heard

    def _tasks(self, unit: int, after: int, upto: int) -> list[Any]:
        """Return the tasks of a micro-batch. Called from the gate's threads."""
        one = self.units[unit]
        sources = one.cut.sources
        states = self.state.before(one, after, upto, self.log.issued)
        one.covering = after, upto
        ticks, end = self.log.marks(after, upto)
        marks = [upto, ticks, end is not None, self.sifting.kept(one.id), states]
        sieves = self.sifting.at(one.id, after)
        return split_tasks(self.log, sources, after, upto, self.queries.parallelism, marks, sieves)

    def _deliver(self, unit: RunningUnit, rows: Sequence[Row], trains: Mapping[int, Train], batch: int) -> None:
        """Handle the results of a micro-batch. Called from Spark's callback thread."""
        try:
            self.takings.take(unit, rows, trains, batch)
        except BaseException as error:
            plain = RunError(f"'{unit.cut.name}' failed: {type(error).__name__}: {error}")
            self._failure = self._failure or (error if isinstance(error, HeadwayError) else plain)
            self.wake.set()
            raise
