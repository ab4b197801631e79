"""Traversals: the paper's example to the digit, and laws on random trees and networks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.catalog import Statistics, Topology
from headway.costs import CostModel, Shares
from headway.scheduling import superboxes
from headway.scheduling.snapshot import Snapshot
from headway.scheduling.superboxes import (
    TRAVERSALS,
    best,
    expected,
    memory_rates,
    min_cost,
    min_cost_order,
    min_latency,
    min_memory,
    output_costs,
    spanner,
    superbox_units,
)
from tests.scheduling.chains import seen as at_boxes
from tests.scheduling.snapshots import replace, topology

PAPER = topology({"b5": (), "b4": (), "b6": (), "b3": ("b5",), "b2": ("b4", "b3"), "b1": ("b2", "b6")}, {"out": "b1"})
"""The tree of squal.md, with b2's inputs in the order in which the paper walks them."""
BOXES = min_cost_order(PAPER, PAPER.boxes.index("b1"))
MC = "b4 b5 b3 b2 b6 b1"
ML = "b1 b2 b1 b6 b1 b4 b2 b1 b3 b2 b1 b5 b3 b2 b1"


def named(made: Topology, calls: Sequence[int]) -> str:
    return " ".join(made.boxes[at] for at in calls)


def view(
    made: Topology,
    waiting: Sequence[int] | None = None,
    cost: float | Sequence[float] = 1.0,
    overhead: float | Sequence[float] = 0.0,
    selectivity: float | Sequence[float] = 1.0,
    ready: Sequence[bool] | None = None,
    shares: Mapping[tuple[int, int], float] | None = None,
) -> Snapshot:
    count = len(made.boxes)
    boxes = replace(
        Statistics(count).readings(),
        cost=np.zeros(count) + cost,
        overhead=np.zeros(count) + overhead,
        selectivity=np.zeros(count) + selectivity,
        tuple_size=np.ones(count),
    )
    queued = [1] * count if waiting is None else waiting
    able = np.array(queued) > 0 if ready is None else np.array(ready, np.bool_)
    model = CostModel(made, Shares(dict(shares or {})))
    return at_boxes(made, boxes, waiting=queued, box_ready=able, read_model=lambda: model)


def total_cost(seen: Snapshot, calls: tuple[int, ...]) -> float:
    return expected(seen, calls)[0]


def mean_latency(seen: Snapshot, calls: tuple[int, ...]) -> float:
    return expected(seen, calls)[1]


def paper(p: float, o: float) -> Snapshot:
    return view(PAPER, cost=p, overhead=o)


def test_min_cost_of_the_papers_tree() -> None:
    calls = min_cost(paper(1, 0), BOXES)
    assert named(PAPER, calls) == MC
    assert [total_cost(paper(*one), calls) for one in ((1, 0), (0, 1), (2, 4))] == [15, 6, 54]
    assert [mean_latency(paper(*one), calls) for one in ((1, 0), (0, 1), (2, 4))] == [12.5, 6, 49]


def test_min_latency_of_the_papers_tree() -> None:
    calls = min_latency(paper(1, 0), BOXES)
    assert named(PAPER, calls) == ML
    assert [total_cost(paper(*one), calls) for one in ((1, 0), (0, 1), (2, 4))] == [15, 15, 90]
    for p, o in ((1, 0), (0, 1), (2, 4)):
        assert mean_latency(paper(p, o), calls) == pytest.approx(43 / 6 * (p + o))


def test_they_cross_where_the_paper_says() -> None:
    # 12.5 p + 6 o = 43/6 (p + o) at p/o = (43/6 - 6) / (12.5 - 43/6)
    edge = (Fraction(43, 6) - 6) / (Fraction(25, 2) - Fraction(43, 6))
    assert edge == Fraction(7, 32)
    assert round(float(edge), 2) == 0.22
    for ratio, calls in ((0.218, MC), (0.22, ML)):
        assert named(PAPER, best(paper(ratio, 1.0), BOXES)) == calls


def by_name(**values: float) -> list[float]:
    return [values[name] for name in PAPER.boxes]


def test_min_memory_of_the_papers_tree() -> None:
    seen = view(
        PAPER,
        cost=by_name(b1=2, b2=2, b3=1, b4=2, b5=3, b6=1),
        selectivity=by_name(b1=0.9, b2=0.4, b3=0.5, b4=1.0, b5=0.4, b6=0.6),
    )
    rates = dict(zip(PAPER.boxes, memory_rates(seen).round(9).tolist(), strict=True))
    assert rates == {"b1": 0.05, "b2": 0.3, "b3": 0.5, "b4": 0, "b5": 0.2, "b6": 0.4}
    assert named(PAPER, min_memory(seen, BOXES)) == "b3 b6 b2 b5 b3 b2 b1 b4 b2 b1"


def test_large_tuples_come_first_for_memory() -> None:
    seen = view(topology({"a": (), "b": (), "c": ("a", "b")}, {"o": "c"}), selectivity=0.5)
    assert min_memory(seen, (0, 1, 2)) == (0, 1, 2)
    large = replace(seen.boxes, tuple_size=np.array([2.0, 4.0, 1.0]))
    assert min_memory(replace(seen, read_boxes=lambda: large), (0, 1, 2)) == (1, 0, 2)


def test_output_costs_by_hand() -> None:
    # a -> b -> c with selectivities 0.5, 0.25, 2: o_sel is 0.25, 0.5, 2.
    chain = topology({"a": (), "b": ("a",), "c": ("b",)}, {"o": "c"})
    seen = view(chain, cost=[3, 5, 7], selectivity=[0.5, 0.25, 2])
    assert output_costs(seen, (0, 1, 2)) == {2: 3.5, 1: 5 / 0.5 + 3.5, 0: 3 / 0.25 + 5 / 0.5 + 3.5}


def test_of_a_route_its_share_counts() -> None:
    # a sends a tenth to b and the rest to c, both lead to d.
    made = topology({"a": (), "b": ("a",), "c": ("a",), "d": ("b", "c")}, {"o": "d"})
    seen = view(made, [10, 0, 0, 0], cost=[1, 10, 1, 1], shares={(0, 1): 0.1, (0, 2): 0.9})
    # b works on 1 tuple and c on 9, so d on 10.
    assert expected(seen, (0, 1, 2, 3)) == pytest.approx((10 + 10 + 9 + 10, 29 + 11 / 2))
    # A result that goes through b needs ten tuples at a; within the unit of all four none is lost.
    assert output_costs(seen, (0, 1, 3)) == {3: 1, 1: 11, 0: pytest.approx(1 / 0.1 + 11)}
    assert output_costs(seen, (0, 1, 2, 3))[0] == pytest.approx(1 + 10 + 1 + 1)


def test_of_what_a_box_delivers_only_that_is_a_result() -> None:
    # Of a's tuples a tenth is delivered at once, the rest goes to b, which delivers it.
    made = topology({"a": (), "b": ("a",)}, {"o": "a", "p": "b"})
    seen = replace(view(made, [10, 0]), read_model=lambda: CostModel(made, Shares({(0, 1): 0.9}, {0: 0.1})))
    assert expected(seen, (0, 1)) == pytest.approx((19, (1 * 5.5 + 9 * 15) / 10))


def test_where_ways_meet_again_a_box_counts_once() -> None:
    diamond = topology({"a": (), "b": ("a",), "c": ("a",), "d": ("b", "c")}, {"o": "d"})
    seen = view(diamond, cost=[1, 2, 3, 4], selectivity=[0.5, 0.5, 0.25, 0.5])
    # D(a) is all four: o_sel(a) = 0.5 * 0.5 * 0.25 * 0.5 = 1/32; b and c: 1/4 and 1/8; d: 1/2.
    assert output_costs(seen, (0, 1, 2, 3)) == {3: 8, 2: 24 + 8, 1: 8 + 8, 0: 32 + 8 + 24 + 8}
    assert min_latency(seen, (0, 1, 2, 3)) == (3, 1, 3, 2, 3, 0, 1, 2, 3)


def test_the_soonest_result_comes_first() -> None:
    fork = topology({"slow": (), "quick": (), "out": ("slow", "quick")}, {"o": "out"})
    assert min_latency(view(fork, [1, 1, 0], cost=[5, 1, 1]), (0, 1, 2)) == (1, 2, 0, 2)
    assert min_latency(view(fork, [1, 1, 0], cost=1.0, selectivity=[1, 0.1, 1]), (0, 1, 2)) == (0, 2, 1, 2)
    assert min_latency(view(fork, [1, 1, 0], cost=1.0, selectivity=[0, 1, 1]), (0, 1, 2)) == (1, 2, 0, 2)


def test_only_boxes_at_which_something_is_or_comes() -> None:
    seen = view(PAPER, [1 if name == "b3" else 0 for name in PAPER.boxes])
    assert named(PAPER, min_latency(seen, BOXES)) == "b3 b2 b1"
    assert named(PAPER, min_memory(seen, BOXES)) == "b3 b2 b1"
    nothing = view(PAPER, [0] * 6)
    assert min_latency(nothing, BOXES) == min_memory(nothing, BOXES) == ()
    assert (mean_latency(nothing, BOXES), total_cost(nothing, BOXES)) == (0, 0)


def test_a_mark_is_passed_on_although_no_tuple_waits() -> None:
    seen = view(PAPER, [1 if name == "b2" else 0 for name in PAPER.boxes], ready=[n == "b5" for n in PAPER.boxes])
    assert named(PAPER, min_latency(seen, BOXES)) == "b2 b1 b5 b3 b2 b1"
    assert named(PAPER, spanner(seen, BOXES, np.zeros(6), 0)) == "b5 b3 b2 b1"


def test_a_box_that_emits_more_than_it_takes_and_one_that_emits_less() -> None:
    chain = topology({"a": (), "b": ("a",)}, {"o": "b"})
    seen = view(chain, [4, 0], cost=[1, 2], overhead=[10, 20], selectivity=[0.5, 3])
    # 10 + 4 * 1, then 20 + 2 * 2; the two tuples of b leave at 14 + 20 + 2 and + 4, three results each.
    assert total_cost(seen, (0, 1)) == 38
    assert mean_latency(seen, (0, 1)) == 37
    # A quarter of a tuple: the call of b is made once in four times.
    rare = view(chain, [1, 0], cost=[1, 2], overhead=[10, 20], selectivity=[0.25, 1])
    assert total_cost(rare, (0, 1)) == 11 + 20 / 4 + 2 / 4


def test_results_of_inner_boxes_count_too() -> None:
    chain = topology({"a": (), "b": ("a",)}, {"x": "a", "y": "b"})
    assert mean_latency(view(chain, [1, 0], cost=[1, 3]), (0, 1)) == (1 + 4) / 2


def test_the_top_k_spanner() -> None:
    seen, rank = paper(1, 0), np.array(by_name(b1=1, b2=2, b3=9, b4=3, b5=8, b6=7))
    assert [named(PAPER, spanner(seen, BOXES, rank, k)) for k in (0, 1, 2, 3, 9)] == [
        "",
        "b3 b2 b1",
        "b5 b3 b2 b1",
        "b5 b3 b2 b6 b1",
        MC,
    ]
    waiting = view(PAPER, [0 if name == "b3" else 1 for name in PAPER.boxes])
    assert named(PAPER, spanner(waiting, BOXES, rank, 1)) == "b5 b3 b2 b1", "nothing waits at b3"
    ready = replace(seen, box_ready=np.array([name == "b6" for name in PAPER.boxes]))
    assert named(PAPER, spanner(ready, BOXES, rank, 1)) == "b6 b1", "the others cannot be taken"


def test_a_spanner_prefers_the_first_among_equals() -> None:
    assert named(PAPER, spanner(paper(1, 0), BOXES, np.zeros(6), 2)) == "b4 b5 b3 b2 b1"


@pytest.mark.parametrize("name", ["ml", "mm"])
def test_long_sequences_end_in_post_order(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # The last box frees most, so that each box's tuples go all the way: 12 + 11 + ... calls without the limit.
    chain = topology({f"b{at}": (f"b{at - 1}",) if at else () for at in range(12)}, {"o": "b11"})
    seen = view(chain, selectivity=[0.9 - at / 20 for at in range(12)])
    boxes = tuple(range(12))
    assert len(TRAVERSALS[name].order(seen, boxes)) == 78
    monkeypatch.setattr(superboxes, "LONGEST", 10)
    calls = TRAVERSALS[name].order(seen, boxes)
    assert calls == (11, 10, 11, 9, 10, 11, 8, 9, 10, 11, *boxes)
    assert left(seen, boxes, calls) == 0


def test_a_ladder_of_diamonds_does_not_take_for_ever() -> None:
    reads: dict[str, tuple[str, ...]] = {"d0": ()}
    for at in range(40):
        reads |= {f"l{at}": (f"d{at}",), f"r{at}": (f"d{at}",), f"d{at + 1}": (f"l{at}", f"r{at}")}
    made = topology(reads, {"o": "d40"})
    boxes = tuple(range(len(reads)))
    seen = view(made, [1] + [0] * 120, selectivity=[0.999 - at / 1000 for at in boxes])
    calls = min_memory(seen, boxes)
    assert len(calls) <= superboxes.LONGEST + len(boxes)
    assert left(seen, boxes, calls) == 0


def test_a_deep_unit() -> None:
    depth = 3000
    chain = Topology(
        tuple(map(str, range(depth))),
        (),
        ("o",),
        (),
        tuple((at - 1,) if at else () for at in range(depth)),
        tuple((at + 1,) if at + 1 < depth else () for at in range(depth)),
        (),
        (depth - 1,),
    )
    boxes = tuple(range(depth))
    calls = min_latency(view(chain), boxes)
    assert len(calls) < superboxes.LONGEST + 2 * depth
    assert left(view(chain), boxes, calls) == 0


# Laws


def left(seen: Snapshot, boxes: Sequence[int], calls: Sequence[int]) -> float:
    """Return the tuples that are expected to be left in a unit after a sequence, moved one call at a time."""
    queued = {box: float(seen.box_waiting[box]) for box in boxes}
    for box in calls:
        emitted = queued[box] * float(seen.boxes.selectivity[box])
        queued[box] = 0.0
        for one in seen.topology.consumers[box]:
            if one in queued:
                queued[one] += emitted
    return sum(queued.values())


def first_result(seen: Snapshot, calls: Sequence[int], root: int) -> float | None:
    """Return when the first tuple leaves the root, moved one tuple at a time (selectivity 1)."""
    queued = {box: int(seen.box_waiting[box]) for box in calls}
    now = 0.0
    for box in calls:
        tuples, queued[box] = queued[box], 0
        if tuples and box == root:
            return now + float(seen.boxes.overhead[box]) + float(seen.boxes.cost[box])
        now += float(seen.boxes.overhead[box]) * (tuples > 0) + float(seen.boxes.cost[box]) * tuples
        for one in seen.topology.consumers[box]:
            if one in queued:
                queued[one] += tuples
    return None


eighth = st.integers(0, 24).map(lambda one: one / 8)


@st.composite
def units(draw: st.DrawFn, plain: bool = False, tree: bool = False) -> tuple[Snapshot, tuple[int, ...]]:
    """A superbox of a random network; `plain`: selectivity 1; `tree`: every box is read by one."""
    count = draw(st.integers(1, 9))
    if tree:
        reader = [draw(st.integers(at + 1, count - 1)) for at in range(count - 1)]
        reads = {f"b{at}": tuple(f"b{one}" for one, to in enumerate(reader) if to == at) for at in range(count)}
        made = topology(reads, {"o": f"b{count - 1}"})
    else:
        some = [draw(st.lists(st.integers(0, at - 1), max_size=3, unique=True)) if at else [] for at in range(count)]
        reads = {f"b{at}": tuple(f"b{one}" for one in each) for at, each in enumerate(some)}
        made = topology(reads, {"o": f"b{count - 1}", "inner": f"b{draw(st.integers(0, count - 1))}"})
    unit = next(one for one in superbox_units(made) if count - 1 in one.boxes)

    def each(values: st.SearchStrategy[float]) -> list[float]:
        return [draw(values) for _ in range(count)]

    waiting = [draw(st.integers(0, 5)) for _ in range(count)]
    return view(made, waiting, each(eighth), each(eighth), 1.0 if plain else each(eighth)), unit.boxes


@given(case=units(), name=st.sampled_from(sorted(TRAVERSALS)))
@settings(deadline=None)
def test_everything_that_waits_is_processed(case: tuple[Snapshot, tuple[int, ...]], name: str) -> None:
    seen, boxes = case
    found = seen.boxes
    arrays = (seen.box_waiting, found.cost, found.overhead, found.selectivity, found.tuple_size)
    before = [array.copy() for array in arrays]
    calls = TRAVERSALS[name].order(seen, boxes)
    assert set(calls) <= set(boxes)
    assert left(seen, boxes, calls) == 0
    assert all((one == other).all() for one, other in zip(before, arrays, strict=True))


@given(case=units())
@settings(deadline=None)
def test_min_cost_calls_each_box_once_and_is_the_units_own_order(case: tuple[Snapshot, tuple[int, ...]]) -> None:
    seen, boxes = case
    assert min_cost(seen, boxes) == boxes


@given(case=units(), name=st.sampled_from(["ml", "mm", "best"]))
@settings(deadline=None)
def test_no_traversal_costs_less_than_min_cost(case: tuple[Snapshot, tuple[int, ...]], name: str) -> None:
    seen, boxes = case
    least = total_cost(seen, min_cost(seen, boxes))
    assert least <= total_cost(seen, TRAVERSALS[name].order(seen, boxes)) * (1 + 1e-9)


@given(case=units())
@settings(deadline=None)
def test_the_best_has_the_lower_mean_latency(case: tuple[Snapshot, tuple[int, ...]]) -> None:
    seen, boxes = case
    found = {name: TRAVERSALS[name].order(seen, boxes) for name in ("mc", "ml")}
    calls = best(seen, boxes)
    assert calls in found.values()
    assert mean_latency(seen, calls) == min(mean_latency(seen, one) for one in found.values())


@given(case=units(plain=True))
@settings(deadline=None)
def test_min_latencys_first_result_is_never_later(case: tuple[Snapshot, tuple[int, ...]]) -> None:
    seen, boxes = case
    root = boxes[-1]
    quick = first_result(seen, min_latency(seen, boxes), root)
    plain = first_result(seen, min_cost(seen, boxes), root)
    assert (quick is None) == (plain is None)
    if quick is not None and plain is not None:
        assert quick <= plain + 1e-9


@given(case=units(plain=True, tree=True))
@settings(deadline=None)
def test_without_overhead_and_with_one_cost_min_latency_is_never_worse(
    case: tuple[Snapshot, tuple[int, ...]],
) -> None:
    seen, boxes = case
    count = len(seen.box_waiting)
    alike = replace(seen.boxes, overhead=np.zeros(count), cost=np.ones(count))
    free = replace(seen, read_boxes=lambda: alike)
    quick, plain = min_latency(free, boxes), min_cost(free, boxes)
    assert mean_latency(free, quick) <= mean_latency(free, plain) + 1e-9


@given(case=units(), k=st.integers(0, 10), data=st.data())
@settings(deadline=None)
def test_a_spanner_is_the_best_boxes_and_what_is_behind_them(
    case: tuple[Snapshot, tuple[int, ...]], k: int, data: st.DataObject
) -> None:
    seen, boxes = case
    rank = np.array(data.draw(st.permutations(range(len(seen.box_waiting)))), np.float64)
    found = spanner(seen, boxes, rank, k)
    assert list(found) == [box for box in boxes if box in found]
    for box in found:
        assert {one for one in seen.topology.consumers[box] if one in boxes} <= set(found)
    best = sorted([box for box in boxes if seen.box_waiting[box]], key=lambda box: -rank[box])[:k]
    assert set(best) <= set(found)
    fed_by = [box for box in found if not any(one in found for one in seen.topology.producers[box])]
    assert set(fed_by) <= set(best), "nothing that leads to none of them"
