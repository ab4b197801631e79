"""Feedback: outputs with low utility gain priority, outputs in their good zone lose it again.

The feedback-based assignment of priorities in Abadi et al., "Aurora: a new model and architecture for data stream
management" (VLDB Journal 2003), section 4.3, which gives the idea but no rule. The rule here: at every update, by
default 100 ms after the last one, for every output::

    u         = mean utility of the tuples delivered since the last update
    shortfall = 1 - u / best, where best is the highest utility of its latency graph
    priority  = min(MOST, priority + shortfall)   if shortfall > TOLERANCE: it does badly
                priority * KEEP                   otherwise: it is in its good zone

A unit's priority is the largest of its outputs', as a whole number; the units are ordered by (priority, largest
first; oldest stamp, smallest first).

Reasons: an output that does badly rises in proportion to its shortfall, within a few updates; one that does well
falls slowly, because it may do well thanks to its priority. With whole numbers, outputs that do about equally well
share by age; otherwise a tiny difference would let one shut out the others. The bounds limit the effect of the past:
after bad times all priorities return to 0, where the policy is first in, first out; and when all outputs do badly,
all priorities reach MOST, with the same effect.

An output that delivered nothing since the last update is judged by the tuples waiting for it: its shortfall is 1 if
the oldest of them is past the good zone, else 0. Waiting as such does no harm, and an interval may be shorter than a
good zone or a step; but a starving output gains 1 with each update, whatever the priority of the others. Outputs
without a latency graph always deliver the utility 1, so they gain priority only by starving, beyond
`graphs.DEFAULT_GOOD`. Units that lead to no output have the priority 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headway.clock import MILLISECOND, SECOND
from headway.columns import NEVER, Floats, Int64s, Mask, ReadOnly
from headway.durations import parse_timeout
from headway.errors import within
from headway.scheduling.graphs import Zones, unit_zones
from headway.scheduling.policy import Policy, Ranked, Term, register_policy
from headway.scheduling.snapshot import Layout, Snapshot

MOST = 8.0
"""The highest priority; a starving output reaches it after as many updates."""
KEEP = 0.95
"""The share of its priority that an output in its good zone keeps at each update: from MOST to 0 in 55 updates."""
TOLERANCE = 0.01
"""The shortfall up to which an output counts as good: a few slightly late tuples are no reason to act."""
INTERVAL = 100 * MILLISECOND


@dataclass(frozen=True, slots=True)
class FeedbackMemory(ReadOnly):
    """The policy's memory: priorities, and the deliveries up to the last update."""

    zones: Zones
    looked: int
    """The moment of the last update (ns)."""
    delivered: Int64s
    """By output: tuples delivered until then."""
    earned: Floats
    """By output: the sum of their utilities."""
    priorities: Floats
    """By output."""
    ranks: Floats
    """By unit: the largest priority of its outputs, as a whole number."""


@dataclass(frozen=True)
class Feedback(Ranked):
    """Serve the ready units by the priority of their outputs, then by their oldest tuple."""

    interval: int = INTERVAL
    """The minimum time between two updates of the priorities (ns)."""

    def prepare(self, snapshot: Snapshot, memory: FeedbackMemory | None) -> FeedbackMemory:
        """Update the priorities if the interval has passed; initially all are 0."""
        if memory is None or memory.zones is not snapshot.layout.once(unit_zones):
            return _begin(snapshot)
        if snapshot.now - memory.looked < self.interval:
            return memory
        return _look(snapshot, memory)

    def terms(self, snapshot: Snapshot, memory: FeedbackMemory) -> tuple[Term, ...]:
        """Return the priority and the oldest timestamp."""
        return Term("priority", memory.ranks, largest=True), Term("oldest", snapshot.oldest)


def shortfalls(best: Floats, delivered: Int64s, earned: Floats, late: Mask) -> Floats:
    """Return by output its shortfall, from 0 (in its good zone) to 1.

    `delivered` and `earned` count tuples and sum their utilities since the last update; `late` says whether the
    oldest waiting tuple is past the good zone, which decides if nothing was delivered.
    """
    mean = earned / np.maximum(delivered, 1)
    lacking = np.clip(1 - mean / np.where(best > 0, best, 1.0), 0.0, 1.0)
    return np.where(delivered > 0, np.where(best > 0, lacking, 0.0), late.astype(np.float64))


def moved(priorities: Floats, shortfall: Floats) -> Floats:
    """Return the priorities updated by these shortfalls."""
    return np.where(shortfall > TOLERANCE, np.minimum(MOST, priorities + shortfall), priorities * KEEP)


def _begin(snapshot: Snapshot) -> FeedbackMemory:
    outputs, earned = snapshot.outputs, snapshot.outputs.delivered * snapshot.outputs.utility
    none, ranks = np.zeros(len(earned)), np.zeros(len(snapshot.units))
    return FeedbackMemory(snapshot.layout.once(unit_zones), snapshot.now, outputs.delivered, earned, none, ranks)


def _look(snapshot: Snapshot, watch: FeedbackMemory) -> FeedbackMemory:
    zones, outputs = watch.zones, snapshot.outputs
    earned = outputs.delivered * outputs.utility
    oldest = zones.oldest(snapshot.oldest)
    some = oldest < NEVER
    late = some & ((snapshot.now - np.where(some, oldest, snapshot.now)) / SECOND > zones.ends[:-1])
    best = snapshot.layout.once(_best)
    found = shortfalls(best, outputs.delivered - watch.delivered, earned - watch.earned, late)
    priorities = moved(watch.priorities, found)
    ranks = np.rint(zones.reduce(np.maximum, np.append(priorities, 0.0)))
    return FeedbackMemory(zones, snapshot.now, outputs.delivered, earned, priorities, ranks)


def _best(layout: Layout) -> Floats:
    """Return by output the highest utility of its latency graph."""
    graphs = [qos.latency for qos in layout.topology.qos]
    return np.array([1.0 if graph is None else max(y for _, y in graph.points) for graph in graphs])


def _make(argument: str | None) -> Policy:
    if argument is None:
        return Feedback()
    with within(f"policy 'feedback:{argument}': how often to look at the outputs stands after the colon"):
        return Feedback(parse_timeout(argument).nanoseconds)


register_policy(
    "feedback",
    _make,
    "outputs that do badly gain priority, outputs in their good zone give it back; then by the oldest tuple",
    formula="shortfall = 1 - mean utility since the last look / best; priority += shortfall if > 0.01, else *= 0.95",
    paper="Abadi et al., Aurora: a new model and architecture for data stream management, VLDB Journal 2003, 4.3",
    use="costs or rates that no model foretells: it steers by results alone, a look (:100ms) at a time",
)
