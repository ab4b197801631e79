"""Schedules as text and as mappings."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.durations import Duration
from headway.errors import PolicyError
from headway.scheduling import Schedule, policy_names
from headway.scheduling.bounded import Bounded
from headway.scheduling.policy import make_policy
from headway.scheduling.round_robin import RoundRobin
from headway.scheduling.schedule import (
    DEFAULT_SCHEDULES,
    DEFAULT_TRAIN,
    LONGEST_WAIT,
    UNITS,
    ThreadsPolicy,
    default_schedule,
)
from headway.scheduling.slope_slack import SlopeSlack
from headway.scheduling.superboxes import TRAVERSALS
from headway.scheduling.trains import TRAINS, Auto, Patient, Share, Tuples
from tests.scheduling.snapshots import snapshot, topology

TREE = topology({"a": [], "b": ["a"]}, {"o": "b"})


def test_defaults() -> None:
    assert str(Schedule.parse(None)) == "round-robin/superbox/mc/65536"
    assert Schedule.parse(None, 7).train == Tuples(7)
    assert Schedule().make_policy() == RoundRobin()
    assert Schedule().make_traversal(TREE) is None


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("round-robin", Schedule()),
        ("round-robin/box", Schedule(unit="box")),
        ("round-robin/box/5", Schedule(unit="box", train=Tuples(5))),
        ("round-robin/superbox/mc/1000", Schedule(train=Tuples(1000))),
        ("round-robin/12", Schedule(train=Tuples(12))),
        ("slope-slack", Schedule("slope-slack")),
        ("slope-slack/auto", Schedule("slope-slack", train=Auto())),
        ("qos/superbox/mc/auto", Schedule("qos", train=Auto())),
        ("qos/ml/50%", Schedule("qos", traversal="ml", train=Share(50))),
        ("chain/spanner:3/mm", Schedule("chain", unit="spanner:3", traversal="mm")),
        ("fifo/wait:2s", Schedule("fifo", wait=Duration(2_000_000))),
        ("fifo/plan:1", Schedule("fifo", plan=1)),
        ("fifo/box/wait:off/1", Schedule("fifo", unit="box", train=Tuples(1), wait=None)),
    ],
)
def test_parts_may_be_left_out_and_stand_in_any_order(text: str, made: Schedule) -> None:
    assert Schedule.parse(text) == made


@given(
    unit=st.sampled_from([*UNITS, "spanner"]),
    traversal=st.sampled_from(sorted(TRAVERSALS)),
    train=st.one_of(st.sampled_from(sorted(TRAINS)), st.integers(1, 10**9)),
    wait=st.sampled_from(["off", "10s", "250ms", "1h30m"]),
    plan=st.integers(1, 256),
)
def test_text_goes_both_ways(unit: str, traversal: str, train: int | str, wait: str, plan: int) -> None:
    schedule = Schedule.parse("chain", train, unit=unit, traversal=traversal, wait=wait, plan=plan)
    again = Schedule.parse(str(schedule))
    assert str(again) == str(schedule)
    if unit != "box":  # which has nothing to traverse
        assert again == schedule


def test_a_mapping_says_the_same() -> None:
    keys = {"policy": "qos", "unit": "superbox", "traversal": "best", "train": "5ms", "wait": "3s"}
    assert Schedule.of(keys) == Schedule.parse("qos/superbox/best/5ms/wait:3s")
    assert Schedule.of({}) == Schedule()
    assert Schedule.of({"policy": "fifo/box/7", "train": 3}) == Schedule.parse("fifo/box/3")


def test_a_given_train_overrides_the_text() -> None:
    assert Schedule.parse("round-robin/5", 9).train == Tuples(9)
    assert Schedule.parse("round-robin/auto", 9).train == Tuples(9)


def test_trains_and_the_longest_wait_are_put_around_the_policy() -> None:
    schedule = Schedule.parse("slope-slack/auto")
    assert schedule.make_policy() == Bounded(Patient(SlopeSlack()), LONGEST_WAIT.nanoseconds)
    assert Schedule.parse("slope-slack/auto/wait:off").make_policy() == Patient(SlopeSlack())
    assert Schedule.parse("slope-slack/wait:off").make_policy() == SlopeSlack()
    assert (schedule.most, Schedule(train=Tuples(7)).most) == (DEFAULT_TRAIN, 7)


def test_traversals_and_spanners_are_for_superboxes() -> None:
    assert Schedule.parse("qos/box/ml").make_traversal(TREE) is None
    assert Schedule.parse("qos/superbox/ml").make_traversal(TREE) is not None
    assert Schedule.parse("qos/spanner:2").make_traversal(TREE) is not None
    assert [unit.name for unit in Schedule.parse("qos/spanner:2").units(TREE)] == ["o"]


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
        ("round-robin/boxes", "'boxes' is not a unit .box, superbox, .*traversal .*mc.*train .*auto.*wait:off"),
        ("round-robin/box/0", "'0' is not a unit"),
        ("round-robin/box/-1", "'-1' is not a unit"),
        ("round-robin/", "'' is not a unit"),
        ("chain/box/1/2", "'2' is a second train"),
        ("chain/box/superbox", "'superbox' is a second unit"),
        ("chain/mc/ml", "'ml' is a second traversal"),
        pytest.param("fifo/spanner:" + "9" * 5000, "is not a unit", id="5,000 digits of a spanner"),
        pytest.param("fifo/" + "9" * 5000, "is not a unit", id="5,000 digits of a train"),
        ("fifo/spanner:0", "'spanner:0' is not a unit"),
        ("fifo/wait:soon", "wait: 'soon' is not a duration.*or 'off'"),
        ("fifo/wait:0s", "more than 0"),
        ("fifo/plan:0", "plan: must be a number of steps from 1 to 256, not '0'"),
    ],
)
def test_bad_texts(text: str, message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        Schedule.parse(text)


@pytest.mark.parametrize("train", [0, -1, True, 1.5, "none"])
def test_bad_trains(train: Any) -> None:
    with pytest.raises(PolicyError, match=r"train .*has none of these forms"):
        Schedule.parse(None, train)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"unit": "tree"}, "unknown unit 'tree'.*choices: .*box.*superbox"),
        ({"traversal": "dfs"}, "unknown traversal 'dfs'.*choices: .*mc"),
        ({"wait": 3}, "wait: 3 is not a duration"),
    ],
)
def test_bad_parts(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        Schedule.of(keys)


def test_every_policy_name_parses() -> None:
    papers = {"round-robin", "weighted-round-robin", "fifo", "most-tuples", "chain", "rate-based", "path-capacity"}
    papers |= {"preemptive-rate-based", "segment", "simplified-segment", "slope-slack", "bucketed", "feedback"}
    assert papers | {"earliest-deadline", "qos"} <= set(policy_names())
    for name in policy_names():
        assert str(Schedule.parse(name)).startswith(name)
    assert "threads" not in policy_names()
    assert Schedule.parse("threads").threads


@pytest.mark.parametrize("engine", ["local", "sim"])
def test_graphs_count_unless_there_is_nothing_to_decide(engine: str) -> None:
    assert str(default_schedule(engine, [False, True, False])) == "qos/superbox/mc/100ms"
    assert str(default_schedule(engine, [False, False])) == "round-robin/superbox/mc/65536"
    assert str(default_schedule(engine, [True])) == "round-robin/superbox/mc/65536"
    assert default_schedule("spark", [True, True]) == DEFAULT_SCHEDULES["spark"]
    assert default_schedule("another", [True, True]) is None


def test_who_asks_the_policy_threads_is_another_engine() -> None:
    assert isinstance(make_policy("threads"), ThreadsPolicy)
    with pytest.raises(PolicyError, match="for the engine 'local'"):
        ThreadsPolicy().plan(snapshot([True]), None)
    with pytest.raises(PolicyError, match="takes no argument"):
        make_policy("threads:4")
