"""The papers' worked examples of scheduling, in virtual time and to the digit. A unit of theirs is a millisecond."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pytest

from headway.boxes.costs import Constant
from headway.clock import MILLISECOND
from headway.engines.models import Model
from headway.engines.runs import RunResult
from headway.scheduling.policy import Policy, make_policy
from tests.laws.helpers import Box, Net, Order, Sizes, by_box, calls_of, mean_latency, ms, names_of, spans

# Traversals: Carney et al., Operator Scheduling in a Data Stream Manager, 4.1.2.
#
# A box with several inputs takes tuples in the order of arrival, and therefore waits for boxes upstream that still
# hold earlier ones. The paper's boxes take what is there: min-latency begins at the root, while tuples wait
# everywhere. So before every box that reads both a source and boxes stands a union that does not keep the order. It
# costs nothing, neither for a tuple nor for a call, and is left out when calls are read: the network is the paper's.

BOXES = ("b1", "b2", "b3", "b4", "b5", "b6")
MC = "b4 b5 b3 b2 b6 b1"
ML = "b1 b2 b1 b6 b1 b4 b2 b1 b3 b2 b1 b5 b3 b2 b1"


def loosely(*arcs: str) -> dict[str, Any]:
    return {"op": "union", "in": list(arcs), "ordered": False}


def tree(p: float) -> Net:
    """The tree of the paper's figure 4, with a tuple at each box."""
    return Net(
        {f"s{at}": ms(0) for at in range(1, 7)},
        {
            "b4": Box(("s4",), p),
            "b5": Box(("s5",), p),
            "b6": Box(("s6",), p),
            "b3": Box(("u3",), p),
            "b2": Box(("u2",), p),
            "b1": Box(("u1",), p),
        },
        {"out": "b1"},
        {"u3": loosely("s3", "b5"), "u2": loosely("s2", "b4", "b3"), "u1": loosely("s1", "b2", "b6")},
    )


def traversed(traversal: str, p: float, o: float) -> RunResult:
    free = dict.fromkeys(("u1", "u2", "u3"), Constant(0.0))
    return tree(p).run(f"round-robin/superbox/{traversal}", model=Model(free, calls=dict.fromkeys(BOXES, o / 1000)))


def total(result: RunResult) -> float:
    """Return when the last call ended that took tuples, in milliseconds: the end of inputs costs calls, too."""
    return max(call.end for _, call in calls_of(result)) / MILLISECOND


def called(result: RunResult) -> str:
    return " ".join(name for name in names_of(result).split() if name in BOXES)


@pytest.mark.parametrize(("p", "o"), [(1, 0), (1, 1), (2, 4), (0.5, 3), (0.001, 1)])
def test_min_cost_and_min_latency(p: float, o: float) -> None:
    result = traversed("mc", p, o)
    assert called(result) == MC
    assert total(result) == pytest.approx(15 * p + 6 * o, rel=1e-12)
    assert mean_latency(result) == pytest.approx(12.5 * p + 6 * o, rel=1e-12)
    assert result.summary["outputs"]["out"]["tuples"] == 6
    result = traversed("ml", p, o)
    assert called(result) == ML
    assert total(result) == pytest.approx(15 * p + 15 * o, rel=1e-12)
    assert mean_latency(result) == pytest.approx(43 / 6 * (p + o), rel=1e-12)


@pytest.mark.parametrize(
    ("ratio", "expected"), [(0.1, MC), (0.218, MC), (0.2187, MC), (0.2188, ML), (0.22, ML), (1, ML)]
)
def test_the_best_traversal_changes_where_they_cross(ratio: float, expected: str) -> None:
    # 12.5 p + 6 o = 43/6 (p + o) at p/o = 7/32 = 0.21875, which the paper rounds.
    assert round((Fraction(43, 6) - 6) / (Fraction(25, 2) - Fraction(43, 6)), 2) == Fraction("0.22")
    best, *others = (traversed(name, ratio, 1) for name in ("best", "mc", "ml"))
    assert called(best) == expected
    assert mean_latency(best) == min(mean_latency(one) for one in others)


MM = {"b1": (0.9, 2), "b2": (0.4, 2), "b3": (0.5, 1), "b4": (1.0, 2), "b5": (0.4, 3), "b6": (0.6, 1)}
"""Selectivity and cost."""


def test_min_memory() -> None:
    # A union would have the rate 0 and be called last. Here the boxes themselves take what is there.
    reads = {"b1": ("b2", "b6"), "b2": ("b4", "b3"), "b3": ("b5",)}
    many = 1000  # real tuples for each of the paper's, so that selectivities come out whole
    net = Net(
        {f"s{at}": ms(0) * many for at in range(1, 7)},
        {name: Box((f"s{name[1]}", *reads.get(name, ())), MM[name][1] / many, MM[name][0], False) for name in MM},
        {"out": "b1"},
    )
    result = net.run("round-robin/superbox/mm")
    # b2 has its own and half of those of b3; b1 its own, 0.6 of b6, and 0.6 and 0.08 of b2.
    counts = [(name, call.tuples_in, call.tuples_out) for name, call in calls_of(result)]
    assert counts == [
        ("b3", 1000, 500),
        ("b6", 1000, 600),
        ("b2", 1500, 600),
        ("b5", 1000, 400),
        ("b3", 400, 200),
        ("b2", 200, 80),
        ("b1", 2280, 2052),
        ("b4", 1000, 1000),
        ("b2", 1000, 400),
        ("b1", 400, 360),
    ]
    # b3 1.4, b6 1, b2 2 * 2.7, b5 3, b1 2 * 2.68, b4 2
    assert total(result) == pytest.approx(1.4 + 1 + 5.4 + 3 + 5.36 + 2)


# Rate-based: Sharaf et al., Preemptive Rate-based Operator Scheduling in a Data Stream Management System, 2.4.


def two_paths() -> Net:
    """O2 joins both streams as they come: by a union that keeps no order and costs nothing."""
    return Net(
        {"stream1": ms(0), "stream2": ms(0)},
        {
            "O1": Box(("stream1",), 10),
            "O4": Box(("stream2",), 40),
            "O2": Box(("both",), 10),
            "O3": Box(("O2",), 10),
        },
        {"out": "O3"},
        {"both": loosely("O1", "O4")},
    )


def test_rate_based_and_the_opposite_order() -> None:
    model = Model({"both": Constant(0.0)})
    result = two_paths().run("rate-based/box/1", model=model)
    assert names_of(result) == "O1 both O2 O3 O4 both O2 O3"
    assert mean_latency(result) == pytest.approx(60, rel=1e-12)
    order = Order(("O3", "O2", "both", "O4", "O1"))
    opposite = two_paths().run({"policy": order, "unit": "box", "train": 1}, model=model)
    assert names_of(opposite) == "O4 both O2 O3 O1 both O2 O3"
    assert mean_latency(opposite) == pytest.approx(75, rel=1e-12)
    assert total(result) == total(opposite) == 90


# FIFO and MTIQ: Sutherland et al., AMoS, tables 1 and 2.
#
# The paper counts in fractions of tuples: 40 real tuples stand for one of its. It takes one tuple, and then what has
# become of it, at a time: 40 tuples at Op1, 10 at Op2, 5 at Op3. Tuples in process count as queued.

ONE = 40
PLAN = {"Op1": (0.5, 0.25), "Op2": (1, 0.5), "Op3": (2, 0.8)}
STEP = {"Op1": ONE, "Op2": ONE // 4, "Op3": ONE // 8}

FIFO = [
    (1, 2, 0, 0, 0),
    (1.5, 1, 0.25, 0, 0),
    (1.75, 1, 0, 0.125, 0),
    (2, 3, 0, 0, 0.1),
    (2.5, 2, 0.25, 0, 0.1),
    (3, 4, 0, 0, 0.2),
    (3.5, 3, 0.25, 0, 0.2),
    (4, 3, 0, 0, 0.3),
]
"""Moment, tuples at the three operators, and how many have been delivered."""

MTIQ = [
    (1, 2, 0, 0, 0),
    (1.5, 1, 0.25, 0, 0),
    (2, 2, 0.5, 0, 0),
    (2.5, 1, 0.75, 0, 0),
    (3, 2, 1, 0, 0),
    (3.5, 1, 1.25, 0, 0),
    (4, 1, 1, 0.125, 0),
]


def read_off(policy: Policy, moments: Sequence[float]) -> list[tuple[float, ...]]:
    """Return the rows of a table."""
    net = Net(
        {"stream": ms(*[moment for moment in (1, 2, 3) for _ in range(2 * ONE)])},
        {
            name: Box((before,), cost / ONE, passing)
            for before, (name, (cost, passing)) in zip(("stream", *PLAN), PLAN.items(), strict=False)
        },
        {"out": "Op3"},
    )
    result = net.run(by_box(Sizes(policy, STEP)))
    found = spans(net, result)
    rows = []
    for moment in moments:
        sizes = [span.sizes for span in found if span.begin <= moment * MILLISECOND][-1]
        done = [call.tuples_out for name, call in calls_of(result) if name == "Op3" and call.end <= ms(moment)[0]]
        rows.append((moment, *[size / ONE for size in sizes], sum(done) / ONE))
    return rows


def test_fifo() -> None:
    assert read_off(make_policy("fifo"), [row[0] for row in FIFO]) == FIFO


def test_most_tuples_in_queue() -> None:
    # At 3.75 one tuple is at Op1 and one at Op2. Who comes first among equals only the table tells: it is Op1.
    assert read_off(make_policy("most-tuples"), [row[0] for row in MTIQ]) == MTIQ
    assert sum(MTIQ[-1][1:4]) == 2.125
