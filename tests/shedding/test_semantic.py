"""Semantic load shedding: which tuples a drop box keeps."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.checking import CheckedNetwork, check
from headway.columns import UNREAD
from headway.files import load
from headway.network.schema import Schema
from headway.shedding.intervals import Histogram
from headway.shedding.semantic import SemanticPlanner
from headway.shedding.sites import Entry
from headway.sieves import Sieve
from headway.trains import Train
from tests.searching import examples

Floats = npt.NDArray[np.float64]
SCHEMA = Schema.parse("t bigint, temperature double, a double, room int")
STEP: list[list[float]] = [[29.99, 0], [30, 1]]
BACKWARD = {
    "hot": {"op": "filter", "in": "s", "where": "temperature > 0"},
    "celsius": {"op": "map", "in": "hot", "select": "t, -temperature * 2 as u, room"},
    "shown": {"op": "map", "in": "celsius", "select": "u / -2 as value"},
}
FORWARD = {
    "curved": {"op": "map", "in": "s", "select": "t, a * a as squared"},
    "sorted": {"op": "bsort", "in": "curved", "order": {"on": "t", "slack": 3}},
    "shown": {"op": "map", "in": "sorted", "select": "squared + 1 as value"},
}
MIXED = {
    "counts": {"op": "aggregate", "in": "s", "select": "avg(a) as value", "order": {"on": "t"}, "size": 5},
    "shown": {"op": "map", "in": "counts", "select": "value"},
}


def network(boxes: dict[str, Any], graph: list[list[float]] | None) -> CheckedNetwork:
    qos = {} if graph is None else {"value": {"field": "value", "graph": graph}}
    sources = {"s": {"schema": str(SCHEMA)}}
    return check(
        load({"network": "n", "sources": sources, "boxes": boxes, "outputs": {"o": {"from": "shown", "qos": qos}}})
    )


def planner(boxes: dict[str, Any], graph: list[list[float]] | None = None, output: int | str = "o") -> SemanticPlanner:
    return SemanticPlanner(network(boxes, graph or STEP), output, Entry(0, 0, -1))


def train(seed: int, count: int, **columns: Floats) -> Train:
    rng = np.random.default_rng(seed)
    made: dict[str, Any] = {
        "t": np.arange(count) + 10_000_000 * seed,
        "temperature": rng.normal(20, 15, count),
        "a": rng.normal(0, 6, count),
        "room": rng.integers(0, 5, count).astype(np.int32),
        **columns,
    }
    return Train.from_batch(pa.record_batch([pa.array(made[name]) for name in SCHEMA.names], schema=SCHEMA.to_arrow()))


def kept(sieve: Sieve, tuples: Train) -> npt.NDArray[np.bool_]:
    mask = sieve.kept(tuples)
    return np.ones(len(tuples), np.bool_) if mask is None else mask


def test_backward_keeps_what_is_useful() -> None:
    plan = planner(BACKWARD)
    assert plan.how == "by 'temperature', backward through 'shown', 'celsius', 'hot'"
    assert plan.by_value
    fresh = train(2, 20_000)
    useful = fresh.columns[1].values >= 30
    sieve = plan.sieve(train(1, 4096), Histogram(), 0.5, 7)
    mask = kept(sieve, fresh)
    assert sieve.field == 1
    assert mask[useful].mean() == 1.0
    assert abs(mask.mean() - 0.5) < 0.03
    assert kept(Sieve(0.5, 7), fresh)[useful].mean() == pytest.approx(0.5, abs=0.03)
    assert plan.explain(sieve) == plan.how


def test_what_the_filter_rejects_goes_first() -> None:
    plan = planner(BACKWARD, [[0, 0.5], [100, 0.5]])  # all results are worth the same
    fresh = train(2, 20_000)
    passes = fresh.columns[1].values > 0
    mask = kept(plan.sieve(train(1, 4096), None, 0.95, 7), fresh)  # nine per cent are rejected
    assert mask[passes].all()
    assert mask[~passes].mean() == pytest.approx(1 - 0.05 / (~passes).mean(), abs=0.15)
    assert 0.2 < mask[~passes].mean() < 0.7


def test_without_a_sample_the_histogram_is_taken_back() -> None:
    plan = planner({"shown": {"op": "map", "in": "s", "select": "3 - temperature as value"}}, [[-27.01, 1], [-27, 0]])
    histogram = Histogram()
    histogram.add(3 - np.random.default_rng(5).normal(20, 15, 4096))
    fresh = train(2, 20_000)
    mask = kept(plan.sieve(None, histogram, 0.5, 7), fresh)
    assert mask[fresh.columns[1].values > 30.02].all()
    assert abs(mask.mean() - 0.5) < 0.03


def test_a_trial_finds_the_field() -> None:
    plan = planner(FORWARD, [[37, 0], [37.01, 1]])
    assert plan.how == (
        "by trial over 't', 'temperature', 'a', 'room' as far as 'curved', backward through 'shown', 'sorted'"
    )
    fresh = train(2, 20_000)
    useful = np.abs(fresh.columns[2].values) > 6.0009
    assert useful.mean() < 0.5
    sieve = plan.sieve(train(1, 4096), None, 0.5, 7)
    assert plan.explain(sieve) == "by trial over 'a'"
    mask = kept(sieve, fresh)
    assert mask[useful].mean() > 0.95
    assert abs(mask.mean() - 0.5) < 0.03
    small = kept(plan.sieve(train(1, 1024), None, 0.5, 7), fresh)
    assert small[useful].mean() > 0.95


def test_nothing_known_is_at_random() -> None:
    plan = planner(FORWARD)
    histogram = Histogram()
    histogram.add(np.arange(1000.0))
    assert plan.sieve(None, histogram, 0.5, 3) == Sieve(0.5, 3)
    assert plan.sieve(train(1, 20), histogram, 0.5, 3) == Sieve(0.5, 3)
    assert plan.explain(Sieve(0.5, 3)).startswith("at random: nothing observed tells tuples apart (by trial")
    assert planner(BACKWARD).sieve(None, None, 0.5, 3) == Sieve(0.5, 3)
    plain = planner({"shown": {"op": "map", "in": "s", "select": "temperature as value"}}, [[5, 1]])
    assert plain.sieve(train(1, 1000), None, 0.5, 3) == Sieve(0.5, 3)
    sample = train(1, 1000)
    slim = sample.with_columns([sample.columns[0], UNREAD, *sample.columns[2:]])
    assert planner(BACKWARD).sieve(slim, None, 0.5, 3) == Sieve(0.5, 3)


def test_what_was_asked_before_does_not_matter() -> None:
    one, two = train(1, 1024), train(2, 1024)
    for boxes in (BACKWARD, FORWARD):
        plan = planner(boxes)
        first = plan.sieve(one, None, 0.3, 3)
        other = plan.sieve(two, None, 0.3, 3)
        assert first != other
        assert plan.sieve(one, None, 0.3, 3) == first
        assert plan.sieve(one, None, 0.6, 3) == planner(boxes).sieve(one, None, 0.6, 3)


@pytest.mark.parametrize(
    ("boxes", "graph", "how"),
    [
        (MIXED, STEP, "at random: 'counts' mixes tuples"),
        (BACKWARD, None, "at random: output 'o' has no value graph"),
    ],
)
def test_at_random_with_a_reason(boxes: dict[str, Any], graph: list[list[float]] | None, how: str) -> None:
    plan = SemanticPlanner(network(boxes, graph), 0, Entry(0, 0, -1))
    assert plan.how == how
    assert not plan.by_value
    sieve = plan.sieve(train(1, 1000), Histogram(), 0.5, 3)
    assert sieve == Sieve(0.5, 3)
    assert plan.explain(sieve) == how
    assert plan.loss_graph(train(1, 1000), None) is None


def test_an_entry_behind_the_box_that_mixes_is_told_apart() -> None:
    checked = network(MIXED, STEP)
    assert SemanticPlanner(checked, "o", Entry(1, 0, 0)).how == "by 'value', backward through 'shown'"
    assert SemanticPlanner(checked, "o", "counts").how == "by 'value', backward through 'shown'"


def test_null_is_kept_like_all_others() -> None:
    temperature = np.random.default_rng(1).normal(20, 15, 4096)
    batch = train(1, 4096).to_batch(SCHEMA.to_arrow())
    missing = pa.array(temperature, mask=np.arange(4096) % 4 == 0)
    sample = Train.from_batch(batch.set_column(1, SCHEMA.to_arrow().field(1), missing))
    sieve = planner(BACKWARD).sieve(sample, None, 0.4, 7)
    assert sieve.keep == 0.4
    assert kept(sieve, sample).mean() == pytest.approx(0.4, abs=0.03)


def test_the_loss_graph_is_that_of_the_results() -> None:
    graph = planner(BACKWARD).loss_graph(train(1, 4096), None)
    assert graph is not None
    temperature = train(1, 4096).columns[1].values
    useful, passing = (temperature >= 30).mean(), (temperature > 0).mean()
    assert graph.value(100) == pytest.approx(useful / passing, abs=0.002)
    assert graph.value(100 * useful) == pytest.approx(useful / passing, abs=0.002)
    assert graph.value(50 * useful) == pytest.approx(useful / passing / 2, abs=0.002)
    tried = planner(FORWARD, [[37, 0], [37.01, 1]]).loss_graph(train(1, 4096), None)
    assert tried is not None
    assert tried.value(100) == pytest.approx((np.abs(train(1, 4096).columns[2].values) > 6.0).mean(), abs=0.01)


@examples(40)
@given(
    st.sampled_from([BACKWARD, FORWARD]),
    st.integers(0, 1000),
    st.floats(0, 1),
    st.floats(0, 1),
    st.sampled_from([STEP, [[0, 0], [60, 1]], [[10, 1], [11, 0], [40, 0], [41, 1]]]),
)
def test_less_drops_more_and_the_share_is_right(
    boxes: dict[str, Any], seed: int, one: float, two: float, graph: list[list[float]]
) -> None:
    plan, sample = planner(boxes, graph), train(seed, 4096)
    fresh = train(seed + 5000, 20_000)
    less, more = (kept(plan.sieve(sample, None, keep, seed), fresh) for keep in sorted((one, two)))
    assert not (less & ~more).any()
    assert less.mean() == pytest.approx(min(one, two), abs=0.03)
    sieve = plan.sieve(sample, None, one, seed)
    assert sieve == Sieve.of(sieve.to_mapping())
    if sieve.field is not None:
        shares = np.array(sieve.shares)[np.searchsorted(sieve.edges, sample.columns[sieve.field].values, "right")]
        assert shares.mean() == pytest.approx(one)
