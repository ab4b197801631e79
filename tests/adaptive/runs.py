"""Totals of runs that never were, for tests of adaptive layers."""

from __future__ import annotations

import numpy as np

from headway.catalog import Topology
from headway.clock import SECOND
from headway.network.qos import QoS
from headway.totals import Totals

PLAIN = QoS()


def topology(*qos: QoS) -> Topology:
    """Return a network of outputs alone."""
    outputs = tuple(f"out{at}" for at in range(len(qos)))
    return Topology((), (), outputs, qos, (), (), (), (-1,) * len(outputs))


class Run:
    """Totals that grow as told, of one output and the whole alike."""

    def __init__(self) -> None:
        self.now = 0
        self.sums = dict.fromkeys(("delivered", "latency", "utility", "queued", "memory"), 0.0)

    def go(
        self,
        seconds: float,
        delivered: int = 10,
        latency: float = 0.0,
        utility: float = 1.0,
        queue: float = 0.0,
        oldest: float = 0.0,
    ) -> Totals:
        """Let time pass, during which so many tuples are delivered, with these means; return the totals."""
        self.now += round(seconds * SECOND)
        for name, more in (
            ("delivered", delivered),
            ("latency", delivered * latency),
            ("utility", delivered * utility),
            ("queued", queue * seconds),
            ("memory", 100 * queue * seconds),
        ):
            self.sums[name] += more
        arrays = {name: np.array([value, value]) for name, value in self.sums.items()}
        return Totals(
            self.now,
            arrays["delivered"].astype(np.int64),
            arrays["latency"],
            arrays["utility"],
            arrays["queued"],
            arrays["memory"],
            np.array([oldest, oldest]),
        )
