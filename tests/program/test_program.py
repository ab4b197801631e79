"""What a network compiles to: which boxes run as one kernel, which columns are needed, what can be spread."""

from __future__ import annotations

from typing import Any

import headway as hw
from headway.program import Program, compile_program
from tests.engines.local.networks import COUNT, POSITIVE, network, rows

BOXES: dict[str, Any] = {
    "x": POSITIVE,
    "y": {"op": "map", "in": "x", "select": "a, v * 2 as v"},
    "z": {"op": "filter", "in": "y", "where": "a % 10 = 0"},
    "c": {**COUNT, "in": "z"},
}


def compiled(boxes: dict[str, Any], outputs: dict[str, str]) -> Program:
    return compile_program(hw.check(hw.load(network(boxes, outputs))))


def test_neighbours_are_fused_where_nobody_else_listens() -> None:
    program = compiled(BOXES, {"o": "c"})
    assert program.chains(range(4)) == ((0, 1, 2), (3,))
    assert program.chains(()) == ()
    assert program.chains((1, 0)) == ((1,), (0,))
    assert compiled(BOXES, {"o": "c", "mid": "y"}).chains(range(4)) == ((0, 1), (2,), (3,))
    assert compiled(BOXES, {"o": "c", "rest": "x.else"}).chains(range(4)) == ((0,), (1, 2), (3,))


def test_only_what_somebody_reads_is_filled() -> None:
    program = compiled({"x": {**POSITIVE, "where": ["v > 0", "v < 0"]}, "y": {**POSITIVE, "in": "x.2"}}, {"o": "y"})
    assert [box.ports for box in program.boxes] == [(None, "x.2", None), ("y",)]
    assert [(box.feeders, box.fusible) for box in program.boxes] == [((-1,), False), ((0,), True)]
    assert program.readers["s"] == (0,)


def test_a_part_of_a_network_delivers_other_arcs() -> None:
    checked = hw.check(hw.load(network(BOXES, {"o": "c"})))
    part = compile_program(checked, {"x", "y"}, frozenset({"x", "y"}))
    assert [box.name for box in part.boxes] == ["x", "y"]
    assert part.chains(range(2)) == ((0,), (1,))


def test_columns_that_only_those_behind_a_filter_read_are_needed_too() -> None:
    program = compiled({"x": POSITIVE, "c": {**COUNT, "in": "x"}}, {"o": "c"})
    kernels = program.kernels({})
    assert program.wanted(0, (0, 1), kernels) == program.needs(1, kernels) == frozenset({0})
    assert program.wanted(0, (0,), kernels) is None  # who reads them is elsewhere
    assert program.needs(0, kernels) == frozenset({0, 1})
    risky = compiled({"x": {**POSITIVE, "where": "1 / v > 0"}, "c": {**COUNT, "in": "x"}}, {"o": "c"})
    assert risky.needs(0, risky.kernels({})) is None  # a dead letter shows the whole tuple


def test_a_box_can_be_spread_where_its_results_meet_no_others() -> None:
    by = {**COUNT, "order": {"on": "a", "by": ["v"]}}
    assert compiled({"c": by}, {"o": "c"}).spreadable == {"c": ("v",)}
    assert compiled({"c": by, "x": {**POSITIVE, "in": "c"}}, {"o": "x"}).spreadable == {"c": ("v",)}
    assert compiled({"c": by, "d": {**COUNT, "in": "c"}}, {"o": "d"}).spreadable == {}
    assert compiled({"c": COUNT}, {"o": "c"}).spreadable == {}


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
