"""Path capacity: first the path that takes in most tuples per second, run as a whole.

MavStream's strategy for short latency, from Jiang and Chakravarthy, "Scheduling Strategies for Processing Continuous
Queries over Streams" (BNCOD 2004). The processing capacity of the path O1, ..., On, in tuples per second::

    capacity = 1 / (C1 + S1 C2 + S1 S2 C3 + ...)

All boxes of the path have this priority; a box on several paths has the largest. A chosen path is run from beginning
to end, for as long as tuples wait before it. As boxes are chosen one at a time here, this means: ties go to the one
furthest downstream, so that tuples that were taken in are delivered before more are taken in. Then the oldest tuple.
"""

from __future__ import annotations

from dataclasses import dataclass

from headway.columns import Floats
from headway.scheduling.paths import ByPath, Stretches
from headway.scheduling.policy import register_policy


@dataclass(frozen=True)
class PathCapacity(ByPath):
    """Serve the ready units by the capacity of their path, then from its end to its beginning."""

    priority = "capacity"

    def cut(self, single: Stretches) -> tuple[Stretches, Floats]:
        """Return the paths as a whole, and their capacities."""
        whole = single.joined(~single.begins)
        return whole, 1.0 / whole.cost


register_policy(
    "path-capacity",
    lambda _: PathCapacity(),
    "first the path that takes in most tuples per second, from its beginning to its end",
    formula="capacity = 1 / (C1 + S1 C2 + S1 S2 C3 + ...)",
    paper="Jiang and Chakravarthy, Scheduling Strategies for Processing Continuous Queries over Streams, BNCOD 2004",
    use="short latency where memory is plenty",
    takes_argument=False,
)
