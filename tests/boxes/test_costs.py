"""What a tuple costs: reading, writing, drawing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.boxes.costs import (
    Constant,
    Cost,
    LastTuple,
    Uniform,
    Zipf,
    draw,
    parse_cost,
    places_of,
    tuple_keys,
)
from headway.columns import splitmix64
from headway.durations import Duration
from headway.errors import NetworkError
from tests.reference import universal as reference

MANY = np.arange(100_000)
NONE = np.zeros(100_000, np.int64)


@pytest.mark.parametrize(
    ("value", "cost", "mean"),
    [
        (0, Constant(0.0), 0.0),
        ("2ms", Constant(0.002), 0.002),
        (0.002, Constant(0.002), 0.002),
        ("10 microseconds", Constant(0.00001), 0.00001),
        (Duration(50), Constant(0.00005), 0.00005),
        (5e-7, Constant(5e-7), 5e-7),
        ({"uniform": ["1ms", 0.003]}, Uniform(0.001, 0.003), 0.002),
        # Ranks 1 and 2 with weights 1 and 1/2: (1 + 2/2) / (3/2) ranks of 3 ms.
        ({"zipf": [1, 2, "3ms"]}, Zipf(1.0, 2, 0.003), 0.004),
    ],
)
def test_reading(value: object, cost: Cost, mean: float) -> None:
    assert parse_cost(value) == cost
    assert parse_cost(value).mean == pytest.approx(mean)
    assert parse_cost(cost) is cost


@pytest.mark.parametrize(
    ("cost", "plain"),
    [
        (Constant(0.0), "0s"),
        (Constant(0.002), "2ms"),
        (Constant(5e-7), 5e-7),
        (Uniform(0.001, 1.5), {"uniform": ["1ms", "1s500ms"]}),
        (Zipf(1.5, 100, 0.00001), {"zipf": [1.5, 100, "10us"]}),
    ],
)
def test_writing(cost: Cost, plain: Any) -> None:
    assert cost.to_plain() == plain


spans = st.floats(0, 100) | st.integers(0, 10**9).map(lambda micros: micros / 1_000_000)


@settings(deadline=None)
@given(
    spans.map(Constant)
    | st.tuples(spans, spans).map(lambda pair: Uniform(min(pair), max(pair)))
    | st.builds(Zipf, st.floats(-3, 5), st.integers(1, 50), spans)
)
def test_what_is_written_reads_back(cost: Cost) -> None:
    assert parse_cost(cost.to_plain()) == cost
    assert hash(parse_cost(cost.to_plain())) == hash(cost)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (-1, "zero or more, not -1"),
        ("-2ms", "zero or more, not '-2ms'"),
        (float("nan"), "zero or more, not nan"),
        ("2", "'2' is not a duration; a duration is a number and a unit"),
        ("2 parsecs", "unknown unit 'parsecs'"),
        (True, "a duration such as '2ms', seconds as a number"),
        ([1, 2], "a duration such as '2ms', seconds as a number"),
        ("3 days", "'3 days' is too much; a tuple costs a day at most"),
        ({"unifrom": [1, 2]}, "unknown distribution 'unifrom'; did you mean 'uniform'? choices: uniform, zipf"),
        ({}, "name one distribution, not (none); choices: uniform, zipf"),
        ({"uniform": [1, 2], "zipf": [1, 2, 3]}, "name one distribution, not uniform, zipf"),
        ({"uniform": 3}, "uniform: expected [lowest, highest], such as [1ms, 3ms], not 3"),
        ({"uniform": ["3ms", "1ms"]}, "uniform: the lower bound 3ms is above the upper bound 1ms"),
        ({"uniform": ["1ms", None]}, "uniform: must be a duration"),
        ({"zipf": [1.5, 10]}, "zipf: expected [exponent, number of ranks, unit]"),
        ({"zipf": ["a", 10, "1ms"]}, "zipf: the exponent is a number, not 'a'"),
        ({"zipf": [1, 0, "1ms"]}, "zipf: the number of ranks is a whole number from 1 to 1000000, not 0"),
        ({"zipf": [1, 1.5, "1ms"]}, "zipf: the number of ranks is a whole number from 1 to 1000000, not 1.5"),
        ({"zipf": [1, 100_000, "1s"]}, "zipf: 100000 times 1s is too much; a tuple costs a day at most"),
    ],
)
def test_what_is_no_cost(value: object, said: str) -> None:
    with pytest.raises(NetworkError) as caught:
        parse_cost(value)
    assert said in str(caught.value)


def test_the_hash_is_the_known_one() -> None:
    states = np.array([0, 0x9E3779B97F4A7C15], np.uint64)
    assert splitmix64(states).tolist() == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4]


@settings(deadline=None)
@given(
    seed=st.integers(0, 2**70),
    box=st.text(max_size=5),
    tuples=st.lists(st.tuples(st.integers(0, 2**62), st.integers(0, 5)), max_size=5),
    question=st.integers(0, 9),
)
def test_keys_and_draws_are_those_of_the_reference(
    seed: int, box: str, tuples: list[tuple[int, int]], question: int
) -> None:
    numbers, places = (np.array([one[at] for one in tuples], np.int64) for at in (0, 1))
    keys = tuple_keys(seed, box, numbers, places)
    expected = [reference.key(seed, box, number, place) for number, place in tuples]
    assert keys.tolist() == expected
    assert draw(keys, question).tolist() == [reference.drawn(key, question) for key in expected]


def test_places_by_hand() -> None:
    places, last = places_of(np.array([3, 3, 5, 6, 6, 6]))
    assert places.tolist() == [0, 1, 0, 0, 1, 2]
    assert last == LastTuple(6, 2)
    places, last = places_of(np.array([6, 6, 7]), last)
    assert places.tolist() == [3, 4, 0]
    assert last == LastTuple(7, 0)
    assert places_of(np.zeros(0, np.int64), last)[1] == last


@settings(deadline=None)
@given(numbers=st.lists(st.integers(0, 6), max_size=20).map(sorted), cut=st.integers(0, 20))
def test_places_do_not_depend_on_trains(numbers: list[int], cut: int) -> None:
    whole, end = places_of(np.array(numbers, np.int64))
    first, between = places_of(np.array(numbers[:cut], np.int64))
    second, last = places_of(np.array(numbers[cut:], np.int64), between)
    assert [*first, *second] == whole.tolist()
    assert last == end


@pytest.mark.parametrize("cost", [Constant(0.25), Uniform(1, 3), Zipf(1.2, 20, 0.5), Zipf(0, 4, 1), Zipf(400, 9, 2)])
def test_costs_have_their_mean_and_their_bounds(cost: Cost) -> None:
    seconds = cost.seconds(tuple_keys(7, "box", MANY, NONE))
    assert seconds.shape == MANY.shape
    # The mean of a hundred thousand draws lies within five of its deviations.
    assert abs(seconds.mean() - cost.mean) <= 5 * seconds.std() / len(seconds) ** 0.5 + 1e-12
    if isinstance(cost, Uniform):
        assert cost.low <= seconds.min() < seconds.max() < cost.high
    if isinstance(cost, Zipf):
        ranks = seconds / cost.unit
        assert set(ranks.tolist()) <= set(range(1, cost.ranks + 1))
        shares = np.bincount(ranks.astype(int), minlength=3)[1:3] / len(ranks)
        assert shares[1] / shares[0] == pytest.approx(2**-cost.exponent, abs=0.03)


def test_a_cost_hangs_on_seed_box_number_and_place() -> None:
    cost, numbers = Uniform(0, 1), np.arange(50)
    plain = cost.seconds(tuple_keys(0, "box", numbers, numbers * 0))
    others = [
        tuple_keys(1, "box", numbers, numbers * 0),
        tuple_keys(0, "bax", numbers, numbers * 0),
        tuple_keys(0, "box", numbers + 50, numbers * 0),
        tuple_keys(0, "box", numbers, numbers * 0 + 1),
    ]
    for keys in others:
        assert not np.isin(cost.seconds(keys), plain).any()
    backwards = tuple_keys(0, "box", numbers[::-1].copy(), numbers * 0)
    assert cost.seconds(backwards).tolist() == plain[::-1].tolist()


def test_draws_for_different_questions_are_independent() -> None:
    keys = tuple_keys(0, "box", MANY, NONE)
    assert abs(np.corrcoef(draw(keys, 1), draw(keys, 2))[0, 1]) < 0.02
