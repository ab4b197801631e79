"""Loads: rates, costs and selectivities, worked out by hand and against a naive walk."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.catalog import Topology
from headway.checking import CheckedNetwork, check
from headway.costs import CostModel, Shares, analyse, default_arcs, measured_arcs, shares_of
from headway.errors import HeadwayError
from headway.files import load
from headway.network.qos import QoS
from headway.program import compile_program

ROUTES = """
network: routes
sources: {s: {schema: {i: bigint}}, t: {schema: {i: bigint}}}
boxes:
  kept:  {op: filter, in: s, where: "i > 0"}
  parts: {op: filter, in: kept, where: ["i > 30", "i > 20", "i > 10"]}
  high:  {op: map, in: parts.1, select: "i + 1 as i"}
  both:  {op: union, in: [parts.2, parts.3, t]}
  twice: {op: union, in: [high, high]}
outputs: {high: {from: twice}, both: {from: both}, rest: {from: parts.else}, raw: {from: t}}
"""


def make(reads: Sequence[Sequence[int | str]], roots: Sequence[int] = (), sources: str = "s") -> Topology:
    """Return a topology from what each box reads: boxes by number, sources by their letter."""
    producers = tuple(tuple(one for one in some if isinstance(one, int)) for some in reads)
    return Topology(
        tuple(f"b{at}" for at in range(len(reads))),
        tuple(sources),
        tuple(f"o{at}" for at in range(len(roots))),
        (QoS(),) * len(roots),
        producers,
        tuple(tuple(at for at, some in enumerate(producers) if box in some) for box in range(len(reads))),
        tuple(tuple(at for at, some in enumerate(reads) for one in some if one == source) for source in sources),
        tuple(roots),
    )


def floats(*values: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.array(values, np.float64)


CHAIN = make([["s"], [0], [1]], roots=[2])
"""s -> b0 -> b1 -> b2 -> o0"""


def test_box_by_box() -> None:
    # 500 tuples at 1 ms: half of what one processor can; 250 go on, and of those 25.
    loads = analyse(CostModel(CHAIN), floats(500), floats(0.001, 0.002, 0.004), floats(0.5, 0.1, 2))
    assert loads.rate_in.tolist() == pytest.approx([500, 250, 25])
    assert loads.rate_out.tolist() == pytest.approx([250, 25, 50])
    assert loads.load.tolist() == pytest.approx([0.5, 0.5, 0.1])
    assert loads.stable.tolist() == [True, True, True]
    assert loads.sources.tolist() == [500]
    assert loads.outputs.tolist() == pytest.approx([50])
    assert loads.min_cap == pytest.approx(1.1)
    assert (loads.fits, loads.overloaded) == (False, True)
    assert loads.excess == pytest.approx(0.2)
    assert loads.ranking == (0, 1, 2)


UNSTABLE = floats(0.0002, 0.004, 0.001), floats(0.5, 0.4, 1)
"""b1 can do 250 tuples per second; 500 come to it."""


def test_the_formula_of_the_paper_throttles() -> None:
    loads = analyse(CostModel(CHAIN), floats(1000), *UNSTABLE, throttled=True)
    assert loads.rate_in.tolist() == pytest.approx([1000, 500, 100])
    assert loads.rate_out.tolist() == pytest.approx([500, 100, 100])  # min(1 / 0.004, 500) * 0.4
    assert loads.load.tolist() == pytest.approx([0.2, 1, 0.1])
    assert loads.stable.tolist() == [True, False, True]
    assert loads.outputs.tolist() == pytest.approx([100])


def test_the_demand_is_not_hidden_by_a_slow_box() -> None:
    loads = analyse(CostModel(CHAIN), floats(1000), *UNSTABLE)
    assert loads.rate_in.tolist() == pytest.approx([1000, 500, 200])
    assert loads.load.tolist() == pytest.approx([0.2, 2, 0.2])
    assert loads.stable.tolist() == [True, False, True]
    assert loads.ranking == (1, 0, 2)
    assert loads.min_cap == pytest.approx(2.4)


@pytest.mark.parametrize(
    ("rate", "stable", "fits", "overloaded"),
    [(900, True, True, False), (901, True, False, False), (1000, True, False, False), (1001, False, False, True)],
)
def test_bounds(rate: float, stable: bool, fits: bool, overloaded: bool) -> None:
    loads = analyse(CostModel(make([["s"]])), floats(rate), floats(0.001), floats(1))
    assert (bool(loads.stable[0]), loads.fits, loads.overloaded) == (stable, fits, overloaded)


def test_bounds_hold_for_decimals() -> None:
    """0.3 s of work for a processor of which 0.3 may be used, although binary fractions add up to a little more."""
    loads = analyse(CostModel(make([["s"]] * 3)), floats(1), floats(0.1, 0.1, 0.1), floats(1, 1, 1), headroom=0.3)
    assert sum([0.1, 0.1, 0.1]) > 0.3
    assert loads.fits
    assert loads.excess == 0


def test_capacity_and_headroom() -> None:
    given = (CostModel(make([["s"]])), floats(1000), floats(0.0015), floats(1))
    assert analyse(*given, capacity=2).fits
    assert not analyse(*given, capacity=2, headroom=0.7).fits
    assert not analyse(*given, capacity=2, headroom=0.7).overloaded
    assert analyse(*given, capacity=2, headroom=0.7).excess == pytest.approx(0.1)


def test_several_inputs_add_up() -> None:
    # b2 reads b0, b1 and the source t: 50 + 400 + 7.
    topology = make([["s"], ["t"], [0, 1, "t"]], roots=[2], sources="st")
    loads = analyse(CostModel(topology), floats(100, 7), floats(0, 0, 0.001), floats(0.5, 400 / 7, 3))
    assert loads.rate_in.tolist() == pytest.approx([100, 7, 457])
    assert loads.outputs.tolist() == pytest.approx([1371])
    assert loads.load.tolist() == pytest.approx([0, 0, 0.457])


def test_fan_out_copies() -> None:
    topology = make([["s"], [0], [0], [1, 2]], roots=[0, 3])
    loads = analyse(CostModel(topology), floats(100), floats(0.001, 0.001, 0.002, 0.001), floats(0.5, 1, 0.5, 1))
    assert loads.rate_in.tolist() == pytest.approx([100, 50, 50, 75])
    assert loads.outputs.tolist() == pytest.approx([50, 75])
    assert loads.min_cap == pytest.approx(0.1 + 0.05 + 0.1 + 0.075)
    assert loads.fits


def test_a_box_that_costs_nothing_has_no_limit() -> None:
    loads = analyse(CostModel(CHAIN), floats(1e9), floats(0, 0, 0), floats(1, 1, 1), throttled=True)
    assert loads.outputs.tolist() == [1e9]
    assert loads.stable.all()
    assert loads.fits


def test_work_per_tuple() -> None:
    # b2: 4 ms. b1: 2 ms and a tenth of that. b0: 1 ms and half of b1's 2.4 ms.
    work = CostModel(CHAIN).work(floats(0.001, 0.002, 0.004), floats(0.5, 0.1, 2))
    assert work.tolist() == pytest.approx([0.0022, 0.0024, 0.004])


def test_work_of_a_source_is_that_of_all_who_read_it() -> None:
    model = CostModel(make([["s"], ["s", "t"], [0, 1]], sources="st"))
    work = model.work(floats(1, 2, 4), floats(0.5, 1, 1))
    assert work.tolist() == [3, 6, 4]
    assert model.source_work(work).tolist() == [9, 6]


def test_shares() -> None:
    topology = make([["s"], [0], [0], [1, 2]], roots=[0, 3])
    shares = Shares({(0, 1): 0.75, (0, 2): 0.2}, {0: 0.05})
    model = CostModel(topology, shares)
    loads = analyse(model, floats(100), floats(1, 1, 1, 1), floats(1, 1, 2, 1))
    assert loads.rate_in.tolist() == pytest.approx([100, 75, 20, 115])
    assert loads.outputs.tolist() == pytest.approx([5, 115])
    assert model.work(floats(1, 1, 1, 1), floats(1, 1, 2, 1)).tolist() == pytest.approx([1 + 1.5 + 0.6, 2, 3, 1])
    assert [model.share(0, 1), model.share(0, 2), model.share(1, 3), model.share(0, 3)] == [0.75, 0.2, 1, 0]
    plain = model.with_shares(Shares())
    assert plain.rates(floats(100), floats(1, 1, 2, 1)).tolist() == pytest.approx([100, 100, 100, 300])
    assert model.rates(floats(100), floats(1, 1, 2, 1)).tolist() == pytest.approx([100, 75, 20, 115])


def test_outputs_that_hang_on_sources() -> None:
    alone = make([], roots=[-1])
    assert analyse(CostModel(alone), floats(7), floats(), floats()).outputs.tolist() == [7]
    several = make([], roots=[-1, -1], sources="st")
    loads = analyse(CostModel(several, Shares(direct={1: 1})), floats(7, 8), floats(), floats())
    assert np.isnan(loads.outputs[0])
    assert loads.outputs[1] == 8


def routes() -> CheckedNetwork:
    return check(load(ROUTES))


def by_name(checked: CheckedNetwork, shares: Shares) -> Mapping[tuple[str, str], float]:
    names = [box.name for box in checked.order]
    return {(names[producer], names[consumer]): share for (producer, consumer), share in shares.boxes.items()}


def test_ports_share_alike_where_nobody_knows() -> None:
    """Three routes and the rest: a quarter each; 'kept', whose rest nobody reads, gives all to its reader."""
    checked = routes()
    assert default_arcs(checked) == {"parts.1": 0.25, "parts.2": 0.25, "parts.3": 0.25, "parts.else": 0.25}
    shares = shares_of(checked)
    assert by_name(checked, shares) == {("parts", "high"): 0.25, ("parts", "both"): 0.5, ("high", "twice"): 2}
    assert (shares.outputs, shares.direct) == ({2: 0.25}, {3: 1})
    model = CostModel(compile_program(checked).topology, shares)
    names = list(model.topology.boxes)
    rates = dict(zip(names, model.rates(floats(100, 10), np.ones(5)).tolist(), strict=True))
    assert rates == {"kept": 100, "parts": 100, "high": 25, "both": 60, "twice": 50}
    assert model.deliveries(floats(100, 10), np.array([rates[name] for name in names])).tolist() == [50, 60, 25, 10]


def test_counts_of_a_run_tell_the_shares() -> None:
    checked = routes()
    # 'both' reads three arcs, so its count tells nothing of any one: what is left goes half and half.
    arcs = measured_arcs(checked, {"high": 60, "both": 999}, {"parts": 100, "kept": 100}, {"rest": 20})
    assert arcs == pytest.approx({"parts.1": 0.6, "parts.2": 0.1, "parts.3": 0.1, "parts.else": 0.2})
    shares = shares_of(checked, arcs)
    assert by_name(checked, shares) == pytest.approx(
        {("parts", "high"): 0.6, ("parts", "both"): 0.2, ("high", "twice"): 2}
    )
    assert shares.outputs == pytest.approx({2: 0.2})


def test_a_run_without_tuples_tells_nothing() -> None:
    assert measured_arcs(routes(), {"high": 0}, {"parts": 0}, {"rest": 0}) == {}
    assert measured_arcs(routes(), {}, {"parts": 5}, {}) == {}


@pytest.mark.parametrize(
    ("rates", "costs", "selectivity", "said"),
    [
        (floats(1, 2), floats(1, 1, 1), floats(1, 1, 1), "rate: one number for each source is needed (1)"),
        (floats(1), floats(1, 1), floats(1, 1, 1), "cost: one number for each box is needed (3)"),
        (floats(1), floats(1, -1, 1), floats(1, 1, 1), "box 'b1': cost: must be a number, zero or more, not -1.0"),
        (floats(1), floats(1, 1, 1), floats(1, 1, np.nan), "box 'b2': selectivity: must be a number"),
        (floats(np.inf), floats(1, 1, 1), floats(1, 1, 1), "source 's': rate: must be a number"),
    ],
)
def test_errors(rates: np.ndarray, costs: np.ndarray, selectivity: np.ndarray, said: str) -> None:
    with pytest.raises(HeadwayError) as raised:
        analyse(CostModel(CHAIN), rates, costs, selectivity)
    assert said in str(raised.value)


class Case(NamedTuple):
    """A random network with what is known of it."""

    topology: Topology
    shares: Shares
    rates: list[float]
    costs: list[float]
    selectivity: list[float]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    count = draw(st.integers(1, 9))
    reads: list[list[int | str]] = []
    for box in range(count):
        some: list[int | str] = sorted(draw(st.sets(st.integers(0, box - 1), max_size=3))) if box else []
        reads.append([*some, *draw(st.lists(st.sampled_from("st"), min_size=0 if some else 1, max_size=2))])
    topology = make(reads, draw(st.lists(st.integers(0, count - 1), max_size=3)), "st")
    arcs = [(producer, box) for box, some in enumerate(topology.producers) for producer in some]
    named = draw(st.dictionaries(st.sampled_from(arcs), st.floats(0, 2))) if arcs else {}
    outputs = {at: draw(st.floats(0, 1)) for at in range(len(topology.roots)) if draw(st.booleans())}
    several = st.floats(0, 1000)
    return Case(
        topology,
        Shares(named, outputs),
        draw(st.lists(several, min_size=2, max_size=2)),
        draw(st.lists(st.floats(0, 0.1), min_size=count, max_size=count)),
        draw(st.lists(st.floats(0, 3), min_size=count, max_size=count)),
    )


class Naive:
    """Every box by itself, from what feeds it, by recursion."""

    def __init__(self, case: Case, throttled: bool) -> None:
        """Take the case."""
        self.case, self.throttled = case, throttled

    def rate_in(self, box: int) -> float:
        topology = self.case.topology
        fed = [
            self.case.rates[source] for source, readers in enumerate(topology.readers) for one in readers if one == box
        ]
        fed += [self.rate_out(one) * self.share(one, box) for one in topology.producers[box]]
        return sum(fed)

    def done(self, box: int) -> float:
        cost, rate = self.case.costs[box], self.rate_in(box)
        return rate if not self.throttled or cost * rate <= 1 else 1 / cost

    def rate_out(self, box: int) -> float:
        return self.done(box) * self.case.selectivity[box]

    def share(self, producer: int, consumer: int) -> float:
        return self.case.shares.boxes.get((producer, consumer), 1.0)

    def work(self, box: int) -> float:
        behind = [self.share(box, one) * self.work(one) for one in self.case.topology.consumers[box]]
        return self.case.costs[box] + self.case.selectivity[box] * sum(behind)


@given(cases(), st.booleans())
@settings(deadline=None)
def test_as_a_naive_walk_has_it(case: Case, throttled: bool) -> None:
    topology, shares, *known = case
    rates, costs, selectivity = (np.array(values) for values in known)
    naive = Naive(case, throttled)
    loads = analyse(CostModel(topology, shares), rates, costs, selectivity, throttled=throttled)
    boxes = range(len(topology.boxes))
    assert loads.rate_in.tolist() == pytest.approx([naive.rate_in(box) for box in boxes])
    assert loads.rate_out.tolist() == pytest.approx([naive.rate_out(box) for box in boxes])
    assert loads.load.tolist() == pytest.approx([naive.done(box) * case.costs[box] for box in boxes])
    assert loads.outputs.tolist() == pytest.approx(
        [naive.rate_out(root) * shares.outputs.get(at, 1.0) for at, root in enumerate(topology.roots)]
    )
    assert CostModel(topology, shares).work(costs, selectivity).tolist() == pytest.approx(
        [naive.work(box) for box in boxes]
    )


@given(cases())
@settings(deadline=None)
def test_both_walks_find_the_same_load(case: Case) -> None:
    """What sources' tuples cause, by the walk backwards, is the sum of the loads, by the walk forwards."""
    model = CostModel(case.topology, case.shares)
    rates, costs, selectivity = np.array(case.rates), np.array(case.costs), np.array(case.selectivity)
    caused = float(rates @ model.source_work(model.work(costs, selectivity)))
    assert caused == pytest.approx(analyse(model, rates, costs, selectivity).min_cap)


@given(cases())
@settings(deadline=None)
def test_throttling_never_adds(case: Case) -> None:
    known = np.array(case.rates), np.array(case.costs), np.array(case.selectivity)
    model = CostModel(case.topology, case.shares)
    demand, held = analyse(model, *known), analyse(model, *known, throttled=True)
    assert (held.load <= demand.load * (1 + 1e-9)).all()
    assert (held.load <= 1 + 1e-9).all()
    if demand.stable.all():
        assert held.load.tolist() == pytest.approx(demand.load.tolist())


@pytest.mark.parametrize("depth", [10_000, 5], ids=["one chain", "many chains"])
def test_large_networks(depth: int) -> None:
    """The shedder asks once a second; recursion would not even end."""
    count = 10_000
    topology = Topology(
        tuple(f"b{at}" for at in range(count)),
        ("s",),
        (),
        (),
        tuple(() if at % depth == 0 else (at - 1,) for at in range(count)),
        tuple((at + 1,) if (at + 1) % depth and at + 1 < count else () for at in range(count)),
        (tuple(range(0, count, depth)),),
        (),
    )
    model = CostModel(topology)
    costs, selectivity = np.full(count, 0.001), np.ones(count)
    spent = []
    for _ in range(9):
        begun = time.perf_counter()
        work = model.work(costs, selectivity)
        spent.append(time.perf_counter() - begun)
    assert work[0] == pytest.approx(0.001 * depth)
    assert model.rates(floats(3), selectivity).tolist() == [3.0] * count
    assert min(spent) < 0.02
