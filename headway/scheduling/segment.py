"""Segment: first the segment of a path that frees most memory per second, run as a whole.

MavStream's strategy for small queues, from Jiang and Chakravarthy, "Scheduling Strategies for Processing Continuous
Queries over Streams" (BNCOD 2004). The memory release capacity of the boxes O1, ..., Ok in a row::

    release = (size in - S1 ... Sk * size out) / (C1 + S1 C2 + ... + S1 ... Sk-1 Ck)

in bytes per second; results leave the system, so the output size of a path's last box is 0. Along a path, a box joins
the segment of the box before it if its own release is larger than that of the box before; otherwise it begins a new
segment. That is done once: unlike in Chain, segments are not joined further, so a segment may have a larger release
than the one before it.

All boxes of a segment have its release as their priority; a box on several paths has the largest. Ties go to the one
furthest downstream, so that a segment is run as a whole, then to the one with the oldest tuple.
"""

from __future__ import annotations

from dataclasses import dataclass

from headway.columns import Floats
from headway.scheduling.paths import ByPath, Stretches
from headway.scheduling.policy import register_policy


@dataclass(frozen=True)
class SegmentPolicy(ByPath):
    """Serve the ready units by the release of their segment, then from its end to its beginning."""

    priority = "release"

    def cut(self, single: Stretches) -> tuple[Stretches, Floats]:
        """Return the segments, and their releases."""
        segments = self.segments(single)
        return segments, segments.slope

    def segments(self, single: Stretches) -> Stretches:
        """Return the segments, given paths with one stretch per box."""
        return single.joined(single.steeper())


register_policy(
    "segment",
    lambda _: SegmentPolicy(),
    "first the segment of a path that sets most memory free per second, run as a whole",
    formula="release = (size in - S1 ... Sk * size out) / (C1 + S1 C2 + ... + S1 ... Sk-1 Ck)",
    paper="Jiang and Chakravarthy, Scheduling Strategies for Processing Continuous Queries over Streams, BNCOD 2004",
    use="small queues, where memory is short",
    takes_argument=False,
)
