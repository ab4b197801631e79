"""Most tuples in queue: the unit at which most tuples wait, among equals the one with the oldest.

This is MTIQ in the paper on AMoS, section 2.1::

    tuples = the number of tuples that wait at the unit's boxes

and the units are ordered by (tuples, largest first; oldest, smallest first). Long trains share the fixed cost of a
step, and the longest queue shrinks first, so queues stay short in all. Results come late and in bursts: a
selective box far downstream is served only when its queue has become the longest, and under lasting overload a unit
with few tuples waits for as long as others have more. Units where only marks wait come last.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headway.errors import PolicyError
from headway.scheduling.base import Policy, Snapshot, Term, register_policy
from headway.scheduling.ranking import Ranked


@dataclass(frozen=True)
class MostTuples(Ranked):
    """Serve the ready units by the number of their waiting tuples, then by the oldest of them."""

    def terms(self, snapshot: Snapshot, memory: Any) -> tuple[Term, ...]:
        """Return the number of waiting tuples and the oldest timestamp."""
        return Term("tuples", snapshot.waiting, largest=True), Term("oldest", snapshot.oldest)


def _make(argument: str | None) -> Policy:
    if argument is not None:
        raise PolicyError(f"policy 'most-tuples' takes no argument, not '{argument}'")
    return MostTuples()


register_policy(
    "most-tuples",
    _make,
    "the unit at which most tuples wait, among equals the one with the oldest",
    formula="waiting tuples, largest first; then oldest stamp, smallest first",
    paper="AMoS in CAPE, 2.1 (MTIQ)",
    use="short queues and long trains, where results may come late and in bursts",
)
