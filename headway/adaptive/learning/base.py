"""What a learning strategy sees and what it says: scores and past turns in, the next algorithm out."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from headway.errors import PolicyError, unknown


class Turn(NamedTuple):
    """A turn that an algorithm had, and its reward: from 0 to 2, 1 is the mean of what it is measured against."""

    algorithm: int
    reward: float


@dataclass(frozen=True, slots=True)
class Record:
    """All that a learning strategy may look at. Every algorithm has had a turn before the first choice."""

    names: tuple[str, ...]
    """By algorithm: what people call it."""
    scores: tuple[float, ...]
    """By algorithm: its score (equation 2 of AMoS) as of its last turn."""
    turns: tuple[Turn, ...]
    """The turns within the window, the oldest first."""
    number: int
    """How many turns have ended."""
    seed: int

    def random(self) -> random.Random:
        """Return a source of chance that depends on the seed and the number of the round alone."""
        return random.Random(f"{self.seed}/{self.number}")

    def rewards(self) -> list[list[float]]:
        """Return by algorithm the rewards of its turns within the window."""
        by: list[list[float]] = [[] for _ in self.names]
        for turn in self.turns:
            by[turn.algorithm].append(turn.reward)
        return by


class Choice(NamedTuple):
    """The algorithm to use next, and why, in a few words that follow its name."""

    algorithm: int
    reason: str


class Learning(Protocol):
    """A learning strategy. Pure: the same record gives the same choice."""

    def choose(self, record: Record) -> Choice:
        """Return the algorithm for the next turn."""
        ...


@dataclass(frozen=True, slots=True)
class LearningEntry:
    """A registered strategy: how to make it from the text after the colon, and what it is."""

    name: str
    make: Callable[[str | None], Learning]
    about: str


_strategies: dict[str, LearningEntry] = {}


def register_learning(name: str, make: Callable[[str | None], Learning], about: str) -> None:
    """Make a strategy known by name; `make` gets what stands after a colon, as in ``upper-confidence:0.5``."""
    _strategies[name] = LearningEntry(name, make, about)


def registered_learnings() -> tuple[LearningEntry, ...]:
    """Return the strategies, by name."""
    return tuple(_strategies[name] for name in sorted(_strategies))


def make_learning(text: str) -> Learning:
    """Return the strategy that ``name`` or ``name:argument`` says."""
    name, colon, argument = text.partition(":")
    if name not in _strategies:
        raise PolicyError(f"learning: {unknown('strategy', name, _strategies)}")
    return _strategies[name].make(argument if colon else None)


def number_after(name: str, argument: str | None, default: float) -> float:
    """Return the positive number after a strategy's colon, or the default where there is no colon."""
    if argument is None:
        return default
    try:
        value = float(argument)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or value <= 0:
        raise PolicyError(f"learning: after '{name}:' a number above 0 is expected, not '{argument}'")
    return value


def against(record: Record, algorithm: int, values: Sequence[float | None]) -> str:
    """Return why the algorithm with the highest value was taken: its value, and that of the best other one."""
    own = values[algorithm]
    rest = [(value, -at) for at, value in enumerate(values) if at != algorithm and value is not None]
    text = "not tried lately" if own is None else f"scores {own:.2f}"
    if not rest:
        return text
    value, at = max(rest)
    return f"{text}, {record.names[-at]} {value:.2f}"
