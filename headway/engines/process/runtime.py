"""A network set up to run in this process: kernels, states, queues and cursors, by box number."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from headway.catalog import HALF_LIFE, REMEMBER, Statistics
from headway.checking import CheckedNetwork
from headway.clock import Clock, stopwatch
from headway.columns import NEVER, Indices, Mask
from headway.connectors.protocol import Reader
from headway.engines.dead_letters import DeadLetters
from headway.engines.delivery import Delivery
from headway.engines.ingest import Feed
from headway.engines.process.gates import Gate
from headway.kernels.kernel import Kernel, Result
from headway.network import arc_name
from headway.network.schema import Schema
from headway.program import Program, compile_program
from headway.storage.branches import Branch
from headway.storage.queues import Board, Cursor, Queue
from headway.structure import owner
from headway.trains import Train

Number = TypeVar("Number", np.int64, np.float64)

ALL = 1 << 62
"""Stands for no limit."""
_NOBODY: frozenset[int] = frozenset()


@dataclass(slots=True, eq=False)
class Arc:
    """An arc at run time: its queue, and the outputs that receive its tuples directly."""

    schema: Schema
    queue: Queue
    deliveries: Sequence[Delivery | Gate]
    handed: int = 0
    """Tuples handed to the consumer directly, bypassing the queue."""

    @property
    def tuples(self) -> int:
        """How many tuples the arc has carried."""
        return self.deliveries[0].tuples if self.deliveries else self.queue.appended + self.handed

    def push(self, train: Train) -> None:
        """Deliver a train to outputs and queue it for boxes."""
        for delivery in self.deliveries:
            delivery.deliver(train)
        self.queue.push(train)

    def promise(self, number: int) -> None:
        """Let it be known that nothing more up to an arrival number will come."""
        if number > self.queue.progress:
            self.queue.progress = number


class Heir(NamedTuple):
    """What a runtime takes over from the one before it."""

    runtime: Runtime
    program: Program
    kernels: Mapping[str, Kernel]
    """Of the boxes that begin, or of which other ports are read."""
    going_on: frozenset[str]
    """The boxes that keep kernel, state, queues and statistics."""
    carried: frozenset[str]
    """The boxes that begin with the state that they have."""
    branches: Mapping[tuple[str, int], Branch]
    """By box that begins and input: what it reads of an arc that goes on."""
    gates: Mapping[str, Gate]
    """By output that begins on an arc that goes on: what it gets of it."""


@dataclass(slots=True, eq=False)
class RunningBox:
    """A box at run time. Used by one worker at a time."""

    index: int
    name: str
    kernel: Kernel
    state: Any
    cursors: tuple[Cursor, ...]
    inputs: tuple[str, ...]
    arcs: tuple[Arc | None, ...]
    ordered: bool
    timed: bool
    ignored: int = 0
    deadline: int | None = None
    branches: tuple[Branch | None, ...] | None = None
    """By input: the branch that it reads instead of the whole arc; None: it has none."""

    def note_deadline(self) -> None:
        """Update the time at which the box's next window times out."""
        if self.timed:
            self.deadline = self.kernel.deadline(self.state)


class Runtime:
    """All boxes of a network at run time."""

    def __init__(
        self,
        checked: CheckedNetwork,
        deliveries: Mapping[str, Delivery],
        tables: Mapping[str, Any] | None,
        letters: DeadLetters,
        clock: Clock,
        remember: float = REMEMBER,
        half_life: float = HALF_LIFE,
        heir: Heir | None = None,
    ) -> None:
        """Compile every box and create the queues between them, or continue as the `heir` of another runtime."""
        self.program = program = compile_program(checked) if heir is None else heir.program
        self.index = program.index
        self.topology = program.topology
        self.letters = letters
        self.clock = clock
        self.storage = 0  # nanoseconds spent on queues; boxes' own time is in the statistics
        self.delivering = 0
        self._calls = [0] * len(program.boxes)  # by box: calls with tuples
        # Cursors are numbered by box, so that a box's cursor readings are adjacent.
        self.cursor_box = np.array([box.index for box in program.boxes for _ in box.inputs], np.intp)
        self._first_cursor = np.flatnonzero(np.diff(self.cursor_box, prepend=-1))
        self.board = Board(len(self.cursor_box))
        self.arcs, self.cursors = self._lay_arcs(deliveries) if heir is None else self._take_arcs(deliveries, heir)
        self.boxes: list[RunningBox] = []
        old = {} if heir is None else {box.name: box for box in heir.runtime.boxes}
        kernels = self._kernels(tables, heir, old)
        # One that goes on with another kernel, because more of its ports are read, keeps no state.
        anew = frozenset[str]() if heir is None else heir.going_on & heir.kernels.keys()
        with_state = frozenset[str]() if heir is None else (heir.going_on - anew) | heir.carried
        for box, kernel in zip(program.boxes, kernels, strict=True):
            first = int(self._first_cursor[box.index])
            cursors = tuple(self.cursors[first : first + len(box.inputs)])
            arcs = tuple([None if arc is None else self.arcs[arc] for arc in box.ports])
            ordered, timed = box.spec.ordered, box.spec.timeout is not None
            running = RunningBox(box.index, box.name, kernel, None, cursors, box.inputs, arcs, ordered, timed)
            running.state = old[box.name].state if box.name in with_state else kernel.initial()
            if box.name in with_state or box.name in anew:
                before = old[box.name]
                running.ignored, running.deadline = before.ignored, before.deadline
            if heir is not None:
                branches = [heir.branches.get((box.name, place)) for place in range(len(cursors))]
                if box.name in heir.going_on:
                    branches = list(old[box.name].branches or branches)
                running.branches = tuple(branches) if any(branches) else None
            if (len(cursors) > 1 and not ordered) or not all(self.arcs[one].queue.rising for one in box.inputs):
                for arc in arcs:
                    if arc is not None:
                        arc.queue.rising = False
            self.boxes.append(running)
        self.statistics = Statistics(len(self.boxes), remember, half_life)
        if heir is not None:
            places = {box.name: box.index for box in heir.runtime.boxes if box.name in heir.going_on}
            kept = [(box.index, places[box.name]) for box in self.boxes if box.name in places]
            self.statistics.take_over(heir.runtime.statistics, kept)
            self.storage, self.delivering = heir.runtime.storage, heir.runtime.delivering
        self.paused: set[int] = set()
        """The boxes that take nothing, by command."""
        self.several = [box for box in self.boxes if len(box.cursors) > 1]
        self.busy: Mask = np.zeros(len(self.boxes), np.bool_)
        self._reserving = threading.Lock()

    def _lay_arcs(self, deliveries: Mapping[str, Delivery]) -> tuple[dict[str, Arc], list[Cursor]]:
        """Return all arcs by name, and all cursors by number."""
        checked = self.program.checked
        reading: dict[str, list[int]] = {name: [] for name in checked.arcs}
        inputs = [arc for box in self.program.boxes for arc in box.inputs]
        for number, name in enumerate(inputs):
            reading[name].append(number)
        cursors: dict[int, Cursor] = {}
        arcs = {}
        for name, schema in checked.arcs.items():
            outputs = [deliveries[one.name] for one in checked.consumers[name] if one.kind == "output"]
            queue = Queue(schema, self.board, reading[name])
            cursors.update(zip(reading[name], queue.cursors, strict=True))
            arcs[name] = Arc(schema, queue, outputs)
        return arcs, [cursors[number] for number in range(len(inputs))]

    def _kernels(
        self, tables: Mapping[str, Any] | None, heir: Heir | None, old: Mapping[str, RunningBox]
    ) -> Sequence[Kernel]:
        program = self.program
        if heir is None:
            return program.kernels(program.load_tables(tables))
        return [heir.kernels[box.name] if box.name in heir.kernels else old[box.name].kernel for box in program.boxes]

    def _take_arcs(self, deliveries: Mapping[str, Delivery], heir: Heir) -> tuple[dict[str, Arc], list[Cursor]]:
        """Return all arcs and cursors, those that go on with what is queued."""
        program, before = self.program, heir.runtime
        checked = program.checked
        places = [(box.name, place, arc) for box in program.boxes for place, arc in enumerate(box.inputs)]
        reading: dict[str, list[int]] = {name: [] for name in checked.arcs}
        for number, (_, _, arc) in enumerate(places):
            reading[arc].append(number)
        going_on = {box.name: box.cursors for box in before.boxes if box.name in heir.going_on}
        cursors: dict[int, Cursor] = {}
        arcs = {}
        for name, schema in checked.arcs.items():
            outputs: list[Delivery | Gate] = [
                deliveries[one.name] for one in checked.consumers[name] if one.kind == "output"
            ]
            old = before.arcs.get(name)
            if old is None or not self._goes_on(name, heir):
                queue = Queue(schema, self.board, reading[name])
                cursors.update(zip(reading[name], queue.cursors, strict=True))
                arcs[name] = Arc(schema, queue, outputs)
                continue
            readers: list[tuple[int, Cursor | None]] = []
            for number in reading[name]:
                box, place, _ = places[number]
                branch = heir.branches.get((box, place))
                cursor = going_on[box][place] if box in going_on else None if branch is None else branch.cursor
                if cursor is not None and cursor.apart_from(old.queue):
                    cursor.queue.move(self.board, [(number, cursor)])
                    cursors[number] = cursor
                else:
                    readers.append((number, cursor))
            gates = {**heir.gates}
            gates |= {one.name: one for one in old.deliveries if isinstance(one, Gate) and one.lasts}
            outputs = [gates.get(one.name, one) for one in outputs]
            old.queue.move(self.board, readers)
            cursors.update({cursor.number: cursor for cursor in old.queue.cursors})
            arcs[name] = Arc(schema, old.queue, outputs, old.handed)
        return arcs, [cursors[number] for number in range(len(places))]

    def _goes_on(self, arc: str, heir: Heir) -> bool:
        """Return whether an arc is that of a source, or of a box that goes on."""
        return owner(arc) not in self.index or owner(arc) in heir.going_on

    def feed(self, source: str, reader: Reader) -> Feed:
        """Return the feed that reads a source and pushes its tuples to the source's arc."""
        arc = self.arcs[source]
        return Feed(source, reader, arc.push, arc.promise, Train.empty(arc.schema))

    def connect(self, feed: Feed) -> Feed:
        """Let a feed push to the arc that its source has here; return it."""
        arc = self.arcs[feed.name]
        feed.push, feed.promise = arc.push, arc.promise
        return feed

    def flows(self) -> dict[str, int]:
        """Return the tuple count of each arc that is read or delivered.

        Boxes called as one pass nothing over the arcs between them, so a box with one output is counted by its own
        results.
        """
        made, found = self.statistics.readings().tuples_out, {}
        for name, arc in self.arcs.items():
            if not arc.queue.cursors and not arc.deliveries:
                continue
            at = self.index.get(owner(name))
            if at is not None and len(self.boxes[at].arcs) == 1 and name == arc_name(owner(name), ""):
                found[name] = int(made[at])
            else:
                found[name] = arc.tuples
        return found

    def per_box(self, ufunc: np.ufunc, readings: npt.NDArray[Number]) -> npt.NDArray[Number]:
        """Reduce readings of cursors to readings of boxes; every box has a cursor."""
        if len(self.boxes) == len(readings):
            return readings
        reduced: npt.NDArray[Number] = ufunc.reduceat(readings, self._first_cursor)
        return reduced

    def reserve(self, boxes: Indices) -> bool:
        """Reserve boxes for a step; return False, and reserve none, if one of them is in use. Thread-safe."""
        with self._reserving:
            if self.busy[boxes].any():
                return False
            self.busy[boxes] = True
            return True

    def release(self, boxes: Indices) -> None:
        """Release the boxes of a step that has ended."""
        self.busy[boxes] = False

    def progress(self, arc: str, own: frozenset[int], memo: dict[str, int]) -> int:
        """Return up to which arrival number an arc is certainly complete, even if no box has run to publish it.

        A box with nothing to take, and that only the caller (`own`) may be running, has processed everything that its
        inputs' progress covers. The inputs are read first: what their progress promises was queued before, so a box
        that is idle afterwards has taken it, and one that is not busy after that has pushed its results.
        """
        pending = [arc]  # no recursion: a network may be deeper than Python's stack
        while pending:
            last = pending[-1]
            queue, at = self.arcs[last].queue, self.index.get(owner(last))
            if at is None:
                memo[last] = queue.progress
            elif last not in memo:
                box = self.boxes[at]
                unread = [one for one in box.inputs if one not in memo]
                if unread:
                    pending += unread
                    continue
                possible = min([memo[one] for one in box.inputs] if box.branches is None else _reached(box, memo))
                done = all(cursor.idle for cursor in box.cursors) and (at in own or not self.busy[at])
                memo[last] = max(queue.progress, possible) if done else queue.progress
            pending.pop()
        return memo[arc]

    def is_ready(self, box: RunningBox, memo: dict[str, int]) -> bool:
        """Return whether a box with several inputs has something to take; all boxes of a snapshot share `memo`.

        Usually the progress published on the arcs decides; the boxes upstream are only examined if it does not.
        """
        if not box.ordered:
            return not all(cursor.idle for cursor in box.cursors)
        following = min([cursor.next_number() for cursor in box.cursors])
        if following == NEVER:
            return False
        if box.branches is None and following <= min([self.arcs[one].queue.progress for one in box.inputs]):
            return True
        return following <= self.reached(box, _NOBODY, memo)

    def reached(self, box: RunningBox, own: frozenset[int], memo: dict[str, int]) -> int:
        """Return up to which arrival number all inputs of a box are certainly complete."""
        for one in box.inputs:
            self.progress(one, own, memo)
        return min([memo[one] for one in box.inputs] if box.branches is None else _reached(box, memo))

    def takeable(self, box: RunningBox, own: frozenset[int]) -> int | None:
        """Return the arrival number up to which a box may take, or None if it has nothing to take."""
        if all(cursor.idle for cursor in box.cursors) or box.index in self.paused:
            return None
        if not box.ordered or len(box.cursors) == 1:
            return NEVER
        upto = self.reached(box, own, {})
        return upto if any(cursor.next_number() <= upto for cursor in box.cursors) else None

    def take_next(self, box: RunningBox, limit: int, own: frozenset[int]) -> tuple[Train, ...] | None:
        """Take a box's next trains for a step of the boxes `own`; return None if it has nothing to take."""
        if len(box.cursors) == 1:
            cursor = box.cursors[0]
            return None if cursor.idle or box.index in self.paused else (cursor.take(limit),)
        upto = self.takeable(box, own)
        return None if upto is None else self.take(box, limit, upto)

    def take(self, box: RunningBox, limit: int, upto: int) -> tuple[Train, ...]:
        """Take a box's next trains; with several inputs all up to the same arrival number, `limit` tuples in total.

        If order does not matter, that number is chosen among available tuples, otherwise up to it no tuple is missing.
        """
        if len(box.cursors) == 1:
            return (box.cursors[0].take(limit),)
        if not box.ordered:
            return self._take_as_they_come(box, limit)
        if limit < ALL:
            # One more than the limit shows whether there is more.
            numbers = np.concatenate([cursor.numbers(limit + 1, upto) for cursor in box.cursors if not cursor.idle])
            if len(numbers) > limit:
                upto = int(np.partition(numbers, limit - 1)[limit - 1])
        return tuple(cursor.take(ALL, upto, upto) for cursor in box.cursors)

    def _take_as_they_come(self, box: RunningBox, limit: int) -> tuple[Train, ...]:
        """Take `limit` tuples in total, those with the smallest arrival numbers among the tuples that can be reached.

        A queue filled by another unordered box is itself unordered. A tuple in it can only be taken together with those
        before it, so it counts with the largest number up to its place.
        """
        if limit >= ALL:
            return tuple(cursor.take(ALL) for cursor in box.cursors)
        some = [at for at, cursor in enumerate(box.cursors) if not cursor.idle]
        # One more than the limit shows whether there is more.
        reached = [np.maximum.accumulate(box.cursors[at].numbers(limit + 1, NEVER)) for at in some]
        numbers = np.concatenate(reached)
        if len(numbers) <= limit:
            return tuple(cursor.take(ALL) for cursor in box.cursors)
        first = np.argsort(numbers, kind="stable")[:limit]
        whose = np.repeat(some, [len(one) for one in reached])[first]
        counts = np.bincount(whose, minlength=len(box.cursors)).tolist()
        return tuple(cursor.take(count) for cursor, count in zip(box.cursors, counts, strict=True))

    def run(self, box: RunningBox, trains: Sequence[Train], spent: int | None = None) -> Result:
        """Call a single box on its own state; see `call`."""
        box.state, result = self.call((box.index,), box.kernel, box.state, trains, spent)
        if box.timed:
            box.note_deadline()
        return result

    def call(
        self, boxes: tuple[int, ...], kernel: Kernel, state: Any, trains: Sequence[Train], spent: int | None = None
    ) -> tuple[Any, Result]:
        """Run a kernel over trains, for one box or several fused ones, and record its cost.

        The cost is measured unless the caller gives it as `spent` (ns).
        """
        begun = stopwatch()
        state, result = kernel.run(state, trains, self.clock.now())
        measured = spent is None
        spent = stopwatch() - begun if spent is None else spent
        if result.rest is None:
            self._note(boxes, trains, result.counts, sum([len(one.numbers) for one in result.outputs]), spent)
        else:
            result = result._replace(rest=self._noting(boxes, trains, result, spent, measured))
        self._take_note(boxes, result)
        return state, result

    def _noting(
        self, boxes: tuple[int, ...], trains: Sequence[Train], first: Result, spent: int, measured: bool
    ) -> Iterator[Result]:
        """Yield the remaining pieces of a call, and record the cost of all pieces at the end."""
        assert first.rest is not None
        made, counts = sum([len(one.numbers) for one in first.outputs]), [first.counts]
        while True:
            begun = stopwatch()
            result = next(first.rest, None)
            spent += stopwatch() - begun if measured else 0
            if result is None:
                break
            made += sum([len(one.numbers) for one in result.outputs])
            counts.append(result.counts)
            self._take_note(boxes, result)
            yield result
        self._note(boxes, trains, tuple([sum(some) for some in zip(*counts, strict=False)]), made, spent)

    def _take_note(self, boxes: tuple[int, ...], result: Result) -> None:
        if result.ignored:
            self.boxes[boxes[0]].ignored += result.ignored
        if result.dead:
            self.letters.bury(result.dead)

    def _note(
        self, boxes: tuple[int, ...], trains: Sequence[Train], counts: Sequence[int], tuples_out: int, spent: int
    ) -> None:
        """Report the cost of a call to the statistics."""
        tuples_in = len(trains[0].numbers) if len(trains) == 1 else sum([len(train) for train in trains])
        # Sizes are read in one of sixteen calls of a box, including its first, and for long trains, where reading them
        # costs comparatively nothing.
        size = -1
        if tuples_in:
            calls = self._calls
            if tuples_in >= 1024 or calls[boxes[0]] & 15 == 0:
                size = sum([train.nbytes for train in trains])
            calls[boxes[0]] += 1
        if len(boxes) == 1:
            self.statistics.report(boxes[0], tuples_in, tuples_out, spent, size)
        else:
            # A fused kernel's time is divided in proportion to the tuples that each of its boxes examined.
            weight = max(1, sum(counts))
            after = (*counts[1:], tuples_out)
            of = max(1, tuples_in)
            sizes = [-1] * len(boxes) if size < 0 else [size * n // of for n in counts]
            shares = [spent * n // weight for n in counts]
            self.statistics.report_all(list(zip(boxes, counts, after, shares, sizes, strict=True)))


def _reached(box: RunningBox, memo: Mapping[str, int]) -> list[int]:
    """Return by input of a box that reads branches up to which arrival number it is complete."""
    branches = box.branches or ()
    return [
        memo[arc] if branch is None else branch.progress(memo[arc])
        for arc, branch in zip(box.inputs, branches, strict=True)
    ]
