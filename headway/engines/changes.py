"""What the adaptive layers and the load shedder changed while a run went on, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from headway.clock import SECOND

MOST = 1_000
"""How many changes are kept of a run; all are counted."""


class Change(NamedTuple):
    """One change: a policy was switched, a drop box was inserted, adjusted or removed, an overload began or ended."""

    moment: int
    """On the run's clock, in nanoseconds."""
    kind: str
    """`switch`, `allow` (a layer lets an output be shed, or no longer), `shed`, `overload`, or `command`."""
    subject: str
    """An output, a site, or the run."""
    what: str
    reason: str


class ChangeLog:
    """The changes of a run, in their order. Used by the scheduler thread."""

    def __init__(self, start: int, most: int = MOST) -> None:
        """Begin with none; moments are told from `start` on."""
        self._start = start
        self._most = most
        self._changes: list[Change] = []
        self.counts: Counter[str] = Counter()

    def add(self, change: Change) -> None:
        """Take a change down."""
        self.counts[change.kind] += 1
        if len(self._changes) < self._most:
            self._changes.append(change)

    def __iter__(self) -> Iterator[Change]:
        """Return the changes that were kept."""
        return iter(self._changes)

    def summary(self, *kinds: str) -> list[dict[str, Any]]:
        """Return the changes of some kinds as a summary tells them; moments in seconds since the start."""
        return [
            {
                "moment": (change.moment - self._start) / SECOND,
                "subject": change.subject,
                "change": change.what,
                "reason": change.reason,
            }
            for change in self._changes
            if change.kind in kinds
        ]
