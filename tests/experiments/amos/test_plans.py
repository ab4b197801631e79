"""The plans: arrivals by seed, and what is measured of a run."""

from __future__ import annotations

import pytest

from headway_experiments.amos.plans import (
    OBJECTIVES,
    PLANS,
    SINGLES,
    layer_of,
    measure,
    network_of,
    rates_of,
    tasks_of,
)


def test_the_middle_one_of_three_spans_is_a_burst() -> None:
    assert rates_of(PLANS["plan 1"], 7) == [28, 86, 28, 28, 86, 28, 28]


def test_a_seed_gives_the_same_arrivals_and_another_one_others() -> None:
    plan = PLANS["plan 2"]
    assert network_of(plan, 7, 15) == network_of(plan, 7, 15)
    assert network_of(plan, 7, 15) != network_of(plan, 8, 15)
    seeds = [one["source"]["generate"]["seed"] for one in network_of(plan, 7, 15)["sources"].values()]
    assert len(set(seeds)) == 2


def test_plan_1_is_a_chain_and_plan_2_a_join() -> None:
    chain, join = (network_of(PLANS[name], 1, 15) for name in ("plan 1", "plan 2"))
    assert [one["in"] for one in chain["boxes"].values()] == ["s", "op1", "op2", "op3"]
    assert join["boxes"]["op3"]["op"] == "join"
    assert join["boxes"]["op3"]["size"] == 0.2


def test_layers() -> None:
    assert layer_of("fifo", 3) == "fifo"
    asked = layer_of("70/30", 3)
    assert isinstance(asked, dict)
    assert (asked["use"], asked["learning"], asked["seed"]) == ("amos", "roulette", 3)
    assert asked["objectives"] == {"latency": 0.7, "throughput": 0.3}
    assert not set(OBJECTIVES) & set(SINGLES)


def test_tasks() -> None:
    tasks = tasks_of({"plan 1": ("fifo", "latency"), "plan 2": ("chain",)}, (1, 2), 15)
    assert len(tasks) == 6
    assert tasks[0] == {"plan": "plan 1", "policy": "fifo", "seed": 1, "seconds": 15}


@pytest.mark.parametrize("policy", ["most-tuples", "thirds"])
def test_a_run_is_measured_whole_by_span_and_by_second(policy: str) -> None:
    rows = measure({"plan": "plan 2", "policy": policy, "seed": 1, "seconds": 10})
    assert [row["what"] for row in rows] == ["run", *["span"] * 2, *["second"] * 10]
    whole, first, second = rows[:3]
    assert float(whole["queue"]) == pytest.approx((float(first["queue"]) + float(second["queue"])) / 2, rel=0.02)
    seconds = [float(row["throughput"]) for row in rows[3:]]
    assert sum(seconds) == pytest.approx(10 * float(whole["throughput"]), rel=0.02)
    shares = [float(whole[f"time of {single}"]) for single in SINGLES]
    assert sum(shares) == pytest.approx(1)
    assert (max(shares) == 1) == (policy in SINGLES)


def test_runs_are_repeatable_and_differ_by_seed() -> None:
    one, same, other = (
        measure({"plan": "plan 1", "policy": "latency", "seed": seed, "seconds": 5}) for seed in (1, 1, 2)
    )
    assert one == same
    assert one[0]["latency"] != other[0]["latency"]
