"""Feedback: outputs that do badly gain priority, outputs that do well give it back.

The feedback-based assignment of priorities in Abadi et al., "Aurora: a new model and architecture for data stream
management" (VLDB Journal 2003), section 4.3, which gives the idea and no rule. The rule here: at every look, by
default 100 ms after the last one, for every output::

    u         = mean utility of the tuples delivered since the last look
    shortfall = 1 - u / best, where best is the highest utility of its latency graph
    priority  = min(MOST, priority + shortfall)   if shortfall > TOLERANCE: it does badly
                priority * KEEP                   otherwise: it is in its good zone

A unit's priority is the largest of its outputs', as a whole number; the units are ordered by (priority, largest
first; oldest stamp, smallest first).

Why so. What does badly is raised by how badly it does, within a few looks; what does well sinks slowly, because the
reason why it does well may be its priority. Whole numbers let outputs that do about as well share by age
instead of one shutting the others out by a hair. The bounds make the rule forgetful: after bad times all return to
0, where the policy is first in, first out, and when everybody does badly all meet at MOST, where it is so, too.

An output that delivered nothing since the last look is judged by what waits for it: its shortfall is 1 if the oldest of
these tuples is past the good zone, else 0. Waiting as such is no harm, and an interval may be shorter than a good zone
or a step; but nobody waits unseen, whatever the priority of others: a starving output gains 1 with each look. Outputs
without a latency graph always deliver the utility 1, so they gain priority by starving only, beyond
`graphs.DEFAULT_GOOD`. Units that lead to no output have the priority 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headway.catalog import Floats
from headway.clock import MILLISECOND, SECOND
from headway.columns import Int64s, Mask
from headway.costs import Places
from headway.durations import parse_timeout
from headway.errors import within
from headway.scheduling.graphs import good_ends
from headway.scheduling.policy import Policy, Ranked, Term, register_policy
from headway.scheduling.snapshot import NEVER, Layout, Snapshot

MOST = 8.0
"""The highest priority: an output that starves is there after as many looks."""
KEEP = 0.95
"""How much of its priority an output in its good zone keeps from look to look: from MOST to 0 in 55 looks."""
TOLERANCE = 0.01
"""The shortfall up to which an output counts as good: a few late tuples in a hundred are no reason to act."""
INTERVAL = 100 * MILLISECOND


@dataclass(frozen=True, slots=True)
class UnitOutputs:
    """Which unit leads to which output: one row for each pair, in the order of the units. And what outputs want."""

    units: int
    """How many there are."""
    unit: Places
    output: Places
    best: Floats
    """By output: the highest utility that it can have."""
    good: Floats
    """By output: the end of its good zone in seconds."""

    def oldest(self, stamps: Int64s) -> Int64s:
        """Return by output the least stamp of the units that lead to it, the largest number if there is none."""
        oldest = np.full(len(self.best), NEVER)
        np.minimum.at(oldest, self.output, stamps[self.unit])
        return oldest

    def largest(self, priorities: Floats) -> Floats:
        """Return by unit the largest priority of its outputs, 0 where it has none."""
        largest = np.zeros(self.units)
        np.maximum.at(largest, self.unit, priorities[self.output])
        return largest


@dataclass(frozen=True, slots=True)
class FeedbackMemory:
    """What is remembered: priorities, and what had been delivered at the last look. Arrays are its own."""

    leads: UnitOutputs
    looked: int
    """When (ns)."""
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
    """The least time between two looks at the outputs (ns)."""

    def prepare(self, snapshot: Snapshot, memory: FeedbackMemory | None) -> FeedbackMemory:
        """Look at the outputs if it is time to; all begin with the priority 0."""
        if memory is None or memory.leads is not snapshot.layout.once(_unit_outputs):
            return _begin(snapshot)
        if snapshot.now - memory.looked < self.interval:
            return memory
        return _look(snapshot, memory)

    def terms(self, snapshot: Snapshot, memory: FeedbackMemory) -> tuple[Term, ...]:
        """Return the priority and the oldest timestamp."""
        return Term("priority", memory.ranks, largest=True), Term("oldest", snapshot.oldest)


def shortfalls(best: Floats, delivered: Int64s, earned: Floats, late: Mask) -> Floats:
    """Return by output how badly it does, from 0 (in its good zone) to 1.

    `delivered` and `earned` are tuples and their utilities since the last look, `late` says where the oldest waiting
    tuple is past the good zone, which counts where nothing was delivered.
    """
    mean = earned / np.maximum(delivered, 1)
    lacking = np.clip(1 - mean / np.where(best > 0, best, 1.0), 0.0, 1.0)
    return np.where(delivered > 0, np.where(best > 0, lacking, 0.0), late.astype(np.float64))


def moved(priorities: Floats, shortfall: Floats) -> Floats:
    """Return the priorities after a look that found these shortfalls."""
    return np.where(shortfall > TOLERANCE, np.minimum(MOST, priorities + shortfall), priorities * KEEP)


def _begin(snapshot: Snapshot) -> FeedbackMemory:
    leads, outputs = snapshot.layout.once(_unit_outputs), snapshot.outputs
    none, earned = np.zeros(len(leads.best)), outputs.delivered * outputs.utility
    return FeedbackMemory(leads, snapshot.now, outputs.delivered.copy(), earned, none, np.zeros(leads.units))


def _look(snapshot: Snapshot, watch: FeedbackMemory) -> FeedbackMemory:
    leads, outputs = watch.leads, snapshot.outputs
    earned = outputs.delivered * outputs.utility
    oldest = leads.oldest(snapshot.oldest)
    some = oldest < NEVER
    late = some & ((snapshot.now - np.where(some, oldest, snapshot.now)) / SECOND > leads.good)
    found = shortfalls(leads.best, outputs.delivered - watch.delivered, earned - watch.earned, late)
    priorities = moved(watch.priorities, found)
    ranks = np.rint(leads.largest(priorities))
    return FeedbackMemory(leads, snapshot.now, outputs.delivered.copy(), earned, priorities, ranks)


def _unit_outputs(layout: Layout) -> UnitOutputs:
    rows = [(at, output) for at, unit in enumerate(layout.units) for output in unit.outputs]
    unit, output = np.array(rows, np.intp).reshape(-1, 2).T
    best = [1.0 if one.latency is None else max(y for _, y in one.latency.points) for one in layout.topology.qos]
    return UnitOutputs(len(layout.units), unit, output, np.array(best), np.array(good_ends(layout.topology)))


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
