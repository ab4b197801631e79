"""The cut of a network that has changed: queries go on wherever they can, and state stays where it is."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import headway as hw
from headway.engines.spark.driver.cut import cut
from headway.engines.spark.driver.recut import Change, Recut, Running, recut
from headway.errors import HeadwayError, NetworkError
from headway.living.changes import compare
from headway.program import Program, compile_program
from headway.structure import owner
from tests.engines.spark.driver.test_cut import LOOSE, TIGHT, checked, count, where
from tests.living.plans import Editor, first_plan
from tests.searching import examples

BOXES = {"high": where("s"), "counts": count("high"), "plain": count("s", None)}
OUTPUTS = {"counts": {"from": "counts", "qos": TIGHT}, "plain": {"from": "plain", "qos": LOOSE}}


def change_of(old: Program, new: Program, **how: Any) -> Change:
    changes = compare(old.checked, new.checked, **how)
    return Change(old, new, frozenset(changes.kept), frozenset(changes.carried))


def running(program: Program, found: Recut | None = None, shards: int = 2) -> list[Running]:
    """Return the queries of a network, as they deliver every arc in full that they deliver."""
    units = cut(program, shards).units if found is None else [one.cut for one in found.units]
    outputs = program.checked.outputs
    return [Running(one, frozenset([*(outputs[name] for name in one.outputs), *one.exports])) for one in units]


def recut_to(boxes: dict[str, Any], outputs: dict[str, Any], shards: int = 2, **how: Any) -> Recut:
    """Change BOXES and OUTPUTS."""
    old, new = checked(BOXES, OUTPUTS, "s"), checked(boxes, outputs, "s")
    return recut(change_of(old, new, **how), running(old, shards=shards), shards)


def told(found: Recut) -> list[tuple[tuple[str, ...], int | None, bool]]:
    return [(one.cut.outputs, one.old, one.runs_on) for one in found.units]


def test_without_a_change_all_queries_go_on_as_they_are() -> None:
    found = recut_to(BOXES, OUTPUTS)
    assert told(found) == [(("counts",), 0, True), (("plain",), 1, True)]
    assert (found.bounded, found.ended) == (frozenset(), frozenset())
    assert [one.cut for one in found.units] == list(cut(checked(BOXES, OUTPUTS, "s"), 2).units)


def test_a_query_that_is_added_disturbs_nobody() -> None:
    found = recut_to({**BOXES, "late": count("high", None)}, {**OUTPUTS, "late": "late"})
    assert told(found) == [(("counts",), 0, True), (("plain",), 1, True), (("late",), None, False)]
    assert not found.bounded
    assert found.units[2].cut.boxes == ("high", "late"), "what keeps no state runs once more"
    assert found.units[2].cut.owned == {"late"}


def test_a_query_that_changes_is_continued_by_another_with_the_same_state() -> None:
    found = recut_to({**BOXES, "high": where("s", "v > 3")}, OUTPUTS, keep="all")
    assert told(found) == [(("counts",), 0, False), (("plain",), 1, True)]
    assert found.bounded == found.ended == {0}


def test_an_output_of_what_is_delivered_anyway_stops_no_query() -> None:
    found = recut_to(BOXES, {**OUTPUTS, "again": "counts"})
    assert told(found) == [(("counts", "again"), 0, True), (("plain",), 1, True)]
    assert found.bounded == {0}
    assert not found.ended


def test_a_query_without_outputs_ends() -> None:
    found = recut_to({"plain": BOXES["plain"]}, {"plain": OUTPUTS["plain"]})
    assert told(found) == [(("plain",), 1, True)]
    assert found.ended == {0}


def test_an_output_that_is_removed_takes_its_boxes_with_it() -> None:
    outputs = {**OUTPUTS, "all": {"from": "s", "qos": TIGHT}}
    old, new = checked(BOXES, outputs, "s"), checked({"plain": BOXES["plain"]}, {"all": "s", "plain": "plain"}, "s")
    found = recut(change_of(old, new), running(old), 2)
    assert told(found) == [(("all",), 0, False), (("plain",), 1, True)]
    assert found.units[0].cut.boxes == ()


def test_what_a_box_with_state_makes_comes_from_a_relay() -> None:
    found = recut_to({**BOXES, "both": count("counts", None)}, {**OUTPUTS, "both": "both"})
    counts, _, both = (one.cut for one in found.units)
    assert (counts.exports, both.relays, both.sources, both.boxes) == (("counts",), ("counts",), ("counts",), ("both",))
    assert told(found)[0] == (("counts",), 0, True), "it delivers this stream anyway"
    assert found.bounded == {0}
    assert not found.ended


def test_a_query_that_does_not_deliver_a_stream_yet_is_started_again_for_that() -> None:
    boxes = {"counts": count("s"), "large": where("counts")}
    old = checked(boxes, {"large": "large"}, "s")
    new = checked({**boxes, "both": count("counts", None)}, {"large": "large", "both": "both"}, "s")
    found = recut(change_of(old, new), running(old), 2)
    assert told(found) == [(("large",), 0, False), (("both",), None, False)]
    assert found.units[0].cut.exports == ("counts",)
    assert found.units[0].cut.placements["counts"] == running(old)[0].cut.placements["counts"]


def test_a_reader_of_a_relay_goes_on_when_something_else_changes() -> None:
    old = checked({**BOXES, "both": count("counts", None)}, {**OUTPUTS, "both": "both"}, "s")
    before = recut_to({**BOXES, "both": count("counts", None)}, {**OUTPUTS, "both": "both"})
    new = checked({**BOXES, "both": count("counts", None)}, {"counts": OUTPUTS["counts"], "both": "both"}, "s")
    found = recut(change_of(old, new), running(old, before), 2)
    assert (("both",), 2, True) in told(found)
    assert 2 not in found.bounded


def test_who_is_bounded_has_what_it_reads_delivered_up_to_the_seam() -> None:
    old = checked({**BOXES, "both": count("counts", None)}, {**OUTPUTS, "both": "both"}, "s")
    before = recut_to({**BOXES, "both": count("counts", None)}, {**OUTPUTS, "both": "both"})
    new = checked(BOXES, OUTPUTS, "s")
    found = recut(change_of(old, new), running(old, before), 2)
    assert found.bounded == {0, 2}
    assert found.ended == {2}
    assert found.units[0].cut.exports == ()


def test_state_that_would_have_to_move_is_named() -> None:
    boxes = {"counts": count("s"), "large": where("counts")}
    old = checked(boxes, {"large": "large"}, "s")
    assert running(old)[0].cut.placements["counts"].spread
    new = checked({**boxes, "large": count("counts", None)}, {"large": "large"}, "s")
    with pytest.raises(NetworkError, match="'large' cannot read what 'counts' makes while the network runs"):
        recut(change_of(old, new, restart="all"), running(old), 2)


def test_arcs_with_points_are_exported() -> None:
    mapping = {
        "network": "points",
        "sources": {"s": {"schema": {"a": "int", "k": "int", "v": "int"}}},
        "boxes": BOXES,
        "points": {"arrived": {"on": "s"}, "counted": {"on": "counts"}},
        "outputs": OUTPUTS,
    }
    program = compile_program(hw.check(hw.load(mapping)))
    assert [unit.exports for unit in cut(program, 2).units] == [("counts",), ()]


@examples(60)
@given(seed=st.integers(0, 1 << 30), boxes=st.integers(1, 7), changes=st.integers(1, 5), shards=st.integers(1, 3))
def test_random_changes_keep_everything_in_its_place(seed: int, boxes: int, changes: int, shards: int) -> None:
    chance = random.Random(seed)
    plan, editor = first_plan(chance, boxes), Editor(chance)
    old = compile_program(hw.check(hw.load(plan.mapping())))
    queries = running(old, shards=shards)
    for _ in range(changes):
        plan = editor.change(plan)
        new = compile_program(hw.check(hw.load(plan.mapping())))
        change = change_of(old, new, restart="all")
        try:
            found = recut(change, queries, shards)
        except HeadwayError:
            continue
        check(change, queries, found)
        old, queries = new, running(new, found)


def check(change: Change, before: list[Running], found: Recut) -> None:
    """Check what holds of every cut of a changed network."""
    units = [one.cut for one in found.units]
    outputs = Counter(name for unit in units for name in unit.outputs)
    assert outputs == Counter([*change.new.checked.outputs]), "every output has one query"
    owned = Counter(name for unit in units for name in unit.owned)
    assert owned == Counter(name for name in change.new.index), "one query reports for every box"
    exported = {arc: unit for unit in units for arc in unit.exports}
    for one in found.units:
        unit = one.cut
        for name in unit.boxes:
            inputs = change.new.boxes[change.new.index[name]].inputs
            assert all(owner(arc) in (*unit.boxes, *unit.sources) or arc in unit.relays for arc in inputs)
        for arc in unit.relays:
            assert owner(arc) in exported[arc].boxes
        for name in change.anchored & set(unit.boxes):
            assert one.old is not None, "state stays in its query"
            place, pin = unit.placements[name], before[one.old].cut.placements[name]
            assert (place.front, place.shard, place.by) == (pin.front, pin.shard, pin.by)
        if one.runs_on:
            assert one.old is not None
            assert set(unit.boxes) <= change.same
