"""What an adaptive layer sees and what it says: totals of a run in, switches of policies out.

A layer is pure, like a policy: what it wants to remember it returns and is handed back. It names policies of the
registry and knows no engine; an engine asks it at the moments that it says, and carries out what it wants.
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
    """How a run did between two moments: measures by output, `SYSTEM` for the whole."""

    before: Totals
    after: Totals

    @property
    def seconds(self) -> float:
        """How long it lasted."""
        return (self.after.now - self.before.now) / SECOND

    def latency(self, output: int = SYSTEM) -> float:
        """Return the mean latency of what was delivered; without any, the age of what has waited longest."""
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
        """Return the mean utility of what was delivered; 0 without any."""
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
"""By name: what can be measured of an interval, for an output or the whole run."""


class Switch(NamedTuple):
    """Schedule what leads to an output (None: everything) by another policy from now on."""

    output: int | None
    policy: int
    """Its place in the layer's `policies`."""
    reason: str


class ShedOutput(NamedTuple):
    """Let the load shedder drop tuples of an output, or no longer."""

    output: int
    active: bool
    reason: str


Action = Switch | ShedOutput


@runtime_checkable
class Adaptive(Protocol):
    """An adaptive layer. Pure: all that it keeps is in the memory that it returns."""

    @property
    def policies(self) -> tuple[str, ...]:
        """The policies that it chooses from, as texts of the registry such as ``round-robin`` or ``slope-slack:8``."""
        ...

    def start(self, topology: Topology, now: int) -> tuple[tuple[int, ...], Any]:
        """Return by output the place of the policy to begin with, and the memory, for a run that starts now.

        Raises a PolicyError where the settings name an output that the network does not have.
        """
        ...

    def next(self, memory: Any) -> int:
        """Return the moment at which it wants to look next."""
        ...

    def look(self, totals: Totals, memory: Any) -> tuple[tuple[Action, ...], Any]:
        """Look at how the run does; return what should change, and the memory. Called at `next`, or a little later."""
        ...

    def change(self, settings: Mapping[str, Any], memory: Any) -> Any:
        """Return the memory with another specification, given while the run goes on. Raises a PolicyError."""
        ...


_layers = Registry[Callable[[Mapping[str, Any]], Adaptive]]("adaptive layer", PolicyError)

register_adaptive, registered_adaptives = _layers.register, _layers.entries
"""`make` gets the layer's settings in the network file, and raises a PolicyError if they are wrong."""


def make_adaptive(name: str, settings: Mapping[str, Any]) -> Adaptive:
    """Return the layer of this name, made from its settings."""
    return _layers[name].make(settings)


class Adaption(NamedTuple):
    """A layer that was chosen for a run."""

    name: str
    layer: Adaptive


def parse_adaptive(value: object) -> Adaption | None:
    """Read ``amos``, ``{use: amos, ...}`` with the layer's settings, a layer itself, or ``off``.

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
