"""Priority classes: weights, ranges and reduced weights."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.adaptive.goals import WEIGHTS, priorities
from headway.errors import PolicyError


def test_the_classes_of_the_paper() -> None:
    classes = tuple(priorities().values())
    assert [(one.name, one.weight) for one in classes] == [
        ("must-satisfy", 1.0),
        ("best-effort", 0.5),
        ("dont-care", 0.01),
    ]
    assert [one.range for one in classes] == [0.5, 0.49, 0.01]
    assert [one.sheds for one in classes] == [True, False, False]
    assert [one.easily_pleased for one in classes] == [False, False, True]


def test_the_reduced_weight_of_table_5() -> None:
    assert priorities()["must-satisfy"].reduced(0.5) == 0.75


def test_more_classes() -> None:
    made = priorities({**WEIGHTS, "urgent": 4, "whatever": 0.001}, ["urgent", "must-satisfy"])
    assert list(made) == ["urgent", "must-satisfy", "best-effort", "dont-care", "whatever"]
    assert made["urgent"].range == 3
    assert made["urgent"].sheds
    assert not made["dont-care"].easily_pleased
    assert made["whatever"].easily_pleased


def test_a_single_class_takes_the_best() -> None:
    assert not priorities({"all": 1}, [])["all"].easily_pleased


@pytest.mark.parametrize(
    ("weights", "shedding", "says"),
    [
        ({"a": 1, "b": 1}, [], "'a' and 'b' have the same weight 1"),
        ({"a": 0}, [], "the weight of 'a' is a number above 0, not 0"),
        ({"a": "1"}, [], "the weight of 'a' is a number above 0, not '1'"),
        ({"a": float("inf")}, [], "not inf"),
        ({"a": True}, [], "not True"),
        ({"gold": 1}, ["golt"], "shed: unknown class 'golt'; did you mean 'gold'"),
    ],
)
def test_bad_classes_are_refused(weights: Mapping[str, float], shedding: list[str], says: str) -> None:
    with pytest.raises(PolicyError, match=says):
        priorities(weights, shedding)


@settings(deadline=None)
@given(st.sets(st.floats(0.001, 1000), min_size=1, max_size=6), st.floats(0, 1), st.floats(0, 1))
def test_a_reduced_weight_stays_above_the_next_class_and_falls_with_spare(
    weights: set[float], one: float, other: float
) -> None:
    classes = tuple(priorities({f"c{weight}": weight for weight in weights}, []).values())
    below = [*(each.weight for each in classes[1:]), 0.0]
    for each, least in zip(classes, below, strict=True):
        assert each.reduced(0) == each.weight
        assert each.reduced(1) == pytest.approx(least, abs=1e-9)
        assert each.reduced(max(one, other)) <= each.reduced(min(one, other))
