"""Rate-based: first the unit whose tuples become results fastest.

The global output rate of Urhan and Franklin, as Sharaf, Chrysanthis and Labrinidis describe it in "Preemptive
Rate-based Operator Scheduling in a Data Stream Management System", section 3.2. For a box O1 at the beginning of
the path O1, O2, ..., On::

    rate = S1 S2 ... Sn / (C1 + C2 S1 + ... + Cn Sn-1 ... S1)

with selectivities S and costs per tuple C: results per second of work on a tuple that waits there. Where a path
forks, results and costs of all branches count. Largest rate first, ties by the oldest tuple.

The formula has no cost per call. Here a step has one, shared by its tuples: ``overhead / n`` seconds are added to the
cost of a tuple, for the n tuples that a step would take now. Without overhead the result is that of the formula.

A unit that was never measured counts as very fast and is tried at once. One whose tuples never become results has
rate 0: it waits for as long as there is anything else to do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from headway.columns import Floats, Int64s
from headway.costs import UnitCosts
from headway.scheduling.paths import TINY
from headway.scheduling.policy import Ranked, Term, register_policy
from headway.scheduling.snapshot import Snapshot


@dataclass(frozen=True)
class RateBased(Ranked):
    """Serve the ready units by their global output rate, then by their oldest tuple."""

    def terms(self, snapshot: Snapshot, memory: Any) -> tuple[Term, ...]:
        """Return the rate and the oldest timestamp."""
        rates = output_rates(snapshot.costs, np.minimum(snapshot.waiting, snapshot.train), 0.0)
        return Term("rate", rates, largest=True), Term("oldest", snapshot.oldest)


def output_rates(costs: UnitCosts, tuples: Int64s, spent: Floats | float) -> Floats:
    """Return by unit the results per second of remaining work, for steps of `tuples` after `spent` seconds of work."""
    rest = costs.cost + (costs.overhead - spent) / np.maximum(tuples, 1)
    return costs.yields / np.maximum(rest, TINY)


register_policy(
    "rate-based",
    lambda _: RateBased(),
    "first the unit whose tuples become results fastest: productive and cheap paths",
    formula="rate = S1 S2 ... Sn / (C1 + C2 S1 + ... + Cn Sn-1 ... S1)",
    paper="Sharaf et al., Preemptive Rate-based Operator Scheduling in a Data Stream Management System, 3.2 (1)",
    use="short mean latency of results where outputs matter alike",
    takes_argument=False,
)
