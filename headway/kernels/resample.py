"""Resample: for each tuple of the first stream, a window function over the second stream around it.

A pair (tuple t of the first, partition p of the second) is answered when the frontier of p has passed t.A + size, or
when t arrives if it has passed before. Within a call all pairs are processed together: the moment a frontier passed a
value is found by binary search in its steps. Where a train has a tuple of a new partition it is cut, because a tuple
that every known partition had passed by then is gone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headway.boxes.resample import Resample
from headway.columns import NEVER, Column, Int64s, Values, empty
from headway.expressions import Functions
from headway.kernels.codec import pack_columns, under, unpack_columns
from headway.kernels.grid import band, horizon
from headway.kernels.groups import KeyIndex, close_pairs
from headway.kernels.kernel import Kernel, Result, Tables
from headway.kernels.order import OrderedInput, OrderState, lowest, order_dtype
from headway.kernels.results import ROWS, Emission, Emitted, evaluate, in_pieces, portions
from headway.kernels.selects import CompiledSelect, Rows
from headway.network.schema import Schema
from headway.trains import Aligned, Train, arrival_places, common_marks

_NONE: Int64s = np.zeros(0, np.int64)
_BEATS = ("values", "stamps", "places")
_READINGS = ("partition", "values", "stamps")


@dataclass(slots=True)
class Beats(Aligned):
    """Tuples of the first stream that some partition has not answered yet."""

    values: Values
    stamps: Int64s
    places: Int64s


@dataclass(slots=True)
class Samples(Aligned):
    """In-order tuples of the second stream that may still be needed, with the columns that the select list reads."""

    partition: Int64s
    values: Values
    stamps: Int64s
    columns: tuple[Column, ...]


@dataclass(slots=True)
class NewSamples(Samples):
    """The in-order tuples of the second stream in one call, with the frontier after each (`steps`)."""

    steps: Values
    places: Int64s

    def passed(self, partition: Int64s, ends: Values) -> Int64s:
        """Return the place of the tuple that moved each partition's frontier beyond an end, NEVER if none did."""
        if len(self) == 0:
            return np.full(len(ends), NEVER)
        order = np.lexsort((self.places, self.partition))
        index = KeyIndex.of(self.partition, self.steps)
        numbers, wanted = index.numbers[order], index.above(partition, ends)
        at = np.minimum(np.searchsorted(numbers, wanted), len(numbers) - 1)
        found = (numbers[at] >= wanted) & (self.partition[order][at] == partition)
        return np.where(found, self.places[order][at], NEVER)


@dataclass(slots=True)
class ResampleState:
    """Both sides' partitions and frontiers, and the tuples that wait."""

    orders: tuple[OrderState, OrderState]
    beats: Beats
    samples: Samples
    settled: Values  # per partition of the second stream: its frontier
    place: int
    known: int  # partitions of the second stream that have appeared


class ResampleKernel(Kernel):
    """The running Resample."""

    def __init__(
        self, spec: Resample, box: str, schemas: Sequence[Schema], tables: Tables, functions: Functions | None
    ) -> None:
        super().__init__(spec, box, schemas, tables, functions)
        one, two = schemas
        self._dtype = order_dtype(*zip(schemas, spec.orders, strict=True))
        self._orders = (OrderedInput(one, spec.orders[0], self._dtype), OrderedInput(two, spec.orders[1], self._dtype))
        self._size: Any = np.array(spec.distance(one, two), self._dtype)[()]
        self._select = CompiledSelect(spec.results(schemas[1], functions), in_order=True, whole=True, hold_all=True)
        (self._output,) = spec.infer(box, schemas, functions)
        self._emission = Emission(box, self._select, self._output, self._orders[1].by_types, order_last=True)

    def initial(self) -> ResampleState:
        """Return a state in which nothing waits."""
        none = np.zeros(0, np.int64)
        values = np.zeros(0, self._dtype)
        return ResampleState(
            (self._orders[0].initial(), self._orders[1].initial()),
            Beats(values, none, none),
            Samples(none, values, none, tuple(empty(t) for t in self._select.held_types)),
            values,
            0,
            0,
        )

    def run(self, state: ResampleState, trains: Sequence[Train], now: int) -> tuple[ResampleState, Result]:
        """Process both trains in arrival order and answer the pairs that can be answered; many of them in pieces."""
        # A tuple of the first stream may be answered by every partition, one of the second may answer all that wait.
        step = max(1, ROWS // max(1, state.known, len(state.beats)))
        return state, in_pieces(self._run, state, trains, step)

    def _run(self, state: ResampleState, trains: Sequence[Train]) -> Result:
        emitted = Emitted()
        first, second = trains
        numbers = np.sort(np.concatenate([first.numbers, second.numbers]))
        places = state.place + arrival_places(trains)
        base, state.place = state.place, state.place + len(places)
        _, values, _, at, late = self._orders[0].admit(state.orders[0], first)
        emitted.ignored += late
        beats = Beats(values, first.stamps, places[: len(first)])
        if at is not None:
            beats = Beats(values, first.stamps[at], places[at])
        new, met = self._samples(state, second, places[len(first) :], emitted)
        for lower, upper, known in self._cuts(state, beats, met, base):
            state.known = known
            ours = beats.keep((beats.places >= lower) & (beats.places < upper))
            theirs = new.keep((new.places >= lower) & (new.places < upper))
            self._answer(state, ours, theirs, base, numbers, emitted)
        self._prune(state)
        cause = common_marks(trains)
        flushed = self._flush(state, second.progress) if cause.end else None
        return emitted.result(self._output, cause, flushed)

    def _samples(
        self, state: ResampleState, train: Train, places: Int64s, emitted: Emitted
    ) -> tuple[NewSamples, Int64s]:
        """Return the new samples, and the places where partitions appear for the first time."""
        train, computed, chosen = evaluate(self._select.inputs, train, self._schemas[1], self._box, emitted.dead)
        before, places = state.known, places[chosen]
        # A partition is known from its first tuple, even if that one is not in order.
        everyone = self._orders[1].codes(state.orders[1], train)
        codes, values, steps, kept, late = self._orders[1].admit(state.orders[1], train)
        emitted.ignored += late
        at = np.arange(len(train)) if kept is None else kept
        missing = state.orders[1].partitions.count - len(state.settled)
        state.settled = np.concatenate([state.settled, np.full(missing, lowest(self._dtype), self._dtype)])
        fresh = np.flatnonzero(everyone >= before)
        first = np.unique(everyone[fresh], return_index=True)[1]
        columns = tuple(column.take(at) for column in self._select.held_columns(computed))
        return NewSamples(codes, values, train.stamps[at], columns, steps, places[at]), places[fresh[first]]

    def _cuts(self, state: ResampleState, beats: Beats, met: Int64s, base: int) -> list[tuple[int, int, int]]:
        """Return the pieces of this call as (from place, to place, partitions known)."""
        if len(beats) == 0 and len(state.beats) == 0:
            return [(base, state.place, state.known + len(met))]
        cuts = [base, *met.tolist(), state.place]
        known = state.known + np.arange(len(cuts) - 1)
        return [(a, b, int(k)) for a, b, k in zip(cuts, cuts[1:], known, strict=False) if b > a]

    def _answer(
        self,
        state: ResampleState,
        beats: Beats,
        new: NewSamples,
        base: int,
        numbers: Int64s,
        emitted: Emitted,
    ) -> None:
        """Process a piece in which the known partitions stay the same."""
        if len(new):
            both = Samples.joined([state.samples, new])
            state.samples = both.take(np.lexsort((both.values, both.partition)))
        before = state.settled.copy()
        np.maximum.at(state.settled, new.partition, new.steps)
        all_beats = Beats.joined([state.beats, beats])
        count, known = len(all_beats), state.known
        if count and known:
            ends = horizon(all_beats.values, self._size)
            old = len(state.beats)
            moved = np.unique(new.partition)
            asked = (
                self._asked(np.arange(old), moved, before, ends, all_beats, new, True),
                self._asked(np.arange(old, count), np.arange(known), before, ends, all_beats, new, False),
            )
            beat, partition, cause = (np.concatenate(parts) for parts in zip(*asked, strict=True))
            if len(beat):
                order = np.lexsort((partition, all_beats.places[beat], all_beats.values[beat], cause))
                chosen = all_beats.take(beat[order])
                self._emit(state, chosen, partition[order], numbers[cause[order] - base], emitted)
            frontier = state.settled[:known].min()
            all_beats = all_beats.keep(ends >= frontier)
        state.beats = all_beats

    def _asked(
        self,
        beats: Int64s,
        partitions: Int64s,
        before: Values,
        ends: Values,
        all_beats: Beats,
        new: NewSamples,
        waiting: bool,
    ) -> tuple[Int64s, Int64s, Int64s]:
        """Return the pairs that this piece answers: beat, partition, and the place of the tuple that caused it.

        `waiting` beats come from earlier pieces: partitions that had passed them then have answered. Pairs are
        processed in pieces, because most of them are not answered and all at once might not fit into memory.
        """
        found: list[tuple[Int64s, Int64s, Int64s]] = [(_NONE, _NONE, _NONE)]
        for piece in portions(np.full(len(beats), len(partitions))):
            some = beats[piece]
            beat, partition = np.repeat(some, len(partitions)), np.tile(partitions, len(some))
            passed_before = before[partition] > ends[beat]
            cause = np.where(passed_before, -1, new.passed(partition, ends[beat]))
            answered = (cause != NEVER) & ~passed_before if waiting else cause != NEVER
            beat, partition, cause = beat[answered], partition[answered], cause[answered]
            found.append((beat, partition, np.maximum(cause, all_beats.places[beat])))
        beat, partition, cause = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return beat, partition, cause

    def _emit(self, state: ResampleState, beats: Beats, partition: Int64s, numbers: Int64s, emitted: Emitted) -> None:
        """Answer pairs, in their order, where the window is not empty."""
        samples = state.samples
        starts, stops = KeyIndex.of(samples.partition, samples.values).within(partition, beats.values, self._size)
        for some in portions(stops - starts + 1):
            owner, at = close_pairs(starts[some], stops[some], beats.values[some], samples.values, self._size)
            chosen, owner = np.unique(owner, return_inverse=True)
            if len(chosen) == 0:
                continue
            rows, chosen = Rows(owner, len(chosen)), chosen + some.start
            stamps = beats.stamps[chosen]
            np.minimum.at(stamps, owner, samples.stamps[at])
            columns = tuple(column.take(at) for column in samples.columns)
            by = state.orders[1].partitions.columns(partition[chosen])
            self._emission.add(emitted, beats.values[chosen], by, [], rows, columns, stamps, numbers[chosen])

    def _flush(self, state: ResampleState, number: int) -> Iterator[Emitted]:
        """Answer all waiting pairs, sorted by beat, then by partition."""
        count, known = len(state.beats), state.known
        ends = horizon(state.beats.values, self._size)
        order = np.lexsort((state.beats.places, state.beats.values))
        step = max(1, ROWS // max(1, known))
        for start in range(0, count, step) if known else ():
            some = order[start : start + step]
            beat, partition = np.repeat(some, known), np.tile(np.arange(known), len(some))
            waiting = state.settled[partition] <= ends[beat]
            beat, partition = beat[waiting], partition[waiting]
            emitted = Emitted()
            self._emit(state, state.beats.take(beat), partition, np.full(len(beat), number), emitted)
            yield emitted
        state.beats = state.beats.take(np.zeros(0, np.int64))

    def _prune(self, state: ResampleState) -> None:
        """Drop samples that no tuple of the first stream can need any more."""
        frontiers = state.orders[0].frontiers
        if self._orders[0].by or len(state.samples) == 0 or len(frontiers) == 0:
            return  # a new partition of the first stream may need any sample
        oldest = frontiers.frontier()[0]
        if len(state.beats):
            oldest = min(oldest, state.beats.values.min())
        _, high = band(state.samples.values, self._size)
        wanted = high >= oldest
        if 2 * int(wanted.sum()) < len(wanted):
            state.samples = state.samples.keep(wanted)

    def _saved(self, state: ResampleState) -> tuple[dict[str, Any], dict[str, Any]]:
        arrays = {
            **{f"beats.{name}": getattr(state.beats, name) for name in _BEATS},
            **{f"readings.{name}": getattr(state.samples, name) for name in _READINGS},
            "settled": state.settled,
            **pack_columns("reading", state.samples.columns, self._select.held_types),
        }
        for side in (0, 1):
            arrays |= {f"{side}.{name}": array for name, array in state.orders[side].dump().items()}
        return {"op": "resample", "place": state.place, "known": state.known}, arrays

    def _restore(self, state: ResampleState, meta: dict[str, Any], arrays: dict[str, Any]) -> None:
        state.place, state.known = meta["place"], meta["known"]
        state.settled = arrays["settled"]
        state.beats = Beats(*[arrays[f"beats.{name}"] for name in _BEATS])
        columns = unpack_columns("reading", arrays, len(self._select.held_types))
        partition, values, stamps = (arrays[f"readings.{name}"] for name in _READINGS)
        state.samples = Samples(partition, values, stamps, columns)
        for side in (0, 1):
            state.orders[side].restore(under(f"{side}.", arrays))
