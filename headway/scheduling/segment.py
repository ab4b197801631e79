"""Segment: first the segment of a path that sets most memory free per second, run as a whole.

MavStream's strategy for small queues, from Jiang and Chakravarthy, "Scheduling Strategies for Processing Continuous
Queries over Streams" (BNCOD 2004). The memory release capacity of the boxes O1, ..., Ok in a row::

    release = (size in - S1 ... Sk * size out) / (C1 + S1 C2 + ... + S1 ... Sk-1 Ck)

bytes per second; results leave the system, so that nothing comes out of a path's last box. Going along a path, a box
joins the segment of the box before it while its own release is larger than that of the box before; otherwise it
begins a new segment. That is done once: unlike Chain, segments are not joined further, so a segment may be worth
more than the one before it.

The boxes of a segment share its release; one that is on several paths has the largest. Among equals the one furthest
downstream comes first, so that a segment is run as a whole, then the one with the oldest tuple.
"""

from __future__ import annotations

from dataclasses import dataclass

from headway.catalog import BoxReadings
from headway.columns import Floats
from headway.scheduling.paths import ByPath, Paths, Stretches
from headway.scheduling.policy import register_policy


@dataclass(frozen=True)
class SegmentPolicy(ByPath):
    """Serve the ready units by the release of their segment, then from its end to its beginning."""

    priority = "release"

    def priorities(self, paths: Paths, boxes: BoxReadings) -> Floats:
        """Return by box the release of its segment."""
        segments = self.segments(paths.stretches(boxes))
        return paths.largest(segments, segments.slope)

    def segments(self, single: Stretches) -> Stretches:
        """Return the segments of paths that are given box by box."""
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
