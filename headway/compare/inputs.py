"""Inputs that are read once and let in by many runs alike: what is compared must see the same tuples.

They are held in memory, so that real runs do not spend their time on files and generators, and standard input can be
read once and compared many times.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headway.checking import CheckedNetwork
from headway.clock import SECOND
from headway.connectors.protocol import Chunk, Malformed
from headway.engines.opening import open_readers
from headway.engines.runs import RunSettings
from headway.scheduling.schedule import Schedule

MOST = 2_000_000
"""Tuples of a source that are held at most."""
FEW = 100_000
"""Tuples of a source without moments in the busiest part of all inputs."""
PORTION = 65_536


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """The tuples of a source, and when they are due (ns); None where they come as fast as they are asked for."""

    chunks: tuple[Chunk, ...]
    timed: bool
    cut: bool
    """Whether the source had more."""

    @property
    def tuples(self) -> int:
        """How many there are."""
        return sum(len(chunk) for chunk in self.chunks)

    def reader(self) -> HeldReader:
        """Return a reader of all of them."""
        return HeldReader(self.chunks, self.timed)

    def at_once(self) -> HeldReader:
        """Return a reader of all of them as fast as they are asked for, whenever they are due."""
        return HeldReader([Chunk(chunk.batch) for chunk in self.chunks], False)

    def first(self, most: int) -> Held:
        """Return the first tuples, at most so many."""
        kept: list[Chunk] = []
        for chunk in self.chunks:
            if most > 0:
                kept.append(Chunk(chunk.batch.slice(0, most), None if chunk.due is None else chunk.due[:most]))
            most -= len(chunk)
        return Held(tuple(kept), self.timed, self.cut or most < 0)

    def between(self, begin: int, end: int) -> Held:
        """Return the tuples that are due from one moment to before another (ns), counted from the first of the two.

        Of tuples that are not timed all are returned.
        """
        if not self.timed:
            return self
        kept = []
        for chunk in self.chunks:
            assert chunk.due is not None
            first, last = np.searchsorted(chunk.due, [begin, end], side="left").tolist()
            if first < last:
                kept.append(Chunk(chunk.batch.slice(first, last - first), chunk.due[first:last] - begin))
        return Held(tuple(kept), True, self.cut)


class HeldReader:
    """Reads what is held; closing it lets go of nothing."""

    finite = True
    live = False

    def __init__(self, chunks: Iterable[Chunk], timed: bool) -> None:
        """Begin with the first tuple."""
        self.timed = timed
        self._chunks = list(reversed(list(chunks)))

    def read(self, limit: int) -> Chunk | None:
        """Return the next tuples, without copying."""
        if not self._chunks:
            return None
        chunk = self._chunks.pop()
        if len(chunk) <= limit:
            return chunk
        due = chunk.due
        self._chunks.append(Chunk(chunk.batch.slice(limit), None if due is None else due[limit:]))
        return Chunk(chunk.batch.slice(0, limit), None if due is None else due[:limit])

    def malformed(self) -> list[Malformed]:
        """Return nothing: malformed rows were left out when it was read."""
        return []

    def close(self) -> None:
        """Do nothing."""


def hold(
    checked: CheckedNetwork,
    inputs: Mapping[str, object],
    rates: Mapping[str, float],
    seconds: float,
    most: int = MOST,
) -> dict[str, Held]:
    """Read all sources: of timed ones what is due within so many seconds, of all at most so many tuples.

    A live source is waited for until it ends. Raises an InputError for what cannot be opened.
    """
    held = {}
    with contextlib.ExitStack() as stack:
        readers = open_readers(checked, RunSettings(Schedule(), inputs, {}, rates), stack)
        for source, reader in zip(checked.network.sources, readers, strict=True):
            chunks, count, cut = [], 0, False
            while count < most:
                chunk = reader.read(min(PORTION, most - count))
                if chunk is None:
                    break
                kept = chunk if chunk.due is None else _due(chunk, round(seconds * SECOND))
                if len(kept):
                    chunks.append(kept)
                    count += len(kept)
                if kept is not chunk:
                    cut = True
                    break
            else:
                cut = True
            timed = reader.timed
            held[source.name] = Held(_joined(chunks, timed), timed, cut)
    return held


def busiest(held: Mapping[str, Held], seconds: float) -> dict[str, Held]:
    """Return the part of all inputs, of so many seconds at most, in which most tuples are due; of others the first."""
    held = {name: one if one.timed else one.first(FEW) for name, one in held.items()}
    due = [chunk.due for one in held.values() if one.timed for chunk in one.chunks if chunk.due is not None]
    moments = np.sort(np.concatenate([np.zeros(0, np.int64), *due]))
    span = round(seconds * SECOND)
    if not len(moments) or moments[-1] < span:
        return dict(held)
    counts = np.searchsorted(moments, moments + span, side="left") - np.arange(len(moments))
    begin = int(moments[np.argmax(counts)])
    return {name: one.between(begin, begin + span) for name, one in held.items()}


def _due(chunk: Chunk, end: int) -> Chunk:
    """Return what is due before a moment; a chunk that is so as a whole is returned itself."""
    assert chunk.due is not None
    count = int(np.searchsorted(chunk.due, end, side="left"))
    return chunk if count == len(chunk) else Chunk(chunk.batch.slice(0, count), chunk.due[:count])


def _joined(chunks: list[Chunk], timed: bool) -> tuple[Chunk, ...]:
    """Return few large chunks: a source that handed over one row at a time should not cost that again in each run."""
    if not chunks:
        return ()
    batches = pa.Table.from_batches([chunk.batch for chunk in chunks]).combine_chunks().to_batches(PORTION)
    if not timed:
        return tuple(Chunk(batch) for batch in batches)
    due = np.concatenate([chunk.due for chunk in chunks if chunk.due is not None])
    made, at = [], 0
    for batch in batches:
        made.append(Chunk(batch, due[at : at + batch.num_rows]))
        at += batch.num_rows
    return tuple(made)
