"""What decisions are worth and what they cost: a policy serves chains of boxes, and is timed at every decision.

The policy is the real one, and it takes its real time over real snapshots. All else is a model: one processor, boxes
that take a given time for a tuple, and a clock that jumps. Who is served is asked after every tuple, and a decision
lasts for as long as the caller says: so a run can be repeated exactly, whatever else the machine does meanwhile.

The engines would do as well, but their own work for a step is several times that of a policy, and hides it.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from headway.catalog import Topology
from headway.clock import SECOND, stopwatch
from headway.columns import NEVER, Floats, Int64s
from headway.costs import UnitCosts
from headway.network.qos import Graph, QoS
from headway.scheduling.policy import Policy
from headway.scheduling.schedule import Schedule
from headway.scheduling.snapshot import Layout, Measures, Moment, Snapshot, Unit
from headway_experiments.scheduling.loads import LOOSE, TIGHT, draw_costs

EVERY = 8
"""After how many decisions a policy is compared with another one."""
REST = 0.9
"""Which part of all times are not the longest."""


@dataclass(frozen=True)
class Chains:
    """Applications of one chain of boxes each, and what arrives at them."""

    costs: tuple[tuple[int, ...], ...]
    """By application and box: nanoseconds for a tuple."""
    graphs: tuple[Graph, ...]
    """By application: what a result is worth, by latency in seconds."""
    arrivals: tuple[tuple[int, int], ...]
    """Moments (ns), ascending, and the applications at which a tuple arrives then."""

    @property
    def depth(self) -> int:
        """Boxes in a chain; the boxes of application a are those from a * depth on."""
        return len(self.costs[0])

    @cached_property
    def flat(self) -> list[int]:
        """By box: nanoseconds for a tuple."""
        return [cost for chain in self.costs for cost in chain]

    @cached_property
    def topology(self) -> Topology:
        """The network as policies see it."""
        depth, count = self.depth, len(self.flat)
        return Topology(
            tuple(f"b{box}" for box in range(count)),
            ("s",),
            tuple(f"o{at}" for at in range(len(self.graphs))),
            tuple(QoS(latency=graph) for graph in self.graphs),
            tuple((box - 1,) if box % depth else () for box in range(count)),
            tuple((box + 1,) if (box + 1) % depth else () for box in range(count)),
            (tuple(range(0, count, depth)),),
            tuple(range(depth - 1, count, depth)),
        )

    @cached_property
    def units(self) -> tuple[Unit, ...]:
        """Each box by itself."""
        return tuple(Unit(name, (box,), (box // self.depth,)) for box, name in enumerate(self.topology.boxes))

    @cached_property
    def layout(self) -> Layout:
        """Both together."""
        return Layout(self.topology, self.units)

    @cached_property
    def unit_costs(self) -> UnitCosts:
        """What a tuple still costs from each box on."""
        left = [sum(chain[at:]) / SECOND for chain in self.costs for at in range(len(chain))]
        return UnitCosts(np.zeros(len(left)), np.array(left), np.ones(len(left)))


def draw_chains(applications: int, depth: int, load: float, seconds: float, seed: int, scale: float) -> Chains:
    """Return chains that so much arrives at that their boxes' work is `load` times `seconds`.

    Boxes cost what the paper's do, times `scale`; graphs are tight or loose, and tuples arrive at any moment and any
    application alike. All by chance, and the same for the same seed.
    """
    chance = random.Random(seed)
    graphs = [Graph(tuple(chance.choice((TIGHT, LOOSE)))) for _ in range(applications)]
    drawn = [draw_costs(depth, 1, 1000 * seed + at, scale) for at in range(applications)]
    costs = [tuple(round(one[level, 0] * SECOND) for level in reversed(range(depth))) for one in drawn]
    mean = sum(map(sum, costs)) / applications
    tuples = round(load * seconds * SECOND / mean)
    due = sorted(chance.randrange(round(seconds * SECOND)) for _ in range(tuples))
    return Chains(tuple(costs), tuple(graphs), tuple((moment, chance.randrange(applications)) for moment in due))


@dataclass(frozen=True)
class Served:
    """What a policy made of it."""

    utility: float
    """Mean over all results."""
    latency: float
    """The same, in seconds."""
    ready: float
    """Boxes that could have been served at a decision, on average."""
    took: float
    """What a decision took for real, in nanoseconds on average (see `usual`)."""
    beside: float
    """The same of the other policy, 0 if there is none."""


def serve(chains: Chains, policy: str, decision: int, beside: str | None = None) -> Served:
    """Serve everything that arrives; each decision lasts `decision` ns of virtual time.

    Now and then the policy `beside` is asked and timed, too, and nobody does what it says. So both are timed in the
    same moments, and what slows the machine down slows both. It must need nothing to remember but what it prepares.
    """
    state = _State(chains)
    chosen, other = make(policy), None if beside is None else make(beside)
    memory, others = chosen.start(), None if other is None else other.start()
    took: list[int] = []
    compared: list[int] = []
    now, following, ready, utilities, latencies = 0, 0, [], [], []
    arrivals, depth, flat = chains.arrivals, chains.depth, chains.flat
    while True:
        while following < len(arrivals) and arrivals[following][0] <= now:
            moment, application = arrivals[following]
            state.put(application * depth, moment)
            following += 1
        if not state.count:
            if following == len(arrivals):
                break
            now = arrivals[following][0]
            continue
        if other is not None and len(took) % EVERY == 0:
            for _ in range(2):  # the second time nothing has to be fetched into caches, as in a row of decisions
                begun = stopwatch()
                _, others = other.plan(state.snapshot(now), others)
                ended = stopwatch()
            compared.append(ended - begun)
        ready.append(state.count)
        begun = stopwatch()
        plan, memory = chosen.plan(state.snapshot(now), memory)
        took.append(stopwatch() - begun)
        state.told()
        box = plan.steps[0].unit
        stamp = state.take(box)
        now += decision + flat[box]
        if (box + 1) % depth:
            state.put(box + 1, stamp)
        else:
            latencies.append((now - stamp) / SECOND)
            utilities.append(chains.graphs[box // depth].value(latencies[-1]))
    return Served(_mean(utilities), _mean(latencies), _mean(ready), usual(took), usual(compared))


def usual(took: Sequence[int]) -> float:
    """Return the mean of some times, in which the longest of them count as no longer than the rest.

    A process that is interrupted in the middle of a decision loses milliseconds, a hundred times what the decision
    takes. On a busy machine that happens to some in a hundred.
    """
    if not took:
        return 0.0
    return float(np.minimum(took, np.quantile(took, REST)).mean())


def make(policy: str) -> Policy:
    """Return a policy by its name."""
    return Schedule.parse(f"{policy}/box/1/wait:off").make_policy()


class _State:
    """The queues, and what a policy sees of them."""

    def __init__(self, chains: Chains) -> None:
        count = len(chains.flat)
        self._chains = chains
        self._queues: list[deque[int]] = [deque() for _ in range(count)]
        self._ready = np.zeros(count, np.bool_)
        self._waiting = np.zeros(count, np.int64)
        self._oldest = np.full(count, NEVER)
        self._sums = np.zeros(count, np.int64)
        self._changed: set[int] | None = None  # None: the policy has not been asked yet
        self.count = 0
        """Boxes at which something waits."""

    def put(self, box: int, stamp: int) -> None:
        """Let a tuple wait at a box."""
        queue = self._queues[box]
        if not queue:
            self.count += 1
            self._ready[box], self._oldest[box] = True, stamp
        queue.append(stamp)
        self._move(box, 1, stamp)

    def take(self, box: int) -> int:
        """Take the first tuple at a box, and return its stamp."""
        queue = self._queues[box]
        stamp = queue.popleft()
        if queue:
            self._oldest[box] = queue[0]
        else:
            self.count -= 1
            self._ready[box], self._oldest[box] = False, NEVER
        self._move(box, -1, -stamp)
        return stamp

    def _move(self, box: int, tuples: int, stamps: int) -> None:
        self._waiting[box] += tuples
        self._sums[box] += stamps
        if self._changed is not None:
            self._changed.add(box)

    def told(self) -> None:
        """Note that the policy was asked."""
        self._changed = set()

    def snapshot(self, now: int) -> Snapshot:
        """Return what the policy sees."""
        chains, count = self._chains, len(self._queues)
        return Snapshot(
            now=now,
            layout=chains.layout,
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
            train=1,
            room=1,
            measures=Moment(_Known(self._waiting, self._sums, chains.unit_costs), now),
            changed=None if self._changed is None else list(self._changed),
        )


class _Known(Measures):
    """What policies for chains read."""

    def __init__(self, waiting: Int64s, sums: Int64s, costs: UnitCosts) -> None:
        self._waiting, self._sums, self._costs = waiting, sums, costs

    def latencies(self, now: int) -> Floats:
        waiting = self._waiting
        return np.where(waiting > 0, (now - self._sums / np.maximum(waiting, 1)) / SECOND, 0.0)

    def latency(self, now: int, unit: int) -> float:
        return float(now - self._sums[unit] / self._waiting[unit]) / SECOND

    def unit_costs(self, now: int) -> UnitCosts:
        return self._costs

    box_costs = unit_costs

    def held(self) -> Floats:
        return np.zeros(0)

    def _unread(self, now: int = 0) -> Any:
        raise NotImplementedError("policies that read this are not for chains")

    rates = boxes = outputs = queues = _unread


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
