"""The loop, step by step: a scripted carrier answers its instructions, and nothing runs."""

from __future__ import annotations

import pytest

from headway.engines.instructions import AT_ONCE, Admit, End, Finish, LetTick, Manner, Start, Started
from headway.errors import RunError
from headway.scheduling.policy import Plan, Step
from tests.engines.scripted import First, Script, wait


def test_a_tuple_arrives_and_is_processed_and_the_end_follows() -> None:
    script = Script()
    assert script.begin() == Admit(False)
    script.carrier.waiting = (0, 3)
    start = script.send()
    assert isinstance(start, Start)
    assert (start.steps, start.plan) == ((Step(1, 10),), 1)
    script.carrier.waiting = (0, 0)
    assert script.send(Started(1)) == AT_ONCE  # the step has ended already
    assert script.later() == Admit(False)
    assert script.send() == wait()
    script.carrier.sources.ended = True
    assert script.later() == Admit(False)
    assert script.send() == End()  # all is processed, and nothing more comes
    assert script.send() == Admit(False)
    assert script.send() == Finish()
    assert script.loop.plans == 1


def test_nothing_ends_while_a_step_is_under_way_or_tuples_wait() -> None:
    script = Script()
    script.carrier.sources.ended = True
    script.carrier.busy, script.carrier.free = True, 0
    script.begin()
    assert script.send() == wait(look=1_000)
    script.carrier.busy, script.carrier.free, script.carrier.waiting = False, 1, (1, 0)
    assert script.later(1, 1) == Admit(False)
    assert isinstance(script.send(), Start)


def test_the_end_may_follow_at_once() -> None:
    script = Script(manner=Manner(ends_at_once=True))
    script.carrier.sources.ended, script.carrier.waiting = True, (5, 0)
    assert script.begin() == Admit(False)
    assert script.send() == End()
    assert isinstance(script.send(), Start)


def test_a_run_whose_end_had_arrived_before_gets_no_second_one() -> None:
    script = Script(manner=Manner(ends_at_once=True), ended=True)
    script.carrier.sources.ended = True
    assert script.begin() == Admit(False)
    assert script.send() == Finish()


def test_full_queues_hold_sources_back_unless_nothing_else_can_be_done() -> None:
    script = Script()
    script.carrier.full, script.carrier.waiting = True, (1, 0)
    start = script.begin()
    assert isinstance(start, Start)  # nothing was let in
    script.carrier.waiting = (0, 0)
    assert script.send(Started(1)) == AT_ONCE
    assert script.later(1, 1) == wait()  # what waits cannot be taken
    assert script.later() == Admit(False)


def test_a_policy_that_serves_nobody_while_queues_are_full_is_an_error() -> None:
    """It was told that nothing more comes: without an error the run would wait for ever."""
    script = Script(First([Plan(())]))
    script.carrier.full, script.carrier.waiting = True, (1, 0)
    assert isinstance(script.begin(), Start)
    with pytest.raises(RunError, match="serves none of the units that are ready: 'b0'"):
        script.send(Started(0))


def test_a_policy_that_says_until_when_waits_also_while_queues_are_full() -> None:
    script = Script(First([Plan((), 500)]))
    script.carrier.full, script.carrier.waiting = True, (1, 0)
    assert isinstance(script.begin(), Start)
    assert script.send(Started(0)) == wait(500)


def test_a_policy_that_lets_all_wait_gets_more_tuples_and_is_asked_when_it_said() -> None:
    script = Script(First([Plan((), 500)]))
    script.carrier.waiting = (1, 0)
    script.begin()
    assert isinstance(script.send(), Start)
    assert script.send(Started(0)) == wait(500)
    assert script.later(500) == Admit(True)
    assert isinstance(script.send(), Start)
    assert script.carrier.seen == [False, True]


def test_a_policy_that_serves_nobody_is_named() -> None:
    script = Script(First([Plan(())]))
    script.carrier.waiting, script.carrier.sources.ended = (2, 1), True
    script.begin()
    script.send()
    with pytest.raises(
        RunError,
        match=r"^policy 'First/.*' serves none of the units that are ready: 'b0', 'b1'$",
    ):
        script.send(Started(0))


def test_the_run_wakes_for_whatever_comes_first() -> None:
    script = Script(First([Plan((), 50), Plan((), 50), Plan((), 50)]))
    script.carrier.waiting, script.carrier.deadline, script.carrier.sources.due = (1, 0), 40, 30
    script.begin()
    script.send()
    assert script.send(Started(0)) == wait(30)
    script.carrier.sources.due = None
    script.later()
    script.send()
    assert script.send(Started(0)) == wait(40)
    script.carrier.deadline = None
    script.later()
    script.send()
    assert script.send(Started(0)) == wait(50)


def test_the_run_wakes_for_what_is_due_also_while_steps_are_under_way() -> None:
    script = Script()
    script.carrier.busy, script.carrier.sources.due, script.carrier.deadline = True, 30, 40
    script.begin()
    assert script.send() == wait(30, look=1_000)


def test_what_is_due_wakes_nobody_while_it_is_held_back() -> None:
    script = Script(First([Plan((), 500), Plan((), 500)]))
    script.carrier.full, script.carrier.waiting, script.carrier.sources.due = True, (1, 0), 0
    assert isinstance(script.begin(), Start)
    assert script.send(Started(0)) == wait(500)
    script.carrier.sources.due = 200  # then there may be room
    assert isinstance(script.later(), Start)
    assert script.send(Started(0)) == wait(200)


def test_a_carrier_that_can_do_nothing_with_arrivals_sleeps_through_them() -> None:
    script = Script()
    script.carrier.sources.due, script.carrier.deadline, script.carrier.sources.more_in_turn = 5, 6, True
    script.carrier.busy, script.carrier.free, script.carrier.attentive, script.carrier.hungry = True, 0, False, True
    assert script.begin() == Admit(True)
    assert script.send() == wait(look=1_000)


def test_the_end_of_an_input_that_is_found_ahead_is_dealt_with_at_once() -> None:
    script = Script()
    script.carrier.sources.ends = True
    assert script.begin() == Admit(False)
    assert script.send() == AT_ONCE
    assert script.later() == Admit(False)
    assert script.send() == End()


def test_a_look_is_worth_waking_for_while_tuples_are_dropped() -> None:
    script = Script()
    script.steering.active, script.carrier.sources.due = True, 5_000
    script.begin()
    assert script.send() == wait(5_000, look=1_000)


def test_sources_without_rates_are_read_ahead_while_steps_are_under_way() -> None:
    script = Script()
    script.carrier.sources.more_in_turn, script.carrier.busy, script.carrier.hungry = True, True, True
    assert script.begin() == Admit(True)
    assert script.send() == AT_ONCE
    script.carrier.hungry = False
    assert script.later() == Admit(False)
    assert script.send() == wait(look=1_000)


def test_in_virtual_time_they_are_not() -> None:
    script = Script(manner=Manner(virtual=True))
    script.carrier.sources.more_in_turn, script.carrier.busy, script.carrier.hungry = True, True, True
    assert script.begin() == Admit(True)
    assert script.send() == wait(look=1_000)


def test_sources_without_rates_are_read_on_while_nothing_else_can_be_done() -> None:
    script = Script(First([Plan((), 500), Plan((), 500)]))
    script.carrier.sources.more_in_turn, script.carrier.waiting = True, (1, 0)
    script.begin()
    script.send()
    assert script.send(Started(0)) == AT_ONCE  # the policy lets all wait, so more may come
    assert script.later() == Admit(True)
    script.carrier.full = True
    script.send()
    assert script.send(Started(0)) == wait(500)


def test_a_log_takes_what_comes_by_itself_while_queues_are_full() -> None:
    script = Script(manner=Manner(logs=True))
    script.carrier.full, script.carrier.hungry, script.carrier.busy, script.carrier.free = True, True, True, 0
    script.carrier.sources.more_in_turn, script.carrier.sources.due = True, 0
    assert script.begin() == Admit(False)
    assert script.send() == wait(0, look=1_000)


def test_windows_that_time_out_tick_before_anything_else_and_not_after_the_end() -> None:
    script = Script()
    script.carrier.deadline = 0
    assert script.begin() == LetTick()
    script.carrier.deadline = 10
    assert script.send() == Admit(False)
    assert script.send() == wait(10)
    script.carrier.sources.ended = True
    assert script.later(20) == Admit(False)


def test_there_may_be_room_for_another_plan() -> None:
    script = Script()
    script.carrier.waiting = (1, 1)
    script.begin()
    assert isinstance(script.send(), Start)
    script.carrier.at_work = (True, False)
    second = script.send(Started(1, again=True))
    assert isinstance(second, Start)
    assert second.plan == 2
    script.carrier.at_work, script.carrier.busy = (True, True), True
    assert script.send(Started(1, again=True)) == wait(look=1_000)


def test_who_preempts_is_asked_while_all_are_at_work_if_anything_has_happened() -> None:
    script = Script(First([Plan((Step(0, 1),), 100)], preemptive=True), Manner(virtual=True))
    script.carrier.waiting = (1, 0)
    script.begin()
    script.send()
    script.carrier.busy, script.carrier.free = True, 0
    assert script.send(Started(1, postponed=7)) == wait(107, look=1_000)
    assert script.later() == Admit(False)
    assert script.send() == wait(107, look=1_000)  # nothing has happened
    assert script.later() == Admit(False)
    script.carrier.sources.issued = 5
    assert isinstance(script.send(), Start)
    assert script.send(Started(0)) == wait(look=1_000)
    assert script.later(1, 1) == Admit(False)
    assert isinstance(script.send(), Start)  # a step has ended


def test_a_step_that_was_ended_early_for_another_unit_is_a_preemption() -> None:
    script = Script(First([Plan((Step(0, 9),)), Plan((Step(1, 9),)), Plan((Step(0, 9),))], preemptive=True))
    script.carrier.waiting = (1, 1)
    script.begin()
    script.send()
    assert script.loop.part_ended(10, arrived=True)
    assert not script.loop.part_ended(10, arrived=False)
    script.send(Started(1, overtaken=0))
    script.later()
    script.send()
    assert script.loop.preemptions == 1
    script.send(Started(1))
    script.later()
    script.send()
    assert script.loop.preemptions == 1


def test_a_step_that_had_nothing_left_was_not_preempted() -> None:
    script = Script(First([Plan((Step(0, 9),)), Plan((Step(1, 9),))], preemptive=True))
    script.carrier.waiting = (1, 1)
    script.begin()
    script.send()
    script.send(Started(1, overtaken=0))
    script.carrier.waiting = (0, 1)
    script.later()
    script.send()
    assert script.loop.preemptions == 0


def test_only_a_preemptive_policy_ends_steps_early() -> None:
    script = Script()
    script.begin()
    assert not script.loop.part_ended(10, arrived=True)


def test_the_run_is_looked_at_when_it_is_time_also_between_parts() -> None:
    script = Script()
    script.begin()
    assert script.send() == wait()
    assert script.later(1_000) == Admit(False)
    script.send()
    assert script.steering.looks == [1_000]
    script.loop.part_ended(1_500, False)
    assert script.steering.looks == [1_000]
    script.loop.part_ended(2_000, False)
    assert script.steering.looks == [1_000, 2_000]


def test_without_a_policy_nobody_decides_and_nobody_looks() -> None:
    script = Script(decides=False)
    script.carrier.busy = True
    script.begin()
    assert script.send() == wait()
    script.later(5_000)
    assert script.send() == wait()
    assert script.steering.looks == []
    script.carrier.busy, script.carrier.sources.ended = False, True
    script.later()
    assert script.send() == End()
