"""Networks that change while they run, on real Spark.

Results are those of the old network up to the seam, and those of the new one after it.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import headway as hw
from headway.errors import RunError
from tests.engines.spark.programs.changing import BOTH

if TYPE_CHECKING:
    pass

pytestmark = pytest.mark.usefixtures("spark")

Row = dict[str, Any]
SOON, LATER = ({"latency": [[0, 1], [good, 1], [5, 0]]} for good in (1, 2))
NETWORK: dict[str, Any] = {
    "network": "changing",
    "sources": {"s": {"schema": {"id": "int", "time": "bigint", "k": "int", "v": "int"}, "push": True}},
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


def offline(network: Mapping[str, Any], rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Return the results of a network over some tuples, by output."""
    found = hw.run(network, {"s": list(rows)}, engine="local").outputs
    return {name: table.to_pylist() for name, table in found.items()}


def closed(network: Mapping[str, Any], rows: Sequence[Row], output: str, size: int, least: int = 6) -> list[Row]:
    """Return the windows of an aggregate in one partition that have closed when its input stops without an end."""
    reached = max(row["time"] for row in rows if row["v"] > least)
    return [row for row in offline(network, rows)[output] if row["time"] + size <= reached]


def test_a_run_with_changes() -> None:
    rows = make_rows(2000)
    with hw.start(NETWORK, engine="spark", train=150) as run:
        run.push("s", rows[:400])
        # A threshold changes, and the count behind it keeps its state.
        higher = changed(NETWORK, {"high": {"where": ["v > 6"]}})
        run.change(higher, keep=["counts"])
        run.push("s", rows[400:800])
        # A query is added, and another output of what is delivered anyway.
        added = changed(higher, {"late": LATE}, {"late": {"from": "late"}, "again": {"from": "counts"}})
        run.change(added)
        run.push("s", rows[800:1200])
        # The count begins anew, and emits what it has; the new query begins anew, and loses it.
        longer = changed(added, {"counts": {"size": 20}, "late": {"size": 6}})
        run.change(longer, restart=["counts", "late"], flush=["counts"])
        run.push("s", rows[1200:1600])
        # A query is removed.
        run.change(changed(longer, {"late": None}, {"late": None}))
        run.push("s", rows[1600:])
        result = run.stop()

    assert listed(result, "plain") == offline(NETWORK, rows)["plain"]
    both = [row for row in rows[:1200] if row["v"] > (3 if row["id"] < 400 else 6)]
    before, anew = offline(NETWORK, both)["counts"], offline(longer, rows[1200:])["counts"]
    assert listed(result, "counts") == before + anew
    early = sum(1 for row in listed(result, "counts") if row not in listed(result, "again"))
    assert listed(result, "again") == (before + anew)[early:]
    assert {row["k"]: row["last"] for row in before[:early]} != {}
    assert all(row["time"] + 10 <= 800 // 3 for row in before[:early])
    assert all(row["time"] + 10 > 780 // 3 for row in before[early : early + 4])
    ended = closed(added, rows[800:1200], "late", 5) + closed(longer, rows[1200:1600], "late", 6)
    assert listed(result, "late") == ended


def both_of(rows: Sequence[Row]) -> list[Row]:
    """Return what BOTH makes of results of the count."""
    schema = {"time": "bigint", "k": "int", "n": "bigint", "total": "bigint", "last": "int"}
    network = {
        "network": "behind",
        "sources": {"s": {"schema": schema}},
        "boxes": {"both": {**BOTH, "in": "s"}},
        "outputs": {"both": {"from": "both"}},
    }
    return offline(network, rows)["both"]


def test_a_query_reads_what_a_box_with_state_makes_in_another() -> None:
    rows = make_rows(1800)
    more = changed(NETWORK, {"both": BOTH}, {"both": {"from": "both"}, "again": {"from": "counts"}})
    with hw.start(NETWORK, engine="spark", train=150) as run:
        run.push("s", rows[:600])
        run.change(more)
        run.push("s", rows[600:1200])
        run.change(NETWORK, flush=["both"])
        run.push("s", rows[1200:])
        result = run.stop()
    expected = offline(NETWORK, rows)
    assert {name: listed(result, name) for name in expected} == expected
    assert listed(result, "again")
    assert listed(result, "both") == both_of(listed(result, "again"))


def test_a_changed_run_goes_on_where_it_was_kept(tmp_path: Path) -> None:
    rows, state = make_rows(1600), tmp_path / "state"
    higher = changed(NETWORK, {"high": {"where": ["v > 6"]}, "late": LATE}, {"late": {"from": "late"}})
    with hw.start(NETWORK, engine="spark", train=150, state=state) as run:
        run.push("s", rows[:400])
        run.change(higher, keep="all")
        run.push("s", rows[400:800])
    with hw.start(NETWORK, engine="spark", train=150, state=state) as run:
        assert [box.name for box in run.network.boxes] == ["high", "counts", "plain", "late"]
        run.push("s", rows[800:1200])
        run.change(changed(higher, {"late": None}, {"late": None}), flush="all")
        run.push("s", rows[1200:])
        result = run.stop(drain=True)

    both = [row for row in rows if row["v"] > (3 if row["id"] < 400 else 6)]
    assert listed(result, "plain") == offline(NETWORK, rows)["plain"]
    assert listed(result, "counts") == offline(NETWORK, both)["counts"]
    assert listed(result, "late") == offline(higher, rows[400:1200])["late"]


def test_a_network_that_is_neither_the_first_nor_the_changed_one_is_refused(tmp_path: Path) -> None:
    state, longer = tmp_path / "state", changed(NETWORK, {"counts": {"size": 20}})
    with hw.start(NETWORK, engine="spark", state=state) as run:
        run.push("s", make_rows(50))
        run.change(longer, restart="all")
    with pytest.raises(RunError, match="its network was changed while it ran"):
        hw.start(changed(NETWORK, {"counts": {"size": 30}}), engine="spark", state=state)
    with hw.start(longer, engine="spark", state=state) as run:
        assert run.network.box("counts").spec.to_mapping()["size"] == 20


def test_a_source_that_was_added_goes_on_being_pushed_to(tmp_path: Path) -> None:
    rows, state = make_rows(400), tmp_path / "state"
    more = copy.deepcopy(NETWORK)
    more["sources"]["r"] = NETWORK["sources"]["s"]
    more["boxes"]["others"] = {**NETWORK["boxes"]["plain"], "in": "r"}
    more["outputs"]["others"] = {"from": "others"}
    with hw.start(NETWORK, engine="spark", state=state) as run:
        run.push("s", rows[:200])
        run.change(more)
        run.push("r", rows[:100])
    with hw.start(NETWORK, engine="spark", state=state) as run:
        run.push("r", rows[100:300])
        run.push("s", rows[200:])
        run.change(NETWORK, flush="all")
        result = run.stop(drain=True)
    assert listed(result, "plain") == offline(NETWORK, rows)["plain"]
    alone = {**NETWORK, "outputs": {"others": {"from": "plain"}}}
    assert listed(result, "others") == offline(alone, rows[:300])["others"]
