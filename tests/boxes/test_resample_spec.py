"""The specification of Resample."""

from __future__ import annotations

import pytest

from headway.boxes import Order, Resample
from headway.errors import NetworkError
from tests.boxes.specs import R, S, infer, parse


def test_schema() -> None:
    spec = parse(
        Resample, select="avg(pos) as pos", size=5, order=[{"on": "time"}, {"on": "time", "by": ["name", "sid"]}]
    )
    assert infer(spec, R, S) == ["name string, sid int, time bigint, pos double"]
    assert spec.distance(R, S) == 5


def test_the_order_field_is_that_of_the_first() -> None:
    spec = parse(Resample, select="count(*) as n", size=5, order=[{"on": "#"}, {"on": "pos"}], ordered=False)
    assert infer(spec, R, S) == ["tuple bigint, n bigint"]
    assert spec.distance(R, S) == 5.0


def test_errors() -> None:
    with pytest.raises(NetworkError, match=r"^box 'b': select: .*label"):
        Resample("max(label) as l", 1, (Order("time"), Order("time"))).infer("b", [R, S])
    with pytest.raises(NetworkError, match=r"^box 'b': select: the result's field 'time' appears twice"):
        Resample("count(*) as n", 1, (Order("time"), Order("time", by=("time",)))).infer("b", [R, S])
    with pytest.raises(NetworkError, match=r"^box 'b': order: 1: on: unknown field 'ts'"):
        Resample("count(*) as n", 1, (Order("ts"), Order("ts"))).infer("b", [R, S])
