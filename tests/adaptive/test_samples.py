"""Samples, and what still waits in them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from headway.adaptive.layer import Interval
from headway.adaptive.scoring import ORDER, Worth, idle, measure
from headway.network.qos import Graph, QoS
from tests.adaptive.runs import PLAIN, Run, topology

GRAPH = Graph(((0.0, 1.0), (1.0, 1.0), (3.0, 0.0)))
WORTH = Worth.of(topology(QoS(latency=GRAPH)).qos)


def interval(**values: float) -> Interval:
    run = Run()
    before = run.go(1)
    return Interval(before, run.go(0.5, **values))  # type: ignore[arg-type]


def named(sample: tuple[float, ...]) -> dict[str, float]:
    return dict(zip(ORDER, sample, strict=True))


def test_a_share_of_nothing_takes_the_metrics_as_they_are() -> None:
    sample = named(measure(interval(delivered=20, latency=0.25, utility=0.5, queue=8, oldest=9)))
    assert sample == {"latency": 0.25, "memory": 800, "queue": 8, "throughput": 40, "utility": 0.5}


def test_what_waits_for_longer_counts_as_late() -> None:
    sample = named(measure(interval(latency=0.5, utility=1.0, oldest=2.5), 0.5, WORTH))
    assert sample["latency"] == 1.5
    assert sample["utility"] == 0.625  # 2.5 s are worth 0.25


def test_what_waits_for_less_changes_nothing() -> None:
    sample = named(measure(interval(latency=2.0, utility=0.5, oldest=0.5), 0.5, WORTH))
    assert (sample["latency"], sample["utility"]) == (2.0, 0.5)


def test_where_nothing_was_delivered_the_utility_is_that_of_what_waits() -> None:
    assert named(measure(interval(delivered=0, queue=1, oldest=0.2), 0.5, WORTH))["utility"] == 1
    assert named(measure(interval(delivered=0, queue=1, oldest=0.2), 0.0, WORTH))["utility"] == 0


def test_without_graphs_utility_is_as_it_is() -> None:
    worth = Worth.of(topology(PLAIN).qos)
    assert worth.waiting(Run().go(1, oldest=9)) is None
    assert named(measure(interval(utility=0.7, oldest=9), 0.5, worth))["utility"] == pytest.approx(0.7)


def test_each_output_has_its_own_graph() -> None:
    steep = Graph(((0.0, 1.0), (2.0, 0.0)))
    worth = Worth.of([QoS(latency=GRAPH), PLAIN, QoS(latency=steep), QoS(latency=GRAPH)])
    totals = replace(Run().go(1), oldest=np.array([2.0, 9.0, 1.0, 0.0, 9.0]))
    assert worth.waiting(totals) == pytest.approx((0.5 + 0.5 + 1.0) / 3)


def test_idle_is_nothing_delivered_and_nothing_waiting() -> None:
    assert idle(interval(delivered=0))
    assert not idle(interval(delivered=1))
    assert not idle(interval(delivered=0, queue=0.5))
    assert not idle(interval(delivered=0, oldest=0.5))
