"""The cut: which outputs share a query, where boxes run, and what a saved state depends on."""

from __future__ import annotations

import copy
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import headway as hw
from headway.checking import check
from headway.engines.spark.driver.cut import Cut, cut, fingerprint, make_work
from headway.engines.spark.wire.messages import CutUnit
from headway.errors import NetworkError
from headway.files import load
from headway.program import Program, compile_program
from tests.streams import Case, networks

TIGHT = {"latency": [[0, 1], [2, 1], [6, 0]]}
LOOSE = {"latency": [[0, 1], [20, 1], [40, 0]]}


def checked(boxes: dict[str, Any], outputs: dict[str, Any], sources: str = "s r") -> Program:
    schema = {"a": "int", "k": "int", "v": "int"}
    given = {name: one if isinstance(one, dict) else {"from": one} for name, one in outputs.items()}
    mapping = {
        "network": "cut",
        "sources": {name: {"schema": schema} for name in sources.split()},
        "boxes": boxes,
        "outputs": given,
    }
    return compile_program(hw.check(hw.load(mapping)))


def where(arc: str, text: str = "v > 0") -> dict[str, Any]:
    return {"op": "filter", "in": arc, "where": text}


def count(arc: str, by: str | None = "k") -> dict[str, Any]:
    order = {"on": "a", "by": [by]} if by else {"on": "a"}
    return {"op": "aggregate", "in": arc, "select": "cast(count(*) as int) as v", "order": order, "size": 10}


def sort(arc: str) -> dict[str, Any]:
    return {"op": "bsort", "in": arc, "order": {"on": "a"}}


def only(found: Cut) -> CutUnit:
    (unit,) = found.units
    return unit


def outputs_of(found: Cut) -> list[tuple[str, ...]]:
    return [unit.outputs for unit in found.units]


def where_of(unit: CutUnit) -> dict[str, str]:
    """Return each box's place in short: front, spread, or a shard's number."""
    return {
        name: "front" if place.front else "spread" if place.spread else str(place.shard)
        for name, place in unit.placements.items()
    }


class TestUnits:
    def test_outputs_with_one_graph_and_a_common_source_share_a_query(self) -> None:
        boxes = {"one": where("s"), "two": where("s"), "three": where("s"), "other": where("r")}
        outputs = {
            "tight": {"from": "one", "qos": TIGHT},
            "loose": {"from": "two", "qos": LOOSE},
            "also": {"from": "three", "qos": TIGHT},
            "apart": {"from": "other", "qos": TIGHT},
        }
        network = checked(boxes, outputs)
        assert outputs_of(cut(network, 2)) == [("tight", "also"), ("loose",), ("apart",)]
        assert outputs_of(cut(network, 2, "one")) == [("tight", "loose", "also"), ("apart",)]
        assert outputs_of(cut(network, 2, "output")) == [("tight",), ("loose",), ("also",), ("apart",)]

    def test_an_output_that_reads_both_connects_two_groups(self) -> None:
        boxes = {"both": {"op": "union", "in": ["s", "r"]}}
        network = checked(boxes, {"first": "s", "second": "r", "third": "both"})
        assert outputs_of(cut(network, 2)) == [("first", "second", "third")]

    def test_groups_by_name_and_the_rest_by_itself(self) -> None:
        network = checked({"one": where("s")}, {"a": "s", "b": "one", "c": "r", "d": "s"})
        found = cut(network, 2, [["a", "c"], ["d"]])
        assert outputs_of(found) == [("a", "c"), ("d",), ("b",)]
        assert [unit.sources for unit in found.units] == [("s", "r"), ("s",), ("s",)]
        assert [unit.why for unit in found.units] == ["as asked", "as asked", "not named in units"]

    def test_a_shared_box_is_owned_once(self) -> None:
        boxes = {"base": where("s"), "one": where("base"), "two": where("base")}
        first, second = cut(checked(boxes, {"a": "one", "b": "two"}), 2, "output").units
        assert (first.boxes, second.boxes) == (("base", "one"), ("base", "two"))
        assert [set(first.owned), set(second.owned)] == [{"base", "one"}, {"two"}]

    def test_boxes_that_lead_nowhere_go_along_or_by_themselves(self) -> None:
        boxes = {"used": where("s"), "idle": count("s"), "lost": where("r")}
        found = cut(checked(boxes, {"out": "used"}), 2)
        assert [(unit.outputs, unit.boxes) for unit in found.units] == [(("out",), ("used", "idle")), ((), ("lost",))]
        assert found.units[1].name == "lost"

    def test_a_query_without_boxes_in_shards_is_stateless(self) -> None:
        boxes = {"one": where("s"), "two": count("s")}
        first, second = cut(checked(boxes, {"a": "one", "b": "two"}), 2, "output").units
        assert not first.stateful
        assert second.stateful

    @pytest.mark.parametrize(
        ("units", "said"),
        [
            ("each", "unknown cut 'each'"),
            ([["out", "nowhere"]], "unknown output 'nowhere'"),
            ([["out"], ["out"]], "output 'out' is named twice"),
            (["out"], "a list of lists of outputs is expected, not 'out'"),
            ([[]], "a list of lists of outputs is expected, not []"),
        ],
    )
    def test_what_cannot_be_asked(self, units: Any, said: str) -> None:
        with pytest.raises(NetworkError, match="schedule: units: ") as error:
            cut(checked({}, {"out": "s", "more": "s"}), 2, units)
        assert said in str(error.value)

    def test_errors_list_the_choices(self) -> None:
        network = checked({}, {"out": "s", "more": "s"})
        with pytest.raises(NetworkError) as error:
            cut(network, 2, "each")
        assert all(rule in str(error.value) for rule in ("qos", "one", "output", "lists of outputs"))
        with pytest.raises(NetworkError) as error:
            cut(network, 2, [["nowhere"]])
        assert all(name in str(error.value) for name in ("out", "more"))


class TestPlaces:
    def test_what_needs_neither_state_nor_order_runs_in_front(self) -> None:
        boxes = {
            "some": where("s"),
            "both": {"op": "union", "in": ["some", "r"]},
            "named": {"op": "map", "in": "both", "select": "a, k, v + 1 as v"},
            "sorted": sort("named"),
            "late": where("sorted"),
        }
        unit = only(cut(checked(boxes, {"out": "late"}), 1))
        assert where_of(unit) == {"some": "front", "both": "front", "named": "front", "sorted": "0", "late": "0"}

    def test_a_universal_box_runs_in_front_unless_it_counts(self) -> None:
        boxes = {
            "drawn": {"op": "universal", "in": ["s", "r"], "selectivity": 0.5},
            "even": {"op": "universal", "in": "drawn", "selectivity": 0.5, "mode": "even"},
            "late": {"op": "universal", "in": "even", "selectivity": 0.5},
        }
        unit = only(cut(checked(boxes, {"out": "late"}), 2))
        assert where_of(unit) == {"drawn": "front", "even": "0", "late": "0"}
        assert unit.placements["even"].why == "keeps state over all its tuples in their order"

    def test_aggregates_by_fields_are_spread_with_the_filters_and_maps_behind_them(self) -> None:
        boxes = {
            "counts": count("s"),
            "many": where("counts", "v > 3"),
            "named": {"op": "map", "in": "many", "select": "v"},
        }
        unit = only(cut(checked(boxes, {"out": "named"}), 4))
        assert set(where_of(unit).values()) == {"spread"}
        assert {place.by for place in unit.placements.values()} == {("k",)}

    @pytest.mark.parametrize(
        ("boxes", "why"),
        [
            ({"counts": count("s", None)}, "keeps state over all its tuples in their order"),
            ({"counts": count("s"), "late": sort("counts")}, "not spread: boxes after it need its results in order"),
            ({"counts": count("s"), "late": {"op": "union", "in": ["counts", "s"]}}, "not spread: boxes after it"),
            ({"counts": count("s"), "late": {"op": "universal", "in": "counts"}}, "not spread: boxes after it"),
            ({"counts": {**count("s"), "size": None, "advance": {"when": "v > last.v"}}}, "keeps state"),
        ],
    )
    def test_what_is_not_spread(self, boxes: dict[str, Any], why: str) -> None:
        boxes = {name: {key: one for key, one in box.items() if one is not None} for name, box in boxes.items()}
        unit = only(cut(checked(boxes, {"out": list(boxes)[-1]}), 4))
        place = unit.placements["counts"]
        assert not place.spread
        assert place.why.startswith(why)

    def test_one_shard_needs_no_spreading(self) -> None:
        unit = only(cut(checked({"counts": count("s")}, {"out": "counts"}), 1))
        assert where_of(unit) == {"counts": "0"}

    def test_spreading_can_be_overridden(self) -> None:
        network = checked({"one": count("s"), "two": count("s")}, {"a": "one", "b": "two"})
        assert set(where_of(only(cut(network, 2, spread="none"))).values()) == {"0", "1"}
        assert where_of(only(cut(network, 2, spread=["two"]))) == {"one": "0", "two": "spread"}

    @pytest.mark.parametrize(
        ("spread", "said"),
        [
            ("most", "schedule: spread: unknown rule 'most'"),
            (["nobody"], "schedule: spread: unknown box 'nobody'"),
            (["late"], "box 'late' cannot be spread: this bsort has no independent partitions"),
            (["held"], "box 'held' cannot be spread: boxes after it need its results in order"),
        ],
    )
    def test_what_cannot_be_spread(self, spread: Any, said: str) -> None:
        network = checked({"free": count("s"), "held": count("s"), "late": sort("held")}, {"a": "free", "b": "late"})
        with pytest.raises(NetworkError) as error:
            cut(network, 2, spread=spread)
        assert said in str(error.value)
        assert "free" in str(error.value) or "auto" in str(error.value)

    def test_boxes_that_meet_share_a_shard_and_others_do_not(self) -> None:
        boxes = {
            "one": sort("s"),
            "two": sort("r"),
            "both": {"op": "union", "in": ["one", "two"]},
            "alone": sort("s"),
        }
        places = where_of(only(cut(checked(boxes, {"a": "both", "b": "alone"}), 2, "one")))
        assert places["one"] == places["two"] == places["both"]
        assert places["alone"] != places["one"]

    def test_filters_go_where_several_send_parts_of_one_stream(self) -> None:
        boxes = {
            "high": where("s", "v > 5"),
            "low": where("s", "v < 3"),
            "highs": count("high"),
            "lows": count("low"),
        }
        pulled = only(cut(checked(boxes, {"a": "highs", "b": "lows"}), 2))
        assert where_of(pulled) == dict.fromkeys(boxes, "spread")
        assert pulled.placements["high"].why == "with other readers of s in this place"

    def test_a_filter_by_itself_stays_in_front(self) -> None:
        unit = only(cut(checked({"high": where("s"), "highs": count("high")}, {"a": "highs"}), 2))
        assert where_of(unit) == {"high": "front", "highs": "spread"}

    def test_a_filter_that_is_also_shown_stays_in_front(self) -> None:
        boxes = {"high": where("s"), "low": where("s", "v < 3"), "highs": count("high"), "lows": count("low")}
        unit = only(cut(checked(boxes, {"a": "highs", "b": "lows", "c": "high"}), 2))
        assert where_of(unit)["high"] == "front"


@settings(deadline=None)
@given(case=networks(), shards=st.integers(1, 4), units=st.sampled_from(("qos", "one", "output")))
def test_every_cut_is_whole(case: Case, shards: int, units: str) -> None:
    network = hw.check(hw.load(case.twin.mapping()))
    found = cut(compile_program(network), shards, units)
    boxes = {box.name: box for box in network.order}
    assert sorted(name for unit in found.units for name in unit.outputs) == sorted(network.outputs)
    assert sorted(name for unit in found.units for name in unit.owned) == sorted(boxes)
    for unit in found.units:
        assert set(unit.placements) == set(unit.boxes)
        known = {*unit.boxes, *unit.sources}
        for name in unit.boxes:
            place = unit.placements[name]
            feeding = [item.partition(".")[0] for item in network.inputs[name] if isinstance(item, str)]
            assert known.issuperset(feeding)
            assert not place.front or not boxes[name].spec.stateful
            assert place.front or place.spread or place.shard in range(shards)
            for feeder in feeding:
                before = unit.placements.get(feeder)
                if before is not None and not before.front:  # what is in shards stays in its shard
                    assert (place.front, place.shard, place.by) == (False, before.shard, before.by)
            if place.spread and boxes[name].spec.stateful:
                assert boxes[name].spec.partitions


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
    for name, changes in (boxes or {}).items():
        network["boxes"][name] |= changes
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
