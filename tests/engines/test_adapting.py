"""An adaptive layer at work: what it is told, when it is asked, and that its wishes reach the master scheduler."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from headway.adaptive.layer import Action, Adaption, Interval, ShedOutput, Switch
from headway.adaptive.master import Master
from headway.catalog import Topology
from headway.clock import SECOND
from headway.engines.steering import Adapting
from headway.engines.traces import ChangeLog
from headway.errors import PolicyError
from headway.scheduling.bounded import Bounded
from headway.scheduling.policy import Policy, make_policy
from headway.totals import Totals
from headway.trains import Tick, Train
from tests.engines.overloads import SOON, Bench, box, network, output

POLICIES = ("round-robin", "fifo", "chain")
FORK = network(
    {"m": box("s"), "x": box("m"), "y": box("m")},
    {"ox": output("x", SOON), "oy": output("y")},
    [["20s", 100]],
)
"""s -> m -> x -> ox and m -> y -> oy; the units are m (with ox and oy), x, y."""


class Script:
    """A layer that wants certain things, one after the other, every second."""

    def __init__(self, *wanted: tuple[Action, ...], first: tuple[int, ...] = (0, 1)) -> None:
        self.policies = POLICIES
        self._wanted = wanted
        self._first = first
        self.seen: list[Totals] = []
        self.changed: list[Mapping[str, Any]] = []

    def start(self, topology: Topology, now: int) -> tuple[tuple[int, ...], int]:
        return self._first, 1

    def next(self, memory: int) -> int:
        return memory * SECOND

    def look(self, totals: Totals, memory: int) -> tuple[tuple[Action, ...], int]:
        self.seen.append(totals)
        return self._wanted[memory - 1] if memory <= len(self._wanted) else (), memory + 1

    def change(self, settings: Mapping[str, Any], memory: int) -> int:
        if "bad" in settings:
            raise PolicyError("no such thing")
        self.changed.append(settings)
        return memory


class Run:
    """A network whose queues fill while a layer looks at it."""

    def __init__(self, layer: Script, bounded: bool = False) -> None:
        self.bench = Bench(FORK)
        self.layer = layer
        self.log = ChangeLog(0)
        self.master = Master([make_policy(name) for name in POLICIES], POLICIES)
        policy: Policy = Bounded(self.master, 10 * SECOND) if bounded else self.master
        self.adapting = Adapting(Adaption("script", layer), policy, self.bench.reading, self.log, 0)
        self.bounded = bounded
        self.memory = self.adapting.begin(policy.start())

    def until(self, seconds: float) -> None:
        """Let time go on; look whenever it is wanted."""
        while self.adapting.next <= seconds * SECOND:
            self.bench.arrive(max(0, self.adapting.next - self.bench.clock.now()) / SECOND)
            self.memory = self.adapting.look(self.bench.clock.now(), self.memory)

    @property
    def assigned(self) -> list[int]:
        """The policy of each unit."""
        found = (self.memory.inner if self.bounded else self.memory).assigned
        assert found is not None
        return found.tolist()  # type: ignore[no-any-return]


@pytest.mark.parametrize("bounded", [False, True])
def test_outputs_begin_with_the_policies_that_the_layer_wants(bounded: bool) -> None:
    run = Run(Script(first=(2, 1)), bounded)
    assert run.assigned == [2, 2, 1], "what several outputs share goes with the first of them"
    assert run.adapting.summary()["now"] == {"ox": "chain", "oy": "fifo"}


@pytest.mark.parametrize("bounded", [False, True])
def test_an_output_is_switched_with_all_that_leads_to_it_alone(bounded: bool) -> None:
    run = Run(Script((Switch(1, 2, "why not"),), (Switch(0, 1, "late"),)), bounded)
    run.until(1)
    assert run.assigned == [0, 0, 2]
    run.until(2)
    assert run.assigned == [1, 1, 2]
    told = run.adapting.summary()
    assert told["now"] == {"ox": "fifo", "oy": "chain"}
    assert told["switches"] == 2
    assert told["changes"] == [
        {"moment": 1.0, "subject": "oy", "change": "fifo -> chain", "reason": "why not"},
        {"moment": 2.0, "subject": "ox", "change": "round-robin -> fifo", "reason": "late"},
    ]
    assert [change.kind for change in run.log.changes] == ["switch", "switch"]


def test_everything_is_switched_at_once() -> None:
    run = Run(Script((Switch(None, 2, "best"),), (Switch(None, 2, "still the best"),)))
    run.until(2)
    assert run.assigned == [2, 2, 2]
    told = run.adapting.summary()
    assert told["changes"] == [
        {"moment": 1.0, "subject": "all", "change": "fifo, round-robin -> chain", "reason": "best"}
    ], "to be switched to what one has is no change"
    assert told["switches"] == 1


def test_a_switch_to_what_it_has_is_none() -> None:
    run = Run(Script((Switch(0, 0, "again"),)))
    run.until(1)
    assert (run.adapting.summary()["switches"], run.log.changes) == (0, [])


def test_how_long_each_policy_was_used() -> None:
    run = Run(Script((Switch(0, 2, "why not"),)))  # oy has fifo all the time
    run.until(4)
    told = run.adapting.summary()
    assert (told["layer"], told["policies"]) == ("script", list(POLICIES))
    assert told["time"] == pytest.approx({"round-robin": 1 / 8, "fifo": 4 / 8, "chain": 3 / 8})


def test_what_may_be_shed() -> None:
    run = Run(
        Script(
            (ShedOutput(1, True, "too late"),),
            (ShedOutput(1, True, "still"), ShedOutput(0, True, "me, too")),
            (ShedOutput(1, False, "good"),),
        )
    )
    seen = []
    for second in (1, 2, 3, 4):
        run.until(second)
        seen.append(run.adapting.shedding)
    assert seen == [{1}, {0, 1}, {0}, {0}]
    assert [totals.shedding for totals in run.layer.seen] == [set(), {1}, {0, 1}, {0}]
    told = [(change.kind, change.subject, change.what, change.reason) for change in run.log.changes]
    assert told == [
        ("allow", "oy", "may be shed", "too late"),
        ("allow", "ox", "may be shed", "me, too"),
        ("allow", "oy", "no longer shed", "good"),
    ]


def test_it_is_asked_when_it_wants_and_queues_are_read_more_often() -> None:
    run = Run(Script())
    moments = []
    while run.adapting.next <= 2 * SECOND:
        moments.append(run.adapting.next)
        run.until(run.adapting.next / SECOND)
    assert [totals.now for totals in run.layer.seen] == [SECOND, 2 * SECOND]
    assert moments == sorted(set(moments))
    assert SECOND in moments
    assert 2 * SECOND in moments
    assert 2 * 16 <= len(moments) < 250
    assert max(b - a for a, b in pairwise(moments)) <= SECOND // 16


def test_what_has_waited_over_time() -> None:
    run = Run(Script())
    run.bench.arrive(0)
    run.until(2)
    first, second = run.layer.seen
    # Nobody takes anything: after t seconds 1 + 100 t tuples wait at m, for both outputs, and once for the whole.
    for totals, seconds in ((first, 1), (second, 2)):
        assert totals.queued.tolist() == pytest.approx([50 * seconds**2] * 3, rel=0.04)
        assert totals.oldest.tolist() == [seconds] * 3
    assert Interval(first, second).queued() == pytest.approx(150, rel=0.02)
    assert first.memory.tolist() == [0, 0, 0], "nobody knows how large tuples are before a box has had some"


def test_outputs_have_their_own_queues() -> None:
    run = Run(Script())
    train = Train.empty(run.bench.runtime.arcs["m"].schema, 0, (Tick(0, 0),))
    run.bench.runtime.arcs["m"].push(train)
    run.bench.arrive(0.1)
    some = run.bench.runtime.boxes[0].cursors[0].take(1000)
    run.bench.runtime.arcs["m"].push(some)
    run.bench.runtime.boxes[2].cursors[0].take(1000)
    run.bench.runtime.statistics.report(1, 10, 10, 1000, 320)  # 32 bytes a tuple at x
    run.memory = run.adapting.look(run.bench.clock.now(), run.memory)
    before = len(some)
    run.until(1)
    (totals,) = run.layer.seen
    waiting = np.array(totals.queued.tolist())
    assert waiting[0] > waiting[1] > 0, "x still has what y has taken"
    assert waiting[0] - waiting[1] == pytest.approx(0.9 * before + 0.05 * before, rel=0.02)
    # Of the box before both nothing is known yet: what waits there counts as tuples of the mean size.
    assert totals.memory.tolist() == pytest.approx((32 * waiting).tolist(), rel=0.02)


def test_what_was_delivered() -> None:
    run = Run(Script())
    run.bench.clock.advance(SECOND // 2)
    stamps = np.array([0, SECOND // 4], np.int64)
    run.bench.deliveries[0].count(stamps, np.array([3, 1]))
    run.bench.deliveries[1].count(stamps[:1], np.array([2]))
    run.until(1)
    (totals,) = run.layer.seen
    assert totals.delivered.tolist() == [4, 2, 6]
    assert totals.latency.tolist() == pytest.approx([1.75, 1.0, 2.75])
    assert totals.utility.tolist() == pytest.approx([4, 2, 6])


def test_another_specification() -> None:
    run = Run(Script())
    run.adapting.change({"objectives": "latency"})
    assert run.layer.changed == [{"objectives": "latency"}]
    with pytest.raises(PolicyError, match="no such thing"):
        run.adapting.change({"bad": 1})
    run.until(1)
    assert len(run.layer.seen) == 1, "it goes on as before"
