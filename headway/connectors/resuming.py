"""Sources that keep their own place: what an engine with a state directory tells them."""

from __future__ import annotations

from typing import Protocol, runtime_checkable


@runtime_checkable
class Resumable(Protocol):
    """A reader that goes on by itself where a saved run stopped, instead of being read anew and skipped."""

    def resume(self, folder: str, tuples: int, refused: int) -> None:
        """Keep what is needed to go on in `folder` (a path or URI of this source alone), from now on.

        Called once, before the first read, also in the first run. `tuples` and `refused` say how many tuples and
        malformed rows of this source the log has: exactly what follows them is read.
        """
        ...

    def acknowledge(self, tuples: int, refused: int) -> None:
        """Note that so many tuples and malformed rows, from the very first one on, are durable. Never blocks."""
        ...
