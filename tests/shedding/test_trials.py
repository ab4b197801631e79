"""Forward trials."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from headway.checking import CheckedNetwork, check
from headway.columns import UNREAD
from headway.files import load
from headway.network.qos import Graph
from headway.network.schema import Schema
from headway.shedding.inverses import Route, propagate
from headway.shedding.semantic import LEAST, Trial, best_split, trial_fields
from headway.shedding.sites import Entry
from headway.trains import Train

GRAPH = Graph(((0.0, 0.0), (10.0, 1.0)))
SCHEMA = "t bigint, v double, w int, name string"
ROOMS = pa.table({"room": pa.array([1, 2, 2], pa.int32()), "weight": [10.0, 5.0, 2.5]})


def network(
    boxes: dict[str, Any], origin: str, field: str = "v", tables: dict[str, Any] | None = None
) -> CheckedNetwork:
    outputs = {"o": {"from": origin, "qos": {"value": {"field": field, "graph": [[0, 0], [10, 1]]}}}}
    sources = {"s": {"schema": SCHEMA}, "r": {"schema": SCHEMA}}
    return check(load({"network": "n", "sources": sources, "boxes": boxes, "outputs": outputs}), tables=tables)


def train(**columns: list[Any]) -> Train:
    count = len(next(iter(columns.values())))
    given = {"t": list(range(count)), "v": [0.0] * count, "w": [0] * count, "name": ["a"] * count, **columns}
    # Numbers as after a join: several tuples have the same.
    numbers = np.arange(count, dtype=np.int64) // 2 + 7
    return Train.from_batch(pa.record_batch(given, Schema.parse(SCHEMA).to_arrow()), numbers=numbers)


def trial_of(checked: CheckedNetwork, box: str, tables: dict[str, Any] | None = None) -> Trial:
    entry = Entry([one.name for one in checked.order].index(box), 0, -1)
    route = Route(checked, "o", entry)
    found = propagate(route)
    return Trial(route, found.stopped, found.entry, tables)


def test_what_each_tuple_leads_to() -> None:
    checked = network(
        {
            "some": {"op": "filter", "in": "s", "where": "name = 'a'"},
            "square": {"op": "map", "in": "some", "select": "v * v as v"},
            "shown": {"op": "map", "in": "square", "select": "v + 1 as v"},
        },
        "shown",
    )
    trial = trial_of(checked, "some")
    assert [box.name for box in trial.boxes] == ["some", "square"]  # from there on backward
    worth, results = trial.worth(train(v=[1.0, 2.0, -3.0, 0.0], name=["a", "b", "a", None]), GRAPH)
    assert worth.tolist() == pytest.approx([0.2, 0.0, 1.0, 0.0])
    assert results == 2


def test_several_results_of_one_tuple_add_up() -> None:
    tables = {"rooms": ROOMS}
    checked = network(
        {"weighed": {"op": "join", "in": ["s", {"table": "rooms"}], "on": "left.w = right.room"}},
        "weighed",
        "weight",
        tables,
    )
    trial = trial_of(checked, "weighed", tables)
    worth, results = trial.worth(train(w=[2, 1, 3, 2]), GRAPH)
    assert worth.tolist() == pytest.approx([0.75, 1.0, 0.0, 0.75])
    assert results == 5


def test_ways_with_and_without_a_trial_add_up() -> None:
    checked = network(
        {
            "both": {"op": "filter", "in": "s", "where": "true"},
            "square": {"op": "map", "in": "both", "select": "t, v * v as v, w, name"},
            "all": {"op": "union", "in": ["both", "square", "r"]},
            "sorted": {"op": "bsort", "in": "all", "order": {"on": "t", "slack": 2}},
        },
        "sorted",
    )
    worth, results = trial_of(checked, "both").worth(train(v=[1.0, 2.0, 5.0]), GRAPH)
    assert worth.tolist() == pytest.approx([0.2, 0.6, 1.5])
    assert results == 6


def test_a_tuple_that_fails_is_worth_nothing() -> None:
    checked = network({"part": {"op": "map", "in": "s", "select": "10 / v as v"}}, "part")
    worth, results = trial_of(checked, "part").worth(train(v=[0.0, 2.0]), GRAPH)
    assert (worth.tolist(), results) == ([0.0, 0.5], 1)


def test_universal_boxes_and_sorts_let_all_pass() -> None:
    checked = network(
        {
            "slow": {"op": "universal", "in": "s", "cost": "1h", "selectivity": 0.01},
            "sorted": {"op": "bsort", "in": "slow", "order": {"on": "t", "slack": 9}},
            "square": {"op": "map", "in": "sorted", "select": "v * v as v"},
        },
        "square",
    )
    worth, results = trial_of(checked, "slow").worth(train(v=[1.0, 2.0, 3.0]), GRAPH)
    assert (worth.tolist(), results) == (pytest.approx([0.1, 0.4, 0.9]), 3)


@pytest.mark.parametrize(
    ("box", "reason"),
    [
        ({"op": "aggregate", "in": "s", "select": "avg(v) as v", "order": {"on": "t"}, "size": 5}, "'b' mixes tuples"),
        (
            {"op": "join", "in": ["s", "r"], "on": "left.w = right.w", "size": 5, "order": {"on": "t"}},
            "'b' mixes tuples",
        ),
    ],
)
def test_no_trial_where_tuples_are_mixed(box: dict[str, Any], reason: str) -> None:
    assert trial_of(network({"b": box}, "b"), "b").impossible == reason


def test_no_trial_without_the_table() -> None:
    box = {"op": "join", "in": [{"table": "rooms"}, "s"], "on": "left.room = right.w"}
    checked = network({"b": box}, "b", "weight", {"rooms": ROOMS})
    assert trial_of(checked, "b").impossible.startswith("'b' cannot be tried: table 'rooms'")
    assert trial_of(checked, "b", {"rooms": ROOMS}).impossible == ""


def test_fields_to_try() -> None:
    assert trial_fields(Schema.parse("a int, b string, c timestamp, d decimal(5,1), e boolean, f float")) == (
        0,
        3,
        4,
        5,
    )


def test_the_field_that_explains_most_is_chosen() -> None:
    rng = np.random.default_rng(1)
    v, w = rng.normal(0, 1, 1024), rng.integers(0, 100, 1024)
    sample = train(v=v.tolist(), w=w.tolist(), t=rng.integers(0, 9, 1024).tolist())
    found = best_split(sample, (w >= 60) * 0.7 + (v > 0) * 0.3, (0, 1, 2))
    assert found is not None
    assert found.field == 2
    assert np.nanmax(found.utilities[found.bins.means < 55]) < 0.45
    assert np.nanmin(found.utilities[found.bins.means > 62]) > 0.55


def test_chance_and_time_are_no_causes() -> None:
    rng = np.random.default_rng(2)
    count = 1024
    sample = train(v=rng.normal(0, 1, count).tolist(), t=list(range(count)))
    rising = (rng.random(count) < np.arange(count) / count).astype(np.float64)
    assert best_split(sample, rising, (0,)) is None
    assert best_split(sample, (rng.random(count) < 0.3).astype(np.float64), (0, 1, 2)) is None
    assert best_split(sample, np.ones(count), (0, 1, 2)) is None


def test_too_small_a_sample_and_unread_columns_say_nothing() -> None:
    v = np.tile([0.0, 1.0], LEAST // 2)
    sample = train(v=v.tolist())
    found = best_split(sample, v, (0, 1, 2))
    assert found is not None
    assert found.field == 1
    assert best_split(sample.slice(0, LEAST - 1), v[: LEAST - 1], (1,)) is None
    slim = sample.with_columns([sample.columns[0], UNREAD, *sample.columns[2:]])
    assert best_split(slim, v, (1, 2)) is None
