"""Join: pairs of tuples of two streams within a distance, or of a stream and a static table.

Each side keeps its tuples in runs sorted by (key, order value); runs of similar size are merged, so there are few of
them. An arriving train is sorted once and probes the other side's runs by binary search. A pair is emitted with the
later of its two tuples; by their places in the merged arrival order, every pair comes once and in the same order
however the streams were cut.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from headway.boxes.join import Join, joined
from headway.columns import Column, Int64s, Values, truth
from headway.expressions import Expression, Functions
from headway.kernels.codec import pack_train, under, unpack_train
from headway.kernels.grid import band
from headway.kernels.groups import KeyIndex, close_pairs
from headway.kernels.kernel import Kernel, Result, Tables
from headway.kernels.order import OrderedInput, OrderState, order_dtype
from headway.kernels.partitions import Partitions
from headway.kernels.results import BYTES, PAIRS, Emitted, evaluate, portions
from headway.network.schema import Schema
from headway.trains import Aligned, Train, arrival_places, common_marks, join_trains

_LEAST = 1024
"""The least number of pairs that are processed together, however wide they are."""


@dataclass(slots=True)
class SortedRun(Aligned):
    """Tuples sorted by (key, order value), with their places in the arrival order of both streams."""

    rows: Train
    keys: Int64s
    values: Values
    places: Int64s
    _index: KeyIndex | None = field(default=None, init=False, repr=False)

    def __len__(self) -> int:
        return len(self.keys)  # faster than the inherited one

    def index(self) -> KeyIndex:
        """Return the index of keys and order values; it is cached."""
        if self._index is None:
            self._index = KeyIndex.of(self.keys, self.values)
        return self._index

    @property
    def width(self) -> int:
        """Approximate bytes per tuple."""
        return self.rows.nbytes // max(1, len(self))

    def sorted(self) -> SortedRun:
        """Return the same tuples sorted."""
        return self.take(np.lexsort((self.places, self.values, self.keys)))


Both = tuple[SortedRun, SortedRun]
Held = tuple[tuple[SortedRun, ...], tuple[SortedRun, ...]]


class Meeting(NamedTuple):
    """Two runs to be paired: for each tuple of the shorter one, the range of the longer one that it may match."""

    probe: SortedRun
    table: SortedRun
    swapped: bool
    starts: Int64s
    stops: Int64s


@dataclass(slots=True)
class Side:
    """One side of a join at run time: the tuples that it holds."""

    order: OrderState | None  # None for a static table's side, and for the stream joined with it
    runs: list[SortedRun]
    pruned_at: int = 0  # tuples held after the last pruning

    def add(self, run: SortedRun) -> None:
        """Add tuples; runs of similar size are merged."""
        self.runs.append(run)
        while len(self.runs) > 1 and 2 * len(self.runs[-1]) >= len(self.runs[-2]):
            self.runs[-2:] = [SortedRun.joined(self.runs[-2:]).sorted()]

    def __len__(self) -> int:
        return sum(len(run) for run in self.runs)


@dataclass(slots=True)
class JoinState:
    """Both sides, the numbers of the keys, and the next place in the arrival order."""

    sides: tuple[Side, Side]
    keys: Partitions
    place: int


class JoinKernel(Kernel):
    """The running Join, of two streams or of a stream and a static table."""

    def __init__(
        self, spec: Join, box: str, schemas: Sequence[Schema], tables: Tables, functions: Functions | None
    ) -> None:
        super().__init__(spec, box, schemas, tables, functions)
        left, right = schemas
        self._table_side = next((side for side, table in enumerate(tables) if table is not None), None)
        self._ordered = spec.ordered
        condition = spec.condition(left, right, functions)
        self._keys = (
            tuple(one for one, _ in condition.equalities),
            tuple(other for _, other in condition.equalities),
        )
        self._residual = condition.residual
        results = spec.results(left, right, functions)
        self._results: tuple[Expression, ...] | None = None if results is None else tuple(one for _, one in results)
        (self._output,) = spec.infer(box, schemas, functions)
        # What a dead letter shows when the condition fails on a pair: the fields of both.
        self._pair = joined(left, right)
        self._dtype = order_dtype(*zip(schemas, spec.orders, strict=True))
        self._orders = tuple(
            None if order is None else OrderedInput(schema, order, self._dtype)
            for schema, order in zip(schemas, spec.orders, strict=True)
        )
        size = spec.distance(left, right)
        self._size: Any = None if size is None else np.array(size, self._dtype)[()]
        none = np.zeros(0, np.int64)
        self._nothing = [SortedRun(Train.empty(one), none, np.zeros(0, self._dtype), none) for one in schemas]
        self._partners = self._pruning_partners(condition.names)
        side = self._table_side
        self._static = None if side is None else self._static_rows(side, tables[side])

    def _pruning_partners(self, names: Sequence[tuple[str, str]]) -> tuple[tuple[int, ...] | None, ...]:
        """Return per side the fields that equal the other side's `by` fields; None where pruning is impossible."""
        partners: list[tuple[int, ...] | None] = []
        for side in (0, 1):
            mine, other = self._schemas[side], self._schemas[1 - side]
            equal = {other.index(pair[1 - side]): mine.index(pair[side]) for pair in names}
            order = self._orders[1 - side]
            by = () if order is None else order.by
            found = [equal.get(at) for at in by]
            same = all(
                at is not None and mine.types[at] == other.types[field] for at, field in zip(found, by, strict=True)
            )
            partners.append(tuple(at for at in found if at is not None) if same else None)
        return tuple(partners)

    def _static_rows(self, side: int, table: pa.Table) -> Train:
        """Return the tuples of a static table on which its keys can be evaluated."""
        schema = self._schemas[side]
        batches = table.select(list(schema.names)).cast(schema.to_arrow()).combine_chunks().to_batches()
        rows = Train.from_batch(batches[0]) if batches else Train.empty(schema)
        return evaluate(self._keys[side], rows, schema, self._box, [])[0]

    def initial(self) -> JoinState:
        """Return a state without tuples, except those of a static table."""
        left, right = (Side(None if order is None else order.initial(), []) for order in self._orders)
        keys = Partitions([one.type for one in self._keys[0]])
        state = JoinState((left, right), keys, 0)
        if self._static is not None:
            side, state.place = self._table_side or 0, len(self._static)
            values, places = np.zeros(state.place, self._dtype), np.arange(state.place)
            state.sides[side].runs.append(self._keyed(keys, side, self._static, values, places))
        return state

    def run(self, state: JoinState, trains: Sequence[Train], now: int) -> tuple[JoinState, Result]:
        """Pair the new tuples with the old ones and with each other; a static table's side has no new ones."""
        static = self._table_side is not None
        emitted = Emitted()
        places = state.place + (np.arange(len(trains[0])) if static else arrival_places(trains))
        fresh = list(self._nothing)
        begin = 0
        for side, train in zip([side for side in (0, 1) if side != self._table_side], trains, strict=True):
            fresh[side] = self._admit(state, side, train, places[begin : begin + len(train)], emitted)
            begin += len(train)
        held = (tuple(state.sides[0].runs), tuple(state.sides[1].runs))
        if not static:
            state.place += len(places)
            for mine, run in zip(state.sides, fresh, strict=True):
                if len(run):
                    mine.add(run)
            self._prune(state)
        self._shrink_keys(state)
        return state, self._results_of((fresh[0], fresh[1]), held, common_marks(trains), emitted)

    def _codes(self, keys: Partitions, columns: Sequence[Column], count: int) -> Int64s:
        """Return the key of each tuple, -1 where a part of it is NULL, which equals nothing."""
        codes = keys.codes(columns, count)
        for column in columns:
            valid = column.is_valid()
            if not valid.all():
                codes = np.where(valid, codes, -1)
        return codes

    def _admit(self, state: JoinState, side: int, train: Train, places: Int64s, emitted: Emitted) -> SortedRun:
        """Return the tuples that are in order and have a key, sorted."""
        schema, mine = self._schemas[side], state.sides[side]
        rows, columns, kept = evaluate(self._keys[side], train, schema, self._box, emitted.dead)
        keys, places = self._codes(state.keys, columns, len(rows)), places[kept]
        order, values = self._orders[side], np.zeros(len(rows), self._dtype)
        if order is not None and mine.order is not None:
            _, values, _, at, late = order.admit(mine.order, rows)
            emitted.ignored += late
            if at is not None:
                rows, keys, places = rows.take(at), keys[at], places[at]
        return SortedRun(rows, keys, values, places).keep(keys >= 0).sorted()

    def _results_of(self, fresh: Both, held: Held, cause: Train, emitted: Emitted) -> Result:
        """Return the results of a call; all beyond one piece on demand."""
        width = max([run.width for side in held for run in side] + [run.width for run in fresh], default=1)
        most = max(_LEAST, min(PAIRS, BYTES // (2 * width + 16)))
        meetings, pairs = self._meet(fresh, held)
        if pairs <= most:
            self._emit(meetings, emitted)
            return emitted.result(self._output, cause)
        return emitted.result(self._output, cause, self._divide(fresh, held, most), self._ordered)

    def _divide(self, fresh: Both, held: Held, most: int) -> Iterator[Emitted]:
        """Yield the results of new tuples piece by piece: those of the earlier half, then those of the later half.

        For the later half, the earlier one counts as held.
        """
        count = len(fresh[0]) + len(fresh[1])
        meetings, pairs = self._meet(fresh, held)
        if count <= 1 or pairs <= most:
            emitted = Emitted()
            self._emit(meetings, emitted)
            yield emitted
            return
        middle = np.partition(np.concatenate([fresh[0].places, fresh[1].places]), count // 2)[count // 2]
        before = (fresh[0].keep(fresh[0].places < middle), fresh[1].keep(fresh[1].places < middle))
        after = (fresh[0].keep(fresh[0].places >= middle), fresh[1].keep(fresh[1].places >= middle))
        yield from self._divide(before, held, most)
        if self._table_side is None:
            held = ((*held[0], before[0]), (*held[1], before[1]))
        yield from self._divide(after, held, most)

    def _meet(self, fresh: Both, held: Held) -> tuple[list[Meeting], int]:
        """Return the runs to be paired, new with new and new with held ones, and the number of candidate pairs."""
        meetings, pairs = [], 0
        for left, right in (fresh, *[(run, fresh[1]) for run in held[0]], *[(fresh[0], run) for run in held[1]]):
            if not len(left) or not len(right):
                continue
            probe, table, swapped = (left, right, False) if len(left) <= len(right) else (right, left, True)
            if self._size is not None:
                starts, stops = table.index().within(probe.keys, probe.values, self._size)
            else:
                starts, stops = (np.searchsorted(table.keys, probe.keys, side=side) for side in ("left", "right"))
            count = int((stops - starts).sum())
            if count:
                meetings.append(Meeting(probe, table, swapped, starts, stops))
                pairs += count
        return meetings, pairs

    def _emit(self, meetings: Sequence[Meeting], emitted: Emitted) -> None:
        """Emit the results of runs paired left with right, in their order."""
        parts: list[Train] = []
        order_keys: list[tuple[Int64s, Int64s]] = []
        for meeting in meetings:
            left, right = (meeting.table, meeting.probe) if meeting.swapped else (meeting.probe, meeting.table)
            for some in portions(meeting.stops - meeting.starts):
                starts, stops, around = meeting.starts[some], meeting.stops[some], meeting.probe.values[some]
                owner, at = close_pairs(starts, stops, around, meeting.table.values, self._size)
                owner += some.start
                left_at, right_at = (at, owner) if meeting.swapped else (owner, at)
                part, late, early = self._pair_up(left, left_at, right, right_at, emitted)
                if len(part):
                    parts.append(part)
                    order_keys.append((late, early))
        if not parts:
            return
        late, early = (np.concatenate(keys) for keys in zip(*order_keys, strict=True))
        whole = join_trains(parts).take(np.lexsort((early, late)))
        if self._results is not None:
            whole, values, _ = evaluate(self._results, whole, self._pair, self._box, emitted.dead)
            whole = whole.with_columns(values)
        emitted.parts.append(whole)

    def _pair_up(
        self, left: SortedRun, left_at: Int64s, right: SortedRun, right_at: Int64s, emitted: Emitted
    ) -> tuple[Train, Int64s, Int64s]:
        one, two = left.rows.take(left_at), right.rows.take(right_at)
        places, others = left.places[left_at], right.places[right_at]
        if self._table_side is None:
            stamps, numbers = np.minimum(one.stamps, two.stamps), np.maximum(one.numbers, two.numbers)
            late, early = np.maximum(places, others), np.minimum(places, others)
        else:
            stream = one if self._table_side == 1 else two
            stamps, numbers = stream.stamps, stream.numbers
            late, early = (places, others) if self._table_side == 1 else (others, places)
        pair = Train((*one.columns, *two.columns), stamps, numbers)
        if self._residual is not None:
            pair, (answer,), kept = evaluate((self._residual,), pair, self._pair, self._box, emitted.dead)
            at = np.flatnonzero(truth(answer))
            pair, late, early = pair.take(at), late[kept][at], early[kept][at]
        return pair, late, early

    def _prune(self, state: JoinState) -> None:
        """Drop tuples that can no longer match, whenever a side has about doubled since its last pruning."""
        for side in (0, 1):
            mine, other = state.sides[side], state.sides[1 - side]
            partners = self._partners[side]
            if partners is None or other.order is None or len(mine) <= 2 * mine.pruned_at + 1024:
                continue
            runs = []
            for run in mine.runs:
                codes = other.order.partitions.codes([run.rows.columns[at] for at in partners], len(run))
                other.order.grow()
                frontier = other.order.frontiers.frontier()[codes]
                _, high = band(run.values, self._size)
                kept = run.keep(high >= frontier)
                if len(kept):
                    runs.append(kept)
            mine.runs = runs
            mine.pruned_at = len(mine)

    def _shrink_keys(self, state: JoinState) -> None:
        """Renumber the keys when most of the known ones no longer belong to any tuple."""
        live = len(state.sides[0]) + len(state.sides[1])
        if state.keys.count <= 4 * live + 65_536 or not self._keys[0]:
            return
        state.keys = Partitions([one.type for one in self._keys[0]])
        for side in (0, 1):
            mine = state.sides[side]
            mine.runs = [self._keyed(state.keys, side, run.rows, run.values, run.places) for run in mine.runs]

    def _keyed(self, keys: Partitions, side: int, rows: Train, values: Values, places: Int64s) -> SortedRun:
        """Return the tuples that have a key, sorted; the keys have been evaluated before and cannot fail."""
        columns = [key.evaluate(rows.columns, len(rows)) for key in self._keys[side]]
        codes = self._codes(keys, columns, len(rows))
        return SortedRun(rows, codes, values, places).keep(codes >= 0).sorted()

    def _saved(self, state: JoinState) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the state without a static side."""
        arrays: dict[str, Any] = {}
        for side in (0, 1):
            mine = state.sides[side]
            if side == self._table_side or not mine.runs:
                rows = self._nothing[side]
            else:
                rows = SortedRun.joined(mine.runs).sorted()
            own = {"values": rows.values.astype(self._dtype), "places": rows.places}
            own |= pack_train("column", rows.rows, self._schemas[side].types)
            if mine.order is not None:
                own |= mine.order.dump()
            arrays |= {f"{side}.{name}": array for name, array in own.items()}
        return {"op": "join", "place": state.place}, arrays

    def _restore(self, state: JoinState, meta: dict[str, Any], arrays: dict[str, Any]) -> None:
        state.place = meta["place"]
        for side in (0, 1):
            mine = state.sides[side]
            own = under(f"{side}.", arrays)
            if mine.order is not None:
                mine.order.restore(own)
            if side != self._table_side and len(own["places"]):
                rows = unpack_train("column", own, len(self._schemas[side]))
                mine.runs = [self._keyed(state.keys, side, rows, own["values"], own["places"])]
