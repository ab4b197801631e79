"""The specification of Join."""

from __future__ import annotations

import pytest

from headway.boxes import Join, Order
from headway.boxes.join import joined
from headway.errors import NetworkError
from headway.network.schema import Schema
from tests.boxes.specs import R, S, infer, parse

ORDERS = [{"on": "time"}, {"on": "time", "slack": 2}]


def test_two_streams() -> None:
    spec = parse(Join, on="left.sid = right.sid and left.pos > 3", size=10, order=ORDERS)
    assert spec.orders == (Order("time"), Order("time", 2))
    assert infer(spec, S, R) == [f"{S}, right_sid int, right_time bigint, label string"]
    assert spec.distance(S, R) == 10
    condition = spec.condition(S, R)
    assert condition.names == (("sid", "sid"),)
    assert condition.residual is not None


def test_one_order_for_both() -> None:
    assert parse(Join, on="true", size=1, order={"on": "time"}).orders == (Order("time"), Order("time"))


def test_select() -> None:
    spec = parse(Join, on="left.sid = right.sid", size=10, order=ORDERS, select="left.sid as sid, label", ordered=False)
    assert infer(spec, S, R) == ["sid int, label string"]
    assert not spec.ordered


def test_a_static_table() -> None:
    for inputs in (["s", {"table": "x.csv"}], [{"table": "x.csv"}, "s"]):
        spec = parse(Join, on="left.sid = right.sid", **{"in": inputs})
        assert (spec.size, spec.orders) == (None, (None, None))
        assert spec.distance(S, R) is None
        assert infer(spec, S, R) == [f"{S}, right_sid int, right_time bigint, label string"]


def test_distances() -> None:
    assert Join("true", 1.5, (Order("time"), Order("pos"))).distance(S, S) == 1.5
    assert Join("true", 1, (Order("#"), Order("time"))).distance(S, S) == 1
    with pytest.raises(
        NetworkError, match=r"^box 'b': size: the two order fields cannot be compared: timestamp and bigint"
    ):
        Join("true", 1, (Order("ts"), Order("time"))).infer("b", [S, R])


def test_names() -> None:
    left, right = Schema.parse("a int, right_b int, B int"), Schema.parse("A int, b int, c int, right_a int")
    assert joined(left, right).names == ("a", "right_b", "B", "right_right_A", "right_right_b", "c", "right_a")


def test_errors() -> None:
    with pytest.raises(NetworkError, match=r"^box 'b': order: 2: on: unknown field 'pos'"):
        Join("true", 1, (Order("pos"), Order("pos"))).infer("b", [S, R])
    with pytest.raises(NetworkError, match=r"^box 'b': on: "):
        Join("left.sid = right.pos", 1, (Order("time"), Order("time"))).infer("b", [S, R])
    with pytest.raises(NetworkError, match=r"^box 'b': in: join takes 2 inputs, not 1"):
        Join("true").infer("b", [S])
