"""What the operator `largest` does to a train."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from headway.boxes.sizes import native_size
from headway.columns import Int64s, Values
from headway.expressions import Functions
from headway.kernels.codec import pack, pack_train, unpack, unpack_train
from headway.kernels.grid import Grid
from headway.kernels.groups import composites, group
from headway.kernels.kernel import DeadLetter, Kernel, Result, Tables
from headway.kernels.order import OrderedInput, OrderState
from headway.kernels.results import dead_letters
from headway.network.schema import Schema
from headway.trains import Train, join_trains
from headway_largest.specification import Largest

_OUT = "the order value is too far out for windows of this size"


@dataclass(frozen=True, slots=True)
class Held:
    """The best tuples so far of all open windows, with the partition and the window of each.

    They stand by partition, window and value, the largest first, of equal ones the earliest.
    """

    tuples: Train
    partitions: Int64s
    windows: Int64s

    def take(self, places: Int64s) -> Held:
        """Return some of them."""
        return Held(self.tuples.take(places), self.partitions[places], self.windows[places])


@dataclass(slots=True)
class State:
    """What lasts from one train to the next."""

    order: OrderState
    held: Held


class LargestKernel(Kernel):
    """Keeps the k largest of each open window, and lets go of those of a window when it closes."""

    def __init__(
        self, spec: Largest, box: str, schemas: Sequence[Schema], tables: Tables, functions: Functions | None
    ) -> None:
        """Compile for the schema of the input; nothing of the data is known here."""
        (self._schema,) = schemas
        self._box, self._k = box, spec.k
        self._of = self._schema.index(spec.of)
        self._order = OrderedInput(self._schema, spec.order)
        size = native_size(spec.size, spec.order.field(self._schema).type)
        self._grid = Grid(size, size, self._order.dtype)

    def initial(self) -> State:
        """Return a state with nothing in it."""
        none = np.zeros(0, np.int64)
        return State(self._order.initial(), Held(Train.empty(self._schema), none, none))

    def run(self, state: State, trains: Sequence[Train], now: int) -> tuple[State, Result]:
        """Take a train in, and emit the windows that it closes."""
        (train,) = trains
        inside, dead = self._within_bounds(train)
        admitted = self._order.admit(state.order, inside)
        partitions, values, frontiers, at, late = admitted
        fresh = inside if at is None else inside.take(at)
        held = self._best(state.held, Held(fresh, partitions, self._grid.index(values)))
        parts: list[Held] = []
        if len(fresh):
            # Up to which window a tuple closes its partition's; a window closes with the first tuple that passes it.
            steps = group(partitions, self._grid.closed(frontiers), state.order.partitions.count)
            reached, wanted = composites((steps.partition, steps.cell), (held.partitions, held.windows))
            found = np.searchsorted(reached, wanted)
            within = np.minimum(found, len(reached) - 1)
            closed = (found < len(reached)) & (steps.partition[within] == held.partitions)
            cause = steps.first[within[closed]]
            done = held.take(np.flatnonzero(closed))
            order = np.lexsort((done.windows, cause))  # stable: within a window they stay as they stand
            parts.append(self._caused(done.take(order), fresh.numbers[cause[order]]))
            held = held.take(np.flatnonzero(~closed))
        if train.end:  # what is still open closes now, window by window, partitions as they first appeared
            order = np.lexsort((held.partitions, held.windows))
            parts.append(self._caused(held.take(order), np.full(len(order), train.progress)))
            held = held.take(order[:0])
        state.held = held
        out = join_trains([part.tuples for part in parts]) if parts else Train.empty(self._schema)
        result = Train(out.columns, out.stamps, out.numbers, train.progress, train.ticks, train.end)
        return state, Result((result,), late, dead)

    def _within_bounds(self, train: Train) -> tuple[Train, tuple[DeadLetter, ...]]:
        """Set apart tuples whose windows have no number: they become dead letters."""
        column = train.columns[self._order.on]
        least, greatest = self._grid.bounds()
        values = column.values.astype(self._order.dtype, copy=False)
        outside = ((values < least) | (values > greatest)) & column.is_valid()
        if not outside.any():
            return train, ()
        bad = [(int(place), _OUT) for place in np.flatnonzero(outside)]
        return train.take(np.flatnonzero(~outside)), dead_letters(bad, train, self._schema, self._box)

    def _best(self, held: Held, fresh: Held) -> Held:
        """Return the k largest of each window, of those held and of new ones; NULL and NaN are no values."""
        of = fresh.tuples.columns[self._of]
        usable = of.is_valid() & (of.values == of.values)
        fresh = fresh.take(np.flatnonzero(usable))
        both = join_trains([held.tuples, fresh.tuples])
        partitions = np.concatenate([held.partitions, fresh.partitions])
        windows = np.concatenate([held.windows, fresh.windows])
        falling = -np.unique(both.columns[self._of].values, return_inverse=True)[1]
        order = np.lexsort((falling, windows, partitions))  # stable: of equals the earlier arrival comes first
        partitions, windows = partitions[order], windows[order]
        new = np.ones(len(order), np.bool_)
        new[1:] = (partitions[1:] != partitions[:-1]) | (windows[1:] != windows[:-1])
        place = np.arange(len(order))
        within = place - np.maximum.accumulate(np.where(new, place, 0))
        best = within < self._k
        return Held(both.take(order[best]), partitions[best], windows[best])

    def _caused(self, done: Held, numbers: Int64s) -> Held:
        """Return results with the arrival numbers of the tuples that caused them."""
        return replace(done, tuples=Train(done.tuples.columns, done.tuples.stamps, numbers))

    def ranks(self, state: State, output: Train) -> tuple[Values, Int64s]:
        """Return each result's window and its partition's first appearance: the order in which windows leave."""
        by = [output.columns[at] for at in self._order.by]
        windows = self._grid.index(output.columns[self._order.on].values.astype(self._order.dtype, copy=False))
        return windows, state.order.born[state.order.partitions.codes(by, len(output))]

    def dump(self, state: State) -> bytes:
        """Write the state to bytes."""
        held = state.held
        arrays = {
            "partitions": held.partitions,
            "windows": held.windows,
            **pack_train("column", held.tuples, self._schema.types),
            **state.order.dump(),
        }
        return pack({"op": "largest"}, arrays)

    def load(self, data: bytes) -> State:
        """Read back what `dump` wrote."""
        _, arrays = unpack(data)
        state = self.initial()
        state.order.restore(arrays)
        tuples = unpack_train("column", arrays, len(self._schema))
        state.held = Held(tuples, arrays["partitions"], arrays["windows"])
        return state
