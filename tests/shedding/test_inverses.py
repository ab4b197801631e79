"""Backward interval propagation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from headway.checking import CheckedNetwork, check
from headway.columns import as_floats, from_pylist
from headway.errors import NetworkError
from headway.expressions import Scope, compile_expression, compile_predicate
from headway.expressions.parsing import parse_one
from headway.files import load
from headway.network.qos import Graph
from headway.network.schema import Schema
from headway.shedding.inverses import Form, Inverse, Route, form_of, propagate, truth_of
from headway.shedding.sites import Entry

SCHEMA = Schema.parse({"x": "double", "y": "int", "d": "decimal(10,2)", "s": "string", "b": "boolean", "a b": "int"})
SCOPE = Scope.of(SCHEMA)


def form(text: str) -> Form | None:
    return form_of(parse_one(compile_expression(text, SCOPE).sql), SCOPE)


@pytest.mark.parametrize(
    ("text", "slot", "a", "b"),
    [
        ("x", 0, 1, 0),
        ("(x * 9 / 5) + 32", 0, 1.8, 32),
        ("-x", 0, -1, 0),
        ("-(x - 3) * 2", 0, -2, 6),
        ("2 * (1 + x)", 0, 2, 2),
        ("10 - y", 1, -1, 10),
        ("y / 4", 1, 0.25, 0),
        ("cast(y as double) * 0.5", 1, 0.5, 0),
        ("cast(y as bigint)", 1, 1, 0),
        ("x + x - 1", 0, 2, -1),
        ("x * (2 + 3)", 0, 5, 0),
        ("x / 1e1", 0, 0.1, 0),
        ("d * 100", 2, 100, 0),
        ("cast(d as double)", 2, 1, 0),
        ("`a b` + 1", 5, 1, 1),
    ],
)
def test_linear_forms(text: str, slot: int, a: float, b: float) -> None:
    found = form(text)
    assert found is not None
    assert (found.slot, found.before) == (slot, ())
    assert (found.a, found.b) == pytest.approx((a, b))


@pytest.mark.parametrize(
    "text",
    ["x * x", "x + y", "1 / x", "x % 2", "abs(x)", "if(b, x, y)", "cast(s as int)", "x / 0", "s", "x * y", "y div 2"],
)
def test_what_has_no_inverse(text: str) -> None:
    assert form(text) is None


def test_what_does_not_hang_on_a_field_is_constant() -> None:
    assert form("x - x + 3") == Form(None, (), 0.0, 3.0)
    assert form("1 + 2") == Form(None, (), 0.0, 3.0)


def evaluated(text: str, rows: list[float]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Evaluate an expression over x."""
    return as_floats(compile_expression(text, SCOPE).evaluate([from_pylist(rows, pa.float64())], len(rows)))


numbers = st.integers(-8, 8) | st.sampled_from([0.5, 1.25, -2.5, 0.1])
linear = st.recursive(
    st.just("x"),
    lambda inner: (
        st.tuples(inner, st.sampled_from("+-*"), numbers).map(lambda p: f"({p[0]} {p[1]} {p[2]})")
        | st.tuples(numbers, st.sampled_from("+-*"), inner).map(lambda p: f"({p[0]} {p[1]} {p[2]})")
        | st.tuples(inner, st.sampled_from([2, -4, 0.5])).map(lambda p: f"({p[0]} / {p[1]})")
        | inner.map(lambda one: f"(-{one})")
        | inner.map(lambda one: f"cast({one} as double)")
        | inner.map(lambda one: f"cast({one} as int)")
    ),
    max_leaves=6,
)
samples = st.lists(st.integers(-400, 400).map(lambda n: n / 8), min_size=1, max_size=30)


@settings(deadline=None)
@given(linear, samples)
def test_a_form_is_the_expression(text: str, rows: list[float]) -> None:
    assume("0.1" not in text)  # a cut to whole numbers may jump where rounding differs in the last digit
    found = form(text)
    assert found is not None
    values = np.array(rows) if found.slot is not None else np.full(len(rows), found.b)
    for step in found.steps if found.slot is not None else ():
        values = step.apply(values)
    assert np.allclose(values, evaluated(text, rows), atol=1e-6)


@settings(deadline=None)
@given(linear, samples, st.lists(st.integers(-40, 40), min_size=1, max_size=4, unique=True))
def test_intervals_before_a_map_are_those_after_it(text: str, rows: list[float], points: list[int]) -> None:
    assume("0.1" not in text)
    found = form(text)
    assume(found is not None and found.slot is not None)
    assert found is not None
    graph = Graph(tuple((float(x), at % 2) for at, x in enumerate(sorted(points))))
    inverse = Inverse(0, found.steps)
    cuts, results = inverse.cuts(graph), evaluated(text, rows)
    before = np.searchsorted(cuts, np.array(rows), side="right")
    after = np.searchsorted(np.array(sorted(points), np.float64), results, side="right")
    pairs = set(zip(before.tolist(), after.tolist(), strict=True))
    assert len({one for one, _ in pairs}) == len(pairs)  # each interval before lies within one after
    assert np.allclose(inverse.worth(np.array(rows), graph), graph.values(results))


atoms = st.tuples(linear, st.sampled_from(["<", "<=", ">", ">=", "=", "<>"]), st.integers(-20, 20)).map(
    lambda p: f"{p[0]} {p[1]} {p[2]}"
)
predicates = st.recursive(
    atoms
    | st.tuples(st.integers(-20, 0), st.integers(0, 20)).map(lambda p: f"x between {p[0]} and {p[1]}")
    | st.lists(st.integers(-9, 9), min_size=1, max_size=3).map(lambda listed: f"x in ({', '.join(map(str, listed))})")
    | st.sampled_from(["x is null", "x is not null", "true", "false", "3 < x", "x < 2 * x"]),
    lambda inner: (
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(lambda p: f"({p[0]} {p[1]} {p[2]})")
        | inner.map(lambda one: f"not ({one})")
    ),
    max_leaves=5,
)


@settings(deadline=None)
@given(predicates, samples)
def test_a_predicate_over_one_field_is_its_domain(text: str, rows: list[float]) -> None:
    assume("0.1" not in text)
    predicate = compile_predicate(text, SCOPE)
    truth = truth_of(parse_one(predicate.sql), 0, SCOPE)
    answers = predicate.evaluate([from_pylist(rows, pa.float64())], len(rows))
    values = np.array(rows)
    assert not (answers.values & ~truth.true.has(values)).any()
    assert not (~answers.values & ~truth.false.has(values)).any()
    # A part that hangs on no field at all may be anything, so that only what hangs on x is exact.
    if "cast" not in text and "* 0" not in text and "(0 *" not in text:
        assert (truth.true.has(values) == answers.values).all()


def test_other_fields_may_be_anything() -> None:
    def true(text: str) -> list[bool]:
        truth = truth_of(parse_one(compile_predicate(text, SCOPE).sql), 0, SCOPE)
        found: list[bool] = truth.true.has(np.array([2.0, 4.0])).tolist()
        return found

    assert true("x > 3 and y > 2") == [False, True]
    assert true("x > 3 or y > 2") == [True, True]
    assert true("not (x > 3 or y > 2)") == [True, False]
    assert true("not (x > 3 and y > 2)") == [True, True]
    assert true("y > 2") == [True, True]
    assert true("x > y") == [True, True]
    assert true("s like 'a%' and x <= 3") == [True, False]
    assert true(" and ".join(["x > 3"] * 2000)) == [False, True]


def network(
    boxes: dict[str, Any], origin: str, graph: list[list[float]] | None = None, field: str = "v"
) -> CheckedNetwork:
    return check(
        load(
            {
                "network": "n",
                "sources": {"s": {"schema": "t bigint, v double, w int"}, "r": {"schema": "t bigint, v double, w int"}},
                "boxes": boxes,
                "outputs": {
                    "o": {"from": origin, "qos": {"value": {"field": field, "graph": graph or [[0, 0], [1, 1]]}}}
                },
            }
        )
    )


def entry_of(checked: CheckedNetwork, box: str, place: int = 0) -> Entry:
    return Entry([one.name for one in checked.order].index(box), place, -1)


def test_through_filters_and_maps_by_hand() -> None:
    checked = network(
        {
            "cold": {"op": "filter", "in": "s", "where": "v < 50 and w > 3"},
            "scaled": {"op": "map", "in": "cold", "select": "t, -2 * v + 10 as u"},
            "some": {"op": "filter", "in": "scaled", "where": ["u > 100", "u >= -50"]},
            "named": {"op": "map", "in": "some.2", "select": "u as result"},
        },
        "named",
        [[0, 0], [10, 1]],
        "result",
    )
    found = propagate(Route(checked, "o", entry_of(checked, "cold")))
    assert found.through == ("named", "some", "scaled", "cold")
    assert not found.stopped
    (inverse,) = found.entry
    assert inverse.slot == 1
    # u <= 100 is v >= -45, u >= -50 is v <= 30, and the first filter leaves v < 50.
    values = np.array([-46.0, -45.0, 0.0, 2.5, 5.0, 30.0, 30.1, 50.0, np.nan])
    assert inverse.domain.has(values).tolist() == [False, True, True, True, True, True, False, False, False]
    assert inverse.worth(values, Graph(((0.0, 0.0), (10.0, 1.0)))).tolist() == [0, 1, 1, 0.5, 0, 0, 0, 0, 0]
    assert inverse.back(np.array([10.0, 0.0])).tolist() == [0.0, 5.0]


def test_the_rest_of_a_filter_is_what_no_predicate_takes() -> None:
    checked = network({"f": {"op": "filter", "in": "s", "where": ["v > 5", "v < 0"]}}, "f.else")
    (inverse,) = propagate(Route(checked, "o", entry_of(checked, "f"))).entry
    assert inverse.domain.has(np.array([-1.0, 0.0, 5.0, 6.0])).tolist() == [False, True, True, False]


def test_unions_and_sorts_pass_from_each_input_that_comes_from_the_entry() -> None:
    boxes = {
        "low": {"op": "filter", "in": "s", "where": "v < 3"},
        "double": {"op": "map", "in": "low.else", "select": "t, v * 2 as v, w"},
        "other": {"op": "map", "in": "r", "select": "t, v * v as v, w"},
        "all": {"op": "union", "in": ["low", "double", "other"]},
        "sorted": {"op": "bsort", "in": "all", "order": {"on": "t", "slack": 2}},
    }
    checked = network(boxes, "sorted", [[0, 0], [10, 1]])
    found = propagate(Route(checked, 0, entry_of(checked, "low")))
    assert len(found.entry) == 2
    assert not found.stopped
    graph = Graph(((0.0, 0.0), (10.0, 1.0)))
    values = np.array([2.0, 4.0])
    assert np.sum([one.worth(values, graph) for one in found.entry], axis=0).tolist() == [0.2, 0.8]
    beside = propagate(Route(checked, 0, entry_of(checked, "all", 2)))
    assert beside.entry == (Inverse(1),)
    assert not beside.stopped
    stopped = propagate(Route(checked, 0, entry_of(checked, "other")))
    assert not stopped.entry
    assert list(stopped.stopped) == ["other"]
    assert stopped.why == ("'other' computes 'v' in a way that has no inverse",)


def test_it_stops_where_tuples_are_mixed() -> None:
    checked = network(
        {
            "f": {"op": "filter", "in": "s", "where": "v > 1"},
            "means": {"op": "aggregate", "in": "f", "select": "avg(v) as v", "order": {"on": "t"}, "size": 5},
            "m": {"op": "map", "in": "means", "select": "v + 1 as v"},
        },
        "m",
    )
    found = propagate(Route(checked, "o", entry_of(checked, "f")))
    assert (found.entry, found.through, found.why) == ((), ("m",), ("'means' mixes tuples",))
    assert list(found.stopped) == ["means"]


def test_an_arc_is_an_entry_too() -> None:
    checked = network({"m": {"op": "map", "in": "s", "select": "v"}, "u": {"op": "union", "in": ["m", "m"]}}, "u")
    assert len(propagate(Route(checked, "o", "s")).entry) == 2
    direct = network({"m": {"op": "map", "in": "s", "select": "v"}}, "s")
    assert propagate(Route(direct, "o", "s")).entry == (Inverse(1),)
    unrelated = propagate(Route(checked, "o", "r"))
    assert not unrelated.entry
    assert not unrelated.stopped


def test_many_ways_are_not_followed_one_by_one() -> None:
    boxes: dict[str, Any] = {"u0": {"op": "union", "in": ["s", "s"]}}
    for at in range(1, 12):
        boxes[f"u{at}"] = {"op": "union", "in": [f"u{at - 1}", f"u{at - 1}"]}
    checked = network(boxes, "u11")
    found = propagate(Route(checked, "o", entry_of(checked, "u0")))
    assert found.stopped
    assert "too many ways" in found.why[0]


def test_unknown_names_are_named() -> None:
    checked = network({"m": {"op": "map", "in": "s", "select": "v"}}, "m")
    with pytest.raises(NetworkError, match=r"unknown output 'p'.*choices: o"):
        Route(checked, "p", entry_of(checked, "m"))
    with pytest.raises(NetworkError, match="unknown arc 'q'"):
        Route(checked, "o", "q")
