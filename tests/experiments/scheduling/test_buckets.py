"""Figures 13 and 14: the checks see what contradicts them."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import pytest

from headway.compare.plots import new_figure
from headway_experiments.experiment import CONFIRMED, DIFFERS, FAILED, judge
from headway_experiments.rows import Rows
from headway_experiments.scheduling import buckets
from headway_experiments.scheduling.buckets import EXPERIMENT, check, crossing, own_graph

QOS = {1: 0.43, 2: 0.75, 5: 0.8, 20: 0.85, 100: 0.82, 260: 0.797, 1000: 0.7}
COSTS = {1: 0.2, 2: 0.3, 5: 0.3, 20: 0.35, 100: 0.6, 260: 1.05, 1000: 2.0}
Change = Callable[[dict[str, Any]], dict[str, Any]]


def as_in_the_paper(change: Change = lambda row: row) -> Rows:
    """Return rows that show all that is claimed, changed one by one."""
    made = []
    for task in EXPERIMENT.tasks(True):
        name, _, count = task["policy"].partition(":")
        at, load = int(count or 0), task["load"]
        row = {**task, "policy": name, "partitions": at, "latency": 1.0, "ready": 30.0}
        row |= {"utility": QOS.get(at, 0.796), "equal": 0.8, "relative": COSTS.get(at, 1.0)}
        if name == "round-robin" or at == 1:
            row |= {"equal": 0.4, "relative": 0.2}
        if load == buckets.LESS and at == 260:
            row["relative"] = 0.5
        row["planning"] = 60 * row["relative"]
        made.append(change(row))
    return Rows(made)


def failing(rows: Rows) -> set[str]:
    return {one.key for one in check(rows) if not one.holds}


def test_the_paper_confirms_itself() -> None:
    rows = as_in_the_paper()
    assert failing(rows) == set()
    assert judge(EXPERIMENT, check(rows)) == CONFIRMED


def at(partitions: int, graphs: str = "two", load: float = buckets.LOAD, **values: float) -> Change:
    def change(row: dict[str, Any]) -> dict[str, Any]:
        meant = (row["policy"], row["partitions"], row["graphs"], row["load"]) == ("bucketed", partitions, graphs, load)
        return {**row, **values} if meant else row

    return change


@pytest.mark.parametrize(
    ("change", "fails"),
    [
        (at(1, equal=0.45), {"round-robin"}),
        (at(1, utility=0.7), {"one-bucket", "rises"}),
        (at(20, utility=0.79), {"beats-exact", "best-at-20", "declines"}),
        (at(20, relative=1.01), {"cheaper", "flat-before", "grows-beyond"}),
        (at(2, utility=0.86), {"best-at-20"}),
        (at(260, relative=0.4), {"grows-beyond", "many-wait"}),
        (at(260, utility=0.851), {"best-at-20", "declines", "crossing"}),
        (at(1000, utility=0.8), {"worse-far-beyond", "crossing"}),
        (at(100, utility=0.7), {"crossing"}),
        (at(2, equal=0.7), {"two-suffice"}),
        (at(2, "own", utility=0.9), {"own-graphs"}),
        (at(100, "own", utility=0.9), {"own-graphs-decline"}),
        (at(260, load=buckets.LESS, relative=1.1), {"few-wait"}),
        (at(20, load=buckets.OTHER, utility=0.7), {"other-load"}),
    ],
)
def test_checks_can_fail(change: Change, fails: set[str]) -> None:
    assert failing(as_in_the_paper(change)) == fails


def test_only_what_is_explained_may_differ() -> None:
    assert judge(EXPERIMENT, check(as_in_the_paper(at(2, utility=0.86)))) == DIFFERS
    assert judge(EXPERIMENT, check(as_in_the_paper(at(1000, utility=0.8)))) == FAILED

    def both(row: dict[str, Any]) -> dict[str, Any]:
        return at(2, equal=0.7)(at(2, utility=0.86)(row))

    assert judge(EXPERIMENT, check(as_in_the_paper(both))) == FAILED  # the evidence is gone


def test_a_crossing_lies_between_by_logarithms() -> None:
    assert crossing([1, 10, 100], [-1, 1, -1]) == pytest.approx(10**1.5)
    assert crossing([1, 10, 100], [-1, 3, -1]) == pytest.approx(10**1.75)
    assert crossing([1, 10, 100], [-1, 1, 0.5]) == 100
    assert crossing([1, 10, 100], [-3, -1, -2]) == 10


def test_own_graphs_are_three_points() -> None:
    chance = random.Random(1)
    for _ in range(50):
        (start, best), (good, still), (end, least) = own_graph(chance).points
        assert (start, best, still, least) == (0, 1, 1, 0)
        assert 0 < good <= 4
        assert 0.2 <= end - good <= 5


def test_a_run_is_measured_at_both_costs() -> None:
    (row,) = buckets.measure({"graphs": "two", "load": 0.3, "policy": "bucketed:5", "seed": 1})
    assert (row["policy"], row["partitions"]) == ("bucketed", 5)
    assert all(math.isfinite(float(row[key])) and float(row[key]) > 0 for key in ("planning", "relative", "ready"))
    assert 0 < float(row["utility"]) <= 1
    assert 0 < float(row["equal"]) <= 1
    (exact,) = buckets.measure({"graphs": "own", "load": 0.3, "policy": "slope-slack", "seed": 1})
    assert exact["relative"] == 1
    assert exact["utility"] == exact["equal"]


def test_it_is_drawn_and_noted() -> None:
    rows = as_in_the_paper()
    figure = new_figure(EXPERIMENT.size)
    EXPERIMENT.draw(rows, figure)
    assert [axes.get_title() for axes in figure.axes] == ["figure 13", "figure 14"]
    assert buckets.notes(rows) == ""
    real = [
        {"graphs": "real", "partitions": count, "seed": seed, "utility": 0.5, "planning": 100.0}
        for count in (0, 1, 20)
        for seed in (1, 2)
    ]
    told = buckets.notes(Rows([*rows, *real]))
    assert "| one bucket | 0.500 ± 0.000 | 100.000 ± 0.000 |" in told
    assert "| 20 partitions |" in told
