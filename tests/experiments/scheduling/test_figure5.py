"""Figure 5: the checks can fail."""

from __future__ import annotations

from typing import Any

import pytest

from headway_experiments.rows import Rows
from headway_experiments.scheduling.figure5 import HIGH, MIDDLE, check, measure, overheads, tasks
from headway_experiments.scheduling.loads import MEAN_COST

GOOD = {"RR-BAAT": (2.0, 0.2, 1000), "RR-BAAT, trains": (0.3, 0.1, 500), "MC-AAAT": (0.1, 0.02, 100)}


def made(changed: dict[str, tuple[float, float, int]] | None = None, level: str = "") -> Rows:
    """Return rows as the paper has them, at both loads; `changed` policies differ, at one level or at all."""
    rows: list[dict[str, Any]] = []
    for load in (MIDDLE, HIGH):
        for one in ("paper", "local"):
            chosen = {**GOOD, **(changed or {})} if level in ("", one) else GOOD
            for policy, (latency, behind, plans) in chosen.items():
                for seed in (1, 2):
                    row = {"load": load, "level": one, "policy": policy, "seed": seed}
                    rows.append({**row, "latency": latency, "behind": behind, "plans": plans})
    return Rows(row for row in rows if row["level"] == "paper" or row["load"] == HIGH)


def wrong(rows: Rows) -> set[str]:
    return {one.key for one in check(rows) if not one.holds}


def test_overheads_are_shares_of_the_work() -> None:
    assert sum(overheads("local").values()) == pytest.approx(0.1 * MEAN_COST)
    assert MEAN_COST / (MEAN_COST + sum(overheads("paper").values())) == pytest.approx(0.7)


def test_rows_as_the_paper_has_them_pass() -> None:
    assert wrong(made()) == set()


@pytest.mark.parametrize(
    ("changed", "keys"),
    [
        ({"RR-BAAT": (0.09, 0.2, 1000)}, {"always-above", "inflection", "small-overheads"}),
        ({"RR-BAAT": (2.0, 0.05, 1000)}, {"saturates-early"}),
        ({"MC-AAAT": (0.1, 0.2, 100)}, {"holds-on"}),
        ({"RR-BAAT": (0.5, 0.2, 1000)}, {"inflection"}),
        ({"MC-AAAT": (0.1, 0.02, 900)}, {"fewer-decisions"}),
        ({"RR-BAAT, trains": (0.05, 0.1, 500)}, {"with-trains"}),
    ],
)
def test_a_claim_that_is_contradicted_fails(changed: dict[str, tuple[float, float, int]], keys: set[str]) -> None:
    assert wrong(made(changed)) == keys


def test_the_variation_with_small_overheads_fails_by_itself() -> None:
    assert wrong(made({"RR-BAAT": (0.05, 0.0, 1000)}, level="local")) == {"small-overheads"}


@pytest.mark.parametrize("quick", [True, False])
def test_policies_share_seeds_and_all_checks_find_their_rows(quick: bool) -> None:
    listed = tasks(quick)
    by_policy: dict[tuple[Any, ...], set[int]] = {}
    for task in listed:
        by_policy.setdefault((task["load"], task["policy"], task["level"]), set()).add(task["seed"])
    assert len({frozenset(seeds) for seeds in by_policy.values()}) == 1
    check(Rows({**task, "latency": 1.0, "behind": 0.0, "plans": 1} for task in listed))


def test_a_small_run_has_the_columns_and_is_repeatable() -> None:
    task = {"load": 0.5, "policy": "MC-AAAT", "level": "paper", "seed": 1, "depth": 2, "tuples": 20}
    (row,) = measure(task)
    assert row.items() >= task.items()
    assert 0 < float(row["overhead"]) < 100
    assert float(row["latency"]) > 0
    assert measure(task) == [row]
