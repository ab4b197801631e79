"""BSort: a bounded sort with a buffer of slack + 1 tuples per partition.

After each arrival the buffer holds the slack largest tuples seen, so the tuple that leaves at an arrival is the one
that `slack` passes of a bubble sort pass on there (order.py), or, where the slack is large, the one that leaves a heap
of that size. NULL is smaller than every value; among equals, the first to arrive is the smallest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappush, heappushpop
from typing import Any

import numpy as np

from headway.boxes.bsort import BSort
from headway.columns import Indices, Int64s
from headway.expressions import Functions
from headway.kernels.codec import pack_train, unpack_train
from headway.kernels.kernel import Kernel, Result, Tables
from headway.kernels.order import bubble_pass, by_code, is_deep
from headway.kernels.partitions import Partitions
from headway.network.schema import Schema
from headway.trains import Train, join_trains


@dataclass(slots=True)
class BSortState:
    """The buffers of all partitions: tuples in the order of their arrival, and the partition of each."""

    partitions: Partitions
    buffer: Train
    codes: Int64s


class BSortKernel(Kernel):
    """The running BSort."""

    def __init__(
        self, spec: BSort, box: str, schemas: Sequence[Schema], tables: Tables, functions: Functions | None
    ) -> None:
        super().__init__(spec, box, schemas, tables, functions)
        (self._schema,) = schemas
        self._on = None if spec.order.numbered else self._schema.index(spec.order.on)
        # By tuple number the input is sorted already, and the buffer only delays it.
        self._slack = spec.order.slack
        self._by = tuple(self._schema.index(name) for name in spec.order.by)

    def initial(self) -> BSortState:
        """Return empty buffers."""
        partitions = Partitions([self._schema.types[at] for at in self._by])
        return BSortState(partitions, Train.empty(self._schema), np.zeros(0, np.int64))

    def run(self, state: BSortState, trains: Sequence[Train], now: int) -> tuple[BSortState, Result]:
        """Process a train; one tuple leaves for each that finds its partition's buffer full."""
        (train,) = trains
        codes = state.partitions.codes([train.columns[at] for at in self._by], len(train))
        if self._slack == 0:
            return state, Result((train,))
        held = len(state.codes)
        both = join_trains([state.buffer, train]) if held else train
        codes = np.concatenate([state.codes, codes])
        leaving, cause, staying = self._pass(both, codes)
        numbers = both.numbers[cause]
        # Tuples from the buffer cannot be causes in this call: their arrival numbers are from earlier ones.
        assert len(cause) == 0 or int(cause.min()) >= held
        if train.end:
            rest = staying[np.argsort(_ranks(both, self._on)[staying])]
            leaving = np.concatenate([leaving, rest])
            numbers = np.concatenate([numbers, np.full(len(rest), train.progress)])
            staying = staying[:0]
        out = both.take(leaving)
        output = Train(out.columns, out.stamps, numbers, train.progress, train.ticks, train.end)
        kept = both.take(staying)
        state.buffer = Train(kept.columns, kept.stamps, kept.numbers)
        state.codes = codes[staying]
        return state, Result((output,))

    def _pass(self, both: Train, codes: Int64s) -> tuple[Indices, Indices, Indices]:
        """Return the tuples that leave, the arrival at which each does, and the tuples that stay, in arrival order."""
        count = len(codes)
        if count == 0:
            none = np.zeros(0, np.intp)
            return none, none, none
        ranks = _ranks(both, self._on)
        back = np.empty(count, np.intp)
        back[ranks] = np.arange(count)
        if is_deep(self._slack):
            left_ranks, causes, kept = self._by_heaps(codes, ranks)
            return back[left_ranks], causes, np.sort(back[kept])
        order, starts, lengths = by_code(codes)
        nothing = np.repeat(np.arange(len(starts)), lengths) * (count + 1)
        moving = nothing + 1 + ranks[order]
        ends = starts + lengths - 1
        stay: list[Int64s] = []
        for _ in range(self._slack):
            largest, moving = bubble_pass(moving, starts, nothing[starts])
            last = largest[ends]
            stay.append((last - nothing[ends] - 1)[last > nothing[ends]])
        left = moving > nothing
        leaving_rank = (moving - nothing - 1)[left]
        cause = order[left]
        by_arrival = np.argsort(cause)
        staying = np.sort(back[np.concatenate(stay)])
        return back[leaving_rank][by_arrival], cause[by_arrival], staying

    def _by_heaps(self, codes: Int64s, ranks: Int64s) -> tuple[Int64s, Indices, Int64s]:
        """Return the ranks of the tuples that leave, the arrival at which each does, and the ranks of the others."""
        buffers: dict[int, list[int]] = {}
        leaving: list[int] = []
        cause: list[int] = []
        for at, (code, rank) in enumerate(zip(codes.tolist(), ranks.tolist(), strict=True)):
            buffer = buffers.setdefault(code, [])
            if len(buffer) < self._slack:
                heappush(buffer, rank)
            else:
                leaving.append(heappushpop(buffer, rank))
                cause.append(at)
        staying = np.array([rank for buffer in buffers.values() for rank in buffer], np.int64)
        return np.array(leaving, np.int64), np.array(cause, np.intp), staying

    def _saved(self, state: BSortState) -> tuple[dict[str, Any], dict[str, Any]]:
        buffer = pack_train("column", state.buffer, self._schema.types)
        return {"op": "bsort"}, {"codes": state.codes, **buffer, **state.partitions.dump()}

    def _restore(self, state: BSortState, meta: dict[str, Any], arrays: dict[str, Any]) -> None:
        state.partitions.restore(arrays)
        state.buffer = unpack_train("column", arrays, len(self._schema))
        state.codes = arrays["codes"]


def _ranks(train: Train, on: int | None) -> Int64s:
    """Return each tuple's place in the order (value, arrival), NULL first."""
    ranks = np.arange(len(train))
    if on is None:
        return ranks
    column = train.columns[on]
    if column.valid is None:
        order = np.argsort(column.values, kind="stable")
    else:
        order = np.lexsort((np.where(column.valid, column.values, 0), column.valid))
    ranks[order] = np.arange(len(train))
    return ranks
