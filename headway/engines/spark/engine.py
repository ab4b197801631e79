"""The Spark engine: arrivals go to the log, the policy grants trains to streaming queries, results come back."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import uuid4

from headway.checking import CheckedNetwork
from headway.clock import SECOND, Clock, WallClock, stopwatch
from headway.columns import quiet
from headway.connectors.input_files import describe
from headway.connectors.protocol import Resumable
from headway.engines.control import Stopping, ending, leave
from headway.engines.ingest import Feed, Ingest
from headway.engines.loop import Loop, Manner, Round, Start, Started, Wait, drive
from headway.engines.opening import open_readers
from headway.engines.runs import RunResult, RunSettings, Status
from headway.engines.spark.driver.cut import choose_front, make_work
from headway.engines.spark.driver.delivery import Collector, SparkOutputs
from headway.engines.spark.driver.drops import QueryDrops, SieveHistory
from headway.engines.spark.driver.gate import Gate
from headway.engines.spark.driver.queries import Batch, Queries, RunningUnit, describe_gone, warm
from headway.engines.spark.driver.reading import Arrivals, QueryReading, commit_letters, read_on, split_tasks
from headway.engines.spark.driver.session import hushed, ship_functions
from headway.engines.spark.driver.state import State, open_directory
from headway.engines.spark.wire.messages import Row, clear
from headway.engines.steering import Steering
from headway.engines.traces import Recorder
from headway.errors import HeadwayError, RunError
from headway.scheduling.policy import Step
from headway.scheduling.snapshot import Snapshot
from headway.totals import Totals
from headway.trains import NOTHING, Train

_STATUS_EVERY = SECOND // 4
_PULL_EVERY = SECOND // 50
"""Least interval between pulls from sources that deliver continually: often enough for any micro-batch."""
_CHUNK = 65_536
_BACKLOG = 2_000_000
"""Tuples that may wait for a unit before sources without rates are held back."""


class SparkEngine:
    """Runs networks on Spark."""

    def run(self, checked: CheckedNetwork, settings: RunSettings) -> RunResult:
        """Run until all inputs have ended and everything is delivered.

        The first Ctrl-C, SIGTERM or SIGHUP ends the inputs: what has arrived is processed and delivered. With a state
        directory the run only stops, and can be continued. A second signal aborts, and so does the first while queries
        start.
        """
        with ending(settings.control) as (stack, stopping), quiet():
            return _Run(checked, settings, stack, stopping).go()


class _StoppedEarlyError(Exception):
    """The run was asked to end before it began."""


class _Run:
    """One run on Spark."""

    def __init__(
        self, checked: CheckedNetwork, settings: RunSettings, stack: contextlib.ExitStack, stopping: Stopping
    ) -> None:
        self._checked = checked
        self._stopping = stopping
        self._settings = settings
        self._stack = stack
        self._clock: Clock = settings.clock or WallClock()
        self._begun = stopwatch()
        self._wake = threading.Event()
        self._failure: BaseException | None = None
        self._next_status = 0
        self._recorder: Recorder | None = None
        network = checked.network
        self._readers = open_readers(checked, settings, stack)
        directory = open_directory(network.sources, self._readers, settings, stack)
        stack.enter_context(hushed())
        self._tell("the session")
        self._queries = Queries(settings.master, settings.spark)
        ship_functions(checked.functions)
        self._state = State(directory, checked, settings, self._queries.parallelism)
        cut, program = self._state.cut, self._state.program
        self._outlets = SparkOutputs(self._state, settings, self._clock, stack, stopping)
        results, self._letters = self._outlets.results, self._outlets.letters
        self._log = self._state.open_log(network, settings.keep)
        self._recovered = self._log.issued > NOTHING
        for commit in self._log.commits:
            self._state.keep_letters(f"log-{commit.sequence:012d}", commit_letters(commit))
        self._letters.add(self._state.letters(self._log.refused))
        self._sifting = SieveHistory(self._state.place)
        self._takings = Collector(self._outlets, self._state, settings.fading, lambda: self._sifting.written)
        self._arrivals = Arrivals(self._log, self._clock)
        self._gate = Gate(self._tasks, self._wake.set)
        stack.callback(self._gate.shut)
        self._queries.attach(self._gate, self._deliver)
        discarded = frozenset(
            arc
            for arc in checked.outputs.values()
            if all(results[name].counted for name, one in checked.outputs.items() if one == arc)
        )
        tables = self._state.write_tables(settings.tables)
        self._units: list[RunningUnit] = []
        for at, unit in enumerate(cut.units):
            name, begin = self._state.ids[unit.name], self._state.begins[unit.name]
            exchange = self._state.exchange(name, self._queries.master)
            work = make_work(program, unit, cut.shards, discarded, tables, uuid4().hex, exchange)
            self._units.append(RunningUnit(at, name, unit, work, self._state.checkpoint(name), begin))

    # The loop

    def go(self) -> RunResult:
        """Run until the end."""
        try:
            self._stopping.begin()
            started = self._start()
            self._start_ingest()
            if started:
                drive(self._loop, self)
                if self._loop.stopped_by is not None and self._settings.state is not None:
                    self._seal()  # what is logged but not processed continues in a later run
            stopped_by = self._stopping.by
        except Exception as error:
            if self._queries.alive(error):
                raise
            raise RunError(describe_gone(self._settings.state)) from error
        finally:
            self._gate.close()
            self._queries.stop()
        kept = self._settings.state is not None and not self._finished()
        tables = self._outlets.complete()
        seconds = self._reading.seconds
        more = {"master": self._queries.master, **self._reading.summary()}
        totals = self._totals(self._clock.now())
        summary = self._steering.summary("spark", totals, seconds, stopped_by, more)
        if kept:
            summary["state"] = {"path": self._settings.state, "can_continue": True}
        trace = None if self._recorder is None else self._recorder.trace()
        return RunResult(tables, summary, self._letters.table(), trace)

    def _start(self) -> bool:
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
        for unit in self._units:
            if not self._settings.may_shed:  # Spark's own operations could not report how much was dropped
                front = choose_front(self._state.program, unit.work, self._state.front)
                unit.work = replace(unit.work, native=None if isinstance(front, str) else front)
            doing = f"query {unit.number + 1} of {len(self._units)}"
            self._tell(doing)
            self._queries.start(unit)
            # Each query starts a Python process, for which Spark allows ten seconds, so they start one by one. A query
            # that was killed first repeats its last micro-batch; that may continue while the next one starts.
            self._await(lambda unit=unit: self._gate.met(unit.number), doing)
        self._await(lambda: all(unit.asking for unit in self._units), "waiting for all queries")

    def _start_ingest(self) -> None:
        positions = self._log.positions
        feeds, places = [], None if self._settings.state is None else self._state.place.name("feeds")
        for source, reader in zip(self._checked.network.sources, self._readers, strict=True):
            reader = read_on(reader, source.name, self._log, places)
            feed = Feed(
                source.name, reader, self._arrivals.feeder(source.name), lambda number: None, Train.empty(source.schema)
            )
            feed.tuples = positions[source.name]
            feeds.append(feed)
        self._feeds = feeds
        issued, half_life = max(self._log.issued, *(unit.position for unit in self._units)), self._settings.half_life
        self.sources = Ingest(feeds, self._clock, _CHUNK, self._arrivals.refuse, issued, half_life)
        self.sources.wake = self._wake
        self._stack.callback(self.sources.stop)
        outlets = [one.delivery for one in self._outlets.results.values()]
        program, settings = self._state.program, self._settings
        self._reading = QueryReading(program, self._units, self._arrivals, self._takings, settings, self._begun)
        # Half of a step's time is not computing, so another unit can use it at little cost. With one worker instead of
        # two on two cores, urgent results waited for long steps of other units (5 s instead of 3 s at worst).
        workers = self._settings.workers or self._queries.parallelism
        self._reading.workers = max(1, min(workers, len(self._units)))
        self._reading.attach(self.sources, feeds, outlets, self._letters, self._settings.schedule)
        if self._settings.trace:
            names = [unit.cut.name for unit in self._units]
            policy, start = self._settings.policy_text, self._clock.now()
            self._recorder = Recorder(self._checked.network.name, names, program.topology.boxes, policy, start=start)
        self._start_steering()
        if self._log.end is not None:
            self.sources.stop()
            return
        if self._recovered:
            self.sources.go_on(self._log.newest.reached, self._log.newest.positions)
        if self._recovered and any(box.spec.timeout is not None for box in self._checked.order):
            self.sources.tick()  # windows may have timed out between the processes

    def _start_steering(self) -> None:
        for unit in self._units:
            self._sifting.clear(unit.id, unit.position)  # drops before a crash were for the load at that time
        drops = QueryDrops(self._reading, self._sifting, self._queries.parallelism)
        self._takings.sifted = drops.count
        policy, now = self._settings.make_policy(), self._clock.now()
        self._steering = Steering(self._settings, policy, self._reading, drops, now, self._recorder)
        manner = Manner(ends_at_once=True, keeps=self._settings.state is not None)
        schedule, ended = self._settings.schedule, self._log.end is not None
        self._loop = Loop(self, policy, schedule, self._steering, self._recorder, manner, ended=ended)

    def _warm_up(self) -> None:
        """Run every query once without tuples, so that the first tuples do not wait for classes to load."""
        if self._recovered or self._queries.application in warm:
            return
        self._log.append({}, 0, self._clock.now(), positions=self._log.positions)
        for unit in self._units:
            self._grant(unit, 0, 0)
        self._await(lambda: all(unit.asking for unit in self._units), "the first micro-batch of each query")
        warm.add(self._queries.application)

    # What the loop reads

    full = False
    """Never: `admit` holds back only sources without rates; the log has room for the others."""
    ready = False

    @property
    def free(self) -> int:
        """How many grants can be given now."""
        return max(0, self._reading.workers - sum(unit.busy for unit in self._units))

    @property
    def busy(self) -> bool:
        """Whether a micro-batch is under way."""
        return any(unit.busy for unit in self._units)

    @property
    def deadline(self) -> int | None:
        """The moment at which the next window times out."""
        return self._takings.deadline

    def snapshot(self, admits: bool, seen: bool) -> Snapshot:
        """Return the current snapshot."""
        # While memory is full, sources that wait to be asked are held back, so policies must not wait for their tuples.
        held = self._reading.queued > self._settings.memory and not self.sources.pressing
        more = not self.sources.ended and not held
        snapshot = self._reading.snapshot(more, self._loop.planning_seconds)
        if self._recorder is not None:
            self._recorder.queued(snapshot.now, int(snapshot.waiting.sum()), snapshot.memory)
        return snapshot

    # Instructions of the loop

    def begin(self) -> Round:
        """Begin a round: check which units have committed."""
        before = sum(unit.busy for unit in self._units)
        self._listen()
        self._reading.peak_queued = max(self._reading.peak_queued, self._reading.queued)
        ended = before - sum(unit.busy for unit in self._units)
        return Round(self._clock.now(), ended, self._stopping.commands())

    def close(self) -> None:
        """Stop reading from sources."""
        self.sources.stop()

    def tick(self) -> None:
        """Let a clock tick arrive for windows that have timed out."""
        self._takings.forget_deadlines()
        self.sources.tick()

    def end(self) -> None:
        """Let the end of all inputs arrive."""
        self.sources.end()

    def admit(self, held: bool) -> None:
        """Let tuples arrive, and seal them in the log if it is time."""
        begun = stopwatch()
        self._pull()
        if self._arrivals.due:
            self._seal()
        self._reading.sources_spent += stopwatch() - begun

    def start(self, start: Start) -> Started:
        """Grant the steps of a plan."""
        return Started(sum([self._carry_out(step, start.plan) for step in start.steps[: self.free]]))

    def wait(self, wait: Wait) -> Round:
        """Wait until something happens."""
        now = self._clock.now()
        if now >= self._next_status:
            if self._settings.on_status is not None:
                self._settings.on_status(self._reading.status(self._totals(now)))
            self._next_status = now + _STATUS_EVERY
        if not self._hungry():
            self._sleep(wait.until)
        return self.begin()

    def _totals(self, now: int) -> Totals:
        return self._steering.totals(now, self._reading.spent(self._loop.planning, self._loop.plans))

    def _pull(self) -> None:
        """Let tuples arrive; from sources without rates as many as a long train takes, but only for a short time."""
        patience = stopwatch() + _PULL_EVERY
        while self.sources.pull(self._hungry()) and self.sources.more_in_turn:
            # Units that ask meanwhile are not noticed yet: a slow source would keep them waiting until its end.
            asking = any(unit.asking for unit in self._units) or self._gate.waiting()
            if stopwatch() > patience and (asking or self._arrivals.due):
                return

    def _carry_out(self, step: Step, plan: int) -> bool:
        """Grant a step, cut at one arrival number; return whether there was anything to grant."""
        unit = self._units[step.unit]
        if not unit.asking:
            return False
        self._seal()
        upto = self._log.cut(unit.cut.sources, unit.position, step.tuples)
        if upto <= unit.position:
            return False
        tuples = self._log.count(unit.cut.sources, unit.position, upto)
        self._grant(unit, upto, tuples, plan)
        return True

    def _grant(self, unit: RunningUnit, upto: int, tuples: int, plan: int = 0) -> None:
        unit.asking = False
        self._sifting.write(self._settings.state is not None)
        unit.expected = tuples * self._sifting.share(unit.id, unit.position)
        if self._gate.grant(unit.number, upto):
            unit.position, unit.granted, unit.started = upto, tuples, stopwatch()
            unit.dropped = unit.worked = 0
            unit.granted_at, unit.plan = self._clock.now(), plan

    def _listen(self) -> None:
        """Note which units have committed and ask for more; raise failures."""
        if self._failure is not None:
            raise self._failure
        for number, committed in self._gate.waiting().items():
            unit = self._units[number]
            if unit.asking:
                continue
            unit.asking = True
            clear(unit.work.exchange)
            if not unit.replayed and unit.started:
                seconds = (stopwatch() - unit.started) / 1e9
                unit.cost.learn(Batch(seconds, unit.worked / 1e9, unit.granted - unit.dropped))
                unit.seconds += seconds
                if self._recorder is not None and unit.plan:
                    now = self._clock.now()
                    self._recorder.step(number, number, unit.granted_at, now, unit.granted, plan=unit.plan)
            unit.replayed, unit.slow_since = False, None
            unit.losses = 0 if committed > unit.committed else unit.losses
            unit.committed = committed
            unit.position = committed  # also if a grant was lost on its way
        if self._units:
            self._log.drop(min(unit.committed for unit in self._units), self._clock.now())
        self._queries.look()

    def _finished(self) -> bool:
        end = self._log.end
        return end is not None and all(unit.asking and unit.committed >= end for unit in self._units)

    def _tell(self, doing: str) -> None:
        """Report what is being started, before tuples can arrive."""
        if self._settings.on_status is not None:
            seconds = (stopwatch() - self._begun) / SECOND
            self._settings.on_status(Status(seconds, 0, 0, 0, 0, 0, False, starting=doing))

    def _await(self, condition: Any, doing: str) -> None:
        while True:
            self._tell(doing)
            self._listen()
            if condition():
                return
            if self._stopping.by is not None:
                raise _StoppedEarlyError
            self._queries.look_for_executors()
            self._wake.wait(0.25)
            self._wake.clear()

    def _sleep(self, until: int | None) -> None:
        """Sleep until something can happen: a query asks, a tuple is due, a window times out, live tuples arrive."""
        now, shown = self._clock.now(), self._settings.on_status is not None
        moments = [until, self._next_status if shown else None]
        if self._settings.may_shed:
            moments.append(self._steering.next)
        if not self.sources.ended:
            due = self.sources.next_due()
            moments += [None if due is None else max(due, now + _PULL_EVERY), self._takings.deadline]
        self._queries.look_for_executors()
        pause = min((one for one in moments if one is not None), default=now + SECOND // 2) - now
        if pause <= 0:
            return
        if isinstance(self._clock, WallClock) or any(unit.busy for unit in self._units):
            self._wake.wait(min(pause, SECOND // 2) / SECOND)
        else:
            self._clock.sleep(pause)
        self._wake.clear()

    def _seal(self) -> None:
        positions = {feed.name: feed.tuples for feed in self._feeds}
        ended = [feed.name for feed in self._feeds if feed.ended]
        inputs = describe({feed.name: feed.reader for feed in self._feeds}, self._log.newest.inputs, ended)
        commit = self._arrivals.seal(self.sources.issued, positions, self.sources.reached, inputs)
        if commit is not None and commit.malformed:
            letters = commit_letters(commit)
            self._state.keep_letters(f"log-{commit.sequence:012d}", letters)
            self._letters.add(letters)
        logged, refused = self._log.positions, self._log.refused
        for feed in self._feeds:
            if isinstance(feed.reader, Resumable):
                feed.reader.acknowledge(logged.get(feed.name, 0), refused.get(feed.name, 0))

    def _hungry(self) -> bool:
        """Whether sources without rates should be read."""
        if not self.sources.more_in_turn or self._reading.queued > self._settings.memory:
            return False
        return self._reading.longest < _BACKLOG

    # Requests and results of queries

    def _tasks(self, unit: int, after: int, upto: int) -> list[Any]:
        """Return the tasks of a micro-batch. Called from the gate's threads."""
        one = self._units[unit]
        sources = one.cut.sources
        states = self._state.before(one, after, upto, self._log.issued)
        one.covering = after, upto
        ticks, end = self._log.marks(after, upto)
        marks = [upto, ticks, end is not None, self._sifting.kept(one.id), states]
        sieves = self._sifting.at(one.id, after)
        return split_tasks(self._log, sources, after, upto, self._queries.parallelism, marks, sieves)

    def _deliver(self, unit: RunningUnit, rows: Sequence[Row], trains: Mapping[int, Train], batch: int) -> None:
        """Handle the results of a micro-batch. Called from Spark's callback thread."""
        try:
            self._takings.take(unit, rows, trains, batch)
        except BaseException as error:
            plain = RunError(f"'{unit.cut.name}' failed: {type(error).__name__}: {error}")
            self._failure = self._failure or (error if isinstance(error, HeadwayError) else plain)
            self._wake.set()
            raise
