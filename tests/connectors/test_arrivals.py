"""Rates that change: how many tuples come, and when, by hand and by law."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.connectors import generate, open_source
from headway.connectors.arrivals import Phase, parse_phases
from headway.network.schema import Schema
from tests.connectors.helpers import drain
from tests.searching import examples

SECOND = 1_000_000_000
KINDS = ("constant", "poisson")
FIELDS: dict[str, Any] = {"i": "i", "t": "t", "x": {"uniform": [0, 999]}}
PHASES = st.lists(
    st.tuples(st.sampled_from([0.001, 0.3, 1, 2.5, "250ms"]), st.sampled_from([0, 0.1, 0.3, 1, 7, 33.3, 100])),
    min_size=1,
    max_size=6,
).filter(lambda phases: any(rate for _, rate in phases))


def make(
    phases: object, arrivals: str = "constant", limits: tuple[int, ...] = (1 << 20,), **more: object
) -> tuple[pa.Table | None, list[int]]:
    """Return all tuples of a generator with these phases, and their moments."""
    what = {"generate": {"phases": phases, "arrivals": arrivals, "fields": FIELDS, **more}}
    reader = open_source("g", Schema.parse("i bigint, t double, x int"), what)
    assert reader.timed
    assert reader.finite
    table, due, _ = drain(reader, limits)
    return table, due


def moments(phases: object, arrivals: str = "constant", **more: int) -> list[float]:
    """Return the moments in seconds."""
    return [moment / SECOND for moment in make(phases, arrivals, **dict[str, Any](more))[1]]


def test_each_phase_has_its_rate() -> None:
    table, due = make([["2s", 2], ["1s", 4], [2, 1]])
    assert [moment / SECOND for moment in due] == [0, 0.5, 1, 1.5, 2, 2.25, 2.5, 2.75, 3, 4]
    assert table is not None
    assert table.column("i").to_pylist() == list(range(10))
    assert table.column("t").to_pylist() == [moment / SECOND for moment in due]


def test_a_tuple_takes_its_time_from_both_phases() -> None:
    # Half a tuple is over at 1 s; the rest comes at 2 a second.
    assert moments([["1s", 0.5], ["1s", 2]]) == [0, 1.25, 1.75]
    assert moments([["1s", 2.5], ["1s", 1]]) == [0, 0.4, 0.8, 1.5]


def test_silence() -> None:
    assert moments([["1s", 0], ["1s", 2], ["3s", 0], ["1s", 2]]) == [1, 1.5, 5, 5.5]
    assert moments([["1s", 1.5], ["3s", 0], ["1s", 2]]) == [0, 0.666666667, 4.25, 4.75]
    assert moments([["1s", 2], ["9s", 0]]) == [0, 0.5]


def test_the_number_is_exact_where_floats_are_not() -> None:
    # In doubles 3 × 0.1 > 0.3, and three times 0.1 s at 10 a second are more than 3 tuples.
    assert len(moments([["10s", 0.1]])) == 1
    assert len(moments([[0.1, 10]] * 3)) == 3
    assert len(moments([["1s", 0.1]] * 30)) == 3
    assert len(moments([["1s", 0.1]] * 31)) == 4


def test_a_minute_of_overload() -> None:
    due = moments([["10s", 500], ["60s", 2000], ["30s", 500]])
    assert np.histogram(due, [0, 10, 70, 100])[0].tolist() == [5_000, 120_000, 15_000]
    assert due[5_000] == 10
    assert due[125_000] == 70


def test_a_count_ends_it_earlier_and_never_later() -> None:
    assert moments([["1s", 2], ["1s", 4]], count=3) == [0, 0.5, 1]
    assert moments([["1s", 2], ["1s", 4]], count=0) == []
    assert len(moments([["1s", 2], ["1s", 4]], count=7)) == 6
    whole = moments([["1s", 20], ["1s", 40]], "poisson")
    assert moments([["1s", 20], ["1s", 40]], "poisson", count=7) == whole[:7]


@pytest.mark.parametrize("arrivals", KINDS)
@pytest.mark.parametrize("more", [0, 1])
def test_an_end_at_the_end_of_a_block(arrivals: str, more: int, monkeypatch: pytest.MonkeyPatch) -> None:
    count = len(moments([["1s", 32]], arrivals))
    monkeypatch.setattr(generate, "BLOCK", count - more)
    assert len(moments([["1s", 32]], arrivals)) == count


def test_a_poisson_process_may_have_no_tuple_at_all() -> None:
    assert make([["1ms", 0.001]], "poisson") == (None, [])


@pytest.mark.parametrize("arrivals", KINDS)
def test_one_phase_is_like_a_rate(arrivals: str) -> None:
    due = make([["100s", 700]], arrivals)[1]
    what = {"generate": {"rate": 700, "count": len(due), "arrivals": arrivals, "fields": FIELDS}}
    rated = drain(open_source("g", Schema.parse("i bigint, t double, x int"), what))[1]
    # A rate's random gaps are rounded one by one.
    assert np.abs(np.array(due) - np.array(rated)).max() <= (0 if arrivals == "constant" else len(due) / 2)


def test_a_poisson_process_has_the_rates() -> None:
    due = np.array(moments([["10s", 1000], ["5s", 0], ["10s", 5000], ["10s", 500]], "poisson", seed=3))
    found = np.histogram(due, [0, 10, 15, 25, 35])[0]
    for count, expected in zip(found, [10_000, 0, 50_000, 5_000], strict=True):
        assert abs(count - expected) <= 4 * math.sqrt(expected)
    # In a phase the gaps are exponential: their deviation is their mean.
    gaps = np.diff(due[(due >= 15) & (due < 25)])
    assert np.std(gaps) == pytest.approx(np.mean(gaps), rel=0.03)
    assert np.mean(gaps > 1 / 5000) == pytest.approx(math.exp(-1), rel=0.03)
    other = moments([["10s", 1000], ["5s", 0], ["10s", 5000], ["10s", 500]], "poisson", seed=4)
    assert other[:5] != due[:5].tolist()


@examples(60)
@given(phases=PHASES, arrivals=st.sampled_from(KINDS), cuts=st.lists(st.integers(1, 40), min_size=1, max_size=5))
def test_cuts_do_not_matter(phases: list[Any], arrivals: str, cuts: list[int]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(generate, "BLOCK", 32)
        whole, due = make(phases, arrivals)
        again, again_due = make(phases, arrivals, tuple(cuts))
    assert again_due == due
    assert due == sorted(due)
    if whole is not None and again is not None:
        assert again.combine_chunks().equals(whole.combine_chunks())


@examples(60)
@given(phases=PHASES)
def test_tuple_i_comes_where_the_rates_add_up_to_i(phases: list[Any]) -> None:
    parsed = parse_phases(phases)
    due = make(phases)[1]
    total = sum(phase.tuples for phase in parsed)
    assert len(due) == math.ceil(total)
    end = sum(phase.span for phase in parsed)
    assert all(0 <= moment < end for moment in due)
    for number, moment in enumerate(due):
        before, start = Fraction(0), 0
        for phase in parsed:
            inside = Fraction(min(max(moment - start, 0), phase.span))
            before += Fraction(repr(phase.rate)) * inside / SECOND
            start += phase.span
        # A nanosecond is what rounding may change.
        assert abs(before - number) <= Fraction(max(phase.rate for phase in parsed)) / SECOND


@examples(40)
@given(phases=PHASES, arrivals=st.sampled_from(KINDS))
def test_a_phase_cut_in_two_is_the_same_phase(phases: list[Any], arrivals: str) -> None:
    halves = [half for span, rate in phases for half in [[seconds(span) / 2, rate]] * 2]
    whole, cut = make(phases, arrivals)[1], make(halves, arrivals)[1]
    assert len(whole) == len(cut)
    assert all(abs(one - other) <= 1 for one, other in zip(whole, cut, strict=True))


def seconds(span: float | str) -> float:
    """Return a span as PHASES has it in seconds."""
    return 0.25 if isinstance(span, str) else span


def test_phases_are_read() -> None:
    assert parse_phases([["10s", 500], (0.5, 0)]) == (Phase(10 * SECOND, 500.0), Phase(SECOND // 2, 0.0))
