"""Paths through a network, what tuples cost and free along them, and priorities that are kept for a while."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.catalog import Statistics, Topology
from headway.columns import Floats
from headway.costs import CostModel, Shares
from headway.scheduling.path_capacity import PathCapacity
from headway.scheduling.paths import PAUSE, ByPath, Paths, Stretches
from headway.scheduling.policy import terms_of
from headway.scheduling.snapshot import Members, Snapshot, Unit
from tests.scheduling.chains import Row, readings, row, rows, seen
from tests.scheduling.snapshots import replace, topology
from tests.scheduling.test_superboxes import topologies

FORK = topology({"a": (), "b": ("a",), "c": ("a",), "d": ("b", "c"), "e": ("c",)}, {"d": "d", "e": "e"})
"""a, then b and c; d reads both, e reads c."""


def test_leftover_branches_are_paths_of_their_own() -> None:
    assert Paths(FORK).routes == ((0, 1, 3), (2, 4))


def test_every_reader_of_a_source_begins_a_path_and_takes_fresh_branches_first() -> None:
    made = topology({"a": (), "b": (), "u": ("a", "b"), "x": ("u",), "y": ("u",)}, {"x": "x", "y": "y"})
    assert Paths(made).routes == ((0, 2, 3), (1, 2, 4))
    # Two readers more than branches: the last path takes the first branch again.
    made = topology({"a": (), "b": (), "c": (), "u": ("a", "b", "c"), "x": ("u",), "y": ("u",)}, {"x": "x", "y": "y"})
    assert Paths(made).routes == ((0, 3, 4), (1, 3, 5), (2, 3, 4))


def test_paths_stay_few_where_many_meet() -> None:
    # 30 entries into a row of 30 boxes, one into each: 30 paths of 2 to 31 boxes.
    names: dict[str, tuple[str, ...]] = {f"e{at}": () for at in range(30)}
    names |= {f"u{at}": (f"e{at}", f"u{at - 1}") if at else ("e0",) for at in range(30)}
    made = topology(names, {"o": "u29"})
    assert len(Paths(made).box) == sum(range(2, 32))
    few = Paths(made, most=31)
    assert few.routes[:3] == ((0, *range(30, 60)), (1,), (2,))
    assert set(few.box.tolist()) == set(range(60))


@settings(deadline=None)
@given(topologies())
def test_every_box_is_on_a_path_and_paths_lead_downstream(made: Topology) -> None:
    paths = Paths(made)
    assert {box for route in paths.routes for box in route} == set(range(len(made.boxes)))
    for route in paths.routes:
        assert all(after in made.consumers[box] for box, after in pairwise(route))
        assert not made.consumers[route[-1]]
        levels = paths.level[list(route)]
        assert (np.diff(levels) > 0).all()
    assert {route[0] for route in paths.routes} >= {box for some in made.readers for box in some}
    assert len(paths.routes) <= len(made.boxes)


PLAN = [(0.5, 0.25), (1.0, 0.5), (2.0, 0.8)]
"""004, figure 1."""


def test_a_path_as_a_whole() -> None:
    # .5 + .25 * 1 + .25 * .5 * 2 = 1 second, as the paper has it; tuples of size 1 that leave in the end.
    single = Paths(rows(PLAN)).stretches(readings(PLAN))
    assert single.slope.tolist() == [1.5, 0.5, 0.5]
    whole = single.joined(~single.begins)
    assert whole.cost.tolist() == [1.0]
    assert whole.passing.tolist() == pytest.approx([0.1])
    assert whole.slope.tolist() == [1.0]
    # The first two: .75 seconds, and an eighth is left.
    first = single.joined(np.array([False, True, False]))
    assert (first.first.tolist(), first.cost.tolist(), first.passing.tolist()) == ([0, 2], [0.75, 2.0], [0.125, 0.8])
    assert first.slope.tolist() == [0.875 / 0.75, 0.5]


def test_sizes_count() -> None:
    # Tuples of 8 bytes come in, of 4 bytes between the first and the second box, of 16 after that.
    single = Paths(rows(PLAN)).stretches(readings(PLAN, sizes=[8, 4, 16]))
    assert single.slope.tolist() == [(8 - 0.25 * 4) / 0.5, 4 - 0.5 * 16, 16 / 2]
    assert single.joined(np.array([False, True, False])).slope.tolist() == [(8 - 0.125 * 16) / 0.75, 16 / 2]


def test_an_unknown_size_is_the_mean_one_and_overhead_stands_in_for_no_cost() -> None:
    plan = [(0.0, 1.0), (1.0, 1.0), (0.0, 1.0)]
    found = Paths(rows(plan)).stretches(readings(plan, sizes=[8, 0, 4], overhead=[0.5, 0.5, 0.0]))
    assert found.cost.tolist() == [0.5, 1.0, 1e-12]
    assert found.size_in.tolist() == [8, 6, 4]
    assert found.size_out.tolist() == [6, 4, 0]


@settings(deadline=None)
@given(some=st.lists(row, min_size=1, max_size=5), data=st.data())
def test_joining_at_once_is_joining_one_by_one(some: list[Row], data: st.DataObject) -> None:
    single = Paths(rows(*some)).stretches(readings([box for one in some for box in one]))
    joins = ~single.begins & np.array([data.draw(st.booleans()) for _ in single.begins])
    expected: list[tuple[float, float]] = []
    for joint, cost, passed in zip(joins, single.cost, single.passing, strict=True):
        if joint:
            before, left = expected.pop()
            expected.append((before + left * cost, left * passed))
        else:
            expected.append((cost, passed))
    found = single.joined(joins)
    assert found.cost.tolist() == pytest.approx([cost for cost, _ in expected], rel=1e-9)
    assert found.passing.tolist() == pytest.approx([left for _, left in expected], rel=1e-9)
    assert found.first.tolist() == np.flatnonzero(~joins).tolist()


@pytest.mark.parametrize("passed", [0.0, 0.001, 1.0, 50.0])
def test_long_paths_stay_finite(passed: float) -> None:
    plan = [(1e-6, passed)] * 1000
    single = Paths(rows(plan)).stretches(readings(plan))
    whole = single.joined(~single.begins)
    assert np.isfinite(whole.slope).all()
    assert np.isfinite(single.slope).all()
    assert single.joined(np.arange(1000) == 999).slope[-1] == pytest.approx(1e6 / (1 + passed))


def test_alike_paths_are_equal_to_the_bit() -> None:
    plan = [(0.1, 0.7), (0.3, 0.9), (0.7, 0.3), (0.1, 0.6), (0.9, 0.1)]
    single = Paths(rows(plan[:1], plan, plan[:3], plan)).stretches(readings([*plan[:1], *plan, *plan[:3], *plan]))
    whole = single.joined(~single.begins)
    assert whole.cost[1] == whole.cost[3]
    assert whole.slope[1] == whole.slope[3]


def test_a_unit_has_the_largest_value_of_the_boxes_where_tuples_wait() -> None:
    units = [Unit("u", (0, 1, 2), ()), Unit("v", (2, 3), ()), Unit("w", (3,), ())]
    values, waiting = np.array([5.0, 1.0, -3.0, 4.0]), np.array([0, 1, 1, 0])
    assert Members(units).largest(values, waiting).tolist() == [1, -3, 4]
    assert Members(units).largest(values, np.zeros(4, np.int64)).tolist() == [5, 4, 4]
    single = Members([Unit("x", (3,), ()), Unit("y", (0,), ())])
    assert single.largest(values, waiting).tolist() == [4, 5]
    assert Members([]).largest(values, waiting).tolist() == []


@dataclass(frozen=True)
class Costs(ByPath):
    """Serves what costs most, to see when it looks."""

    priority = "cost"

    def cut(self, single: Stretches) -> tuple[Stretches, Floats]:
        return single, single.cost


def terms(at: Snapshot) -> list[list[float]]:
    return [term.values.tolist() for term in terms_of(Costs(), at, None)]


def test_priorities_are_kept_for_a_while_and_follow_the_units() -> None:
    policy, plan = Costs(), [(1.0, 1.0), (2.0, 1.0)]
    first = seen(rows(plan), readings(plan), now=7)
    _, memory = policy.plan(first, policy.start())
    assert memory.boxes.tolist() == [1, 2]
    later = replace(first, now=7 + PAUSE - 1, read_boxes=lambda: readings([(4.0, 1.0), (3.0, 1.0)]))
    assert policy.plan(later, memory)[1] is memory
    then = policy.plan(replace(later, now=7 + PAUSE), memory)[1]
    assert then.boxes.tolist() == [4, 3]
    assert then.paths is memory.paths
    assert policy.plan(replace(later, now=6), memory)[1].boxes.tolist() == [4, 3]  # another run's clock
    other = seen(rows(plan[:1]), readings(plan[:1]), now=8)
    assert policy.plan(other, memory)[1].boxes.tolist() == [1]
    copied = first.units[::-1]
    assert policy.plan(replace(first, units=copied), memory)[1].paths is not memory.paths


def test_priorities_are_kept_longer_in_large_networks() -> None:
    count = 20_000  # 5 microseconds for each place: 100 ms
    none: tuple[tuple[int, ...], ...] = ((),) * count
    large = Topology(("b",) * count, ("s",), (), (), none, none, (tuple(range(count)),), ())
    plan = [(1.0, 1.0)] * count
    first = replace(seen(rows(plan[:1]), readings(plan[:1])), topology=large, read_boxes=lambda: readings(plan))
    memory = Costs().prepare(first, None)
    assert Costs().prepare(replace(first, now=2 * PAUSE - 1), memory) is memory
    assert Costs().prepare(replace(first, now=2 * PAUSE), memory) is not memory


def test_what_was_never_tried_comes_first() -> None:
    plan = [(1.0, 1.0), (2.0, 1.0), (0.0, 1.0)]
    tried = replace(readings(plan), tuples_in=readings(plan).tuples_in * [1, 1, 0])
    at = seen(rows(plan), tried)
    assert terms(at)[0] == [1, 2, math.inf]
    fresh = replace(at, read_boxes=Statistics(3).readings)
    assert terms(fresh)[0] == [math.inf] * 3


def test_levels_are_those_of_waiting_boxes() -> None:
    at = seen(FORK, readings([(1.0, 1.0)] * 5), waiting=[1, 1, 0, 0, 0], units=(Unit("u", (0, 1, 3), ()),))
    assert Costs().prepare(at, None).paths.level.tolist() == [0, 1, 1, 2, 2]
    assert terms(at)[1] == [1]


def test_of_a_route_its_share_goes_on() -> None:
    # Of FORK's first box two tenths go on to the second; (2, 4) is a path of its own, on which all goes on.
    model = CostModel(FORK, Shares({(0, 1): 0.2, (0, 2): 0.8}))
    boxes = readings([(1.0, 0.5)] * 5)
    assert Paths(FORK).stretches(boxes, model).passing.tolist() == [0.1, 0.5, 0.5, 0.5, 0.5]
    assert Paths(FORK).stretches(boxes).passing.tolist() == [0.5] * 5


def test_policies_hear_of_shares() -> None:
    shared = lambda: CostModel(FORK, Shares({(0, 1): 0.2, (0, 2): 0.8}))  # noqa: E731
    at = seen(FORK, readings([(1.0, 1.0)] * 5))
    assert terms_of(PathCapacity(), at, None)[0].values.tolist() == pytest.approx([1 / 3, 1 / 3, 1 / 2, 1 / 3, 1 / 2])
    assert terms_of(PathCapacity(), replace(at, read_model=shared), None)[0].values.tolist() == pytest.approx(
        [1 / 1.4, 1 / 1.4, 1 / 2, 1 / 1.4, 1 / 2]
    )


def test_a_network_without_boxes() -> None:
    paths = Paths(topology({}, {}))
    none = paths.stretches(Statistics(0).readings())
    assert paths.largest(none, none.slope).tolist() == []
