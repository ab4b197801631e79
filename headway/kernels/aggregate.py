"""Aggregate over windows of the order field or of the tuple number; data-driven windows are in sessions.py.

A train is processed as a whole: first which tuples are in order (order.py) and which windows they belong to (grid.py),
then the accumulators of all open windows at once (windows.py). Then every window that the partition's frontier has
passed is emitted with the arrival number of the tuple that moved the frontier there. An in-order tuple never belongs to
a closed window, so adding all tuples first and closing windows afterwards gives the same results as tuple by tuple.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headway.boxes.aggregate import Aggregate
from headway.columns import Column, Int64s, Mask, Values
from headway.expressions import Functions
from headway.kernels.accumulators import reduce_ranges
from headway.kernels.grid import NEVER, Grid
from headway.kernels.groups import composites, expand, group, group_ascending, ranges
from headway.kernels.kernel import Tables
from headway.kernels.order import OrderedInput, OrderState
from headway.kernels.partitions import grown
from headway.kernels.results import ROWS, Emission, Emitted, dead_letters, evaluate, portions
from headway.kernels.selects import CompiledSelect, Rows
from headway.kernels.windows import HeldTuples, Store, WindowKernel
from headway.network.schema import Schema
from headway.trains import Tick, Train

_BY_PARTITION = ("closed", "origin", "has_origin")


@dataclass(slots=True)
class AggregateState:
    """The state of an Aggregate: partitions and frontiers, and the contents of its open windows."""

    order: OrderState
    store: Store
    held: HeldTuples
    closed: Int64s  # per partition, the last window that its frontier has closed
    origin: Values  # per partition, where its grid starts (for align: first)
    has_origin: Mask
    expired: tuple[Int64s, Int64s]  # windows that a timeout emitted: partition, window
    before: int  # the window before a new partition's first

    def grow(self) -> None:
        """Make room for new partitions."""
        count = self.order.partitions.count
        if count > len(self.closed):  # checked once per call: a train of one tuple must not pay for three arrays
            self.closed, self.origin = grown(self.closed, count, self.before), grown(self.origin, count, 0)
            self.has_origin = grown(self.has_origin, count, False)


class AggregateKernel(WindowKernel):
    """Aggregate with `size` and `advance`."""

    def __init__(
        self, spec: Aggregate, box: str, schemas: Sequence[Schema], tables: Tables, functions: Functions | None
    ) -> None:
        super().__init__(spec, box, schemas, tables, functions)
        self._order = OrderedInput(self._schema, spec.order)
        self._align = spec.align == "first"
        size, advance = spec.window(self._schema)
        assert size is not None
        assert advance is not None
        # A timeout belongs to a window, so windows that can time out do not share panes.
        self._grid = Grid(size, advance, self._order.dtype, whole=self._timeout is not None)
        select = self._spec.results(self._schema, functions)
        self._select = CompiledSelect(select, in_order=self._order.slack == 0, whole=not self._grid.panes)
        self._emission = Emission(box, self._select, self._output, self._order.by_types)
        self._shareable = (
            self._grid.tumbling
            and self._timeout is None
            and not self._align
            and not self._order.numbered
            and self._order.slack == 0
            and len(self._order.by) <= 1
            and not self._select.holds
        )
        if self._grid.size > self._grid.advance:
            # One tuple may close this many windows, and is copied as often where they share no panes.
            self._step = max(1, ROWS // math.ceil(size / advance))
        # If no expression can fail, no dead letter shows the other columns. Estimates of plain fields cannot fail
        # either, so they read what the exact aggregate reads.
        calls = spec.results(schemas[0], functions).calls
        fields = [one.field for call in calls for one in (*call.arguments, call.where) if one is not None]
        if None not in fields:
            order = () if self._order.numbered else (self._order.on,)
            self.reads = frozenset([at for at in fields if at is not None]).union(self._order.by, order)

    def initial(self) -> AggregateState:
        """Return a state without open windows."""
        none = np.zeros(0, np.int64)
        dtype = self._order.dtype
        return AggregateState(
            self._order.initial(),
            Store(self._select.accumulators),
            HeldTuples(self._select.held_types, dtype),
            none,
            np.zeros(0, dtype),
            np.zeros(0, np.bool_),
            (none, none),
            -1 if self._order.numbered else NEVER,
        )

    def ranks(self, state: AggregateState, output: Train) -> tuple[Values, Int64s]:
        """Return each result's order value and its partition's first appearance."""
        by = output.columns[1 : 1 + len(self._order.by_types)]
        codes = state.order.partitions.codes(by, len(output))
        return np.asarray(output.columns[0].values), state.order.born[codes]

    def _opened(self, state: AggregateState) -> Int64s:
        return state.store.opened

    def _take(self, state: AggregateState, train: Train, now: int, emitted: Emitted) -> None:
        if len(train) == 0:
            return
        train, computed, _ = evaluate(self._select.inputs, train, self._schema, self._box, emitted.dead)
        if self._shareable:
            shared = group_ascending(train, self._order, self._grid, state.order)
            if shared is not None:
                state.grow()
                arguments, masks = self._select.arguments(computed)
                state.store.add(shared, train.stamps, arguments, masks, now)
                # The first tuple of a window closes all windows before it.
                self._close(state, (shared.partition, shared.cell - 1, shared.first), train.numbers, emitted)
                return
        train, computed = self._within_bounds(train, computed, emitted)
        codes, values, frontiers, at, late = self._order.admit(state.order, train)
        state.grow()
        emitted.ignored += late
        if len(values) == 0:
            return
        stamps, numbers = train.stamps, train.numbers
        if at is not None:
            stamps, numbers, computed = stamps[at], numbers[at], [one.take(at) for one in computed]
        if self._order.numbered:
            frontiers = values + 1  # the next tuple's number is certain, so a window closes with its last tuple
        if self._align:
            values, frontiers = self._from_origin(state, codes, values, frontiers)
        # The whole train ascends when nothing had to be sorted: then the frontiers are the values themselves.
        in_sequence = frontiers is values and at is None and not self._align
        entries = self._assign(state, codes, values, stamps, computed, emitted, in_sequence)
        pane = None
        if entries is not None:
            codes_in, pane, values_in, stamps_in, computed_in = entries
            # Window numbers do not ascend where a tuple is in several windows.
            once = self._grid.panes or self._grid.tumbling
            groups = group(codes_in, pane, state.order.partitions.count, in_sequence and once)
            arguments, masks = self._select.arguments(computed_in)
            state.store.add(groups, stamps_in, arguments, masks, now)
            if self._select.holds:
                state.held.add(codes_in, pane, values_in, self._select.held_columns(computed_in))
        if entries is not None and frontiers is values and self._grid.tumbling and len(pane) == len(codes):  # type: ignore[arg-type]
            # Slack 0: the first tuple of a window closes all windows before it.
            closers = (groups.partition, groups.cell - 1, groups.first)
        else:
            cells = self._grid.closed(frontiers)
            steps = group(codes, cells, state.order.partitions.count)
            closers = (steps.partition, steps.cell, steps.first)
        self._close(state, closers, numbers, emitted)

    def _within_bounds(self, train: Train, computed: list[Column], emitted: Emitted) -> tuple[Train, list[Column]]:
        """Make dead letters of tuples whose order value is too far out for 64-bit window numbers."""
        if self._order.numbered:
            return train, computed
        column = train.columns[self._order.on]
        least, greatest = self._grid.bounds()
        narrow = column.values.dtype.kind == "i" and column.values.dtype.itemsize < 8
        if narrow or not len(train):
            return train, computed
        if np.fmin.reduce(column.values) >= least and np.fmax.reduce(column.values) <= greatest:
            return train, computed
        outside = ((column.values < least) | (column.values > greatest)) & column.is_valid()
        bad = [(int(at), "the order value is too far out for windows of this size") for at in np.flatnonzero(outside)]
        # Show only what the box reads, on every engine: the other fields may not have been sent here.
        shown = range(len(self._schema)) if self.reads is None else sorted(self.reads)
        fields = Schema(tuple(self._schema.fields[place] for place in shown))
        emitted.dead += dead_letters(
            bad, train.with_columns([train.columns[place] for place in shown]), fields, self._box
        )
        at = np.flatnonzero(~outside)
        return train.take(at), [one.take(at) for one in computed]

    def _from_origin(
        self, state: AggregateState, codes: Int64s, values: Values, frontiers: Values
    ) -> tuple[Values, Values]:
        """Shift values so that each partition's grid starts at its first value."""
        new = np.flatnonzero(~state.has_origin[codes])[::-1]
        state.origin[codes[new]] = values[new]  # the last write is the first value
        state.has_origin[codes[new]] = True
        origins = state.origin[codes]
        shifted = values - origins
        if frontiers is values:
            return shifted, shifted
        bottom = np.iinfo(np.int64).min if self._order.dtype.kind == "i" else -np.inf
        return shifted, np.where(frontiers == bottom, bottom, frontiers - np.where(frontiers == bottom, 0, origins))

    def _assign(
        self,
        state: AggregateState,
        codes: Int64s,
        values: Values,
        stamps: Int64s,
        computed: list[Column],
        emitted: Emitted,
        ascending: bool,
    ) -> tuple[Int64s, Int64s, Values, Int64s, list[Column]] | None:
        """Return an entry for each tuple and window (or pane) that it belongs to; None if there is no entry."""
        grid = self._grid
        if grid.panes:
            return codes, grid.pane_of(values), values, stamps, computed
        window = grid.index_ascending(values) if ascending else grid.index(values)
        owners: Int64s | None = None  # the tuple that each entry belongs to, where some have several
        if not grid.tumbling:
            first = grid.closed(values) + 1
            if self._order.numbered:
                first = np.maximum(first, 0)  # the first window starts with the first tuple
            if not (first == window).all():
                rows, window = expand(first, np.maximum(window + 1, first))
                if len(rows) == 0:
                    return None
                owners = rows
                codes, values, stamps = codes[rows], values[rows], stamps[rows]
                computed = [one.take(rows) for one in computed]
        if len(state.expired[0]):
            gone, mine = composites(state.expired, (codes, window))
            late = np.isin(mine, gone)
            if late.any():
                at = np.flatnonzero(~late)
                # A tuple is ignored if none of its windows is left.
                gone_rows = late.nonzero()[0] if owners is None else np.setdiff1d(owners[late], owners[at])
                emitted.ignored += len(gone_rows)
                if len(at) == 0:
                    return None
                codes, window, values, stamps = codes[at], window[at], values[at], stamps[at]
                computed = [one.take(at) for one in computed]
        return codes, window, values, stamps, computed

    def _close(
        self,
        state: AggregateState,
        closers: tuple[Int64s, Int64s, Int64s],
        numbers: Int64s,
        emitted: Emitted,
    ) -> None:
        """Emit the windows that the closers (partition, last window closed, tuple) have passed."""
        partition, cell, tuple_at = closers
        before = state.closed.copy() if self._grid.panes else state.closed
        np.maximum.at(state.closed, partition, cell)
        upto = state.closed[state.store.partition]
        if self._grid.panes:
            first = self._grid.windows_of_pane(state.store.pane)[0]
            some = np.maximum(first - 1, before[state.store.partition]) < upto
        else:
            some = state.store.pane <= upto
        if not some.any():
            return
        owner, window, at = self._open_windows(state, before, upto)
        mine, theirs = composites((partition, cell), (owner, window))
        cause = tuple_at[np.searchsorted(mine, theirs)]
        # Windows are listed by (partition, window), so a stable sort leaves those of one cause ascending.
        order = np.argsort(cause, kind="stable")
        self._emit(state, owner[order], window[order], at[order], numbers[cause[order]], emitted)
        self._forget(state)

    def _open_windows(self, state: AggregateState, before: Int64s, upto: Int64s) -> tuple[Int64s, Int64s, Int64s]:
        """Return the windows that hold a tuple: after `before` (by partition), no further than `upto` (by pane).

        They are sorted by (partition, window), and each comes with the index of a pane that it contains.
        """
        store = state.store
        if not self._grid.panes:
            at = np.flatnonzero(store.pane <= upto)
            return store.partition[at], store.pane[at], at
        first, last = self._grid.windows_of_pane(store.pane)
        # Neighbouring panes share windows: each window is listed with the first pane of the partition that has it.
        same = np.zeros(len(store), np.bool_)
        same[1:] = store.partition[1:] == store.partition[:-1]
        previous = np.empty_like(last)
        previous[:1] = NEVER
        previous[1:] = last[:-1]
        start = np.where(same, np.maximum(first, previous + 1), first)
        start = np.maximum(start, before[store.partition] + 1)
        stop = np.minimum(last, upto) + 1
        rows, window = expand(start, np.maximum(stop, start))
        return store.partition[rows], window, rows

    def _emit(
        self, state: AggregateState, partition: Int64s, window: Int64s, at: Int64s, numbers: Int64s, emitted: Emitted
    ) -> None:
        """Emit windows; `at` is for each the index of one of its panes in the store."""
        store, grid = state.store, self._grid
        first, after = grid.panes_of_window(window)
        weights = np.ones(len(window), np.int64)
        starts = stops = begin = end = at
        if grid.panes:
            starts, stops = ranges((store.partition, store.pane), partition, first, after)
            weights += stops - starts
        if self._select.holds:
            begin, end = state.held.ranges(partition, first, after)
            weights += end - begin
        # All their panes and tuples together might not fit into memory.
        for some in portions(weights) if grid.panes or self._select.holds else (slice(None),):
            if grid.panes:
                arrays = [
                    one.merge(a, starts[some], stops[some])
                    for one, a in zip(store.accumulators, store.arrays, strict=True)
                ]
                stamps = reduce_ranges(np.minimum, store.stamps, starts[some], stops[some])
            else:
                arrays = [{name: array[at[some]] for name, array in a.items()} for a in store.arrays]
                stamps = store.stamps[at[some]]
            owners, held = np.zeros(0, np.int64), tuple[Column, ...]()
            if self._select.holds:
                owners, rows = expand(begin[some], end[some])
                held = state.held.columns(rows)
            start = self._starts(state, partition[some], window[some])
            by = state.order.partitions.columns(partition[some])
            self._emission.add(emitted, start, by, arrays, Rows(owners, len(stamps)), held, stamps, numbers[some])

    def _forget(self, state: AggregateState) -> None:
        """Drop the panes whose windows are all closed, with their tuples and expired windows."""

        def wanted(partition: Int64s, pane: Int64s) -> Mask:
            result: Mask = self._grid.windows_of_pane(pane)[1] > state.closed[partition]
            return result

        state.store.keep(wanted(state.store.partition, state.store.pane))
        if self._select.holds:
            state.held.keep(wanted)
        partition, window = state.expired
        if len(partition):
            waiting = window > state.closed[partition]
            state.expired = partition[waiting], window[waiting]

    def _expire(self, state: AggregateState, tick: Tick, emitted: Emitted) -> None:
        """Emit the windows that have timed out."""
        assert self._timeout is not None
        due = state.store.opened <= tick.moment - self._timeout
        at = np.flatnonzero(due)
        if len(at) == 0:
            return
        partition, window = state.store.partition[at], state.store.pane[at]
        order = np.lexsort((partition, self._starts(state, partition, window)))
        partition, window = partition[order], window[order]
        self._emit(state, partition, window, at[order], np.full(len(at), tick.number), emitted)
        if self._select.holds:
            gone = (partition, window)

            def wanted(partitions: Int64s, panes: Int64s) -> Mask:
                mine, theirs = composites(gone, (partitions, panes))
                return ~np.isin(theirs, mine)

            state.held.keep(wanted)
        state.store.keep(~due)
        state.expired = (
            np.concatenate([state.expired[0], partition]),
            np.concatenate([state.expired[1], window]),
        )

    def _starts(self, state: AggregateState, partition: Int64s, window: Int64s) -> Values:
        start = self._grid.start(window)
        return start + state.origin[partition] if self._align else start

    def _finish(self, state: AggregateState, number: int, now: int, emitted: Emitted) -> Iterator[Emitted]:
        # Unfinished windows by tuple number are dropped.
        if len(state.store) and not self._order.numbered:
            partition, window, at = self._open_windows(state, state.closed, np.full(len(state.store), -NEVER))
            order = np.lexsort((partition, self._starts(state, partition, window)))
            for start in range(0, len(order), ROWS):
                some = order[start : start + ROWS]
                emitted = Emitted()
                self._emit(state, partition[some], window[some], at[some], np.full(len(some), number), emitted)
                yield emitted
        state.store.keep(np.zeros(len(state.store), np.bool_))
        state.held = HeldTuples(self._select.held_types, self._order.dtype)

    def _saved(self, state: AggregateState) -> tuple[dict[str, Any], dict[str, Any]]:
        count = state.order.partitions.count
        state.grow()
        arrays = {
            **state.order.dump(),
            **{name: getattr(state, name)[:count] for name in _BY_PARTITION},
            "expired.partition": state.expired[0],
            "expired.window": state.expired[1],
            **state.store.dump(),
        }
        if self._select.holds:
            arrays.update(state.held.dump())
        return {"op": "aggregate"}, arrays

    def _restore(self, state: AggregateState, meta: dict[str, Any], arrays: dict[str, Any]) -> None:
        state.order.restore(arrays)
        for name in _BY_PARTITION:
            setattr(state, name, arrays[name])
        state.expired = arrays["expired.partition"], arrays["expired.window"]
        state.store.restore(arrays)
        if self._select.holds:
            state.held.restore(arrays)
