"""First in, first out: the unit with the oldest waiting tuple.

A tuple carries the time at which it entered the network along its whole path, so that its age is the time in the
network and not in one queue. For every unit::

    oldest = the smallest such stamp among its waiting tuples
    place  = the number of its last box in topological order

and the units are ordered by (oldest, smallest first; place, largest first). Results of a tuple keep its stamp, and a
box comes after all boxes that it reads: by the second term a tuple is pushed through its whole path before others of
the same age start, which is the pipelined FIFO of Sharaf et al., "Preemptive Rate-based Operator Scheduling in a Data
Stream Management System", section 3.4. It keeps latency even, and ignores costs and urgency.

What is pushed is a train, and an engine that carries out long plans starts others meanwhile: with trains of 1 and a
room of 1 it is the FIFO of the paper. Units where only marks wait come last.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from headway.columns import Int64s
from headway.scheduling.policy import Ranked, Term, register_policy
from headway.scheduling.snapshot import Layout, Snapshot


@dataclass(frozen=True)
class Fifo(Ranked):
    """Serve the ready units by their oldest tuple, ties from the outputs backwards."""

    def terms(self, snapshot: Snapshot, memory: Any) -> tuple[Term, ...]:
        """Return the oldest timestamp and the place."""
        return Term("oldest", snapshot.oldest), Term("place", snapshot.layout.once(last_boxes), largest=True)


def last_boxes(layout: Layout) -> Int64s:
    """Return by unit the number of its last box; boxes are numbered in topological order."""
    return np.array([max(unit.boxes, default=-1) for unit in layout.units], np.int64)


register_policy(
    "fifo",
    lambda _: Fifo(),
    "the unit with the oldest waiting tuple, among equals the one furthest downstream",
    formula="oldest stamp, smallest first; then the number of the unit's last box, largest first",
    paper="Sharaf et al., Preemptive Rate-based Operator Scheduling in a DSMS, 3.4; AMoS in CAPE, 2.1 (FIFO)",
    use="even latency at all outputs when they are equally urgent, and steady results",
    takes_argument=False,
)
