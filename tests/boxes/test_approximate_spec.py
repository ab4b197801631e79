"""What an aggregate with ``approximate: true`` promises."""

from __future__ import annotations

from typing import Any

import pytest

import headway as hw
from headway.boxes import Aggregate
from headway.boxes.approximate import estimating, widened
from headway.checking import CheckedNetwork, check
from headway.errors import NetworkError
from headway.expressions import BUILTIN, ScalarFunction, UserAggregate
from headway.expressions.types import DOUBLE
from headway.files import load
from headway.network.schema import Schema
from tests.boxes.specs import S, infer, parse

ORDER = {"on": "time", "by": ["sid"]}


def estimates(select: str, order: Any = ORDER) -> Aggregate:
    return parse(Aggregate, select=select, order=order, size=10, approximate=True)


def test_the_key() -> None:
    spec = parse(Aggregate, select="count(*) as n", order=ORDER, size=10)
    assert not spec.approximate
    assert "approximate" not in spec.to_mapping()
    assert estimates("count(*) as n").to_mapping()["approximate"] is True
    with pytest.raises(NetworkError, match=r"^box 'b': approximate: must be true or false, not 'yes'"):
        Aggregate.parse("b", {"select": "count(*)", "order": ORDER, "size": 1, "approximate": "yes"})


def test_estimates_are_doubles_with_an_error() -> None:
    assert infer(estimates("count(*) as n, sum(price) as total, count(pos), mean(pos) as m"), S) == [
        "time bigint, sid int, n double, n_error double, total double, total_error double, "
        "count(pos) double, count(pos)_error double, m double, m_error double"
    ]


def test_filters_brackets_and_count_if() -> None:
    assert infer(estimates("((sum(pos))) as s, count(*) filter (where pos > 1) as f, count_if(pos > 1) as c"), S) == [
        "time bigint, sid int, s double, s_error double, f double, f_error double, c double, c_error double"
    ]


def test_expressions_have_no_error() -> None:
    assert infer(estimates("sum(pos) / count(*) as q, cast(count(*) as int) as n, count(*) + sid as k"), S) == [
        "time bigint, sid int, q double, n int, k double"
    ]


def test_other_functions_stay_as_they_are() -> None:
    assert infer(estimates("max(time) as high, count(distinct name) as names, first(name) as one"), S) == [
        "time bigint, sid int, high bigint, names bigint, one string"
    ]


def test_names_are_spelled_as_without_it() -> None:
    schema = Schema.parse("time bigint, Pos double, `#weight` int")
    plain = parse(Aggregate, select="sum(POS), `#WEIGHT` + 0 as w", order={"on": "time", "by": ["#weight"]}, size=1)
    estimated = estimates("sum(POS), `#WEIGHT` + 0 as w", {"on": "time", "by": ["#weight"]})
    assert infer(plain, schema) == ["time bigint, #weight int, sum(Pos) double, w int"]
    assert infer(estimated, schema) == ["time bigint, #weight int, sum(Pos) double, sum(Pos)_error double, w int"]
    assert widened(schema).names == ("time", "Pos", "#weight", "#weight#", "#spread")


def test_hidden_columns_cannot_be_named() -> None:
    for select in ("sum(`#weight`) as w", "count(*) filter (where `#spread` > 0) as n"):
        with pytest.raises(NetworkError, match=r"^box 'b': select: .*unknown field '#(weight|spread)'"):
            infer(estimates(select), S)
    spec = parse(Aggregate, select="count(*)", order=ORDER, advance={"when": "`#weight` > 1"}, approximate=True)
    with pytest.raises(NetworkError, match=r"^box 'b': advance: when: .*unknown field '#weight'"):
        infer(spec, S)


@pytest.mark.parametrize("select", ["count(*) as n, max(pos) as n_error", "max(pos) as N_ERROR, count(*) as n"])
def test_the_name_of_an_error_must_be_free(select: str) -> None:
    with pytest.raises(NetworkError, match=r"^box 'b': select: 'n_error' is the name of the error of 'n' .*taken"):
        infer(estimates(select), S)


def test_the_name_of_an_error_may_be_an_order_field_as_little() -> None:
    schema = Schema.parse("x_error bigint, n_error int, x int")
    with pytest.raises(NetworkError, match="'x_error' is the name of the error of 'x'"):
        infer(estimates("sum(x) as x", {"on": "x_error"}), schema)
    with pytest.raises(NetworkError, match="'n_error' is the name of the error of 'n'"):
        infer(estimates("count(*) as n", {"on": "x_error", "by": ["n_error"]}), schema)
    assert infer(estimates("max(x) as x", {"on": "x_error"}), schema) == ["x_error bigint, x int"]


def test_two_errors_cannot_have_one_name() -> None:
    with pytest.raises(NetworkError, match="'n_error_error' is the name of the error of 'n_error'"):
        infer(estimates("count(*) as n_error, max(pos) as n_error_error"), S)


def test_mistakes_are_told_in_the_users_words() -> None:
    with pytest.raises(NetworkError, match=r"^box 'b': select: expression 'sum\(nam\) as s': unknown field 'nam'"):
        infer(estimates("sum(nam) as s"), S)
    with pytest.raises(NetworkError, match=r"^box 'b': select: the result's field 'sid' appears twice"):
        infer(estimates("max(sid) as sid"), S)
    with pytest.raises(NetworkError, match=r"^box 'b': approximate: estimates are doubles: "):
        infer(estimates("count(*) & 1 as odd"), S)


def test_functions_of_the_user() -> None:
    own_sum = UserAggregate("sum", (DOUBLE,), DOUBLE, function=lambda values: 1.0)
    functions = BUILTIN.with_function(own_sum)
    spec = estimates("sum(pos) as s")
    assert [str(one) for one in spec.infer("b", [S], functions)] == ["time bigint, sid int, s double"]
    for taken in (
        own_sum,
        ScalarFunction("sqrt", (DOUBLE,), DOUBLE, abs),
        ScalarFunction("abs", (DOUBLE,), DOUBLE, abs),
    ):
        with pytest.raises(NetworkError, match=f"needs the built-in {taken.name}"):
            estimates("count(*) as n").infer("b", [S], BUILTIN.with_function(taken))


def test_what_is_written() -> None:
    assert estimating("count(*) as n, max(x) as m", ["n", "m"], Schema.parse("x int"), [], None) == (
        "case when sum(`#weight`) is null then 0e0 else sum(`#weight`) end as `n`, "
        "1.96e0 * sqrt(case when sum(`#spread`) is null then 0e0 else sum(`#spread`) end) as `n_error`, "
        "max(x) as `m`"
    )


def checked(boxes: dict[str, dict[str, Any]]) -> CheckedNetwork:
    """Check a network whose box `e` is an approximate aggregate."""
    schema = {"sid": "int", "time": "bigint", "pos": "double"}
    boxes["e"] = {"op": "aggregate", "select": "count(*) as n", "order": {"on": "time"}, "size": 1} | boxes["e"]
    mapping = {
        "network": "n",
        "sources": {"s": {"schema": schema}, "r": {"schema": schema}},
        "boxes": boxes,
        "outputs": {"out": {"from": "e"}},
    }
    return check(load(mapping))


def test_tuples_may_come_through_boxes_that_keep_their_numbers() -> None:
    made = checked(
        {
            "f": {"op": "filter", "in": "s", "where": ["pos > 0", "pos < 0"]},
            "m": {"op": "map", "in": "f.1", "select": "*"},
            "u": {"op": "union", "in": ["m", "f.else", "r"]},
            "v": {"op": "universal", "in": "u"},
            "b": {"op": "bsort", "in": "v", "order": {"on": "time", "slack": 2}},
            "e": {"in": "b", "approximate": True},
        }
    )
    assert str(made.arcs["e"]) == "time bigint, n double, n_error double"


def test_tuples_may_not_come_through_others() -> None:
    join = {"op": "join", "in": ["s", "r"], "on": "left.sid = right.sid", "size": 1, "order": {"on": "time"}}
    boxes: dict[str, dict[str, Any]] = {
        "j": {**join, "select": "left.time as time, left.pos as pos"},
        "f": {"op": "filter", "in": "j", "where": "pos > 0"},
        "e": {"in": "f", "approximate": True},
    }
    with pytest.raises(
        NetworkError,
        match=r"^box 'e': approximate: needs tuples that come straight from sources, through .*bsort.*; 'j' is a join$",
    ):
        checked(boxes)
    boxes["e"]["approximate"] = False
    checked(boxes)
    with pytest.raises(NetworkError, match=r"'a' is an aggregate$"):
        checked(
            {
                "a": {"op": "aggregate", "in": "s", "select": "max(pos)", "order": {"on": "time"}, "size": 1},
                "e": {"in": "a", "approximate": True},
            }
        )


def test_built() -> None:
    built = hw.Network("n")
    stream = built.source("s", {"time": "bigint", "pos": "double"})
    stream.aggregate("count(*) as n", on="time", size=1, approximate=True, name="e").output("out")
    assert str(check(built.build()).arcs["e"]) == "time bigint, n double, n_error double"
    exact = hw.Network("n")
    exact.source("s", {"time": "bigint"}).aggregate("count(*) as n", on="time", size=1, name="e").output("out")
    assert "approximate" not in exact.build().box("e").spec.to_mapping()
