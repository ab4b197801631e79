"""Python rows: collections, and iterators that may block."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from headway.connectors import Reader, memory, open_source
from headway.errors import InputError
from headway.network.schema import Schema
from tests.connectors.helpers import drain, rows

SCHEMA = Schema.parse("a int, x double, s string")


@pytest.mark.parametrize(
    "given", [[(1, 2, "x")], ((1, 2.0, "x"),), [[1, 2, "x"]], [{"s": "x", "a": 1, "x": 2, "z": 0}]]
)
def test_collections(given: object) -> None:
    reader = open_source("s", SCHEMA, given)
    assert reader.finite
    assert not reader.live
    assert rows(reader) == [{"a": 1, "x": 2.0, "s": "x"}]


def test_missing_is_null_and_kinds_may_mix() -> None:
    assert rows(open_source("s", SCHEMA, [{"a": 1}, (2, None, "y"), {}]), [2]) == [
        {"a": 1, "x": None, "s": None},
        {"a": 2, "x": None, "s": "y"},
        {"a": None, "x": None, "s": None},
    ]


def test_python_values() -> None:
    schema = Schema.parse(
        "i int, f float, t timestamp, n timestamp_ntz, m decimal(5,1), y binary, b boolean, l array<int>"
    )
    moment = datetime(2024, 1, 1)
    given = [
        (np.int64(1), np.float32(0.5), moment, moment.replace(tzinfo=UTC), 2, b"x", np.True_, [1, None]),
        (Decimal(2), 3, "2024-01-01T00:00:00Z", "2024-01-01", Decimal("1.5"), "eA==", False, (2,)),
        (3.0, "NaN", np.datetime64("2024-01-01"), None, 1.5, None, None, None),
    ]
    table, _, malformed = drain(open_source("s", schema, given))
    assert malformed == []
    assert table is not None
    assert table.column("i").to_pylist() == [1, 2, 3]
    assert table.column("t").to_pylist() == [moment.replace(tzinfo=UTC)] * 3
    assert table.column("n").to_pylist() == [moment, moment, None]
    assert table.column("y").to_pylist() == [b"x", b"x", None]
    assert table.column("l").to_pylist() == [[1, None], [2], None]


def test_rows_that_do_not_convert() -> None:
    given = [(1, 1, "a"), (1.5, 1, "a"), (1, 2), "row", {"a": "1"}, {"s": 5}, (True, 1, "a"), (2, 2, "b")]
    table, _, malformed = drain(open_source("s", SCHEMA, given), [3])
    assert table is not None
    assert table.column("a").to_pylist() == [1, 2]
    assert [row.where for row in malformed] == [f"index {at}" for at in range(1, 7)]
    assert malformed[1].reason == "expected 3 values (a, x, s), not 2"
    assert malformed[3].reason == "field 'a': expected int, not '1'"
    with pytest.raises(InputError, match=r"source 's': index 1: field 'a': expected int, not 1\.5"):
        drain(open_source("s", SCHEMA, given, strict=True))


def test_a_generator_is_taken_lazily() -> None:
    taken = 0

    def endless() -> Iterator[tuple[int, float, str]]:
        nonlocal taken
        for taken in itertools.count(1):
            yield (taken, 0.0, "")

    reader = open_source("s", SCHEMA, endless())
    assert reader.live
    assert not reader.finite
    assert taken == 0
    chunk = reader.read(10)
    assert chunk is not None
    assert 1 <= len(chunk) <= 10
    reader.close()
    assert taken <= memory.AHEAD + 20


def test_a_slow_generator_hands_over_what_is_there() -> None:
    go = threading.Event()

    def slow() -> Iterator[dict[str, int]]:
        yield {"a": 1}
        go.wait(10)
        yield {"a": 2}

    reader = open_source("s", SCHEMA, slow())
    first = reader.read(100)
    assert first is not None
    assert first.batch.column(0).to_pylist() == [1]
    go.set()
    assert [row["a"] for row in rows(reader)] == [2]


def test_a_generator_that_raises() -> None:
    def failing() -> Iterator[tuple[int, int, str]]:
        yield (1, 1, "a")
        raise ZeroDivisionError("oh")

    reader = open_source("s", SCHEMA, failing())
    assert reader.read(1) is not None
    with pytest.raises(InputError, match="source 's': the iterable raised ZeroDivisionError: oh"):
        reader.read(1)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (SystemExit(3), "SystemExit: 3"),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
        (GeneratorExit(), "GeneratorExit"),
        (asyncio.CancelledError(), "CancelledError"),
    ],
)
def test_a_generator_that_raises_what_ends_programs(error: BaseException, said: str) -> None:
    """It ended the thread that takes its rows, and who waited for one waited for ever."""

    def failing() -> Iterator[tuple[int, int, str]]:
        yield (1, 1, "a")
        raise error

    reader = open_source("s", SCHEMA, failing())
    assert reader.read(1) is not None
    found: list[BaseException] = []

    def read() -> None:
        try:
            reader.read(1)
        except InputError as caught:
            found.append(caught)

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    thread.join(20)
    assert [str(one) for one in found] == [f"source 's': the iterable raised {said}"]


def test_all_rows_of_a_generator_in_order() -> None:
    count = 3 * memory.AHEAD + 5
    reader = open_source("s", Schema.parse("a int"), ((i,) for i in range(count)))
    table, _, _ = drain(reader, [1000, 7])
    assert table is not None
    assert table.column("a").to_pylist() == list(range(count))


def test_a_reader_is_taken_as_it_is() -> None:
    inner = open_source("s", SCHEMA, [])
    assert isinstance(inner, Reader)
    assert open_source("s", SCHEMA, inner) is inner


def test_rate_makes_any_source_timed() -> None:
    reader = open_source("s", SCHEMA, [(i, 0, "") for i in range(5)], rate=2)
    assert reader.timed
    _, due, _ = drain(reader, [2])
    assert due == [0, 500_000_000, 1_000_000_000, 1_500_000_000, 2_000_000_000]


class Unwilling:
    """An object that says nothing about itself."""

    def __repr__(self) -> str:
        """Raise."""
        raise RuntimeError("no")


class NoZone(tzinfo):
    """A zone that fails."""

    def utcoffset(self, when: datetime | None) -> timedelta:
        """Raise."""
        raise RuntimeError("no")

    dst = tzname = utcoffset  # type: ignore[assignment]


@pytest.mark.parametrize("type_name", ["int", "double", "string", "timestamp", "date", "decimal(6,2)", "array<int>"])
@pytest.mark.parametrize(
    "value", [10**5000, Unwilling(), [Unwilling()], {"a": 10**5000}], ids=["digits", "object", "list", "dict"]
)
def test_what_cannot_be_shown_is_malformed(type_name: str, value: object) -> None:
    given = [{"k": 0}, {"k": 1, "v": value}, {"k": 2}]
    table, _, malformed = drain(open_source("s", Schema.parse(f"k int, v {type_name}"), given))
    assert table is not None
    assert table.column("k").to_pylist() == [0, 2]
    assert [row.where for row in malformed] == ["index 1"]
    assert len(malformed[0].reason) < 200
    assert len(malformed[0].text) < 200


def test_a_zone_that_raises_costs_its_row_only() -> None:
    given = [datetime(2024, 1, 1), datetime(2024, 1, 1, tzinfo=NoZone())]
    table, _, malformed = drain(open_source("s", Schema.parse("t timestamp"), [(moment,) for moment in given]))
    assert table is not None
    assert len(table) == 1
    assert [row.where for row in malformed] == ["index 1"]


@pytest.mark.parametrize("type_name", ["timestamp", "timestamp_ntz", "date"])
def test_no_time_is_null(type_name: str) -> None:
    given = [(value,) for value in (pd.NaT, np.datetime64("NaT"), np.datetime64("NaT", "s"), None)]
    assert rows(open_source("s", Schema.parse(f"t {type_name}"), given)) == [{"t": None}] * 4


def test_a_time_with_more_microseconds_than_fit_is_malformed() -> None:
    given = [(np.datetime64(2**62, "s"),), (np.datetime64("2024-01-01T00:00:00.123456789"),)]
    table, _, malformed = drain(open_source("s", Schema.parse("t timestamp_ntz"), given))
    assert table is not None
    assert table.column("t").to_pylist() == [datetime(2024, 1, 1, 0, 0, 0, 123456)]
    assert [row.where for row in malformed] == ["index 0"]
