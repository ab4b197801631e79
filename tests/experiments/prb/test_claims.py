"""Every claim can fail: rows that show it, and rows that contradict it."""

from __future__ import annotations

import pytest

from headway.compare.plots import new_figure
from headway_experiments.experiment import CONFIRMED, DIFFERS, FAILED, UNCERTAIN, find, judge
from headway_experiments.prb import cost_skew, depth, magnitude, number, overhead, selectivity_skew
from headway_experiments.rows import Row, Rows
from tests.experiments.prb.made import held, runs, swapped

# Figures 3 and 4

SKEWS = (0.0, 0.5, 0.9)
SKEWED = [
    *runs("skew", SKEWS, {"RB": (200, 150, 100), "PRB": (190, 135, 80)}, theory=1.0),
    *runs("skew", SKEWS, {"RR": (500, 350, 200), "FIFO": (350, 300, 250)}, theory=1.0),
]


def test_the_skew_of_costs() -> None:
    assert judge(find("prb-fig4"), cost_skew.check(Rows(SKEWED))) == CONFIRMED


def test_the_skew_of_costs_with_policies_swapped() -> None:
    everything = held(cost_skew.check(Rows(SKEWED)))
    assert everything - held(cost_skew.check(swapped(SKEWED, "PRB", "RB"))) == {"even", "skewed", "grows", "rb"}
    assert everything - held(cost_skew.check(swapped(SKEWED, "RR", "FIFO"))) == {"rr-fifo-even", "rr-fifo-skewed"}
    assert {"rr", "rb"} <= everything - held(cost_skew.check(swapped(SKEWED, "PRB", "RR")))
    assert "fifo" not in held(cost_skew.check(swapped(SKEWED, "PRB", "FIFO")))


def test_the_skew_of_costs_the_other_way_round() -> None:
    turned = Rows({**row, "skew": {0.0: 0.9, 0.5: 0.5, 0.9: 0.0}[float(row["skew"])]} for row in SKEWED)
    assert {"falls", "grows"}.isdisjoint(held(cost_skew.check(turned)))


def test_expected_reductions() -> None:
    rows = [{**row, "theory": 3.0 if row["policy"] == "PRB" else 4.0} for row in SKEWED]
    assert cost_skew.expected(Rows(rows)) == ([0.0, 0.5, 0.9], [25.0, 25.0, 25.0])


# Figures 5 and 6


def test_the_skew_of_selectivities() -> None:
    rows = runs("skew", (0.0, 0.9), {"RB": (200, 200), "PRB": (190, 150)})
    assert held(selectivity_skew.check(Rows(rows))) == {"rb", "grows"}
    assert held(selectivity_skew.check(swapped(rows, "RB", "PRB"))) == set()


# Figures 7 and 8


def test_the_depth_of_the_dear_operator() -> None:
    rows = Rows(runs("depth", (1, 4, 5, 6), {"RB": (400, 200, 190, 195), "PRB": (392, 186, 180, 189)}))
    assert judge(find("prb-fig8"), depth.check(rows)) == CONFIRMED


def test_the_greatest_reduction_must_be_at_depth_4() -> None:
    deeper = Rows(runs("depth", (1, 4, 5, 6), {"RB": (400, 200, 190, 195), "PRB": (392, 190, 175, 189)}))
    assert {"rb", "shared", "falls", "rises"} == held(depth.check(deeper))
    higher = Rows(runs("depth", (1, 4, 6), {"RB": (400, 200, 190), "PRB": (350, 190, 188)}))
    assert {"rb", "shared", "falls", "sinks"} == held(depth.check(higher))


def test_response_times_must_fall_with_the_depth() -> None:
    rows = Rows(runs("depth", (1, 4, 6), {"RB": (200, 210, 220), "PRB": (195, 190, 210)}))
    assert {"shared", "falls"}.isdisjoint(held(depth.check(rows)))


# Figures 9 and 10


def test_the_number_of_dear_operators() -> None:
    rows = Rows(runs("number", (1, 8, 32), {"RB": (100, 120, 200), "PRB": (97, 108, 194)}))
    assert judge(find("prb-fig10"), number.check(rows)) == UNCERTAIN  # two seeds that differ say so much


@pytest.mark.parametrize(("prb", "missing"), [((80, 110, 194), "rises"), ((97, 110, 150), "sinks")])
def test_the_reduction_must_rise_and_fall(prb: tuple[float, ...], missing: str) -> None:
    rows = Rows(runs("number", (1, 8, 32), {"RB": (100, 120, 200), "PRB": prb}))
    assert missing not in held(number.check(rows))


def test_response_times_must_grow_with_the_number() -> None:
    flat = Rows(runs("number", (1, 8, 32), {"RB": (100, 99, 200), "PRB": (97, 89, 194)}))
    assert judge(find("prb-fig9"), number.check(flat)) == DIFFERS  # at first only
    rows = Rows(runs("number", (1, 8, 32), {"RB": (100, 90, 80), "PRB": (97, 81, 78)}))
    assert {"grows", "many"}.isdisjoint(held(number.check(rows)))


def test_few_dear_operators_by_theory() -> None:
    ratios = [number.expected(seed, 2) / number.expected(seed, 1) for seed in range(1, 11)]
    assert 0.9 < min(ratios) < max(ratios) < 1
    assert number.expected(1, 32) > 2 * number.expected(1, 1)


# Figure 11


def magnitudes(sliced: float, light: float = 90, dearer: float = 300, prb: tuple[float, float] = (99, 150)) -> Rows:
    rows = runs("cost", (25, 300), {"RB": (100, 200), "PRB": prb, "RR": (300, sliced)}, top="drawn")
    rows += runs("cost", (600,), {"RB": (400,), "RR": (dearer,)}, top="drawn")
    rows += runs("cost", (300,), {"RB": (100,), "RR": (light,)}, top="light")
    return Rows(rows)


def test_how_dear_the_operator_is() -> None:
    fig11 = find("prb-fig11")
    assert judge(fig11, magnitude.check(magnitudes(190))) == CONFIRMED
    assert judge(fig11, magnitude.check(magnitudes(210))) == DIFFERS
    assert judge(fig11, magnitude.check(magnitudes(210, light=110))) == FAILED  # its evidence does not hold
    assert judge(fig11, magnitude.check(magnitudes(210, dearer=410))) == FAILED
    assert {"prb", "grows"}.isdisjoint(held(magnitude.check(magnitudes(190, prb=(101, 205)))))
    assert {"rr-cheap", "closer"}.isdisjoint(held(magnitude.check(swapped(magnitudes(190), "RR", "RB"))))


# Figure 12


def test_transitions_by_hand() -> None:
    # Two tuples through 7 operators: 14 calls, each with a plan, 3 more calls with plans at the end of the streams;
    # 2 plans at arrivals, and one preemption, after which an operator is invoked again.
    counts = {"results": 2, "calls": 17, "plans": 19, "preemptions": 1}
    assert overhead.transitions(counts) == (14 + 16 + 2) / 2


def counted(rb: float, prb: float, rr: float, how: str = "counted") -> list[Row]:
    """Return runs with 14, 16 and 150 transitions for each result."""
    found: list[Row] = []
    for policy, start, each in (("RB", rb, 14.0), ("PRB", prb, 16.0), ("RR", rr, 150.0)):
        for cost in overhead.OVERHEADS:
            at: Row = {"overhead": cost, "policy": policy, "how": how, "transitions": each, "work": 58.0}
            found += [{**at, "seed": seed, "response": (start + cost * each) * (0.9 + seed / 10)} for seed in (1, 2)]
    return found


def overheads(rb: float = 300, prb: float = 195, rr: float = 290, light: float = 280, late: float = 2000) -> Rows:
    rows = [*counted(rb, prb, rr), *counted(rb, prb, light, "counted, light top")]
    given = {"RB": (400.0, 1500.0), "PRB": (350.0, late)}
    return Rows([*rows, *runs("overhead", overhead.DELAYS, given, how="taking time")])


def test_the_cost_of_transitions() -> None:
    fig12 = find("prb-fig12")
    assert overhead.crossing(overheads()).mean == pytest.approx(52.5 * 1.05)  # the second seed's is 10 % more
    assert judge(fig12, overhead.check(overheads())) == UNCERTAIN
    assert judge(fig12, overhead.check(overheads(rr=310))) == DIFFERS
    assert judge(fig12, overhead.check(overheads(rr=310, light=310))) == FAILED
    assert judge(fig12, overhead.check(overheads(prb=205))) == DIFFERS  # they cross at 47.5
    assert judge(fig12, overhead.check(overheads(prb=225))) == FAILED  # at 37.5


def test_the_cost_of_transitions_contradicted() -> None:
    assert {"prb", "prb-before", "crossing"}.isdisjoint(held(overhead.check(overheads(prb=250))))  # they cross at 25
    assert "crossing" not in held(overhead.check(overheads(prb=100)))  # at 100
    assert "prb-10" not in held(overhead.check(overheads(late=1400)))
    cheap = Rows({**row, "response": 100.0} if row["policy"] == "RR" else row for row in overheads())
    assert {"rr", "rr-light"}.isdisjoint(held(overhead.check(cheap)))


# Drawing


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("prb-fig3", Rows(SKEWED)),
        ("prb-fig5", Rows(runs("skew", (0.0, 0.9), {"RB": (200, 200), "PRB": (190, 150)}))),
        ("prb-fig7", Rows(runs("depth", (1, 4, 6), {"RB": (400, 200, 190), "PRB": (392, 186, 180)}))),
        ("prb-fig9", Rows(runs("number", (1, 8, 32), {"RB": (100, 120, 200), "PRB": (97, 108, 194)}))),
        ("prb-fig11", magnitudes(190)),
        ("prb-fig12", overheads()),
    ],
)
def test_figures_are_labelled_and_notes_tell_numbers(name: str, rows: Rows) -> None:
    experiment = find(name)
    figure = new_figure(experiment.size)
    experiment.draw(rows, figure)
    assert len(figure.axes) == 2
    assert all(axes.get_xlabel() and axes.get_ylabel() for axes in figure.axes)
    assert experiment.notes is not None
    assert "±" in experiment.notes(rows)
