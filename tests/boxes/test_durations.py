"""Durations, and sizes in the unit of an order field."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.boxes.sizes import native_size, pair_size, parse_size
from headway.durations import Duration, parse_timeout
from headway.errors import NetworkError
from headway.network.schema import TIMESTAMP, TIMESTAMP_NTZ

SECOND = 1_000_000


@pytest.mark.parametrize(
    ("text", "microseconds"),
    [
        ("5s", 5 * SECOND),
        ("5 s", 5 * SECOND),
        ("10 minutes", 600 * SECOND),
        ("1h30m", 5400 * SECOND),
        ("1 hour 30 min", 5400 * SECOND),
        ("250ms", 250_000),
        ("1.5s", 1_500_000),
        ("7us", 7),
        ("7µs", 7),
        ("2d", 172_800 * SECOND),
        ("1 Week", 604_800 * SECOND),
        (" 3 Seconds ", 3 * SECOND),
    ],
)
def test_parse(text: str, microseconds: int) -> None:
    assert Duration.parse(text) == Duration(microseconds)


@pytest.mark.parametrize(
    "text", ["", "s", "5", "5 parsecs", "5s!", "s5", "1.2.3s", "1/2 s", 5, None, True, "0.1us", "9999999999999w"]
)
def test_refuse(text: object) -> None:
    with pytest.raises(NetworkError):
        Duration.parse(text)


@pytest.mark.parametrize(
    ("microseconds", "text"),
    [
        (0, "0s"),
        (5 * SECOND, "5s"),
        (5400 * SECOND, "1h30m"),
        (604_800 * SECOND, "1w"),
        (8 * 86_400 * SECOND, "8d"),
        (1_001, "1ms1us"),
    ],
)
def test_write(microseconds: int, text: str) -> None:
    assert str(Duration(microseconds)) == text


@given(st.integers(0, 2**62))
def test_round_trip(microseconds: int) -> None:
    duration = Duration(microseconds)
    assert Duration.parse(str(duration)) == duration
    assert Duration.parse(duration) is duration


def test_units() -> None:
    assert Duration(1_500_000).seconds == 1.5
    assert Duration(3).nanoseconds == 3000


@pytest.mark.parametrize(
    ("size", "type_", "native"),
    [
        (5, pa.int32(), 5),
        (5.0, pa.int64(), 5),
        (5, pa.float64(), 5.0),
        (0.5, pa.float32(), 0.5),
        (Duration(5), TIMESTAMP, 5),
        (Duration(5), TIMESTAMP_NTZ, 5),
        (Duration.parse("2d"), pa.date32(), 2),
    ],
)
def test_native_size(size: int | float | Duration, type_: pa.DataType, native: int | float) -> None:
    result = native_size(size, type_)
    assert result == native
    assert type(result) is type(native)


@pytest.mark.parametrize(
    ("size", "type_", "hint"),
    [
        (5, TIMESTAMP, "'5s'"),
        (5, pa.date32(), "'1 day'"),
        (Duration(5), pa.int64(), "number"),
        (Duration(5), pa.date32(), "days"),
        (1.5, pa.int64(), "whole"),
    ],
)
def test_sizes_that_do_not_fit(size: int | float | Duration, type_: pa.DataType, hint: str) -> None:
    with pytest.raises(NetworkError) as caught:
        native_size(size, type_)
    assert hint in str(caught.value)


@pytest.mark.parametrize(
    ("size", "type_"),
    [
        (2**60 + 1, pa.int64()),
        (10**401, pa.int64()),
        (10**401, pa.float64()),
        (1e300, pa.int64()),
        (1.1e300, pa.float64()),
        (float("inf"), pa.float64()),
        ("40000000d", TIMESTAMP),
    ],
)
def test_sizes_that_are_too_large(size: object, type_: pa.DataType) -> None:
    with pytest.raises(NetworkError, match=r"too large|finite") as caught:
        native_size(parse_size(size), type_)
    assert len(str(caught.value)) < 200


def test_the_largest_sizes() -> None:
    assert native_size(parse_size(2**60), pa.int64()) == 2**60
    assert native_size(parse_size(1e300), pa.float64()) == 1e300
    with pytest.raises(NetworkError, match="the longest timeout is"):
        parse_timeout("37000d")


def test_pairs() -> None:
    assert pair_size(1, pa.int32(), pa.int64()) == 1
    assert pair_size(1.5, pa.int32(), pa.float64()) == 1.5
    assert pair_size(1.5, pa.float64(), pa.int32()) == 1.5
    assert pair_size(Duration(9), TIMESTAMP, TIMESTAMP) == 9
    for left, right in ((TIMESTAMP, TIMESTAMP_NTZ), (pa.date32(), TIMESTAMP), (pa.int32(), pa.date32())):
        with pytest.raises(NetworkError, match="cannot be compared"):
            pair_size(1, left, right)
    with pytest.raises(NetworkError, match="whole"):
        pair_size(1.5, pa.int32(), pa.int64())


def test_sizes_in_the_file() -> None:
    assert parse_size(5) == 5
    assert parse_size(0.5) == 0.5
    assert parse_size("5s") == Duration(5 * SECOND)
    sizes: list[object] = [0, -1, 0.0, float("nan"), float("inf"), True, None, [], "0s", "-5s", 2**63]
    for bad in sizes:
        with pytest.raises(NetworkError):
            parse_size(bad)
    timeouts: list[object] = [5, "0s", True, None, "5"]
    for bad in timeouts:
        with pytest.raises(NetworkError):
            parse_timeout(bad)
