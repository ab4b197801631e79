"""The roulette wheel: chances in proportion to scores."""

from __future__ import annotations

from collections import Counter

import pytest

from headway.adaptive.learning import Roulette
from tests.adaptive.learning.records import record


def test_chances_are_in_proportion_to_scores() -> None:
    spins = [record((0, 1.0), (1, 0.6), (2, 0.4), number=number) for number in range(4000)]
    counts = Counter(Roulette().choose(spin).algorithm for spin in spins)
    assert [counts[at] / 4000 for at in range(3)] == pytest.approx([0.5, 0.3, 0.2], abs=0.03)


def test_the_slice_under_the_marker() -> None:
    spin = record((0, 1.0), (1, 0.6), (2, 0.4))
    at = spin.random().random() * 2.0
    assert Roulette().choose(spin).algorithm == (0 if at < 1.0 else 1 if at < 1.6 else 2)


def test_a_score_of_nothing_never_comes_up() -> None:
    assert {Roulette().choose(record((0, 0.0), (1, 1.0), (2, 0.0), number=at)).algorithm for at in range(50)} == {1}


def test_its_reason() -> None:
    assert Roulette().choose(record((0, 0.0), (1, 1.2), (2, 0.0))).reason == (
        "came up on the wheel: score 1.20, 100 % of it"
    )
