"""Readings of a network that runs in this process: what its policy sees, kept up to date as tuples come and go.

Small networks are read as a whole, with a few array operations. In large ones only what has moved since the last
look is read again, so that a snapshot of 100,000 boxes costs little more than one of a thousand.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from headway.catalog import BoxReadings, Floats
from headway.clock import SECOND
from headway.columns import Int64s, Mask
from headway.engines.runtime import Runtime
from headway.scheduling.base import OutputReadings, QueueReadings, Snapshot, Unit, UnitCosts
from headway.scheduling.costs import CostModel
from headway.scheduling.members import Members
from headway.storage.queues import FAR, Ages

_FEW = 1024
"""Cursors that are read as a whole: below that, arrays are quicker than picking."""
_MANY = 16
"""One moved cursor in so many: then all are read."""
_FRESH = SECOND // 200
"""How long box statistics are taken for fresh: costs change slowly, and folding them in takes its time."""
_FIRST = 4
"""Calls per box on average until which statistics are always read anew: first impressions count."""


class Waits(NamedTuple):
    """By unit: whether it is ready, what waits, and since when."""

    ready: Mask
    waiting: Int64s
    oldest: Int64s


class Readings:
    """Looks at a runtime; changes nothing. Used by the scheduler thread."""

    def __init__(self, runtime: Runtime, units: tuple[Unit, ...]) -> None:
        """Lay out which boxes belong to which units."""
        self._runtime = runtime
        self.units = units
        self.members = Members(units)
        self._large = len(runtime.cursor_box) > _FEW
        self._units_of: list[list[int]] = [[] for _ in runtime.boxes] if self._large else []
        if self._large:
            for at, unit in enumerate(units):
                for box in unit.boxes:
                    self._units_of[box].append(at)
        self._changed: set[int] | None = None  # units that have changed since the policy was asked; None: maybe all
        self._read = False  # whether the arrays below hold anything yet
        self._stuck: set[int] = set()  # boxes with several inputs that have tuples but cannot take them
        self._ages: Ages | None = None  # these two are made when a policy first asks
        self._cost_model: CostModel | None = None
        self._boxes: BoxReadings | None = None
        self._boxes_at = 0
        self._settled = False
        self._unit_costs: UnitCosts | None = None
        self._costs_of: BoxReadings | None = None
        self._nothing: Floats = np.zeros(len(units))
        self._none: Int64s = np.zeros(len(units), np.int64)
        self._idle: Mask = np.zeros(len(units), np.bool_)

    def refresh(self) -> None:
        """Read what has moved."""
        if self._large:
            units = self._read_moved()
            self._changed = None if units is None or self._changed is None else self._changed | units
        else:
            self._read_all()

    def told(self) -> None:
        """Note that the policy was asked: from now on, units that change are gathered for the next time."""
        if self._large:
            self._changed = set()

    def _read_moved(self) -> set[int] | None:
        """Read what has moved; return the units that it concerns, None if it may be all."""
        board = self._runtime.board
        moved = np.flatnonzero(board.moved.copy())  # workers may write to it meanwhile
        board.moved[moved] = 0  # first this, then the readings: what moves meanwhile is read again
        if not self._read or len(moved) * _MANY > len(board.moved):
            self._read_all()
            self._read = True
            return None
        boxes = set(self._runtime.cursor_box[moved].tolist()) | self._stuck
        concerned = {unit for box in boxes for unit in self._units_of[box]}
        if len(concerned) * _MANY > len(self.units) + 1:
            self._read_all()
            return None
        self._read_some(boxes, concerned)
        return concerned

    def _read_all(self) -> None:
        runtime, board = self._runtime, self._runtime.board
        waiting = board.arrived - board.taken
        self.box_waiting = runtime.per_box(np.add, waiting)
        self._box_ready: Mask = runtime.per_box(np.add, waiting + board.marks) > 0
        self.box_oldest = runtime.per_box(np.minimum, board.oldest.copy())
        memo: dict[str, int] = {}
        self._stuck.clear()
        for box in runtime.several:
            if self._box_ready[box.index]:
                self._box_ready[box.index] = runtime.is_ready(box, memo)
                if self._large:
                    self._stuck.add(box.index)
        self.ready, self.waiting, self.oldest = self.members.gather(self._box_ready, self.box_waiting, self.box_oldest)

    def _read_some(self, boxes: set[int], concerned: set[int]) -> None:
        runtime, board = self._runtime, self._runtime.board
        memo: dict[str, int] = {}
        for at in boxes:
            box = runtime.boxes[at]
            numbers = [cursor.number for cursor in box.cursors]
            waiting = sum([int(board.arrived[one] - board.taken[one]) for one in numbers])
            ready = waiting + sum([int(board.marks[one]) for one in numbers]) > 0
            if len(numbers) > 1:
                (self._stuck.add if ready else self._stuck.discard)(at)
                ready = ready and runtime.is_ready(box, memo)
            self.box_waiting[at] = waiting
            self._box_ready[at] = ready
            self.box_oldest[at] = min([int(board.oldest[one]) for one in numbers])
        for unit in concerned:
            mine = self.members.boxes[unit]
            self.ready[unit] = self._box_ready[mine].any()
            self.waiting[unit] = self.box_waiting[mine].sum()
            self.oldest[unit] = self.box_oldest[mine].min()

    def snapshot(
        self,
        now: int,
        *,
        queued: int,
        train: int,
        busy: Mask | None,
        workers: int,
        free: int,
        room: int,
        more: bool,
        rates: Callable[[], Floats],
        outputs: Callable[[], OutputReadings],
        spent: Floats | None = None,
        held: Int64s | None = None,
        waits: Waits | None = None,
        planning: float = 0.0,
    ) -> Snapshot:
        """Return what a policy may look at, as of the last refresh; `waits` stands in for what was read of units."""
        ready, waiting, oldest = waits or (self.ready, self.waiting, self.oldest)
        return Snapshot(
            now,
            self._runtime.topology,
            self.units,
            ready,
            waiting,
            oldest,
            self.box_waiting,
            self.box_oldest,
            self._box_ready,
            queued,
            train,
            self._idle if busy is None else busy,
            workers,
            free,
            room,
            None if self._changed is None else list(self._changed),
            self._nothing if spent is None else spent,
            self._none if held is None else held,
            more,
            rates,
            partial(self.boxes, now),
            outputs,
            partial(self._queues, now),
            partial(self._latencies, now),
            partial(self._costs, now),
            partial(self._latency, now),
            planning=planning,
        )

    def boxes(self, now: int) -> BoxReadings:
        """Return the statistics of the boxes, a few milliseconds old at most."""
        statistics = self._runtime.statistics
        if self._boxes is None or now - self._boxes_at >= _FRESH or not self._settled:
            self._boxes, self._boxes_at = statistics.readings(now), now
            self._settled = int(self._boxes.calls.sum()) >= _FIRST * len(self._boxes.calls)
        return self._boxes

    def _box_ages(self, now: int) -> tuple[Floats, Int64s]:
        runtime = self._runtime
        if self._ages is None:
            self._ages = Ages(runtime.board, runtime.cursors())
        seconds, counts = self._ages.read(now)
        return runtime.per_box(np.add, seconds), runtime.per_box(np.add, counts)

    def _latencies(self, now: int) -> Floats:
        return self.members.means(*self._box_ages(now))

    def _latency(self, now: int, unit: int) -> float:
        """Return the mean latency of one unit's waiting tuples."""
        count = total = 0
        for at in self.units[unit].boxes:
            for cursor in self._runtime.boxes[at].cursors:
                if not cursor.idle:
                    many, summed = cursor.stamps()
                    count += many
                    total += summed
        return max(0.0, (now - total / count) / SECOND) if count else 0.0

    def _queues(self, now: int) -> QueueReadings:
        seconds, counts = self._box_ages(now)
        age = np.where(self.box_oldest < FAR, (now - self.box_oldest) / SECOND, 0.0)
        sizes = self.boxes(now).tuple_size
        waiting = self.box_waiting
        return QueueReadings(waiting, (waiting * sizes).astype(np.int64), seconds / np.maximum(counts, 1), age)

    def _costs(self, now: int) -> UnitCosts:
        if self._cost_model is None:
            self._cost_model = CostModel(self._runtime.topology, self.units)
        boxes = self.boxes(now)
        # In large networks, where exactly tuples wait within a unit is looked at as seldom as what boxes cost.
        if self._unit_costs is None or self._costs_of is not boxes or not self._large:
            self._unit_costs, self._costs_of = self._cost_model.read(boxes, self.box_waiting), boxes
        return self._unit_costs
