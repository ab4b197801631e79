"""Thompson sampling: as often as it is believed to be the best."""

from __future__ import annotations

from collections import Counter

from headway.adaptive.learning import Thompson
from tests.adaptive.learning.records import best_is_c, best_moves, play, record, share


def test_equals_are_drawn_equally_often() -> None:
    turns = [(at, reward) for at in range(2) for reward in (0.9, 1.1) * 5]
    counts = Counter(Thompson().choose(record(*turns, number=at, count=2)).algorithm for at in range(1000))
    assert 430 < counts[0] < 570


def test_the_surer_the_rarer() -> None:
    def tried(times: int) -> int:
        turns = [(0, 1.0), (0, 1.2), (1, 0.9), (1, 1.1)] * times
        return sum(Thompson().choose(record(*turns, number=at, count=2)).algorithm == 1 for at in range(500))

    assert tried(1) > 2 * tried(5) > 0


def test_who_left_the_window_is_drawn_from_all() -> None:
    turns = [(0, 0.9), (0, 1.1)] * 10
    counts = Counter(Thompson().choose(record(*turns, number=at, count=2)).algorithm for at in range(500))
    assert 150 < counts[1] < 350


def test_the_best_has_nearly_all_turns() -> None:
    for seed in range(5):
        assert share(play(Thompson(), best_is_c, 300, window=1000, seed=seed), 2) > 0.9


def test_it_follows_a_world_that_changes() -> None:
    for seed in range(5):
        choices = play(Thompson(), best_moves, 500, window=60, seed=seed)
        assert share(choices[400:], 1) > 0.7
