"""What travels between driver and workers: the work of units, rows, and trains as bytes in them.

A lane carries a stream from the front to a shard, to all shards by the hash of fields, or out to the driver. Work is
plain data that Spark sends along; kernels are compiled where they run, once per process.

A train is one Arrow IPC stream. Numbers that ascend by a constant step, and stamps that are all equal, as is usual at
the front, travel as two numbers instead of a column.

Large trains travel between tasks as files if driver and executors share a disk. Through Spark, a train is copied some
eight times: to the JVM, into a row, into and out of the shuffle, and back to Python. As a file it is written once and
mapped, and the row carries only the file's name. Files live as long as their micro-batch: they are no longer needed
when the unit asks for its next grant.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headway.columns import UNREAD, Column, Int64s, from_arrow, to_arrow
from headway.engines.dead_letters import LetterRow
from headway.expressions.userfunctions import Functions
from headway.network import Network
from headway.network.schema import Schema
from headway.storage.segments import regular_step, regular_values
from headway.trains import Tick, Train, ascends, constant, is_constant, join_trains

if TYPE_CHECKING:
    from headway.engines.spark.wire.native import NativePlan


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a box runs: in front, in one shard, or, spread by the hash of some fields, in all shards."""

    front: bool
    shard: int | None = None
    by: tuple[str, ...] = ()
    why: str = ""

    @property
    def spread(self) -> bool:
        """Whether every shard runs the box for its share of the partitions."""
        return not self.front and self.shard is None


_LISTS = ("outputs", "sources", "boxes", "relays", "exports", "pasts")


@dataclass(frozen=True, slots=True)
class CutUnit:
    """One streaming query."""

    name: str
    outputs: tuple[str, ...]
    sources: tuple[str, ...]
    boxes: tuple[str, ...]
    """In topological order."""
    placements: Mapping[str, Placement]
    owned: frozenset[str]
    """The boxes for which this unit reports."""
    why: str
    relays: tuple[str, ...] = ()
    """The arcs that it reads from relays, as sources of other names."""
    exports: tuple[str, ...] = ()
    """The arcs that it delivers to relays."""
    pasts: tuple[str, ...] = ()
    """The arcs of which it read history first."""

    @property
    def stateful(self) -> bool:
        """Whether the query has a stateful operator."""
        return any(not placement.front for placement in self.placements.values())

    def to_mapping(self) -> dict[str, Any]:
        """Return plain data, from which `of` makes an equal unit."""
        placements = {name: [one.front, one.shard, list(one.by), one.why] for name, one in self.placements.items()}
        lists = {name: list(getattr(self, name)) for name in _LISTS}
        return {"name": self.name, **lists, "placements": placements, "owned": sorted(self.owned), "why": self.why}

    @classmethod
    def of(cls, mapping: Mapping[str, Any]) -> CutUnit:
        """Return a unit from what `to_mapping` returned."""
        placements = {
            name: Placement(front, shard, tuple(by), why)
            for name, (front, shard, by, why) in mapping["placements"].items()
        }
        lists = {name: tuple(mapping[name]) for name in _LISTS}
        owned = frozenset(mapping["owned"])
        return cls(name=mapping["name"], placements=placements, owned=owned, why=mapping["why"], **lists)


@dataclass(frozen=True, slots=True)
class Lane:
    """A stream between tasks: to shards by the fields in `by`, to one `shard`, or, with neither, to the driver."""

    number: int
    arc: str
    shard: int | None = None
    by: tuple[str, ...] = ()
    counted: bool = False
    """Whether only the number of tuples is sent, because the outputs discard them."""

    @property
    def out(self) -> bool:
        """Whether it leads to the driver."""
        return self.shard is None and not self.by


@dataclass(frozen=True)
class Work:
    """A unit's work, as sent to executors."""

    network: Network
    unit: CutUnit
    shards: int
    lanes: tuple[Lane, ...]
    tables: Mapping[str, str]
    """By ref: the Arrow file of a static table."""
    functions: Functions
    prints: Mapping[str, str]
    """By box in shards: the key of its state, which is another one if the box begins anew."""
    exchange: str | None
    """The folder for large trains, if driver and executors share a disk."""
    run: str
    """Unique per run, so that no process confuses two runs."""
    native: NativePlan | None = None
    """How Spark itself runs the boxes; None if kernels do."""

    @property
    def key(self) -> str:
        """The key under which a process finds compiled work again."""
        return f"{self.run}/{self.unit.name}"


Ranks = tuple[npt.NDArray[np.float64] | Int64s, Int64s]
"""The ranks of a spread box's results: the order value of each tuple, and the arrival number of its partition's first
tuple.

All tuples caused by a clock tick or the end of input have the same arrival number, whichever shard they come from.
Ranks restore the order in which a single shard would have emitted them."""


_MILLISECOND = 1_000_000
_MOST_MOMENTS = 100_000
LETTERS = -1
"""The lane of dead letters, as JSON."""
READINGS = -2
"""The lane of reports by boxes: calls, tuples, time, deadlines, as JSON."""
MARKS = -3
"""The lane that tells shards of progress, ticks and the end, as JSON."""
LARGE = 1 << 16
"""Size in bytes from which a file is cheaper than sending through Spark."""
_MARK = b"@file:"


class Row(NamedTuple):
    """What travels: the key of the shard it is for, the lane, the first arrival number, and bytes."""

    shard: int
    lane: int
    first: int
    train: bytes | pa.Buffer


class Marks(NamedTuple):
    """What a micro-batch carries besides tuples."""

    progress: int
    ticks: tuple[Tick, ...]
    end: bool
    now: int
    kept: tuple[tuple[int, float], ...] = ()
    """Shares of tuples kept, each with the arrival number from which it applies, for boxes that estimate."""
    states: tuple[tuple[int, int], ...] = ()
    """By shard, where it has one: the checksum of its state before this micro-batch."""
    flush: tuple[str, ...] = ()
    """The boxes for which this is the end, because a seam removes them; the others go on."""

    @classmethod
    def of(cls, values: Sequence[Any]) -> Marks:
        """Return marks from their JSON form."""
        progress, ticks, end, now, *more = values
        kept, states = (tuple((one[0], one[1]) for one in some) for some in (*more[:2], (), ())[:2])
        return cls(progress, tuple(Tick(*tick) for tick in ticks), end, now, kept, states, tuple(*more[2:]))

    def ends(self, box: str) -> bool:
        """Return whether this is the end for a box."""
        return self.end or box in self.flush


@dataclass
class TaskReport:
    """A task's report; `boxes` holds calls, tuples in, tuples out, nanoseconds, bytes in and ignored tuples by box."""

    boxes: dict[str, list[int]] = field(default_factory=dict)
    arcs: dict[str, list[int]] = field(default_factory=dict)
    """By arc of a box with several ports: the tuples that the box took, and those that went to the arc."""
    letters: list[LetterRow] = field(default_factory=list)
    deadline: int | None = None
    """When a shard needs a tick; None if it does not."""
    sifted: dict[str, list[Any]] = field(default_factory=dict)
    """By source: tuples seen and dropped by the unit's drop box, and the reason."""
    state: int | None = None
    """The checksum of a shard's new state."""

    def note(self, box: str, tuples_in: int, tuples_out: int, spent: int, bytes_in: int, ignored: int) -> None:
        """Count one call."""
        mine = self.boxes.setdefault(box, [0] * 6)
        for at, amount in enumerate((1, tuples_in, tuples_out, spent, bytes_in, ignored)):
            mine[at] += amount

    def divide(self, arc: str, taken: int, made: int) -> None:
        """Count how many of the tuples that a box with several ports took went to one of its arcs."""
        mine = self.arcs.setdefault(arc, [0, 0])
        mine[0] += taken
        mine[1] += made

    def wish(self, deadline: int | None) -> None:
        """Request a tick at this moment; the earliest request counts."""
        if deadline is not None:
            self.deadline = deadline if self.deadline is None else min(self.deadline, deadline)

    def rows(self, key: int, shard: bool) -> list[Row]:
        """Return the report as rows for the driver; only shards report deadlines and states."""
        report: dict[str, Any] = {"boxes": self.boxes}
        if shard:
            report["deadline"] = self.deadline
            if self.state is not None:
                report["state"] = self.state
        if self.arcs:
            report["arcs"] = self.arcs
        if self.sifted:
            report["sifted"] = self.sifted
        found = [Row(key, READINGS, 0, json.dumps(report).encode())]
        if self.letters:
            found.append(Row(key, LETTERS, 0, json.dumps(self.letters).encode()))
        return found


def to_arrow_rows(rows: Sequence[Row]) -> pa.RecordBatch:
    """Return rows as a record batch in the schema `ROWS`."""
    return pa.RecordBatch.from_arrays(
        [
            pa.array([row.shard for row in rows], pa.int32()),
            pa.array([row.lane for row in rows], pa.int32()),
            pa.array([row.first for row in rows], pa.int64()),
            pa.array([bytes(row.train) for row in rows], pa.binary()),
        ],
        names=Row._fields,
    )


def to_rows(table: Mapping[str, Any]) -> list[Row]:
    """Return the rows of a table with the columns of `ROWS`."""
    return [Row(*fields) for fields in zip(*(table[name] for name in Row._fields), strict=True)]


class Packed(NamedTuple):
    """An unpacked train, with its ranks if it came from a spread box."""

    train: Train
    ranks: Ranks | None


def pack(train: Train, schema: Schema, columns: Sequence[int] | None = None, ranks: Ranks | None = None) -> pa.Buffer:
    """Return a train as bytes; if `columns` is given, only these are sent."""
    sent = list(range(len(schema))) if columns is None else list(columns)
    arrays = [to_arrow(train.columns[at], schema.types[at]) for at in sent]
    names = [f"c{at}" for at in sent]
    meta: dict[str, object] = {"rows": len(train)}
    step = regular_step(train.numbers) if len(train) else 1
    if step is None:
        arrays.append(pa.array(train.numbers))
        names.append("n")
    else:
        meta["numbers"] = int(train.numbers[0]) if len(train) else 0, step
    if len(train) and is_constant(train.stamps):
        meta["stamp"] = int(train.stamps[0])
    else:
        arrays.append(pa.array(train.stamps))
        names.append("s")
    if ranks is not None:
        arrays += [pa.array(ranks[0]), pa.array(ranks[1])]
        names += ["v", "b"]
    return _write(arrays, names, meta)


def unpack(data: bytes | pa.Buffer, schema: Schema) -> Packed:
    """Return the train from bytes; columns that were not sent are marked as unread."""
    batch, meta = _read(data)
    rows = int(meta["rows"])
    found: dict[str, pa.Array] = dict(zip(batch.schema.names, batch.columns, strict=True))
    columns: list[Column] = [from_arrow(found[f"c{at}"]) if f"c{at}" in found else UNREAD for at in range(len(schema))]
    if "n" in found:
        numbers: Int64s = found["n"].to_numpy(zero_copy_only=False)
    else:
        first, step = meta["numbers"]
        numbers = regular_values(first, step, 0, rows)
    stamps = found["s"].to_numpy(zero_copy_only=False) if "s" in found else constant(int(meta["stamp"]), rows)
    ranks = None
    if "v" in found:
        ranks = found["v"].to_numpy(zero_copy_only=False), found["b"].to_numpy(zero_copy_only=False)
    return Packed(Train(tuple(columns), stamps, numbers), ranks)


def pack_counts(train: Train) -> pa.Buffer:
    """Return as bytes how many tuples entered when, at best by the millisecond, for an output that discards them."""
    stamps = train.stamps
    if is_constant(stamps):
        moments, counts = stamps[:1], np.array([len(stamps)], np.int64)
    else:
        first = int(stamps.min())
        width = max(_MILLISECOND, (int(stamps.max()) - first) // _MOST_MOMENTS + 1)
        every = np.bincount((stamps - first) // width)
        places = np.flatnonzero(every)
        moments, counts = first + places * width + width // 2, every[places]
    return _write([pa.array(moments), pa.array(counts)], ["s", "c"], {})


def unpack_counts(data: bytes | pa.Buffer) -> tuple[Int64s, Int64s]:
    """Return the timestamps and counts packed by `pack_counts`."""
    batch, _ = _read(data)
    return batch.column(0).to_numpy(zero_copy_only=False), batch.column(1).to_numpy(zero_copy_only=False)


def merge(parts: Sequence[Packed]) -> Train:
    """Merge the trains of one stream from several tasks or shards, in the order of their arrival numbers."""
    filled = [part for part in parts if len(part.train)]
    if len(filled) == 1:
        return filled[0].train
    if not filled:
        return parts[0].train
    both = _join([part.train for part in filled])
    numbers = both.numbers
    if all(part.ranks is not None for part in filled):
        values = np.concatenate([part.ranks[0] for part in filled])  # type: ignore[index]
        born = np.concatenate([part.ranks[1] for part in filled])  # type: ignore[index]
        return both.take(np.lexsort((born, values, numbers)))
    return both if ascends(numbers) else both.take(np.argsort(numbers, kind="stable"))


def merge_rows(rows: Sequence[Row], schema: Schema) -> Train:
    """Return a lane's rows as one train."""
    return merge([unpack(row.train, schema) for row in sorted(rows, key=lambda row: row.first)])


def _join(trains: Sequence[Train]) -> Train:
    """Concatenate trains of one lane, which all lack the same columns."""
    read = [at for at, column in enumerate(trains[0].columns) if column is not UNREAD]
    both = join_trains([train.with_columns([train.columns[at] for at in read]) for train in trains])
    columns: list[Column] = [UNREAD] * len(trains[0].columns)
    for at, column in zip(read, both.columns, strict=True):
        columns[at] = column
    return both.with_columns(columns)


def _write(arrays: list[pa.Array], names: list[str], meta: dict[str, object]) -> pa.Buffer:
    schema = pa.schema([(name, array.type) for name, array in zip(names, arrays, strict=True)])
    schema = schema.with_metadata({"headway": json.dumps(meta)})
    rows = pa.RecordBatch.from_arrays(arrays, schema=schema)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_batch(rows)
    return sink.getvalue()


def _read(data: bytes | pa.Buffer) -> tuple[pa.RecordBatch, dict[str, Any]]:
    reader = pa.ipc.open_stream(pa.py_buffer(data))
    meta = json.loads(reader.schema.metadata[b"headway"])
    return reader.read_next_batch(), meta


def send(row: Row, folder: str | None) -> Row:
    """Return a row in the form in which it travels: with a folder, a large train is written to a file."""
    if folder is None or len(row.train) < LARGE:
        return row
    name = uuid4().hex  # a retried task writes another file
    with Path(folder, name).open("wb") as file:
        file.write(row.train)
    return row._replace(train=_MARK + name.encode())


def receive(row: Row, folder: str | None) -> Row:
    """Return a row as it was before `send`."""
    if folder is None or bytes(row.train[: len(_MARK)]) != _MARK:
        return row
    name = bytes(row.train[len(_MARK) :]).decode()
    return row._replace(train=pa.memory_map(str(Path(folder, name))).read_buffer())


def clear(folder: str | None) -> None:
    """Remove the files of a completed micro-batch."""
    if folder is not None:
        with contextlib.suppress(FileNotFoundError):
            for path in Path(folder).iterdir():
                path.unlink(missing_ok=True)
