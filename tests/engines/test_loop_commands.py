"""Commands from outside, obeyed at the beginning of a round, step by step."""

from __future__ import annotations

from headway.engines.control import Pause, Resume, Shed, Specify, Stop, UsePolicy
from headway.engines.instructions import AT_ONCE, Admit, Close, End, Finish, Manner, Start, Started
from headway.scheduling.policy import Plan, Step
from tests.engines.scripted import First, Script, wait


def test_stop_closes_the_sources_once() -> None:
    script = Script()
    assert script.begin(Stop("SIGTERM")) == Close()
    script.carrier.sources.ended, script.carrier.waiting = True, (1, 0)
    assert script.send() == Admit(False)
    assert isinstance(script.send(), Start)
    script.carrier.waiting = (0, 0)
    assert script.send(Started(1)) == AT_ONCE
    assert script.later(1, 1, Stop("control")) == Admit(False)
    assert script.send() == End()
    assert script.loop.stopped_by == "SIGTERM"


def test_a_run_that_can_be_continued_is_left_as_it_is() -> None:
    script = Script(manner=Manner(keeps=True))
    script.carrier.waiting = (1, 0)
    assert script.begin(Stop("control")) == Close()
    assert script.send() == Finish()


def test_a_paused_run_starts_nothing_and_does_not_end() -> None:
    script = Script()
    script.carrier.waiting, script.carrier.sources.ended = (1, 0), True
    assert script.begin(Pause()) == Admit(False)
    assert script.send() == wait()
    assert script.later() == Admit(True)
    assert script.send() == wait()
    assert script.later(1, 0, Resume()) == Admit(True)
    assert isinstance(script.send(), Start)


def test_a_paused_run_does_not_wake_for_the_policy() -> None:
    script = Script(First([Plan((), 500)]))
    script.carrier.waiting = (1, 0)
    script.begin()
    script.send()
    assert script.send(Started(0)) == wait(500)
    assert script.later(1, 0, Pause()) == Admit(True)
    assert script.send() == wait()


def test_stop_ends_a_paused_run() -> None:
    script = Script()
    script.carrier.waiting = (1, 0)
    script.begin(Pause())
    assert script.send() == wait()
    assert script.later(1, 0, Stop("control")) == Close()
    script.carrier.sources.ended = True
    assert script.send() == Admit(True)
    assert isinstance(script.send(), Start)


def test_another_policy_decides_from_the_next_round_on() -> None:
    script = Script(manner=Manner(only=Step(0, 7)))
    script.carrier.ready, script.carrier.waiting = True, (1, 1)
    script.begin()
    assert script.send() == Start((Step(0, 7),), None, 0, None)
    script.send(Started(1))
    other = First([Plan((Step(1, 3),))])
    script.later(1, 1, UsePolicy(other))
    start = script.send()
    assert isinstance(start, Start)
    assert start.steps == (Step(1, 3),)


def test_an_adaptive_layer_keeps_its_policies() -> None:
    script = Script()
    script.steering.adapts = True
    script.carrier.waiting = (1, 0)
    script.begin(UsePolicy(First([Plan((), 5)])))
    start = script.send()
    assert isinstance(start, Start)
    assert start.steps == (Step(0, 10),)


def test_shedding_is_switched_by_command() -> None:
    script = Script()
    script.begin(Shed(False), Shed(True))
    assert script.steering.specified == [False, True]


def test_the_adaptive_layer_hears_its_specification() -> None:
    script = Script()
    script.begin(Specify({"objectives": {"latency": 1}}))
    assert script.steering.specified == [{"objectives": {"latency": 1}}]
