"""Seams, step by step: when the network is sealed, when it is exchanged, and what goes on meanwhile."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any, cast

import pytest

from headway.engines.control import Alter, Ask, Pause, Stop
from headway.engines.instructions import (
    AT_ONCE,
    Admit,
    Close,
    End,
    Finish,
    LetTick,
    Manner,
    Renewed,
    Seal,
    Start,
    Started,
    Swap,
)
from headway.engines.steering import Steering
from headway.scheduling.policy import Step
from tests.engines.scripted import First, Script, Steered, wait


def alter() -> Alter:
    return Alter(cast(Any, None), Future(), Future())


def renewed(manner: Manner | None = None) -> Renewed:
    return Renewed(cast(Steering, Steered()), manner or Manner())


def test_a_seam_that_waits_for_nothing_is_sealed_and_swapped_before_anything_arrives() -> None:
    script, one = Script(), alter()
    script.carrier.deadline = 0
    assert script.begin(one) == Seal(one)
    assert script.send() == Swap()
    assert script.send(renewed()) == LetTick()
    assert script.send() == Admit(False)


def test_several_alterations_follow_each_other_in_one_round() -> None:
    script, one, two = Script(), alter(), alter()
    assert script.begin(one, two) == Seal(one)
    assert script.send() == Swap()
    assert script.send(renewed()) == Seal(two)
    assert script.send() == Swap()
    assert script.send(renewed()) == Admit(False)


def test_nothing_is_sealed_or_started_while_steps_are_under_way() -> None:
    script, one = Script(), alter()
    script.carrier.settled, script.carrier.busy, script.carrier.waiting = False, True, (1, 1)
    assert script.begin(one) == Admit(False)
    assert script.send() == wait(look=1_000)
    script.carrier.settled, script.carrier.busy = True, False
    assert script.later(1, 1) == Seal(one)


def test_others_go_on_until_what_ends_is_drained() -> None:
    script, one = Script(), alter()
    script.carrier.waiting, script.carrier.drained = (1, 1), False
    assert script.begin(one) == Seal(one)
    assert script.send() == Admit(False)
    assert isinstance(script.send(), Start)
    assert script.send(Started(1)) == AT_ONCE
    assert script.later() == Admit(False)
    assert isinstance(script.send(), Start)
    script.carrier.drained = True
    assert script.send(Started(1)) == AT_ONCE
    assert script.later() == Swap()
    assert script.send(renewed()) == Admit(False)


def test_the_next_one_is_not_sealed_before_the_swap() -> None:
    script, one, two = Script(), alter(), alter()
    script.carrier.drained = False
    assert script.begin(one, two) == Seal(one)
    assert script.send() == Admit(False)
    assert script.send() == wait()
    script.carrier.drained = True
    assert script.later() == Swap()
    assert script.send(renewed()) == Seal(two)


def test_when_all_is_drained_steps_wait_for_the_swap() -> None:
    script, one = Script(), alter()
    script.carrier.drained = False
    script.carrier.waiting = (1, 1)
    assert script.begin(one) == Seal(one)
    assert script.send() == Admit(False)
    assert isinstance(script.send(), Start)
    script.carrier.drained, script.carrier.settled, script.carrier.busy = True, False, True
    script.send(Started(1))
    assert script.later() == Admit(False)
    assert script.send() == wait(look=1_000)  # although a unit is ready
    script.carrier.settled, script.carrier.busy = True, False
    assert script.later(1, 1) == Swap()


def test_the_inputs_do_not_end_within_a_seam() -> None:
    script, one = Script(), alter()
    script.carrier.drained, script.carrier.sources.ended = False, True
    assert script.begin(one) == Seal(one)
    assert script.send() == Admit(False)
    assert script.send() == wait()
    script.carrier.drained = True
    assert script.later() == Swap()
    assert script.send(renewed()) == Admit(False)
    assert script.send() == End()


def test_a_run_that_awaits_something_does_not_end() -> None:
    script = Script()
    script.carrier.awaiting = script.carrier.sources.ended = True
    assert script.begin() == Admit(False)
    assert script.send() == wait()
    script.carrier.awaiting = False
    assert script.later() == Admit(False)
    assert script.send() == End()


def test_a_run_that_stops_begins_no_seam_but_completes_the_one_that_it_has_begun() -> None:
    script, one, two = Script(), alter(), alter()
    script.carrier.drained = False
    assert script.begin(one) == Seal(one)
    assert script.send() == Admit(False)
    assert script.send() == wait()
    script.carrier.sources.ended = script.carrier.drained = True
    assert script.later(1, 0, Stop("control"), two) == Close()
    assert script.send() == Swap()
    assert script.send(renewed()) == Admit(False)
    assert script.send() == End()


def test_stopped_at_once_nothing_is_altered() -> None:
    script = Script()
    script.carrier.sources.ended = True
    assert script.begin(Stop("control"), alter()) == Close()
    assert script.send() == Admit(False)
    assert script.send() == End()
    assert script.send() == Admit(False)
    assert script.send() == Finish()


def test_a_paused_run_is_altered_if_nothing_has_to_be_drained() -> None:
    script, one = Script(), alter()
    script.carrier.waiting = (1, 1)
    assert script.begin(Pause(), one) == Seal(one)
    assert script.send() == Swap()
    assert script.send(renewed()) == Admit(False)
    assert script.send() == wait()


def test_after_the_swap_the_new_manner_holds() -> None:
    script, one = Script(manner=Manner(only=Step(0, 7))), alter()
    script.carrier.ready, script.carrier.waiting = True, (1, 1)
    assert script.begin(one) == Seal(one)
    assert script.send() == Swap()
    assert script.send(renewed(Manner(only=Step(1, 9)))) == Admit(False)
    assert script.send() == Start((Step(1, 9),), None, 0, None)


def test_the_policy_begins_anew_with_the_new_network() -> None:
    policy = First()
    script, one = Script(policy), alter()
    script.carrier.waiting = (1, 0)
    script.begin()
    assert isinstance(script.send(), Start)
    script.send(Started(1))
    assert script.later(1, 0, one) == Seal(one)
    assert script.send() == Swap()
    script.send(renewed())
    assert isinstance(script.send(), Start)
    assert script.carrier.seen == [False, False]  # not: the snapshot of the old network was seen


def test_in_virtual_time_the_loop_waits_for_the_next_command() -> None:
    script = Script(manner=Manner(virtual=True))
    script.carrier.next_command = 500
    script.begin()
    assert script.send() == wait(500)


@pytest.mark.parametrize("closed", [False, True])
def test_questions_are_answered_at_any_time(closed: bool) -> None:
    script = Script()
    ask = Ask(lambda carrier: 1, Future())
    script.begin(*((Stop("control"),) if closed else ()), ask)
    assert script.carrier.asked == [ask.question]
