"""Rows: choosing, means, curves and pairs."""

from __future__ import annotations

import pytest

from headway_experiments.rows import Rows

ROWS = Rows(
    [
        {"policy": "b", "load": 0.9, "seed": 1, "latency": 4.0},
        {"policy": "b", "load": 0.5, "seed": 1, "latency": 2.0},
        {"policy": "a", "load": 0.5, "seed": 1, "latency": 1.0},
        {"policy": "a", "load": 0.9, "seed": 1, "latency": 1.0},
        {"policy": "b", "load": 0.5, "seed": 2, "latency": 6.0},
        {"policy": "a", "load": 0.5, "seed": 2, "latency": 2.0},
        {"note": "no numbers here"},
    ]
)


def test_a_sequence() -> None:
    assert len(ROWS) == 7
    assert ROWS[0]["policy"] == "b"
    assert [row.get("seed") for row in ROWS] == [1, 1, 1, 1, 2, 2, None]


def test_where() -> None:
    assert [row["seed"] for row in ROWS.where(policy="a", load=0.5)] == [1, 2]
    for missing in ({"policy": "c"}, {"nothing": 1}):
        with pytest.raises(KeyError, match="no run has"):
            ROWS.where(**missing)


def test_levels() -> None:
    assert ROWS.levels("policy") == ["b", "a"]  # texts as they come
    assert ROWS.levels("load") == [0.5, 0.9]  # numbers in order
    assert ROWS.levels("nothing") == []


def test_means_and_curves() -> None:
    assert ROWS.where(policy="b", load=0.5).mean("latency").mean == 4.0
    xs, means = ROWS.where(policy="b").curve("load", "latency")
    assert xs == [0.5, 0.9]
    assert [one.mean for one in means] == [4.0, 4.0]


def test_pairs() -> None:
    own, other = ROWS.where(policy="a", load=0.5), ROWS.where(policy="b", load=0.5)
    assert own.ratio("latency", other).mean == pytest.approx((1 / 2 + 2 / 6) / 2)  # not (1 + 2) / (2 + 6)
    assert own.reduction("latency", other).mean == pytest.approx((50 + 100 * 2 / 3) / 2)
    assert own.paired("latency", other, lambda mine, theirs: theirs - mine).mean == 2.5


def test_what_cannot_be_paired() -> None:
    both, one = ROWS.where(policy="b", load=0.5), ROWS.where(policy="a", load=0.9)
    with pytest.raises(ValueError, match="cannot be paired by 'seed'"):
        both.ratio("latency", one)
    with pytest.raises(ValueError, match="cannot be paired"):
        ROWS.where(policy="b").ratio("latency", both)  # two runs with seed 1
