"""A seam in this process: boxes that end get nothing of what comes after it, boxes that begin nothing before it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headway.checking import CheckedNetwork
from headway.engines.alteration import Alteration
from headway.engines.delivery import Delivery
from headway.engines.process.gates import Gate
from headway.engines.process.runtime import ALL, Heir, RunningBox, Runtime
from headway.storage.branches import Branch
from headway.storage.queues import Board, Queue
from headway.structure import owner
from headway.trains import Train


class Seam:
    """One seam, from its seal to the swap. Used by the scheduler thread while no step is under way."""

    def __init__(self, runtime: Runtime, alteration: Alteration, number: int) -> None:
        """Seal: the inputs of all boxes that end, or whose input changes, end at this arrival number."""
        self.alteration, self.number = alteration, number
        self._runtime = runtime
        affected = set(alteration.changes.affected)
        self._ending = [box for box in runtime.boxes if box.name in affected]
        for box in self._ending:
            self._seal(box, box.name in alteration.changes.removed)
        self.branches, self._board = self._begin(affected)
        self._closing = self._close_outputs(affected)
        self.gates = self._open_outputs(affected)

    def _seal(self, box: RunningBox, removed: bool) -> None:
        """Move a box's inputs that others go on writing to branches which end at the seam."""
        affected = set(self.alteration.changes.affected)
        branches: list[Branch | None] = list(box.branches or [None] * len(box.cursors))
        for place, (arc, cursor) in enumerate(zip(box.inputs, box.cursors, strict=True)):
            if owner(arc) in affected:
                continue  # what writes it ends, too
            branch = branches[place]
            if branch is None:
                main = self._runtime.arcs[arc].queue
                branches[place] = Branch(main, main.branch(cursor), upto=self.number)
                cursor.apart = True
            else:
                branch.upto = self.number
                if removed and not branch.live:  # a query that is detached does not read the rest of the history
                    branch.give_up()
        box.branches = tuple(branches)

    def _begin(self, affected: set[str]) -> tuple[Mapping[tuple[str, int], Branch], Board]:
        """Return what boxes that begin read of arcs that go on, by box and input; it gathers until the swap."""
        alteration, arcs = self.alteration, self._runtime.arcs
        beginning = alteration.beginning
        new = set(alteration.changes.sources_changed)
        wanted = [
            (box.name, place, arc)
            for box in alteration.program.boxes
            if box.name in beginning
            for place, arc in enumerate(box.inputs)
            if arc in arcs and owner(arc) not in beginning | affected | new
        ]
        board = Board(len(wanted))
        branches = {}
        for number, (box, place, arc) in enumerate(wanted):
            queue = Queue(arcs[arc].schema, board, [number])
            queue.rising, queue.progress = arcs[arc].queue.rising, self.number
            branch = Branch(arcs[arc].queue, queue, after=self.number)
            branch.cursor.apart = True
            branches[box, place] = branch
        return branches, board

    def _close_outputs(self, affected: set[str]) -> Sequence[str]:
        """Let outputs that end, or move, have of arcs that go on only what is up to the seam; return these arcs."""
        found = []
        for name in self._turned(self.alteration.old):
            arc = self.alteration.old.outputs[name]
            if owner(arc) in affected:
                continue
            deliveries = list(self._runtime.arcs[arc].deliveries)
            for place, one in enumerate(deliveries):
                if one.name == name and isinstance(one, Gate):
                    one.upto = min(one.upto, self.number)
                elif one.name == name:
                    assert isinstance(one, Delivery)
                    deliveries[place] = Gate(name, one, upto=self.number)
            self._runtime.arcs[arc].deliveries = deliveries
            found.append(arc)
        return found

    def _open_outputs(self, affected: set[str]) -> Mapping[str, Gate]:
        """Return what outputs that begin, or move, get of arcs that go on; it is kept until the swap."""
        alteration, arcs = self.alteration, self._runtime.arcs
        gates = {}
        for name in self._turned(alteration.new):
            arc = alteration.new.outputs[name]
            if arc not in arcs or owner(arc) in affected | alteration.beginning | {*alteration.changes.sources_changed}:
                continue
            gates[name] = Gate(name, None, after=self.number)
            arcs[arc].deliveries = [*arcs[arc].deliveries, gates[name]]
        return gates

    def _turned(self, side: CheckedNetwork) -> Sequence[str]:
        """Return the outputs of one network that the other has not, or not on the same arc and with the same sink."""
        old, new, anew = self.alteration.old.outputs, self.alteration.new.outputs, self.alteration.destinations
        return [name for name in side.outputs if old.get(name) != new.get(name) or name in anew]

    @property
    def bytes(self) -> int:
        """The bytes that wait for boxes which begin at the swap."""
        return self._board.bytes

    @property
    def drained(self) -> bool:
        """Whether all boxes that end have processed everything up to the seam."""
        runtime, memo = self._runtime, dict[str, int]()
        for box in self._ending:
            if runtime.busy[box.index] or not all(cursor.idle for cursor in box.cursors):
                return False
            if runtime.reached(box, frozenset(), memo) < self.number:
                return False
        return all(runtime.progress(arc, frozenset(), memo) >= self.number for arc in self._closing)

    def flush(self) -> None:
        """Emit the open windows of boxes that end and are to be flushed; boxes behind them that end process that."""
        flushed = self.alteration.changes.flushed
        every = frozenset(box.index for box in self._ending)
        if not flushed:
            return
        for box in self._ending:
            trains = self._runtime.take_next(box, ALL, every)
            if trains is not None:
                self._run(box, trains)
            if box.name in flushed:
                ends = [Train.empty(self._runtime.arcs[arc].schema, self.number, end=True) for arc in box.inputs]
                self._run(box, ends)

    def _run(self, box: RunningBox, trains: Sequence[Train]) -> None:
        result = self._runtime.run(box, trains)
        for piece in (result, *(result.rest or ())):
            for arc, train in zip(box.arcs, piece.outputs, strict=False):
                if arc is not None:  # the end is that of this box, not of what it has written to
                    arc.push(Train(train.columns, train.stamps, train.numbers, train.progress, train.ticks))

    def heir(self) -> Heir:
        """Return what the runtime after the seam takes over; nothing ends any more."""
        for box in self._ending:
            for branch in box.branches or ():
                if branch is not None:
                    branch.close()
        changes = self.alteration.changes
        return Heir(
            self._runtime,
            self.alteration.program,
            self.alteration.kernels,
            frozenset(changes.kept),
            frozenset(changes.carried),
            self.branches,
            self.gates,
        )
