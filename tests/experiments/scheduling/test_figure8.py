"""Figure 8: trains and groups of tuples."""

from __future__ import annotations

import pytest

from headway_experiments.rows import Row, Rows
from headway_experiments.scheduling.figure8 import BURSTS, COST, EXPERIMENT, STEP, TRAINS, offset, predicted


def test_theory_by_hand() -> None:
    """Groups of four, a tuple as dear as a step: 2.5 + 1.5 one by one, 1 + 2.7 as one train."""
    assert predicted(4, False, 1.0) == pytest.approx(4.0)
    assert predicted(4, True, 1.0) == pytest.approx(3.7)
    assert predicted(2, False, 0.0) == 1.5
    assert predicted(1, True, 5.0) == predicted(1, False, 5.0) == 1


def test_groups_keep_their_distance_or_come_early() -> None:
    assert offset("in turn", 4, 3, 0.1) == pytest.approx(1.2)
    assert offset("early", 4, 3, 0.1) == pytest.approx(0.3)
    assert offset("in turn", 1, 3, 0.1) == offset("early", 1, 3, 0.1)


def _rows(ratio: float, factors: dict[tuple[int, int], float] | None = None) -> Rows:
    """Return rows that fall straight between both ends of the theory; some changed by a factor."""
    made: list[Row] = []
    for burst in BURSTS:
        short, whole = (predicted(burst, one, ratio) for one in (False, True))
        for train in TRAINS:
            overhead = short + (whole - short) * (train - 20) / 80
            overhead *= (factors or {}).get((burst, train), 1)
            made += [
                {"reading": "in turn", "cost": COST, "burst": burst, "train": train, "seed": seed, "overhead": overhead}
                for seed in (1, 2)
            ]
    return Rows(made)


def _wrong(rows: Rows) -> set[str]:
    return {check.key for check in EXPERIMENT.check(rows) if not check.holds}


RATIO = COST / 1000 / STEP


def test_claims_hold_by_theory() -> None:
    assert _wrong(_rows(RATIO)) == set()


def test_dear_tuples_contradict_some() -> None:
    assert _wrong(_rows(1.0)) == {"near", "markedly", "theory"}
    assert _wrong(_rows(3.0)) >= {"quadruple", "falls-2", "falls-4", "near", "markedly"}


def test_claims_can_fail() -> None:
    assert _wrong(_rows(RATIO, {(1, 60): 1.05})) == {"flat"}
    assert _wrong(_rows(RATIO, {(4, 60): 2.0})) == {"falls-4"}
    assert _wrong(_rows(RATIO, {(4, 100): 0.5, (2, 100): 0.5})) >= {"above", "theory"}
    assert _wrong(_rows(RATIO, {(4, 20): 0.5})) >= {"quadruple", "by-burst", "theory"}
    assert _wrong(_rows(RATIO, {(2, 20): 0.5})) >= {"pair", "falls-2"}
