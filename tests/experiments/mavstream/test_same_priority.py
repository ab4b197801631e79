"""Figure 9's checks: they hold for courses as in the paper, and fail for others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headway_experiments.mavstream.query import OPTIMIZER, PCS, SEGMENT, SIMPLIFIED
from headway_experiments.mavstream.same_priority import check, missed, notes
from headway_experiments.rows import Row, Rows
from tests.experiments.mavstream.made import course, failing

BEFORE, AFTER = 24, 8
"""Rows of half a second before and after the target falls."""
PCS_SLOW, PCS_USED = [0.2] * (BEFORE + AFTER), [40.0] * BEFORE + [22.0] * AFTER
OWN_SLOW, OWN_USED = [0.6, *[0.2] * (BEFORE - 1), *[0.3] * AFTER], [20.0, *[40.0] * (BEFORE - 1), *[14.0] * AFTER]
USING = [SEGMENT, *[PCS] * (BEFORE - 1), *[SEGMENT] * AFTER]
TO_SIMPLIFIED = [*USING[:BEFORE], *[SIMPLIFIED] * AFTER]


def made(
    own: Sequence[float] = OWN_SLOW,
    used: Sequence[float] = OWN_USED,
    using: Sequence[str] = USING,
    both: Sequence[str] = TO_SIMPLIFIED,
    both_slow: Sequence[float] = OWN_SLOW,
    early: Sequence[str] = TO_SIMPLIFIED,
    steady: Sequence[str] = TO_SIMPLIFIED,
    simplified: Sequence[float] = (0.6, *[0.4] * (BEFORE - 1), *[0.6] * AFTER),
) -> Rows:
    """Return rows as the paper has them, but for what is given."""
    rows: list[Row] = []
    for seed in (1, 2):
        paper: dict[str, Any] = {"case": "paper", "seed": seed}
        rows += course(0.5, PCS_SLOW, PCS_USED, strategy=PCS, **paper)
        rows += course(0.5, [0.6] * BEFORE + [0.3] * AFTER, [14.0] * (BEFORE + AFTER), strategy=SEGMENT, **paper)
        rows += course(0.5, simplified, [15.0] * (BEFORE + AFTER), strategy=SIMPLIFIED, **paper)
        rows += course(0.5, own, used, using, strategy=OPTIMIZER, **paper)
        for case, slow, strategies in (("both", both_slow, both), ("early", own, early), ("steady", own, steady)):
            rows += course(0.5, slow, used, strategies, strategy=OPTIMIZER, case=case, seed=seed)
    return Rows(rows)


def test_the_papers_courses_hold() -> None:
    assert failing(check(made())) == set()


def test_missed_targets_are_of_both_measures() -> None:
    rows = course(
        0.5, [0.6] + [0.2] * (BEFORE + 1), [190.0] + [40.0] * (BEFORE - 1) + [17.0, 19.0], strategy=PCS, seed=1
    )
    assert missed(rows) == 3


def test_simplified_segment_where_only_memory_is_missed() -> None:
    assert {"segment"} <= failing(check(made(using=TO_SIMPLIFIED)))


def test_segment_where_both_are_missed() -> None:
    assert failing(check(made(both=USING))) == {"simplified"}


def test_latency_that_is_met_is_not_both() -> None:
    met = [0.6, *[0.05] * (BEFORE + AFTER - 1)]
    assert failing(check(made(both_slow=met))) == {"simplified"}


def test_a_change_that_comes_too_late() -> None:
    late = [*USING[:BEFORE], PCS, PCS, *[SEGMENT] * (AFTER - 2)]
    assert "segment" in failing(check(made(using=late, used=[*OWN_USED[:BEFORE], 22.0, 22.0, *OWN_USED[BEFORE + 2 :]])))


def test_no_change_at_all() -> None:
    found = failing(check(made(using=[SEGMENT] * (BEFORE + AFTER))))
    assert {"pcs-first", "segment", "stays"} <= found


def test_memory_that_hardly_falls() -> None:
    assert failing(check(made(used=[*OWN_USED[:BEFORE], *[18.0] * AFTER]))) == {"falls"}


def test_another_change_afterwards() -> None:
    assert failing(check(made(using=[*USING[:-1], SIMPLIFIED]))) == {"stays"}


def test_latency_that_is_missed_afterwards() -> None:
    assert "stays" in failing(check(made(own=[*OWN_SLOW[:-1], 0.7])))


def test_far_from_pcs_before_the_fall() -> None:
    slow = [0.6, *[0.3] * (BEFORE - 1), *[0.3] * AFTER]
    assert failing(check(made(own=slow))) == {"near-pcs"}


def test_a_single_strategy_that_misses_less() -> None:
    assert failing(check(made(simplified=[0.2] * (BEFORE + AFTER)))) == {"better"}


def test_variations() -> None:
    assert failing(check(made(early=USING))) == {"cycle"}
    assert failing(check(made(steady=USING))) == {"steady"}


def test_notes_count_the_changes() -> None:
    flipping = [*USING[:BEFORE], *[SIMPLIFIED, PCS] * (AFTER // 2)]
    text = notes(made(both=flipping))
    assert f"changes {1 + AFTER} times" in text
    assert "| optimizer | 1.000 ± 0.000 |" in text
