"""Laws of all policies that choose by queues and age."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.scheduling import earliest_deadline, feedback, fifo, most_tuples, weighted_round_robin
from headway.scheduling.policy import Policy, make_policy, registered_policies, terms_of
from headway.scheduling.snapshot import OutputReadings, Snapshot
from tests.scheduling.snapshots import Points, graphs, measured, replace

MODULES = (earliest_deadline, feedback, fifo, most_tuples, weighted_round_robin)
RANKED = ("earliest-deadline", "feedback", "fifo", "most-tuples")
ALL = (*RANKED, "weighted-round-robin")

NEVER = int(np.iinfo(np.int64).max)


def with_outputs(seen: Snapshot) -> Snapshot:
    """Return the snapshot with readings of its outputs: nothing was delivered yet."""
    count = len(seen.topology.outputs)
    none = OutputReadings(np.zeros(count, np.int64), np.zeros(count), np.ones(count), np.ones(count))
    return replace(seen, read_outputs=lambda: none)


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    """Snapshots with any units ready and busy; stamps are all different, numbers of tuples are not."""
    count = draw(st.integers(1, 8))
    some: list[list[Points | None]] = [draw(st.lists(st.one_of(st.none(), graphs()), max_size=2)) for _ in range(count)]
    waiting = [draw(st.integers(0, 4)) for _ in range(count)]
    ages = draw(st.permutations(range(1, count + 1)))
    oldest = [10**9 * age if many else NEVER for age, many in zip(ages, waiting, strict=True)]
    masks = [np.array([draw(st.booleans()) for _ in range(count)], np.bool_) for _ in range(2)]
    seen = measured(some, [0.0] * count, waiting=waiting, oldest=oldest, ready=masks[0], busy=masks[1])
    busy = int(masks[1].any())  # somebody works for those that are
    free = draw(st.integers(1, 3))
    return with_outputs(replace(seen, workers=free + busy, free=free, room=draw(st.integers(1, 9))))


def chosen(policy: Policy, seen: Snapshot) -> list[int]:
    plan, _ = policy.plan(seen, policy.start())
    return [step.unit for step in plan.steps]


@pytest.mark.parametrize("name", ALL)
def test_they_are_registered_and_say_what_they_are(name: str) -> None:
    (entry,) = (one for one in registered_policies() if one.name == name)
    assert entry.about
    assert entry.formula
    assert entry.paper
    assert entry.use


@pytest.mark.parametrize("name", ALL)
@settings(deadline=None)
@given(seen=snapshots())
def test_only_ready_units_that_are_not_busy_each_once(name: str, seen: Snapshot) -> None:
    units = chosen(make_policy(name), seen)
    able = np.flatnonzero(seen.ready & ~seen.busy).tolist()
    assert set(units) <= set(np.flatnonzero(seen.ready).tolist())
    # Round robins name those that follow, too, if the engine serves more steps than workers are free.
    assert set(units if name in RANKED else units[: min(seen.free, len(able))]) <= set(able)
    assert len(units) == len(set(units)) <= seen.room
    assert bool(units) == bool(able)


@pytest.mark.parametrize("name", ALL)
@settings(deadline=None)
@given(seen=snapshots())
def test_same_snapshot_same_plan_and_nothing_is_written_to_it(name: str, seen: Snapshot) -> None:
    arrays: tuple[npt.NDArray[Any], ...] = (
        seen.ready,
        seen.busy,
        seen.waiting,
        seen.oldest,
        seen.box_waiting,
        seen.box_oldest,
    )
    before = copy.deepcopy(arrays)
    for array in arrays:
        array.flags.writeable = False
    policy = make_policy(name)
    first = chosen(policy, seen)
    assert chosen(policy, seen) == first
    for array, old in zip(arrays, before, strict=True):
        assert (array == old).all()


@pytest.mark.parametrize("name", RANKED)
@settings(deadline=None)
@given(seen=snapshots(), data=st.data())
def test_the_numbers_of_the_units_do_not_matter(name: str, seen: Snapshot, data: st.DataObject) -> None:
    count = len(seen.units)
    mix = list(data.draw(st.permutations(range(count))))
    mixed = replace(
        seen,
        units=tuple(seen.units[at] for at in mix),
        ready=seen.ready[mix],
        busy=seen.busy[mix],
        waiting=seen.waiting[mix],
        oldest=seen.oldest[mix],
    )
    policy = make_policy(name)

    def first(one: Snapshot) -> tuple[object, ...]:
        """Return what the terms say of the unit that comes first: ties may go to another one."""
        memory = policy.plan(one, policy.start())[1]
        return tuple(
            term.values[unit].item() for term in terms_of(policy, one, memory) for unit in chosen(policy, one)[:1]
        )

    assert first(mixed) == first(seen)
    # With stamps that all differ only deadlines can tie, and places break that tie; queues of one length do as well.
    if (seen.waiting > 0).all() and name != "most-tuples":
        assert [mix[unit] for unit in chosen(policy, mixed)[:1]] == chosen(policy, seen)[:1]


@pytest.mark.parametrize("name", RANKED)
@settings(deadline=None)
@given(seen=snapshots())
def test_the_first_is_the_least_by_its_terms(name: str, seen: Snapshot) -> None:
    policy = make_policy(name)
    plan, memory = policy.plan(seen, policy.start())
    keys = [(-term.values if term.largest else term.values).tolist() for term in terms_of(policy, seen, memory)]
    able = np.flatnonzero(seen.ready & ~seen.busy).tolist()
    if able:
        wanted = min(able, key=lambda unit: (*(key[unit] for key in keys), unit))
        assert plan.steps[0].unit == wanted


@pytest.mark.parametrize("name", ALL)
def test_an_empty_network_has_an_empty_plan(name: str) -> None:
    seen = with_outputs(measured([[]], [0.0], ready=np.array([False])))
    assert chosen(make_policy(name), seen) == []
