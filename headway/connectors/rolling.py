"""Outputs in parts: numbered files, each complete when it appears, while the run goes on.

``alarms.csv`` becomes ``alarms-000001.csv``, ``alarms-000002.csv`` and so on, a directory ``alarms/`` gets
``alarms/part-000001.csv``. A run continues behind the highest number that it finds and overwrites nothing. A part
begins with its first tuple, so none is empty.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headway.clock import Clock, WallClock
from headway.connectors.protocol import SinkRequest, Writer, prepare
from headway.connectors.registry import open_source
from headway.errors import HeadwayError
from headway.network.keep import Keep, Roll

SLICE = 1 << 16
"""How many tuples are rendered at a time."""


class Rendered(NamedTuple):
    """Tuples as a sink writes them: `ends` has one more item than there are tuples, tuple i is from item i to i + 1."""

    ends: npt.NDArray[np.integer[Any]]
    """In bytes, ascending."""
    data: Any


class Part(Writer, Protocol):
    """A writer of one file that can write the first of many tuples."""

    @property
    def size(self) -> int:
        """The bytes written so far."""

    @property
    def path(self) -> Path:
        """Where the file is, once it is closed."""

    def render(self, batch: pa.RecordBatch) -> Rendered:
        """Return tuples, at most SLICE, as this and every other part of the output writes them."""

    def put(self, rendered: Rendered, start: int, stop: int) -> None:
        """Write some of the rendered tuples."""


class Finished(NamedTuple):
    """A part that is complete."""

    path: Path
    moment: int
    """When its last tuple was delivered."""
    tuples: int | None
    """None: not counted yet, because an earlier run wrote it."""


class Parts:
    """The numbered files of an output: the next name, and which of them are deleted because they lie outside `keep`."""

    def __init__(self, folder: Path, stem: str, suffix: str, count: Callable[[Path], int]) -> None:
        """Nothing is read yet; `count` returns the tuples of a file."""
        self._folder, self._stem, self._suffix, self._count = folder, stem, suffix, count
        self._name = re.compile(rf"{re.escape(stem)}-(\d{{6,}}){re.escape(suffix)}")
        self._last: int | None = None
        self._own: dict[Path, Finished] = {}

    def take(self) -> Path:
        """Return the next free name; asked again, the one after it."""
        if self._last is None:
            self._last = max(self._numbers(), default=0)
        self._last += 1
        return self._folder / f"{self._stem}-{self._last:06}{self._suffix}"

    def add(self, part: Finished) -> None:
        """Note a part of this run."""
        self._own[part.path] = part

    def prune(self, keep: Keep, now: int) -> int | None:
        """Delete the parts, also of earlier runs, of which no tuple is among the last ones.

        Returns the moment at which the next one is too old, if time matters. A part that cannot be deleted stays.
        """
        if keep.all:
            return None
        newer, numbers, moments = 0, self._numbers(), []
        for number in sorted(numbers, reverse=True):
            path = numbers[number]
            if keep.span is not None:
                moments.append(self._moment(path) + keep.span.nanoseconds)
                outside = moments[-1] < now
            else:
                assert keep.tuples is not None
                outside = newer >= keep.tuples
                newer += 0 if outside else self._tuples(path)
            if outside:
                self._own.pop(path, None)
                with contextlib.suppress(OSError):
                    path.unlink()
        return min((moment for moment in moments if moment >= now), default=None)

    def _numbers(self) -> dict[int, Path]:
        with contextlib.suppress(OSError):
            found = [(self._name.fullmatch(path.name), path) for path in self._folder.iterdir()]
            return {int(match[1]): path for match, path in found if match is not None and path.is_file()}
        return {}

    def _moment(self, path: Path) -> int:
        if path in self._own:
            return self._own[path].moment
        with contextlib.suppress(OSError):
            return path.stat().st_mtime_ns
        return 1 << 63

    def _tuples(self, path: Path) -> int:
        known = self._own.get(path)
        if known is not None and known.tuples is not None:
            return known.tuples
        tuples = self._count(path)
        self._own[path] = Finished(path, self._moment(path), tuples)
        return tuples


class Ledger(Protocol):
    """What is durable about the parts of a saved run: how many of the output's tuples they have."""

    def upto(self) -> int:
        """Return the tuples in the parts that are complete."""

    def next(self, path: Path, upto: int) -> None:
        """Note that the parts have so many tuples as soon as there is a file with this path."""

    def done(self, upto: int) -> None:
        """Note that the parts have so many tuples."""


class RollingSink:
    """Writes an output in parts: a part is complete when it is old or large enough, or when the run ends.

    A run that fails keeps its complete parts. The size of a part is the bytes written: no part of text is larger than
    the limit, unless a single tuple is, and how tuples come in batches does not matter. Parquet is compressed when a
    row group is complete; until then tuples count with their size in memory, so that parts are smaller than the limit.
    """

    def __init__(self, request: SinkRequest, make: Callable[[SinkRequest], Part], folder: Path, stem: str) -> None:
        """Write parts that `make` opens; raises OutputError if the first one cannot be."""
        assert request.roll is not None
        self._roll: Roll = request.roll
        self._keep = request.keep or Keep()
        self._clock: Clock = request.clock or WallClock()
        self._make = make
        kind = Path(str(request.settings)).suffix
        self._parts = Parts(folder, stem, kind, lambda path: _count(request, path))
        self._request = replace(request, roll=None, keep=None, take=self._take)
        self._ledger: Ledger | None = None
        self._total = self._skip = 0
        self._part: Part | None = None
        self._tuples = 0
        self._latest = 0
        self._until: int | None = None
        """When the part is old enough."""
        self._outdated: int | None = 0 if self._keep.span is not None else None
        """The moment after which a part is too old."""
        make(self._request).abort()  # fail early

    def write(self, batch: pa.RecordBatch) -> None:
        """Write the tuples; parts that are full appear."""
        skipped = min(self._skip, batch.num_rows)
        if skipped:
            self._skip -= skipped
            batch = batch.slice(skipped)
        self.look()
        for start in range(0, batch.num_rows, SLICE):
            self._write(batch.slice(start, SLICE))

    def _write(self, batch: pa.RecordBatch) -> None:
        at, count, limit = 0, batch.num_rows, self._roll.size
        rendered: Rendered | None = None
        while at < count:
            part = self._part or self._begin()
            rendered = part.render(batch) if rendered is None else rendered
            stop = count
            if limit is not None:
                room = int(rendered.ends[at]) + limit - part.size
                fits = int(np.searchsorted(rendered.ends, room, "right")) - 1
                stop = min(max(fits, at + 1 if self._tuples == 0 else at), count)
            part.put(rendered, at, stop)
            self._tuples += stop - at
            self._total += stop - at
            self._latest = self._clock.now()
            at = stop
            if limit is not None and (at < count or part.size >= limit):
                self._finish()

    @property
    def ageing(self) -> bool:
        """Whether parts grow old."""
        return self._roll.span is not None or self._keep.span is not None

    def look(self) -> None:
        """Complete the part if it is old enough, and delete those that are too old."""
        if self._until is not None and self._clock.now() >= self._until:
            self._finish()
        if self._outdated is not None and self._clock.now() > self._outdated:
            self._prune()

    def resume(self, ledger: Ledger) -> None:
        """Go on where the parts of a saved run end, whose tuples are written again from the first one; called once."""
        self._ledger = ledger
        self._total = self._skip = ledger.upto()

    def _take(self) -> Path:
        path = self._parts.take()
        if self._ledger is not None:
            self._ledger.next(path, self._total)
        return path

    def prepare(self) -> None:
        """Do all for the last part but give it its name."""
        if self._part is not None:
            prepare(self._part)

    def close(self) -> None:
        """Complete the last part."""
        self._finish()

    def abort(self) -> None:
        """Discard the part that is not complete; the others stay."""
        part, self._part = self._part, None
        if part is not None:
            part.abort()

    def _begin(self) -> Part:
        self._part, self._tuples = self._make(self._request), 0
        if self._roll.span is not None:
            self._until = self._clock.now() + self._roll.span.nanoseconds
        return self._part

    def _finish(self) -> None:
        if self._part is None:
            return
        part = self._part
        part.close()
        self._part = self._until = None
        self._parts.add(Finished(part.path, self._latest, self._tuples))
        self._tuples = 0
        if self._ledger is not None:
            self._ledger.done(self._total)
        self._prune()

    def _prune(self) -> None:
        self._outdated = self._parts.prune(self._keep, self._clock.now())


def _count(request: SinkRequest, path: Path) -> int:
    """Return the tuples of a part of an earlier run; 0 if it cannot be read."""
    try:
        reader = open_source(request.name, request.schema, path)
        with contextlib.closing(reader):
            total = 0
            while (chunk := reader.read(SLICE)) is not None:
                total += len(chunk)
                reader.malformed()
            return total
    except HeadwayError:
        return 0
