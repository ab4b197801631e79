"""Schedules as text."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import PolicyError
from headway.scheduling import Schedule, policy_names
from headway.scheduling.patience import Patient
from headway.scheduling.round_robin import RoundRobin
from headway.scheduling.schedule import AUTO, DEFAULT_SCHEDULES, DEFAULT_TRAIN
from headway.scheduling.slope_slack import SlopeSlack


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
        ("slope-slack", Schedule("slope-slack")),
        ("slope-slack/auto", Schedule("slope-slack", train=AUTO)),
        ("round-robin/box/auto", Schedule(unit="box", train=AUTO)),
    ],
)
def test_parts_may_be_left_out(text: str, made: Schedule) -> None:
    assert Schedule.parse(text) == made


@given(unit=st.sampled_from(["box", "superbox"]), train=st.one_of(st.just(AUTO), st.integers(1, 10**9)))
def test_text_goes_both_ways(unit: str, train: int | None) -> None:
    schedule = Schedule(unit=unit, train=train)
    assert Schedule.parse(str(schedule)) == schedule


def test_a_given_train_overrides_the_text() -> None:
    assert Schedule.parse("round-robin/5", 9).train == 9
    assert Schedule.parse("round-robin/auto", 9).train == 9


def test_automatic_trains_make_a_patient_policy() -> None:
    schedule = Schedule.parse("slope-slack/auto")
    assert schedule.make_policy() == Patient(SlopeSlack())
    assert (schedule.most, Schedule(train=7).most) == (DEFAULT_TRAIN, 7)


def test_what_is_left_out_comes_from_the_default() -> None:
    spark = DEFAULT_SCHEDULES["spark"]
    assert str(Schedule.parse(None, None, spark)) == "slope-slack:8/superbox/mc/auto"
    assert str(Schedule.parse("round-robin", None, spark)) == "round-robin/superbox/mc/auto"
    assert str(Schedule.parse("round-robin/box/5", None, spark)) == "round-robin/box/5"
    assert str(Schedule.parse(None, 9, spark)) == "slope-slack:8/superbox/mc/9"
    assert DEFAULT_SCHEDULES["local"] == Schedule.parse(None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("robin", "unknown policy 'robin'.*choices: .*round-robin"),
        ("round-robbin", "did you mean 'round-robin'"),
        ("", "unknown policy ''"),
        ("round-robin/boxes", "'boxes' is no unit \\(box, superbox\\), traversal \\(mc\\) or train .*auto"),
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
    assert {"round-robin/box", "round-robin/superbox", "slope-slack/box", "slope-slack/superbox"} <= set(policy_names())
    for name in policy_names():
        assert str(Schedule.parse(name)).startswith(name)
