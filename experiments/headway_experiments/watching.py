"""Watch a run as it goes: what a summary says of the whole, as a series over time.

`run_watched` runs a network by one policy or by an adaptive layer, and returns besides the summary the totals of the
run at even moments. Two of them make an `Interval` (`headway.adaptive.layer`), which says how the time between went:

    summary, seen = run_watched(network, "segment/box", "segment", every=3.0)          # one policy, never changed
    summary, seen = run_watched(network, "fifo/box", {"use": "amos", ...}, every=3.0)  # whatever the layer chooses
    for interval in intervals(seen):
        interval.after.now / SECOND, interval.latency(), interval.memory(), interval.queued(), interval.throughput()

The totals come from a layer around the one that is watched. It passes everything on, at the moments at which the other
one wants to look, so that the run is the same as without it; but queues are sampled 16 times from each look to the
next, of whoever looks, and so more often than without it if `every` is short.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from headway.adaptive.layer import Action, Adaptive, Interval, parse_adaptive
from headway.catalog import Topology
from headway.clock import SECOND
from headway.columns import NEVER
from headway.runner import run
from headway.totals import Totals


class Alone:
    """A layer with one policy, which never changes anything."""

    def __init__(self, policy: str) -> None:
        """Take a policy of the registry, such as ``segment``."""
        self.policies = (policy,)

    def start(self, topology: Topology, now: int) -> tuple[tuple[int, ...], None]:
        """Begin with the policy everywhere."""
        return (0,) * len(topology.outputs), None

    def next(self, memory: None) -> int:
        """Return that there is nothing to look at."""
        return NEVER

    def look(self, totals: Totals, memory: None) -> tuple[tuple[Action, ...], None]:
        """Change nothing."""
        return (), None

    def change(self, settings: Mapping[str, Any], memory: None) -> None:
        """Change nothing."""


class Watched:
    """A layer that does what another one does, and notes the totals at even moments.

    Its memory is when it notes next, and the other one's memory.
    """

    def __init__(self, inner: Adaptive, every: float) -> None:
        """Watch a layer, and note totals every so many seconds."""
        self._inner = inner
        self._every = max(1, round(every * SECOND))
        self.policies = inner.policies
        self.seen: list[Totals] = []
        """The start, at which all is 0, and what was noted since; not more often than asked for."""

    def start(self, topology: Topology, now: int) -> tuple[tuple[int, ...], tuple[int, Any]]:
        """Start the other one."""
        nothing = np.zeros(len(topology.outputs) + 1)
        self.seen = [Totals(now, nothing.astype(np.int64), nothing, nothing, nothing, nothing, nothing)]
        places, memory = self._inner.start(topology, now)
        return places, (now + self._every, memory)

    def next(self, memory: tuple[int, Any]) -> int:
        """Return when there is something to note, or the other one wants to look."""
        due, inner = memory
        return min(due, self._inner.next(inner))

    def look(self, totals: Totals, memory: tuple[int, Any]) -> tuple[tuple[Action, ...], tuple[int, Any]]:
        """Note the totals if they are due, and let the other one look if it wants to."""
        due, inner = memory
        actions: tuple[Action, ...] = ()
        if totals.now >= due:
            self.seen.append(totals)
            due += self._every * (1 + (totals.now - due) // self._every)
        if totals.now >= self._inner.next(inner):
            actions, inner = self._inner.look(totals, inner)
        return actions, (due, inner)

    def change(self, settings: Mapping[str, Any], memory: tuple[int, Any]) -> tuple[int, Any]:
        """Change the other one."""
        due, inner = memory
        return due, self._inner.change(settings, inner)


def watch(layer: str | Mapping[str, Any] | Adaptive, every: float) -> Watched:
    """Return a watched layer around a single policy (a text), or around a layer ({use: ...}, or the layer itself).

    Raises a PolicyError if there is no such layer.
    """
    if isinstance(layer, str):
        return Watched(Alone(layer), every)
    parsed = parse_adaptive(layer)
    assert parsed is not None
    return Watched(parsed.layer, every)


def run_watched(
    network: Mapping[str, Any],
    schedule: str,
    layer: str | Mapping[str, Any] | Adaptive,
    every: float,
    engine: str = "sim",
    **settings: Any,
) -> tuple[dict[str, Any], list[Totals]]:
    """Run a network whose results go nowhere; return the summary, and the totals at the start and every few seconds.

    `layer` is the policy or the layer to watch; of the schedule everything but its policy counts. What happens after
    the last of the moments, less than `every` before the end, is in the summary only. `settings` are those of
    `headway.run`.
    """
    made = watch(layer, every)
    nowhere = dict.fromkeys(network["outputs"])
    result = run(network, engine=engine, policy=schedule, adaptive=made, outputs=nowhere, **settings)
    return dict(result.summary), made.seen


def intervals(seen: list[Totals]) -> list[Interval]:
    """Return how the times between the noted moments went."""
    return [Interval(before, after) for before, after in pairwise(seen)]
