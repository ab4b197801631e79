"""Weighted round robin: every ready unit in turn, with a weight for the size of its step.

The second policy of MavStream (its paper on the runtime optimizer, section 3.1). A quantum is counted in tuples::

    quantum = weight * train, at least one tuple

``weighted-round-robin:joined=3,across=2`` sets weights by name; units that are not named have weight 1. Without an
argument the paper's two examples apply: a box that reads a source has weight 2, because its backlog holds back all
others, a box with several inputs has weight 2, because it does more work per tuple, and one that is both has weight
4. A superbox has the largest weight of its boxes.

Weights need trains of a fixed size: with automatic trains the sizes follow from slack and cost instead.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from headway.catalog import Topology
from headway.columns import Floats
from headway.errors import PolicyError, unknown
from headway.scheduling.policy import Plan, Policy, Step, register_policy
from headway.scheduling.round_robin import IN_TURN, Turn, next_in_turn
from headway.scheduling.snapshot import Layout, Snapshot

_READS_SOURCE = 2.0
_SEVERAL_INPUTS = 2.0
_HEAVIEST = 1e6
"""The largest weight, so that a quantum is a sensible number of tuples."""


@dataclass(frozen=True, slots=True)
class WeightedRoundRobin(Policy):
    """Serve the ready units in order of their numbers, starting after the one served last."""

    weights: tuple[tuple[str, float], ...] = ()
    """Weights by unit name, 1 for units not listed; if empty, weights are derived from the network."""

    fair = True

    def start(self) -> Turn:
        """Return a memory that starts with the first unit."""
        return Turn()

    def plan(self, snapshot: Snapshot, memory: Turn) -> tuple[Plan, Turn]:
        """Return a step of its quantum for each unit whose turn it is.

        Raises a PolicyError at the first plan of a network that lacks a named unit.
        """
        weights = snapshot.layout.once(self._weigh)
        chosen, turn = next_in_turn(snapshot, memory)
        quanta = np.maximum(1, np.rint(weights[chosen] * snapshot.train)).astype(np.int64).tolist()
        return Plan(tuple([Step(unit, tuples) for unit, tuples in zip(chosen, quanta, strict=True)])), turn

    def rule(self, snapshot: Snapshot, memory: Turn, unit: int) -> str:
        """Return the only rule."""
        return IN_TURN

    def _weigh(self, layout: Layout) -> Floats:
        units = layout.units
        if not self.weights:
            of_boxes = box_weights(layout.topology).tolist()
            return np.array([max([of_boxes[box] for box in unit.boxes], default=1.0) for unit in units], np.float64)
        given = dict(self.weights)
        names = [unit.name for unit in units]
        for name in sorted(given.keys() - set(names)):
            raise PolicyError(f"policy 'weighted-round-robin': {unknown('unit', name, names)}")
        return np.array([given.get(name, 1.0) for name in names], np.float64)


def box_weights(topology: Topology) -> Floats:
    """Return the default weights by box: a factor of 2 for reading a source, another for several inputs."""
    sources = np.zeros(len(topology.boxes), np.int64)
    for readers in topology.readers:
        np.add.at(sources, list(readers), 1)
    inputs = sources + np.array([len(some) for some in topology.producers], np.int64)
    return np.where(sources > 0, _READS_SOURCE, 1.0) * np.where(inputs > 1, _SEVERAL_INPUTS, 1.0)


def _make(argument: str | None) -> Policy:
    if argument is None:
        return WeightedRoundRobin()
    weights: dict[str, float] = {}
    for part in argument.split(","):
        name, equals, text = part.partition("=")
        name, weight = name.strip(), _number(text)
        if not name or not equals or weight is None:
            raise PolicyError(
                f"policy 'weighted-round-robin:{argument}': '{part}' is not a weight; after the colon come units with "
                f"numbers above 0 and up to {_HEAVIEST:.0f}, such as 'joined=3,across=0.5'"
            )
        if name in weights:
            raise PolicyError(f"policy 'weighted-round-robin:{argument}': unit '{name}' has two weights; one is enough")
        weights[name] = weight
    return WeightedRoundRobin(tuple(weights.items()))


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and 0 < number <= _HEAVIEST else None


register_policy(
    "weighted-round-robin",
    _make,
    "every unit that has something to do, in turn, some on more tuples than others",
    formula="quantum = weight * train; weights by name, or 2 for reading a source, times 2 for several inputs",
    paper="MavStream's runtime optimizer, 3.1 (weighted round-robin)",
    use="throughput where some units have more to do than others; it costs little and starves nobody",
)
