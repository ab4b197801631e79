"""What a change does to every part of a running network."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from headway.checking import CheckedNetwork, check
from headway.errors import NetworkError, RunError
from headway.files import load
from headway.living.changes import Changes, compare
from headway.living.fragments import graft, read_fragment
from headway.network import Table
from headway.network.schema import Schema
from headway.structure import owner
from tests.living.networks import TABLES, checked, edited, fragment_mappings, living_mappings
from tests.searching import examples

NETWORK = """
network: border
sources:
  positions: {schema: {sid: int, time: bigint, pos: int}, push: true}
  weather: {schema: {time: bigint, wind: int}}
points:
  crossings: {on: across, keep: 1 hour, time: time, key: sid}
  sectors: {data: sectors.csv}
  rules: {data: rules.csv}
boxes:
  across: {op: filter, in: positions, where: "pos >= 30"}
  counts: {op: aggregate, in: crossings, select: "count(*) as n", order: {on: time}, size: 60}
  sums: {op: aggregate, in: counts, select: "sum(n) as n", order: {on: time}, size: 3600}
  many: {op: filter, in: counts, where: n > 3}
  gusts: {op: aggregate, in: weather, select: "max(wind) as wind", order: {on: time}, size: 60}
  named: {op: join, in: [across, sectors], on: left.sid = right.sid}
  sorted: {op: bsort, in: named, order: {on: time, slack: 2}}
  ruled: {op: filter, in: {point: rules, as: stream}, where: a > 1}
views:
  daily: {from: sums}
outputs:
  alarms: {from: many, qos: {latency: [[0, 1], [5, 0]]}}
  gusts: {from: gusts, sink: gusts.csv}
  sorted: {from: sorted}
  ruled: {from: ruled}
schedule: {policy: qos, train: 100}
"""
GIVEN = {"sectors": Schema.parse("sid int, name string"), "rules": Schema.parse("a int")}


def network(*edits: tuple[str, str]) -> CheckedNetwork:
    """Return the network with parts of its text replaced."""
    text = NETWORK
    for before, after in edits:
        assert before in text
        text = text.replace(before, after)
    return check(load(text), tables=GIVEN)


OLD = network()
HIGHER = network(("pos >= 30", "pos >= 40"))
ALL_BOXES = tuple(box.name for box in OLD.network.boxes)


def test_nothing_changes() -> None:
    change = compare(OLD, OLD)
    assert change == Changes(kept=ALL_BOXES)
    assert change.none
    assert change.summary() == "keeps 8 boxes"
    assert Changes().summary() == "changes nothing"
    assert compare(OLD, OLD, restart="all", flush="all") == compare(OLD, OLD, keep="all") == change


def test_state_is_not_lost_in_silence() -> None:
    with pytest.raises(RunError) as caught:
        compare(OLD, HIGHER)
    assert str(caught.value) == (
        "box 'counts' keeps state, and 'across' before it changed; choices: restart it, so that it begins anew, or "
        "keep its state, which stays valid if what it means has not changed; the same has to be said for 'sums' "
        "('across' before it changed), 'sorted' ('across' before it changed)"
    )


def test_restart_and_keep() -> None:
    change = compare(OLD, HIGHER, restart=["counts", "sums"], keep="sorted", flush=["counts"])
    assert change == Changes(
        kept=("gusts", "ruled"),
        replaced=("across", "many", "named"),
        restarted=("counts", "sums"),
        carried=("sorted",),
        flushed=("counts",),
        affected=("across", "counts", "sums", "many", "named", "sorted"),
        begins=("across", "counts", "sums", "many", "named"),
    )
    assert not change.none
    assert change.summary() == (
        "keeps 2 boxes; replaces 'across', 'many', 'named'; restarts 'counts', 'sums'; keeps the state, not the input, "
        "of 'sorted'; flushes 'counts'"
    )
    stateful = ("counts", "sums", "sorted")
    assert compare(OLD, HIGHER, restart="all", flush="all").flushed == stateful
    assert compare(OLD, HIGHER, restart="all").restarted == compare(OLD, HIGHER, keep="all").carried == stateful
    assert compare(OLD, HIGHER, restart="all", keep=["sums"]).carried == ("sums",)
    assert compare(OLD, HIGHER, keep="all", restart=["sums"]).restarted == ("sums",)


@pytest.mark.parametrize(
    ("edits", "options", "message"),
    [
        (
            [("size: 60}\n  sums", "size: 30}\n  sums")],
            {},
            "box 'counts' keeps state, and its 'size' changed; choices: "
            r"restart it, so that it begins anew \(its state cannot stay\); .* 'sums' \('counts' before it changed\)",
        ),
        (
            [("size: 60}\n  sums", "size: 30}\n  sums")],
            {"keep": "all"},
            "box 'counts': keep: its state cannot stay: its 's",
        ),
        (
            [("in: crossings, sel", "in: positions, sel")],
            {},
            "'counts' .*it read 'across' and reads 'positions'; choices: restart it, .*, or keep its state",
        ),
        (
            [("{op: bsort, in: named, order: {on: time, slack: 2}}", "{op: filter, in: named, where: pos > 1}")],
            {"keep": ["sorted"]},
            "'sorted': keep: its state cannot stay: it was a bsort and is a filter",
        ),
        (
            [("time: bigint, wind", "time: int, wind")],
            {},
            r"'gusts' keeps state, and 'weather' before it changed; .*\(its ",
        ),
        (
            [("time: bigint, wind", "time: int, wind")],
            {"keep": ["gusts"]},
            "'gusts': keep: .*: the schema of its input changed, because 'weather' did",
        ),
        ([("sectors.csv", "other.csv")], {}, "'sorted' keeps state, and 'sectors' before it changed"),
        (
            [("on: left.sid = right.sid", "on: left.sid = right.sid + 1")],
            {},
            "'sorted' keeps state, and 'named' before",
        ),
        ([], {"restart": "all", "keep": "all"}, "restart and keep are both 'all'"),
        ([], {"restart": ["counts"], "keep": ["counts"]}, "restart and keep both name 'counts'"),
        ([], {"restart": ["count"]}, "restart: unknown name 'count'; did you mean 'counts'"),
        ([], {"keep": ["alarms"]}, "keep: unknown name 'alarms'"),
        ([], {"restart": ["counts"]}, r"restart: 'counts' goes on unchanged: .*choices: \(none\)"),
        ([], {"restart": ["alarms"]}, "restart: 'alarms' goes on: there is nothing to decide for it"),
        (
            [("pos >= 30", "pos >= 40")],
            {"restart": ["across", "counts", "sums", "sorted"]},
            "restart: 'across' keeps no state: .*choices: counts, sorted, sums",
        ),
        ([("pos >= 30", "pos >= 40")], {"restart": "all", "keep": ["many"]}, "keep: 'many' keeps no state"),
        (
            [("  ruled: {op", "  strict: {op"), ("from: ruled", "from: strict")],
            {"restart": ["strict"]},
            "'strict' is new",
        ),
        (
            [("  ruled: {op", "  strict: {op"), ("from: ruled", "from: strict")],
            {"keep": ["ruled"]},
            "keep: box 'ruled' is not in the new network any more",
        ),
        ([], {"flush": ["counts"]}, r"flush: box 'counts' goes on, and only what ends is flushed; choices: \(none\)"),
        ([], {"flush": ["count"]}, "flush: unknown box 'count'; did you mean 'counts'"),
        ([], {"refresh": ["crossings"]}, "refresh: unknown stored data set 'crossings'; choices: rules, sectors"),
        ([], {"refresh": ["rules"]}, "refresh: 'rules' is streamed in, once"),
        ([], {"refresh": "sectors"}, "refresh is a list of dangling points, not 'sectors'"),
        (
            [("train: 100", "train: 100, engine: local")],
            {},
            "'engine' cannot change while the network runs; what can: policy;",
        ),
        ([("train: 100", "train: 100, units: one")], {}, "schedule: 'units' cannot change"),
        ([("time: time, key: sid", "time: time, key: pos")], {}, "point 'crossings': its 'key' changes, so"),
        ([("time: time, key: sid", "key: sid")], {"keep": "all"}, "point 'crossings': its 'time' changes"),
        ([("on: across", "on: positions"), ("in: crossings", "in: across")], {}, "it was on 'across' and is on"),
        (
            [
                ("crossings: {on: across, keep: 1 hour, time: time, key: sid}", "crossings: {data: a.csv}"),
                ("in: crossings", "in: across"),
            ],
            {},
            "point 'crossings': it was on an arc and is stored data",
        ),
        (
            [("max(wind) as wind", "max(wind) as gust")],
            {"restart": ["gusts"]},
            "output 'gusts': its schema changes, .*'gusts.csv': give it another sink, or another name",
        ),
        (
            [("where: n > 3}", "where: n > 3}\n  more: {op: map, in: many, select: n}"), ("from: many", "from: more")],
            {},
            "output 'alarms': its schema changes, so what was delivered ends; choices: restart it, or give",
        ),
        (
            [('select: "sum(n) as n"', 'select: "sum(n) as m"')],
            {"restart": ["sums"]},
            "view 'daily': its schema changes",
        ),
    ],
)
def test_refused(edits: list[tuple[str, str]], options: dict[str, Any], message: str) -> None:
    with pytest.raises(RunError, match=message):
        compare(OLD, network(*edits), **options)


def test_the_nearest_causes_are_told() -> None:
    new = network(("pos >= 30", "pos >= 40"), ("on: left.sid = right.sid", "on: left.sid + 0 = right.sid"))
    with pytest.raises(RunError, match=r"'sorted' \('named' before it changed\)"):
        compare(OLD, new)


def test_boxes_come_and_go() -> None:
    new = network(
        ("  sums: {op: aggregate, in: counts", "  hours: {op: aggregate, in: counts"), ("from: sums", "from: hours")
    )
    change = compare(OLD, new, restart=["daily"], flush=["sums"])
    assert (change.added, change.removed, change.flushed) == (("hours",), ("sums",), ("sums",))
    assert (change.affected, change.begins) == (("sums",), ("hours",))
    assert change.outputs_changed == ("daily",)
    assert change.points_changed == change.points_restarted == ("daily",)
    assert change.summary() == (
        "keeps 7 boxes; adds 'hours'; removes 'sums'; flushes 'sums'; changes the output 'daily'; restarts the point "
        "'daily'"
    )


def test_a_box_that_keeps_state_from_now_on() -> None:
    """There is nothing to lose, so nothing to decide."""
    new = network(("{op: filter, in: counts, where: n > 3}", "{op: bsort, in: counts, order: {on: time}}"))
    change = compare(OLD, new)
    assert change.replaced == change.begins == ("many",)


def test_only_the_name_of_what_is_read_changes() -> None:
    change = compare(OLD, network(("in: crossings", "in: across.1")))
    assert change.none


def test_sources_and_outputs() -> None:
    new = network(
        ("weather: {schema: {time: bigint, wind: int}}", "rain: {schema: {time: bigint, wind: int}, push: true}"),
        ("in: weather", "in: rain"),
        ("pos: int}, push: true}", "pos: int}, source: a.csv}"),
        ("[[0, 1], [5, 0]]", "[[0, 1], [9, 0]]"),
        ("  gusts: {from: gusts, sink: gusts.csv}", "  rain: {from: gusts}"),
    )
    change = compare(OLD, new, restart=["gusts"])
    assert change.sources_added == ("rain",)
    assert change.sources_removed == ("weather",)
    assert change.sources_changed == ("positions",)
    assert change.outputs_added == ("rain",)
    assert change.outputs_removed == ("gusts",)
    assert change.outputs_changed == ("alarms",)
    assert change.outputs_restarted == ()
    assert change.kept == tuple(name for name in ALL_BOXES if name != "gusts")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("from: many,", "from: many, keep: 1h,"),
        ("from: many,", "from: many, sink: a.csv,"),
        ("from: many,", "from: many, roll: 1h,"),
        ("from: many,", "from: counts,"),
        ("[5, 0]", "[6, 0]"),
    ],
)
def test_what_changes_an_output(before: str, after: str) -> None:
    change = compare(OLD, network((before, after)))
    assert (change.outputs_changed, change.outputs_restarted) == (("alarms",), ())
    assert change.kept == ALL_BOXES


def test_outputs_with_other_fields_begin_anew() -> None:
    edits = [("max(wind) as wind", "max(wind) as gust"), ("gusts.csv", "others.csv")]
    change = compare(OLD, network(*edits), restart=["gusts"])
    assert change.restarted == change.outputs_changed == change.outputs_restarted == ("gusts",)
    edits[1] = ("sink: gusts.csv", 'sink: "-"')
    old = network(edits[1])
    assert compare(old, network(*edits), restart="all").outputs_restarted == ("gusts",)
    assert compare(OLD, network(edits[0], ("gusts.csv", "others.csv")), restart="gusts").summary() == (
        "keeps 7 boxes; restarts 'gusts'; restarts the output 'gusts'"
    )


def test_views_are_outputs_and_points() -> None:
    new = network(("sum(n) as n", "sum(n) as m"))
    change = compare(OLD, new, restart=["sums", "daily"])
    assert change.outputs_restarted == change.points_restarted == ("daily",)
    new = network(("daily: {from: sums}", "daily: {from: sums, keep: 2h, qos: {latency: [[0, 1], [9, 0]]}}"))
    change = compare(OLD, new)
    assert change.outputs_changed == change.points_changed == ("daily",)
    assert change.points_restarted == ()


def test_points() -> None:
    assert compare(OLD, network(("keep: 1 hour", "keep: all"))).points_changed == ("crossings",)
    key = network(("key: sid", "key: pos"))
    change = compare(OLD, key, restart=["crossings"])
    assert change.points_changed == change.points_restarted == ("crossings",)
    assert change.kept == ALL_BOXES
    assert change.summary() == "keeps 8 boxes; restarts the point 'crossings'"
    new = network(("  crossings: {on: across", "  moves: {on: positions"), ("in: crossings", "in: across"))
    change = compare(OLD, new)
    assert (change.points_added, change.points_removed) == (("moves",), ("crossings",))
    higher = compare(OLD, HIGHER, keep="all")
    assert higher.points_changed == ()  # its history stays what passed


def test_stored_data_is_read_again() -> None:
    change = compare(OLD, OLD, refresh=["sectors"])
    assert change.replaced == change.affected == change.begins == ("named",)
    assert change.refreshed == ("sectors",)
    assert change.summary() == "keeps 7 boxes; replaces 'named'; reads 'sectors' again"


def test_the_schedule() -> None:
    assert compare(OLD, network(("policy: qos", "policy: round-robin"))).schedule == ("policy",)
    with pytest.raises(RunError, match="'train' cannot change"):
        compare(OLD, network(("train: 100", "train: 10")))


def test_a_fragment_is_attached_and_detached() -> None:
    ask = {"op": "aggregate", "in": "crossings", "select": "count(*) as n", "order": {"on": "time"}, "size": 60}
    fragment = read_fragment({"attach": "ask", "boxes": {"b": ask}, "outputs": {"o": {"from": "b"}}})
    new = check(graft(load(NETWORK), fragment), tables=GIVEN)
    attached, detached = compare(OLD, new), compare(new, OLD, flush=["ask/b"])
    assert attached == Changes(kept=ALL_BOXES, added=("ask/b",), begins=("ask/b",), outputs_added=("ask/o",))
    assert detached.removed == detached.flushed == detached.affected == ("ask/b",)
    assert detached.kept == ALL_BOXES


# Laws


@examples(60)
@given(living_mappings())
def test_a_network_is_as_it_is(mapping: dict[str, Any]) -> None:
    one = checked(mapping)
    assert compare(one, checked(mapping)) == Changes(kept=tuple(box.name for box in one.network.boxes))


def same(one: CheckedNetwork, other: CheckedNetwork, name: str) -> bool:
    """Whether a source or box, and everything before it, is the same in both networks: word for word as in live.md."""
    if name in one.inputs and name in other.inputs:
        return (
            one.network.box(name).spec == other.network.box(name).spec
            and one.inputs[name] == other.inputs[name]
            and all(same(one, other, owner(item)) for item in one.inputs[name] if not isinstance(item, Table))
        )
    return name not in one.inputs and name not in other.inputs and one.arcs.get(name) == other.arcs.get(name)


@examples(150)
@given(st.data())
def test_changes_are_classified_as_by_definition(data: st.DataObject) -> None:
    mapping = data.draw(living_mappings())
    new_mapping = data.draw(edited(mapping))
    old = checked(mapping)
    try:
        new = checked(new_mapping)
    except NetworkError:
        assume(False)
    before, after = old.network, new.network
    stateful = {box.name for box in before.boxes if box.spec.stateful}
    both = [box.name for box in after.boxes if box.name in old.inputs]
    changed = [name for name in both if not same(old, new, name)]
    decide = [name for name in changed if name in stateful]
    change = compare(old, new, restart="all", flush="all")
    assert change.added == tuple(box.name for box in after.boxes if box.name not in old.inputs)
    assert change.removed == tuple(box.name for box in before.boxes if box.name not in new.inputs)
    assert change.kept == tuple(name for name in both if name not in changed)
    assert change.replaced == tuple(name for name in changed if name not in stateful)
    assert change.restarted == tuple(decide)
    assert change.carried == ()
    ended = {*decide, *change.removed}
    assert change.flushed == tuple(box.name for box in before.boxes if box.name in ended & stateful)
    assert change.affected == tuple(box.name for box in before.boxes if box.name in {*changed, *change.removed})
    assert change.begins == tuple(box.name for box in after.boxes if box.name in {*changed, *change.added})
    keepable = {
        name
        for name in decide
        if before.box(name).spec == after.box(name).spec and old.input_schemas(name) == new.input_schemas(name)
    }
    others = [*change.outputs_restarted, *change.points_restarted]
    if set(decide) == keepable:
        carried = compare(old, new, restart=others, keep="all")
        assert (carried.carried, carried.restarted) == (tuple(decide), ())
        assert (carried.kept, carried.replaced) == (change.kept, change.replaced)
    else:
        with pytest.raises(RunError, match="keep: its state cannot stay"):
            compare(old, new, restart=others, keep="all")
    if decide or others:
        with pytest.raises(RunError, match=r"keeps state, and|its schema changes|it was on|choices: restart"):
            compare(old, new)
    else:
        assert compare(old, new, flush="all") == change
    if decide:
        some = set(data.draw(st.lists(st.sampled_from(decide), unique=True)))
        mixed = compare(old, new, restart=[*others, *(set(decide) - keepable), *some], keep=sorted(keepable - some))
        assert set(mixed.carried) == keepable - some


@examples(60)
@given(st.data())
def test_attaching_changes_nothing_else(data: st.DataObject) -> None:
    mapping = data.draw(living_mappings())
    plain = load(mapping)
    ask = read_fragment(data.draw(fragment_mappings(mapping)), network=plain)
    old, new = check(plain, tables=TABLES), check(graft(plain, ask), tables=TABLES)
    there = compare(old, new)
    assert there.kept == tuple(box.name for box in old.network.boxes)
    assert there.affected == ()
    assert all(name.startswith("ask/") for name in (*there.added, *there.outputs_added))
    back = compare(new, old)
    assert (back.kept, back.removed, back.begins) == (there.kept, there.added, ())
