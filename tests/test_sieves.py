"""Sieves: shares are as asked, the same tuples every time, and a finer sieve passes a part of what a coarser does."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.columns import Column, Int64s
from headway.network.schema import Schema
from headway.sieves import Sieve, chances
from headway.trains import Tick, Train, join_trains

MANY = 40_000


def train(numbers: Int64s, values: Sequence[float | None] | None = None, **more: Any) -> Train:
    """Return tuples of one field `v double`, by default their numbers."""
    column = pa.array(numbers.astype(np.float64) if values is None else values, pa.float64())
    batch = pa.RecordBatch.from_arrays([column], schema=Schema.parse("v double").to_arrow())
    made = Train.from_batch(batch, numbers=numbers)
    return Train(made.columns, made.stamps, made.numbers, **{"progress": made.progress, **more})


def passing(sieve: Sieve, one: Train) -> list[int]:
    found: list[int] = sieve.sift(one).numbers.tolist()
    return found


def several_off(count: int, of: int, share: float) -> float:
    """Return by how many standard deviations a number of tuples differs from a share of all."""
    return abs(count - of * share) / math.sqrt(of * share * (1 - share))


shares = st.integers(0, 100).map(lambda cents: cents / 100)
some_numbers = st.lists(st.integers(0, 2**40), max_size=50).map(lambda some: np.array(sorted(some), np.int64))


def test_chances_are_evenly_spread_and_always_the_same() -> None:
    numbers = np.arange(MANY)
    found = chances(numbers, 7)
    assert found.min() >= 0.0
    assert found.max() < 1.0
    tenths = np.bincount((found * 10).astype(int), minlength=10)
    assert (np.abs(tenths - MANY / 10) < 4 * np.sqrt(MANY * 0.09)).all(), tenths
    assert (chances(numbers[::-1], 7) == found[::-1]).all()
    assert (chances(numbers, 8) != found).any()
    # A replay by another version must drop the same tuples: SplitMix64 from a start of its own for each seed.
    for seed in (0, 1, 12):
        start = (seed + 1) * 0x94D049BB133111EB
        expected = [splitmix(start + number) for number in (0, 1, 2**40)]
        assert chances(np.array([0, 1, 2**40]), seed).tolist() == [(one >> 11) / 2**53 for one in expected]
    assert splitmix(1) == 0xE220A8397B1DCDAF, "as published"


def splitmix(place: int) -> int:
    """Return a number of SplitMix64 that starts from 0, in whole numbers."""
    most = 2**64 - 1
    mixed = place * 0x9E3779B97F4A7C15 & most
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 & most
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & most
    return mixed ^ mixed >> 31


@pytest.mark.parametrize("step", [1, 2, 3, 1000], ids="every {}th number".format)
@pytest.mark.parametrize("keep", [0.05, 0.5, 0.9])
def test_shares_are_as_asked_whoever_else_has_numbers(keep: float, step: int) -> None:
    numbers = np.arange(0, step * MANY, step)
    for seed in (0, 1, 12):
        assert several_off(len(passing(Sieve(keep, seed), train(numbers))), MANY, keep) < 4


def test_neighbours_are_dropped_independently() -> None:
    kept = chances(np.arange(MANY), 3) < 0.5
    for apart in (1, 2, 7):
        both = int((kept[apart:] & kept[:-apart]).sum())
        assert several_off(both, MANY - apart, 0.25) < 4


def test_seeds_decide_independently() -> None:
    """Drop boxes in a row with seeds of their own let the product of their shares through."""
    numbers = train(np.arange(MANY))
    for other in (1, 2, 17):
        both = Sieve(0.5, other).sift(Sieve(0.6, 0).sift(numbers))
        assert several_off(len(both), MANY, 0.3) < 4
        one, two = chances(numbers.numbers, 0) < 0.5, chances(numbers.numbers, other) < 0.5
        for apart in (1, 2, 17):  # nor does the luck of a tuple behind one of them tell that of its neighbours
            assert several_off(int((one[apart:] & two[:-apart]).sum()), MANY - apart, 0.25) < 4


@settings(deadline=None)
@given(some_numbers, shares, shares, st.integers(0, 2**31))
def test_a_smaller_share_is_a_part_of_a_larger_one(numbers: Int64s, one: float, other: float, seed: int) -> None:
    less, more = sorted((one, other))
    fine, coarse = passing(Sieve(less, seed), train(numbers)), passing(Sieve(more, seed), train(numbers))
    assert set(fine) <= set(coarse)
    assert passing(Sieve(less, seed), Sieve(more, seed).sift(train(numbers))) == fine


@settings(deadline=None)
@given(some_numbers, shares, st.lists(st.integers(0, 50), max_size=4))
def test_trains_may_be_cut_anywhere(numbers: Int64s, keep: float, cuts: list[int]) -> None:
    whole = train(numbers, [float(one % 10) if one % 7 else None for one in numbers.tolist()])
    bounds = sorted({0, len(whole), *(cut for cut in cuts if cut < len(whole))})
    parts = [whole.slice(low, high) for low, high in pairwise(bounds)] or [whole]
    for sieve in (Sieve(keep, 5), Sieve(keep, 5, 0, (3.0, 6.0), (0.1, keep, 1.0), 0.5)):
        together = join_trains([sieve.sift(part) for part in parts])
        assert together.numbers.tolist() == passing(sieve, whole)
        assert together.columns[0].values.tolist() == sieve.sift(whole).columns[0].values.tolist()


@settings(deadline=None)
@given(some_numbers, shares)
def test_what_passes_is_in_order_with_its_values(numbers: Int64s, keep: float) -> None:
    whole = train(numbers, progress=2**41, ticks=(Tick(3, 9),), end=True)
    found = Sieve(keep, 1).sift(whole)
    assert found.numbers.tolist() == sorted(found.numbers.tolist())
    assert found.columns[0].values.tolist() == found.numbers.tolist()
    assert (found.progress, found.ticks, found.end) == (2**41, (Tick(3, 9),), True)


def test_all_and_nothing() -> None:
    some = train(np.arange(100))
    assert Sieve(1.0).kept(some) is None
    assert Sieve(1.0).sift(some) is some
    assert len(Sieve(0.0).sift(some)) == 0
    assert Sieve(0.5, 0, 0, (), (1.0,)).sift(some) is some, "a field of which all values pass"
    nothing = train(np.zeros(0, np.int64))
    assert Sieve(0.5).sift(nothing) is nothing


def test_intervals_of_values_have_shares_of_their_own() -> None:
    values = np.random.default_rng(1).uniform(-10, 30, MANY)
    sieve = Sieve(0.5, 2, 0, (0.0, 10.0, 20.0), (0.0, 0.3, 0.8, 1.0))
    found = sieve.sift(train(np.arange(MANY), values.tolist())).columns[0].values
    for low, high, share in ((-10, 0, 0.0), (0, 10, 0.3), (10, 20, 0.8), (20, 30, 1.0)):
        came, passed = (int(((some >= low) & (some < high)).sum()) for some in (values, found))
        if 0 < share < 1:
            assert several_off(passed, came, share) < 4
        else:
            assert passed == came * share


def test_an_edge_belongs_to_the_interval_above_it() -> None:
    sieve = Sieve(0.5, 0, 0, (1.0, 2.0), (0.0, 1.0, 0.0))
    values = [-float("inf"), 0.999, 1.0, 1.999, 2.0, float("inf")]
    assert passing(sieve, train(np.arange(6), values)) == [2, 3]


@pytest.mark.parametrize(("unknown", "share"), [(None, 0.5), (0.0, 0.0), (1.0, 1.0), (0.2, 0.2)])
def test_null_and_nan_have_a_share_of_their_own(unknown: float | None, share: float) -> None:
    values = [None, float("nan")] * (MANY // 2)
    for shares_of_others in ((0.0, 0.0), (1.0, 1.0)):
        sieve = Sieve(0.5, 4, 0, (1.0,), shares_of_others, unknown)
        passed = len(sieve.sift(train(np.arange(MANY), values)))
        if share in (0.0, 1.0):
            assert passed == MANY * share
        else:
            assert several_off(passed, MANY, share) < 4


@pytest.mark.parametrize("type_", ["int", "bigint", "float", "double", "decimal(12,2)", "timestamp", "date", "boolean"])
def test_fields_of_any_ordered_type(type_: str) -> None:
    schema = Schema.parse(f"x string, v {type_}")
    numbers = pa.array([0, 1, 2, None], pa.int32())
    between = pa.int64() if type_ == "timestamp" else pa.int32()
    values = numbers.cast(between).cast(schema.types[1])
    batch = pa.RecordBatch.from_arrays([pa.array(["a"] * 4), values], schema=schema.to_arrow())
    sieve = Sieve(0.5, 0, 1, (1.0,), (0.0, 1.0), 0.0)
    assert passing(sieve, Train.from_batch(batch)) == [1, 2]


@settings(deadline=None)
@given(
    keep=shares,
    seed=st.integers(0, 2**31),
    edges=st.lists(st.floats(-1e9, 1e9), max_size=3, unique=True).map(sorted),
    unknown=st.none() | shares,
    data=st.data(),
)
def test_a_sieve_comes_back_from_json(
    keep: float, seed: int, edges: list[float], unknown: float | None, data: st.DataObject
) -> None:
    own = tuple(data.draw(st.lists(shares, min_size=len(edges) + 1, max_size=len(edges) + 1)))
    for sieve in (Sieve(keep, seed), Sieve(keep, seed, 0, tuple(edges), own, unknown)):
        again = Sieve.of(json.loads(json.dumps(sieve.to_mapping())))
        assert again == sieve
        some = train(np.arange(20), [*edges, *range(20 - len(edges))])
        assert passing(again, some) == passing(sieve, some)


def test_a_column_that_is_shared_is_left_as_it_is() -> None:
    values = np.array([1.0, 2.0, 3.0])
    shared = Train((Column(values, np.array([True, False, True])),), np.zeros(3, np.int64), np.arange(3))
    Sieve(0.5, 0, 0, (2.0,), (0.0, 1.0)).sift(shared)
    assert values.tolist() == [1.0, 2.0, 3.0]
