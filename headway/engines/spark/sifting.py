"""What the drop boxes of streaming queries let through, from which arrival number on: remembered for replays.

A query that loses a process, or a run that was killed, repeats its last micro-batch. It must drop the same tuples then,
so what is in force is written down before a grant that it counts for is given.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Mapping
from typing import Any

from headway.engines.spark.verifying import SIEVES
from headway.errors import RunError
from headway.sieves import Sieve
from headway.storage.checksums import seal, unseal
from headway.storage.filesystems import Place

_FILE = SIEVES
_MOST = 256
"""Steps of a query that are remembered at most: long before that, what they are about is committed."""


class Sifting:
    """By query a row of steps: an arrival number, and by source the sieve that counts above it."""

    def __init__(self, place: Place) -> None:
        """Read what an earlier process of this run has written."""
        self._place = place
        self._lock = threading.Lock()
        self._steps: dict[str, list[tuple[int, dict[str, Any]]]] = {}
        self._dirty = False
        self.written = _FILE in place.files("")
        """Whether there is a file of it."""
        if self.written:
            try:
                saved = unseal(place.read(_FILE))["steps"]
                self._steps = {unit: [(int(at), dict(sieves)) for at, sieves in steps] for unit, steps in saved.items()}
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise RunError(f"'{place.name(_FILE)}' is damaged; restore it, or give another --state") from error

    def put(self, unit: str, position: int, source: str, sieve: Sieve | None) -> None:
        """Let a sieve count for the tuples of a source above an arrival number; None: all pass."""
        with self._lock:
            steps = self._steps.setdefault(unit, [])
            sieves = dict(steps[-1][1]) if steps else {}
            if sieve is None:
                sieves.pop(source, None)
            else:
                sieves[source] = sieve.to_mapping()
            if (steps[-1][1] if steps else {}) == sieves:
                return
            while steps and steps[-1][0] >= position:
                steps.pop()  # nothing was granted since
            steps.append((position, sieves))
            del steps[:-_MOST]
            self._dirty = True

    def clear(self, unit: str, position: int) -> None:
        """Let everything pass above an arrival number."""
        with self._lock:
            steps = self._steps.get(unit)
            if not steps:
                return
            while steps and steps[-1][0] >= position:
                steps.pop()  # written for a grant that never came
            if steps and steps[-1][1]:
                steps.append((position, {}))
            self._dirty = True

    def write(self, sync: bool) -> None:
        """Write down what has changed, before it counts."""
        with self._lock:
            if self._dirty:
                self._place.write(_FILE, seal({"steps": self._steps}), sync=sync)
                self._dirty, self.written = False, True

    def at(self, unit: str, after: int) -> dict[str, Any]:
        """Return by source the sieves that count for a micro-batch that begins after an arrival number."""
        with self._lock:
            steps = self._steps.get(unit, [])
            place = bisect_right([position for position, _ in steps], after)
            return steps[place - 1][1] if place else {}

    def share(self, unit: str, after: int) -> float:
        """Return which share of a query's tuples passes in a micro-batch that begins after an arrival number."""
        return _share(self.at(unit, after))

    def kept(self, unit: str) -> list[tuple[int, float]]:
        """Return from which arrival numbers on which share of a query's tuples was kept."""
        with self._lock:
            return [(position + 1, _share(sieves)) for position, sieves in self._steps.get(unit, [])]


def _share(sieves: Mapping[str, Any]) -> float:
    """Return what drop boxes keep that a site has put at all its sources: the same share."""
    return float(min((sieve["keep"] for sieve in sieves.values()), default=1.0))
