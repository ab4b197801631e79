"""What a step costs until its tuples are delivered."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway import costs
from headway.catalog import BoxReadings, Statistics, Topology
from headway.costs import CostModel, Shares, UnitCostModel, UnitCosts
from headway.scheduling.snapshot import Unit
from headway.scheduling.superboxes import box_units, superbox_units
from tests.scheduling.snapshots import replace, topology
from tests.scheduling.test_superboxes import topologies

CHAIN = topology({"a": (), "b": ("a",), "c": ("b",)}, {"o": "c"})
DIAMOND = topology({"a": (), "b": ("a",), "c": ("a",), "d": ("b", "c")}, {"o": "d", "early": "b"})


def readings(overhead: Sequence[float], cost: Sequence[float], passed: Sequence[int]) -> BoxReadings:
    """Return readings of boxes that let so many of 100 tuples pass."""
    count = len(cost)
    selectivity = np.array(passed, np.int64) / 100
    known = Statistics(count).readings()
    return replace(known, overhead=np.array(overhead, float), cost=np.array(cost, float), selectivity=selectivity)


def shown(made: UnitCosts) -> list[tuple[float, float]]:
    return [(round(float(o), 9), round(float(c), 9)) for o, c in zip(made.overhead, made.cost, strict=True)]


def following(where: Topology, units: Sequence[Unit], shares: Shares | None = None) -> UnitCostModel:
    return UnitCostModel(CostModel(where, shares), [unit.boxes for unit in units])


def waits(*counts: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(counts, np.int64)


def test_box_by_box_everything_downstream_counts_as_far_as_tuples_pass() -> None:
    # c: 8.  b: 4 + 0.5 * 8 = 8.  a: 2 + 0.25 * 8 = 4.
    seen = readings([1, 2, 3], [2, 4, 8], [25, 50, 100])
    assert shown(following(CHAIN, box_units(CHAIN)).read(seen, waits(1, 1, 1))) == [(6, 4), (5, 8), (3, 8)]


def test_a_superbox_costs_what_its_waiting_tuples_cost() -> None:
    seen, model = readings([1, 2, 3], [2, 4, 8], [25, 50, 100]), following(CHAIN, superbox_units(CHAIN))
    assert shown(model.read(seen, waits(9, 0, 0))) == [(6, 4)]
    assert shown(model.read(seen, waits(3, 1, 0))) == [(6, 5)]
    assert shown(model.read(seen, waits(0, 0, 0))) == [(6, round((4 + 8 + 8) / 3, 9))]


def test_a_box_behind_two_branches_is_called_once_but_sees_both_branches_tuples() -> None:
    seen = readings([1, 1, 1, 1], [1, 1, 1, 1], [100, 100, 100, 100])
    boxes = shown(following(DIAMOND, box_units(DIAMOND)).read(seen, waits(1, 1, 1, 1)))
    assert (boxes[0], boxes[3]) == ((4, 5), (1, 1))
    # The superbox of `early` is a and b; what c and d would do is not its business.
    whole, early = shown(following(DIAMOND, superbox_units(DIAMOND)).read(seen, waits(1, 0, 0, 0)))
    assert (whole, early) == ((4, 5), (2, 2))


def test_readers_cost_as_far_as_tuples_come_to_them() -> None:
    """Of what a makes, b gets a fifth and c the rest; of what b makes, the output `early` gets half."""
    seen, shares = (
        readings([0] * 4, [1, 10, 100, 1000], [100, 100, 50, 100]),
        Shares({(0, 1): 0.2, (0, 2): 0.8}, {1: 0.5}),
    )
    read = following(DIAMOND, box_units(DIAMOND), shares).read(seen, waits(1, 1, 1, 1))
    assert read.cost.tolist() == pytest.approx([1 + 0.2 * 1010 + 0.8 * 600, 10 + 1000, 100 + 0.5 * 1000, 1000])
    assert read.yields.tolist() == pytest.approx([0.2 * 1.5 + 0.8 * 0.5, 1.5, 0.5, 1])
    whole, early = following(DIAMOND, superbox_units(DIAMOND), shares).read(seen, waits(1, 0, 0, 0)).cost.tolist()
    assert (whole, early) == pytest.approx((1 + 0.2 * 1010 + 0.8 * 600, 1 + 0.2 * 10))


@pytest.mark.parametrize("place", [0, 1])
def test_a_unit_without_boxes_costs_nothing(place: int) -> None:
    seen, units = readings([1, 2, 3], [2, 4, 8], [25, 50, 100]), list(superbox_units(CHAIN))
    alone = shown(following(CHAIN, units).read(seen, waits(1, 0, 0)))
    units.insert(place, Unit("straight", (), (0,)))
    for waiting in (waits(1, 0, 0), waits(0, 0, 0)):
        found = shown(following(CHAIN, units).read(seen, waiting))
        assert found.pop(place) == (0, 0)
        assert len(found) == 1
    assert shown(following(CHAIN, units).read(seen, waits(1, 0, 0)))[1 - place] == alone[0]


def test_nothing_is_known_before_the_first_call() -> None:
    none = readings([0, 0, 0], [0, 0, 0], [0, 0, 0])
    for units in (box_units(CHAIN), superbox_units(CHAIN)):
        assert set(shown(following(CHAIN, units).read(none, waits(5, 5, 5)))) == {(0, 0)}


def test_seconds_of_a_step() -> None:
    made = UnitCosts(np.array([1.0, 0.5]), np.array([0.1, 0.0]), np.ones(2))
    assert made.seconds(np.array([10, 99])).tolist() == [2.0, 0.5]


@given(made=topologies(), data=st.data())
def test_level_by_level_and_one_by_one_agree(made: Topology, data: st.DataObject) -> None:
    count = len(made.boxes)
    numbers = st.lists(st.integers(0, 9), min_size=count, max_size=count)
    seen = readings(data.draw(numbers), data.draw(numbers), [11 * one for one in data.draw(numbers)])
    waiting = np.array(data.draw(numbers), np.int64)
    for units in (box_units(made), superbox_units(made)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(costs, "_NARROW", 0)
            wide = following(made, units).read(seen, waiting)
            patch.setattr(costs, "_NARROW", 1000)
            deep = following(made, units).read(seen, waiting)
        assert wide.cost == pytest.approx(deep.cost)
        assert wide.overhead == pytest.approx(deep.overhead)
        assert (wide.overhead <= seen.overhead.sum() + 1e-9).all()
