"""Aggregate over data-driven windows: ``advance: {when: PREDICATE}``.

A new window starts where the predicate holds for a tuple and the open window's first and last tuple. The tuples of open
windows are kept whole, and each call puts them before the new ones, so that a window's first and last tuple are rows of
one table. If the predicate reads only the last tuple, which is the one before, it is evaluated for the whole train at
once. If it reads the first, or there is a `size`, the next start is searched for in growing pieces, for all partitions
together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headway.boxes.aggregate import Aggregate, When
from headway.boxes.bsort import BSort
from headway.boxes.order import Order
from headway.columns import NEVER, Column, Int64s, Mask, Values, truth
from headway.expressions import EvaluationError, Functions
from headway.kernels.aggregate import AggregateKernel
from headway.kernels.bsort import BSortKernel
from headway.kernels.codec import pack_train, unpack_train
from headway.kernels.grid import far
from headway.kernels.groups import expand
from headway.kernels.kernel import Tables
from headway.kernels.order import OrderedInput, OrderState, number_in_partition, stable_order
from headway.kernels.partitions import grown
from headway.kernels.results import Emission, Emitted, dead_letters, evaluate, failures, others
from headway.kernels.selects import CompiledSelect, Failed, Rows
from headway.kernels.windows import WindowKernel
from headway.network.schema import Schema
from headway.trains import Aligned, Tick, Train

_PIECE = 64


@dataclass(slots=True)
class Open(Aligned):
    """The tuples of open windows, at most one window per partition: their partitions and order values."""

    rows: Train
    codes: Int64s
    values: Values


@dataclass(slots=True)
class SessionState:
    """The state of data-driven windows."""

    order: OrderState
    open: Open
    opened: Int64s  # per partition: when the open window was opened
    expired: Mask  # per partition: whether a timeout has emitted the open window
    sorter: Any  # the sorter's state, if there is one

    def grow(self) -> None:
        """Make room for new partitions."""
        count = self.order.partitions.count
        self.opened, self.expired = grown(self.opened, count, 0), grown(self.expired, count, False)


class _Table:
    """The tuples of open windows and new ones, sorted by (partition, arrival); the first `old` are not new."""

    def __init__(self, every: Open, old: int) -> None:
        order = stable_order(every.codes)
        self.every = every.take(order)
        self.rows, self.codes, self.values = self.every.rows, self.every.codes, self.every.values
        self.origin = order - old  # the place in the train; negative for the old ones
        self.new: Mask = self.origin >= 0
        self.starts: Mask = np.diff(self.codes, prepend=-1) != 0  # a partition's first tuple here starts its window
        self.heads = np.flatnonzero(self.starts)
        self.tails = np.append(self.heads[1:], len(order))


class SessionKernel(WindowKernel):
    """Aggregate with data-driven windows. With slack, tuples pass a BSort first, which is equivalent."""

    def __init__(
        self, spec: Aggregate, box: str, schemas: Sequence[Schema], tables: Tables, functions: Functions | None
    ) -> None:
        super().__init__(spec, box, schemas, tables, functions)
        schema, order = self._schema, spec.order
        sorts = order.slack and not order.numbered
        self._sorter = BSortKernel(BSort(order), box, [schema], (), functions) if sorts else None
        self._order = OrderedInput(schema, Order(order.on, 0, order.by))
        size, _ = spec.window(schema)
        self._size = None if size is None else np.array(size, self._order.dtype)[()]
        predicate = spec.condition(schema, functions)
        assert predicate is not None
        self._predicate = predicate
        width = len(schema)
        self._looks_at_first = self._size is not None or any(width <= slot < 2 * width for slot in predicate.slots)
        select = self._spec.results(schema, functions)
        self._select = CompiledSelect(select, in_order=True, whole=True, hold_all=True)
        self._emission = Emission(box, self._select, self._output, self._order.by_types)

    def initial(self) -> SessionState:
        """Return a state with no window open."""
        none = np.zeros(0, np.int64)
        return SessionState(
            self._order.initial(),
            Open(Train.empty(self._schema), none, np.zeros(0, self._order.dtype)),
            none,
            np.zeros(0, np.bool_),
            None if self._sorter is None else self._sorter.initial(),
        )

    def _opened(self, state: SessionState) -> Int64s:
        waiting = np.unique(state.open.codes)
        return state.opened[waiting[~state.expired[waiting]]]

    def _take(self, state: SessionState, train: Train, now: int, emitted: Emitted) -> None:
        train, _, _ = evaluate(self._select.inputs, train, self._schema, self._box, emitted.dead)
        self._order.codes(state.order, train)  # partitions are numbered as they arrive, not as they are sorted
        usable = self._order.usable(train)
        if usable is not None:
            emitted.ignored += int((~usable).sum())
            train = train.take(np.flatnonzero(usable))
        if self._sorter is not None:
            state.sorter, result = self._sorter.run(state.sorter, (train,), now)
            train = result.outputs[0]
        codes, values, _, at, late = self._order.admit(state.order, train)
        state.grow()
        emitted.ignored += late
        if at is not None:
            train = train.take(at)
        if len(train):
            self._cut(state, train, codes, values, now, emitted)

    def _cut(
        self, state: SessionState, train: Train, codes: Int64s, values: Values, now: int, emitted: Emitted
    ) -> None:
        """Divide the tuples into windows, emit those that are closed, keep the open ones."""
        table = _Table(Open.joined([state.open, Open(train, codes, values)]), len(state.open))
        bad = self._search(table)
        if bad:
            # A tuple on which the predicate fails belongs to no window: continue without it.
            emitted.dead += dead_letters(bad, table.rows, self._schema, self._box)
            chosen = others([(table.origin[at], reason) for at, reason in bad], len(codes))
            if self._order.numbered:
                np.subtract.at(state.order.counted, codes, 1)
            train, codes, values = train.take(chosen), codes[chosen], values[chosen]
            if self._order.numbered:
                values = number_in_partition(state.order.counted, codes)
            if len(train):
                self._cut(state, train, codes, values, now, emitted)
            return
        self._settle(state, table, now, emitted)

    def _search(self, table: _Table) -> Failed:
        """Mark where windows start; return the first tuple on which the predicate fails, with the reason."""
        open_at = np.flatnonzero(table.new & ~table.starts)
        if not self._looks_at_first:
            try:
                table.starts[open_at] = self._holds(table, open_at, None)
                return []
            except EvaluationError:
                return self._failures(table, open_at, None)
        first = table.heads.copy()
        at = np.array([np.searchsorted(open_at, head) for head in table.heads], np.int64)
        stop = np.searchsorted(open_at, table.tails)
        piece = np.full(len(first), _PIECE)
        while True:
            active = np.flatnonzero(at < stop)
            if len(active) == 0:
                return []
            until = np.minimum(at[active] + piece[active], stop[active])
            owner, places = expand(at[active], until)
            rows = open_at[places]
            try:
                holds = self._holds(table, rows, first[active][owner])
            except EvaluationError:
                return self._failures(table, rows, first[active][owner])
            hit = np.full(len(active), -1)
            found = np.flatnonzero(holds)[::-1]
            hit[owner[found]] = places[found]  # the last write is the first place
            for_new = hit >= 0
            new_rows = open_at[hit[for_new]]
            table.starts[new_rows] = True
            first[active[for_new]] = new_rows
            at[active] = np.where(for_new, hit + 1, until)
            piece[active] = np.where(for_new, _PIECE, piece[active] * 2)

    def _columns(self, table: _Table, rows: Int64s, first: Int64s | None) -> list[Column | None]:
        width = len(self._schema)
        needed = self._predicate.slots
        columns: list[Column | None] = [None] * (3 * width)
        for slot in needed:
            source = table.rows.columns[slot % width]
            if slot < width:
                columns[slot] = source.take(rows)
            elif slot < 2 * width:
                assert first is not None
                columns[slot] = source.take(first)
            else:
                columns[slot] = source.take(rows - 1)
        return columns

    def _holds(self, table: _Table, rows: Int64s, first: Int64s | None) -> Mask:
        answer = truth(self._predicate.evaluate(self._columns(table, rows, first), len(rows)))
        if self._size is not None:
            assert first is not None
            answer = answer | far(table.values[first], table.values[rows], self._size)
        return answer

    def _failures(self, table: _Table, rows: Int64s, first: Int64s | None) -> Failed:
        # Only the first of each partition: leaving it out may change what the next ones see.
        bad = failures([self._predicate], self._columns(table, rows, first), len(rows))
        seen: set[int] = set()
        chosen = []
        for at, reason in sorted(bad):
            row = int(rows[at])
            if int(table.codes[row]) not in seen:
                seen.add(int(table.codes[row]))
                chosen.append((row, reason))
        return chosen

    def _settle(self, state: SessionState, table: _Table, now: int, emitted: Emitted) -> None:
        begin = np.flatnonzero(table.starts)
        end = np.append(begin[1:], len(table.codes))
        partition = table.codes[begin]
        last = np.append(partition[1:] != partition[:-1], True)
        cause = np.where(last, -1, end)
        if self._order.numbered and self._size is not None:
            # A window by tuple number is complete with its last tuple, and need not wait for the next.
            full = table.values[end - 1] - table.values[begin] + 1 == self._size
            cause = np.where(full, end - 1, cause)
        old = ~table.new[begin]
        gone = old & state.expired[partition]
        if gone.any():
            window = np.cumsum(table.starts) - 1
            emitted.ignored += int((gone[window] & table.new).sum())
        closed = cause >= 0
        chosen = np.flatnonzero(closed & ~gone)
        chosen = chosen[np.lexsort((begin[chosen], table.origin[cause[chosen]]))]
        self._emit(state, table, begin[chosen], end[chosen], table.rows.numbers[cause[chosen]], emitted)
        kept = np.flatnonzero(~closed)
        state.opened[partition[kept]] = np.where(old[kept], state.opened[partition[kept]], now)
        state.expired[partition] = False
        state.expired[partition[kept]] = gone[kept]
        starts = begin[kept]
        # Of a window that a timeout has emitted, only the first and the last tuple matter.
        owner, rows = expand(starts, end[kept])
        needed = ~gone[kept][owner] | (rows == starts[owner]) | (rows == end[kept][owner] - 1)
        state.open = table.every.take(rows[needed])
        rest = state.open.rows
        state.open.rows = Train(rest.columns, rest.stamps, rest.numbers)

    def _emit(
        self, state: SessionState, table: _Table, begin: Int64s, end: Int64s, numbers: Int64s, emitted: Emitted
    ) -> None:
        if len(begin) == 0:
            return
        owner, rows = expand(begin, end)
        part = table.rows.take(rows)
        computed = [one.evaluate(part.columns, len(part)) for one in self._select.inputs]
        starts = np.cumsum(end - begin) - (end - begin)
        self._emission.add(
            emitted,
            table.values[begin],
            state.order.partitions.columns(table.codes[begin]),
            [],
            Rows(owner, len(begin)),
            self._select.held_columns(computed),
            np.minimum.reduceat(part.stamps, starts),
            numbers,
        )

    def _expire(self, state: SessionState, tick: Tick, emitted: Emitted) -> None:
        assert self._timeout is not None
        if len(state.open):
            self._emit_open(state, tick.moment - self._timeout, tick.number, emitted)

    def _finish(self, state: SessionState, number: int, now: int, emitted: Emitted) -> None:
        # Take the tuples that the sorter holds, in its order, then close every window.
        if self._sorter is not None:
            self._take(state, Train.empty(self._schema, number, end=True), now, emitted)
        if len(state.open):
            self._emit_open(state, NEVER, number, emitted)
            state.open = state.open.take(np.zeros(0, np.int64))

    def _emit_open(self, state: SessionState, moment: int, number: int, emitted: Emitted) -> None:
        """Emit the windows that were opened up to a moment, by (start, partition); they stay open."""
        table = _Table(state.open, len(state.open))
        codes = table.codes[table.heads]
        due = np.flatnonzero(~state.expired[codes] & (state.opened[codes] <= moment))
        due = due[np.lexsort((codes[due], table.values[table.heads[due]]))]
        self._emit(state, table, table.heads[due], table.tails[due], np.full(len(due), number), emitted)
        state.expired[codes[due]] = True

    def _saved(self, state: SessionState) -> tuple[dict[str, Any], dict[str, Any]]:
        count = state.order.partitions.count
        state.grow()
        arrays = {
            **state.order.dump(),
            "codes": state.open.codes,
            "values": state.open.values,
            "opened": state.opened[:count],
            "expired": state.expired[:count],
            **pack_train("row", state.open.rows, self._schema.types),
        }
        if self._sorter is not None:
            arrays["sorter"] = np.frombuffer(self._sorter.dump(state.sorter), np.uint8)
        return {"op": "aggregate when"}, arrays

    def _restore(self, state: SessionState, meta: dict[str, Any], arrays: dict[str, Any]) -> None:
        state.order.restore(arrays)
        state.open = Open(unpack_train("row", arrays, len(self._schema)), arrays["codes"], arrays["values"])
        state.opened, state.expired = arrays["opened"], arrays["expired"]
        if self._sorter is not None:
            state.sorter = self._sorter.load(arrays["sorter"].tobytes())


def aggregate_kernel(
    spec: Aggregate, box: str, schemas: Sequence[Schema], tables: Tables, functions: Functions | None
) -> WindowKernel:
    """Return the kernel of an aggregate: over windows of the order field, or over data-driven ones."""
    made = SessionKernel if isinstance(spec.advance, When) else AggregateKernel
    return made(spec, box, schemas, tables, functions)
