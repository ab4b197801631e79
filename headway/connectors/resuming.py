"""How a source goes on when a saved run does: read again from its first tuple, by itself, or with what comes."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from headway.connectors.base import Reader


@runtime_checkable
class Resumable(Protocol):
    """A reader that goes on by itself where a saved run stopped, instead of being read anew and skipped."""

    def resume(self, folder: str, tuples: int, refused: int) -> None:
        """Keep what is needed to go on in `folder` (a path or URI of this source alone), from now on.

        Called once, before the first read, also in the first run. `tuples` and `refused` say how many tuples and
        malformed rows of this source the log has: exactly what follows them is read. Moments of a timed source go on
        where they were: they count from the start of the very first run.
        """
        ...

    def acknowledge(self, tuples: int, refused: int) -> None:
        """Note that so many tuples and malformed rows, from the very first one on, are durable. Never blocks."""
        ...


def begins_anew(reader: Reader) -> bool:
    """Whether a reader that is opened again gives the tuples of the last time from the first one on.

    Sources that are not live do. A live one says so itself, with an attribute `anew`: an iterator that the same
    program makes again does, a pipe has no beginning to go back to.
    """
    return bool(getattr(reader, "anew", not reader.live))
