"""Plans in virtual time as the engine `local` carries them out: all steps one after the other, before anybody looks.

What arrives meanwhile waits until the plan's end, and is let in all at once. While load is shed, steps that have been
found to last longer than a look are cut into parts, between which drop boxes can come and go.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from headway.engines.parts import Parts
from headway.engines.sim.processors import Processors
from headway.engines.sim.work import Costs
from headway.scheduling.policy import Step
from headway.scheduling.snapshot import Snapshot


class Following:
    """The steps of a plan that are still to come. For one processor, and for policies that do not preempt."""

    def __init__(self, processors: Processors, costs: Costs) -> None:
        """Begin without a plan."""
        self._processors = processors
        self._costs = costs
        self.in_parts = False
        """Whether long steps are cut: while load is being shed."""
        self._steps: deque[Step] = deque()
        self._snapshot: Snapshot | None = None
        self._plan = 0
        self._parts = Parts()
        self._begun: tuple[int, int, int] | None = None  # the part under way: when it began, its tuples, its unit
        self.intake = 0
        """Nanoseconds spent on letting tuples in and on what else a round needs."""
        self.owed = 0
        """Nanoseconds that rounds took in which no step began; they pass before anything else does."""

    def follow(self, steps: Sequence[Step], snapshot: Snapshot, now: int, plan: int, arrived: int) -> int:
        """Take up a plan; return whether one of its steps began. `arrived` tuples were let in for it."""
        self._steps, self._snapshot, self._plan, self._begun = deque(steps), snapshot, plan, None
        taking_in = self._costs.round + round(arrived * self._costs.arrival)
        self.intake += taking_in
        begun = self._begin(now, taking_in + self.owed)
        self.owed = 0 if begun else self.owed + taking_in + self._costs.scheduler
        return begun

    def goes_on(self, now: int) -> bool:
        """Begin the plan's next step if it is time; return whether the plan is still being carried out."""
        # The policy was asked for this plan before its first step.
        if self._processors.busy:
            return True
        if self._begun is not None:
            self._note(now)
        return bool(self._begin(now, -self._costs.scheduler))

    def _begin(self, now: int, wait: int) -> int:
        while self._steps:
            unit, tuples = self._steps.popleft()
            assert self._snapshot is not None
            part = self._parts.length(unit) if self.in_parts else tuples
            begun = self._processors.start([Step(unit, min(part, tuples))], self._snapshot, now, self._plan, wait)
            if begun:
                self._begun = now + max(wait, 0), self._processors.held, unit
                if tuples > part:
                    self._steps.appendleft(Step(unit, tuples - part))
                return begun
        return 0

    def _note(self, now: int) -> None:
        """Note how long the part before has lasted."""
        assert self._begun is not None
        began, taken, unit = self._begun
        self._begun = None
        self._parts.note(unit, taken, now - began)
