"""Schedules as text."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import PolicyError
from headway.scheduling import Schedule, policy_names
from headway.scheduling.round_robin import RoundRobin


def test_defaults() -> None:
    assert str(Schedule.parse(None)) == "round-robin/superbox/mc/65536"
    assert Schedule.parse(None, 7).train == 7
    assert isinstance(Schedule().make_policy(), RoundRobin)


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("round-robin", Schedule()),
        ("round-robin/box", Schedule(unit="box")),
        ("round-robin/box/5", Schedule(unit="box", train=5)),
        ("round-robin/superbox/mc/1000", Schedule(train=1000)),
        ("round-robin/12", Schedule(train=12)),
    ],
)
def test_parts_may_be_left_out(text: str, made: Schedule) -> None:
    assert Schedule.parse(text) == made


@given(unit=st.sampled_from(["box", "superbox"]), train=st.integers(1, 10**9))
def test_text_goes_both_ways(unit: str, train: int) -> None:
    schedule = Schedule(unit=unit, train=train)
    assert Schedule.parse(str(schedule)) == schedule


def test_a_given_train_overrides_the_text() -> None:
    assert Schedule.parse("round-robin/5", 9).train == 9


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("robin", "unknown policy 'robin'.*choices: .*round-robin"),
        ("round-robbin", "did you mean 'round-robin'"),
        ("", "unknown policy ''"),
        ("round-robin/boxes", "'boxes' is no unit \\(box, superbox\\), traversal \\(mc\\)"),
        ("round-robin/box/0", "'0' is no unit"),
        ("round-robin/box/-1", "'-1' is no unit"),
        ("round-robin/", "'' is no unit"),
    ],
)
def test_bad_texts(text: str, message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        Schedule.parse(text)


@pytest.mark.parametrize("train", [0, -1, True, 1.5, "7"])
def test_bad_trains(train: Any) -> None:
    with pytest.raises(PolicyError, match="train is a number of tuples above 0"):
        Schedule.parse(None, train)


def test_every_policy_name_parses() -> None:
    assert {"round-robin/box", "round-robin/superbox"} <= set(policy_names())
    for name in policy_names():
        assert str(Schedule.parse(name)).startswith(name)
