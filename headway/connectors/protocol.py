"""The contracts between connectors and engines: readers for sources, writers for sinks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, NamedTuple, Protocol, runtime_checkable

import pyarrow as pa

from headway.clock import Clock
from headway.columns import Int64s
from headway.errors import HeadwayError, InputError, OutputError
from headway.network.keep import Keep, Roll
from headway.network.schema import Schema
from headway.network.trust import OWN, Trust

TEXT_LIMIT = 500
"""How many characters of a malformed row are kept."""

PENDING_LIMIT = 10_000
"""A read returns after this many pending malformed rows, so that memory stays bounded."""


@dataclass(frozen=True, slots=True, eq=False)
class Chunk:
    """Tuples returned by one read, in arrival order.

    `batch` has exactly the source's schema. `due` holds the arrival times of a timed source, in nanoseconds since the
    start of the run, ascending; it is None for a source that produces tuples on demand.
    """

    batch: pa.RecordBatch
    due: Int64s | None = None

    def __len__(self) -> int:
        return int(self.batch.num_rows)


@dataclass(frozen=True, slots=True)
class Malformed:
    """An input row that cannot become a tuple: where it is, how it begins, and why it was refused."""

    source: str
    where: str
    text: str
    reason: str

    def __str__(self) -> str:
        return f"source '{self.source}': {self.where}: {self.reason}"


@runtime_checkable
class Reader(Protocol):
    """One open source. Used by one thread at a time, except that `close` may come from another."""

    @property
    def timed(self) -> bool:
        """Whether chunks carry `due` times. The reader never sleeps: the caller waits until tuples are due."""

    @property
    def finite(self) -> bool:
        """Whether the source is known to end."""

    @property
    def live(self) -> bool:
        """Whether `read` may block on an external system and therefore needs its own thread."""

    def read(self, limit: int) -> Chunk | None:
        """Return the next tuples, at most `limit`, or None at the end.

        A chunk has at least one tuple, with one exception: after PENDING_LIMIT consecutive malformed rows an empty
        chunk lets the caller collect them. How a source is cut into reads does not affect its tuples.
        """

    def malformed(self) -> list[Malformed]:
        """Return the malformed rows found since the last call."""

    def close(self) -> None:
        """Release the source's resources. May be called twice."""


@runtime_checkable
class Resumable(Protocol):
    """A reader that can resume where a saved run stopped, instead of rereading and skipping."""

    def resume(self, folder: str, tuples: int, refused: int) -> None:
        """Resume, and from now on keep the data needed for that in `folder`, a path or URI for this source alone.

        Called once, before the first read, also in the first run. The log already has `tuples` tuples and `refused`
        malformed rows of this source; reading continues right after them. Times of a timed source continue too: they
        count from the start of the very first run.
        """

    def acknowledge(self, tuples: int, refused: int) -> None:
        """Note that this many tuples and malformed rows, counted from the very first, are durable. Never blocks."""


@runtime_checkable
class Repeatable(Protocol):
    """A reader that says itself whether it gives the same tuples from the first one on when it is opened again."""

    anew: bool


def begins_anew(reader: Reader) -> bool:
    """Whether a reopened reader yields the same tuples from the start.

    Sources that are not live do, and live ones do not, unless they say otherwise (`Repeatable`): an iterator that the
    same program creates again does, a pipe cannot be rewound.
    """
    return reader.anew if isinstance(reader, Repeatable) else not reader.live


class Identity(NamedTuple):
    """A file's identity: its size, the number of bytes read, and checksums of those bytes and of both its ends."""

    size: int
    read: int
    crc: int
    ends: int
    whole: bool
    """Whether it is identified by its size and ends, and must not grow."""
    ended: bool | None = None
    """Whether it was read to its end; None in states of versions that did not record it."""


@runtime_checkable
class Identified(Protocol):
    """What reads a file and knows it."""

    def identity(self) -> tuple[Path, Identity] | None:
        """Return which file it is, and what is known of it by now; None for what is no regular file."""


def identify(reader: object) -> tuple[Path, Identity] | None:
    """Return the file that a reader reads and its identity so far; None if it is not `Identified` or reads no file."""
    return reader.identity() if isinstance(reader, Identified) else None


@runtime_checkable
class Writer(Protocol):
    """One open output. Used by one thread at a time. It may also be `Preparable` and a `BatchWriter`."""

    def write(self, batch: pa.RecordBatch) -> None:
        """Take the next tuples. May block, which stalls the run."""

    def close(self) -> None:
        """Complete the output. A file appears under its final name only now."""

    def abort(self) -> None:
        """Discard the output, so that partial data is not taken for a result. Does nothing after `close`."""


@runtime_checkable
class Preparable(Protocol):
    """A writer that has the slow or fallible part of closing in a method of its own."""

    def prepare(self) -> None:
        """Do all but `close`. A run prepares all outputs before it closes any, so that all of them appear or none."""


def prepare(writer: Writer) -> None:
    """Call a writer's `prepare`, if it has one."""
    if isinstance(writer, Preparable):
        writer.prepare()


@runtime_checkable
class BatchWriter(Protocol):
    """A writer that keeps what it wrote before a crash, and is told which micro-batch it writes."""

    def begin(self, unit: str, batch: int) -> None:
        """Expect the tuples of this micro-batch; they replace what was written of it before."""


@runtime_checkable
class Ageing(Protocol):
    """A writer on which time may have an effect, also while nothing is written."""

    @property
    def ageing(self) -> bool:
        """Whether `look` has to be called."""

    def look(self) -> None:
        """Complete what is due by the writer's clock, and drop what is too old. Called several times a second."""


class PipeClosedError(OutputError):
    """The process that reads the output has exited, as `head` does; a reason to end quietly."""


@dataclass(frozen=True, slots=True)
class Request:
    """What a factory gets: the stream's name and schema, and the connector's settings (or the object given)."""

    name: str
    schema: Schema
    settings: object
    base: Path | None = None
    trust: Trust = OWN

    part: ClassVar[str]
    """What the network file calls it: source or sink."""
    noun: ClassVar[str]
    error: ClassVar[type[HeadwayError]]

    @property
    def who(self) -> str:
        """The prefix of messages about it."""
        return f"{self.noun} '{self.name}'"


@dataclass(frozen=True, slots=True)
class SourceRequest(Request):
    """What a source factory gets; `strict` makes a malformed row an InputError."""

    rate: float | None = None
    strict: bool = False

    part, noun, error = "source", "source", InputError


@dataclass(frozen=True, slots=True)
class SinkRequest(Request):
    """What a sink factory gets.

    A sink of parts begins a new file as `roll` says, and deletes the parts that lie outside `keep`, by its clock.
    """

    roll: Roll | None = None
    keep: Keep | None = None
    clock: Clock | None = None
    take: Callable[[], Path] | None = None
    """Returns the next free final name for a file that is complete; None: the path in the settings."""

    part, noun, error = "sink", "output", OutputError


SourceFactory = Callable[[SourceRequest], Reader]
SinkFactory = Callable[[SinkRequest], Writer]
