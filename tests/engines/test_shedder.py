"""Load shedding in runs: what is dropped where, how it is counted, and what is left alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

import headway as hw
from tests.engines.overloads import CALM, PEAK, SOON, TOLERANT, box, network, numbers, output, simulate

ONE = network({"b": box("s")}, {"o": output("b", TOLERANT)})
TWO = network({"x": box("s", "7ms"), "y": box("s", "3ms")}, {"ox": output("x", TOLERANT), "oy": output("y", SOON)})
"""They share the source."""
FORK = network(
    {"m": box("s", "1ms"), "x": box("m", "7ms"), "y": box("m", "2ms")},
    {"ox": output("x", TOLERANT), "oy": output("y", SOON)},
)
"""They share a box."""
BOTH_UNITS = pytest.mark.parametrize("policy", ["round-robin/box/10", "round-robin/superbox/10"])


def shed(result: hw.RunResult, name: str = "o") -> int:
    count: int = result.summary["outputs"][name]["shed"]
    return count


def assert_adds_up(result: hw.RunResult, name: str, came: int, reason: str = "random") -> None:
    """Assert that all that came to an output's drop box was delivered or is counted as dropped."""
    found = result.summary["outputs"][name]
    assert found["tuples"] == result.outputs[name].num_rows
    assert found["tuples"] + found["shed"] == came
    assert found["shed_by"] == ({reason: found["shed"]} if found["shed"] else {})
    assert found["kept"] == pytest.approx(found["tuples"] / came)


def assert_all(result: hw.RunResult, name: str, came: int) -> None:
    """Assert that an output has lost nothing."""
    assert numbers(result, name) == list(range(came))
    assert_adds_up(result, name, came)
    assert result.summary["outputs"][name]["shed"] == 0


# Nothing to do


@pytest.mark.parametrize("off", [None, False, "off"])
def test_off_is_as_if_there_was_nothing(off: object) -> None:
    result = simulate(ONE, shed=off)
    assert_all(result, "o", 1300)
    told = result.summary["shedding"]
    assert (told["strategy"], told["dropped"], told["active"], told["count"], told["changes"]) == (None, {}, {}, 0, [])
    assert result.summary["overload"]["spells"] == 1, "that it is overloaded is seen all the same"
    assert result.summary["outputs"]["o"]["outside"] > 0.3


@pytest.mark.parametrize("how", [True, "on", "loss", "uniform", {"by": "uniform", "headroom": 0.8}])
def test_without_an_overload_nothing_is_dropped(how: object) -> None:
    calm = network({"b": box("s")}, {"o": output("b", TOLERANT)}, CALM)
    result = simulate(calm, shed=how)
    assert_all(result, "o", 200)
    assert result.outputs["o"] == simulate(calm).outputs["o"]
    assert (result.summary["shedding"]["changes"], result.summary["shedding"]["active"]) == ([], {})
    assert result.summary["overload"]["spells"] == 0


def test_a_summary_says_why_nothing_was_dropped_in_an_overload() -> None:
    spared = network({"x": box("s", "7ms"), "y": box("s", "3ms")}, {"ox": output("x", TOLERANT), "oy": output("y", {})})
    result = simulate(spared, shed="uniform")
    assert result.summary["overload"]["spells"] == 1
    assert result.summary["shedding"]["dropped"] == {}
    held = result.summary["shedding"]["held"]
    assert held["looks"] > 0
    assert held["reason"].startswith("'uniform' finds nothing that may be dropped: 'oy' may lose nothing")
    assert simulate(TWO, shed="loss").summary["shedding"]["dropped"]
    assert simulate(TWO, shed=None).summary["shedding"]["held"] is None


def test_sources_that_come_in_turn_are_never_shed() -> None:
    """They wait until there is time: a file does not lose its last rows because they have been read."""
    made = network({"b": box("s")}, {"o": output("b", TOLERANT)})
    del made["sources"]["s"]["source"]
    result = simulate(made, inputs={"s": [(at, 0.5) for at in range(1500)]}, shed=True)
    assert_all(result, "o", 1500)


def test_a_network_may_ask_for_it_and_a_run_may_refuse() -> None:
    made = network({"b": box("s")}, {"o": output("b", TOLERANT)}, PEAK, shed="on")
    assert shed(simulate(made)) > 0
    assert simulate(made, shed="uniform").summary["shedding"]["strategy"] == "uniform"
    assert simulate(made, shed=False).summary["shedding"]["strategy"] is None


# One output


@pytest.fixture(scope="module")
def overloaded() -> hw.RunResult:
    return simulate(ONE, shed=True, trace=True)


@pytest.fixture(scope="module")
def whole() -> hw.RunResult:
    """The same without shedding."""
    return simulate(ONE)


def test_what_is_dropped_is_counted_and_adds_up(overloaded: hw.RunResult) -> None:
    assert_adds_up(overloaded, "o", 1300)
    assert 200 < shed(overloaded) < 700
    summary = overloaded.summary
    assert summary["shedding"]["dropped"] == {"random": shed(overloaded)}
    assert summary["boxes"]["b"]["tuples_in"] == 1300 - shed(overloaded), "it has cost nothing"
    found = summary["outputs"]["o"]
    assert found["loss_utility"] == pytest.approx(0.5 + 0.5 * found["kept"])
    assert found["worth"] == pytest.approx(found["utility"] * found["loss_utility"])


def test_results_are_some_of_those_without_shedding_in_their_order(
    overloaded: hw.RunResult, whole: hw.RunResult
) -> None:
    every = {tuple(row.items()) for row in whole.outputs["o"].to_pylist()}
    assert all(tuple(row.items()) in every for row in overloaded.outputs["o"].to_pylist())
    assert numbers(overloaded) == sorted(set(numbers(overloaded)))


def test_latency_is_good_again_and_drop_boxes_are_removed(overloaded: hw.RunResult, whole: hw.RunResult) -> None:
    summary = overloaded.summary
    assert summary["outputs"]["o"]["outside"] < 0.05
    assert whole.summary["outputs"]["o"]["outside"] > 0.3
    assert summary["shedding"]["active"] == {}
    assert summary["outputs"]["o"]["worth"] > 1.2 * whole.summary["outputs"]["o"]["worth"]
    late = [number for number in range(1300) if number >= 1300 - 100]  # of the last two seconds
    assert set(late) <= set(numbers(overloaded)), "nothing is dropped any more"


def test_every_change_has_a_reason(overloaded: hw.RunResult) -> None:
    changes = overloaded.summary["shedding"]["changes"]
    assert overloaded.summary["shedding"]["count"] == len(changes) < 12
    assert {change["subject"] for change in changes} == {"s -> b"}
    assert changes[0]["change"].startswith("inserted: keeps ")
    assert changes[0]["change"].endswith("%, at random")
    assert 2 < changes[0]["moment"] <= 4
    assert "s/s of work" in changes[0]["reason"]
    assert all("instead of" in change["change"] for change in changes[1:-1])
    assert changes[-1]["change"] == "removed"
    assert "nothing is dropped" in changes[-1]["reason"]
    assert 6 < changes[-1]["moment"] < 12
    begins, ends = overloaded.summary["overload"]["changes"]
    assert (begins["change"], ends["change"]) == ("begins", "ends")
    assert "box 'b'" in begins["reason"]
    assert overloaded.trace is not None
    told = [(change.kind, change.what) for change in overloaded.trace.changes if change.kind == "shed"]
    assert told == [("shed", change["change"]) for change in changes]


def test_the_same_again(overloaded: hw.RunResult) -> None:
    again = simulate(ONE, shed=True)
    assert again.outputs["o"] == overloaded.outputs["o"]
    assert again.summary["shedding"] == overloaded.summary["shedding"]


def test_drop_boxes_that_stand_at_the_end_are_told() -> None:
    made = network({"b": box("s")}, {"o": output("b", TOLERANT)}, [["1s", 50], ["4s", 250]])
    result = simulate(made, shed=True)
    assert_adds_up(result, "o", 1050)
    (name,) = result.summary["shedding"]["active"]
    assert name == "s -> b"
    assert 0.05 <= result.summary["shedding"]["active"][name] < 0.8


@pytest.mark.parametrize(
    ("settings", "least"),
    [({"most": 0.2}, 0.8), ({"outputs": {"o": 0.3}}, 0.7), ({"in_all": 0.1}, 0.9), ({"outputs": {"o": 0}}, 1.0)],
)
def test_no_more_than_may_be_dropped(settings: Mapping[str, Any], least: float) -> None:
    result = simulate(ONE, shed=settings)
    assert_adds_up(result, "o", 1300)
    assert result.summary["outputs"]["o"]["kept"] >= least - 0.02
    assert shed(result) > 0 or least == 1.0


# Several outputs


def test_who_tolerates_nothing_loses_nothing() -> None:
    result = simulate(TWO, shed=True)
    assert_all(result, "oy", 1300)
    assert_adds_up(result, "ox", 1300)
    assert shed(result, "ox") > 300
    assert {change["subject"] for change in result.summary["shedding"]["changes"]} == {"s -> x"}
    assert result.summary["shedding"]["active"] == {}
    assert result.summary["outputs"]["oy"]["outside"] < simulate(TWO).summary["outputs"]["oy"]["outside"] / 2


@BOTH_UNITS
def test_the_drop_box_stands_behind_a_shared_box(policy: str) -> None:
    result = simulate(FORK, shed=True, policy=policy)
    assert_all(result, "oy", 1300)
    assert_adds_up(result, "ox", 1300)
    assert shed(result, "ox") > 300
    assert {change["subject"] for change in result.summary["shedding"]["changes"]} == {"m -> x"}
    boxes = result.summary["boxes"]
    assert (boxes["m"]["tuples_in"], boxes["y"]["tuples_in"]) == (1300, 1300)
    assert boxes["x"]["tuples_in"] == 1300 - shed(result, "ox")
    assert result.summary["shedding"]["active"] == {}


@BOTH_UNITS
def test_outputs_that_all_may_lose_lose_before_what_they_share(policy: str) -> None:
    made = network(
        {"m": box("s", "8ms"), "x": box("m", "1ms"), "y": box("m", "1ms")},
        {"ox": output("x", TOLERANT), "oy": output("y", TOLERANT)},
    )
    result = simulate(made, shed=True, policy=policy)
    assert "s -> m" in {change["subject"] for change in result.summary["shedding"]["changes"]}
    came = result.summary["boxes"]["m"]["tuples_in"]
    assert came < 1000
    for name in ("ox", "oy"):
        lost_before = 1300 - came
        assert result.summary["outputs"][name]["tuples"] + shed(result, name) - lost_before == came
        assert result.summary["outputs"][name]["kept"] == pytest.approx(
            result.summary["outputs"][name]["tuples"] / 1300, abs=0.01
        )
    assert result.summary["shedding"]["active"] == {}


def test_uniformly_everybody_loses() -> None:
    result = simulate(TWO, shed={"by": "uniform", "allowed": ["ox", "oy"]})
    for name in ("ox", "oy"):
        assert_adds_up(result, name, 1300)
    kept = [result.summary["outputs"][name]["kept"] for name in ("ox", "oy")]
    assert kept[0] == pytest.approx(kept[1], abs=0.06)
    assert kept[0] < 0.9


@pytest.mark.parametrize(("policy", "workers"), [("round-robin/box/10", 1), ("round-robin/superbox/10", 2)])
def test_a_box_with_several_inputs_behind_drop_boxes(policy: str, workers: int) -> None:
    """What is merged stays in order, and nothing waits for tuples that were dropped."""
    half = [["2s", 25], ["3s", 150], ["7s", 25]]
    made = network(
        {"u": {"op": "union", "in": ["s", "t"]}, "b": box("u", "10ms"), "x": box("s", "1us")},
        {"o": output("b", TOLERANT), "ox": output("x")},
        half,
        half,
    )
    result = simulate(made, shed=True, policy=policy, workers=workers)
    came = result.summary["tuples_in"]
    assert_adds_up(result, "o", came)
    assert shed(result) > 50
    assert_all(result, "ox", came // 2)
    subjects = {change["subject"] for change in result.summary["shedding"]["changes"]}
    assert subjects == {"s -> u, t -> u"}
    rows = [(row["a"], row["v"]) for row in result.outputs["o"].to_pylist()]
    plain = [(row["a"], row["v"]) for row in simulate(made, policy=policy).outputs["o"].to_pylist()]
    places = {row: at for at, row in enumerate(plain)}
    assert [places[row] for row in rows] == sorted(places[row] for row in rows)
    assert result.summary["shedding"]["active"] == {}


@pytest.mark.parametrize("policy", ["qos/superbox/mc/auto", "fifo/box/1", "preemptive-rate-based/box"])
def test_any_policy(policy: str) -> None:
    result = simulate(TWO, shed=True, policy=policy)
    assert_all(result, "oy", 1300)
    assert_adds_up(result, "ox", 1300)
    assert shed(result, "ox") > 300
    assert result.summary["shedding"]["active"] == {}


# By value


VALUED = {**SOON, "value": {"field": "v", "graph": [[0, 0], [60, 0], [65, 1]]}}


def kept_by_value(result: hw.RunResult, whole: hw.RunResult) -> tuple[float, float]:
    """Return which share was kept of the tuples whose value is worth 1, and of those whose value is worth nothing."""
    came, left = (one.outputs["o"].column("v").to_pylist() for one in (whole, result))
    shares = [
        len([value for value in left if low <= value <= high]) / len([value for value in came if low <= value <= high])
        for low, high in ((65, 100), (0, 60))
    ]
    return shares[0], shares[1]


def test_the_least_valuable_go_first() -> None:
    made = network({"b": box("s")}, {"o": output("b", VALUED)})
    whole = simulate(made)
    by_value, by_chance = simulate(made, shed=True), simulate(made, shed={"by_value": False})
    assert_adds_up(by_value, "o", 1300, "value")
    assert_adds_up(by_chance, "o", 1300)
    assert shed(by_value) > 300
    best, worst = kept_by_value(by_value, whole)
    assert best > 0.97
    assert worst < 0.65
    best, worst = kept_by_value(by_chance, whole)
    assert best == pytest.approx(worst, abs=0.12)
    assert best < 0.85
    told = [one.summary["outputs"]["o"]["value_utility"] for one in (whole, by_chance, by_value)]
    assert told[2] > 1.25 * told[0]
    assert told[1] == pytest.approx(told[0], rel=0.1)
    assert by_value.summary["shedding"]["changes"][0]["change"].endswith("%, by 'v', backward through 'b'")
    assert by_value.summary["shedding"]["active"] == {}


def test_values_are_followed_backward_through_boxes() -> None:
    """The output's field is twice the source's; the drop box stands before the shared box's expensive reader."""
    worth = {"field": "f", "graph": [[0, 0], [120, 0], [130, 1]]}
    boxes = {
        "m": box("s", "1ms"),
        "f": {"op": "map", "in": "m", "select": "a, v * 2 as f"},
        "b": box("f", "9ms"),
        "y": box("m", "1us"),
    }
    made = network(boxes, {"o": output("b", {**SOON, "value": worth}), "oy": output("y", SOON)})
    whole, result = simulate(made), simulate(made, shed=True)
    assert_adds_up(result, "o", 1300, "value")
    assert_all(result, "oy", 1300)
    came, left = (one.outputs["o"].column("f").to_pylist() for one in (whole, result))
    assert len([value for value in left if value >= 130]) > 0.97 * len([value for value in came if value >= 130])
    assert len([value for value in left if value <= 120]) < 0.65 * len([value for value in came if value <= 120])
    assert {change["subject"] for change in result.summary["shedding"]["changes"]} == {"m -> f"}


# Estimates


def test_counts_are_estimated_behind_a_drop_box() -> None:
    """A window of 100 arrival numbers holds 100 tuples; behind the drop box it holds fewer."""
    counting = {"op": "aggregate", "in": "b", "select": "count(*) as n", "order": {"on": "a"}, "size": 100}
    found = []
    for approximate in (True, False):
        made = network({"b": box("s"), "w": {**counting, "approximate": approximate}}, {"o": output("w", TOLERANT)})
        found.append(simulate(made, shed=True))
    estimated, plain = ({row["a"]: row for row in one.outputs["o"].to_pylist()} for one in found)
    assert found[0].summary["shedding"]["dropped"] == found[1].summary["shedding"]["dropped"]
    thinned = [at for at, row in plain.items() if row["n"] < 90]
    assert len(thinned) >= 6
    assert min(row["n"] for row in plain.values()) < 60
    for at, row in estimated.items():
        if plain[at]["n"] == 100:
            assert (row["n"], row["n_error"]) == (pytest.approx(100), 0.0)
        else:
            assert row["n_error"] < 60
    within = [at for at in thinned if abs(estimated[at]["n"] - 100) <= estimated[at]["n_error"]]
    assert len(within) >= 0.75 * len(thinned), [estimated[at] for at in thinned]
    assert all(plain[at]["n"] + estimated[at]["n_error"] < 100 for at in thinned if plain[at]["n"] < 60)
    mean = sum(estimated[at]["n"] for at in thinned) / len(thinned)
    assert mean == pytest.approx(100, abs=12), "they are not biased"


# For real

QUICK = [["200ms", 100], ["1s", 1000], ["300ms", 50]]
"""1,035 tuples in 1.5 s; with boxes of 2 ms the load is 0.2, then 2, then 0.1."""
OFTEN = {"interval": "100ms", "drain": "500ms"}
AT_ONCE = {"latency": [[0, 1], [0.1, 1], [0.2, 0]], "loss": [[100, 1], [0, 0.5]]}
"""Without dropping most of it would be late and worth nothing: where nobody would be late, nothing is dropped."""


def test_on_the_local_engine() -> None:
    made = network({"x": box("s", "2ms"), "y": box("s", "0s")}, {"ox": output("x", AT_ONCE), "oy": output("y")}, QUICK)
    result = hw.run(made, engine="local", policy="round-robin/box/10", shed=OFTEN)
    assert_all(result, "oy", 1035)
    assert_adds_up(result, "ox", 1035)
    assert shed(result, "ox") > 50
    assert numbers(result, "ox") == sorted(set(numbers(result, "ox")))
    changes = result.summary["shedding"]["changes"]
    assert {change["subject"] for change in changes} == {"s -> x"}
    assert changes[0]["change"].startswith("inserted: keeps ")


@pytest.mark.parametrize(
    ("policy", "workers"),
    [
        ("round-robin/superbox/10", 1),
        pytest.param("round-robin/box/10", 1, marks=pytest.mark.slow),
        ("round-robin/box/10", 2),
    ],
)
def test_behind_a_shared_box_on_the_local_engine(policy: str, workers: int) -> None:
    """Also where the shared box hands its trains to the branch directly, because it alone reads them."""
    made = network(
        {"m": box("s", "0s"), "x": box("m", f"{workers * 2}ms")},
        {"ox": output("x", AT_ONCE), "om": output("m", SOON)},
        QUICK,
    )
    result = hw.run(made, engine="local", policy=policy, shed=OFTEN, workers=workers)
    assert_all(result, "om", 1035)
    assert {change["subject"] for change in result.summary["shedding"]["changes"]} == {"m -> x"}
    lost = shed(result, "ox")
    assert lost > 50
    assert result.summary["boxes"]["x"]["tuples_in"] == result.outputs["ox"].num_rows == 1035 - lost
    assert numbers(result, "ox") == sorted(set(numbers(result, "ox")))
    if "superbox" not in policy:  # how many came to a drop box there: see process.test_drops
        assert_adds_up(result, "ox", 1035)
