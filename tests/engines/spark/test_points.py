"""Connection points on real Spark: what is attached behind them gets history, then what is live, without a gap."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import headway as hw
from tests.engines.spark.test_changing import NETWORK, listed, make_rows, offline

pytestmark = pytest.mark.usefixtures("spark")

POINTS = {
    "arrived": {"on": "s", "keep": "all", "time": "time"},
    "loud": {"on": "high", "keep": "all", "time": "time"},
    "counted": {"on": "counts", "keep": "all"},
}
WITH_POINTS: dict[str, Any] = {**NETWORK, "points": POINTS}
ORDER = {"on": "time", "slack": 3}


def fragment(name: str, point: str, select: str, **more: Any) -> dict[str, Any]:
    """Return a query behind a point."""
    boxes = {"box": {"op": "aggregate", "in": point, "select": select, "order": ORDER, "size": 30}}
    return {"attach": name, "boxes": boxes, "outputs": {"out": {"from": "box"}}, **more}


def behind(rows: list[dict[str, Any]], schema: dict[str, str], select: str) -> list[dict[str, Any]]:
    """Return what such a query makes of some tuples."""
    boxes = {"box": {"op": "aggregate", "in": "s", "select": select, "order": ORDER, "size": 30}}
    network = {
        "network": "n",
        "sources": {"s": {"schema": schema}},
        "boxes": boxes,
        "outputs": {"out": {"from": "box"}},
    }
    return offline(network, rows)["out"]


FIELDS = dict(NETWORK["sources"]["s"]["schema"])
COUNTED = {"time": "bigint", "k": "int", "n": "bigint", "total": "bigint", "last": "int"}
SUM, TOTAL = "count(*) as n, sum(v) as sum", "count(*) as c, sum(n) as n"


def test_fragments_begin_with_history() -> None:
    rows = make_rows(1800)
    with hw.start(WITH_POINTS, engine="spark", train=150) as run:
        run.push("s", rows[:900])
        every = run.attach(fragment("every", "arrived", SUM))
        late = run.attach(fragment("late", "loud", SUM, since="60 seconds"))
        deep = run.attach(fragment("deep", "counted", TOTAL))
        asked = run.attach(fragment("asked", "arrived", SUM, until="now")).result()
        run.push("s", rows[900:])
        result = run.stop()
        assert [every.seam < late.seam < deep.seam, run.attached.keys() >= {"every", "late", "deep"}] == [True, True]

    expected = offline(NETWORK, rows)
    assert {name: listed(result, name) for name in expected} == expected
    assert listed(result, "every/out") == behind(rows, FIELDS, SUM)
    high = [row for row in rows if row["v"] > 3]
    newest = [row for row in high if row["id"] < 900][-1]["time"]
    first = next(row["id"] for row in high if row["time"] >= newest - 60)
    assert listed(result, "late/out") == behind([row for row in high if row["id"] >= first], FIELDS, SUM)
    assert listed(result, "deep/out") == behind(expected["counts"], COUNTED, TOTAL)
    assert asked.to_pylist() == behind(rows[:900], FIELDS, SUM)


def test_history_goes_on_with_the_run(tmp_path: Path) -> None:
    rows, state = make_rows(1200), tmp_path / "state"
    with hw.start(WITH_POINTS, engine="spark", train=150, state=state) as run:
        run.push("s", rows[:400])
        run.attach(fragment("every", "arrived", SUM))
        run.push("s", rows[400:600])
    with hw.start(WITH_POINTS, engine="spark", train=150, state=state) as run:
        run.push("s", rows[600:800])
        assert run.read("arrived").to_pylist() == rows[:800]
        run.attach(fragment("deep", "counted", TOTAL))
        run.push("s", rows[800:])
        result = run.stop(drain=True)
    expected = offline(NETWORK, rows)
    assert listed(result, "every/out") == behind(rows, FIELDS, SUM)
    assert listed(result, "deep/out") == behind(expected["counts"], COUNTED, TOTAL)
