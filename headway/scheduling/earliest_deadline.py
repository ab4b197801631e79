"""Earliest deadline first: the unit whose oldest tuple is the first to leave the good zone.

The classical rule of real-time scheduling, with deadlines from the QoS graphs. For every unit::

    good     = the end of the good zone of its outputs, the least over them
    deadline = oldest stamp + good
    place    = the number of its last box in topological order

and the units are ordered by (deadline, smallest first; place, largest first). An output without a latency graph, or
with one that never falls, has the zone of `graphs.DEFAULT_GOOD`; so has a unit that leads to no output. Ties go
from the outputs backwards, as in `fifo`: the tuples nearest to delivery are surest to make their deadline.

If everything can be delivered in time, this order does so. Under overload it does not: tuples that are late
already have the earliest deadlines, are served first, and make the next ones late; `slope-slack` gives them up.
It also ignores what a step costs. Units where only marks wait come last.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from headway.clock import SECOND
from headway.columns import NEVER, Int64s
from headway.scheduling.fifo import last_boxes
from headway.scheduling.graphs import unit_zones
from headway.scheduling.policy import Ranked, Term, register_policy
from headway.scheduling.snapshot import Layout, Snapshot

_LONGEST = 2**62
"""The limit of a good zone in nanoseconds, so that sums do not overflow: 146 years."""


@dataclass(frozen=True)
class EarliestDeadline(Ranked):
    """Serve the ready units by the deadline of their oldest tuple, ties from the outputs backwards."""

    def terms(self, snapshot: Snapshot, memory: Any) -> tuple[Term, ...]:
        """Return the deadline and the place."""
        good, last = snapshot.layout.once(_allowances), snapshot.layout.once(last_boxes)
        # NEVER (no tuple) is the largest integer: adding to it would overflow.
        deadline: Int64s = np.minimum(snapshot.oldest, NEVER - good) + good
        return Term("deadline", deadline), Term("place", last, largest=True)


def _allowances(layout: Layout) -> Int64s:
    """Return by unit the end of its good zone in nanoseconds."""
    zones = layout.once(unit_zones)
    return np.rint(np.minimum(zones.reduce(np.minimum, zones.ends) * SECOND, _LONGEST)).astype(np.int64)


register_policy(
    "earliest-deadline",
    lambda _: EarliestDeadline(),
    "the unit whose oldest tuple is the first to leave the good zone of its outputs",
    formula="deadline = oldest stamp + end of the good zone, smallest first",
    paper="the classical rule, with the good zones of Aurora's QoS graphs (Abadi et al., VLDB Journal 2003, 4.3)",
    use="outputs of unequal urgency on hardware that can keep up",
    takes_argument=False,
)
