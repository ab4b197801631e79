"""The QoS monitor: which outputs are outside their good zone, whether there is an overload, and its cause.

Aurora, section 4.4, dynamic analysis: results delivered after the good zone of their latency graph are a sign of
overload. They are a late sign with other possible causes; so the rule of static analysis is applied as well, to
recent measurements: capacity × headroom < demand.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from headway.catalog import Topology
from headway.columns import Floats
from headway.costs import HEADROOM
from headway.errors import choices
from headway.network.qos import QoS
from headway.shedding.strategies import Demand

BUSY = 0.95
"""The busy share of time above which an engine counts as never idle."""
LATE = 0.1
"""The share of late results above which an output counts as late: single late results are no overload."""
RISEN = 1.2
"""The ratio of a source's rate to its usual rate above which it can be the cause."""


@dataclass(frozen=True, kw_only=True)
class Load(Demand):
    """An engine's demand, with its work at one moment."""

    kept: float
    """Seconds of work per second that remain with the current dropping."""
    backlog: float
    """Seconds of work in all waiting tuples that will not be dropped."""
    busy: float
    """The recent share of time that the engine needed; time spent only because it was free is not counted."""
    source_work: Floats
    """By source: seconds of work that one tuple causes, in all boxes together."""
    box_load: Floats
    """By box: seconds of work per second that arrivals would cause in the box itself if nothing were dropped."""
    box_backlog: Floats
    """By box: the seconds of work until all tuples that wait there are delivered."""
    before: float | None = None
    """Seconds of work waiting at the previous look, at current costs; None if unknown."""
    pressed: bool = True
    """Whether work has been waiting all the time, so that the work done shows the capacity."""


@dataclass(frozen=True, kw_only=True)
class Observation(Load):
    """The load of a run, with the rates of its sources and the state of its outputs.

    "Recent" values are means over time in which older measurements count less.
    """

    now: int
    """The moment, in nanoseconds on the run's clock."""
    delivered: Floats
    """By output: tuples delivered recently."""
    latency: Floats
    """By output: their mean latency, in seconds."""
    oldest: Floats
    """By output: the age of the oldest tuple waiting on the way to it, in seconds; 0 if none are waiting."""
    source_rates: Floats
    """By source: the recent rate in tuples per second."""
    usual: Floats
    """By source: its long-term or declared rate; NaN if unknown."""
    utility: Floats | None = None
    """By output: the mean utility, by latency, of all results since the start; None if unknown."""


class Culprit(NamedTuple):
    """The cause of an overload."""

    kind: Literal["source", "box"]
    place: int
    name: str
    why: str
    """What is unusual about it, for people."""

    def __str__(self) -> str:
        """Return a text for people, such as ``source 'positions' (2.1 times its usual rate)``."""
        return f"{self.kind} '{self.name}' ({self.why})"


@dataclass(frozen=True)
class Diagnosis:
    """The state of a run: whether it is overloaded, and why."""

    outside: Floats
    """By output: the share of its results outside its good zone."""
    overloaded: bool
    because: str
    """Why it is overloaded, or that it is not, for people."""
    culprit: Culprit | None = None
    """The cause; None if there is no overload."""


def good_zones(qos: tuple[QoS, ...]) -> Floats:
    """Return by output the latency in seconds up to which results are worth most; infinite without a latency graph."""
    return np.array([graphs.latency.good_until if graphs.latency else np.inf for graphs in qos], np.float64)


def outside_good_zone(observation: Observation, zones: Floats) -> Floats:
    """Return by output the share of results outside its good zone.

    If nothing was delivered recently and a tuple has waited for longer than the good zone, that is 1.
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
    """Return whether the run is overloaded, and why. Pure.

    It is overloaded if the demand is above capacity × headroom, or if outputs are outside their good zone while
    the engine is never idle and the backlog does not shrink. Whether it shrinks is decided by an earlier observation
    (`before`); without one, by whether less work arrives than can be done. Frequent callers pass the `zones` that
    `good_zones` returns.
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
        names = choices((f"'{topology.outputs[output]}'" for output in np.flatnonzero(late)), 3)
        because = f"late: {names}; never idle, and {observation.backlog:.2g} s of work wait and do not get less"
    else:
        return Diagnosis(outside, False, "what arrives can be done")
    return Diagnosis(outside, True, because, find_culprit(observation, topology, headroom))


def find_culprit(observation: Observation, topology: Topology, headroom: float = HEADROOM) -> Culprit | None:
    """Return the cause of an overload: the source whose increase causes most work, else the box that needs most.

    A source counts if its rate is above RISEN times its usual one. Among boxes it is the one with the largest load,
    or, if the load is within the usable capacity, the one with the longest backlog. None in a network without work.
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
