"""The greedy walk over loss graphs: by hand, against a walk in small steps, and its laws."""

from __future__ import annotations

import random
import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from headway.columns import Floats
from headway.network.qos import Graph
from headway.shedding.greedy import Greedy
from headway.shedding.losses import walk
from headway.shedding.strategies import Demand, make_strategy
from tests.searching import examples
from tests.shedding.flows import Flow, flows, fork, graph, graphs, rows, sagging

ANY = [1.0] * 5
TOLERANT = graph((0, 0), (50, 0.9), (100, 1))
"""Slope 0.2 down to half, then 1.8."""
BETWEEN = graph((0, 0), (80, 0.9), (100, 1))
"""Slope 0.5 down to 80 per cent, then 1.125."""


def shares(demand: Demand, excess: float, most: list[float] | None = None) -> list[float]:
    return [round(one, 9) for one in Greedy().shares(demand, excess, most or ANY).tolist()]


def kept(demand: Demand, keep: Floats) -> list[float]:
    """Return by output what is kept, all sites multiplied."""
    return [
        float(np.prod([keep[at] for at, site in enumerate(demand.sites) if output in site.outputs]))
        for output in range(len(demand.qos))
    ]


def test_it_is_registered() -> None:
    assert isinstance(make_strategy("loss"), Greedy)


@pytest.mark.parametrize(
    ("excess", "expected"),
    [
        (0.0, [1, 1]),
        (0.3, [0.7, 1]),
        (0.5, [0.5, 1]),
        (0.8, [0.5, 0.7]),  # 1 is less than 1.8: the other one's turn
        (1.5, [0.5, 0]),
        (1.7, [0.3, 0]),
        (9.9, [0, 0]),
    ],
)
def test_two_outputs(excess: float, expected: list[float]) -> None:
    assert shares(rows(0.01, 0.01).demand([TOLERANT, None]), excess) == expected


@pytest.mark.parametrize(
    ("excess", "expected"),
    [
        (0.4, [0.6, 1, 1]),  # 0.2
        (0.6, [0.5, 1, 0.9]),  # 0.5
        (1.2, [0.5, 0.5, 0.8]),  # 1
        (1.9, [0.5, 0, 0.6]),  # 1.125
        (2.8, [0.2, 0, 0]),  # 1.8
    ],
)
def test_three_outputs_take_turns(excess: float, expected: list[float]) -> None:
    assert shares(rows(0.01, 0.01, 0.01).demand([TOLERANT, None, BETWEEN]), excess) == expected


def test_the_slope_decides_and_not_the_gain() -> None:
    # The tolerant one saves a tenth of a second at most, so it gives all that costs less than the other one's.
    assert shares(rows(0.001, 0.1).demand([TOLERANT, None]), 1.05) == [0.5, 0.9]


@pytest.mark.parametrize(
    ("excess", "expected"),
    [
        (0.06, [1, 0.8, 1]),  # o0 in its own part: 0.3 s/s
        (0.15, [1, 0.5, 1]),
        (0.29, [0.8, 0.625, 1]),  # o1 too: its own 0.3 and the shared 0.4; what both lose is lost at the source
        (0.5, [0.5, 1, 1]),
        (0.56, [0.5, 1, 0.6]),  # o0 needs its half of what is shared: only o1's own part is left
        (0.65, [0.5, 1, 0]),
        (0.79, [0.4 - 0.2 + 0.1, 1, 0]),  # 1.8: o0's own and the shared part
    ],
)
def test_what_both_lose_is_dropped_before_the_shared_box(excess: float, expected: list[float]) -> None:
    flow = fork(0.004, 0.003, 0.003)
    demand = flow.demand([TOLERANT, None])
    assert [site.outputs for site in demand.sites] == [(0, 1), (0,), (1,)]
    assert shares(demand, excess) == pytest.approx(expected, abs=1e-9)
    assert flow.load(Greedy().shares(demand, excess, ANY)) == pytest.approx(1.0 - excess)


def test_outputs_of_the_same_boxes_give_way_together_with_the_sum_of_their_slopes() -> None:
    # o0 and o1 share b0: 0.2 + 0.5 = 0.7 down to 0.8, then 0.2 + 1.125, against 1 of o2.
    flow = Flow(((-1,), (-2,)), (0, 0, 1), (100.0, 100.0), (0.01, 0.01), (1.0, 1.0))
    demand = flow.demand([TOLERANT, BETWEEN, None])
    assert [site.outputs for site in demand.sites] == [(0, 1), (2,)]
    assert shares(demand, 0.1) == [0.9, 1]
    assert shares(demand, 0.7) == [0.8, 0.5]
    assert shares(demand, 1.4) == [0.6, 0]


def test_an_output_on_a_shared_box_gives_way_as_far_as_the_others_do() -> None:
    # s0 -> b0 -> o0, b0 -> b1 -> o1: o0 alone has nothing to gain, so o1 goes first, though it minds more.
    flow = Flow(((-1,), (0,)), (0, 1), (100.0,), (0.006, 0.004), (1.0, 1.0))
    demand = flow.demand([TOLERANT, None])
    assert [site.outputs for site in demand.sites] == [(0, 1), (1,)]
    assert shares(demand, 0.2) == [0.8, 1]
    # Half is all that o0 gives for less than o1: then o1 in its own part, 0.4 s/s.
    assert shares(demand, 0.6) == [0.5, 0.5]
    # If it is the other way round, the tolerant one goes in its own part, then both.
    demand = flow.demand([None, TOLERANT])
    assert shares(demand, 0.1) == [1, 0.75]
    assert shares(demand, 0.32) == [0.8, 0.625]


def test_tolerant_outputs_give_way_first_and_where_they_share() -> None:
    # Losses down to 0.8 and 0.6 cost nothing: at the source for both, then where only o1 reads, and so on.
    demand = fork(0.004, 0.003, 0.003).demand([graph((0, 0), (80, 1)), graph((0, 0), (60, 1))])
    assert shares(demand, 0.1) == [0.9, 1, 1]
    assert shares(demand, 0.2) == [0.8, 1, 1]
    assert shares(demand, 0.23) == [0.8, 1, 0.875]
    assert shares(demand, 0.26) == [0.8, 1, 0.75]
    assert shares(demand, 0.33) == [0.7, 1, 0.857142857]


def test_all_or_nothing_goes_last_and_then_all_the_way() -> None:
    assert shares(rows(0.01, 0.01).demand([graph((90, 0), (100, 1)), None]), 1.5) == [0.5, 0]


def test_of_equals_the_one_with_more_to_gain() -> None:
    assert shares(rows(0.01, 0.02).demand(), 0.5) == [1, 0.75]
    assert shares(rows(0.02, 0.01).demand(), 0.5) == [0.75, 1]
    assert shares(rows(0.01, 0.01).demand(), 0.5) == [0.5, 1], "then the first"


def test_of_equals_the_one_that_is_late() -> None:
    assert shares(rows(0.02, 0.01).demand(late=[0.1, 0.9]), 0.5) == [1, 0.5]
    assert shares(rows(0.02, 0.01).demand(late=[0.9, 0.9]), 0.5) == [0.75, 1]
    tolerant = graph((0, 0), (50, 1))
    assert shares(rows(0.02, 0.01).demand([tolerant, tolerant], late=[0.1, 0.9]), 0.25) == [1, 0.75]
    assert shares(rows(0.02, 0.01).demand([TOLERANT, None], late=[0.1, 0.9]), 0.5) == [0.75, 1], "the slope is first"


def test_no_output_loses_more_than_it_may() -> None:
    demand = rows(0.01, 0.01).demand([TOLERANT, None])
    assert shares(demand, 0.5, [0.3, 0.1]) == [0.7, 0.9]
    assert shares(demand, 0.5, [0.0, 1.0]) == [1, 0.5]
    # In a shared part, the one that may lose the least says how much; the other one's rest is in its own part.
    assert shares(fork(0.004, 0.003, 0.003).demand(), 9.0, [0.5, 0.8]) == [0.5, 1, 0.4]
    assert shares(fork(0.004, 0.003, 0.003).demand(), 9.0, [1.0, 1.0]) == [0, 1, 1]


def test_all_that_may_be_saved_is_saved_though_the_first_to_give_way_gained_little() -> None:
    # Nearly all work is shared: o0 has lost all it may before o1 begins, and yet both count at the source.
    flow = fork(0.0098, 0.0001, 0.0001)
    assert flow.load(Greedy().shares(flow.demand([TOLERANT, None]), 0.9, [0.9, 0.9])) == pytest.approx(0.1)


def test_where_nothing_is_gained_nothing_is_dropped() -> None:
    assert shares(rows(0.0, 0.01).demand([TOLERANT, None]), 0.5) == [1, 0.5]
    assert shares(rows(0.0, 0.0).demand(), 0.5) == [1, 1]
    # An output whose own box costs nothing keeps what the other one of the shared box needs.
    assert shares(fork(0.01, 0.0, 0.01).demand([TOLERANT, None]), 0.5) == [0.75, 1, 1]
    # An output on a shared box that costs nothing itself keeps all, whatever rounding makes of the sums.
    flow = Flow(((-1,), (0,), (0,), (0,)), (0, 1, 2, 3), (10.0,), (0.0, 0.1, 0.2, 0.3), (1.0,) * 4)
    gains = flow.demand().rates * flow.demand().costs
    assert gains[0] - gains[1] - gains[2] - gains[3] > 0
    assert shares(flow.demand(), 99.0) == [1, 0, 0, 0]
    unknown = replace(rows(0.01, 0.01).demand(), rates=np.array([np.nan, 100.0]))
    assert shares(unknown, 0.5) == [1, 0.5]


def test_rates_and_costs_that_do_not_agree_do_no_harm() -> None:
    # More is measured behind the shared box than before it.
    demand = replace(fork(0.004, 0.003, 0.003).demand(), rates=np.array([100.0, 300.0, 300.0]))
    keep = Greedy().shares(demand, 0.9, ANY)
    assert kept(demand, keep) == pytest.approx([0, 1])


def test_a_graph_may_stand_in_for_an_output_s_own() -> None:
    demand = rows(0.01, 0.01).demand([None, TOLERANT], instead={0: graph((0, 0), (40, 1))})
    assert shares(demand, 0.7) == [0.4, 0.9]


def test_one_strategy_serves_changing_demands() -> None:
    # It remembers arrays of the latest sites and graphs: nothing of that may show.
    strategy = Greedy()
    flow = fork(0.004, 0.003, 0.003)
    first, second = flow.demand([TOLERANT, None]), flow.demand([None, TOLERANT])
    changed = replace(first, losses={0: BETWEEN})
    thin = replace(first, rates=np.array([100.0, 0.0, 100.0]))
    for demand in (first, second, first, changed, thin, first, rows(0.01, 0.01).demand()):
        assert strategy.shares(demand, 0.3, ANY).tolist() == Greedy().shares(demand, 0.3, ANY).tolist()


def test_ten_thousand_sites_are_quick() -> None:
    draw = random.Random(4)
    flow = rows(*(0.001 * draw.random() for _ in range(5)))
    count = 10_000
    site = flow.sites[0]
    sites = tuple(replace(site, outputs=(at,)) for at in range(count))
    some = [graph((0, 0), (draw.randrange(1, 99), draw.random()), (100, 1)) for _ in range(count)]
    qos = tuple(replace(flow.topology.qos[0], loss=one) for one in some)
    gains = np.array([draw.random() for _ in range(count)])
    demand = Demand(sites, qos, gains, np.ones(count), ((),) * count, float(gains.sum()), 1.0, np.zeros(count))
    strategy = Greedy()
    strategy.shares(demand, 1.0, [0.9] * count)  # the arrays of sites and graphs are made once
    start = time.process_time()
    for part in range(1, 5):
        keep = strategy.shares(demand, 0.2 * part * demand.load, [0.9] * count)
        assert float(gains @ (1 - keep)) == pytest.approx(0.2 * part * demand.load)
    assert (time.process_time() - start) / 4 < 0.05


mosts = st.lists(st.sampled_from([0.0, 0.2, 0.5, 0.95, 1.0]), min_size=5, max_size=5)
losses = st.lists(graphs(), min_size=5, max_size=5)
lates = st.lists(st.sampled_from([0.0, 0.9]), min_size=5, max_size=5)


@examples(300)
@given(flows(), losses, lates, mosts, st.floats(0, 1.2))
def test_the_load_falls_by_the_excess(
    flow: Flow, some: list[Graph | None], late: list[float], most: list[float], part: float
) -> None:
    count = len(flow.roots)
    demand = flow.demand(some[:count], late[:count])
    excess = part * flow.load()
    keep = Greedy().shares(demand, excess, most[:count])
    assert np.all((keep >= 0) & (keep <= 1))
    left = flow.load(keep)
    # Where all that may be dropped is dropped, nothing more can be saved: each output at its least.
    least = flow.load(Greedy().shares(demand, 1e9, most[:count]))
    if flow.forest:
        assert left == pytest.approx(max(flow.load() - excess, least), abs=1e-9)
    else:
        assert flow.load() - excess - 1e-9 <= left <= flow.load() + 1e-9
    assert np.all(np.array(flow.least_kept(keep)) >= 1 - np.array(most[:count]) - 1e-12)
    assert np.all(np.array(kept(demand, keep)) >= 1 - np.array(most[:count]) - 1e-12)


@settings(deadline=None)
@given(flows(widest=1, least_cost=1), losses, mosts)
def test_in_the_end_every_box_gets_only_what_somebody_must_have(
    flow: Flow, some: list[Graph | None], most: list[float]
) -> None:
    assume(flow.forest)
    keep = Greedy().shares(flow.demand(some[: len(flow.roots)]), 1e9, most[: len(flow.roots)])
    arriving, all_of_it = flow.arriving(keep), flow.arriving()
    for at, site in enumerate(flow.sites):
        needed = max(1 - most[output] for output in site.outputs)
        for one in site.entries:
            place = (one.consumer, one.place)
            assert arriving[place] * keep[at] == pytest.approx(needed * all_of_it[place], abs=1e-9)


@settings(deadline=None)
@given(flows(), losses, st.floats(0.01, 0.9))
def test_equal_demands_give_equal_shares_and_little_more_changes_little(
    flow: Flow, some: list[Graph | None], part: float
) -> None:
    count = len(flow.roots)
    assume(flow.forest)  # elsewhere shares may jump from one site to another
    excess = part * flow.load()
    one = Greedy().shares(flow.demand(some[:count]), excess, ANY[:count])
    assert one.tolist() == Greedy().shares(flow.demand(some[:count]), excess, ANY[:count]).tolist()
    more = Greedy().shares(flow.demand(some[:count]), 1.05 * excess, ANY[:count])
    demand = flow.demand()
    assert all(b <= a + 1e-9 for a, b in zip(kept(demand, one), kept(demand, more), strict=True)), "nobody gets back"


def slope_at(points: Graph, share: float, below: bool) -> float:
    """Return the slope just below or just above a share delivered."""
    steps = walk(points)
    if below:
        return next((one.slope for one in steps if one.end < share - 1e-9), np.inf)
    return next(one.slope for one in reversed(steps) if one.start > share + 1e-9)


@settings(deadline=None)
@given(st.lists(st.tuples(sagging(), st.integers(1, 100)), min_size=2, max_size=5), mosts, st.floats(0, 1))
def test_nobody_who_minds_less_could_have_given_more(
    some: list[tuple[Graph, int]], most: list[float], part: float
) -> None:
    flow = rows(*(cost / 1000 for _, cost in some))
    keep = Greedy().shares(flow.demand([one for one, _ in some]), part * flow.load(), most[: len(some)]).tolist()
    for (one, _), share in zip(some, keep, strict=True):
        for (other, _), other_share, limit in zip(some, keep, most, strict=False):
            if share < 1 - 1e-9 and other_share > 1 - limit + 1e-9:
                assert slope_at(one, share, below=False) <= slope_at(other, other_share, below=True) + 1e-6


def in_small_steps(flow: Flow, some: list[Graph], excess: float) -> list[float]:
    """Return the levels of outputs by the walk as the paper tells it, a hundredth at a time."""
    hundredths = [100] * len(some)
    while True:
        levels = [one / 100 for one in hundredths]
        keep, so_far = [], [1.0] * len(some)
        for site in flow.sites:
            around = so_far[site.outputs[0]]
            keep.append(max(levels[one] for one in site.outputs) / around if around else 1.0)
            for one in site.outputs:
                so_far[one] *= keep[-1]
        able = [at for at, one in enumerate(hundredths) if one]
        if flow.load() - flow.load(keep) >= excess - 1e-12 or not able:
            return levels
        hundredths[min(able, key=lambda at: slope_at(some[at], levels[at], below=True))] -= 1


@examples(40)
@given(st.lists(st.integers(1, 9), min_size=7, max_size=7), st.permutations(range(8)), st.floats(0.05, 0.8))
def test_like_the_walk_in_small_steps(costs: list[int], slopes: list[int], part: float) -> None:
    # s0 -> b0 -> b1 -> b3 -> o0, b1 -> b4 -> o1, b0 -> b2 -> b5 -> o2, b2 -> b6 -> o3.
    flow = Flow(
        ((-1,), (0,), (0,), (1,), (1,), (2,), (2,)),
        (3, 4, 5, 6),
        (1.0,),
        tuple(cost / 10 for cost in costs),
        (1.0,) * 7,
    )
    # By output two different slopes, the smaller first, the middle at 30, 40, 50 and 60 per cent.
    some = []
    for at in range(4):
        low, high = sorted(slopes[2 * at : 2 * at + 2])
        middle = 30 + 10 * at
        lost = [0.0, (low + 1) * (100 - middle), (low + 1) * (100 - middle) + (high + 1) * middle]
        some.append(graph((0, 1 - lost[2] / 1000), (middle, 1 - lost[1] / 1000), (100, 1)))
    excess = part * flow.load()
    found = kept(flow.demand(some), Greedy().shares(flow.demand(some), excess, ANY[:4]))
    slow = in_small_steps(flow, some, excess)
    assert found == pytest.approx(slow, abs=0.0101)
