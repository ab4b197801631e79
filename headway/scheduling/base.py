"""What a policy sees and what it says: snapshot in, plan out.

A policy is pure. It does not know which engine it drives: a unit may be a box, a superbox or a streaming
query, and a step may take microseconds or seconds. Whatever it wants to remember from one plan to the next
it returns with the plan and is handed back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from headway.catalog import BoxReadings, Topology
from headway.columns import Int64s, Mask
from headway.errors import PolicyError, unknown

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Unit:
    """What is scheduled as one: boxes in the order in which a step calls them, and the outputs they lead to."""

    name: str
    boxes: tuple[int, ...]
    outputs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class OutputReadings:
    """How the outputs do, as arrays by output: tuples delivered, their mean latency (seconds) and mean utility."""

    delivered: Int64s
    latency: Floats
    utility: Floats


@dataclass(frozen=True)
class Snapshot:
    """Readings of the running network at one moment. All that a policy may look at; it must not write to it."""

    now: int
    topology: Topology
    units: tuple[Unit, ...]
    ready: Mask
    """By unit: whether a step of it would do something now."""
    waiting: Int64s
    """By unit: the tuples that wait at its boxes."""
    oldest: Int64s
    """By unit: the QoS timestamp of its oldest waiting tuple, the largest number where none waits."""
    box_waiting: Int64s
    box_oldest: Int64s
    memory: int
    """Bytes in all queues."""
    train: int
    """The most tuples that a step should take from a queue, unless the policy knows better."""
    read_rates: Callable[[], Floats]
    read_boxes: Callable[[], BoxReadings]
    read_outputs: Callable[[], OutputReadings]

    @cached_property
    def rates(self) -> Floats:
        """By source: tuples per second, lately; read when first asked for, because not every policy asks."""
        return self.read_rates()

    @cached_property
    def boxes(self) -> BoxReadings:
        """Cost, selectivity and so on of the boxes; read when first asked for."""
        return self.read_boxes()

    @cached_property
    def outputs(self) -> OutputReadings:
        """How the outputs do; read when first asked for."""
        return self.read_outputs()


class Step(NamedTuple):
    """Run a unit on at most this many tuples of each queue that feeds it."""

    unit: int
    tuples: int


class Plan(NamedTuple):
    """Steps in the order in which they should start. An engine may run several at once, and may refuse some."""

    steps: tuple[Step, ...]


class Policy(Protocol):
    """A pure decision."""

    def start(self) -> Any:
        """Return the memory before the first plan."""
        ...

    def plan(self, snapshot: Snapshot, memory: Any) -> tuple[Plan, Any]:
        """Return what to do next, and the memory for the next call.

        An empty plan means that nothing is worth doing now; the engine then waits for something to happen.
        """
        ...


@dataclass(frozen=True, slots=True)
class PolicyEntry:
    """A registered policy: how to make it from the text after the colon, and what it is."""

    name: str
    make: Callable[[str | None], Policy]
    about: str


_policies: dict[str, PolicyEntry] = {}


def register_policy(name: str, make: Callable[[str | None], Policy], about: str) -> None:
    """Make a policy known by name; `make` gets what stands after a colon, as in ``random:7``."""
    _policies[name] = PolicyEntry(name, make, about)


def registered_policies() -> tuple[PolicyEntry, ...]:
    """Return the policies, by name."""
    return tuple(_policies[name] for name in sorted(_policies))


def make_policy(text: str) -> Policy:
    """Return the policy that ``name`` or ``name:argument`` says."""
    name, colon, argument = text.partition(":")
    if name not in _policies:
        raise PolicyError(unknown("policy", name, _policies))
    return _policies[name].make(argument if colon else None)
