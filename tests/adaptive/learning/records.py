"""Records of turns, for tests of learning strategies, and a small world to learn in."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence

from headway.adaptive.learning import Learning, RewardedTurn, Standing

NAMES = ("a", "b", "c", "d")


def record(*turns: tuple[int, float], number: int = 10, seed: int = 0, count: int = 3) -> Standing:
    """Return a record of turns; scores are the last reward of each."""
    scores = [1.0] * count
    for algorithm, reward in turns:
        scores[algorithm] = reward
    return Standing(NAMES[:count], tuple(scores), tuple(RewardedTurn(*turn) for turn in turns), number, seed)


def play(
    learning: Learning,
    mean: Callable[[int, int], float],
    rounds: int,
    window: int = 100,
    noise: float = 0.1,
    seed: int = 0,
) -> list[int]:
    """Let a strategy learn; `mean(round, algorithm)` is the reward of algorithms on average. Return its choices."""
    chance, turns, choices = random.Random(seed), list[RewardedTurn](), list[int]()
    for number in range(rounds):
        if number < len(NAMES):
            chosen = number
        else:
            last = {turn.algorithm: turn.reward for turn in turns}
            scores = tuple(last[at] for at in range(len(NAMES)))
            chosen = learning.choose(Standing(NAMES, scores, tuple(turns[-window:]), number, seed)).algorithm
        turns.append(RewardedTurn(chosen, mean(number, chosen) + chance.uniform(-noise, noise)))
        choices.append(chosen)
    return choices


def share(choices: Sequence[int], algorithm: int) -> float:
    """Return how much of the turns an algorithm had."""
    return Counter(choices)[algorithm] / len(choices)


def best_is_c(_: int, algorithm: int) -> float:
    """A world that does not change."""
    return (0.8, 0.9, 1.3, 1.0)[algorithm]


def best_moves(number: int, algorithm: int) -> float:
    """A world in which b overtakes c after 300 rounds."""
    return best_is_c(number, algorithm) if number < 300 else (0.8, 1.6, 1.0, 1.0)[algorithm]
