"""The figures on Spark: several applications over one stream, and loads and policies that take turns in one run.

On Spark a unit is a streaming query and a step a micro-batch, which costs some tenths of a second before any work; and
a query takes about a second to start. So a run goes through several spells: some seconds of arrivals at a load, then
silence until everything is delivered. Each spell may have another load and another policy than the one before; a
repetition is a run with other arrivals.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from headway.adaptive.layer import Action, Interval, Switch
from headway.catalog import Topology
from headway.clock import SECOND
from headway.columns import NEVER
from headway.runner import run
from headway.totals import Totals
from headway_experiments.scheduling.loads import Moments
from headway_experiments.trees import SCHEMA
from headway_experiments.watching import run_watched

DEPTH = 5
WORK = 0.005
"""Seconds that a tuple costs an application: five boxes of a millisecond.

A micro-batch of less than some thousand tuples is one task: so one core does all the work, and is the capacity that
loads are shares of. The other one is Spark's.
"""
MASTER = "local[2]"
_SOURCE = "s"
_EVERY = 0.1
WARM = 4.5
"""Seconds for a first spell that does not count, and what follows from it: a query's first micro-batches are slow."""

Points = Sequence[Sequence[float]]


class Spell(NamedTuple):
    """Some seconds of arrivals at a load, under a policy."""

    load: float
    policy: str
    seed: int
    begin: float
    """Seconds after the start of the stream."""
    seconds: float
    tuples: int


class Result(NamedTuple):
    """What came of a spell: from its first arrival to the delivery of its last result."""

    spell: Spell
    seen: Interval
    late: float
    """Seconds from the end of its arrivals to the last result."""


def applications(graphs: Sequence[Points | None], work: float = WORK) -> dict[str, Any]:
    """Return so many applications over one stream, each a chain of boxes with this latency graph."""
    boxes: dict[str, Any] = {}
    outputs: dict[str, Any] = {}
    for at, points in enumerate(graphs):
        feeding = _SOURCE
        for level in range(DEPTH):
            boxes[f"b{at}x{level}"] = {"op": "universal", "in": feeding, "cost": work / DEPTH}
            feeding = f"b{at}x{level}"
        outputs[f"o{at}"] = {"from": feeding}
        if points is not None:
            outputs[f"o{at}"]["qos"] = {"latency": [list(point) for point in points]}
    return {"network": "applications", "sources": {_SOURCE: {"schema": SCHEMA}}, "boxes": boxes, "outputs": outputs}


def plan_spells(
    silences: Mapping[float, float], policies: Sequence[str], seed: int, seconds: float, count: int
) -> tuple[Spell, ...]:
    """Return a spell for each load and policy, the lightest loads first; `count` applications share them.

    `silences` says for each load for how many seconds nothing arrives afterwards. The first spell has seed 0 and does
    not count.
    """
    made, at = [warming(policies[0])], WARM
    for load in sorted(silences):
        tuples = max(1, round(load * seconds / (WORK * count)))
        for policy in policies:
            made.append(Spell(load, policy, seed, at, seconds, tuples))
            at += seconds + silences[load]
    return tuple(made)


def warming(policy: str) -> Spell:
    """Return the first spell: a few tuples, one after the other, so that every query runs some micro-batches."""
    return Spell(0.0, policy, 0, 0.0, 3.0, 10)


def arrivals(spells: Sequence[Spell]) -> Moments:
    """Return the stream: within a spell tuples come at any moment alike, the same for the same seed and load."""
    parts = []
    for spell in spells:
        chance = np.random.default_rng([spell.seed, round(1000 * spell.load)])
        parts.append(np.sort(spell.begin + spell.seconds * chance.random(spell.tuples)))
    return Moments(np.rint(np.concatenate(parts) * SECOND).astype(np.int64))


def split(seen: Sequence[Totals], spells: Sequence[Spell], count: int) -> Iterator[Result]:
    """Yield for each spell but the first how the time went until the last of its results was delivered.

    A spell is told from the next by the number of results, which does not depend on any clock.
    """
    due, before = 0, seen[0]
    for spell in spells:
        due += spell.tuples * count
        after = next((one for one in seen if int(one.delivered[-1]) >= due), seen[-1])
        if spell.seed:
            late = (after.now - seen[0].now) / SECOND - spell.begin - spell.seconds
            yield Result(spell, Interval(before, after), late)
        before = after


class InTurn:
    """An adaptive layer that gives every spell its policy, when it begins. Its memory: the start, and the spell."""

    def __init__(self, spells: Sequence[Spell]) -> None:
        """Take the spells of a run."""
        self._spells = spells
        self.policies = tuple(dict.fromkeys(spell.policy for spell in spells))

    def start(self, topology: Topology, now: int) -> tuple[tuple[int, ...], tuple[int, int]]:
        """Begin with the first spell's."""
        return (0,) * len(topology.outputs), (now, 0)

    def next(self, memory: tuple[int, int]) -> int:
        """Return when the next spell begins."""
        start, at = memory
        return start + round(self._spells[at + 1].begin * SECOND) if at + 1 < len(self._spells) else NEVER

    def look(self, totals: Totals, memory: tuple[int, int]) -> tuple[tuple[Action, ...], tuple[int, int]]:
        """Change to the next spell's."""
        start, at = memory
        policy = self.policies.index(self._spells[at + 1].policy)
        return (Switch(None, policy, "the next spell"),), (start, at + 1)

    def change(self, settings: Mapping[str, Any], memory: tuple[int, int]) -> tuple[int, int]:
        """Change nothing."""
        return memory


def run_spells(
    network: Mapping[str, Any], units: str, spells: Sequence[Spell], train: int = 65_536
) -> tuple[dict[str, Any], list[Result]]:
    """Run applications through spells, cut into these units; return the summary and what came of each spell.

    One query runs at a time. A session that is there is used as it is, and one that is started stays.
    """
    summary, seen = run_watched(
        network,
        f"{spells[0].policy}/{train}/wait:off",
        InTurn(spells),
        every=_EVERY,
        engine="spark",
        inputs={_SOURCE: arrivals(spells)},
        cut={"units": units},
        workers=1,
        master=master(),
    )
    return summary, list(split(seen, spells, len(network["outputs"])))


def batch_cost() -> float:
    """Return how many seconds a micro-batch costs on this machine before any work: the median, once it is warm."""
    spells = plan_spells({0.2: 0.0}, ["round-robin"], 1, 3.0, 1)
    inputs = {_SOURCE: arrivals(spells)}
    made = run(
        applications([None]),
        inputs,
        engine="spark",
        policy="round-robin/65536/wait:off",
        cut={"units": "one"},
        workers=1,
        master=master(),
        outputs={"o0": None},
        trace=True,
    )
    assert made.trace is not None
    steps = [step for step in made.trace.steps if step.tuples]
    costs = [(step.end - step.begin) / SECOND - WORK * step.tuples for step in steps[len(steps) // 2 :]]
    return min(2.0, max(0.05, statistics.median(costs)))


def cost_in_run(summary: Mapping[str, Any]) -> float:
    """Return how many seconds a micro-batch of a run cost on average, besides its work."""
    units = summary["units"].values()
    work = WORK * sum(unit["tuples"] for unit in units) * len(summary["outputs"]) / len(units)
    return float((sum(unit["seconds"] for unit in units) - work) / sum(unit["batches"] for unit in units))


def master() -> str | None:
    """Return where Spark runs: None, wherever it runs already, or else here on two cores."""
    from pyspark.sql import SparkSession

    return None if SparkSession.getActiveSession() is not None else MASTER
