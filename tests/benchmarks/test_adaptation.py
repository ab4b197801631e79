"""The comparison of AMoS with single algorithms: what is measured, how it is judged, and a run that is short."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from benchmarks.adaptation import (
    OBJECTIVES,
    PLANS,
    SETTINGS,
    Measured,
    Ratio,
    Row,
    compare,
    cost,
    main,
    make_network,
    measure,
    verdicts,
)
from headway.adaptive import base as adaptive
from headway.adaptive.amos import POLICIES


@pytest.fixture(autouse=True)
def _apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the layer that the benchmark registers for itself."""
    monkeypatch.setattr(adaptive, "_layers", dict(adaptive._layers))


SINGLES = [Measured(10, 1, 5), Measured(30, 3, 15)]
"""Their means: a queue of 20, a latency of 2 s, 10 results per second."""


def row(objective: str, *ratios: Ratio) -> Row:
    names = [f"p{at}" for at in range(len(ratios))]
    return Row("plan 1", objective, "roulette", ratios[0], dict(zip(names, ratios, strict=True)))


def test_costs_by_hand() -> None:
    assert cost(SINGLES[0], SINGLES, {"queue": 1}) == 0.5
    assert cost(SINGLES[0], SINGLES, {"latency": 1, "throughput": 1}) == pytest.approx((0.5 + 2) / 2)
    assert cost(SINGLES[1], SINGLES, {"latency": 0.7, "throughput": 0.3}) == pytest.approx(0.7 * 1.5 + 0.3 * 10 / 15)
    assert cost(SINGLES[1], SINGLES, OBJECTIVES["thirds"]) == pytest.approx((1.5 + 1.5 + 2 / 3) / 3)


def test_a_mean_and_its_interval_by_hand() -> None:
    mean, reach = Ratio.of([0.8, 1.0, 1.2])
    assert mean == pytest.approx(1.0)
    assert reach == pytest.approx(4.30 * 0.2 / math.sqrt(3))
    assert Ratio.of([0.5]) == (0.5, math.inf)


def test_one_metric_may_be_a_little_worse_than_the_best() -> None:
    assert row("queue", Ratio(1.04, 0.5), Ratio(0.3, 0.1)).holds
    assert not row("queue", Ratio(1.06, 0.01), Ratio(0.3, 0.1)).holds


def test_weighted_ones_must_be_better_than_every_single_one_beyond_doubt() -> None:
    assert row("thirds", Ratio(0.9, 0.05), Ratio(0.3, 0.1)).holds
    assert not row("thirds", Ratio(0.9, 0.2), Ratio(0.3, 0.1)).holds
    assert not row("thirds", Ratio(0.5, 0.1), Ratio(1.02, 0.01)).holds


def test_verdicts_name_the_closest_rival() -> None:
    said = verdicts([row("thirds", Ratio(0.5, 0.1), Ratio(1.02, 0.01)), row("queue", Ratio(0.5, 0.1))])
    assert said[0].startswith("NO  plan 1, thirds, roulette: better than every single algorithm (p1: 1.020")
    assert said[1].startswith("yes plan 1, queue, roulette")


def test_a_seed_gives_the_same_arrivals_and_another_one_others() -> None:
    plan = PLANS["plan 1"]
    assert make_network(plan, 7, 100) == make_network(plan, 7, 100)
    assert make_network(plan, 7, 100) != make_network(plan, 8, 100)


def test_runs_are_repeatable_and_differ_by_algorithm() -> None:
    plan = PLANS["plan 1"]
    alone = {policy: measure(plan, 1, 15, {"policies": [policy]}) for policy in ("fifo", "most-tuples")}
    assert measure(plan, 1, 15, {"policies": ["fifo"]}) == alone["fifo"]
    assert alone["fifo"] != alone["most-tuples"]
    assert all(min(run) > 0 for run in alone.values())
    assert measure(plan, 1, 15, {**SETTINGS, "learning": "roulette"}) not in alone.values()


def test_the_wheel_is_quicker_than_every_single_algorithm_on_plan_1() -> None:
    """Algorithms work on what others leave. Two seeds show it, and are the same in every repetition."""
    rows, alone = compare("plan 1", [3, 4], 40, ["roulette"], ["latency"])
    assert set(alone) == set(POLICIES)
    assert max(ratio.mean for ratio in rows[0].singles.values()) < 1


@pytest.mark.slow
def test_the_script(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written = tmp_path / "rows.json"
    code = main(["--quick", "--plan", "plan 2", "--objective", "latency", "--json", str(written)])
    told = capsys.readouterr().out
    assert code in (0, 1)
    assert code == (0 if "yes plan 2, latency" in told else 1)
    assert '"learning": "roulette"' in written.read_text("utf-8")
