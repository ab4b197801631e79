"""Frontiers against the definition of squal.md."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.kernels import order
from headway.kernels.order import Frontiers, lowest, number_in_partition, stable_order
from tests.kernels.helpers import few

ints = st.integers(-5, 12) | st.integers(-(2**62), 2**62)
floats = st.sampled_from([-1.5, -0.0, 0.0, 0.1, 0.1 + 2**-54, 3.0, 1e300, float("inf")]) | st.floats(
    allow_nan=False, allow_infinity=False
)


def naive(slack: int, rows: list[tuple[int, Any]]) -> list[tuple[bool, Any]]:
    """Return for each tuple whether it is in order, and the frontier after it (None: there is none)."""
    seen: dict[int, list[Any]] = {}
    result = []
    for code, value in rows:
        before = seen.setdefault(code, [])
        in_order = sum(other > value for other in before) <= slack
        before.append(value)
        largest = sorted(before, reverse=True)
        result.append((in_order, largest[slack] if len(largest) > slack else None))
    return result


def admitted(slack: int, dtype: Any, trains: list[list[tuple[int, Any]]]) -> list[tuple[bool, Any]]:
    frontiers = Frontiers.of(slack, dtype)
    result: list[tuple[bool, Any]] = []
    for train in trains:
        codes = np.array([code for code, _ in train], np.int64)
        values = np.array([value for _, value in train], dtype)
        frontiers.grow(int(codes.max(initial=-1)) + 1)
        mask, after = frontiers.admit(codes, values)
        good = [True] * len(train) if mask is None else mask.tolist()
        for in_order, frontier in zip(good, after.tolist(), strict=True):
            result.append((in_order, None if frontier == lowest(dtype) else frontier))
        again = Frontiers.of(slack, dtype)
        again.restore(frontiers.dump(len(frontiers)))
        frontiers = again
    return result


@pytest.fixture(params=[order.DEEP, 0], ids=["passes", "heaps"])
def deep(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let slacks above this have heaps."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(order, "DEEP", request.param)
        yield


@pytest.mark.usefixtures("deep")
@pytest.mark.parametrize("dtype", [np.int64, np.float64])
@pytest.mark.parametrize("slack", range(6))
@few
@given(data=st.data())
def test_frontiers(slack: int, dtype: Any, data: st.DataObject) -> None:
    values = ints if dtype is np.int64 else floats
    rows = data.draw(st.lists(st.tuples(st.integers(0, 3), values), max_size=40))
    cut = data.draw(st.lists(st.integers(0, len(rows)), max_size=3).map(sorted))
    edges = [0, *cut, len(rows)]
    trains = [rows[a:b] for a, b in itertools.pairwise(edges)]
    expected = naive(slack, rows)
    actual = admitted(slack, dtype, trains)
    assert [one for one, _ in actual] == [one for one, _ in expected]
    # The frontier after a tuple out of order is that of its partition too, and matters to nobody.
    assert actual == expected


def test_ascending_trains_take_the_short_way_and_agree() -> None:
    rows = [(at % 3, at // 2) for at in range(100)]
    assert admitted(0, np.int64, [rows[:50], rows[50:]]) == naive(0, rows)


@few
@given(codes=st.lists(st.integers(0, 5), max_size=40), cut=st.integers(0, 40))
def test_numbers_in_partitions(codes: list[int], cut: int) -> None:
    counted = np.zeros(6, np.int64)
    numbers: list[int] = []
    for part in (codes[:cut], codes[cut:]):
        if part:
            numbers += number_in_partition(counted, np.array(part, np.int64)).tolist()
    assert numbers == [codes[:at].count(code) for at, code in enumerate(codes)]
    assert counted.tolist() == [codes.count(code) for code in range(6)]


@few
@given(codes=st.lists(st.integers(0, 5) | st.integers(0, 2**40), max_size=30))
def test_stable_order(codes: list[int]) -> None:
    assert stable_order(np.array(codes, np.int64)).tolist() == sorted(range(len(codes)), key=codes.__getitem__)
