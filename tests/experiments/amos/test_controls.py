"""The controls: a coin that does not look at scores, and a wheel that prefers the worst."""

from __future__ import annotations

from collections import Counter

import pytest

from headway.adaptive.learning import Standing, make_learning
from headway.errors import PolicyError
from headway_experiments.amos.controls import COIN, CONTROLS, INVERTED


def chosen(learning: str, scores: tuple[float, ...]) -> Counter[int]:
    names = tuple("abc"[: len(scores)])
    made = make_learning(learning)
    return Counter(made.choose(Standing(names, scores, (), number, 7)).algorithm for number in range(600))


def test_a_coin_is_fair_whatever_the_scores() -> None:
    found = chosen(COIN, (0.1, 5.0, 1.0))
    assert all(150 < found[at] < 250 for at in range(3))
    assert found == chosen(COIN, (1.0, 1.0, 1.0))


def test_the_inverted_wheel_prefers_the_worst() -> None:
    wheel, turned = chosen("roulette", (0.5, 1.5, 1.0)), chosen(INVERTED, (0.5, 1.5, 1.0))
    assert wheel[1] > wheel[2] > wheel[0]
    assert turned[0] > turned[2] > turned[1]


@pytest.mark.parametrize("name", CONTROLS)
def test_they_take_no_argument(name: str) -> None:
    with pytest.raises(PolicyError, match=f"'{name}' takes nothing after a colon, got '2'"):
        make_learning(f"{name}:2")
