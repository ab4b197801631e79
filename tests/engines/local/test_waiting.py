"""The local engine with policies that let units wait, and what its snapshots say for them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np
import pytest

import headway as hw
from headway.clock import MILLISECOND, SECOND, ManualClock
from headway.errors import RunError
from headway.scheduling import Plan, Snapshot, Step
from headway.scheduling.policy import Policy
from headway.scheduling.trains import MOST
from tests import policies  # noqa: F401  (registers the random policy)
from tests.engines.local.networks import COUNT, POSITIVE, network, rows

NETWORK = network(
    {"b": POSITIVE, "m": {"op": "map", "in": "b", "select": "a, v"}, "u": {"op": "union", "in": ["s", "m"]}},
    {"o": "m", "p": "u"},
)


@dataclass(frozen=True)
class Watched(Policy):
    """Serves the first ready unit with one tuple, and keeps what it saw."""

    seen: list[Snapshot] = field(default_factory=list)
    wait: int = 0

    def start(self) -> int:
        return 0

    def plan(self, snapshot: Snapshot, memory: int) -> tuple[Plan, int]:
        assert snapshot.latencies is snapshot.latencies
        assert len(snapshot.costs.cost) == len(snapshot.units)
        self.seen.append(snapshot)
        if snapshot.more and self.wait and snapshot.now < memory + self.wait:
            return Plan((), memory + self.wait), memory
        return Plan((Step(int(np.flatnonzero(snapshot.ready)[0]), snapshot.train),)), snapshot.now


@pytest.mark.parametrize("unit", ["box", "superbox"])
def test_snapshots_say_what_a_policy_needs(unit: str) -> None:
    policy = Watched()
    clock = ManualClock(1_700_000_000 * SECOND)
    schedule = {"policy": policy, "unit": unit, "train": 3}
    hw.run(NETWORK, {"s": rows(20)}, policy=schedule, clock=clock, rates={"s": 100}, engine="local")
    first, last = policy.seen[0], policy.seen[-1]
    assert (first.workers, first.free, first.busy.any()) == (1, 1, np.False_)
    assert first.more
    assert not last.more
    for seen in policy.seen:
        ages = np.where(seen.waiting > 0, (seen.now - np.minimum(seen.oldest, seen.now)) / SECOND, 0)
        assert (seen.latencies <= ages + 1e-6).all()
        assert (seen.latencies >= 0).all()
        alone = seen.waiting == 1
        assert seen.latencies[alone] == pytest.approx(ages[alone], abs=1e-6)
    assert (last.costs.overhead + last.costs.cost > 0).all()


def test_workers_that_are_busy_are_seen() -> None:
    policy = Watched()
    boxes = {f"b{at}": POSITIVE for at in range(4)}
    made = network(boxes, {f"o{at}": f"b{at}" for at in range(4)})
    hw.run(made, {"s": rows(500)}, policy={"policy": policy, "unit": "box", "train": 1}, workers=3, engine="local")
    assert all(seen.workers == 3 and 0 <= seen.free <= 3 for seen in policy.seen)
    assert all(int(seen.busy.sum()) == 3 - seen.free for seen in policy.seen)
    assert any(seen.busy.any() for seen in policy.seen)


def test_until_is_kept() -> None:
    """Nothing arrives for 10 s after the first tuple; the policy still gets its turn when it wanted."""
    policy = Watched(wait=300 * MILLISECOND)
    clock = ManualClock()
    hw.run(
        network({"b": POSITIVE}, {"o": "b"}),
        {"s": rows(3)},
        policy=policy,
        rates={"s": 0.1},
        clock=clock,
        engine="local",
    )
    moments = [seen.now // MILLISECOND for seen in policy.seen]
    # Asked at the first tuple, after a status line's quarter of a second, and when it said; not over and over.
    assert moments == [0, 250, 300, 10_000, 20_000, 20_000]


@pytest.mark.parametrize("policy", ["round-robin", "slope-slack"])
def test_automatic_trains_spread_fixed_costs_within_the_good_zone(policy: str) -> None:
    made = network({"b": POSITIVE}, {"o": "b"})
    made["outputs"]["o"]["qos"] = {"latency": [[0, 1], [0.4, 1], [0.8, 0]]}
    count = 600

    def run(train: str) -> Any:
        return hw.run(
            made, {"s": rows(count)}, policy=f"{policy}/superbox/{train}", rates={"s": 1000}, engine="local"
        ).summary

    eager, patient = run("1000"), run("auto")
    assert patient["policy"] == f"{policy}/superbox/mc/auto"
    assert patient["outputs"]["o"]["tuples"] == eager["outputs"]["o"]["tuples"] == count
    assert patient["box_calls"] < 20 < eager["box_calls"]
    assert patient["outputs"]["o"]["utility"] > 0.99
    assert 0.05 < patient["outputs"]["o"]["latency"]["mean"] < 0.3


@pytest.mark.parametrize("policy", ["round-robin/box", "slope-slack/box", "slope-slack/superbox", "random:5/box"])
@pytest.mark.parametrize("workers", [1, 3])
def test_automatic_trains_do_not_change_results(policy: str, workers: int) -> None:
    made = network(
        {
            "b": POSITIVE,
            "c": COUNT,
            "m": {"op": "map", "in": "b", "select": "a, v"},
            "u": {"op": "union", "in": ["s", "m"]},
        },
        {"o": "m", "p": "u", "q": "c"},
    )
    inputs = {"s": [(at, at % 3) for at in range(3000)]}
    wanted = hw.run(made, inputs, policy="round-robin/box", engine="local").outputs
    found = hw.run(made, inputs, policy=f"{policy}/auto", workers=workers, engine="local").outputs
    assert {name: table.to_pylist() for name, table in found.items()} == {
        name: table.to_pylist() for name, table in wanted.items()
    }


def test_files_are_not_waited_for_beyond_the_memory() -> None:
    """A patient policy reads on while it waits, but not more than may be queued."""
    made = network({"b": POSITIVE}, {"o": "b"})
    inputs = {"s": rows(400_000)}
    summary = hw.run(
        made, inputs, policy="slope-slack/auto", memory=1 << 20, outputs={"o": lambda batch: None}, engine="local"
    ).summary
    assert summary["tuples_out"] == 400_000 < MOST
    assert summary["peak_queued_bytes"] < 5 << 20


@dataclass(frozen=True)
class Idle(Policy):
    """Serves nobody, and does not say until when."""

    def start(self) -> None:
        return None

    def plan(self, snapshot: Snapshot, memory: None) -> tuple[Plan, None]:
        return Plan(()), None


@pytest.mark.parametrize("numbers", [range(10), count()], ids=["ended", "full"])
def test_a_policy_that_serves_nobody_ends_the_run(numbers: Iterable[int]) -> None:
    """With full queues nothing more arrives, and without an error the run would wait for ever."""
    made = network({"b": POSITIVE}, {"o": "b"})
    more = ({"a": at, "v": 1} for at in numbers)
    with pytest.raises(RunError, match="serves none of the units that are ready: 'o'"):
        hw.run(made, {"s": more}, policy={"policy": Idle(), "wait": "off"}, memory=1_000, engine="local")
