"""Policies that become one another: the same steps at the same moments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headway.scheduling.policy import Plan, Policy, make_policy, terms_of
from headway.scheduling.snapshot import Snapshot
from tests.laws.helpers import Box, Net, by_box, calls_of, moves_of, ms
from tests.laws.strategies import ends, forests, laws, rows

# Preemption without arrivals


@laws(60)
@given(net=forests(at_once=True), train=st.sampled_from(("1", "2", "1000")))
def test_preemptive_rate_based_is_rate_based_when_nothing_arrives(net: Net, train: str) -> None:
    # With several workers it is not: a result of one step may be faster than another step that is under way.
    plain = net.run(f"rate-based/box/{train}")
    preemptive = net.run(f"preemptive-rate-based/box/{train}")
    assert preemptive.summary["preemptions"] == 0
    assert moves_of(preemptive) == moves_of(plain)


# Rate-based over equal paths


@laws(60)
@given(boxes=rows(alike=True, passing=(0.25, 0.5, 1.0, 1.5, 2.0)), data=st.data())
def test_rate_based_over_equal_paths_is_first_in_first_out(boxes: dict[str, Box], data: st.DataObject) -> None:
    # Moments of their own, because among tuples of one moment each policy has its own order. And every path yields
    # something: where nothing does, all rates are 0, and the copies of a tuple are not followed to the end one by one.
    count = len(ends(boxes))
    drawn = data.draw(st.lists(st.integers(0, 40), min_size=1, max_size=15, unique=True))
    arrivals = {f"s{at}": ms(*sorted(drawn[at::count])) for at in range(count)}
    net = Net(arrivals, boxes, {f"o{at}": name for at, name in enumerate(ends(boxes))})
    by_rate, by_age = (calls_of(net.run(f"{name}/box/1")) for name in ("rate-based", "fifo"))
    assert by_rate == by_age


# Buckets


@dataclass(frozen=True)
class Beside(Policy):
    """Any policy, and beside it another one that is shown the same, and is asked whether it would do the same.

    The other one's terms say whether it has a favourite. If it has, both must choose it.
    """

    policy: Policy
    other: Policy
    clear: list[bool] = field(default_factory=list)
    """By plan: whether the other one had a favourite."""

    def start(self) -> Any:
        return self.policy.start(), self.other.start()

    def plan(self, snapshot: Snapshot, memory: Any) -> tuple[Plan, Any]:
        mine, its = memory
        plan, mine = self.policy.plan(snapshot, mine)
        beside, its = self.other.plan(snapshot, its)
        keys = [-term.values if term.largest else term.values for term in terms_of(self.other, snapshot, its)]
        able = np.flatnonzero(snapshot.ready)
        places = sorted([tuple([float(key[unit]) for key in keys]) for unit in able])
        self.clear.append(places.count(places[0]) == 1)
        if self.clear[-1]:
            assert plan.steps[0] == beside.steps[0]
        return plan, (mine, its)


def steep(data: st.DataObject, boxes: Mapping[str, Box]) -> dict[str, Any]:
    """Return outputs whose graphs fall from the beginning, each with a slope of its own."""
    shown = ends(dict(boxes))
    lengths = data.draw(st.lists(st.integers(20, 90), min_size=len(shown), max_size=len(shown), unique=True))
    return {
        f"o{at}": {"from": name, "qos": {"latency": [[0, 1], [length / 100, 0]]}}
        for at, (name, length) in enumerate(zip(shown, lengths, strict=True))
    }


@laws(60)
@given(boxes=rows(alike=False, passing=(0.5, 1.0, 1.0)), data=st.data())
def test_many_buckets_are_slope_and_slack(boxes: dict[str, Box], data: st.DataObject) -> None:
    count = len(ends(boxes))
    drawn = data.draw(st.lists(st.integers(0, 60), min_size=1, max_size=15, unique=True))
    arrivals = {f"s{at}": ms(*sorted(drawn[at::count])) for at in range(count)}
    net = Net(arrivals, boxes, steep(data, boxes))
    beside = Beside(make_policy("slope-slack"), make_policy("bucketed:4096"))
    exact = net.run(by_box(beside, train=1))
    assert moves_of(exact) == moves_of(net.run("slope-slack/box/1/wait:off"))
    if all(beside.clear):
        assert moves_of(net.run("bucketed:4096/box/1/wait:off")) == moves_of(exact)


@laws(60)
@given(net=forests(), train=st.sampled_from(("1", "2", "1000")))
def test_one_bucket_is_round_robin(net: Net, train: str) -> None:
    # With several workers it is not: who was at work in its turn comes first in round robin, and waits for the next
    # turn in a bucket.
    assert moves_of(net.run(f"bucketed:1/box/{train}/wait:off")) == moves_of(net.run(f"round-robin/box/{train}"))
