"""The interface of adaptive layers: totals of a run in, switches of policies out.

A layer is pure, like a policy: it returns its memory and gets it back with the next call. It names registered policies
and does not know the engine; the engine calls it at the moments that it requests, and carries out its actions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy.typing as npt

from headway.catalog import Topology
from headway.clock import SECOND
from headway.errors import PolicyError, choices
from headway.plugins import Registry
from headway.totals import SYSTEM, Totals


@dataclass(frozen=True, slots=True)
class Interval:
    """A part of a run between two moments: metrics by output, `SYSTEM` for the whole run."""

    before: Totals
    after: Totals

    @property
    def seconds(self) -> float:
        """The length of the interval."""
        return (self.after.now - self.before.now) / SECOND

    def latency(self, output: int = SYSTEM) -> float:
        """Return the mean latency of the results; without any, the age of the oldest waiting tuple."""
        count = int(self.after.delivered[output] - self.before.delivered[output])
        if count == 0:
            return float(self.after.oldest[output])
        return float(self.after.latency[output] - self.before.latency[output]) / count

    def throughput(self, output: int = SYSTEM) -> float:
        """Return the tuples delivered per second."""
        return self._mean(self.after.delivered, self.before.delivered, output)

    def queued(self, output: int = SYSTEM) -> float:
        """Return the mean number of waiting tuples."""
        return self._mean(self.after.queued, self.before.queued, output)

    def memory(self, output: int = SYSTEM) -> float:
        """Return the mean number of waiting bytes."""
        return self._mean(self.after.memory, self.before.memory, output)

    def utility(self, output: int = SYSTEM) -> float:
        """Return the mean utility of the results; 0 if there are none."""
        count = int(self.after.delivered[output] - self.before.delivered[output])
        return float(self.after.utility[output] - self.before.utility[output]) / count if count else 0.0

    def _mean(self, after: npt.NDArray[Any], before: npt.NDArray[Any], output: int) -> float:
        return float(after[output] - before[output]) / self.seconds if self.seconds > 0 else 0.0


METRICS: Mapping[str, Callable[[Interval, int], float]] = {
    "latency": Interval.latency,
    "memory": Interval.memory,
    "queue": Interval.queued,
    "throughput": Interval.throughput,
    "utility": Interval.utility,
}
"""The metrics of an interval, by name; each is for an output or the whole run."""


class Switch(NamedTuple):
    """From now on, schedule the units that lead to an output (None: all units) by another policy."""

    output: int | None
    policy: int
    """An index in the layer's `policies`."""
    reason: str


class ShedOutput(NamedTuple):
    """Allow the load shedder to drop tuples of an output, or no longer."""

    output: int
    active: bool
    reason: str


Action = Switch | ShedOutput


@runtime_checkable
class Adaptive(Protocol):
    """An adaptive layer. Pure: all its state is in the memory that it returns."""

    @property
    def policies(self) -> tuple[str, ...]:
        """The policies that it chooses from, as registered names such as ``round-robin`` or ``slope-slack:8``."""
        ...

    def start(self, topology: Topology, now: int) -> tuple[tuple[int, ...], Any]:
        """Return the index of the initial policy by output, and the memory, for a run that starts now.

        Raises a PolicyError if the settings name an output that the network does not have.
        """
        ...

    def next(self, memory: Any) -> int:
        """Return the moment at which `look` should be called next."""
        ...

    def look(self, totals: Totals, memory: Any) -> tuple[tuple[Action, ...], Any]:
        """Return the actions to take, given the totals, and the memory. Called at `next`, or a little later."""
        ...

    def change(self, settings: Mapping[str, Any], memory: Any) -> Any:
        """Return the memory with settings changed during the run. Raises a PolicyError."""
        ...


_layers = Registry[Callable[[Mapping[str, Any]], Adaptive]]("adaptive layer", PolicyError)

register_adaptive, registered_adaptives = _layers.register, _layers.entries
"""`make` gets the user's mapping, and raises a PolicyError if it is invalid."""


def make_adaptive(name: str, settings: Mapping[str, Any]) -> Adaptive:
    """Make the layer with this name from its settings."""
    return _layers[name].make(settings)


class Adaption(NamedTuple):
    """The layer chosen for a run, with its name."""

    name: str
    layer: Adaptive


def parse_adaptive(value: object) -> Adaption | None:
    """Parse ``amos``, ``{use: amos, ...}`` with the layer's settings, a layer object, or ``off`` (None).

    Raises a PolicyError.
    """
    if value is None or value is False or value == "off":
        return None
    if isinstance(value, Adaptive):
        return Adaption(type(value).__name__, value)
    if isinstance(value, str):
        return Adaption(value, make_adaptive(value, {}))
    if not isinstance(value, Mapping) or not isinstance(value.get("use"), str):
        raise PolicyError(
            f"adaptive: must be a layer ({choices(_layers.names())}), {{use: LAYER, ...}} with settings, or off, "
            f"not {value!r}"
        )
    name = value["use"]
    return Adaption(name, make_adaptive(name, {key: one for key, one in value.items() if key != "use"}))
