"""Estimates of what windows would hold if nothing had been dropped."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import headway as hw
from headway.boxes import REGISTRY
from headway.columns import UNREAD, Int64s
from headway.kernels.compile import compile_kernel
from headway.kernels.kernel import DeadLetter
from headway.network.schema import Schema
from headway.sieves import KeptShares, Sieve
from headway.trains import Train, join_trains
from tests.behaviour import sharded  # noqa: F401  (it registers itself)
from tests.kernels.helpers import few

SCHEMA = Schema.parse("t bigint, k int, x double")
ALL = "count(*) as n, sum(x) as s, avg(x) as m"
Row = dict[str, Any]


def make(settings: Row, schema: Schema = SCHEMA) -> Any:
    """Return the kernel of an aggregate, and the schema of its results."""
    spec = REGISTRY["aggregate"].parse("box", {"select": ALL, "order": {"on": "t"}, **settings})
    return compile_kernel(spec, "box", [schema], [None], None), spec.infer("box", [schema])[0]


def train(rows: Sequence[tuple[Any, ...]], start: int = 0, schema: Schema = SCHEMA) -> Train:
    """Return tuples, numbered from `start`."""
    columns = [pa.array([row[at] for row in rows], type_) for at, type_ in enumerate(schema.types)]
    batch = pa.RecordBatch.from_arrays(columns, schema=schema.to_arrow())
    return Train.from_batch(batch, numbers=np.arange(start, start + len(rows), dtype=np.int64))


def run(
    made: tuple[Any, Schema],
    trains: Sequence[Train],
    kept: KeptShares | None = None,
    dead: list[DeadLetter] | None = None,
) -> list[Row]:
    """Return the results over trains, the last of which ends the stream; states go through bytes."""
    kernel, schema = made
    if kept is not None:
        kernel.kept = kept
    state = kernel.initial()
    rows: list[Row] = []
    for at, one in enumerate(trains):
        last = at == len(trains) - 1
        one = Train(one.columns, one.stamps, one.numbers, one.progress, one.ticks, last)
        state, result = kernel.run(kernel.load(kernel.dump(state)), [one], 0)
        rows += result.outputs[0].to_batch(schema.to_arrow()).to_pylist()
        if dead is not None:
            dead += result.dead
    return rows


FOUR = [(0, 1, 1.0), (1, 1, 2.0), (2, 1, 3.0), (3, 1, 4.0)]
STEPS = [(0, 1.0), (1, 0.5), (3, 0.25)]
"""The weights of the four are 1, 2, 2 and 4, and w(w - 1) is 0, 2, 2 and 12."""


def test_by_hand() -> None:
    (row,) = run(make({"size": 10, "approximate": True}), [train(FOUR)], KeptShares.of(STEPS))
    assert row == {
        "t": 0,
        "n": 9.0,
        "n_error": pytest.approx(1.96 * 4),
        "s": 27.0,
        "s_error": pytest.approx(1.96 * math.sqrt(218)),
        "m": 3.0,
        "m_error": pytest.approx(1.96 * math.sqrt(14) / 9),
    }


@pytest.mark.parametrize("grid", [{"size": 10}, {"advance": {"when": "false"}}], ids=["windows", "sessions"])
def test_nulls_and_filters(grid: Row) -> None:
    rows = [(0, 1, None), (1, 1, 2.0), (2, 1, 3.0), (3, 1, None)]
    select = (
        "count(*) as n, count(x) as c, avg(x) as m, sum(x) filter (where k is null) as none, "
        "count(*) filter (where x > 2) as f, count_if(x > 2) as i"
    )
    (row,) = run(make({"select": select, "approximate": True, **grid}), [train(rows)], KeptShares.of(STEPS))
    assert (row["n"], row["n_error"]) == (9.0, pytest.approx(1.96 * 4))
    assert (row["c"], row["c_error"]) == (4.0, pytest.approx(1.96 * 2))
    assert (row["m"], row["m_error"]) == (2.5, pytest.approx(1.96 * math.sqrt(2 * 0.25 + 2 * 0.25) / 4))
    assert (row["none"], row["none_error"]) == (None, None)
    assert (row["f"], row["f_error"]) == (2.0, pytest.approx(1.96 * math.sqrt(2)))
    assert (row["i"], row["i_error"]) == (2.0, pytest.approx(1.96 * math.sqrt(2)))


def test_no_value_at_all() -> None:
    select = "sum(x) as s, avg(x) as m, count(x) as c"
    (row,) = run(
        make({"select": select, "size": 10, "approximate": True}), [train([(0, 1, None)])], KeptShares.of(STEPS)
    )
    assert row == {"t": 0, "s": None, "s_error": None, "m": None, "m_error": None, "c": 0.0, "c_error": 0.0}


def test_expressions_are_made_of_estimates_and_other_functions_are_not_scaled() -> None:
    select = "sum(x) / count(*) as q, max(x) as high, count(distinct x) as d, median(x) as mid, first(x) as f"
    (row,) = run(make({"select": select, "size": 10, "approximate": True}), [train(FOUR)], KeptShares.of(STEPS))
    assert row == {"t": 0, "q": 3.0, "high": 4.0, "d": 4, "mid": 2.5, "f": 1.0}


def test_whole_numbers_and_decimals() -> None:
    schema = Schema.parse("t bigint, i int, d decimal(10,2)")
    select = "sum(i) as i, avg(d) as d, sum(i + 1) as j"
    made = make({"select": select, "size": 10, "approximate": True}, schema)
    rows = [(0, 1, 1), (1, 2, 2), (2, 3, 3), (3, 4, 4)]
    (row,) = run(made, [train(rows, schema=schema)], KeptShares.of(STEPS))
    assert (row["i"], row["d"], row["j"]) == (27.0, 3.0, 36.0)
    assert row["i_error"] == pytest.approx(1.96 * math.sqrt(218))
    assert row["d_error"] == pytest.approx(1.96 * math.sqrt(14) / 9)


def test_infinite_values() -> None:
    rows = [(0, 1, math.inf), (1, 1, 1.0)]
    made = make({"size": 10, "approximate": True})
    (row,) = run(made, [train(rows)])
    assert (row["s"], row["s_error"], row["m"], row["m_error"]) == (math.inf, 0.0, math.inf, 0.0)
    (row,) = run(made, [train(rows)], KeptShares.of([(0, 0.5)]))
    assert (row["s"], row["s_error"], row["m"]) == (math.inf, math.inf, math.inf)
    assert math.isnan(row["m_error"])


def test_what_came_although_nothing_was_to_be_kept_stands_for_itself() -> None:
    (row,) = run(make({"size": 10, "approximate": True}), [train(FOUR)], KeptShares.of([(0, 0.0)]))
    assert (row["n"], row["s"], row["n_error"]) == (4.0, 10.0, 0.0)


def test_a_share_that_changes_in_the_middle_of_a_window() -> None:
    """What is noted while a window is open counts for the tuples from there on."""
    kernel, schema = make({"size": 10, "approximate": True})
    kept = kernel.kept = KeptShares()
    state, _ = kernel.run(kernel.initial(), [train([(0, 1, 1.0), (1, 1, 1.0)])], 0)
    kept.note(2, 0.5)
    state, _ = kernel.run(state, [train([(2, 1, 1.0), (3, 1, 1.0)], 2)], 0)
    kept.note(4, 1.0)
    state, result = kernel.run(state, [train([(4, 1, 1.0), (11, 1, 1.0)], 4)], 0)
    (row,) = result.outputs[0].to_batch(schema.to_arrow()).to_pylist()
    assert (row["n"], row["n_error"]) == (1 + 1 + 2 + 2 + 1, pytest.approx(1.96 * 2))


GRIDS: dict[str, Row] = {
    "tumbling": {"size": 5},
    "partitions": {"size": 5, "order": {"on": "t", "by": ["k"]}},
    "sliding": {"size": 6, "advance": 2, "order": {"on": "t", "by": ["k"]}},
    "slack": {"size": 5, "order": {"on": "t", "slack": 2}},
    "first": {"size": 5, "align": "first", "order": {"on": "t", "by": ["k"]}},
    "numbers": {"size": 3, "order": {"on": "#", "by": ["k"]}},
    "sessions": {"advance": {"when": "t - last.t > 1"}, "order": {"on": "t", "by": ["k"]}},
    "sorted sessions": {"advance": {"when": "x > first.x"}, "size": 9, "order": {"on": "t", "slack": 2, "by": ["k"]}},
}
streams = st.lists(
    st.tuples(
        st.integers(-3, 30), st.integers(0, 2), st.one_of(st.integers(-4, 4).map(lambda value: value / 2), st.none())
    ),
    max_size=60,
).flatmap(lambda rows: st.sampled_from([rows, sorted(rows, key=lambda row: row[0])]))
cuts = st.lists(st.integers(0, 60), max_size=4)
steps = st.lists(st.tuples(st.integers(0, 60), st.sampled_from([0.1, 0.25, 0.5, 1.0])), max_size=5)


def cut(rows: Sequence[tuple[Any, ...]], at: Sequence[int]) -> list[Train]:
    edges = sorted({0, len(rows), *(one for one in at if one < len(rows))})
    pieces = [train(rows[start:stop], start) for start, stop in pairwise(edges)]
    return pieces or [train(rows)]


@pytest.mark.parametrize("grid", GRIDS)
@few
@given(rows=streams, at=cuts)
def test_where_nothing_was_dropped_estimates_are_exact(grid: str, rows: list[Any], at: list[int]) -> None:
    select = f"{ALL}, count(x) as c, max(x) as high, sum(x) / count(*) as q"
    exact = run(make({"select": select, **GRIDS[grid]}), cut(rows, at))
    estimated = run(make({"select": select, **GRIDS[grid], "approximate": True}), cut(rows, at))
    assert [{name: value for name, value in row.items() if not name.endswith("_error")} for row in estimated] == exact
    for row in estimated:
        assert row["n_error"] == row["c_error"] == 0
        assert row["s_error"] == row["m_error"] == (None if row["s"] is None else 0)


@pytest.mark.parametrize("grid", GRIDS)
@few
@given(rows=streams, at=cuts, shares=steps)
def test_however_trains_are_cut(grid: str, rows: list[Any], at: list[int], shares: list[Any]) -> None:
    made = make({**GRIDS[grid], "approximate": True})
    kept = KeptShares.of(shares)
    assert run(made, cut(rows, at), kept) == run(made, cut(rows, ()), kept)


PLAIN = make({"size": 1, "approximate": True})


@settings(deadline=None)
@given(rows=streams, shares=steps, offset=st.sampled_from([0.0, 1e4, -1e4]))
def test_estimates_are_what_the_formulas_say(rows: list[Any], shares: list[Any], offset: float) -> None:
    rows = [(0, 1, None if x is None else x + offset) for _, _, x in rows]
    kept = KeptShares.of(shares)
    found = run(PLAIN, [train(rows)], kept)
    if not rows:
        assert found == []
        return
    (row,) = found
    w = 1 / kept.shares(np.arange(len(rows)))
    assert row["n"] == pytest.approx(w.sum())
    assert row["n_error"] == pytest.approx(1.96 * math.sqrt((w * (w - 1)).sum()))
    some = np.array([x is not None for _, _, x in rows])
    if not some.any():
        assert row["m"] is None
        return
    w, x = w[some], np.array([x for _, _, x in rows if x is not None])
    mean = (w * x).sum() / w.sum()
    assert row["s"] == pytest.approx((w * x).sum())
    assert row["s_error"] == pytest.approx(1.96 * math.sqrt((w * (w - 1) * x * x).sum()))
    assert row["m"] == pytest.approx(mean)
    expected = 1.96 * math.sqrt((w * (w - 1) * (x - mean) ** 2).sum()) / w.sum()
    assert row["m_error"] == pytest.approx(expected, abs=1e-6 * max(1.0, abs(mean)))


COUNT = 500


def test_estimates_are_unbiased_and_their_intervals_cover_the_truth() -> None:
    """Over 300 samples of 30 per cent: the mean is the truth, and 95 per cent of the intervals hold it."""
    chance = np.random.default_rng(7)
    values = chance.normal(20, 6, COUNT)
    whole = train([(0, 1, float(x)) for x in values])
    truth = {"n": COUNT, "s": values.sum(), "m": values.mean()}
    made = make({"size": 10, "approximate": True})
    kept = KeptShares.of([(0, 0.3)])
    # A seed shifts the numbers, so that samples are independent only if the seeds are further apart than the numbers.
    found = [run(made, [Sieve(0.3, seed * 2 * COUNT).sift(whole)], kept)[0] for seed in range(300)]
    for name, expected in truth.items():
        estimates = np.array([row[name] for row in found])
        errors = np.array([row[f"{name}_error"] for row in found])
        assert abs(estimates.mean() - expected) < 3 * estimates.std(ddof=1) / math.sqrt(len(found)), name
        assert 0.90 <= (np.abs(estimates - expected) <= errors).mean() <= 0.99, name


def test_intervals_cover_the_truth_where_the_share_changes_within_the_window() -> None:
    chance = np.random.default_rng(8)
    values = chance.normal(20, 6, COUNT)
    whole = train([(0, 1, float(x)) for x in values])
    head, tail = whole.slice(0, COUNT // 2), whole.slice(COUNT // 2, COUNT)
    made = make({"size": 10, "approximate": True})
    kept = KeptShares.of([(0, 0.2), (COUNT // 2, 0.6)])
    found = []
    for seed in range(0, 300 * 2 * COUNT, 2 * COUNT):
        found.append(run(made, [Sieve(0.2, seed).sift(head), Sieve(0.6, seed).sift(tail)], kept)[0])
    for name, expected in {"n": COUNT, "s": values.sum(), "m": values.mean()}.items():
        estimates = np.array([row[name] for row in found])
        errors = np.array([row[f"{name}_error"] for row in found])
        assert abs(estimates.mean() - expected) < 3 * estimates.std(ddof=1) / math.sqrt(len(found)), name
        assert 0.90 <= (np.abs(estimates - expected) <= errors).mean() <= 0.99, name


def test_dead_letters_show_the_users_fields_only() -> None:
    dead: list[DeadLetter] = []
    for grid in ({"size": 10}, {"advance": {"when": "1 / k > 5"}}):
        dead.clear()
        select = "sum(x / k) as s" if "size" in grid else ALL
        rows = [(0, 1, 1.0), (1, 0, 2.0), (2, 1, 3.0)]
        (row,) = run(make({"select": select, "approximate": True, **grid}), [train(rows)], dead=dead)
        assert row["s"] == 4.0
        (letter,) = dead
        assert letter.schema == SCHEMA
        assert letter.train.to_batch(SCHEMA.to_arrow()).to_pylist() == [{"t": 1, "k": 0, "x": 2.0}]


def test_columns_that_nobody_reads_may_be_left_out() -> None:
    kernel, _ = made = make({"size": 5, "approximate": True})
    assert kernel.reads == frozenset({0, 2})
    assert make({"size": 5, "select": "sum(x + 1) as s", "approximate": True})[0].reads is None
    whole = train([(at // 100, 1, float(at)) for at in range(1000)])
    slim = whole.with_columns([whole.columns[0], UNREAD, whole.columns[2]])
    kept = KeptShares.of([(500, 0.5)])
    assert run(made, [slim], kept) == run(made, [whole], kept)


def test_long_trains_that_a_filter_chose_from() -> None:
    """The groups that another box has found in the whole train are used, with weights of the tuples' own."""
    whole = train([(at // 100, at % 7, float(at % 5)) for at in range(1000)])
    chosen: Int64s = np.flatnonzero(np.arange(1000) % 3 == 0)
    settings: Row = {"size": 2, "order": {"on": "t", "by": ["k"]}}
    kept = KeptShares.of([(500, 0.5)])
    for _ in range(2):  # with what the first has left in the train's memo
        exact, schema = make(settings)
        exact.run(exact.initial(), [whole], 0)
        kernel, schema = make({**settings, "approximate": True})
        kernel.kept = kept
        fast = kernel.run(kernel.initial(), [whole.choose(chosen, {0, 1, 2})], 0)[1].outputs[0]
        slow = kernel.run(kernel.initial(), [whole.take(chosen)], 0)[1].outputs[0]
        pieces = run((kernel, schema), [whole.take(part) for part in np.array_split(chosen, 9)])
        rows = fast.to_batch(schema.to_arrow()).to_pylist()
        assert rows == slow.to_batch(schema.to_arrow()).to_pylist()
        assert rows == pieces[: len(rows)]
        assert len(rows) == 4 * 7


def test_engines_can_tell_them() -> None:
    assert make({"size": 5, "approximate": True})[0].kept is not None
    assert make({"advance": {"when": "true"}, "approximate": True})[0].kept is not None
    assert make({"size": 5})[0].kept is None


def test_timeouts() -> None:
    kernel, _ = make({"size": 5, "timeout": "1s", "approximate": True})
    assert kernel.deadline(kernel.initial()) is None
    state, _ = kernel.run(kernel.initial(), [train(FOUR)], 7)
    assert kernel.deadline(state) == 7 + 10**9


@pytest.mark.parametrize("engine", ["local", "sim", "sharded"])
def test_in_a_network(engine: str) -> None:
    """Where nothing is shed every engine gives the exact results, through filters and in shards, too."""
    rows = [{"t": at // 4, "k": at % 3, "x": float(at % 7)} for at in range(600)]
    results = []
    for approximate in (False, True):
        window = {"op": "aggregate", "in": "some", "select": ALL, "order": {"on": "t", "by": ["k"]}, "size": 5}
        network = {
            "network": "n",
            "sources": {"s": {"schema": {"t": "bigint", "k": "int", "x": "double"}}},
            "boxes": {
                "some": {"op": "filter", "in": "s", "where": "x > 1"},
                "w": {**window, "approximate": approximate},
                "bursts": {**window, "size": None, "advance": {"when": "x < last.x"}, "approximate": approximate},
            },
            "outputs": {"out": {"from": "w"}, "bursts": {"from": "bursts"}},
        }
        results.append(hw.run(hw.load(network), {"s": rows}, engine=engine))
    exact, estimated = results
    for name, table in exact.outputs.items():
        found = estimated.outputs[name].to_pylist()
        assert [{key: row[key] for key in table.schema.names} for row in found] == table.to_pylist()
        assert {row["n_error"] for row in found} == {row["m_error"] for row in found} == {0.0}


def test_joined_trains_weigh_as_their_parts() -> None:
    one, two = train(FOUR), train(FOUR, 4)
    made = make({"size": 10, "approximate": True})
    kept = KeptShares.of([(4, 0.5)])
    assert run(made, [join_trains([one, two])], kept) == run(made, [one, two], kept)
