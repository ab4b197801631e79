"""Laws that hold for every network or every policy, in virtual time."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

import headway as hw
from headway.clock import MILLISECOND, SECOND
from headway.engines.runs import RunResult
from tests.laws.helpers import Box, Net, ms, names_of, spans, trace_of
from tests.laws.strategies import EVERY, forests, laws, schedules
from tests.streams import Case, networks

CONSERVING = tuple(policy for policy in EVERY if policy != "random")
"""The random policy may choose nobody but units that are busy."""
NOW = ("1", "2", "7", "1000", "50%", "5ms", "64kB", "spread:10ms", "overhead:5%")
"""Trains that wait for nothing."""


# No policy changes results


def simulate(case: Case, policy: str, workers: int, timed: bool) -> RunResult:
    rates = dict.fromkeys(case.inputs, 100.0) if timed else {}
    model = {"default": "1ms"}
    network = hw.load(case.twin.mapping())
    return hw.run(network, case.inputs, engine="sim", policy=policy, workers=workers, rates=rates, model=model)


@pytest.mark.parametrize("policy", EVERY)
@laws(6)
@given(case=networks(5), data=st.data(), timed=st.booleans())
def test_no_policy_changes_results(policy: str, case: Case, data: st.DataObject, timed: bool) -> None:
    expected = simulate(case, "round-robin/box/1", 1, timed).outputs
    for _ in range(2):
        how, workers = data.draw(schedules(policy)), data.draw(st.integers(1, 3))
        found = simulate(case, how, workers, timed).outputs
        for name, table in expected.items():
            assert found[name].equals(table), f"output '{name}' under {how} with {workers} workers"


@laws(60)
@given(net=forests(several=True), how=schedules(), workers=st.integers(1, 3))
def test_no_policy_changes_the_results_of_universal_boxes(net: Net, how: str, workers: int) -> None:
    expected = net.run("round-robin/box/1").outputs
    found = net.run(how, workers=workers).outputs
    for name, table in expected.items():
        assert found[name].equals(table), name


# Work conservation


@laws(120)
@given(net=forests(), policy=st.sampled_from(CONSERVING), train=st.sampled_from(NOW), workers=st.integers(1, 3))
def test_no_processor_is_idle_while_a_box_could_run(net: Net, policy: str, train: str, workers: int) -> None:
    result = net.run(f"{policy}/box/{train}", workers=workers)
    for span in spans(net, result):
        able = [box for box, many in enumerate(span.queued) if many and box not in span.running]
        assert len(span.running) == workers or not able, f"{span}: {able} wait"


# Nobody starves

WAIT = 100_000_000


def longest_wait(net: Net, result: RunResult) -> int:
    """Return the longest time for which a box that has tuples is not at work."""
    found = spans(net, result)
    longest = 0
    for box in range(len(trace_of(result).boxes)):
        waits = [(bool(span.queued[box]) and box not in span.running, span.end - span.begin) for span in found]
        for waiting, some in groupby(waits, key=lambda wait: wait[0]):
            if waiting:
                longest = max(longest, sum(length for _, length in some))
    return longest


@st.composite
def overloaded(draw: st.DrawFn) -> Net:
    """Arrivals that take far longer to process than to come."""
    net: Net = draw(forests(most=5))
    every = {name: range(0, 80, draw(st.integers(2, 4))) for name in net.arrivals}
    return replace(net, arrivals={name: ms(*some) for name, some in every.items()})


@laws(60)
@given(
    net=overloaded(),
    policy=st.sampled_from(EVERY),
    train=st.sampled_from(("1", "5", "50%", "auto")),
    workers=st.sampled_from((1, 1, 1, 2)),
)
def test_nobody_who_is_ready_waits_for_ever(net: Net, policy: str, train: str, workers: int) -> None:
    # A wait is seen within a sixteenth of the longest, when the step that is under way then has ended. When it is over,
    # the step that is under way must end, and so must those of other boxes that have waited for longer: each once.
    result = net.run(f"{policy}/box/{train}/wait:100ms", workers=workers)
    steps = trace_of(result).steps
    longest = max([step.end - step.begin for step in steps], default=0)
    assert longest_wait(net, result) <= WAIT * 17 // 16 + (len(net.boxes) + 1) * longest


def test_without_a_longest_wait_somebody_starves() -> None:
    # Two rows: a tuple of the first is worth more as long as there is one.
    first, other = Box(("s",), 1), Box(("r",), 50)
    net = Net({"s": ms(*range(400)), "r": ms(0, 0)}, {"a": first, "b": other}, {"o": "a", "p": "b"})
    assert longest_wait(net, net.run("rate-based/box/1/wait:off")) >= 4 * WAIT - ms(1)[0]
    assert longest_wait(net, net.run("rate-based/box/1/wait:100ms")) <= WAIT * 17 // 16 + ms(50)[0]


# Virtual time


@laws(60)
@given(
    net=forests(several=True),
    how=schedules(),
    workers=st.integers(1, 3),
    call=st.integers(0, 3),
    storage=st.integers(0, 2),
)
def test_busy_time_is_the_cost_of_all_calls(net: Net, how: str, workers: int, call: int, storage: int) -> None:
    overheads = {"call": call / 1000, "storage": storage / 1000}
    result = net.run(how, workers=workers, model={"overheads": overheads})
    trace, summary = trace_of(result), result.summary
    cost = {name: round(box.cost) for name, box in net.boxes.items()}
    calls = [one for step in trace.steps for one in step.calls]
    tuples = sum([one.tuples_in * cost[trace.boxes[one.boxes[0]]] for one in calls])
    fetched = round(summary["time"]["storage"] * 1000)  # in milliseconds, as all here
    assert fetched % max(1, storage) == 0
    busy = sum([step.end - step.begin for step in trace.steps])
    worked = len([one for one in calls if one.tuples_in])  # marks cost nothing
    assert busy == (tuples + call * worked + fetched) * MILLISECOND
    assert round((summary["time"]["boxes"] + summary["time"]["storage"]) * SECOND) == busy
    by_box = sum([one["seconds"] for one in summary["boxes"].values()])
    assert round(by_box * SECOND) == round(summary["time"]["boxes"] * SECOND)
    last = max([step.end for step in trace.steps], default=0)
    assert round(summary["seconds"] * SECOND) >= last
    assert busy <= workers * last


def test_policies_see_all_that_arrives_at_a_moment() -> None:
    # The first source ends with its only tuple, at the moment at which the other one begins.
    net = Net({"s": ms(0), "r": ms(0, 30)}, {"a": Box(("s",), 10), "b": Box(("r",), 1)}, {"o": "a", "p": "b"})
    assert names_of(net.run("rate-based/box/1")) == "b a b"


@laws(40)
@given(net=forests(several=True), how=schedules(), workers=st.integers(1, 3))
def test_every_run_is_repeatable(net: Net, how: str, workers: int) -> None:
    first, again = (net.run(how, workers=workers) for _ in range(2))
    assert trace_of(first) == trace_of(again)
    assert first.outputs == again.outputs
    summaries = [{**one.summary, "real_seconds": 0, "real_planning": 0} for one in (first, again)]
    assert summaries[0] == summaries[1]
