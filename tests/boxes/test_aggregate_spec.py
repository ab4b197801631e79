"""The specification of Aggregate."""

from __future__ import annotations

import pytest

from headway.boxes import Aggregate, Duration, Order, When
from headway.errors import NetworkError
from tests.boxes.specs import S, infer, parse

ORDER = {"on": "time", "slack": 1, "by": ["sid"]}


def test_all_keys() -> None:
    spec = parse(Aggregate, select="count(*) as n", order=ORDER, size=10, advance=2, align="first", timeout="5s")
    assert spec == Aggregate("count(*) as n", Order("time", 1, ("sid",)), 10, 2, "first", Duration(5_000_000))
    assert infer(spec, S) == ["time bigint, sid int, n bigint"]
    assert spec.window(S) == (10, 2)
    assert spec.condition(S) is None


def test_defaults() -> None:
    spec = parse(Aggregate, select="count(*) as n", order={"on": "pos"}, size=0.5)
    assert (spec.advance, spec.align, spec.timeout) == (None, "grid", None)
    assert spec.window(S) == (0.5, 0.5)
    assert spec.to_mapping() == {"select": "count(*) as n", "order": {"on": "pos"}, "size": 0.5}


def test_timestamps() -> None:
    spec = parse(Aggregate, select="max(pos) as high", order={"on": "ts"}, size="1h", advance="10 minutes")
    assert infer(spec, S) == ["ts timestamp, high double"]
    assert spec.window(S) == (3_600_000_000, 600_000_000)


def test_tuple_numbers() -> None:
    spec = parse(Aggregate, select="avg(pos) as mean", order={"on": "#", "by": ["name"]}, size=10)
    assert infer(spec, S) == ["tuple bigint, name string, mean double"]
    assert spec.window(S) == (10, 10)


def test_data_driven_windows() -> None:
    spec = parse(Aggregate, select="count(*) as n", order=ORDER, advance={"when": "time - last.time > 30"})
    assert spec.advance == When("time - last.time > 30")
    assert spec.size is None
    assert spec.window(S) == (None, None)
    condition = spec.condition(S)
    assert condition is not None
    assert condition.slots == (S.index("time"), 2 * len(S) + S.index("time"))
    assert infer(spec, S) == ["time bigint, sid int, n bigint"]
    assert parse(Aggregate, select="count(*) as n", order=ORDER, size=5, advance={"when": "pos < first.pos"}).window(
        S
    ) == (5, None)


def test_by_fields_outside_of_aggregates() -> None:
    spec = parse(Aggregate, select="sum(pos) / sid as share", order=ORDER, size=1)
    assert infer(spec, S) == ["time bigint, sid int, share double"]
    with pytest.raises(NetworkError, match=r"^box 'b': select: .*name"):
        parse(Aggregate, select="max(name) || name as x", order=ORDER, size=1).infer("b", [S])


def test_errors() -> None:
    with pytest.raises(
        NetworkError, match=r"^box 'b': select: the result's field 'sid' appears twice; name the results"
    ):
        parse(Aggregate, select="max(sid) as sid", order=ORDER, size=1).infer("b", [S])
    with pytest.raises(NetworkError, match=r"^box 'b': advance: '5s' is a duration"):
        parse(Aggregate, select="count(*) as n", order=ORDER, size=1, advance="5s").infer("b", [S])
    with pytest.raises(NetworkError, match=r"^box 'b': advance: must be a positive number"):
        Aggregate.parse("b", {"select": "count(*)", "order": ORDER, "size": 1, "advance": []})
    with pytest.raises(NetworkError, match=r"^box 'b': advance: when: is empty"):
        Aggregate.parse("b", {"select": "count(*)", "order": ORDER, "advance": {"when": " "}})


@pytest.mark.parametrize(
    ("on", "size", "advance"), [("pos", 4611686018427387, 2), ("pos", 1, 5e-324), ("time", 10**6, 9), ("#", 10**6, 1)]
)
def test_too_many_windows_for_a_tuple(on: str, size: float, advance: float) -> None:
    spec = parse(Aggregate, select="count(*) as n", order={"on": on}, size=size, advance=advance)
    with pytest.raises(NetworkError, match=r"^box 'b': size: every tuple would be in more than 100,000 windows; "):
        spec.infer("b", [S])


def test_the_most_windows_for_a_tuple() -> None:
    spec = parse(Aggregate, select="count(*) as n", order={"on": "ts"}, size="100000s", advance="1s")
    assert spec.window(S) == (10**11, 10**6)
