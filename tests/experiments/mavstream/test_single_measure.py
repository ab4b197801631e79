"""Figure 5's checks: they hold for courses as in the paper, and fail for others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headway_experiments.mavstream.query import OPTIMIZER, PCS, SEGMENT, SIMPLIFIED
from headway_experiments.mavstream.single_measure import check, list_tasks
from headway_experiments.rows import Row, Rows
from tests.experiments.mavstream.made import course, failing

BASE: dict[str, Any] = {"feed": "bursts", "query": "plain", "costs": 1.0}
ROWS = 8
SLOW, FAST, MIDDLE = [1.5] * ROWS, [0.4] * ROWS, [0.8] * ROWS
SWITCHING = [1.5, 1.5, *FAST[2:]]
USING = [SEGMENT, SEGMENT, *[PCS] * (ROWS - 2)]


def made(
    pcs: Sequence[float] = FAST,
    segment: Sequence[float] = SLOW,
    simplified: Sequence[float] = MIDDLE,
    optimizer: Sequence[float] = SWITCHING,
    using: Sequence[str] = USING,
    dry: int = 1,
    light: Sequence[float] = FAST,
    thin: Sequence[float] = FAST,
) -> Rows:
    """Return rows as the paper has them, but for what is given."""
    rows: list[Row] = []
    for seed in (1, 2):
        rows += course(1.5, pcs, strategy=PCS, seed=seed, **BASE)
        rows += course(1.5, segment, dry=dry, strategy=SEGMENT, seed=seed, **BASE)
        rows += course(1.5, simplified, strategy=SIMPLIFIED, seed=seed, **BASE)
        rows += course(1.5, optimizer, using=using, dry=dry, strategy=OPTIMIZER, seed=seed, **BASE)
        for other in ({"costs": 0.85}, {"feed": "even"}):
            rows += course(1.5, light, strategy=SEGMENT, seed=seed, **{**BASE, **other})
            still = [SEGMENT] * ROWS
            rows += course(1.5, light, using=still, strategy=OPTIMIZER, seed=seed, **{**BASE, **other})
        rows += course(1.5, MIDDLE, strategy=PCS, seed=seed, **{**BASE, "query": "thin"})
        rows += course(1.5, thin, strategy=SIMPLIFIED, seed=seed, **{**BASE, "query": "thin"})
    return Rows(rows)


def test_the_papers_courses_hold() -> None:
    assert failing(check(made())) == set()


def test_strategies_in_another_order() -> None:
    assert failing(check(made(simplified=[0.3] * ROWS))) == {"best"}
    assert failing(check(made(simplified=[1.6] * ROWS))) == {"worst"}


def test_segment_with_results_at_once() -> None:
    assert "dry" in failing(check(made(dry=0)))


def test_a_late_change() -> None:
    late = [*[SEGMENT] * 4, *[PCS] * (ROWS - 4)]
    assert failing(check(made(using=late))) == {"first-look"}


def test_a_change_though_nothing_is_missed() -> None:
    assert "first-look" in failing(check(made(segment=[0.9] * ROWS)))


def test_another_strategy_than_pcs() -> None:
    other = [SEGMENT, SEGMENT, *[SIMPLIFIED] * (ROWS - 2)]
    assert "first-look" in failing(check(made(using=other)))


def test_a_second_change() -> None:
    assert failing(check(made(using=[*USING[:-1], SIMPLIFIED]))) == {"no-more"}


def test_no_change() -> None:
    assert {"first-look", "no-more"} <= failing(check(made(using=[SEGMENT] * ROWS, optimizer=SLOW)))


def test_slower_than_the_best_afterwards() -> None:
    assert failing(check(made(optimizer=[*SWITCHING[:4], *[0.5] * (ROWS - 4)]))) == {"as-best"}


def test_better_than_the_best() -> None:
    assert "not-better" in failing(check(made(optimizer=[0.1] * ROWS)))


def test_variations() -> None:
    assert {"light", "even"} <= failing(check(made(light=SLOW)))
    assert failing(check(made(thin=SLOW))) == {"thin"}


def test_strategies_see_the_same_seeds() -> None:
    for quick in (True, False):
        base = [one for one in list_tasks(quick) if one["feed"] == "bursts" and one["query"] == "plain"]
        seeds: dict[str, set[int]] = {one["strategy"]: set() for one in base}
        for one in base:
            if one["costs"] == 1.0:
                seeds[one["strategy"]].add(one["seed"])
        assert len({frozenset(some) for some in seeds.values()}) == 1
