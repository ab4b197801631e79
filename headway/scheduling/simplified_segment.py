"""Simplified segment: like segment, with two segments per path, the first one and all the rest.

From Jiang and Chakravarthy, "Scheduling Strategies for Processing Continuous Queries over Streams" (BNCOD 2004). After
the first segment often little of a tuple is left, so that cutting the rest into further segments saves little memory;
run as a whole it delivers its results sooner. Formula and order are those of segment.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headway.scheduling.paths import Stretches
from headway.scheduling.policy import register_policy
from headway.scheduling.segment import SegmentPolicy


@dataclass(frozen=True)
class SimplifiedSegment(SegmentPolicy):
    """Serve the ready units by the release of their segment, the first of its path or the rest."""

    def segments(self, single: Stretches) -> Stretches:
        """Return the first segment and the rest of every path."""
        ends = ~single.steeper() & ~single.begins  # a segment ended before this place
        ended = np.cumsum(ends)
        before = np.repeat(ended[single.begins], np.diff(np.flatnonzero(single.begins), append=len(ends)))
        return single.joined(~(single.begins | (ends & (ended - before == 1))))


register_policy(
    "simplified-segment",
    lambda _: SimplifiedSegment(),
    "as segment, with two segments in a path: the one at its beginning and all the rest",
    formula="release = (size in - S1 ... Sk * size out) / (C1 + S1 C2 + ... + S1 ... Sk-1 Ck)",
    paper="Jiang and Chakravarthy, Scheduling Strategies for Processing Continuous Queries over Streams, BNCOD 2004",
    use="small queues with shorter latency than segment",
    takes_argument=False,
)
