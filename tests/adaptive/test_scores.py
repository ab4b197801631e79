"""Equations 1 and 2 of AMoS, with numbers worked out by hand, and their bounds."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from headway.adaptive.scoring import (
    ORDER,
    Specification,
    Synopsis,
    algorithm_score,
    positions,
    statistics_scores,
)

SAMPLE = st.tuples(*(st.floats(0, 1e6) for _ in ORDER))
SAMPLES = st.lists(SAMPLE, min_size=1, max_size=6)
SPECIFICATIONS = st.dictionaries(
    st.sampled_from(ORDER), st.tuples(st.sampled_from(["minimise", "maximise"]), st.floats(0.01, 100)), min_size=1
).map(lambda wishes: Specification.parse({metric: {way: weight} for metric, (way, weight) in wishes.items()}))


def same(value: float) -> tuple[float, ...]:
    return (value,) * len(ORDER)


def by_metric(**values: float) -> tuple[float, ...]:
    return tuple(values.get(name, 0.0) for name in ORDER)


HISTORY = Synopsis(2, same(8), same(9), same(1))


def test_the_normalised_part_of_equation_1() -> None:
    # Mean 2 of a history from 1 to 9 with mean 4: two eighths below it.
    assert positions(same(2), HISTORY) == same(-0.25)
    assert positions(same(9), HISTORY) == same(0.625)


def test_a_history_without_range_has_nobody_above_the_mean() -> None:
    assert positions(same(3), Synopsis.of([same(3)])) == same(0)


def test_the_decay() -> None:
    turn = Synopsis.of([same(2)])
    assert statistics_scores(turn, HISTORY, same(0.5), 0.2) == pytest.approx(same(-0.1))  # -0.25 * 0.8 + 0.5 * 0.2
    assert statistics_scores(turn, HISTORY, None, 0.2) == same(-0.25)
    assert statistics_scores(turn, HISTORY, same(0.5), 0) == same(-0.25)


def test_equation_1_of_two_turns() -> None:
    first = Synopsis.of([same(4), same(8)])
    assert statistics_scores(first, first, None, 0.25) == same(0)
    # Samples so far: 4, 8, 1, 3. Mean 4, range 7; the turn's mean is 2.
    second = Synopsis.of([same(1), same(3)])
    history = Synopsis.merged([first, second])
    assert history.means == same(4)
    assert statistics_scores(second, history, None, 0.25) == pytest.approx(same(-2 / 7))
    assert statistics_scores(second, history, same(0.5), 0.25) == pytest.approx(same(-2 / 7 * 0.75 + 0.5 * 0.25))


def test_equation_2() -> None:
    table_3 = Specification.parse({"queue": {"minimise": 0.75}, "latency": {"minimise": 0.25}})
    # -1 * -0.4 * 0.75 + -1 * 0.2 * 0.25 + 1; the throughput does not matter.
    assert algorithm_score(by_metric(queue=-0.4, latency=0.2, throughput=0.9), table_3) == pytest.approx(1.25)
    both = Specification.parse({"latency": 0.7, "throughput": 0.3})
    assert algorithm_score(by_metric(latency=0.1, throughput=0.5), both) == pytest.approx(1.08)


def test_a_synopsis_by_hand() -> None:
    made = Synopsis.of([by_metric(latency=1, queue=4), by_metric(latency=3, queue=2)])
    assert made.count == 2
    assert made.means == by_metric(latency=2, queue=3)
    assert (made.largest, made.smallest) == (by_metric(latency=3, queue=4), by_metric(latency=1, queue=2))


@settings(deadline=None)
@given(SAMPLES, SAMPLES)
def test_synopses_merge_like_their_samples(left: list[tuple[float, ...]], right: list[tuple[float, ...]]) -> None:
    merged, whole = Synopsis.merged([Synopsis.of(left), Synopsis.of(right)]), Synopsis.of(left + right)
    assert (merged.count, merged.largest, merged.smallest) == (whole.count, whole.largest, whole.smallest)
    assert merged.means == pytest.approx(whole.means)


@settings(deadline=None)
@given(st.lists(SAMPLES, min_size=1, max_size=12), st.floats(0, 0.499), SPECIFICATIONS)
@example([[(0.0,) * 5], [(0.0, 0.0, 0.0, 0.0, 5e-324)]], 0.0, Specification.parse({"latency": {"minimise": 1}}))
def test_statistics_scores_and_algorithm_scores_stay_in_their_bounds(
    turns: list[list[tuple[float, ...]]], decay: float, specification: Specification
) -> None:
    history, z = None, None
    for samples in turns:
        turn = Synopsis.of(samples)
        history = turn if history is None else Synopsis.merged([history, turn])
        z = statistics_scores(turn, history, z, decay)
        assert all(-1 <= score <= 1 for score in z)  # the bounds themselves where the mean rounds to an end
        assert -1e-9 <= algorithm_score(z, specification) <= 2 + 1e-9


@settings(deadline=None)
@given(SAMPLES, SAMPLES, st.sampled_from(ORDER))
def test_the_other_direction_mirrors_a_score(
    turn: list[tuple[float, ...]], others: list[tuple[float, ...]], metric: str
) -> None:
    z = positions(Synopsis.of(turn).means, Synopsis.of(turn + others))
    up, down = (Specification.parse({metric: {way: 1}}) for way in ("maximise", "minimise"))
    assert algorithm_score(z, up) + algorithm_score(z, down) == pytest.approx(2)


@settings(deadline=None)
@given(SAMPLES, SAMPLES, st.floats(0.01, 1000))
def test_units_do_not_matter(turn: list[tuple[float, ...]], others: list[tuple[float, ...]], unit: float) -> None:
    def scaled(samples: list[tuple[float, ...]]) -> list[tuple[float, ...]]:
        return [tuple(round(value) * unit for value in sample) for sample in samples]

    whole = [[tuple(float(round(value)) for value in sample) for sample in part] for part in (turn, others)]
    plain = positions(Synopsis.of(whole[0]).means, Synopsis.of(whole[0] + whole[1]))
    other = positions(Synopsis.of(scaled(turn)).means, Synopsis.of(scaled(turn) + scaled(others)))
    assert other == pytest.approx(plain, abs=1e-6)
