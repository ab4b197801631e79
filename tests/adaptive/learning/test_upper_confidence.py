"""Upper confidence: bounds by hand, few bad turns, and a world that changes."""

from __future__ import annotations

import math

import pytest

from headway.adaptive.learning import UpperConfidence, deviation
from tests.adaptive.learning.records import best_is_c, best_moves, play, record, share


def test_the_deviation_is_around_the_means_of_their_own() -> None:
    assert deviation([[1.0, 1.2], [0.5, 0.5]]) == pytest.approx(math.sqrt(0.02 / 2))
    assert deviation([[1.0, 1.0, 1.0]]) == 0.02  # never quite sure
    assert deviation([[1.0], [0.3]]) == 0.25  # nothing known yet


def test_bounds_by_hand() -> None:
    turns = [(0, 1.0), (0, 1.2)] * 4 + [(1, 0.95), (1, 1.05)]
    # s = sqrt((8 * 0.01 + 2 * 0.0025) / 8) = 0.1031; sqrt(2 ln 10) = 2.146.
    # width 1: 1.1 + 0.2212 / sqrt 8 = 1.178 and 1 + 0.2212 / sqrt 2 = 1.156; width 1.5: 1.217 and 1.235.
    assert UpperConfidence(1).choose(record(*turns, count=2)).algorithm == 0
    assert UpperConfidence(1.5).choose(record(*turns, count=2)).algorithm == 1


def test_who_left_the_window_is_tried_at_once() -> None:
    choice = UpperConfidence().choose(record((0, 1.5), (2, 1.0)))
    assert choice == (1, "not tried lately, a 1.50")


def test_reasons() -> None:
    assert UpperConfidence().choose(record((0, 0.9), (1, 1.21), (2, 1.08))).reason == "scores 1.21, c 1.08"
    seldom = UpperConfidence().choose(record(*[(0, 1.0)] * 6, *[(0, 1.4)] * 6, (1, 1.15), count=2))
    assert seldom == (1, "scores 1.15, a 1.20, tried again after 1 of 13 turns")


def test_the_best_has_nearly_all_turns() -> None:
    for seed in range(5):
        choices = play(UpperConfidence(), best_is_c, 300, window=1000, seed=seed)
        assert share(choices, 2) > 0.9
        assert share(choices[150:], 2) > 0.94  # the longer, the rarer the others


def test_it_follows_a_world_that_changes() -> None:
    for seed in range(5):
        choices = play(UpperConfidence(), best_moves, 500, window=60, seed=seed)
        assert share(choices[:300], 2) > 0.8
        assert share(choices[400:], 1) > 0.8
