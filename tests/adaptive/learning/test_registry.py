"""The registry of learning strategies, and chance that can be repeated."""

from __future__ import annotations

import pytest

from headway.adaptive.learning import explained, make_learning
from headway.errors import PolicyError
from tests.adaptive.learning.records import best_is_c, play, record

ALL = ["roulette", "thompson", "upper-confidence"]


@pytest.mark.parametrize("name", ALL)
def test_the_same_seed_gives_the_same_choices(name: str) -> None:
    learning = make_learning(name)
    assert play(learning, best_is_c, 60, seed=3) == play(learning, best_is_c, 60, seed=3)


@pytest.mark.parametrize("name", ALL)
def test_a_choice_depends_on_its_record_alone(name: str) -> None:
    learning, seen = make_learning(name), record((0, 1.0), (1, 1.1), (2, 0.9))
    first = learning.choose(seen)
    play(learning, best_is_c, 10)
    assert learning.choose(seen) == first


def test_chance_depends_on_seed_and_number() -> None:
    draws = {record(seed=seed, number=number).random().random() for seed in range(10) for number in range(10)}
    assert len(draws) == 100


def test_errors_list_the_choices() -> None:
    with pytest.raises(
        PolicyError, match=r"unknown strategy 'rulette'; did you mean 'roulette'\? choices: roulette, t"
    ):
        make_learning("rulette")
    for text in ("thompson:x", "upper-confidence:0", "thompson:-1", "upper-confidence:inf", "thompson:"):
        with pytest.raises(PolicyError, match="a number above 0 is expected"):
            make_learning(text)
    with pytest.raises(PolicyError, match="strategy 'roulette' takes no argument, not '3'"):
        make_learning("roulette:3")


def test_against_whom() -> None:
    seen = record()
    rewards = [[1.08], [1.21], [0.9]]
    assert explained(seen, 1, [1.08, 1.21, 0.9], rewards) == "scores 1.21, a 1.08"
    assert explained(seen, 1, [1.08, None, 1.2], rewards) == "not tried lately, c 1.20"
    assert explained(seen, 2, [1.08, 1.21, 0.9], rewards) == "scores 0.90, b 1.21, tried again after 1 of 0 turns"
    assert explained(record(count=1), 0, [1.0], rewards) == "scores 1.00"
