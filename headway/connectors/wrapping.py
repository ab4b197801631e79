"""A reader around another one, for what both do alike."""

from __future__ import annotations

from headway.connectors.base import Malformed, Reader


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

    def malformed(self) -> list[Malformed]:
        """Return the malformed rows of the source under it."""
        return self._reader.malformed()

    def close(self) -> None:
        """Close the source under it."""
        self._reader.close()
