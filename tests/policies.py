"""A policy for tests: random ready units, in random order, on random numbers of tuples.

Results must not depend on the policy, so this one tries to make them. It is pure like every policy: its
random numbers follow from the seed and from how often it was asked.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np

from headway.scheduling.policy import Plan, Policy, Step, register_policy
from headway.scheduling.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class RandomPolicy(Policy):
    """Pick at random; the memory is the number of plans so far."""

    seed: int

    def start(self) -> int:
        """No plan has been made."""
        return 0

    def plan(self, snapshot: Snapshot, memory: int) -> tuple[Plan, int]:
        """Return steps for some of the ready units, at least one."""
        chance = random.Random(self.seed * 1_000_003 + memory)
        ready = np.flatnonzero(snapshot.ready).tolist()
        chosen = chance.sample(ready, chance.randint(1, len(ready)))
        steps = [Step(unit, chance.choice([1, 1, 2, 3, 5, 8, 1000])) for unit in chosen]
        return Plan(tuple(steps)), memory + 1


def _make(argument: str | None) -> Policy:
    return RandomPolicy(int(argument or 0))


register_policy("random", _make, "random units and trains, for tests")
