"""Inputs that are read once and used by many runs: compared runs must get the same tuples.

They are held in memory, so that real runs do not spend time on files and generators, and standard input, which can be
read only once, can be used several times.
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
"""The most tuples of a source that are held."""
FEW = 100_000
"""The tuples of a source that is not timed in the busiest part of all inputs."""
PORTION = 65_536


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """The tuples of a source; if it is timed, with the moments at which they are due (ns)."""

    chunks: tuple[Chunk, ...]
    timed: bool
    cut: bool
    """Whether the source had more."""

    @property
    def tuples(self) -> int:
        """The number of tuples."""
        return sum(len(chunk) for chunk in self.chunks)

    def reader(self) -> HeldReader:
        """Return a reader of all tuples."""
        return HeldReader(self.chunks, self.timed)

    def at_once(self) -> HeldReader:
        """Return a reader of all tuples that is not timed."""
        return HeldReader([Chunk(chunk.batch) for chunk in self.chunks], False)

    def first(self, most: int) -> Held:
        """Return the first tuples, at most `most`."""
        kept: list[Chunk] = []
        for chunk in self.chunks:
            if most > 0:
                kept.append(Chunk(chunk.batch.slice(0, most), None if chunk.due is None else chunk.due[:most]))
            most -= len(chunk)
        return Held(tuple(kept), self.timed, self.cut or most < 0)

    def between(self, begin: int, end: int) -> Held:
        """Return the tuples that are due from `begin` to before `end` (ns), with moments relative to `begin`.

        If the source is not timed, all are returned.
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
    """Reads held tuples. Closing it frees nothing."""

    finite = True
    live = False

    def __init__(self, chunks: Iterable[Chunk], timed: bool) -> None:
        """Start at the first tuple."""
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
        """Return nothing: malformed rows were left out when the source was read."""
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
    """Read all sources: of timed ones the tuples due within `seconds`, of each at most `most` tuples.

    Blocks until live sources end or have delivered `most` tuples. Raises an InputError if a source cannot be opened.
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
    """Return the part of all timed inputs, at most `seconds` long, with the most tuples; of others the first `FEW`."""
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
    """Return the part of a chunk that is due before a moment; the same object if that is all of it."""
    assert chunk.due is not None
    count = int(np.searchsorted(chunk.due, end, side="left"))
    return chunk if count == len(chunk) else Chunk(chunk.batch.slice(0, count), chunk.due[:count])


def _joined(chunks: list[Chunk], timed: bool) -> tuple[Chunk, ...]:
    """Return the tuples as few large chunks, so that runs do not pay for a source that returned single rows."""
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
