"""The reading of a network that runs in this process, updated as tuples come and go.

Small networks are read as a whole, with a few array operations. In large ones only what has changed since the last look
is read, so that a snapshot of 100,000 boxes costs little more than one of a thousand.

Whether a box with several inputs is ready depends on the boxes upstream. Once ready, it stays so until it takes
something, because what was found out about its inputs is published on their arcs. Until then, some box upstream has to
act first: while that box has not changed, nothing needs to be checked.
"""

from __future__ import annotations

import math

import numpy as np

from headway.catalog import BoxReadings
from headway.checking import CheckedNetwork
from headway.clock import SECOND
from headway.columns import NEVER, Floats, Int64s, Mask, frozen
from headway.costs import UnitCosts
from headway.engines.process.runtime import RunningBox, Runtime
from headway.engines.reading import Reading
from headway.errors import RunError
from headway.scheduling.snapshot import Moment, QueueReadings, Snapshot, Unit
from headway.storage.ages import Ages
from headway.structure import owner

_FEW = 1024
"""Most cursors for which the whole network is read: up to that, array operations are faster than selective reads."""
_MANY = 16
"""All cursors are read if more than one in `_MANY` has changed."""
_FRESH = SECOND // 50
"""How long box statistics count as fresh (ns): costs change slowly, and updating them takes time."""
_FIRST = 4
"""Mean calls per box before statistics may be cached: early measurements matter."""
_PATIENCE = SECOND
"""How long (ns) units in the background wait at most for a plan in which they compete with the others."""
_SHARE = 16
"""In a large network before that, statistics are read again when known calls may have grown by 1/_SHARE."""


class RuntimeReading(Reading):
    """Reads a runtime; changes nothing except publishing the progress of arcs. Used by the scheduler thread."""

    def __init__(self, checked: CheckedNetwork, runtime: Runtime, units: tuple[Unit, ...]) -> None:
        super().__init__(checked, runtime.topology, units, runtime.statistics)
        self.runtime = runtime
        self.members = self.layout.members
        self._large = len(runtime.cursor_box) > _FEW
        self._units_of: list[list[int]] = [[] for _ in runtime.boxes] if self._large else []
        if self._large:
            for at, unit in enumerate(units):
                for box in unit.boxes:
                    self._units_of[box].append(at)
        self._given = False  # whether a snapshot holds the arrays below, which are read-only then
        self._changed: set[int] | None = None  # units changed since the policy was asked; None: possibly all
        self._read = False  # whether the arrays below hold anything yet
        # Boxes with several inputs that have tuples but cannot take them, by the upstream box that blocks them; and
        # those that are checked every time, because that box is running or unknown.
        self._held_up: dict[int, set[int]] = {}
        self._holder: dict[int, int] = {}
        self._stuck: set[int] = set()
        self._ages: Ages | None = None  # made when a policy first asks
        self._boxes: BoxReadings | None = None
        self._boxes_at = 0
        self._asked = 0
        self._known = 0
        self._unit_costs: UnitCosts | None = None
        self._costs_of: BoxReadings | None = None
        self._background: Mask | None = None
        self._shown = 0  # the moment of the next plan in which units in the background compete with the others
        count = len(units)
        self._idle = frozen(np.zeros(count, np.bool_)), frozen(np.zeros(count)), frozen(np.zeros(count, np.int64))

    def refresh(self, told: bool = False) -> None:
        """Read what has changed; with `told`, the policy was asked, so collecting the changed units starts over."""
        self.looks += 1
        if told and self._large:
            self._changed = set()
        if self._large:
            units = self._read_moved()
            self._changed = None if units is None or self._changed is None else self._changed | units
        else:
            self._read_all()

    @property
    def longest(self) -> int:
        """The current number of tuples waiting for the consumer that is furthest behind."""
        board = self.runtime.board
        return int((board.arrived - board.taken).max(initial=0))

    def check_drained(self) -> None:
        """Raise a RunError if any tuples are left at the end of a run."""
        self.refresh()
        if self.box_waiting.any():
            names = [self.runtime.boxes[at].name for at in self.box_waiting.nonzero()[0]]
            raise RunError(f"the run ended with tuples left at: {', '.join(names)}")

    def _read_moved(self) -> set[int] | None:
        """Read what has changed; return the units concerned, or None if it may be all."""
        board = self.runtime.board
        moved = np.flatnonzero(board.moved.copy())  # workers may write to it concurrently
        board.moved[moved] = 0  # cleared before the readings, so that concurrent changes are read again
        if not self._read or len(moved) * _MANY > len(board.moved):
            self._read_all()
            self._read = True
            return None
        boxes = set(self.runtime.cursor_box[moved].tolist()) | self._stuck
        if self._held_up:
            boxes = boxes.union(*[self._held_up[box] for box in boxes if box in self._held_up])
        concerned = {unit for box in boxes for unit in self._units_of[box]}
        if len(concerned) * _MANY > len(self.units) + 1:
            self._read_all()
            return None
        self._read_some(boxes, concerned)
        return concerned

    def _read_all(self) -> None:
        runtime, board = self.runtime, self.runtime.board
        waiting = board.arrived - board.taken
        self.box_waiting = runtime.per_box(np.add, waiting)
        self._box_ready: Mask = runtime.per_box(np.add, waiting + board.marks) > 0
        if runtime.paused:
            self._box_ready[list(runtime.paused)] = False
        self.box_oldest = runtime.per_box(np.minimum, board.oldest.copy())
        memo: dict[str, int] = {}
        for box in runtime.several:
            if self._large:
                self._forget(box.index)
            if self._box_ready[box.index]:
                self._box_ready[box.index] = self._look(box, memo) if self._large else runtime.is_ready(box, memo)
        self.ready, self.waiting, self.oldest = self.members.gather(self._box_ready, self.box_waiting, self.box_oldest)
        self._given = False

    def _read_some(self, boxes: set[int], concerned: set[int]) -> None:
        runtime, board = self.runtime, self.runtime.board
        memo: dict[str, int] = {}
        if self._given:
            self._let_go()
        for at in boxes:
            box = runtime.boxes[at]
            numbers = [cursor.number for cursor in box.cursors]
            waiting = sum([int(board.arrived[one] - board.taken[one]) for one in numbers])
            ready = waiting + sum([int(board.marks[one]) for one in numbers]) > 0 and at not in runtime.paused
            if len(numbers) > 1:
                self._forget(at)
                ready = ready and self._look(box, memo)
            self.box_waiting[at] = waiting
            self._box_ready[at] = ready
            self.box_oldest[at] = min([int(board.oldest[one]) for one in numbers])
        for unit in concerned:
            mine = self.members.boxes[unit]
            self.ready[unit] = self._box_ready[mine].any()
            self.waiting[unit] = self.box_waiting[mine].sum()
            self.oldest[unit] = self.box_oldest[mine].min()

    def _let_go(self) -> None:
        """Leave the arrays to the snapshots that hold them, and continue with copies."""
        self._box_ready = self._box_ready.copy()
        self.box_waiting, self.box_oldest = self.box_waiting.copy(), self.box_oldest.copy()
        if self.members.plain:
            arrays = self.members.gather(self._box_ready, self.box_waiting, self.box_oldest)
        else:
            arrays = self.ready.copy(), self.waiting.copy(), self.oldest.copy()
        self.ready, self.waiting, self.oldest = arrays
        self._given = False

    def _forget(self, at: int) -> None:
        """Forget which box blocks this one."""
        self._stuck.discard(at)
        holder = self._holder.pop(at, None)
        if holder is not None:
            others = self._held_up[holder]
            others.discard(at)
            if not others:
                del self._held_up[holder]

    def _look(self, box: RunningBox, memo: dict[str, int]) -> bool:
        """Return whether a box with several inputs that has tuples is ready; if not, record which box blocks it."""
        if self.runtime.is_ready(box, memo):
            # Only this thread starts boxes, so no other thread now writes the progress of idle ones.
            for arc in box.inputs:
                queue, found = self.runtime.arcs[arc].queue, memo.get(arc)
                if found is not None and found > queue.progress:  # not so where a worker has just published
                    queue.progress = found
            return True
        holder = self._find_holder(box, memo)
        if holder is None:
            self._stuck.add(box.index)
        else:
            self._held_up.setdefault(holder, set()).add(box.index)
            self._holder[box.index] = holder
        return False

    def _find_holder(self, box: RunningBox, memo: dict[str, int]) -> int | None:
        """Return the upstream box that must take something before this one can; None if it must be searched again.

        `memo` holds the progress of all arcs upstream of the box.
        """
        runtime = self.runtime
        following = min([cursor.next_number() for cursor in box.cursors])
        while True:
            # Workers run concurrently, so there may be none any more.
            late = next((arc for arc in box.inputs if memo.get(arc, following) < following), None)
            at = None if late is None else runtime.index.get(owner(late))
            if at is None or runtime.busy[at]:
                return None
            box = runtime.boxes[at]
            if not all(cursor.idle for cursor in box.cursors):
                return at

    def snapshot(
        self,
        now: int,
        *,
        train: int,
        room: int,
        more: bool,
        free: int,
        memory: int,
        busy: Mask | None = None,
        planning: float = 0.0,
    ) -> Snapshot:
        """Return a snapshot as of the last refresh; `memory` is in bytes; without `busy` no unit is busy."""
        if not self._given:
            for array in (self._box_ready, self.box_waiting, self.box_oldest):
                frozen(array)
            if self.ready is not self._box_ready:
                for array in (self.ready, self.waiting, self.oldest):
                    frozen(array)
            self._given = True
        idle, nothing, none = self._idle
        return Snapshot(
            now,
            self.layout,
            self.ready,
            self.waiting,
            self.oldest,
            self._box_ready,
            self.box_waiting,
            self.box_oldest,
            self.workers,
            free,
            idle if busy is None else frozen(busy),
            nothing,
            none,
            memory,
            train,
            room,
            Moment(self, now),
            None if self._changed is None else list(self._changed),
            more,
            planning,
            None if self._background is None else self._hidden(now),
        )

    def keep_behind(self, outputs: frozenset[int]) -> None:
        """Keep units in the background that only lead to these outputs."""
        behind = np.array([bool(unit.outputs) and outputs.issuperset(unit.outputs) for unit in self.units], np.bool_)
        self._background = frozen(behind) if behind.any() else None
        self._changed = None

    def _hidden(self, now: int) -> Mask | None:
        """Return which units are in the background; now and then they compete with the others."""
        if now < self._shown:
            return self._background
        self._shown = now + _PATIENCE
        return None

    def boxes(self, now: int) -> BoxReadings:
        """Return the statistics of the boxes, at most 20 ms old."""
        self._asked += 1
        if self._boxes is None or now - self._boxes_at >= _FRESH or self._asked > self._enough():
            self._boxes, self._boxes_at = self.runtime.statistics.readings(now), now
            self._asked, self._known = 0, int(self._boxes.calls.sum())
        return self._boxes

    def _enough(self) -> float:
        """Return how many times cached statistics may be used before they are read again, however fresh they are."""
        if self._known >= _FIRST * len(self.runtime.boxes):
            return math.inf
        # In a large network many boxes are never called: there, known calls must grow by a share, not by one.
        return self._known / _SHARE if self._large else 0

    def _box_ages(self, now: int) -> tuple[Floats, Int64s]:
        runtime = self.runtime
        if self._ages is None:
            self._ages = Ages(runtime.board, runtime.cursors)
        seconds, counts = self._ages.read(now)
        return runtime.per_box(np.add, seconds), runtime.per_box(np.add, counts)

    def latencies(self, now: int) -> Floats:
        """Return by unit the mean latency of its waiting tuples."""
        return self.members.means(*self._box_ages(now))

    def latency(self, now: int, unit: int) -> float:
        """Return the mean latency of one unit's waiting tuples."""
        count = total = 0
        for at in self.units[unit].boxes:
            for cursor in self.runtime.boxes[at].cursors:
                if not cursor.idle:
                    many, summed = cursor.stamps()
                    count += many
                    total += summed
        return max(0.0, (now - total / count) / SECOND) if count else 0.0

    def queues(self, now: int) -> QueueReadings:
        """Return what waits at each box."""
        seconds, counts = self._box_ages(now)
        age = np.where(self.box_oldest < NEVER, (now - self.box_oldest) / SECOND, 0.0)
        sizes = self.boxes(now).tuple_size
        waiting = self.box_waiting
        return QueueReadings(waiting, (waiting * sizes).astype(np.int64), seconds / np.maximum(counts, 1), age)

    def unit_costs(self, now: int) -> UnitCosts:
        """Return by unit the cost of a step until its tuples are delivered."""
        boxes = self.boxes(now)
        # In large networks, positions of tuples within a unit are read only as often as box costs.
        if self._unit_costs is None or self._costs_of is not boxes or not self._large:
            self._unit_costs, self._costs_of = self.follow_units(boxes, self.box_waiting), boxes
        return self._unit_costs

    # For monitor, adaptive layers, status and summary

    def carried(self, box: int, arc: str) -> float:
        """Return how many of its box's tuples went to an arc."""
        return self.runtime.arcs[arc].tuples

    def backlog(self) -> tuple[Int64s, Int64s]:
        """Return by box the tuples that wait, and the timestamp of the oldest."""
        runtime, board = self.runtime, self.runtime.board
        waiting = runtime.per_box(np.add, board.arrived - board.taken)
        overdue = self.ingest.overdue()
        for source in np.flatnonzero(overdue).tolist():
            np.add.at(waiting, list(self.topology.readers[source]), overdue[source])
        return waiting, runtime.per_box(np.minimum, board.oldest.copy())

    @property
    def ignored(self) -> dict[str, int]:
        """By box: the tuples that arrived too late for it."""
        return {box.name: box.ignored for box in self.runtime.boxes}
