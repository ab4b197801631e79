"""The tasks of executors: read a part of the log and run the front over it, or run a shard over its trains.

A unit's kernels are compiled in the process that runs them. They know nothing of Spark: the front turns trains of
sources into rows, a shard turns rows and a saved state into rows and a new state. So both can be tested, at any cut,
without a cluster.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from headway.checking import CheckedNetwork, check
from headway.clock import stopwatch
from headway.costs import default_arcs
from headway.engines.dead_letters import letter_rows
from headway.engines.spark.wire.messages import (
    MARKS,
    Lane,
    Marks,
    Ranks,
    Row,
    TaskReport,
    Work,
    merge_rows,
    pack,
    pack_counts,
    receive,
    send,
    to_arrow_rows,
    to_rows,
)
from headway.engines.spark.worker.memory import prepare
from headway.engines.spark.worker.sharding import shard_keys, shards_of
from headway.engines.spark.worker.source import Pickled, Task
from headway.engines.spark.worker.states import ShardStates
from headway.errors import RunError
from headway.kernels.kernel import Kernel
from headway.kernels.results import whole
from headway.program import compile_program
from headway.sieves import DropBox, KeptShares, Sieve
from headway.storage.checked import RESTORE, bulk_checksum, read_table
from headway.storage.segments import LogSlice, read_slice
from headway.structure import owner
from headway.trains import Train, join_trains

if TYPE_CHECKING:
    import pandas as pd

_PIECE = 1 << 18
"""Tuples that pass the front at a time: a column of them takes two megabytes."""
_LARGE = 1 << 20
"""Size in bytes above which a train ends its record batch."""


def read_task(work: Pickled[Work], task: Task) -> Iterator[pa.RecordBatch]:
    """Read a task's slices and run the front over them, unless Spark does that by a native plan."""
    prepare()
    code = unit_code(work)
    parts: dict[str, list[Train]] = {}
    for fields in task.slices:
        one = LogSlice(*fields)
        parts.setdefault(one.source, []).append(read_slice(one, code.checked.arcs[one.source]))
    readings = TaskReport()
    for source, sieve in (task.sieves or {}).items():
        if source in parts:  # before anything else, so that dropped tuples cost no more work
            drop = DropBox(Sieve.of(sieve))
            parts[source] = [drop.sift(train) for train in parts[source]]
            dropped = drop.dropped.total()
            readings.sifted[source] = [drop.passed + dropped, dropped, drop.reason]
    plan = code.work.native
    if plan is not None:
        for source, trains in parts.items():
            for train in trains:
                yield plan.scan_batch(source, train)
        return
    schemas = {name: code.checked.arcs[name] for name in code.work.unit.sources}
    trains_of = {
        name: join_trains(parts[name]) if name in parts else Train.empty(schema) for name, schema in schemas.items()
    }
    rows: list[Row] = []
    if task.marks is not None and code.work.unit.stateful:
        progress, ticks, end, *more = task.marks
        rows += code.marks(Marks.of([progress, ticks, end, task.now, *more]))
    if readings.sifted:
        rows += code.report(readings, task.number)
    for piece in pieces(trains_of):
        for row in code.front(piece, task.now, task.number):
            rows.append(send(row, code.work.exchange))
            if len(rows[-1].train) > _LARGE:
                yield to_arrow_rows(rows)
                rows = []
    if rows:
        yield to_arrow_rows(rows)


def pieces(trains: Mapping[str, Train]) -> Iterator[dict[str, Train]]:
    """Cut the trains of several sources at the same arrival numbers, so that the front's results stay small."""
    longest = max(trains.values(), key=len)
    edges = [int(longest.numbers[at]) for at in range(_PIECE, len(longest), _PIECE)]
    cuts = {name: [0, *np.searchsorted(one.numbers, edges).tolist(), len(one)] for name, one in trains.items()}
    for at in range(len(edges) + 1):
        yield {name: one.slice(cuts[name][at], cuts[name][at + 1]) for name, one in trains.items()}


def run_shard(
    work: Pickled[Work], key: int, frames: Iterable[pd.DataFrame], saved: bytes | None
) -> tuple[pd.DataFrame, bytes | None]:
    """Run a shard over the rows of a micro-batch; return rows for the driver, and the new state if it changed."""
    prepare()
    code = unit_code(work)
    exchange, lanes = code.work.exchange, code.work.lanes
    arrived = [
        # Rows on lanes to the driver are passed on as they are.
        row if row.lane < 0 or lanes[row.lane].out else receive(row, exchange)
        for frame in frames
        for row in to_rows(frame)
    ]
    out, state = code.shard(key, arrived, saved)
    return to_arrow_rows([send(row, exchange) for row in out]).to_pandas(), state


_LONGEST = 1 << 20
"""The most tuples of one packed train, so that rows stay within the limits of Arrow and Spark."""


@dataclass(frozen=True)
class _Call:
    """One kernel call: a box, or fused filters and maps."""

    boxes: tuple[str, ...]
    kernel: Kernel
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    spread: bool
    """Whether every shard runs it for some of the partitions, so that its results need ranks."""
    shard: int | None
    waits: bool
    """Whether it has a timeout."""


class UnitCode:
    """All kernels of a unit."""

    def __init__(self, work: Work) -> None:
        """Check and compile the network."""
        tables = {ref: read_table(path) for ref, path in work.tables.items()}
        self.checked: CheckedNetwork = check(work.network, work.functions, tables)
        self.work = work
        unit = work.unit
        self._program = compile_program(self.checked, frozenset(unit.boxes), frozenset(lane.arc for lane in work.lanes))
        self._keys = shard_keys(work.shards)
        self._kernels = self._program.kernels(tables)
        self._front = {box.index for box in self._program.boxes if unit.placements[box.name].front}
        front, inner = sorted(self._front), [at.index for at in self._program.boxes if at.index not in self._front]
        self._front_calls = [self._call(part, front) for part in self._program.chains(front)]
        self._inner_calls = [self._call(part, inner) for part in self._program.chains(inner)]
        self._shard_kernels = {call.boxes[0]: call.kernel for call in self._inner_calls}
        self._front_states = {call.boxes[0]: call.kernel.initial() for call in self._front_calls}
        self._made = {name for call in self._inner_calls for name in call.outputs}
        self._divided = {owner(arc): arc for arc in reversed(default_arcs(self.checked))}
        """By box of which several ports are read, here or in other units: the arc of its first port."""
        self._hashed = {(lane.arc, lane.by) for lane in work.lanes if lane.by}
        self._columns = {lane.number: self._sent(lane) for lane in work.lanes}

    # Compiling

    def _call(self, part: tuple[int, ...], within: Sequence[int]) -> _Call:
        program = self._program
        first, last = program.boxes[part[0]], program.boxes[part[-1]]
        kernel = self._kernels[first.index]
        if first.fusible:
            kernel = program.fuse(part, program.wanted(last.index, within, self._kernels))
        place = self.work.unit.placements[first.name]
        return _Call(
            tuple(program.boxes[at].name for at in part),
            kernel,
            first.inputs,
            program.arcs_of(last)[: len(last.ports)],
            place.spread and bool(first.spec.partitions),
            place.shard,
            first.spec.timeout is not None,
        )

    def _sent(self, lane: Lane) -> tuple[int, ...] | None:
        """Return the columns that a lane to shards must carry; None for all."""
        if lane.out:
            return None
        needed: set[int] = set()
        for reader in self._program.readers[lane.arc]:
            if reader in self._front:
                continue
            mine = self._program.needs(reader, self._kernels)
            if mine is None:
                return None
            needed |= mine
        return tuple(sorted(needed))

    # Running

    def front(self, trains: Mapping[str, Train], now: int, task: int) -> Iterable[Row]:
        """Run the front over one range of arrival numbers of all the unit's sources, and yield rows."""
        readings = TaskReport()
        arcs: dict[str, Train] = dict(trains)
        for call in self._front_calls:
            state = self._front_states[call.boxes[0]]
            inputs = [arcs[name] for name in call.inputs]
            if not any(len(train) for train in inputs):
                arcs.update({name: Train.empty(self.checked.arcs[name]) for name in call.outputs})
                continue
            _, outputs = self._run(call, state, inputs, now, readings)
            arcs.update(zip(call.outputs, outputs, strict=False))
        for lane in self.work.lanes:
            train = arcs.get(lane.arc)
            if train is not None and len(train):
                yield from self._send(lane, train, task)
        yield from self.report(readings, task)

    def report(self, readings: TaskReport, task: int) -> list[Row]:
        """Return a task's report as rows for the driver."""
        return readings.rows(self._keys[task % len(self._keys)], False)

    def marks(self, marks: Marks) -> list[Row]:
        """Return the rows that tell all shards of progress, ticks and the end."""
        data = json.dumps(marks).encode()
        return [Row(key, MARKS, marks.progress, data) for key in self._keys]

    def shard(self, key: int, rows: Iterable[Row], saved: bytes | None) -> tuple[list[Row], bytes | None]:
        """Run a shard over the rows of a micro-batch; return rows for the driver, and its state if it changed."""
        shard = self._keys.index(key)
        marks: Marks | None = None
        out: list[Row] = []
        by_lane: dict[int, list[Row]] = {}
        lanes = self.work.lanes
        for row in rows:
            if row.lane == MARKS:
                marks = Marks.of(json.loads(bytes(row.train)))
            elif row.lane < 0 or lanes[row.lane].out:
                out.append(row)
            else:
                by_lane.setdefault(row.lane, []).append(row)
        if marks is None:
            raise RunError(f"unit '{self.work.unit.name}': a micro-batch without its marks")
        if not by_lane and not marks.ticks and not marks.end and not marks.flush:
            return out, None
        readings = TaskReport()
        for kernel in self._shard_kernels.values():
            kernel.weigh_by(KeptShares.of(marks.kept))
        arcs = self._receive(shard, by_lane, marks)
        expected = dict(marks.states).get(key)
        if expected is not None and (saved is None or bulk_checksum(saved) != expected):  # whatever happened since
            what = "missing" if saved is None else "damaged"
            raise RunError(
                f"the state of shard {shard} of '{self.work.unit.name}' is {what}: a file under "
                f"checkpoints/*/state/0/{shard} is not the one that was written; {RESTORE}"
            )
        states = ShardStates(saved, self._shard_kernels, self.work.prints)
        ranks: dict[str, Ranks] = {}
        for call in self._inner_calls:
            if call.shard is not None and call.shard != shard:
                continue
            inputs = [arcs.get(self._arc_for(call, name)) for name in call.inputs]
            trains = [
                one if one is not None else Train.empty(self.checked.arcs[name], marks.progress, marks.ticks, marks.end)
                for one, name in zip(inputs, call.inputs, strict=True)
            ]
            name = call.boxes[0]
            if name in marks.flush:
                trains = [_ending(one, True) for one in trains]
            if not any(len(train) for train in trains) and not marks.ticks and not marks.ends(name):
                if call.waits:  # it still waits for its tick
                    readings.wish(call.kernel.deadline(states.get(name)))
                continue
            state = states.get(name)
            source = next((ranks[one] for one in call.inputs if one in ranks), None)
            if source is not None:
                outputs = self._run_ranked(call, state, trains, source, marks.now, readings, ranks)
            else:
                state, outputs = self._run(call, state, trains, marks.now, readings)
                states.put(name, state)
                if call.spread:
                    ranks[call.outputs[0]] = call.kernel.ranks(state, outputs[0])
            if marks.flush and not marks.end:  # whoever reads them goes on
                outputs = tuple([_ending(one, False) for one in outputs])
            arcs.update(zip(call.outputs, outputs, strict=False))
            readings.wish(call.kernel.deadline(state))
        for lane in lanes:
            train = arcs.get(lane.arc) if lane.out and lane.arc in self._made else None
            if train is not None and len(train):
                out += self._pack(lane, train, key, ranks.get(lane.arc))
        blob = states.dump()
        readings.state = None if blob is None else bulk_checksum(blob)
        out += readings.rows(key, True)
        return out, blob

    def _arc_for(self, call: _Call, arc: str) -> str:
        """Return the key under which a call finds an arc: lanes spread by hash are distinguished by their fields."""
        place = self.work.unit.placements[call.boxes[0]]
        return f"{arc}\0{place.by}" if (arc, place.by) in self._hashed else arc

    def _receive(self, shard: int, by_lane: Mapping[int, list[Row]], marks: Marks) -> dict[str, Train]:
        arcs: dict[str, Train] = {}
        for lane in self.work.lanes:
            if not lane.out and lane.shard in (None, shard):
                schema, rows = self.checked.arcs[lane.arc], by_lane.get(lane.number)
                one = merge_rows(rows, schema) if rows else Train.empty(schema)
                one = Train(one.columns, one.stamps, one.numbers, marks.progress, marks.ticks, marks.end)
                arcs[f"{lane.arc}\0{lane.by}" if lane.by else lane.arc] = one
        return arcs

    def _run(
        self, call: _Call, state: Any, trains: Sequence[Train], now: int, readings: TaskReport
    ) -> tuple[Any, tuple[Train, ...]]:
        begun = stopwatch()
        state, result = call.kernel.run(state, trains, now)
        result = whole(result)
        spent = stopwatch() - begun
        tuples_in = sum(len(train) for train in trains)
        tuples_out = sum(len(train) for train in result.outputs)
        counts = (*result.counts, tuples_out) if len(call.boxes) > 1 else (tuples_in, tuples_out)
        weight = max(1, sum(counts[:-1]))
        size = sum(train.nbytes for train in trains) / max(1, tuples_in)
        for at, name in enumerate(call.boxes):
            taken, made = counts[at], counts[at + 1]
            if name in self._divided and (at + 1 < len(call.boxes) or len(call.outputs) == 1):
                # This unit reads only the first port. The box counts the tuples of all, as it does on other engines.
                readings.divide(self._divided[name], taken, made)
                made = taken - sum(len(letter.train) for letter in result.dead if letter.box == name)
            share = taken / weight if len(call.boxes) > 1 else 1.0
            ignored = 0 if at else result.ignored
            readings.note(name, taken, made, int(spent * share), int(size * taken), ignored)
        for arc, output in zip(call.outputs, result.outputs, strict=False) if len(call.outputs) > 1 else ():
            readings.divide(arc, tuples_in, len(output))
        readings.letters += [row for one in result.dead for row in letter_rows(one)]
        return state, result.outputs

    def _run_ranked(
        self,
        call: _Call,
        state: Any,
        trains: Sequence[Train],
        source: Ranks,
        now: int,
        readings: TaskReport,
        ranks: dict[str, Ranks],
    ) -> tuple[Train, ...]:
        """Run filters and maps after a spread box, so that each tuple keeps its rank."""
        (train,) = trains
        places = np.arange(len(train), dtype=np.int64)
        _, outputs = self._run(call, state, [Train(train.columns, train.stamps, places)], now, readings)
        found = []
        for name, output in zip(call.outputs, outputs, strict=False):
            at = output.numbers
            ranks[name] = source[0][at], source[1][at]
            found.append(
                Train(output.columns, output.stamps, train.numbers[at], train.progress, train.ticks, train.end)
            )
        return tuple(found)

    def _send(self, lane: Lane, train: Train, task: int) -> Iterable[Row]:
        if lane.out:
            yield from self._pack(lane, train, self._keys[task % len(self._keys)])
        elif lane.shard is not None:
            yield from self._pack(lane, train, self._keys[lane.shard])
        else:
            schema = self.checked.arcs[lane.arc]
            columns = [train.columns[schema.index(name)] for name in lane.by]
            shards = shards_of(columns, len(train), self.work.shards)
            for shard, key in enumerate(self._keys):
                at = np.flatnonzero(shards == shard)
                if len(at):
                    yield from self._pack(lane, train.take(at), key)

    def _pack(self, lane: Lane, train: Train, key: int, ranks: Ranks | None = None) -> Iterable[Row]:
        if lane.counted:
            yield Row(key, lane.number, int(train.numbers[0]), pack_counts(train))
            return
        schema, columns = self.checked.arcs[lane.arc], self._columns[lane.number]
        for start in range(0, len(train), _LONGEST):
            stop = min(start + _LONGEST, len(train))
            piece = train if len(train) <= _LONGEST else train.slice(start, stop)
            mine = None if ranks is None else (ranks[0][start:stop], ranks[1][start:stop])
            yield Row(key, lane.number, int(piece.numbers[0]), pack(piece, schema, columns, mine))


def _ending(train: Train, end: bool) -> Train:
    """Return a train that is the last one of its stream, or not."""
    made = Train(train.columns, train.stamps, train.numbers, train.progress, train.ticks, end)
    made.base, made.memo = train.base, train.memo
    return made


_MOST_COMPILED = 128
_compiled: dict[str, UnitCode] = {}
"""The least recently used first. Some may be left from earlier runs, as processes are reused."""


def unit_code(work: Pickled[Work]) -> UnitCode:
    """Return a unit's kernels, compiled once per process."""
    found = _compiled.pop(work.key, None) or UnitCode(work.open())
    _compiled[work.key] = found
    if len(_compiled) > _MOST_COMPILED:
        del _compiled[next(iter(_compiled))]
    return found
