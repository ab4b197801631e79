"""The specification of Map."""

from __future__ import annotations

import pytest

from headway.boxes import Map
from headway.errors import NetworkError
from tests.boxes.specs import S, infer, parse


def test_select() -> None:
    spec = parse(Map, select="time, pos * 2 as twice, name = 'x' as x")
    assert spec.ports == ("",)
    assert infer(spec, S) == ["time bigint, twice double, x boolean"]
    assert [name for name, _ in spec.results(S)] == ["time", "twice", "x"]


def test_a_list() -> None:
    assert parse(Map, select=["time", "pos as p"]) == Map("time, pos as p")


def test_star() -> None:
    assert infer(parse(Map, select="*, sid + 1 as next"), S) == [f"{S}, next int"]


def test_a_name_twice() -> None:
    with pytest.raises(NetworkError, match=r"^box 'b': select: .*'time'.*twice"):
        Map("time, sid as time").infer("b", [S])
