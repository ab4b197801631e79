"""Samples: the metrics of a short time, with what still waits counted in.

The latency of what was delivered does not tell all. An algorithm that lets some tuples wait for long, and delivers
only fresh ones, looks fast; who is next delivers the old ones, and looks slow. So a share (`waiting`) of a sample's
latency is the age of the oldest waiting tuple, where that is larger; and the same share of its utility is what
results of that age would be worth, the mean over the outputs with latency graphs, where that is less. A share of 0
takes the metrics as they are, as AMoS does (Sutherland et al., IDEAS 2005, section 3.2).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from headway.adaptive.base import METRICS, Interval
from headway.columns import Int64s
from headway.qos import Graph, QoS
from headway.totals import SYSTEM, Totals

ORDER = tuple(METRICS)
"""The order of metrics in tuples of statistics and of scores."""

Statistics = tuple[float, ...]
"""A number for each metric, in `ORDER`."""


@dataclass(frozen=True, slots=True, eq=False)
class Worth:
    """What results of some age are worth: the latency graphs, each with the outputs that have it."""

    graphs: tuple[tuple[Graph, Int64s], ...]

    @classmethod
    def of(cls, qos: Iterable[QoS]) -> Worth:
        """Gather the latency graphs of the outputs; many outputs have the same."""
        places: dict[Graph, list[int]] = {}
        for output, wish in enumerate(qos):
            if wish.latency is not None:
                places.setdefault(wish.latency, []).append(output)
        return cls(tuple((graph, np.array(outputs, np.int64)) for graph, outputs in places.items()))

    def waiting(self, totals: Totals) -> float | None:
        """Return what results as old as the oldest waiting tuples would be worth; None where no output has a graph."""
        if not self.graphs:
            return None
        values = np.concatenate([graph.values(totals.oldest[outputs]) for graph, outputs in self.graphs])
        return float(values.mean())


def measure(interval: Interval, waiting: float = 0.0, worth: Worth | None = None) -> Statistics:
    """Return one sample: all metrics of the whole run over an interval, with a share of what waits counted in."""
    sample = {name: float(metric(interval, SYSTEM)) for name, metric in METRICS.items()}
    if waiting > 0:
        latency, oldest = sample["latency"], float(interval.after.oldest[SYSTEM])
        sample["latency"] += waiting * max(oldest - latency, 0.0)
        worthy = None if worth is None else worth.waiting(interval.after)
        if worthy is not None:
            none = interval.after.delivered[SYSTEM] == interval.before.delivered[SYSTEM]
            delivered = worthy if none else sample["utility"]
            sample["utility"] = delivered + waiting * min(worthy - delivered, 0.0)
    return tuple(sample.values())


def idle(interval: Interval) -> bool:
    """Return whether nothing was delivered and nothing waited: such a time says nothing about an algorithm."""
    before, after = interval.before, interval.after
    return bool(
        after.delivered[SYSTEM] == before.delivered[SYSTEM]
        and after.queued[SYSTEM] <= before.queued[SYSTEM]
        and after.oldest[SYSTEM] <= 0
    )
