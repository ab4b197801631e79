"""What one measurement is: plain data that the runner hands to a process of its own."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from benchmarks.streaming.utility import Span

CAP = 2_000_000
"""The most tuples of a micro-batch where a backlog is drained: as many as Headway lets wait."""

PLAIN = {
    "plain": "a query per application, default trigger",
    "plain, FAIR": "a query per application, each in a FAIR pool of its own",
    "plain, 1 s": "a query per application, a trigger every second",
    "plain, 5 s": "a query per application, a trigger every 5 seconds",
}
MERGED = {
    "merged, SQL": "one query in SQL: tagged rows and conditional counts",
    "merged, Python": "one query with a Python operator over Arrow bytes, written by hand",
}
HEADWAY = {"headway": "one network, engine spark, default policy"}
SYSTEMS = {**HEADWAY, **PLAIN, **MERGED}


@dataclass(frozen=True)
class Setting:
    """One measurement.

    The stream runs for `warm` seconds that do not count, `seconds` that do, and `tail` seconds in which what has
    arrived may still be delivered while the load goes on. With `total` it is a backlog of that many tuples instead.
    """

    system: str
    apps: int = 20
    rate: float = 2_000.0
    warm: float = 10.0
    seconds: float = 30.0
    tail: float = 20.0
    total: int = 0
    windowed: bool = False
    """Which one of the applications drains a backlog."""
    spawned: int = 0
    """When the process was started: nanoseconds since 1970."""
    profile: str = ""
    """A file for a profile of Headway's scheduler thread."""

    @property
    def span(self) -> Span:
        """Which arrivals count, and until when deliveries are watched."""
        return Span(self.warm, self.warm + self.seconds, self.warm + self.seconds + self.tail)

    def to_json(self) -> str:
        """Write to one line."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Setting:
        """Read what `to_json` wrote."""
        return cls(**json.loads(text))
