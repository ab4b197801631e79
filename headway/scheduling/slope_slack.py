"""Slope and slack: the unit that loses most utility by waiting, among equals the one nearest to losing some.

This is the QoS-driven policy of Carney et al., "Operator Scheduling in a Data Stream Manager" (VLDB 2003),
section 6.1. For every unit::

    eol     = mean latency of its waiting tuples + cost(D), the time until they are delivered
    utility = - gradient of the output's latency graph at eol, summed over its outputs
    est     = next critical point of the graph - eol, the least over its outputs

and the units are ordered by (utility, largest first; est, smallest first), then by their oldest tuple.

Two readings of the paper. The "closest critical point" is the closest one ahead: a point that was passed
can no longer be missed, and a distance to it would call tuples urgent that have nothing left to lose. And the
end of the good zone is a critical point also where it is the graph's first point, so that graphs that draw
the same line are treated alike. A unit whose tuples are past everything has utility 0 and no slack to
lose (est infinite): it comes last, and under lasting overload it waits for as long as others can still win.

Where a step takes all that waits, over seconds, the mean says too little: at a mean latency of 20 s the oldest
tuples are 40 s old, and of a queue whose mean is past everything half may still be saved. ``slope-slack:8`` looks
at 8 tuples instead, spread evenly from the oldest to the newest; utility is their mean, est the least of them.
With tuples of one age both are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from headway.clock import SECOND
from headway.errors import PolicyError
from headway.scheduling.base import Floats, Plan, Policy, Snapshot, Step, register_policy
from headway.scheduling.graphs import UnitGraphs, unit_graphs

Places = npt.NDArray[np.intp]

_WORK = 0.002
"""Seconds of expected work in a plan; after that, latencies have changed enough to look again."""
_MOST_SAMPLES = 64
_STEPS = 64
"""The most steps in a plan, as long as nothing is known of costs; and how many units are put in order at all."""


@dataclass(frozen=True, slots=True)
class SlopeSlack:
    """Serve the ready units by slope, then slack.

    An engine carries out a whole plan before it asks for the next, so a long plan acts on old latencies, and
    a plan of one short step costs more than the step. A plan therefore holds about two milliseconds of
    expected work: many short steps, or one long step. With several workers it holds at most a step for
    each free one, for units that do not share boxes with each other or with what is under way, so that nobody
    waits for a box while a more urgent unit appears.
    """

    samples: int = 1
    """How many waiting tuples are looked at; 1 is the paper's mean."""

    def start(self) -> UnitGraphs | None:
        """Nothing is prepared."""
        return None

    def plan(self, snapshot: Snapshot, memory: UnitGraphs | None) -> tuple[Plan, UnitGraphs]:
        """Return steps for the first units in the order; the memory is the graphs, laid out as arrays."""
        if memory is None or memory.units is not snapshot.units:
            memory = unit_graphs(snapshot.topology, snapshot.units)
        expected = snapshot.costs.seconds(np.minimum(snapshot.waiting, snapshot.train))
        utility, slack = self._priorities(snapshot, memory, expected)
        able = np.flatnonzero(snapshot.ready & ~snapshot.busy)
        order = foremost(able, (-utility, slack, snapshot.oldest), _STEPS)
        if snapshot.workers > 1:
            chosen = _apart(snapshot, order)
        else:
            chosen = order[: 1 + int(np.searchsorted(np.cumsum(expected[order]), _WORK))].tolist()
        return Plan(tuple([Step(unit, snapshot.train) for unit in chosen])), memory

    def _priorities(self, snapshot: Snapshot, graphs: UnitGraphs, expected: Floats) -> tuple[Floats, Floats]:
        """Return by unit its utility and its slack."""
        mean = snapshot.latencies
        if self.samples == 1:
            return graphs.slopes_and_slacks(mean + expected)
        some = snapshot.waiting > 0
        older = np.where(some, (snapshot.now - np.where(some, snapshot.oldest, snapshot.now)) / SECOND - mean, 0.0)
        # The newest is as far from the mean as the oldest: tuples are taken to have arrived evenly.
        places = 1 - (2 * np.arange(self.samples) + 1) / self.samples
        found = [graphs.slopes_and_slacks(mean + older * place + expected) for place in places]
        utility: Floats = np.mean([slope for slope, _ in found], axis=0)
        slack: Floats = np.min([slack for _, slack in found], axis=0)
        return utility, slack


def foremost(units: Places, keys: Sequence[npt.NDArray[Any]], count: int) -> Places:
    """Return the first `count` of some units in ascending order of the keys, which are arrays by unit.

    Equals come in the order of their numbers. The many that will not come first are not sorted.
    """
    sure: list[Places] = []
    for key in keys:
        if len(units) <= count:
            break
        values = key[units]
        edge = np.partition(values, count - 1)[count - 1]
        sure.append(units[values < edge])
        count -= len(sure[-1])
        units = units[values == edge]
    first = np.sort(np.concatenate([*sure, units[:count]]))
    return first[np.lexsort([key[first] for key in reversed(keys)])]


def _apart(snapshot: Snapshot, order: Places) -> list[int]:
    """Return the first units that can run at once, as many as workers are free."""
    chosen: list[int] = []
    used: set[int] = set()
    for unit in order:
        if len(chosen) >= snapshot.free:
            break
        boxes = snapshot.units[unit].boxes
        if used.isdisjoint(boxes):
            used.update(boxes)
            chosen.append(int(unit))
    return chosen


def _make(argument: str | None) -> Policy:
    if argument is None:
        return SlopeSlack()
    if not argument.isdecimal() or not 1 <= int(argument) <= _MOST_SAMPLES:
        raise PolicyError(
            f"policy 'slope-slack:{argument}': a number of tuples to look at, 1 to {_MOST_SAMPLES}, "
            "stands after the colon"
        )
    return SlopeSlack(int(argument))


register_policy(
    "slope-slack", _make, "by QoS: the unit that loses most utility by waiting, then the one nearest to losing some"
)
