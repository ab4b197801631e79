"""The QoS monitor: which outputs are outside of their good zone, is there too much to do, and who causes it.

Aurora, section 4.4, dynamic analysis: results that are delivered later than the good zone of their delay graph reaches
are a sign of overload. They are a late sign, and one that has other causes, too; so the rule of static analysis is
asked as well, over what was measured lately: capacity × headroom < demand.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np

from headway.catalog import Floats, Topology
from headway.costs import HEADROOM
from headway.network.qos import QoS
from headway.shedding.strategies import Demand

BUSY = 0.95
"""An engine that was idle for less than the rest of the time had no time to spare."""
LATE = 0.1
"""The share of late results from which on an output counts as late: single ones are no overload."""
RISEN = 1.2
"""How many times its usual rate a source must have before it is said to be the cause."""


@dataclass(frozen=True, kw_only=True)
class Load(Demand):
    """What an engine says of its work at one moment."""

    kept: float
    """Seconds of work per second that are left of the load with what is being dropped now."""
    backlog: float
    """Seconds of work that wait in all queues and will not be dropped."""
    busy: float
    """The share of time, lately, in which the engine had to work; what it does for want of anything better is not."""
    source_work: Floats
    """By source: the seconds of work that one of its tuples makes until all that comes of it is delivered."""
    box_load: Floats
    """By box: seconds of work per second that what arrives means in the box itself, if nothing is dropped."""
    box_backlog: Floats
    """By box: the seconds of work that the tuples which wait there mean until all is delivered."""
    before: float | None = None
    """Seconds of work that waited at the look before, at the costs of now; None where nobody knows."""
    pressed: bool = True
    """Whether there has been work to wait all the time, so that what was done shows what can be done."""


@dataclass(frozen=True, kw_only=True)
class Observation(Load):
    """A load, with how those who send tuples and those who get results do.

    What is read as "lately" is a mean over time in which older time counts less.
    """

    now: int
    """The moment, in nanoseconds on the run's clock."""
    delivered: Floats
    """By output: tuples delivered lately."""
    latency: Floats
    """By output: their mean latency, in seconds."""
    oldest: Floats
    """By output: the age of the oldest tuple that waits on the way to it, in seconds; 0 where none waits."""
    source_rates: Floats
    """By source: tuples per second, lately."""
    usual: Floats
    """By source: its rate over a long time, or as declared; NaN where nobody knows it."""
    utility: Floats | None = None
    """By output: what was delivered since the start was worth by its latency; None where nobody knows."""


class Culprit(NamedTuple):
    """Who causes an overload."""

    kind: Literal["source", "box"]
    place: int
    name: str
    why: str
    """For people: what is unusual about it."""

    def __str__(self) -> str:
        """Return it for people, such as ``source 'positions' (2.1 times its usual rate)``."""
        return f"{self.kind} '{self.name}' ({self.why})"


@dataclass(frozen=True)
class Diagnosis:
    """How a run does, and why."""

    outside: Floats
    """By output: how much of it is outside of its good zone, as a share."""
    overloaded: bool
    because: str
    """For people: why it is overloaded, or that it is not."""
    find: Callable[[], Culprit | None] = field(repr=False, compare=False)

    @cached_property
    def culprit(self) -> Culprit | None:
        """Who causes it, found when first asked for; None where there is no overload."""
        return self.find() if self.overloaded else None


def good_zones(qos: tuple[QoS, ...]) -> Floats:
    """Return by output the latency in seconds up to which results are worth most; infinite without a delay graph."""
    return np.array([graphs.latency.good_until if graphs.latency else np.inf for graphs in qos], np.float64)


def outside_good_zone(observation: Observation, zones: Floats) -> Floats:
    """Return by output the share outside of its good zone.

    Where nothing was delivered lately, what has waited for longer than the good zone says it: all of it.
    """
    silent = (observation.delivered <= 0) & (observation.oldest > zones)
    outside: Floats = np.where(silent, 1.0, observation.late)
    return outside


def diagnose(
    observation: Observation,
    topology: Topology,
    before: Observation | None = None,
    headroom: float = HEADROOM,
    zones: Floats | None = None,
) -> Diagnosis:
    """Return how the run does. Pure.

    It is overloaded if the demand is above capacity × headroom, or if outputs are outside of their good zone while
    the engine is never idle and the backlog does not shrink. Whether it does is seen from an earlier observation
    (`before`); without one, it is held not to if as much arrives as can be done. Who asks often gives the `zones`
    that `good_zones` returns.
    """
    outside = outside_good_zone(observation, good_zones(topology.qos) if zones is None else zones)
    fits = observation.capacity * headroom
    late = outside > LATE
    if before is not None:
        shrinks = observation.backlog < before.backlog
    else:
        shrinks = observation.kept < observation.capacity
    if observation.load > fits:
        because = f"needs {observation.load:.2f} s/s of work; {observation.capacity:.2f} × {headroom:g} can be done"
    elif late.any() and observation.busy > BUSY and observation.backlog > 0 and not shrinks:
        names = ", ".join(f"'{topology.outputs[output]}'" for output in np.flatnonzero(late)[:3])
        more = f" and {int(late.sum()) - 3} more" if late.sum() > 3 else ""
        because = f"late: {names}{more}; never idle, and {observation.backlog:.2g} s of work wait and do not get less"
    else:
        return Diagnosis(outside, False, "what arrives can be done", lambda: None)
    return Diagnosis(outside, True, because, lambda: find_culprit(observation, topology, headroom))


def find_culprit(observation: Observation, topology: Topology, headroom: float = HEADROOM) -> Culprit | None:
    """Return who causes an overload: the source whose rise causes most work, else the box that needs most.

    A source counts if its rate is above RISEN times its usual one. Of the boxes it is the one with the largest load,
    or, if what arrives could be done, the one with the longest backlog. None in a network without work.
    """
    known = ~np.isnan(observation.usual)
    rises = known & (observation.source_rates > RISEN * observation.usual)
    if rises.any():
        extra = np.where(rises, observation.source_rates - observation.usual, 0.0) * observation.source_work
        source = int(np.argmax(extra))
        if extra[source] > 0:
            return Culprit("source", source, topology.sources[source], _rise(observation, source))
    if not topology.boxes:
        return None
    if observation.load <= observation.capacity * headroom:
        box = int(np.argmax(observation.box_backlog))
        wait = float(observation.box_backlog[box])
        if wait > 0:
            return Culprit("box", box, topology.boxes[box], f"{wait:.2g} s of work wait there")
    box = int(np.argmax(observation.box_load))
    if not observation.box_load[box] > 0:
        return None
    part = f", {observation.box_load[box] / observation.load:.0%} of all" if observation.load > 0 else ""
    return Culprit("box", box, topology.boxes[box], f"needs {observation.box_load[box]:.2f} s/s of work{part}")


def _rise(observation: Observation, source: int) -> str:
    rate, usual = float(observation.source_rates[source]), float(observation.usual[source])
    return f"{rate / usual:.2g} times its usual rate" if usual > 0 else f"{rate:.3g} tuples/s, usually none"
