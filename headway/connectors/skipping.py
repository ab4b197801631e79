"""Go on with an input where a saved run stopped: read and forget what that run has taken."""

from __future__ import annotations

import threading

from headway.connectors.base import Chunk, Malformed, Reader
from headway.connectors.wrapping import Wrapped
from headway.errors import InputError

_READ = 65_536
"""At most this many tuples are read at a time while they are skipped."""


def skip(reader: Reader, tuples: int, source: str = "", refused: int | None = None) -> Reader:
    """Return a reader of what comes after the first `tuples` tuples of another, which it closes.

    Skipping happens at the first `read`, which raises an InputError that names the source if the input ends too
    early. The moments of a timed source stay as they are: only who knows all sources can shift them, all by as much.

    `refused` says how many malformed rows the saved run has reported: so many are forgotten, which is exact,
    because malformed rows come in the input's order. Without it, those met while skipping are forgotten. That
    is exact for sources that read row by row; one that reads in blocks also forgets those that stand behind the
    last skipped tuple in its block.
    """
    if tuples <= 0 and not refused:
        return reader
    return SkippingReader(reader, tuples, source or str(getattr(reader, "name", "?")), refused)


class SkippingReader(Wrapped):
    """A source without its first tuples. `skip` makes it."""

    def __init__(self, reader: Reader, tuples: int, source: str, refused: int | None) -> None:
        """Skip at the first read."""
        super().__init__(reader)
        self._tuples = tuples
        self._source = source
        self._exact = refused is not None
        self._forget = refused or 0
        self._skipped = 0
        self._malformed: list[Malformed] = []
        self._lock = threading.RLock()

    @property
    def timed(self) -> bool:
        """Whether the source under it has moments."""
        return self._reader.timed

    def read(self, limit: int) -> Chunk | None:
        """Return the next tuples behind the skipped ones."""
        while self._skipped < self._tuples:
            self._skip()
        return self._reader.read(limit)

    def _skip(self) -> None:
        """Read and forget some tuples, none behind the last to be skipped."""
        chunk = self._reader.read(min(self._tuples - self._skipped, _READ))
        if chunk is None:
            raise InputError(
                f"source '{self._source}' has fewer tuples ({self._skipped}) than the saved run took from it "
                f"({self._tuples}): give the same input, or another --state"
            )
        self._collect()
        self._skipped += len(chunk)

    def malformed(self) -> list[Malformed]:
        """Return the malformed rows met since the last call that the saved run has not reported."""
        with self._lock:
            self._collect()
            kept, self._malformed = self._malformed, []
        return kept

    def _collect(self) -> None:
        # A live source is read by one thread while another asks for its malformed rows.
        with self._lock:
            met = self._reader.malformed()
            if self._exact:
                forgotten = min(self._forget, len(met))
                self._forget -= forgotten
                self._malformed += met[forgotten:]
            elif self._skipped >= self._tuples:
                self._malformed += met
