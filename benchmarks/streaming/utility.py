"""What deliveries are worth: the same arithmetic for every system.

A system processes the stream in micro-batches. When one is complete, everything that its tuples caused has been
delivered, so the latency of a tuple is from its arrival to that moment. For a windowed count this is the latency
of the tuple that closes a window, without the window's own length, which no system can do anything about.

Tuples that arrive within a span of the stream count, all alike. Who has not been delivered when the watch ends
counts with the latency it has by then: a lower bound, so that utilities of overloaded systems are upper bounds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from benchmarks.streaming.apps import App
from headway.columns import Floats
from headway.network.qos import Graph

_POINTS = 64
"""Points per micro-batch from which quantiles are found."""


class Done(NamedTuple):
    """A moment, in seconds since the stream began, by which the first `tuples` tuples had been processed."""

    tuples: int
    moment: float


class Span(NamedTuple):
    """Which arrivals count (seconds since the stream began), and until when deliveries are watched."""

    start: float
    stop: float
    watched: float


@dataclass(frozen=True)
class Worth:
    """What a class of applications got."""

    utility: float
    mean: float
    p50: float
    p99: float
    delivered: float
    """The share of the tuples that were delivered while the watch lasted."""
    batches: int


def latencies(done: Sequence[Done], rate: float, span: Span) -> tuple[list[tuple[float, float, float]], float]:
    """Return ranges of latencies as (weight in tuples, least, largest), and how many tuples were not delivered.

    Within a range latencies are even, because arrivals are. The last range is that of the tuples not delivered.
    """
    first, last = span.start * rate, span.stop * rate
    ranges: list[tuple[float, float, float]] = []
    before = 0
    for tuples, moment in sorted(done, key=lambda one: one.moment):
        if moment > span.watched:
            break
        low, high = max(before, first), min(tuples, last)
        if high > low:
            ranges.append((high - low, moment - high / rate, moment - low / rate))
        before = max(before, tuples)
    low = max(before, first)
    missing = max(0.0, last - low)
    if missing:
        ranges.append((missing, span.watched - span.stop, span.watched - low / rate))
    return ranges, missing


def mean_utility(graph: Graph, least: float, largest: float) -> float:
    """Return the mean of a latency graph over a range of latencies, all of them equally frequent."""
    if largest - least < 1e-12:
        return graph.value(least)
    inner = [x for x, _ in graph.points if least < x < largest]
    xs = np.array([least, *inner, largest])
    return float(np.trapezoid(graph.values(xs), xs) / (largest - least))


def worth(apps: Sequence[App], done: Mapping[str, Sequence[Done]], rate: float, span: Span) -> Worth:
    """Return what some applications got: the mean over applications, every one of them weighing the same."""
    utility, values, weights, lost, batches = 0.0, [], [], 0.0, 0
    for app in apps:
        ranges, missing = latencies(done.get(app.name, ()), rate, span)
        total = sum(weight for weight, _, _ in ranges)
        lost += missing / total
        batches += len(ranges) - (missing > 0)
        for weight, least, largest in ranges:
            share = weight / total
            utility += share * mean_utility(app.graph, least, largest)
            values.append(least + (largest - least) * (np.arange(_POINTS) + 0.5) / _POINTS)
            weights.append(np.full(_POINTS, share / _POINTS))
    value, weight_of = np.concatenate(values), np.concatenate(weights)
    return Worth(
        utility / len(apps),
        float((value * weight_of).sum() / weight_of.sum()),
        quantile(value, weight_of, 0.5),
        quantile(value, weight_of, 0.99),
        1 - lost / len(apps),
        batches,
    )


def quantile(values: Floats, weights: Floats, share: float) -> float:
    """Return the value below which this share of the weight lies."""
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    place = int(np.searchsorted(reached, share * reached[-1]))
    return float(values[order][min(place, len(values) - 1)])
