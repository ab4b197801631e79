"""AMoS against single algorithms, by hand-worked numbers."""

from __future__ import annotations

import pytest

from headway_experiments.amos.judging import (
    below_each,
    better_overall,
    costs,
    gain,
    means,
    of_each,
    of_mean,
    often_below_each,
    shares_within,
    wins,
)
from headway_experiments.amos.plans import SINGLES, SLICED
from headway_experiments.rows import Rows
from tests.experiments.amos.made import made

PLAN = "plan 1"
FOUR = {
    SLICED: {"latency": 1.0, "queue": 10.0, "throughput": 4.0},
    "fifo": {"latency": 1.0, "queue": 20.0, "throughput": 4.0},
    "most-tuples": {"latency": 2.0, "queue": 20.0, "throughput": 4.0},
    "chain": {"latency": 4.0, "queue": 30.0, "throughput": 8.0},
}
"""Their means: a latency of 2 s, a queue of 20, 5 results per second."""


def rows(**asked: dict[str, float]) -> Rows:
    return made({PLAN: {**FOUR, **asked}})


def test_ratios_are_taken_seed_by_seed() -> None:
    found = of_each(rows(latency={"latency": 0.5}), PLAN, "latency", "latency")
    assert {name: ratio.mean for name, ratio in found.items()} == pytest.approx(
        {"RR": 0.5, "FIFO": 0.5, "MTIQ": 0.25, "Chain": 0.125}
    )
    assert all(ratio.reach == pytest.approx(0) for ratio in found.values())


def test_shares_of_the_mean() -> None:
    some = rows(latency={"latency": 0.5, "throughput": 6.0})
    assert means(some, PLAN, "latency") == pytest.approx({1.0: 2.0, 2.0: 2.2})
    assert of_mean(some, PLAN, "latency", "latency").mean == pytest.approx(0.25)
    # 75 % below the mean latency, and 20 % above the mean rate
    assert gain(some, PLAN, "latency", "latency", "throughput").mean == pytest.approx(55)


def test_below_each_must_hold_for_each() -> None:
    assert below_each("k", "", rows(latency={"latency": 0.9}), PLAN, "latency", "latency").holds
    failed = below_each("k", "", rows(latency={"latency": 1.5}), PLAN, "latency", "latency")
    assert not failed.holds
    assert "RR" in failed.evidence
    assert "MTIQ" not in failed.evidence
    assert below_each("k", "", rows(latency={"latency": 1.5}), PLAN, "latency", "latency", ("chain",)).holds


def test_overall_costs() -> None:
    weights = {"latency": 0.7, "throughput": 0.3}
    found = costs(rows(), PLAN, "chain", weights)
    assert found.mean("cost").mean == pytest.approx(0.7 * 4 / 2 + 0.3 * 5 / 8)
    assert costs(rows(), PLAN, "fifo", {"latency": 1, "queue": 1}).mean("cost").mean == pytest.approx((0.5 + 1) / 2)


def test_better_overall_weighs() -> None:
    quick = rows(**{"70/30": {"latency": 0.8, "throughput": 3.5}})
    assert better_overall("k", "", quick, PLAN, "70/30").holds
    slow = rows(**{"70/30": {"latency": 1.1, "throughput": 4.0}})
    assert not better_overall("k", "", slow, PLAN, "70/30").holds


def test_spans_won() -> None:
    some = rows(queue={"queue": 15.0})
    one = [{**row, "queue": 5.0} if row["policy"] == "queue" and row["time"] == 5 else row for row in some]
    # of three spans one is won against round robin's queue of 10
    assert wins(Rows(one), PLAN, "queue", SLICED, "queue").mean == pytest.approx(1 / 3)
    assert wins(Rows(one), PLAN, "queue", "fifo", "queue").mean == 1
    assert not often_below_each("k", "", Rows(one), PLAN, "queue", "queue").holds
    assert often_below_each("k", "", rows(queue={"queue": 10.0}), PLAN, "queue", "queue").holds


def test_shares_of_time() -> None:
    assert shares_within("k", "", rows(latency={}), [(PLAN, "latency")], 0.15, 0.35).holds
    one_sided = {f"time of {single}": share for single, share in zip(SINGLES, (0.1, 0.6, 0.15, 0.15), strict=True)}
    assert not shares_within("k", "", rows(latency=one_sided), [(PLAN, "latency")], 0.15, 0.35).holds
