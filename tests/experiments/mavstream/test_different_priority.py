"""Figure 7's checks: they hold for courses as in the paper, and fail for others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headway_experiments.mavstream.different_priority import BEST_EFFORT, WITH_MEMORY, WITHOUT, check
from headway_experiments.mavstream.query import OPTIMIZER, PCS, SEGMENT, SIMPLIFIED
from headway_experiments.rows import Row, Rows
from tests.experiments.mavstream.made import course, failing

FAST, SLOW, MIDDLE = [0.1, 0.3, 0.3, 0.3, 0.3], [0.1, 0.9, 0.9, 0.9, 0.9], [0.1, 0.6, 0.6, 0.6, 0.6]
OWN = [0.1, 0.9, 0.3, 0.3, 0.3]
USING = [SEGMENT, SEGMENT, PCS, PCS, PCS]
MUCH, LITTLE = [10.0, 50.0, 30.0, 50.0, 30.0], [10.0, 12.0, 12.0, 12.0, 12.0]


def made(
    segment: Sequence[float] = SLOW,
    own: Sequence[float] = OWN,
    using: Sequence[str] = USING,
    memories: Sequence[float] = MUCH,
    without: Sequence[float] = OWN,
    leaving: Sequence[str] = (*USING[:-1], SIMPLIFIED),
) -> Rows:
    """Return rows as the paper has them, but for what is given."""
    rows: list[Row] = []
    for seed in (1, 2):
        both: dict[str, Any] = {"seed": seed, "fall": 7.5}
        for strategy, latencies in ((PCS, FAST), (SEGMENT, segment), (SIMPLIFIED, MIDDLE)):
            rows += course(3.0, latencies, strategy=strategy, goals="", **both)
        rows += course(3.0, own, memories, using, strategy=OPTIMIZER, goals=WITH_MEMORY, **both)
        rows += course(3.0, without, memories, using, strategy=OPTIMIZER, goals=WITHOUT, **both)
        rows += course(3.0, own, memories, leaving, strategy=OPTIMIZER, goals=BEST_EFFORT, **both)
    return Rows(rows)


def test_the_papers_courses_hold() -> None:
    assert failing(check(made())) == set()


def test_a_late_change() -> None:
    assert "pcs" in failing(check(made(segment=[0.9] * 5)))


def test_another_change_for_memory() -> None:
    assert failing(check(made(using=[*USING[:-1], SIMPLIFIED]))) == {"stays"}


def test_memory_that_is_never_missed_shows_nothing() -> None:
    assert failing(check(made(memories=LITTLE))) == {"stays"}


def test_memory_that_makes_a_difference() -> None:
    assert failing(check(made(without=[0.1, 0.9, 0.3, 0.3, 0.2]))) == {"no-difference"}


def test_slower_than_pcs_afterwards() -> None:
    slow = [0.1, 0.9, 0.3, 0.7, 0.7]
    assert failing(check(made(own=slow, without=slow))) == {"as-pcs", "shorter"}


def test_a_weight_that_does_not_matter() -> None:
    assert failing(check(made(leaving=USING))) == {"weight"}
