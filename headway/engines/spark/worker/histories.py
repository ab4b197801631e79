"""Tasks on the histories of connection points: they write files of what is in a log, and read files into a log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from headway.engines.spark.worker.memory import prepare
from headway.history import HistoryFile, Kept, Position, file_name, read_files, write_file
from headway.storage.filesystems import locate
from headway.storage.segments import LogSegment, LogSlice, encode, read_slice
from headway.trains import Train, constant, join_trains


@dataclass(frozen=True, slots=True)
class Writing:
    """What has passed a point, and is in a log: to be written as one file of its history."""

    place: str
    kept: Kept
    slices: tuple[LogSlice, ...]
    """They begin with the first tuple of an arrival number."""
    sync: bool


def write(task: Writing) -> dict[str, Any]:
    """Write a file of history, which no manifest lists yet; return its record as JSON has it."""
    prepare()
    train = join_trains([read_slice(one, task.kept.schema) for one in task.slices])
    # An attempt that was given up may still write: it must not do so under the name of another.
    name = file_name(Position(int(train.numbers[0]), 0), f"t{uuid4().hex}")
    return write_file(locate(task.place), name, task.kept, train, sync=task.sync).to_json()


@dataclass(frozen=True, slots=True)
class Copying:
    """Neighbouring files of history, to be read as one segment of a log."""

    place: str
    kept: Kept
    files: tuple[HistoryFile, ...]
    after: Position
    upto: int
    key: Any
    log: str
    """The log's path."""
    segment: str
    """The name of the segment."""
    source: str
    now: int
    """The moment from which tuples count their latency."""
    sync: bool


def copy(task: Copying) -> LogSegment | None:
    """Read what is wanted of files into a segment, which no commit names yet; None if there is nothing."""
    prepare()
    place = locate(task.place)
    found = list(read_files(place, task.files, task.kept, after=task.after, upto=task.upto, key=task.key))
    if not found:
        return None
    train = join_trains(found)
    stamped = Train(train.columns, constant(task.now, len(train)), train.numbers)
    segment, data = encode(task.source, stamped, task.kept.schema, task.segment)
    locate(task.log).write(task.segment, data, sync=task.sync)
    return segment
