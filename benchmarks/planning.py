"""What a decision costs: every policy on networks of 1,000, 10,000 and 100,000 boxes.

Applications of five boxes in a row, with latency graphs in turn tight and loose. At any time 256 boxes are ready,
whatever the size of the network: what a machine has to do at once depends on the machine. A plan has at most 16
steps; the units served are then empty, as many others get tuples, and two milliseconds pass. Measured is `plan`
alone, in processor time: snapshots are made beforehand and nothing is run. A number is the mean over a round of
plans, in the best of some rounds; the first plan, in which a policy gets to know the network, stands in a column
of its own.

Two more forms of bucketed: as if the engine did not tell it what changed, and with a tenth of all boxes ready. In
the second, many more units come from bucket to bucket between two plans, because they wait for longer: the cost
follows what happens.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random

import numpy as np

from benchmarks.throughput import processor_seconds
from headway.catalog import BoxReadings, Statistics, Topology
from headway.clock import SECOND
from headway.columns import NEVER, Floats
from headway.costs import CostModel, UnitCostModel, UnitCosts
from headway.errors import PolicyError
from headway.network.qos import Graph, QoS
from headway.scheduling.policy import Plan, make_policy, registered_policies
from headway.scheduling.snapshot import Layout, Measures, Moment, OutputReadings, QueueReadings, Snapshot, Unit

SIZES = (1_000, 10_000, 100_000)
ROUNDS, PLANS = 5, 200
CHAIN = 5
READY = 256
ROOM = 16
PAUSE = SECOND // 500
PATIENCE = 5.0
"""Seconds of processor time after which no further round is begun."""

GRAPHS = (
    ((0.0, 1.0), (0.001, 1.0), (1.0, 0.0)),
    ((0.0, 1.0), (4.0, 1.0), (5.0, 0.0)),
    ((0.0, 1.0), (0.1, 1.0), (0.5, 0.6), (2.0, 0.0)),
)
"""The paper's tight and loose ones, and one between."""

GROWTH, EXACT = 2.0, 200.0
"""What is promised: how much dearer bucketed is in the largest network than in the smallest, at most; and µs that
slope-slack takes for 1,000 boxes."""


@dataclass(frozen=True)
class Case:
    """A policy, how it is asked, and what is ready."""

    name: str
    policy: str
    told: bool = True
    share: float | None = None
    """Which part of the boxes is ready; None: READY of them."""


@dataclass(frozen=True)
class Cost:
    """What a policy's decisions cost in a network, in µs."""

    case: str
    boxes: int
    plan: float
    steps: float
    """Steps in a plan, on average."""
    first: float


def network(boxes: int) -> tuple[Topology, tuple[Unit, ...], Statistics]:
    """Return applications of five boxes each, every box a unit, and measured costs."""
    count = boxes // CHAIN
    places = [divmod(box, CHAIN) for box in range(count * CHAIN)]
    topology = Topology(
        tuple(f"b{box}" for box in range(len(places))),
        ("s",),
        tuple(f"o{at}" for at in range(count)),
        tuple(QoS(latency=Graph(GRAPHS[at % len(GRAPHS)])) for at in range(count)),
        tuple((box - 1,) if place else () for box, (_, place) in enumerate(places)),
        tuple((box + 1,) if place < CHAIN - 1 else () for box, (_, place) in enumerate(places)),
        (tuple(range(0, len(places), CHAIN)),),
        tuple(range(CHAIN - 1, len(places), CHAIN)),
    )
    units = tuple(Unit(name, (box,), (box // CHAIN,)) for box, name in enumerate(topology.boxes))
    statistics = Statistics(len(places))
    for box in range(len(places)):
        for tuples in (10, 100):
            statistics.report(box, tuples, tuples // 2, 10_000 + 100 * tuples, 64 * tuples)
    return topology, units, statistics


class Known(Measures):
    """What is measured, all of it known beforehand."""

    def __init__(
        self,
        model: CostModel,
        boxes: BoxReadings,
        outputs: OutputReadings,
        queues: QueueReadings,
        latencies: Floats,
        costs: UnitCosts,
    ) -> None:
        """Keep what snapshots will say."""
        self.model = model
        self._boxes, self._outputs, self._queues, self._latencies, self._costs = (
            boxes,
            outputs,
            queues,
            latencies,
            costs,
        )

    def rates(self, now: int) -> Floats:
        """Return the rate of the one source."""
        return np.full(1, 1e6)

    def boxes(self, now: int) -> BoxReadings:
        """Return the statistics of the boxes."""
        return self._boxes

    def outputs(self) -> OutputReadings:
        """Return how the outputs do."""
        return self._outputs

    def queues(self, now: int) -> QueueReadings:
        """Return what waits before each box."""
        return self._queues

    def latencies(self, now: int) -> Floats:
        """Return by unit the mean latency of its waiting tuples."""
        return self._latencies

    def latency(self, now: int, unit: int) -> float:
        """Return the mean latency of one unit's waiting tuples."""
        return float(self._latencies[unit])

    def unit_costs(self, now: int) -> UnitCosts:
        """Return by unit, which is a box here, what a step costs."""
        return self._costs

    box_costs = unit_costs

    def held(self) -> Floats:
        """Return nothing: trains do not wait."""
        return np.zeros(0)


class Load:
    """A network in a steady state: as many units get tuples as are served."""

    def __init__(self, made: tuple[Topology, tuple[Unit, ...], Statistics], case: Case) -> None:
        """Let the first units have tuples."""
        topology, self._units, statistics = made
        self._layout = Layout(topology, self._units)
        count = len(self._units)
        self._boxes = statistics.readings()
        self._told = case.told
        self._random = Random(count)
        self._now = 1000 * SECOND
        self._ready = np.zeros(count, np.bool_)
        self._waiting = np.zeros(count, np.int64)
        self._oldest = np.full(count, NEVER)
        self._model = CostModel(topology)
        self._costs = UnitCostModel(self._model, [unit.boxes for unit in self._units]).read(self._boxes, self._waiting)
        self._changed: list[int] = []
        self._arrive(min(count // 2, READY if case.share is None else int(case.share * count)))

    def snapshot(self) -> Snapshot:
        """Return the present readings."""
        count = len(self._units)
        ages = np.where(self._ready, (self._now - np.where(self._ready, self._oldest, 0)) / SECOND, 0.0)
        queues = QueueReadings(self._waiting.copy(), 64 * self._waiting, ages, ages)
        outputs = count // CHAIN
        delivered = OutputReadings(
            np.ones(outputs, np.int64), np.full(outputs, 0.1), np.ones(outputs), np.ones(outputs)
        )
        return Snapshot(
            now=self._now,
            layout=self._layout,
            ready=self._ready,
            waiting=self._waiting,
            oldest=self._oldest,
            box_ready=self._ready,
            box_waiting=self._waiting,
            box_oldest=self._oldest,
            workers=1,
            free=1,
            busy=np.zeros(count, np.bool_),
            spent=np.zeros(count),
            held=np.zeros(count, np.int64),
            memory=0,
            train=100,
            room=ROOM,
            measures=Moment(Known(self._model, self._boxes, delivered, queues, ages, self._costs), self._now),
            changed=self._changed if self._told else None,
        )

    def serve(self, plan: Plan) -> None:
        """Empty the units of a plan, let as many others have tuples, and let time pass."""
        served = [step.unit for step in plan.steps]
        self._ready[served] = False
        self._waiting[served] = 0
        self._oldest[served] = NEVER
        self._changed = served
        self._now += PAUSE
        self._arrive(len(served))

    def _arrive(self, many: int) -> None:
        while many:
            unit = self._random.randrange(len(self._units))
            if not self._ready[unit]:
                self._ready[unit], self._waiting[unit], self._oldest[unit] = True, 10, self._now
                self._changed.append(unit)
                many -= 1


def measure(case: Case, made: tuple[Topology, tuple[Unit, ...], Statistics], rounds: int, plans: int) -> Cost:
    """Return what a policy's plans cost in a network. Raises a PolicyError if it makes none."""
    load, policy = Load(made, case), make_policy(case.policy)
    memory, means, steps, first, begun = policy.start(), [], 0, 0.0, processor_seconds()
    for at in range(rounds + 1):  # the first round is to warm up
        spent = 0.0
        for _ in range(plans if at else max(1, plans // 4)):
            seen = load.snapshot()
            before = processor_seconds()
            plan, memory = policy.plan(seen, memory)
            took = processor_seconds() - before
            spent += took
            first = first or took
            steps += len(plan.steps) if at else 0
            load.serve(plan)
        if at:
            means.append(spent / plans)
            if processor_seconds() - begun > PATIENCE:
                break
    return Cost(case.name, len(made[1]), 1e6 * min(means), steps / (plans * len(means)), 1e6 * first)


def cases(policies: Iterable[str] | None = None) -> list[Case]:
    """Return every registered policy, or some, and the other forms of bucketed and what it approximates."""
    every = [entry.name for entry in registered_policies()]
    plain = [Case(name, name) for name in every]
    other = [
        Case("bucketed, not told what changed", "bucketed", told=False),
        Case("bucketed, a tenth ready", "bucketed", share=0.1),
        Case("slope-slack, a tenth ready", "slope-slack", share=0.1),
    ]
    wanted = every if policies is None else list(policies)
    return [case for case in (*plain, *other) if case.policy in wanted]


def check(costs: Sequence[Cost]) -> list[str]:
    """Return which promises are not kept; an empty list where all are, or where nothing was measured for them."""
    found: Mapping[tuple[str, int], float] = {(one.case, one.boxes): one.plan for one in costs}
    sizes = sorted({one.boxes for one in costs})
    broken = []
    if sizes and ("bucketed", sizes[0]) in found:
        small, large = found["bucketed", sizes[0]], found["bucketed", sizes[-1]]
        if large > GROWTH * small:
            broken.append(
                f"bucketed takes {large:.0f} µs for {sizes[-1]:,} boxes, more than {GROWTH:g} times "
                f"the {small:.0f} µs for {sizes[0]:,}"
            )
    exact = found.get(("slope-slack", 1000))
    if exact is not None and exact > EXACT:
        broken.append(f"slope-slack takes {exact:.0f} µs for 1,000 boxes, more than {EXACT:.0f}")
    return broken


def report(
    sizes: Sequence[int] = SIZES, rounds: int = ROUNDS, plans: int = PLANS, policies: Sequence[str] | None = None
) -> list[Cost]:
    """Measure, print and return the costs."""
    chosen = cases(policies)
    costs: dict[str, list[Cost]] = {case.name: [] for case in chosen}
    without: dict[str, str] = {}
    for size in sizes:
        made = network(size)
        for case in chosen:
            try:
                costs[case.name].append(measure(case, made, rounds, plans))
            except PolicyError as error:
                without[case.name] = str(error)
    print(f"## Planning: µs for a plan of up to {ROOM} steps, by boxes; best of {rounds} rounds of {plans} plans\n")
    print("| policy | steps |" + "".join(f" {size:,} |" for size in sizes) + f" first plan, {sizes[-1]:,} |")
    print("|---|---:|" + "---:|" * (len(sizes) + 1))
    for name, some in costs.items():
        if some and name not in without:
            plans_ = "".join(f" {one.plan:,.0f} |" for one in some)
            print(f"| {name} | {some[-1].steps:.0f} |{plans_} {some[-1].first:,.0f} |")
    for name, reason in without.items():
        print(f"\nNot measured: {name} ({reason})")
    return [one for some in costs.values() for one in some]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.planning", description=__doc__)
    parser.add_argument("--boxes", type=int, nargs="+", default=SIZES, help="sizes of networks (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="how many rounds (default: %(default)s)")
    parser.add_argument("--plans", type=int, default=PLANS, help="plans in a round (default: %(default)s)")
    parser.add_argument("--policy", nargs="+", help="only these policies")
    parser.add_argument("--json", type=Path, help="also write the results to this file")
    given = parser.parse_args(arguments)
    costs = report(given.boxes, given.rounds, given.plans, given.policy)
    if given.json is not None:
        given.json.write_text(json.dumps([asdict(one) for one in costs], indent=2) + "\n")
    broken = check(costs)
    print(f"\nPromised: {'kept' if not broken else '; '.join(broken)}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
