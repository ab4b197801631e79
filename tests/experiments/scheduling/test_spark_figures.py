"""The figures on Spark: their checks can fail; nothing here starts Spark."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from headway_experiments.experiment import CONFIRMED, DIFFERS, FAILED, find, judge
from headway_experiments.rows import Rows
from headway_experiments.scheduling import spark_figure5, spark_figure9, spark_figure11
from headway_experiments.scheduling.spark_figure5 import APART, HIGH, LOW, MIDDLE, SECONDS, TOGETHER, in_turn
from headway_experiments.scheduling.spark_figure9 import SUPERBOXES, TAAT, TRAINS


def five(**changed: float) -> Rows:
    values = {"low": 2.1, "middle": 2.7, "high": 4.5, "one-high": 2.0, "batches": 20.0, **changed}
    real: list[dict[str, Any]] = [
        {"units": APART, "load": LOW, "latency": values["low"], "batches": 50},
        {"units": APART, "load": MIDDLE, "latency": values["middle"], "batches": 50},
        {"units": APART, "load": HIGH, "latency": values["high"], "batches": 50},
        {"units": TOGETHER, "load": LOW, "latency": 1.0, "batches": values["batches"]},
        {"units": TOGETHER, "load": MIDDLE, "latency": 1.5, "batches": values["batches"]},
        {"units": TOGETHER, "load": HIGH, "latency": values["one-high"], "batches": values["batches"]},
    ]
    calculated = [row for task in spark_figure5.tasks(True)[2:] for row in spark_figure5.measure(task)]
    repeated = ({**row, "seed": seed, "engine": "spark", "seconds": SECONDS} for row in real for seed in (1, 2))
    return Rows([*repeated, *calculated])


@pytest.mark.parametrize(
    ("changed", "keys", "verdict"),
    [
        ({"high": 3.2}, {"twice"}, DIFFERS),  # as calculated
        ({}, {"by-fixed-costs"}, FAILED),
        ({"middle": 1.4}, {"always-above", "longer", "by-fixed-costs"}, FAILED),
        ({"high": 4.1, "one-high": 2.6}, {"twice", "much-longer"}, DIFFERS),
        ({"high": 4.1, "one-high": 2.8}, {"twice", "much-longer", "longer"}, FAILED),
        ({"high": 2.7, "one-high": 1.8}, {"twice", "not-saturated"}, FAILED),
        ({"high": 3.2, "batches": 60.0}, {"twice", "fewer-batches"}, FAILED),
    ],
)
def test_figure_5(changed: dict[str, float], keys: set[str], verdict: str) -> None:
    checks = spark_figure5.check(five(**changed))
    assert {one.key for one in checks if not one.holds} == keys
    assert judge(find("scheduling-fig5-spark"), checks) == verdict


def test_queries_in_turn() -> None:
    moments = np.array([0.0, 1.0, 2.0])
    assert in_turn(moments, 1, 0.5, 0.1) == pytest.approx(0.6)  # each is ready before the next one comes
    assert in_turn(moments, 2, 0.5, 0.1) == pytest.approx((0.6 + 1.2 + 0.8 + 1.4 + 1.0 + 1.6) / 6)
    assert in_turn(moments[:1], 3, 0.5, 0.1) == pytest.approx((0.6 + 1.2 + 1.8) / 3)


def nine(**changed: Any) -> Rows:
    values = {
        TAAT: (150.0, 1.0, 98.99, 0.01),
        TRAINS: (6.0, 30.0, 69.9, 0.1),
        SUPERBOXES: (3.0, 60.0, 39.8, 0.2),
        **{name.replace("_", " "): one for name, one in changed.items()},
    }
    rows: list[dict[str, Any]] = []
    for name, (seconds, worker, storage, scheduler) in values.items():
        for seed in (1, 2):
            rows.append({"row": "time", "discipline": name, "seed": seed, "seconds": seconds})
            shares = {"worker": worker, "storage": storage, "scheduler": scheduler}
            rows.append({"row": "shares", "discipline": name, "seed": seed, **shares})
    return Rows(rows)


@pytest.mark.parametrize(
    ("changed", "keys", "verdict"),
    [
        ({}, set(), CONFIRMED),
        ({"tuple_at_a_time": (10.0, 1.0, 98.99, 0.01)}, {"taat-worst"}, FAILED),
        ({"superboxes": (5.0, 60.0, 39.8, 0.2)}, {"superboxes-halve"}, FAILED),
        ({"superboxes": (3.0, 25.0, 74.8, 0.2)}, {"storage-falls"}, FAILED),
        ({"superboxes": (3.0, 60.0, 39.95, 0.05)}, {"scheduler-grows"}, DIFFERS),
        ({"tuple_at_a_time": (150.0, 1.0, 97.0, 2.0)}, {"scheduler-grows", "scheduler-small"}, FAILED),
    ],
)
def test_figure_9(changed: dict[str, Any], keys: set[str], verdict: str) -> None:
    checks = spark_figure9.check(nine(**changed))
    assert {one.key for one in checks if not one.holds} == keys
    assert judge(find("scheduling-fig9-spark"), checks) == verdict


def eleven(changed: dict[tuple[float, str], tuple[float, float]]) -> Rows:
    values = {
        (0.4, "QoS-aware"): (0.85, 0.7),
        (0.4, "round robin"): (0.7, 0.4),
        (0.7, "QoS-aware"): (0.8, 0.6),
        (0.7, "round robin"): (0.65, 0.3),
        (2.0, "QoS-aware"): (0.6, 0.2),
        (2.0, "round robin"): (0.55, 0.1),
        **changed,
    }
    return Rows(
        {"load": load, "policy": policy, "seed": seed, "utility": utility, "tight": tight}
        for (load, policy), (utility, tight) in values.items()
        for seed in (1, 2)
    )


@pytest.mark.parametrize(
    ("changed", "keys", "verdict"),
    [
        ({}, set(), CONFIRMED),
        ({(0.7, "round robin"): (0.75, 0.3)}, {"significant", "stable"}, FAILED),
        ({(0.4, "QoS-aware"): (0.95, 0.9)}, {"stable"}, FAILED),
        ({(0.7, "QoS-aware"): (0.8, 0.45)}, {"by-the-tight"}, FAILED),
        ({(2.0, "QoS-aware"): (0.81, 0.2)}, {"both-fall"}, FAILED),
        ({(2.0, "QoS-aware"): (0.5, 0.2)}, {"above"}, FAILED),
    ],
)
def test_figure_11(changed: dict[tuple[float, str], tuple[float, float]], keys: set[str], verdict: str) -> None:
    checks = spark_figure11.check(eleven(changed))
    assert {one.key for one in checks if not one.holds} == keys
    assert judge(find("scheduling-fig11-spark"), checks) == verdict


def test_graphs_are_the_papers_stretched() -> None:
    tight, loose, *rest = spark_figure11.graphs(2.0)
    assert list(tight) == [(0, 1), (0.002, 1), (2, 0)]
    assert list(loose) == [(0, 1), (8, 1), (10, 0)]
    assert rest == [tight, loose, tight, loose]
