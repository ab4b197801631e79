"""Policies that put units in order: what they share.

Such a policy says by which terms it compares units; the plan follows from them, and so does the explanation of it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from headway.scheduling.policy import Plan, Step, Term
from headway.scheduling.snapshot import Snapshot

Places = npt.NDArray[np.intp]

WORK = 0.002
"""Seconds of expected work in a plan; after that, readings have changed enough to look again."""
SHARE = 0.04
"""The most of its work's time that a plan may take to make: where planning is dear, plans are longer."""
STEPS = 64
"""The most steps in a plan, as long as nothing is known of costs; and how many units are put in order at all."""


class Ranked(ABC):
    """Serves the ready units in the order of its terms; equals in the order of their numbers.

    An engine carries out a whole plan before it asks for the next, so a long plan acts on old readings, and a
    plan of one short step costs more than the step. A plan therefore holds about two milliseconds of
    expected work, many short steps or one long step; more where planning takes more than a small share of that.
    With several workers it holds at most a step for each free one, for units that do not share boxes with each other
    or with what is under way, so that nobody waits for a box while a more urgent unit appears. A preemptive policy's
    plan names what should run now.
    """

    preemptive: ClassVar[bool] = False

    def start(self) -> Any:
        """Nothing is prepared."""
        return None

    def prepare(self, snapshot: Snapshot, memory: Any) -> Any:
        """Return the memory with everything in it that `terms` needs; by default as it is."""
        return memory

    @abstractmethod
    def terms(self, snapshot: Snapshot, memory: Any) -> tuple[Term, ...]:
        """Return the terms, the most important first. `memory` has been prepared."""

    def plan(self, snapshot: Snapshot, memory: Any) -> tuple[Plan, Any]:
        """Return steps for the first units in the order."""
        memory = self.prepare(snapshot, memory)
        terms = self.terms(snapshot, memory)
        able = np.flatnonzero(snapshot.ready if self.preemptive else snapshot.ready & ~snapshot.busy)
        keys = [-term.values if term.largest else term.values for term in terms]
        several = self.preemptive or snapshot.workers > 1
        order = foremost(able, keys, STEPS if several or snapshot.room > STEPS else max(1, snapshot.room))
        if several:
            chosen = apart(snapshot, order, snapshot.workers if self.preemptive else min(snapshot.free, snapshot.room))
        elif snapshot.room == 1:
            chosen = order[:1].tolist()
        else:
            expected = snapshot.costs.seconds(np.minimum(snapshot.waiting, snapshot.train))[order]
            enough = max(WORK, snapshot.planning / SHARE)
            chosen = order[: 1 + int(np.searchsorted(np.cumsum(expected), enough))].tolist()
        return Plan(tuple([Step(unit, snapshot.train) for unit in chosen])), memory


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
    return first[np.lexsort([key[first] for key in reversed(keys)])] if keys else first


def apart(snapshot: Snapshot, order: Places, most: int) -> list[int]:
    """Return the first units that can run at once, at most so many."""
    chosen: list[int] = []
    used: set[int] = set()
    for unit in order:
        if len(chosen) >= most:
            break
        boxes = snapshot.units[unit].boxes
        if not snapshot.exclusive or used.isdisjoint(boxes):
            used.update(boxes)
            chosen.append(int(unit))
    return chosen
