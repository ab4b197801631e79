"""Trains that wait know how long windows hold their tuples, and leave the rest of the good zone to them."""

from __future__ import annotations

from typing import Any

import pytest

import headway as hw
from headway.engines.ingest import ArrivalTimes


def windows(**more: Any) -> dict[str, Any]:
    """Return a network with windows of 8 s whose results are good for 10 s."""
    fields = {"rate": 20, "count": 1200, "fields": {"t": "t"}}
    return {
        "network": "windows",
        "sources": {"s": {"schema": {"t": "double"}, "source": {"generate": fields}}},
        "boxes": {
            "w": {"op": "aggregate", "in": "s", "select": "count(*) as n", "order": {"on": "t"}, "size": 8, **more}
        },
        "outputs": {"o": {"from": "w", "qos": {"latency": [[0, 1], [10, 1], [14, 0]]}}},
    }


@pytest.mark.parametrize("train", ["auto", "100000"])
def test_windows_are_in_time(train: str) -> None:
    summary = hw.run(windows(), engine="sim", policy="qos", train=train).summary["outputs"]["o"]
    assert summary["tuples"] == 8
    assert summary["utility"] == 1.0


def test_times_of_arrival() -> None:
    times = ArrivalTimes()
    assert times.moment(0) is None
    times.note(9, 100)
    times.note(19, 200)
    assert [times.moment(number) for number in (0, 9, 10, 19, 20)] == [100, 100, 200, 200, None]


def test_old_ones_are_thinned_out() -> None:
    times = ArrivalTimes()
    for number in range(100_000):
        times.note(number, 10 * number)
    assert len(times._numbers) == len(times._moments) <= times.MOST
    assert times.moment(99_999) == 999_990
    assert times.moment(99_500) == 995_000
    early = times.moment(0)
    assert early is not None
    assert 0 <= early < 999_990
