"""Units: boxes, or superboxes in min-cost order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headway.catalog import Topology
from headway.scheduling.superboxes import box_units, min_cost_order, superbox_units
from tests.scheduling.snapshots import topology

PAPER = {"b5": (), "b4": (), "b6": (), "b3": ("b5",), "b2": ("b4", "b3"), "b1": ("b2", "b6")}
"""The tree of squal.md, b1 ← b2, b6; b2 ← b3, b4; b3 ← b5, with b2's inputs in the order the paper walks them."""


def _named(made: Topology, order: tuple[int, ...]) -> str:
    return " ".join(made.boxes[at] for at in order)


def test_the_papers_tree_in_min_cost_order() -> None:
    made = topology(PAPER, {"out": "b1"})
    assert _named(made, min_cost_order(made, made.boxes.index("b1"))) == "b4 b5 b3 b2 b6 b1"


def test_the_order_of_inputs_decides_between_valid_post_orders() -> None:
    made = topology({**PAPER, "b2": ("b3", "b4"), "b1": ("b2", "b6")}, {"out": "b1"})
    assert _named(made, min_cost_order(made, made.boxes.index("b1"))) == "b5 b3 b4 b2 b6 b1"


def test_outputs_with_one_root_share_a_superbox() -> None:
    made = topology({"a": (), "b": ("a",), "c": ("a",), "d": ()}, {"x": "b", "y": "c", "z": "b", "raw": "source"})
    units = superbox_units(made)
    assert [(unit.name, unit.boxes, unit.outputs) for unit in units] == [
        ("x+z", (0, 1), (0, 2)),
        ("y", (0, 2), (1,)),
        ("d", (3,), ()),
    ]


def test_boxes_as_units() -> None:
    made = topology({"a": (), "b": ("a",), "c": ("a",)}, {"x": "b", "y": "c"})
    assert [(unit.name, unit.boxes, unit.outputs) for unit in box_units(made)] == [
        ("a", (0,), (0, 1)),
        ("b", (1,), (0,)),
        ("c", (2,), (1,)),
    ]


@st.composite
def topologies(draw: st.DrawFn) -> Topology:
    count = draw(st.integers(1, 12))
    reads = {
        f"b{at}": tuple(f"b{one}" for one in draw(st.lists(st.integers(0, at - 1), max_size=3, unique=True)))
        if at
        else ()
        for at in range(count)
    }
    outputs = {f"o{at}": f"b{draw(st.integers(0, count - 1))}" for at in range(draw(st.integers(0, 4)))}
    return topology(reads, outputs)


@given(made=topologies())
def test_superboxes_are_complete_and_in_post_order(made: Topology) -> None:
    units = superbox_units(made)
    assert {box for unit in units for box in unit.boxes} == set(range(len(made.boxes)))
    assert sorted(output for unit in units for output in unit.outputs) == list(range(len(made.outputs)))
    for unit in units:
        assert len(set(unit.boxes)) == len(unit.boxes)
        for place, box in enumerate(unit.boxes):
            if unit.outputs:
                assert set(made.producers[box]) <= set(unit.boxes[:place])


def test_a_deep_tree_does_not_exhaust_the_stack() -> None:
    depth = 5000
    made = topology({f"b{at}": (f"b{at - 1}",) if at else () for at in range(300)}, {"o": "b299"})
    assert min_cost_order(made, 299) == tuple(range(300))
    chain = Topology(
        tuple(map(str, range(depth))),
        (),
        (),
        (),
        tuple((at - 1,) if at else () for at in range(depth)),
        ((),) * depth,
        (),
        (),
    )
    assert min_cost_order(chain, depth - 1) == tuple(range(depth))
