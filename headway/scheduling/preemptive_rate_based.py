"""Preemptive rate-based: as rate-based, and what has begun gives way when something faster arrives.

Sharaf, Chrysanthis and Labrinidis, "Preemptive Rate-based Operator Scheduling in a Data Stream Management System",
section 3.3. When tuples arrive while a step is under way, its unit is compared by what is left of it: the time that
it has spent is taken off its cost. For n tuples in the step, of which each takes T seconds to the output::

    rate = n yield / (n T - spent)

(T with the step's share of the overhead of calls, as in rate-based.) So a step becomes harder to replace the
longer it runs, and one that was replaced has not lost what it did. A step that has taken longer than expected is
taken to be about to end.

Between equals, what is under way goes on: units that never yield anything all have rate 0, and would otherwise
replace each other for ever.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from headway.scheduling.policy import Ranked, Term, register_policy
from headway.scheduling.rate_based import output_rates
from headway.scheduling.snapshot import Snapshot


@dataclass(frozen=True)
class PreemptiveRateBased(Ranked):
    """Serve the ready units, those under way among them, by output rate with what is left of their costs."""

    preemptive: ClassVar[bool] = True

    def terms(self, snapshot: Snapshot, memory: Any) -> tuple[Term, ...]:
        """Return the rate, whether it is under way, and the oldest timestamp."""
        tuples = np.where(snapshot.held > 0, snapshot.held, np.minimum(snapshot.waiting, snapshot.train))
        rates = output_rates(snapshot.costs, tuples, snapshot.spent)
        return (
            Term("rate", rates, largest=True),
            Term("under way", snapshot.busy.astype(np.int64), largest=True),
            Term("oldest", snapshot.oldest),
        )


register_policy(
    "preemptive-rate-based",
    lambda _: PreemptiveRateBased(),
    "as rate-based, and a step under way gives way when something faster arrives",
    formula="rate = n yield / (n T - spent), for n tuples that take T seconds each to the output",
    paper="Sharaf et al., Preemptive Rate-based Operator Scheduling in a Data Stream Management System, 3.3",
    use="short mean latency of results where some steps take long and others a moment",
    takes_argument=False,
)
