"""Most tuples in queue: the unit with the most waiting tuples; ties go to the one furthest upstream.

This is MTIQ in the paper on AMoS, section 2.1::

    tuples = the number of tuples that wait at the unit's boxes

and the units are ordered by tuples, largest first; ties by unit number, which follows the network: the paper does not
state how ties are broken, but its table 2 shows it. Long trains amortise the fixed cost of a step, and the longest
queue shrinks first, so queues stay short overall. Results come late and in bursts: a selective box far downstream is
served only when its queue has become the longest, and under lasting overload a unit with few tuples waits for as long
as others have more. Units where only marks wait come last.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headway.scheduling.policy import Ranked, Term, register_policy
from headway.scheduling.snapshot import Snapshot


@dataclass(frozen=True)
class MostTuples(Ranked):
    """Serve the ready units by the number of their waiting tuples."""

    def terms(self, snapshot: Snapshot, memory: Any) -> tuple[Term, ...]:
        """Return the number of waiting tuples."""
        return (Term("tuples", snapshot.waiting, largest=True),)


register_policy(
    "most-tuples",
    lambda _: MostTuples(),
    "the unit at which most tuples wait, among equals the one furthest upstream",
    formula="waiting tuples, largest first",
    paper="AMoS in CAPE, 2.1 (MTIQ)",
    use="short queues and long trains, where results may come late and in bursts",
    takes_argument=False,
)
