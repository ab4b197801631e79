"""Text among numbers is noted: allowed, as in Spark, but a trap."""

from __future__ import annotations

import pytest

from headway.checking import check
from headway.expressions import Scope, compile_aggregates, compile_join, compile_predicate
from headway.expressions.compiler import noting
from headway.files import load
from headway.network.schema import Schema

SCHEMA = Schema.parse("sensor string, n int, ok boolean")
SCOPE = Scope.of(SCHEMA)


def noted(text: str) -> list[str]:
    with noting() as notes:
        compile_predicate(text, SCOPE)
    return list(notes)


@pytest.mark.parametrize(
    "text",
    [
        "sensor > 36",
        "36 < sensor",
        "sensor = n",
        "sensor <> 1.5",
        "sensor <=> 1",
        "sensor in (1, 2)",
        "n in (sensor, 2)",
        "sensor between 1 and 3",
        "case sensor when 1 then true else false end",
        "ok and (not sensor > 36)",
        "sensor + 1 > 3",
        "n * sensor > 3",
        "if(sensor > 36, ok, false)",
    ],
)
def test_text_that_becomes_a_number(text: str) -> None:
    [note] = noted(text)
    assert "sensor is a string and is cast to a number" in note
    assert "try_cast(sensor as double)" in note
    assert noted(text) == [note], "also when what was compiled is remembered"


@pytest.mark.parametrize(
    "text",
    [
        "try_cast(sensor as double) > 36",
        "cast(sensor as int) > 36",
        "sensor > '36'",
        "n > '36'",
        "n = null",
        "sensor = null",
        "sensor in ('1', '2')",
        "length(sensor) > 36",
    ],
)
def test_what_is_meant_is_not_noted(text: str) -> None:
    assert noted(text) == []


def test_constant_text_that_is_no_number() -> None:
    assert noted("n > 'abc'") == ["'n > 'abc'': 'abc' is not a number, and the other side is int: every tuple fails"]


def test_in_aggregates_and_joins() -> None:
    with noting() as notes:
        compile_aggregates("sum(sensor + 1) as a", SCOPE)
        compile_join("left.sensor = right.n", SCHEMA, SCHEMA)
    assert [note.partition(":")[0] for note in notes] == ["'sensor + 1'", "'left.sensor = right.n'"]


def test_check_warns_and_names_the_box() -> None:
    text = (
        "{network: x, sources: {s: {schema: {sensor: string}}}, outputs: {o: {from: hot}}, "
        "boxes: {hot: {op: filter, in: s, where: 'sensor > 36'}}}"
    )
    for _ in range(2):
        [warning] = check(load(text)).warnings
        assert warning.startswith("box 'hot': 'sensor > 36': sensor is a string and is cast to a number")
