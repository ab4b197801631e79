"""Networks that change while they run, on real Spark: results are those of the old network up to the seam, then others'."""

from __future__ import annotations

import copy
import random
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pytest

from headway.errors import NetworkError
from tests.engines.spark.changing import Changing, Row, offline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("spark")

SOON, LATER = ({"latency": [[0, 1], [good, 1], [5, 0]]} for good in (1, 2))
NETWORK: dict[str, Any] = {
    "network": "changing",
    "sources": {"s": {"schema": {"id": "int", "time": "bigint", "k": "int", "v": "int"}}},
    "boxes": {
        "high": {"op": "filter", "in": "s", "where": ["v > 3"]},
        "counts": {
            "op": "aggregate",
            "in": "high",
            "select": "count(*) as n, sum(v) as total, last(id) as last",
            "order": {"on": "time", "by": ["k"]},
            "size": 10,
        },
        "plain": {
            "op": "aggregate",
            "in": "s",
            "select": "count(*) as n, sum(v) as total",
            "order": {"on": "time"},
            "size": 7,
        },
    },
    "outputs": {"counts": {"from": "counts", "qos": SOON}, "plain": {"from": "plain", "qos": LATER}},
}
LATE = {"op": "aggregate", "in": "high", "select": "count(*) as n", "order": {"on": "time"}, "size": 5}


def make_rows(count: int, seed: int = 1) -> list[Row]:
    chance = random.Random(seed)
    return [{"id": at, "time": at // 3, "k": chance.randrange(4), "v": chance.randrange(12)} for at in range(count)]


def changed(
    network: Mapping[str, Any], boxes: Mapping[str, Any] | None = None, outputs: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return a network with other boxes and outputs; None removes one."""
    made = copy.deepcopy(dict(network))
    for section, some in (("boxes", boxes), ("outputs", outputs)):
        for name, value in (some or {}).items():
            if value is None:
                del made[section][name]
            else:
                made[section][name] = {**made[section].get(name, {}), **value}
    return made


def listed(result: Any, output: str) -> list[Row]:
    rows: list[Row] = result.outputs[output].to_pylist()
    return rows


def test_a_run_with_changes() -> None:
    rows = make_rows(4000)
    run = Changing(NETWORK, rows, rate=500, train=150)
    run.wait_for(lambda status: status.tuples_out > 20)
    # A threshold changes, and the count behind it keeps its state.
    higher = changed(NETWORK, {"high": {"where": ["v > 6"]}})
    first = run.change(higher, keep=["counts"])
    # A query is added, and another output of what is delivered anyway.
    added = changed(higher, {"late": LATE}, {"late": {"from": "late"}, "again": {"from": "counts"}})
    second = run.change(added)
    run.wait_for(lambda status: status.outputs["late"].tuples > 3)
    # The count begins anew, with what it has so far emitted; the new query changes and loses it.
    longer = changed(added, {"counts": {"size": 20}, "late": {"select": "sum(v) as n"}})
    third = run.change(longer, restart=["counts", "late"], flush=["counts"])
    seen = run.statuses[-1].tuples_in
    run.wait_for(lambda status: status.tuples_in > seen + 300)
    # One is removed.
    fourth = run.change(changed(longer, {"late": None}, {"late": None}))
    result = run.result()

    assert 0 < first < second < third < fourth < len(rows)
    assert listed(result, "plain") == offline(NETWORK, rows)["plain"]
    both = [row for row in rows[:third] if row["v"] > (3 if row["id"] < first else 6)]
    anew = offline(longer, rows[third:])
    before = offline(NETWORK, both)["counts"]
    assert listed(result, "counts") == before + anew["counts"]
    closing = [row for row in before if row not in offline(NETWORK, [one for one in both if one["id"] < second])["counts"]]
    assert listed(result, "again")[-len(anew["counts"]) :] == anew["counts"]
    assert set(map(str, closing)) <= set(map(str, listed(result, "again")))
    assert listed(result, "late") == whole(added, rows[second:third]) + whole(longer, rows[third:fourth])


def whole(network: Mapping[str, Any], rows: list[Row]) -> list[Row]:
    """Return the windows of 'late' that have closed when its input stops without an end."""
    reached = max(row["time"] for row in rows if row["v"] > 6)
    return [row for row in offline(network, rows)["late"] if row["time"] + 5 <= reached]


def test_what_cannot_be_changed_is_refused_and_the_run_goes_on() -> None:
    rows = make_rows(1500)
    run = Changing(NETWORK, rows, rate=400, train=150)
    run.wait_for(lambda status: status.tuples_out > 5)
    both = {"op": "aggregate", "in": "counts", "select": "sum(n) as n", "order": {"on": "time"}, "size": 50}
    with pytest.raises(NetworkError, match="'both' cannot read what 'counts' makes"):
        run.change(changed(NETWORK, {"both": both}, {"both": {"from": "both"}}))
    result = run.result()
    assert {name: table.to_pylist() for name, table in result.outputs.items()} == offline(NETWORK, rows)
