"""The same share for all."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from headway.shedding.strategies import make_strategy
from headway.shedding.uniform import UniformShedding
from tests.shedding.flows import Flow, flows, fork, graph, rows

ANY = [1.0] * 5


def test_it_is_registered() -> None:
    assert isinstance(make_strategy("uniform"), UniformShedding)


def test_every_source_loses_the_same_however_tolerant() -> None:
    flow = rows(0.01, 0.03)  # 1 and 3 s/s
    demand = flow.demand([graph((0, 1), (100, 1)), graph((99, 0), (100, 1))])
    assert UniformShedding().shares(demand, 1.0, ANY).tolist() == [0.75, 0.75]
    assert flow.load([0.75, 0.75]) == pytest.approx(3.0)


def test_only_at_the_sources() -> None:
    # The fork's sites are {0, 1} at the source, {0} and {1} behind it.
    assert UniformShedding().shares(fork(0.004, 0.003, 0.003).demand(), 0.25, ANY).tolist() == [0.75, 1, 1]


def test_the_smallest_limit_is_that_of_all() -> None:
    demand = rows(0.01, 0.01).demand()
    assert UniformShedding().shares(demand, 1.0, [0.9, 0.2]).tolist() == pytest.approx([0.8, 0.8])
    assert UniformShedding().shares(demand, 1.0, [0.9, 0.0]).tolist() == [1, 1]


def test_who_has_not_shown_what_it_costs_gives_way_and_has_its_limit() -> None:
    demand = rows(0.01, 0.0).demand()  # the second one's boxes have hardly run
    assert UniformShedding().shares(demand, 0.5, ANY).tolist() == [0.5, 0.5]
    assert UniformShedding().shares(demand, 0.5, [0.9, 0.2]).tolist() == pytest.approx([0.8, 0.8])
    assert UniformShedding().shares(demand, 0.5, [0.9, 0.0]).tolist() == [1, 1]


def test_an_output_behind_two_sources_loses_no_more_than_it_may() -> None:
    # b0 {0, 1} reads s0; b2 {1} reads b0 and s1: sites {0, 1} and {1} stand at sources.
    flow = Flow(((-1,), (0,), (0, -2)), (1, 2), (100.0, 100.0), (0.01, 0.01, 0.01), (1.0,) * 3)
    keep = UniformShedding().shares(flow.demand(), 100.0, [0.75, 0.75])
    assert keep.tolist() == [0.5, 1, 0.5]
    assert flow.least_kept(keep) == [0.5, 0.25]


def test_nothing_too_much_nothing_dropped() -> None:
    assert UniformShedding().shares(rows(0.01).demand(), 0.0, ANY).tolist() == [1]
    assert UniformShedding().shares(rows(0.0).demand(), 1.0, ANY).tolist() == [1], "nothing to gain"
    assert UniformShedding().shares(Flow((), (-1,), (1.0,), (), ()).demand(), 1.0, ANY).tolist() == []


@settings(deadline=None)
@given(flows(widest=1))
def test_what_is_saved_is_the_excess_where_ways_do_not_meet(flow: Flow) -> None:
    demand = flow.demand()
    at_sources = [site for site in flow.sites if any(one.producer < 0 for one in site.entries)]
    whole = sum(flow.load() - flow.load([float(one is not site) for one in flow.sites]) for site in at_sources)
    for part in (0.1, 0.5, 2.0):
        keep = UniformShedding().shares(demand, part * whole, [0.9] * len(flow.roots))
        assert flow.load(keep) == pytest.approx(flow.load() - min(part, 0.9) * whole, abs=1e-9)


@settings(deadline=None)
@given(flows(widest=3))
def test_no_output_loses_more_than_it_may(flow: Flow) -> None:
    most = [0.1 * (at + 1) for at in range(len(flow.roots))]
    keep = UniformShedding().shares(flow.demand(), 1e9, most)
    assert np.all(np.array(flow.least_kept(keep)) >= 1 - np.array(most) - 1e-12)
    assert len(set(keep.tolist()) - {1.0}) <= 1
