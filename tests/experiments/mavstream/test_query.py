"""The query: its load by hand, its feeds, and rows of a short run."""

from __future__ import annotations

import pytest

from headway_experiments.mavstream.query import (
    HIGH_RATES,
    LOW_RATES,
    QUERY,
    SEGMENT,
    THIN,
    TUPLE,
    bursts,
    follow,
    network,
    optimizer,
)
from headway_experiments.watching import intervals, run_watched


def test_load_by_hand() -> None:
    # 6,000 selections; 1,140 tuples into the first join, 570 + 660 into the second; 984 results of it.
    work = 6000 * 50 + 1140 * 180 + 1230 * 180 + 984 * 15 * 2.25
    assert QUERY.load(HIGH_RATES) == pytest.approx(work / 1e6)
    assert QUERY.times(2).load(HIGH_RATES) == pytest.approx(2 * work / 1e6)
    assert QUERY.times(2).load(LOW_RATES) < 1 < QUERY.times(2).load([2 * rate for rate in LOW_RATES])
    assert THIN.load(HIGH_RATES) == pytest.approx(QUERY.load(HIGH_RATES), rel=0.02)


def test_what_lies_before_the_second_join_fills_the_machine_in_a_burst() -> None:
    before = 2 * (6000 * QUERY.select + 3800 * QUERY.selected * QUERY.join) / 1e6
    assert before > 1 > 0.85 * before


def test_bursts_keep_the_rate() -> None:
    feed = bursts(0.25, 3.0)
    assert sum(span for span, _ in feed) == pytest.approx(3.0)
    assert sum(span * factor for span, factor in feed) == pytest.approx(3.0)
    assert feed[:2] == [(0.25, 2.0), (0.25, 0.0)]


def test_all_that_comes_at_a_tick_comes_at_once() -> None:
    made = network([(1.0, 1.0)], 1, HIGH_RATES, tick=0.1)
    summary, _ = run_watched(made, "fifo/box/1024", "fifo", every=1.0, trace=True)
    assert len(made["boxes"]) == 8
    assert sum(source["tuples"] for source in summary["sources"].values()) == pytest.approx(6000, rel=0.05)
    assert summary["box_calls"] < 200, "not one for each tuple"


def test_rows_of_a_run() -> None:
    feed = bursts(0.5, 2.0)
    rows = follow(network(feed, 1, HIGH_RATES, tick=0.1), SEGMENT, 0.5, seed=1)
    assert [row["moment"] for row in rows] == [0.5, 1.0, 1.5][: len(rows)]
    assert {row["using"] for row in rows} == {SEGMENT}
    assert rows[0]["results"] == 0
    assert rows[0]["latency"] == pytest.approx(0.5), "the age of what has waited longest"
    assert int(rows[1]["results"]) > 0
    assert all(row["seed"] == 1 for row in rows)


def test_the_strategy_at_work_changes_with_the_next_row() -> None:
    layer = optimizer(0.5, latency={"target": 0.4, "class": "best-effort"})
    rows = follow(network(bursts(0.5, 2.0), 1, HIGH_RATES, tick=0.1), layer, 0.5, seed=1)
    assert [row["using"] for row in rows][:2] == [SEGMENT, "path-capacity"]


def test_all_tuples_have_the_size_that_memory_is_counted_by() -> None:
    made = network([(2.0, 1.0)], 1, [3 * rate for rate in HIGH_RATES], tick=0.1)
    _, seen = run_watched(made, "fifo/box/1024", "fifo", every=0.5)
    last = intervals(seen)[-1]
    assert last.memory() / last.queued() == pytest.approx(TUPLE, rel=0.05)
