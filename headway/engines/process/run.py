"""Runs in this process, in real or virtual time: sources, queues, boxes, outputs and readings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, NoReturn

import pyarrow as pa

from headway.clock import SECOND, stopwatch
from headway.columns import NEVER
from headway.connectors.protocol import Reader
from headway.engines.alteration import Alteration
from headway.engines.carrier import Given, Run
from headway.engines.control import Alter
from headway.engines.instructions import Renewed, Seal
from headway.engines.opening import Outlet, Outlets, open_readers
from headway.engines.process.gates import Gate
from headway.engines.process.histories import SOON, Histories
from headway.engines.process.looking import Watch, hold, queue_of, set_apart, step, watch, windows_of
from headway.engines.process.reading import RuntimeReading
from headway.engines.process.runtime import Arc, Heir, RunningBox, Runtime
from headway.engines.process.seams import Seam
from headway.engines.runs import RunResult
from headway.errors import HeadwayError, RunError, raised
from headway.program import Program
from headway.storage.branches import Branch

_MOST_READ = 65_536
_LEAST_READ = 1024
STRETCH = SECOND // 4
"""Intended duration (ns) of a part of a step that is cut."""
LONG = 2 * STRETCH
"""Longest step (ns) that is not cut."""
WHOLE = 1 << 22
"""The part length of a step that is not cut: more tuples than any step has."""
_GROW = 8
"""How many times longer than the previous part a part may be."""
_DEARER = 1.2
"""Highest acceptable ratio of the cost per tuple in shorter parts to that in longer ones."""


def fail(name: str, error: BaseException) -> NoReturn:
    """Raise a run's error for a box or unit that failed: our own errors unchanged, others with its name."""
    if isinstance(error, HeadwayError | KeyboardInterrupt):
        raise error
    raise RunError(f"'{name}' failed: {raised(error)}") from error


class Process(Run):
    """One run in this process, as far as it does not depend on the carrier."""

    engine = "local"
    virtual: ClassVar[bool] = False
    """Whether time is virtual."""
    readings: RuntimeReading
    _alter: Alter

    def __init__(self, given: Given) -> None:
        checked, settings, clock, stack, stopping = given
        self.started, self.train = clock.now(), settings.schedule.most
        readers = open_readers(checked, settings, stack)
        outlets = Outlets(checked, settings, stack, stopping, lambda to: Outlet(to, clock, settings.half_life), clock)
        letters = outlets.letters
        self.runtime = Runtime(checked, outlets.deliveries, settings.tables, letters, clock, *settings.fading)
        self.units = settings.schedule.units(self.runtime.topology)
        self.traversal = settings.schedule.make_traversal(self.runtime.topology)
        self.feeds = [
            self.runtime.feed(source.name, self.wrap(given, source.name, reader))
            for source, reader in zip(checked.network.sources, readers, strict=True)
        ]
        self._histories = Histories(settings.history)
        stack.callback(self._histories.close)
        self._histories.follow(checked, self.runtime)
        issued = self._histories.issued
        for feed in self.feeds:
            feed.promise(issued)
        chunk = min(max(16 * self.train, _LEAST_READ), _MOST_READ)
        readings = RuntimeReading(checked, self.runtime, self.units)
        full = (lambda: True) if self.virtual else self.filled  # in virtual time, a pull reads once
        super().__init__(
            given, readings, outlets, self.feeds, letters.refuse, chunk=chunk, enough=chunk, full=full, issued=issued
        )
        self._timed = [box for box in self.runtime.boxes if box.timed]
        self._seam: Seam | None = None
        self._branches: list[tuple[RunningBox, int, Branch]] = []
        self._gated: list[Arc] = []
        """The arcs with outputs that get only a part of them."""
        self.keep_behind()

    def wrap(self, given: Given, source: str, reader: Reader) -> Reader:
        """Return a source's reader as this carrier needs it."""
        return reader

    @property
    def queued(self) -> int:
        """The bytes in queues."""
        return self.runtime.board.bytes + (0 if self._seam is None else self._seam.bytes)

    @property
    def deadline(self) -> int | None:
        """The moment at which the next window times out."""
        if not self._timed:
            return None
        return min([box.deadline for box in self._timed if box.deadline is not None], default=None)

    def tick(self) -> None:
        """Let a clock tick arrive for windows that have timed out."""
        now = self.clock.now()
        for box in self._timed:
            if box.deadline is not None and box.deadline <= now:
                box.deadline = None  # until the tick has reached the box
        super().tick()

    def admit(self, asks: bool) -> None:
        """Let tuples arrive."""
        begun = stopwatch()
        self.catch_up()
        if self.sources.pull(asks):
            self.entered()
        self.intake += stopwatch() - begun

    def close(self) -> None:
        """Stop reading from sources. Boxes that are paused go on, or the run would never end."""
        super().close()
        for at in sorted(self.runtime.paused):
            hold(self.runtime, self.runtime.boxes[at].name, False)

    # Commands

    @property
    def awaiting(self) -> bool:
        """Whether there is more to do that no step can be started for now: a box is paused, or history is read."""
        return self._histories.catching or any(
            not cursor.idle for at in self.runtime.paused for cursor in self.runtime.boxes[at].cursors
        )

    @property
    def histories(self) -> Histories:
        """What connection points keep."""
        return self._histories

    @property
    def program(self) -> Program:
        """The program that runs."""
        return self.runtime.program

    def hold(self, box: str, active: bool) -> None:
        """Pause a box, or let it go on."""
        hold(self.runtime, box, active)
        self.steering.takes(f"{'pause' if active else 'resume'} {box}", self.clock.now())

    def step(self, box: str, tuples: int) -> int:
        """Let a paused box take some tuples; return how many it took."""
        return step(self.runtime, box, tuples)

    def watch(self, arc: str) -> Watch:
        """Return the watch on an arc."""
        return watch(self.runtime, arc)

    def queue_of(self, box: str, tuples: int) -> Mapping[str, pa.Table]:
        """Return by input of a box the next tuples that wait there."""
        return queue_of(self.runtime, box, tuples)

    def processed(self, number: int) -> bool:
        """Return whether everything up to an arrival number has been processed and delivered."""
        runtime, memo = self.runtime, dict[str, int]()
        arcs = self.checked.outputs.values()
        return self._seam is None and all(runtime.progress(arc, frozenset(), memo) >= number for arc in arcs)

    def windows_of(self, box: str) -> pa.Table:
        """Return the open windows of a box."""
        return windows_of(self.runtime, box)

    # Seams

    def begin_seam(self, seal: Seal) -> Renewed | None:
        """Begin a seam."""
        alter, opening, renewed = seal.alter, seal.alter.alteration.opening, None
        if opening is not None:
            every = frozenset(self.runtime.index)
            renewed = self._go_on(Heir(self.runtime, opening.program, opening.kernels, every, frozenset(), {}, {}))
        self._seam = Seam(self.runtime, alter.alteration, self.sources.seam())
        self.steering.takes(f"{alter.alteration.what} at {self._seam.number}", self.clock.now())
        self._alter = alter
        seam, now = self._seam, self.clock.now()
        self._histories.catch_up(alter.alteration, seam.branches, seam.number, now, self._progress)
        alter.sealed.set_result(seam.number)
        return renewed

    def _progress(self, arc: str) -> int:
        return self.runtime.progress(arc, frozenset(), {})

    @property
    def drained(self) -> bool:
        """Whether all boxes that end at the seam have processed everything up to it."""
        return self._seam is None or self._seam.drained

    def exchange(self) -> Renewed:
        """Exchange the network for the one after the seam."""
        seam = self._seam
        assert seam is not None
        seam.flush()
        alteration = seam.alteration
        self.checked = alteration.new
        self.outlets.exchange(alteration.new, alteration.destinations)
        self.settings = replace(self.settings, tables=alteration.tables)
        renewed = self._go_on(seam.heir(), alteration)
        self._histories.follow(self.checked, self.runtime, alteration.changes.points_restarted, seam.number)
        for name, gate in seam.gates.items():
            gate.connect(self.outlets.deliveries[name])
        arcs = self.runtime.arcs.values()
        self._gated = [arc for arc in arcs if any(isinstance(one, Gate) for one in arc.deliveries)]
        self._alter.done.set_result(seam.number)
        return renewed

    def _go_on(self, heir: Heir, alteration: Alteration | None = None) -> Renewed:
        """Go on with another runtime: that after an alteration, or for the same network."""
        settings, letters, deliveries = self.settings, self.outlets.letters, self.outlets.deliveries
        paused = [self.runtime.boxes[at].name for at in self.runtime.paused]
        self.runtime = Runtime(
            self.checked, deliveries, settings.tables, letters, self.clock, *settings.fading, heir=heir
        )
        self.units = settings.schedule.units(self.runtime.topology)
        self.traversal = settings.schedule.make_traversal(self.runtime.topology)
        if alteration is None:
            self.feeds = [self.runtime.connect(feed) for feed in self.feeds]
        else:
            self._exchange_feeds(alteration)
        self.readings = RuntimeReading(self.checked, self.runtime, self.units)
        self.readings.attach(self.sources, self.feeds, list(deliveries.values()), letters, self.schedule)
        self._timed = [box for box in self.runtime.boxes if box.timed]
        self._seam = None
        self._branches = [
            (box, place, branch)
            for box in self.runtime.boxes
            for place, branch in enumerate(box.branches or ())
            if branch is not None
        ]
        self.keep_behind()
        self.runtime.paused |= {self.runtime.index[name] for name in paused if name in self.runtime.index}
        set_apart(self.runtime)
        return self.exchanged()

    def catch_up(self) -> None:
        """Let boxes that begin with history have more of it, and go over to what is live."""
        if self._histories.catching:
            self._histories.feed(self.virtual)
        if self._branches:
            self._fold()
        if self._gated and self._seam is None:
            self._open_gates()

    def _fold(self) -> None:
        """Let boxes read from the arcs' own queues where branches are no different any more."""
        rest = []
        for box, place, branch in self._branches:
            if branch.upto == NEVER and not self.runtime.busy[box.index] and branch.fold():
                assert box.branches is not None
                branches = [None if at == place else one for at, one in enumerate(box.branches)]
                box.branches = tuple(branches) if any(branches) else None
            else:
                rest.append((box, place, branch))
        if len(rest) < len(self._branches):
            self._branches = rest
            set_apart(self.runtime)
            self.keep_behind()

    def _open_gates(self) -> None:
        """Let outputs deliver without gates where all that comes now is theirs."""
        for arc in self._gated:
            arc.deliveries = [
                one.inner if isinstance(one, Gate) and one.superfluous(arc.queue.progress) else one
                for one in arc.deliveries
            ]
        self._gated = [arc for arc in self._gated if any(isinstance(one, Gate) for one in arc.deliveries)]

    def keep_behind(self) -> None:
        """Keep in the background what nobody waits for: views without a reader, and queries that catch up."""
        topology, outputs = self.runtime.topology, self.checked.network.outputs
        unread = {at for at, one in enumerate(outputs) if one.view and not self.outlets.deliveries[one.name].heard}
        late = {box.index for box, _, branch in self._branches if branch.past}
        if late:
            reached = {topology.boxes[at] for at in topology.downstream(late, range(len(topology.boxes)))}
            unread |= {at for at, root in enumerate(topology.roots) if root >= 0 and topology.boxes[root] in reached}
        self.readings.keep_behind(frozenset(unread))

    def sleep(self, until: int) -> None:
        """Sleep until a moment, or until something happens."""
        super().sleep(min(until, self.clock.now() + SOON) if self._histories.catching else until)

    def _exchange_feeds(self, alteration: Alteration) -> None:
        """Go on with the feeds of sources that stay, and begin those of new ones."""
        old = {feed.name: feed for feed in self.feeds}
        for name in (*alteration.changes.sources_removed, *alteration.changes.sources_changed):
            old.pop(name).reader.close()
        for reader in alteration.readers.values():
            self.stack.callback(reader.close)
        self.feeds = [
            self.runtime.connect(old[source.name])
            if source.name in old
            else self.runtime.feed(source.name, alteration.readers[source.name])
            for source in self.checked.network.sources
        ]
        self.sources.exchange(self.feeds)

    def exchanged(self) -> Renewed:
        """Prepare this carrier for the network after a seam."""
        raise NotImplementedError

    @property
    def waiting(self) -> int:
        """The tuples in all queues."""
        board = self.runtime.board
        return int((board.arrived - board.taken).sum())

    def result(self, stopped_by: str | None, of_engine: Mapping[str, Any]) -> RunResult:
        """Complete the outputs and return the run's result; views are among them."""
        result = super().result(stopped_by, {**of_engine, **self._histories.summary()})
        views = [one.name for one in self.checked.network.outputs if one.view]
        return replace(result, outputs={**result.outputs, **self._histories.tables(views)}) if views else result

    def flows(self) -> Mapping[str, int]:
        """Return the tuples by arc so far."""
        return self.runtime.flows()

    def time(self) -> Mapping[str, float]:
        """Return the seconds spent so far, by activity."""
        runtime = self.runtime
        return {
            "scheduler": self.loop.planning / 1e9,
            "boxes": float(runtime.statistics.readings().busy.sum()) / 1e9,
            "storage": runtime.storage / 1e9,
            "sources": self.intake / 1e9,
            "sinks": runtime.delivering / 1e9,
        }


class Parts:
    """Lengths of the parts of long steps, by unit, for runs that may shed load: between parts, the loop may look.

    A step that is no longer than the allowed gap between looks is never cut: while nothing is dropped, a run should be
    the same as without shedding. Durations are measured, not predicted: the cost of first calls says little. A step
    that took longer is cut the next time into parts of length `STRETCH`, unless this makes tuples more expensive: work
    that is mostly overhead per call must not be cut, or the cutting itself would cause the overload.
    """

    def __init__(self) -> None:
        self._lengths: dict[int, int] = {}
        self._least: dict[int, int] = {}
        self._longer: dict[int, tuple[int, float]] = {}  # steps that were cut: their tuples, and nanoseconds per tuple

    def length(self, unit: int) -> int:
        """Return how many tuples the next part may have."""
        return self._lengths.get(unit, WHOLE)

    def note(self, unit: int, tuples: int, nanoseconds: int) -> None:
        """Record the duration and the tuples of a part or a whole step."""
        if tuples <= 0:
            return
        length, each = self.length(unit), nanoseconds / tuples
        fitting = max(1, self._least.get(unit, 1), round(STRETCH / max(each, 1e-9)))
        if tuples < length // 2 and nanoseconds <= LONG:
            return  # it was short only for lack of tuples
        longer, less = self._longer.pop(unit, (0, 0.0))
        if longer and each > _DEARER * less:
            self._least[unit] = self._lengths[unit] = longer
        elif nanoseconds > LONG and fitting < tuples:
            self._lengths[unit] = fitting
            self._longer[unit] = tuples, each
        elif nanoseconds < STRETCH // 2 and length < WHOLE:
            self._lengths[unit] = min(fitting, _GROW * length, WHOLE)
