"""A reader around another one, for what both do alike."""

from __future__ import annotations

from pathlib import Path

from headway.connectors.base import Chunk, Malformed, Reader
from headway.connectors.identity import Identified, Identity
from headway.connectors.resuming import begins_anew


class Wrapped:
    """Passes on what the reader under it says; the ones around add `timed` and `read`."""

    def __init__(self, reader: Reader) -> None:
        """Stand around a reader; this object closes it."""
        self._reader = reader

    @property
    def finite(self) -> bool:
        """Whether the source under it is known to end."""
        return self._reader.finite

    @property
    def live(self) -> bool:
        """Whether reads of the source under it can block."""
        return self._reader.live

    def identity(self) -> tuple[Path, Identity] | None:
        """Return which file the source under it is, if it is one."""
        return self._reader.identity() if isinstance(self._reader, Identified) else None

    @property
    def anew(self) -> bool:
        """Whether the source under it begins with its first tuple whenever it is opened."""
        return begins_anew(self._reader)

    def malformed(self) -> list[Malformed]:
        """Return the malformed rows of the source under it."""
        return self._reader.malformed()

    def close(self) -> None:
        """Close the source under it."""
        self._reader.close()


class Awaited(Wrapped):
    """A live source that is waited for like any other, where time does not pass meanwhile."""

    live = False

    @property
    def timed(self) -> bool:
        """Whether the source under it says when its tuples are due."""
        return self._reader.timed

    def read(self, limit: int) -> Chunk | None:
        """Return the next tuples; blocks until there are some."""
        return self._reader.read(limit)
