"""Preemptive rate-based: like rate-based, and a running step gives way when something faster arrives.

Sharaf, Chrysanthis and Labrinidis, "Preemptive Rate-based Operator Scheduling in a Data Stream Management System",
section 3.3. When tuples arrive while a step is running, its unit is ranked by its remaining work: the time already
spent is subtracted from its cost. For n tuples in the step, each of which takes T seconds to the output::

    rate = n yield / (n T - spent)

(T with the step's share of the overhead of calls, as in rate-based.) So a step becomes harder to preempt the longer
it runs, and a preempted step does not lose the work it did. A step that has taken longer than expected is assumed to
end soon.

Ties go to the running step: units that never yield anything all have rate 0, and would otherwise preempt each other
for ever.
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
    """Serve the ready units, including running ones, by output rate over their remaining costs."""

    preemptive: ClassVar[bool] = True

    def terms(self, snapshot: Snapshot, memory: Any) -> tuple[Term, ...]:
        """Return the rate, whether the unit is running, and the oldest timestamp."""
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
