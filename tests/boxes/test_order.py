"""Order specifications."""

from __future__ import annotations

import pytest

from headway.boxes import Order
from headway.boxes.order import parse_orders
from headway.errors import NetworkError
from headway.network.schema import Field, Schema, parse_type

SCHEMA = Schema.parse(
    "a tinyint, b smallint, c int, d bigint, e float, f double, g date, h timestamp, i timestamp_ntz, "
    "j string, k decimal(5,2), l boolean, m binary, n array<int>"
)


def test_parse_and_write() -> None:
    assert Order.parse({"on": "time"}) == Order("time", 0, ())
    order = Order.parse({"on": "time", "slack": 2, "by": ["a", "b"]})
    assert order == Order("time", 2, ("a", "b"))
    assert Order.parse(order.to_mapping()) == order
    assert Order.parse(order) is order
    assert Order.parse({"on": "#", "by": "a"}) == Order("#", 0, ("a",))
    assert Order("#").numbered
    assert not order.numbered
    assert Order("time").to_mapping() == {"on": "time"}


def test_types() -> None:
    for name in "abcdefghi":
        assert Order(name).field(SCHEMA).name == name
    for name in "jklmn":
        with pytest.raises(NetworkError, match=f"on: field '{name}' is a"):
            Order(name).field(SCHEMA)
    assert Order("#").field(SCHEMA) == Field("tuple", parse_type("bigint"))


def test_names_are_those_of_the_schema() -> None:
    order = Order("C", by=("J",))
    assert order.field(SCHEMA).name == "c"
    assert [field.name for field in order.by_fields(SCHEMA)] == ["j"]


def test_partitions() -> None:
    Order("c", by=tuple("abcdefghijklm")).check(SCHEMA)
    with pytest.raises(NetworkError, match="by: field 'n' is a array<int>"):
        Order("c", by=("n",)).check(SCHEMA)
    with pytest.raises(NetworkError, match="by: unknown field 'z'"):
        Order("#", by=("z",)).check(SCHEMA)


def test_two_orders() -> None:
    assert parse_orders({"on": "a"}) == (Order("a"), Order("a"))
    assert parse_orders([{"on": "a"}, {"on": "b"}]) == (Order("a"), Order("b"))
    for bad in ([], [{"on": "a"}], "a", None, [{"on": "a"}, None], [{"on": "a"}] * 3):
        with pytest.raises(NetworkError):
            parse_orders(bad)
