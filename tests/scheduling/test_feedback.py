"""Feedback: the rule by hand, and outputs that settle in a small simulation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.clock import MILLISECOND, SECOND
from headway.errors import PolicyError
from headway.network.qos import Graph
from headway.scheduling.feedback import INTERVAL, KEEP, MOST, TOLERANCE, Feedback, FeedbackMemory, moved, shortfalls
from headway.scheduling.graphs import DEFAULT_GOOD
from headway.scheduling.policy import make_policy
from headway.scheduling.snapshot import OutputReadings, Snapshot, Unit
from tests.scheduling.snapshots import Points, measured, replace

NEVER = int(np.iinfo(np.int64).max)
TIGHT = ((0.0, 1.0), (0.02, 1.0), (0.1, 0.0))
LOOSE = ((0.0, 1.0), (5.0, 1.0), (10.0, 0.0))
MODEST = ((0.0, 0.5), (1.0, 0.5), (2.0, 0.0))


def seen(
    graphs: Sequence[Points | None],
    delivered: Sequence[int],
    utility: Sequence[float],
    *,
    now: int,
    ages: Sequence[float | None] | None = None,
) -> Snapshot:
    """Return a snapshot of a unit for each output; `ages` are those of the oldest waiting tuples (s)."""
    ages = [0.0] * len(graphs) if ages is None else ages
    oldest = [NEVER if age is None else now - round(age * SECOND) for age in ages]
    waiting = [0 if age is None else 1 for age in ages]
    readings = OutputReadings(
        np.array(delivered, np.int64), np.zeros(len(graphs)), np.array(utility, np.float64), np.ones(len(graphs))
    )
    return measured(
        [[one] for one in graphs],
        [0.0] * len(graphs),
        oldest=oldest,
        waiting=waiting,
        now=now,
        read_outputs=lambda: readings,
    )


def looks(*snapshots: Snapshot, policy: Feedback | None = None) -> FeedbackMemory:
    """Return the memory after plans for these snapshots of one network."""
    policy = policy or Feedback()
    memory = policy.start()
    for one in snapshots:
        memory = policy.plan(replace(one, layout=snapshots[0].layout), memory)[1]
    assert isinstance(memory, FeedbackMemory)
    return memory


def test_what_was_delivered_since_the_last_look_counts() -> None:
    # 10 tuples at a mean of 0.9, then 20 in all at 0.7: the ten in between had 0.5.
    memory = looks(seen([TIGHT], [10], [0.9], now=0), seen([TIGHT], [20], [0.7], now=INTERVAL))
    assert memory.priorities.tolist() == pytest.approx([0.5])
    memory = looks(
        seen([TIGHT], [10], [0.9], now=0),
        seen([TIGHT], [20], [0.7], now=INTERVAL),
        seen([TIGHT], [30], [0.8], now=2 * INTERVAL),  # these ten had 1
    )
    assert memory.priorities.tolist() == pytest.approx([0.5 * KEEP])


def test_utility_is_measured_by_the_best_that_the_graph_gives() -> None:
    memory = looks(
        seen([MODEST, MODEST, TIGHT], [0, 0, 0], [1, 1, 1], now=0),
        seen([MODEST, MODEST, TIGHT], [4, 4, 4], [0.5, 0.25, 0.5], now=INTERVAL),
    )
    assert memory.priorities.tolist() == pytest.approx([0, 0.5, 0.5])


def test_an_output_that_can_earn_nothing_does_not_do_badly() -> None:
    zero = ((0.0, 0.0), (1.0, 0.0))
    memory = looks(seen([zero], [0], [1], now=0), seen([zero], [4], [0], now=INTERVAL))
    assert memory.priorities.tolist() == [0]


def test_where_nothing_is_delivered_the_oldest_waiting_tuple_counts() -> None:
    graphs = [TIGHT, LOOSE, TIGHT, None, None]
    ages = [0.03, 0.03, None, DEFAULT_GOOD + 0.1, DEFAULT_GOOD - 0.1]
    memory = looks(
        seen(graphs, [3] * 5, [1] * 5, now=0, ages=[0.0] * 5), seen(graphs, [3] * 5, [1] * 5, now=INTERVAL, ages=ages)
    )
    assert memory.priorities.tolist() == [1, 0, 0, 1, 0]


def test_between_looks_nothing_changes() -> None:
    begin = seen([TIGHT], [0], [1], now=0)
    early = seen([TIGHT], [9], [0], now=INTERVAL - 1)
    assert looks(begin, early).looked == 0
    assert looks(begin, early).priorities.tolist() == [0]
    assert looks(begin, seen([TIGHT], [9], [0], now=INTERVAL)).priorities.tolist() == [1]
    slow = Feedback(250 * MILLISECOND)
    assert looks(begin, seen([TIGHT], [9], [0], now=249 * MILLISECOND), policy=slow).priorities.tolist() == [0]
    assert looks(begin, seen([TIGHT], [9], [0], now=250 * MILLISECOND), policy=slow).priorities.tolist() == [1]


def test_outputs_are_read_at_looks_only() -> None:
    begin = seen([TIGHT], [0], [1], now=0)

    def refuse() -> OutputReadings:
        raise AssertionError("nobody should look")

    policy = Feedback()
    _, memory = policy.plan(begin, policy.start())
    assert policy.plan(replace(begin, now=INTERVAL - 1, read_outputs=refuse), memory)[1] is memory


def test_what_is_remembered_cannot_be_changed() -> None:
    memory = looks(seen([TIGHT], [5], [1], now=0))
    for array in (memory.delivered, memory.earned, memory.priorities, memory.ranks):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 99


def order(memory: FeedbackMemory, one: Snapshot) -> list[int]:
    plan, _ = Feedback().plan(one, memory)
    return [step.unit for step in plan.steps]


def test_units_go_by_the_priority_of_their_outputs_near_equals_by_age() -> None:
    begin = seen([TIGHT] * 4, [0] * 4, [1] * 4, now=0, ages=[0.4, 0.3, 0.2, 0.1])
    memory = looks(begin)
    priorities = np.array([1.4, 3.0, 0.6, 2.2])
    memory = replace(memory, priorities=priorities, ranks=np.rint(priorities))
    assert order(memory, begin) == [1, 3, 0, 2]
    later = replace(begin, oldest=begin.oldest[::-1].copy())
    assert order(memory, later) == [1, 3, 2, 0]


def test_a_unit_has_the_largest_priority_of_its_outputs_or_none() -> None:
    begin = seen([TIGHT, TIGHT, TIGHT], [0] * 3, [1] * 3, now=0)
    units = (Unit("a", (0,), (0, 1)), Unit("b", (1,), ()), Unit("c", (2,), (2,)))
    later = seen([TIGHT, TIGHT, TIGHT], [4] * 3, [1, 0, 1], now=INTERVAL)
    memory = looks(replace(begin, units=units), later)
    assert memory.priorities.tolist() == [0, 1, 0]
    assert memory.ranks.tolist() == [1, 0, 0]
    terms = Feedback().terms(later, memory)
    assert [(term.name, term.largest) for term in terms] == [("priority", True), ("oldest", False)]


def test_the_oldest_tuple_of_all_units_that_lead_to_an_output_counts() -> None:
    begin = seen([TIGHT, TIGHT], [0, 0], [1, 1], now=0)
    units = (Unit("a", (0,), (0,)), Unit("b", (1,), (0, 1)))
    late = seen([TIGHT, TIGHT], [0, 0], [1, 1], now=INTERVAL, ages=[0.05, 0.0])
    assert looks(replace(begin, units=units), late).priorities.tolist() == [1, 0]


def test_another_network_begins_anew() -> None:
    bad = looks(seen([TIGHT], [0], [1], now=0), seen([TIGHT], [9], [0], now=INTERVAL))
    _, memory = Feedback().plan(seen([TIGHT, LOOSE], [0, 0], [1, 1], now=2 * INTERVAL), bad)
    assert memory.priorities.tolist() == [0, 0]


@settings(deadline=None)
@given(
    priorities=st.lists(st.floats(0, MOST), min_size=1, max_size=6),
    found=st.lists(st.floats(0, 1), min_size=6, max_size=6),
)
def test_bad_rises_good_sinks_and_the_bounds_hold(priorities: list[float], found: list[float]) -> None:
    shortfall = np.array(found[: len(priorities)])
    before = np.array(priorities)
    after = moved(before, shortfall)
    assert ((after >= 0) & (after <= MOST)).all()
    bad = shortfall > TOLERANCE
    assert ((after > before) | (before == MOST))[bad].all()
    assert ((after < before) | (before < 1e-300))[~bad].all()


@settings(deadline=None)
@given(
    utilities=st.lists(st.floats(0, 1), min_size=2, max_size=6),
    best=st.floats(0.1, 1),
    delivered=st.integers(1, 10**9),
)
def test_a_better_utility_is_never_a_larger_shortfall(utilities: list[float], best: float, delivered: int) -> None:
    ordered = np.sort(np.array(utilities))
    count = len(ordered)
    many = np.full(count, delivered)
    found = shortfalls(np.full(count, best), many, ordered * many, np.zeros(count, np.bool_))
    assert ((found >= 0) & (found <= 1)).all()
    assert (np.diff(found) <= 1e-9).all()


def test_a_starving_output_reaches_the_top_and_a_good_one_the_bottom() -> None:
    priority = np.zeros(1)
    for _ in range(round(MOST)):
        priority = moved(priority, np.ones(1))
    assert priority.tolist() == [MOST]
    for _ in range(55):
        assert np.rint(priority) > 0
        priority = moved(priority, np.zeros(1))
    assert np.rint(priority) == 0


@pytest.mark.parametrize("argument", ["", "100", "0s", "-5ms", "soon", "3 parsecs"])
def test_its_argument_is_a_duration(argument: str) -> None:
    assert make_policy("feedback") == Feedback(100 * MILLISECOND)
    assert make_policy("feedback:250ms") == Feedback(250 * MILLISECOND)
    with pytest.raises(PolicyError, match=r"policy 'feedback:.*how often to look at the outputs"):
        make_policy(f"feedback:{argument}")


@dataclass
class Toy:
    """Units with a queue and an output each, one server, and steps of a millisecond on up to ten tuples."""

    graphs: Sequence[Points]
    policy: Feedback = field(default_factory=Feedback)
    now: int = 0
    ranks: list[list[float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.queues: list[list[int]] = [[] for _ in self.graphs]
        self.delivered = [0] * len(self.graphs)
        self.earned = [0.0] * len(self.graphs)
        self.worth = [Graph(tuple(one)) for one in self.graphs]
        self.memory = self.policy.start()
        self.plain = measured([[one] for one in self.graphs], [0.0] * len(self.graphs), room=1, train=10)

    def run(self, milliseconds: int, arrivals: Sequence[tuple[int, int]]) -> None:
        """Go on for so long; by unit so many tuples arrive together, every so many milliseconds."""
        for _ in range(milliseconds):
            for queue, (many, every) in zip(self.queues, arrivals, strict=True):
                if many and self.now // MILLISECOND % every == 0:
                    queue += [self.now] * many
            self._step()
            self.now += MILLISECOND

    def _step(self) -> None:
        waiting = np.array([len(queue) for queue in self.queues])
        readings = OutputReadings(
            np.array(self.delivered),
            np.zeros(len(self.queues)),
            np.array([sum_ / max(1, many) for sum_, many in zip(self.earned, self.delivered, strict=True)]),
            np.ones(len(self.queues)),
        )
        one = replace(
            self.plain,
            now=self.now,
            ready=waiting > 0,
            waiting=waiting,
            oldest=np.array([queue[0] if queue else NEVER for queue in self.queues]),
            read_outputs=lambda: readings,
        )
        plan, self.memory = self.policy.plan(one, self.memory)
        self.ranks.append(self.memory.ranks.tolist())
        for unit, tuples in plan.steps:
            taken = self.queues[unit][:tuples]
            del self.queues[unit][:tuples]
            self.delivered[unit] += len(taken)
            ages = (self.now + MILLISECOND - np.array(taken)) / SECOND
            self.earned[unit] += float(self.worth[unit].values(ages).sum())

    def utility(self, unit: int, since: tuple[list[int], list[float]]) -> float:
        """Return the mean utility of an output since a mark."""
        return (self.earned[unit] - since[1][unit]) / max(1, self.delivered[unit] - since[0][unit])

    def mark(self) -> tuple[list[int], list[float]]:
        return list(self.delivered), list(self.earned)


TRICKLE, BURSTS, NOTHING = (10, 5), (2000, 400), (0, 1)
"""A step's worth every 5 ms, and 200 steps' worth every 400 ms: seven tenths of what can be served."""


@pytest.mark.parametrize("tight", [0, 1])
def test_the_tight_output_settles_above_the_loose_one(tight: int) -> None:
    graphs = [LOOSE, LOOSE]
    graphs[tight] = TIGHT
    arrivals = [BURSTS, BURSTS]
    arrivals[tight] = TRICKLE
    toy = Toy(graphs)
    toy.run(1000, arrivals)
    settled = toy.mark()
    toy.run(3000, arrivals)
    above = [ranks[tight] > ranks[1 - tight] for ranks in toy.ranks[1000:]]
    assert sum(above) > 0.8 * len(above)
    assert toy.utility(tight, settled) > 0.95
    assert toy.utility(1 - tight, settled) == 1

    # By age alone the same load costs the tight output much of its utility.
    by_age = Toy(graphs, policy=Feedback(3600 * SECOND))
    by_age.run(2000, arrivals)
    assert by_age.utility(tight, ([0, 0], [0.0, 0.0])) < 0.7


def test_priorities_recover_when_an_output_is_well_again() -> None:
    toy = Toy([TIGHT, LOOSE])
    toy.run(2000, [TRICKLE, BURSTS])
    assert toy.memory.ranks[0] > 0
    toy.run(6000, [TRICKLE, NOTHING])
    assert toy.memory.ranks.tolist() == [0, 0]
    assert (toy.memory.priorities < 0.5).all()


def test_an_output_cannot_be_shut_out_for_good() -> None:
    # The first alone has more to do than can be done and is late for good; the second wants a hundredth.
    toy = Toy([TIGHT, ((0.0, 1.0), (0.5, 1.0), (1.0, 0.0))])
    toy.run(2000, [(12, 1), (1, 10)])
    before = toy.delivered[1]
    toy.run(3000, [(12, 1), (1, 10)])
    assert toy.ranks[-1][0] == MOST
    assert toy.delivered[1] - before > 200
