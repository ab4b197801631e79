"""Performance specifications: forms, directions, weights."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.adaptive.layer import METRICS
from headway.adaptive.scoring import Objective, Specification
from headway.errors import PolicyError


def test_the_papers_example() -> None:
    """Table 3 of the paper."""
    read = Specification.parse({"queue": {"minimise": 0.75}, "latency": {"minimise": 0.25}})
    assert read.objectives == (Objective("queue", False, 0.75), Objective("latency", False, 0.25))
    assert str(read) == "minimise queue (75 %), minimise latency (25 %)"


def test_short_forms_take_the_natural_direction() -> None:
    assert Specification.parse({"latency": 1}) == Specification.parse("latency") == Specification.parse(["latency"])
    read = Specification.parse(list(METRICS))
    assert {wish.metric for wish in read.objectives if wish.maximise} == {"throughput", "utility"}
    assert {wish.weight for wish in read.objectives} == {0.2}


def test_the_user_may_turn_a_direction() -> None:
    assert Specification.parse({"queue": {"maximise": 3}}).objectives == (Objective("queue", True, 1.0),)


def test_a_signed_weight() -> None:
    read = Specification.parse({"throughput": 3, "latency": 1})
    assert [wish.signed for wish in read.objectives] == [0.75, -0.25]


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(sorted(METRICS)), st.floats(1e-6, 1e6), min_size=1))
def test_weights_sum_up_to_one_and_keep_their_ratios(weights: dict[str, float]) -> None:
    read = Specification.parse(weights)
    assert math.fsum(wish.weight for wish in read.objectives) == pytest.approx(1)
    first = read.objectives[0]
    for wish in read.objectives:
        assert wish.weight > 0
        assert wish.weight / first.weight == pytest.approx(weights[wish.metric] / weights[first.metric])


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"latence": 1}, "unknown metric 'latence'; did you mean 'latency'\\? choices: latency, memory, queue"),
        ({"latency": {"minimize": 1}}, "latency: unknown direction 'minimize'; did you mean 'minimise'"),
        ({"latency": {"minimise": 1, "maximise": 1}}, "latency: one direction.*directions: maximise, minimise"),
        ({"latency": 0}, "latency: a weight is a number above 0, not 0"),
        ({"latency": -1}, "above 0, not -1"),
        ({"latency": True}, "above 0, not True"),
        ({"latency": math.inf}, "above 0, not inf"),
        ({"latency": {"minimise": "much"}}, "above 0, not 'much'"),
        ({}, "at least one"),
        (["queue", "queue"], "named more than once: queue"),
        (7, "7 will not do; objectives are metrics with weights"),
    ],
)
def test_errors_say_what_is_wrong(value: object, message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        Specification.parse(value)
