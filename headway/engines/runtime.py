"""A network made ready to run in this process: kernels, states, queues and cursors, by box number."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from headway.catalog import HALF_LIFE, REMEMBER, Statistics
from headway.checking import CheckedNetwork
from headway.clock import Clock, stopwatch
from headway.columns import Indices, Mask
from headway.connectors.protocol import Reader
from headway.engines.delivery import Delivery
from headway.engines.ingest import Feed
from headway.engines.letters import DeadLetters
from headway.engines.topology import topology_of
from headway.kernels.base import Kernel, Result
from headway.kernels.chain import ChainKernel
from headway.kernels.compile import compile_kernel, compile_link
from headway.network import Table, arc_name
from headway.schema import Schema
from headway.storage.queues import FAR, Board, Cursor, Queue
from headway.structure import owner
from headway.tables import load_table
from headway.trains import Train

Number = TypeVar("Number", np.int64, np.float64)

ALL = 1 << 62
"""A limit that is none."""


class Arc:
    """An arc at run time: its queue, and the outputs that it is delivered to at once."""

    __slots__ = ("deliveries", "handed", "queue", "schema")

    def __init__(self, schema: Schema, queue: Queue, deliveries: Sequence[Delivery]) -> None:
        """Bring together who consumes an arc."""
        self.schema = schema
        self.queue = queue
        self.deliveries = tuple(deliveries)
        self.handed = 0
        """Tuples that went to the consumer directly, not through the queue."""

    def push(self, train: Train) -> None:
        """Deliver a train to outputs and queue it for boxes."""
        for delivery in self.deliveries:
            delivery.deliver(train)
        self.queue.push(train)


class RunningBox:
    """A box at run time. Used by one worker at a time."""

    __slots__ = (
        "arcs",
        "cursors",
        "deadline",
        "fusible",
        "ignored",
        "index",
        "inputs",
        "is_filter",
        "kernel",
        "name",
        "ordered",
        "state",
        "timed",
    )

    def __init__(
        self, index: int, name: str, kernel: Kernel, cursors: Sequence[Cursor], arcs: Sequence[Arc | None]
    ) -> None:
        """Start with the kernel's initial state."""
        self.index = index
        self.name = name
        self.kernel = kernel
        self.state: Any = kernel.initial()
        self.cursors = tuple(cursors)
        self.inputs: tuple[str, ...] = ()
        self.arcs = tuple(arcs)
        self.ordered = True
        self.fusible = False
        self.is_filter = False
        self.ignored = 0
        self.timed = False
        self.deadline: int | None = None


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
    ) -> None:
        """Compile every box and lay the queues between them."""
        network = checked.network
        self.letters = letters
        self.clock = clock
        self.index = {box.name: at for at, box in enumerate(checked.order)}
        self.storage = 0  # nanoseconds in queues; boxes' own time is in the statistics
        self.delivering = 0
        self._calls = [0] * len(checked.order)  # by box, those with tuples
        cursor_count = sum(1 for items in checked.inputs.values() for item in items if not isinstance(item, Table))
        self.board = Board(cursor_count)
        self.cursor_box = np.zeros(cursor_count, np.intp)
        cursor_of = self._lay_arcs(checked, deliveries)
        self.boxes: list[RunningBox] = []
        for at, box in enumerate(checked.order):
            schemas = checked.input_schemas(box.name)
            items = checked.inputs[box.name]
            contents = [
                load_table(item.ref, tables, network.folder, network.trust) if isinstance(item, Table) else None
                for item in items
            ]
            ports = [self.arcs.get(arc_name(box.name, port)) for port in box.spec.ports]
            used = [arc if arc is not None and (arc.queue.cursors or arc.deliveries) else None for arc in ports]
            only_first = not any(used[1:])
            fusible = box.spec.fusable and only_first
            kernel: Kernel
            if fusible:
                kernel = ChainKernel((compile_link(box.spec, box.name, schemas[0], checked.functions),))
                used = used[:1]
            else:
                kernel = compile_kernel(box.spec, box.name, schemas, contents, checked.functions)
            cursors = [cursor_of[box.name, place] for place, item in enumerate(items) if not isinstance(item, Table)]
            running = RunningBox(at, box.name, kernel, cursors, used)
            running.inputs = tuple(item for item in items if isinstance(item, str))
            running.ordered = box.spec.ordered
            running.fusible = fusible
            running.is_filter = fusible and box.spec.passes
            running.timed = box.spec.timeout is not None
            for cursor in cursors:
                self.cursor_box[cursor.number] = at
            as_they_come = not running.ordered and len(cursors) > 1
            if as_they_come or not all(self.arcs[one].queue.rising for one in running.inputs):
                for arc in used:
                    if arc is not None:
                        arc.queue.rising = False
            self.boxes.append(running)
        self._first_cursor = np.flatnonzero(np.diff(self.cursor_box, prepend=-1))
        self.topology = topology_of(checked)
        self.statistics = Statistics(len(self.boxes), remember, half_life)
        self.several = [box for box in self.boxes if len(box.cursors) > 1]
        self.busy: Mask = np.zeros(len(self.boxes), np.bool_)
        self._reserving = threading.Lock()

    def _lay_arcs(self, checked: CheckedNetwork, deliveries: Mapping[str, Delivery]) -> dict[tuple[str, int], Cursor]:
        cursor_of: dict[tuple[str, int], Cursor] = {}
        self.arcs: dict[str, Arc] = {}
        # Numbered by box, so that the readings of a box's cursors lie side by side.
        slots = [
            (box.name, place)
            for box in checked.order
            for place, item in enumerate(checked.inputs[box.name])
            if not isinstance(item, Table)
        ]
        numbers = {slot: at for at, slot in enumerate(slots)}
        for name, schema in checked.arcs.items():
            boxes = [(one.name, one.input) for one in checked.consumers[name] if one.kind == "box"]
            outputs = [deliveries[one.name] for one in checked.consumers[name] if one.kind == "output"]
            queue = Queue(schema, self.board, [numbers[slot] for slot in boxes])
            cursor_of.update(zip(boxes, queue.cursors, strict=True))
            self.arcs[name] = Arc(schema, queue, outputs)
        return cursor_of

    def feed(self, source: str, reader: Reader) -> Feed:
        """Return a source as it is read, whose tuples go to its arc."""
        arc = self.arcs[source]

        def promise(number: int) -> None:
            if number > arc.queue.progress:
                arc.queue.progress = number

        return Feed(source, reader, arc.push, promise, Train.empty(arc.schema))

    def per_box(self, ufunc: np.ufunc, readings: npt.NDArray[Number]) -> npt.NDArray[Number]:
        """Reduce readings of cursors to readings of boxes; every box has a cursor."""
        if len(self.boxes) == len(readings):
            return readings
        reduced: npt.NDArray[Number] = ufunc.reduceat(readings, self._first_cursor)
        return reduced

    def cursors(self) -> list[Cursor]:
        """Return all cursors, by number."""
        return sorted([cursor for box in self.boxes for cursor in box.cursors], key=lambda cursor: cursor.number)

    def fuse(self, boxes: Sequence[int], wanted: frozenset[int] | None = None) -> ChainKernel:
        """Return one kernel for neighbouring filters and maps; `wanted` are the columns of its output to be read."""
        kernels = [self.boxes[at].kernel for at in boxes]
        return ChainKernel(tuple(link for one in kernels if isinstance(one, ChainKernel) for link in one.links), wanted)

    def reserve(self, boxes: Indices) -> bool:
        """Reserve boxes for a step, or none of them because one is at work. Any thread may ask."""
        with self._reserving:
            if self.busy[boxes].any():
                return False
            self.busy[boxes] = True
            return True

    def release(self, boxes: Indices) -> None:
        """Say that a step of these boxes has ended."""
        self.busy[boxes] = False

    def only_consumer(self, at: int) -> int | None:
        """Return the box that alone consumes a box's first output, and no output does; None otherwise."""
        box = self.boxes[at]
        arc = box.arcs[0]
        if arc is None or arc.deliveries or len(arc.queue.cursors) != 1 or any(box.arcs[1:]):
            return None
        return int(self.cursor_box[arc.queue.cursors[0].number])

    def progress(self, arc: str, own: frozenset[int], memo: dict[str, int]) -> int:
        """Return how far an arc is certain to be complete, also where nobody had to run for it.

        A box that has nothing to take, and that nobody but the caller (`own`) runs, has processed all that its
        inputs' progress covers. The inputs are read first: what they promise was queued before, so a box that
        is idle afterwards has taken it, and one that is not busy after that has pushed its results.
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
                possible = min([memo[one] for one in box.inputs])
                done = all(cursor.idle for cursor in box.cursors) and (at in own or not self.busy[at])
                memo[last] = max(queue.progress, possible) if done else queue.progress
            pending.pop()
        return memo[arc]

    def is_ready(self, box: RunningBox, memo: dict[str, int]) -> bool:
        """Return whether a box with several inputs has something to take; `memo` is shared by all boxes of a snapshot.

        What the arcs have published mostly decides; only otherwise is the network above the box looked at.
        """
        if not box.ordered:
            return not all(cursor.idle for cursor in box.cursors)
        following = min([cursor.next_number() for cursor in box.cursors])
        if following == FAR:
            return False
        if following <= min([self.arcs[one].queue.progress for one in box.inputs]):
            return True
        return following <= min([self.progress(one, frozenset(), memo) for one in box.inputs])

    def takeable(self, box: RunningBox, own: frozenset[int]) -> int | None:
        """Return up to which arrival number a box with several inputs may take, or None if it has nothing to take."""
        if all(cursor.idle for cursor in box.cursors):
            return None
        if not box.ordered:
            return FAR
        memo: dict[str, int] = {}
        upto = min(self.progress(one, own, memo) for one in box.inputs)
        return upto if any(cursor.next_number() <= upto for cursor in box.cursors) else None

    def take(self, box: RunningBox, limit: int, upto: int | None) -> tuple[Train, ...]:
        """Take a box's next trains; with several inputs all up to one arrival number, `limit` tuples together.

        Where order does not count that is a number among those that are there, else one up to which none is missing.
        """
        if len(box.cursors) == 1:
            return (box.cursors[0].take(limit),)
        assert upto is not None
        if not box.ordered:
            return self._take_as_they_come(box, limit)
        if limit < ALL:
            # One more than may be taken tells whether there is more.
            numbers = np.concatenate([cursor.numbers(limit + 1, upto) for cursor in box.cursors if not cursor.idle])
            if len(numbers) > limit:
                upto = int(np.partition(numbers, limit - 1)[limit - 1])
        return tuple(cursor.take(ALL, upto, upto) for cursor in box.cursors)

    def _take_as_they_come(self, box: RunningBox, limit: int) -> tuple[Train, ...]:
        """Take so many tuples together, those with the smallest numbers among what can be reached.

        A queue that another box without order fills holds numbers that go down, too. A tuple in it can only be taken
        with those before it, and so it counts with the largest number up to there.
        """
        if limit >= ALL:
            return tuple(cursor.take(ALL) for cursor in box.cursors)
        some = [at for at, cursor in enumerate(box.cursors) if not cursor.idle]
        # One more than may be taken tells whether there is more.
        reached = [np.maximum.accumulate(box.cursors[at].numbers(limit + 1, FAR)) for at in some]
        numbers = np.concatenate(reached)
        if len(numbers) <= limit:
            return tuple(cursor.take(ALL) for cursor in box.cursors)
        first = np.argsort(numbers, kind="stable")[:limit]
        whose = np.repeat(some, [len(one) for one in reached])[first]
        counts = np.bincount(whose, minlength=len(box.cursors)).tolist()
        return tuple(cursor.take(count) for cursor, count in zip(box.cursors, counts, strict=True))

    def call(
        self, boxes: tuple[int, ...], kernel: Kernel, state: Any, trains: Sequence[Train], spent: int | None = None
    ) -> tuple[Any, Result]:
        """Run a kernel over trains, for one box or for several that are fused, and note what it cost.

        That is measured, unless the caller says what was `spent`.
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
        """Yield the further pieces of a call, and note at the end what all of them cost together."""
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
        """Report what a call cost."""
        tuples_in = len(trains[0].numbers) if len(trains) == 1 else sum([len(train) for train in trains])
        # Sizes are read for one call of a box in sixteen, from its first, or for long trains, where they cost nothing
        # in comparison.
        size = -1
        if tuples_in:
            calls = self._calls
            if tuples_in >= 1024 or calls[boxes[0]] & 15 == 0:
                size = sum([train.nbytes for train in trains])
            calls[boxes[0]] += 1
        if len(boxes) == 1:
            self.statistics.report(boxes[0], tuples_in, tuples_out, spent, size)
        else:
            # A fused kernel's time is shared out by the tuples that each of its boxes had to look at.
            weight = max(1, sum(counts))
            after = (*counts[1:], tuples_out)
            of = max(1, tuples_in)
            sizes = [-1] * len(boxes) if size < 0 else [size * n // of for n in counts]
            shares = [spent * n // weight for n in counts]
            self.statistics.report_all(list(zip(boxes, counts, after, shares, sizes, strict=True)))
