"""What a saved state depends on: boxes that keep state, and all that lies before them; nothing else."""

from __future__ import annotations

import copy
from typing import Any

import pyarrow as pa
import pytest

from headway.checking import check
from headway.engines.spark.driver.cut import cut, fingerprint, make_work
from headway.files import load
from headway.program import compile_program

NAMES = pa.table({"n": [1, 2, 3], "name": ["one", "two", "three"]})
NETWORK: dict[str, Any] = {
    "network": "prints",
    "sources": {"s": {"schema": {"time": "bigint", "v": "int"}}},
    "boxes": {
        "before": {"op": "filter", "in": "s", "where": ["v > 0"]},
        "counts": {
            "op": "aggregate",
            "in": "before",
            "select": "count(*) as n",
            "order": {"on": "time"},
            "size": 5,
        },
        "large": {"op": "filter", "in": "counts", "where": ["n > 2"]},
        "named": {
            "op": "join",
            "in": ["large", {"table": "names"}],
            "on": "left.n = right.n",
            "select": "time, left.n as n, name",
        },
        "later": {"op": "map", "in": "named", "select": "time + 1 as time, n"},
        "again": {
            "op": "aggregate",
            "in": "later",
            "select": "sum(n) as n",
            "order": {"on": "time"},
            "size": 50,
        },
        "last": {"op": "filter", "in": "again", "where": ["n > 7"]},
    },
    "outputs": {"named": {"from": "named"}, "last": {"from": "last"}},
}


def prints(boxes: dict[str, Any] | None = None, every: bool = False) -> dict[str, str]:
    network = copy.deepcopy(NETWORK)
    for name, settings in (boxes or {}).items():
        network["boxes"][name] |= settings
    program = compile_program(check(load(network), tables={"names": NAMES}))
    (unit,) = cut(program, 4, "one").units
    if every:
        return dict(make_work(program, unit, 4).prints)
    return fingerprint(program, unit, 4)


def test_only_boxes_that_keep_state_are_held_to_what_they_were() -> None:
    assert set(prints()) == {"counts", "again"}


@pytest.mark.parametrize(
    ("box", "settings", "affected"),
    [
        ("last", {"where": ["n > 8"]}, set()),
        ("large", {"where": ["n > 1"]}, {"again"}),
        ("named", {"select": "time, left.n + 0 as n, name"}, {"again"}),
        ("later", {"select": "time + 2 as time, n"}, {"again"}),
        ("before", {"where": ["v > 1"]}, {"counts", "again"}),
        ("counts", {"size": 6}, {"counts", "again"}),
        ("again", {"size": 60}, {"again"}),
    ],
)
def test_a_change_affects_states_behind_it(box: str, settings: dict[str, Any], affected: set[str]) -> None:
    before, after = prints(), prints({box: settings})
    assert {name for name in before if before[name] != after[name]} == affected


def test_what_a_join_with_a_table_holds_has_a_name_of_its_own() -> None:
    """It is no state, but it must not be taken for that of a join with other keys."""
    changed = {"named": {"select": "time, left.n + 0 as n, name"}}
    before, after = prints(every=True), prints(changed, every=True)
    assert before["named"] != after["named"]
    assert before["counts"] == after["counts"]
