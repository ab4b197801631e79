"""What a source and a sink are: the contracts between connectors and engines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, NamedTuple, Protocol, runtime_checkable

import pyarrow as pa

from headway.columns import Int64s
from headway.errors import HeadwayError, InputError, OutputError
from headway.network.schema import Schema
from headway.network.trust import OWN, Trust

TEXT_LIMIT = 500
"""At most this many characters of a malformed row are kept."""

PENDING_LIMIT = 10_000
"""A read returns after this many malformed rows, so that memory does not grow with the input."""


@dataclass(frozen=True, slots=True, eq=False)
class Chunk:
    """Tuples that a source handed over, in arrival order.

    `batch` has exactly the source's schema. `due` holds the arrival moments of a timed source: nanoseconds
    since the start of the run, ascending. It is None for a source whose tuples arrive as soon as they are asked for.
    """

    batch: pa.RecordBatch
    due: Int64s | None = None

    def __len__(self) -> int:
        return int(self.batch.num_rows)


@dataclass(frozen=True, slots=True)
class Malformed:
    """A row of an input that is no tuple: where it stands, how it begins, and why it was refused."""

    source: str
    where: str
    text: str
    reason: str

    def __str__(self) -> str:
        return f"source '{self.source}': {self.where}: {self.reason}"


@runtime_checkable
class Reader(Protocol):
    """One open source. Used by one thread at a time; `close` may come from another."""

    @property
    def timed(self) -> bool:
        """Whether chunks carry `due` moments. The reader never sleeps: its caller waits until they are due."""

    @property
    def finite(self) -> bool:
        """Whether the source is known to end."""

    @property
    def live(self) -> bool:
        """Whether `read` can block on the outside world, so that it needs a thread of its own."""

    def read(self, limit: int) -> Chunk | None:
        """Return the next tuples, at most `limit`, or None at the end.

        A chunk has at least one tuple, with one exception: after very many malformed rows in a row (PENDING_LIMIT)
        an empty chunk gives the caller a chance to collect them. How a source is cut into reads does not change
        its tuples.
        """

    def malformed(self) -> list[Malformed]:
        """Return the malformed rows met since the last call."""

    def close(self) -> None:
        """Release what the source holds. May be called twice."""


@runtime_checkable
class Resumable(Protocol):
    """A reader that resumes by itself where a saved run stopped, instead of being read again and skipped."""

    def resume(self, folder: str, tuples: int, refused: int) -> None:
        """Keep what is needed to resume in `folder` (a path or URI of this source alone), from now on.

        Called once, before the first read, also in the first run. `tuples` and `refused` say how many tuples and
        malformed rows of this source the log has: exactly what follows them is read. Moments of a timed source
        continue where they were: they count from the start of the very first run.
        """

    def acknowledge(self, tuples: int, refused: int) -> None:
        """Note that so many tuples and malformed rows, from the very first one on, are durable. Never blocks."""


@runtime_checkable
class Repeatable(Protocol):
    """A reader that says itself whether it gives the same tuples from the first one on when it is opened again."""

    anew: bool


def begins_anew(reader: Reader) -> bool:
    """Whether a reader that is opened again gives the same tuples from the first one on.

    Unless it says so itself (`Repeatable`), a live one does not and any other does: an iterator that the same program
    makes again begins anew, a pipe has no beginning to go back to.
    """
    return reader.anew if isinstance(reader, Repeatable) else not reader.live


class Identity(NamedTuple):
    """What is known of a file: its size, how many bytes of it count, their checksum, and the same for both ends."""

    size: int
    read: int
    crc: int
    ends: int
    whole: bool
    """Whether it is known by its ends, and must not grow."""
    ended: bool | None = None
    """Whether it was read to its end; None in states of versions that did not say so."""


@runtime_checkable
class Identified(Protocol):
    """What reads a file and knows it."""

    def identity(self) -> tuple[Path, Identity] | None:
        """Return which file it is, and what is known of it by now; None for what is no regular file."""


def identify(reader: object) -> tuple[Path, Identity] | None:
    """Return which file a reader reads, and what is known of it by now, if it is `Identified`."""
    return reader.identity() if isinstance(reader, Identified) else None


@runtime_checkable
class Writer(Protocol):
    """One open output. Used by one thread at a time. It may also be `Preparable` and a `BatchWriter`."""

    def write(self, batch: pa.RecordBatch) -> None:
        """Take the next tuples. It may block, which holds up the run."""

    def close(self) -> None:
        """Complete the output. Only now does a file appear under its name."""

    def abort(self) -> None:
        """Give up, so that what was written is not mistaken for a result. Does nothing after `close`."""


@runtime_checkable
class Preparable(Protocol):
    """A writer with something to do before `close` that takes long or may fail."""

    def prepare(self) -> None:
        """Do it. A run prepares all its outputs before it closes any, so that all appear or none."""


def prepare(writer: Writer) -> None:
    """Prepare a writer to be closed, if it is `Preparable`."""
    if isinstance(writer, Preparable):
        writer.prepare()


@runtime_checkable
class BatchWriter(Protocol):
    """A writer that keeps what it wrote before a crash, and so is told which micro-batch it writes."""

    def begin(self, unit: str, batch: int) -> None:
        """Expect the tuples of a micro-batch next; they replace what was written of it before."""


class PipeClosedError(OutputError):
    """The reader of the output has gone away, as `head` does. A reason to end quietly."""


@dataclass(frozen=True, slots=True)
class Request:
    """What a factory gets: who asks, for which tuples, and the settings of this kind (or the object given)."""

    name: str
    schema: Schema
    settings: object
    base: Path | None = None
    trust: Trust = OWN

    part: ClassVar[str]
    """What the network file calls this side: source or sink."""
    noun: ClassVar[str]
    error: ClassVar[type[HeadwayError]]

    @property
    def who(self) -> str:
        """The start of every message about it."""
        return f"{self.noun} '{self.name}'"


@dataclass(frozen=True, slots=True)
class SourceRequest(Request):
    """What a source factory gets; with `strict` a malformed row is an InputError."""

    rate: float | None = None
    strict: bool = False

    part, noun, error = "source", "source", InputError


@dataclass(frozen=True, slots=True)
class SinkRequest(Request):
    """What a sink factory gets."""

    part, noun, error = "sink", "output", OutputError


SourceFactory = Callable[[SourceRequest], Reader]
SinkFactory = Callable[[SinkRequest], Writer]
