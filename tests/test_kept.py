"""How much of a stream was kept."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.columns import Int64s
from headway.sieves import CombinedShares, KeptShares

Notes = list[tuple[int, float]]
notes = st.lists(st.tuples(st.integers(0, 40), st.sampled_from([0.0, 0.25, 0.5, 1.0])), max_size=12)


def numbers(*values: int) -> Int64s:
    return np.array(values, np.int64)


def noted(steps: Notes) -> KeptShares:
    kept = KeptShares()
    for first, share in steps:
        kept.note(first, share)
    return kept


def test_everything_is_kept_at_first() -> None:
    assert KeptShares().shares(numbers(0, 5, 1 << 60)).tolist() == [1, 1, 1]
    assert KeptShares().shares(numbers()).tolist() == []


def test_steps() -> None:
    kept = noted([(10, 0.5), (20, 0.25), (30, 1.0)])
    assert kept.shares(numbers(0, 9, 10, 19, 20, 29, 30, 99)).tolist() == [1, 1, 0.5, 0.5, 0.25, 0.25, 1, 1]
    assert kept.shares(numbers(25, 5)).tolist() == [0.25, 1]
    assert repr(kept) == "KeptShares.of([[0, 1.0], [10, 0.5], [20, 0.25], [30, 1.0]])"


def test_a_later_note_replaces_what_was_said_of_the_same_numbers() -> None:
    assert noted([(10, 0.5), (20, 0.25), (15, 0.1)]).to_list() == [[0, 1.0], [10, 0.5], [15, 0.1]]
    assert noted([(10, 0.5), (10, 0.25)]).to_list() == [[0, 1.0], [10, 0.25]]
    assert noted([(0, 0.5)]).to_list() == noted([(-7, 0.5)]).to_list() == [[0, 0.5]]


def test_a_note_that_changes_nothing_is_no_step() -> None:
    assert noted([(10, 1.0), (20, 0.5), (30, 0.5)]).to_list() == [[0, 1.0], [20, 0.5]]


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
def test_shares_are_from_0_to_1(share: float) -> None:
    with pytest.raises(ValueError, match="from 0 to 1"):
        KeptShares().note(0, share)


@settings(deadline=None)
@given(notes)
def test_steps_are_what_was_noted(steps: Notes) -> None:
    expected = np.ones(50)
    for first, share in steps:
        expected[first:] = share
    assert noted(steps).shares(np.arange(50)).tolist() == expected.tolist()
    assert KeptShares.of(steps).to_list() == noted(steps).to_list()


@settings(deadline=None)
@given(notes)
def test_through_json(steps: Notes) -> None:
    kept = noted(steps)
    assert KeptShares.of(json.loads(json.dumps(kept.to_list()))).to_list() == kept.to_list()


@settings(deadline=None)
@given(st.lists(notes, max_size=3))
def test_several_in_a_row(many: list[Notes]) -> None:
    parts = [noted(steps) for steps in many]
    every = np.arange(50)
    shares = np.array([part.shares(every) for part in parts]).reshape(len(parts), 50)
    assert np.allclose(CombinedShares(tuple(parts)).shares(every), shares.prod(axis=0))


def test_together_follows_its_parts() -> None:
    one, two = KeptShares(), KeptShares()
    both = CombinedShares((one, two))
    one.note(5, 0.5)
    two.note(7, 0.5)
    assert both.shares(numbers(4, 5, 7)).tolist() == [1, 0.5, 0.25]


def test_memory_is_bounded_and_old_steps_keep_their_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headway.sieves.MOST_STEPS", 64)
    kept = KeptShares()
    for at in range(1, 1000):
        kept.note(10 * at, 0.5 if at % 2 else 0.25)
        assert len(kept.to_list()) <= 64
    assert kept.shares(numbers(9990, 9980, 9970)).tolist() == [0.5, 0.25, 0.5]
    assert kept.shares(numbers(0))[0] == pytest.approx(0.375, abs=0.005)
