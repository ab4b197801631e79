from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.boxes.durations import Duration
import headway.shedding.greedy  # noqa: F401  (strategy 'loss' registers itself)
from headway.catalog import Topology
from headway.clock import SECOND
from headway.errors import PolicyError
from headway.qos import Graph, QoS
from headway.shedding.base import Demand, Entry, Site, work_saved
from headway.shedding.controller import Controller, ControllerMemory, Decision
from headway.shedding.monitor import Observation
from headway.shedding.settings import ShedSettings

Floats = npt.NDArray[np.float64]

GOOD = 1.0
LATE = Graph(((0.0, 1.0), (GOOD, 1.0), (3.0, 0.0)))
TOLERANT = QoS(latency=LATE, loss=Graph(((0.0, 0.8), (100.0, 1.0))))
INTOLERANT = QoS(latency=LATE, loss=Graph(((0.0, 0.0), (100.0, 1.0))))


def network(qos: Sequence[QoS]) -> Topology:
    """Return one source with a box and an output for each QoS."""
    count = len(qos)
    return Topology(
        boxes=tuple(f"b{at}" for at in range(count)),
        sources=("s",),
        outputs=tuple(f"o{at}" for at in range(count)),
        qos=tuple(qos),
        producers=((),) * count,
        consumers=((),) * count,
        readers=(tuple(range(count)),),
        roots=tuple(range(count)),
    )


def sites(count: int) -> tuple[Site, ...]:
    return tuple(Site(f"s -> b{at}", (at,), (Entry(at, 0, -1),)) for at in range(count))


@dataclass
class Look:
    """What happened at one look."""

    at: float
    decision: Decision
    backlog: float
    latency: tuple[float, float]


@dataclass
class Fluid:
    """One processor that takes work in the order of arrival; work arrives by a function of time, half of it tolerant.

    Readings fade with a half-life of a second and have noise of 5 per cent. The cost model says `believed` seconds for
    a second of true work; capacity is read as 1, which is right only if `believed` is.
    """

    load: Callable[[float], float]
    settings: ShedSettings = ShedSettings()  # noqa: RUF009 - frozen
    believed: float = 1.0
    noise: float = 0.05
    seed: int = 0
    early: bool = False
    """Whether tuples are dropped as they arrive, or else as they are taken out of queues."""
    tolerant: float = 0.6
    looks: list[Look] = field(default_factory=list)

    STEP = 0.01

    def run(self, seconds: float) -> list[Look]:
        random = np.random.default_rng(self.seed)

        def read(value: float) -> float:
            return value * float(1 + random.uniform(-self.noise, self.noise))

        controller = Controller(self.settings, network([TOLERANT, INTOLERANT]))
        memory = controller.start()
        parts = np.array([self.tolerant, 1 - self.tolerant])
        keep = np.ones(2)
        queue: deque[tuple[float, int, float]] = deque()
        waiting, left = np.zeros(2), 0.5**self.STEP
        arriving, busy = np.zeros(2), 0.0
        delivered, late, latency = np.zeros(2), np.zeros(2), np.zeros(2)
        every = round(self.settings.interval.seconds / self.STEP)
        for step in range(1, round(seconds / self.STEP) + 1):
            now = step * self.STEP
            offered = self.load(now) * parts
            arriving = arriving * left + offered * (1 - left)
            comes = offered * self.STEP * (keep if self.early else 1.0)
            queue += [(now, output, float(comes[output])) for output in range(2)]
            waiting += comes
            able = self.STEP
            delivered, late, latency = delivered * left, late * left, latency * left
            while queue and able > 1e-12:
                since, output, work = queue[0]
                share = 1.0 if self.early else float(keep[output])
                done = work if work * share <= able else able / share
                able -= done * share
                waiting[output] -= done
                delivered[output] += done * share
                late[output] += done * share * (now - since > GOOD)
                latency[output] += done * share * (now - since)
                if done < work:
                    queue[0] = (since, output, work - done)
                else:
                    queue.popleft()
            busy = busy * left + (1 - able / self.STEP) * (1 - left)
            if step % every:
                continue
            shown = arriving * self.believed
            backlog = waiting if self.early else waiting * keep
            rates = np.array([read(1000.0 * shown[output]) for output in range(2)])
            load = read(float(shown.sum()))
            counts = np.maximum(delivered, 1e-12)
            demand = Demand(
                sites(2), (TOLERANT, INTOLERANT), rates, np.full(2, 0.001), ((), ()), load, 1.0, late / counts
            )
            oldest = now - queue[0][0] if queue else 0.0
            observation = Observation(
                now=round(now * SECOND),
                delivered=delivered,
                late=late / counts,
                latency=latency / counts,
                oldest=np.full(2, oldest),
                rates=np.array([rates.sum()]),
                usual=np.array([500.0]),
                rate_in=rates,
                box_load=rates * 0.001,
                waiting=np.zeros(2, np.int64),
                box_backlog=backlog,
                load=load,
                kept=read(float((shown * keep).sum())),
                backlog=read(float(backlog.sum()) * self.believed),
                capacity=read(1.0),
                busy=min(read(busy), 1.0),
            )
            decision, memory = controller.decide(observation, demand, memory)
            keep = decision.keep
            means = latency / counts
            self.looks.append(Look(now, decision, float(backlog.sum()), (float(means[0]), float(means[1]))))
        return self.looks


def changes(looks: Sequence[Look], since: float = 0.0, until: float = np.inf) -> int:
    return sum(look.decision.changed for look in looks if since < look.at <= until)


def switches(looks: Sequence[Look]) -> int:
    """Return how often shedding went on or off."""
    states = [look.decision.active for look in looks]
    return sum(before != after for before, after in zip([False, *states], states, strict=False))
