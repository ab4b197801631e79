"""What users' functions return is kept whole, or refused with the function's name and the value."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from headway.expressions import EvaluationError
from headway.expressions.userfunctions import returned
from headway.network.schema import parse_type

NOON = dt.datetime(2024, 1, 1, 12, 30)


@pytest.mark.parametrize(
    ("type_", "value", "shown"),
    [
        ("int", 0.5, "0.5"),
        ("bigint", Decimal("2.7"), "2.7"),
        ("tinyint", np.float64(2.7), "2.7"),
        ("int", Fraction(5, 2), "5/2"),
        ("float", 1e300, "1e+300"),
        ("float", np.float64(-1e300), "-1e+300"),
        ("float", 3.4028235677973366e38, "3.4028235677973366e+38"),
        ("date", NOON, "2024-01-01 12:30:00"),
        ("date", 1.5, "1.5"),
        ("timestamp", 1.5, "1.5"),
        ("array<int>", [1, 1.5], "1.5"),
        ("array<float>", np.array([1e300]), "1e+300"),
        ("array<array<int>>", [[1], [2.5]], "2.5"),
        ("struct<a:int>", {"a": 1.5}, "1.5"),
        ("struct<a:int>", (1.5,), "1.5"),
        ("struct<a:int>", {"A": 1}, "{'A': 1}, with a part 'A'; parts: a"),
    ],
)
def test_python_values_that_would_be_cut(type_: str, value: object, shown: str) -> None:
    with pytest.raises(EvaluationError) as caught:
        returned("f", [None, value], parse_type(type_))
    assert str(caught.value) == f"f did not return {type_}: it returned {shown}"
    made = np.empty(1, np.object_)
    made[0] = value
    with pytest.raises(EvaluationError):
        returned("f", made, parse_type(type_))


@pytest.mark.parametrize(
    ("type_", "value", "kept"),
    [
        ("int", 2.0, 2),
        ("int", Decimal("2.00"), 2),
        ("int", np.int64(7), 7),
        ("int", np.float32(7), 7),
        ("int", pa.scalar(7, pa.int32()), 7),
        ("int", pa.scalar(None, pa.int32()), None),
        ("float", pa.scalar(None, pa.float32()), None),
        ("array<int>", pa.array([7, None], pa.int32()), [7, None]),
        ("array<int>", np.array([7.0]), [7]),
        ("array<string>", ["x"], ["x"]),
        ("array<float>", [0.5, None], [0.5, None]),
        ("struct<a:array<int>>", {"a": [1.0]}, {"a": [1]}),
        ("float", 0.1, float(np.float32(0.1))),
        ("float", float("inf"), float("inf")),
        ("float", 3.4028235e38, float(np.float32(3.4028235e38))),
        ("date", dt.datetime(2024, 1, 1), dt.date(2024, 1, 1)),
        ("timestamp_ntz", NOON, NOON),
        ("array<int>", [1.0, None], [1, None]),
        ("struct<a:int,b:string>", {"a": 1.0}, {"a": 1, "b": None}),
        ("string", "x", "x"),
        ("boolean", True, True),
    ],
)
def test_what_fits_is_taken(type_: str, value: object, kept: object) -> None:
    assert returned("f", [None, value], parse_type(type_)).to_pylist() == [None, kept]


@pytest.mark.parametrize(
    ("type_", "result"),
    [
        ("int", np.array([1.0, 0.5])),
        ("int", np.array([1, 2**40])),
        ("float", np.array([1.0, 1e300])),
        ("boolean", np.array([1, 2])),
        ("date", np.array(["2024-01-01T12"], "M8[s]")),
        ("int", pa.array([1.0, 0.5])),
        ("int", pa.array([Decimal("2.7")])),
        ("float", pa.array([1.0, 1e300, None])),
        ("boolean", pa.array([0.5])),
        ("date", pa.array([NOON])),
        ("decimal(10,1)", pa.array([1.55])),
        ("array<float>", pa.array([None, [1.0], [1e300]])),
        ("struct<a:float>", pa.array([{"a": 1e300}])),
    ],
)
def test_arrays_that_would_be_cut(type_: str, result: Any) -> None:
    with pytest.raises(EvaluationError, match=r"^f did not return "):
        returned("f", result, parse_type(type_))


@pytest.mark.parametrize(
    ("type_", "result", "kept"),
    [
        ("int", np.array([1.0, 2.0]), [1, 2]),
        ("int", pa.array([1.0, None]), [1, None]),
        ("float", pa.array([1.5, float("inf"), None]), [1.5, float("inf"), None]),
        ("boolean", pa.array([0, 1]), [False, True]),
        ("date", pa.array([dt.datetime(2024, 1, 1)]), [dt.date(2024, 1, 1)]),
        ("decimal(10,1)", pa.array([1.5]), [Decimal("1.5")]),
        ("array<float>", pa.array([None, [1.5]]), [None, [1.5]]),
        ("struct<a:float>", pa.array([{"a": 1.5}]), [{"a": 1.5}]),
        ("string", pa.array(["x"]).dictionary_encode(), ["x"]),
    ],
)
def test_arrays_that_fit_are_taken(type_: str, result: Any, kept: list[object]) -> None:
    assert returned("f", result, parse_type(type_)).to_pylist() == kept
