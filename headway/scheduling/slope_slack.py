"""Slope and slack: the unit that loses most utility by waiting; ties go to the one closest to losing some.

This is the QoS-driven policy of Carney et al., "Operator Scheduling in a Data Stream Manager" (VLDB 2003),
section 6.1. For every unit::

    eol     = mean latency of its waiting tuples + cost(D), the time until they are delivered
    utility = - gradient of the output's latency graph at eol, summed over its outputs
    est     = next critical point of the graph - eol, the least over its outputs

and the units are ordered by (utility, largest first; est, smallest first), then by their oldest tuple.

Two interpretations of the paper. The "closest critical point" is the closest one ahead: a point that was passed
can no longer be missed, and the distance to it would make tuples urgent that have nothing left to lose. And the
end of the good zone is a critical point even if it is the graph's first point, so that graphs that draw the same
line are treated alike. A unit whose tuples have passed all critical points has utility 0 and infinite est: it comes
last, and under lasting overload it waits for as long as other units still have utility to lose.

If a step takes a whole queue that spans seconds, the mean is not enough: at a mean latency of 20 s the oldest tuples
are 40 s old, and if the mean has passed all critical points, half of the queue may still be in time.
``slope-slack:8`` takes 8 sample ages instead, spread evenly from the oldest to the newest tuple; utility is their
mean, est their minimum. For tuples of equal age the result is the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from headway.clock import SECOND
from headway.columns import Floats
from headway.errors import PolicyError
from headway.scheduling.graphs import unit_graphs
from headway.scheduling.policy import Policy, Ranked, Term, register_policy
from headway.scheduling.snapshot import Snapshot

_MOST_SAMPLES = 64
_QOS_SAMPLES = 8


@dataclass(frozen=True)
class SlopeSlack(Ranked):
    """Serve the ready units by slope, then slack, then their oldest tuple."""

    samples: int = 1
    """How many ages are sampled among a unit's waiting tuples; 1 is the paper's mean."""

    def terms(self, snapshot: Snapshot, memory: Any) -> tuple[Term, ...]:
        """Return utility, slack and the oldest timestamp."""
        utility, slack = self._priorities(snapshot)
        return Term("utility", utility, largest=True), Term("slack", slack), Term("oldest", snapshot.oldest)

    def _priorities(self, snapshot: Snapshot) -> tuple[Floats, Floats]:
        """Return by unit its utility and its slack."""
        expected = snapshot.costs.seconds(np.minimum(snapshot.waiting, snapshot.train))
        graphs, mean = snapshot.layout.once(unit_graphs), snapshot.latencies
        if self.samples == 1:
            return graphs.slopes_and_slacks(mean + expected)
        some = snapshot.waiting > 0
        older = np.where(some, (snapshot.now - np.where(some, snapshot.oldest, snapshot.now)) / SECOND - mean, 0.0)
        # Arrivals are assumed to be even: the newest tuple is as far from the mean as the oldest.
        places = 1 - (2 * np.arange(self.samples) + 1) / self.samples
        slopes, slacks = graphs.slopes_and_slacks(places[:, None] * older + (mean + expected))
        utility: Floats = np.add.reduce(slopes) / self.samples
        slack: Floats = np.minimum.reduce(slacks)
        return utility, slack


def _make(argument: str | None) -> Policy:
    if argument is None:
        return SlopeSlack()
    if not argument.isdecimal() or not 1 <= int(argument) <= _MOST_SAMPLES:
        raise PolicyError(
            f"policy 'slope-slack:{argument}': a number of tuples to look at, 1 to {_MOST_SAMPLES}, "
            "stands after the colon"
        )
    return SlopeSlack(int(argument))


def _make_qos(argument: str | None) -> Policy:
    if argument is not None:
        raise PolicyError(f"policy 'qos' takes no argument, not '{argument}'; slope-slack does")
    return SlopeSlack(_QOS_SAMPLES)


register_policy(
    "slope-slack",
    _make,
    "by QoS: the unit that loses most utility by waiting, then the one nearest to losing some",
    formula="utility = -gradient(eol), then slack = next critical point - eol; eol = latency + cost(D)",
    paper="Carney et al., Operator Scheduling in a Data Stream Manager, VLDB 2003, 6.1 (the p-tuple)",
    use="outputs of unequal urgency on hardware that cannot always keep up",
)
register_policy(
    "qos",
    _make_qos,
    f"the QoS policy: slope-slack:{_QOS_SAMPLES}",
    formula="as slope-slack, over 8 waiting tuples from the oldest to the newest",
    paper="Carney et al., VLDB 2003, 6.1; looking at more than the mean is ours",
    use="outputs of unequal urgency on hardware that cannot always keep up",
)
