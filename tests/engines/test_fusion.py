"""Which boxes run as one kernel."""

from __future__ import annotations

from headway.engines.fusion import chains

import headway as hw
from tests.engines.local.networks import POSITIVE, network, rows


def test_neighbours_are_fused_where_nobody_else_listens() -> None:
    only = {0: 1, 1: 2, 2: None, 3: 4}
    fusible = {0, 1, 2, 3}
    made = chains((0, 1, 2, 3, 4), fusible.__contains__, only.get)
    assert made == ((0, 1, 2), (3,), (4,))
    assert chains((), fusible.__contains__, only.get) == ()
    assert chains((1, 0), fusible.__contains__, only.get) == ((1,), (0,))


def test_a_fused_chain_counts_for_each_of_its_boxes() -> None:
    boxes = {
        "x": POSITIVE,
        "y": {"op": "map", "in": "x", "select": "a, v * 2 as v"},
        "z": {"op": "filter", "in": "y", "where": "a % 10 = 0"},
    }
    data = [*rows(100), (100, 0)]
    for policy in ("round-robin/superbox", "round-robin/box"):
        summary = hw.run(network(boxes, {"o": "z"}), {"s": data}, policy=policy, engine="local").summary
        counted = {name: (box["tuples_in"], box["tuples_out"]) for name, box in summary["boxes"].items()}
        assert counted == {"x": (101, 100), "y": (100, 100), "z": (100, 10)}
    assert summary["outputs"]["o"]["tuples"] == 10


def test_an_output_in_the_middle_is_still_delivered() -> None:
    boxes = {"x": POSITIVE, "y": {"op": "map", "in": "x", "select": "v"}}
    result = hw.run(network(boxes, {"o": "y", "mid": "x", "rest": "x.else"}), {"s": [*rows(3), (9, 0)]}, engine="local")
    assert [result.outputs[name].num_rows for name in ("o", "mid", "rest")] == [3, 3, 1]
