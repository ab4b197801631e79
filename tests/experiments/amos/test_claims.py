"""The claims of figures 2 and 5 to 9 as checks: rows that show them, and rows that contradict them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headway.compare.plots import new_figure
from headway_experiments.amos import figure2, figure5, weighted
from headway_experiments.amos.controls import COIN, INVERTED
from headway_experiments.amos.plans import FREE, PUBLISHED, SELECTIVE, SLICED
from headway_experiments.checks import Check
from headway_experiments.experiment import CONFIRMED, DIFFERS, FAILED, find, judge
from headway_experiments.rows import Rows
from tests.experiments.amos.made import Values, held, made

FOUR = {
    SLICED: {"queue": 12.0, "latency": 1.2, "late latency": 1.2, "throughput": 9.8},
    "fifo": {"queue": 14.0, "latency": 1.0, "late latency": 1.0, "throughput": 9.9},
    "most-tuples": {"queue": 9.0, "latency": 2.0, "late latency": 2.0, "throughput": 10.0},
    "chain": {"queue": 8.0, "latency": 3.0, "late latency": 3.0, "throughput": 9.0, "calls": 120.0},
}
"""As the paper has them: Chain and MTIQ for short queues, FIFO for low latency."""
GOOD = {"queue": 7.0, "latency": 0.8, "throughput": 9.9, "calls": 90.0, "time of fifo": 0.6}
SINGLES = {"plan 2": FOUR, SELECTIVE: FOUR}


WORSE = {COIN: 1.06, INVERTED: 1.08}
"""How much more AMoS costs with a control in place of what it learns."""


def asked(*objectives: str, **more: float) -> dict[str, dict[str, float]]:
    """Return the four, AMoS, asked for these, and AMoS with controls, a little worse than it."""
    good: dict[str, float] = {**GOOD, **more}
    controls = {
        f"{one}, {control}": {**good, "latency": good["latency"] * by, "queue": good["queue"] * by}
        for one in objectives
        for control, by in WORSE.items()
    }
    return {**FOUR, **dict.fromkeys(objectives, good), **controls}


def test_figure_2_as_the_paper_has_it() -> None:
    checks = figure2.check(made(SINGLES))
    assert all(held(checks).values())
    assert judge(find("amos-fig2"), checks) == CONFIRMED


def test_figure_2_with_short_queues_elsewhere() -> None:
    other = {**FOUR, "chain": {**FOUR["chain"], "queue": 13.0}}
    checks = figure2.check(made({"plan 2": other, SELECTIVE: FOUR}))
    assert [key for key, holds in held(checks).items() if not holds] == ["chain-queue"]
    assert judge(find("amos-fig2"), checks) == DIFFERS
    assert judge(find("amos-fig2"), figure2.check(made({"plan 2": other, SELECTIVE: other}))) == FAILED


def test_figure_2_with_latencies_reversed() -> None:
    turned = {SLICED: 3.0, "fifo": 2.0, "most-tuples": 1.2, "chain": 1.0}
    other = {name: {**one, "latency": turned[name], "late latency": turned[name]} for name, one in FOUR.items()}
    found = held(figure2.check(made({"plan 2": other, SELECTIVE: FOUR})))
    assert not any(found[key] for key in ("late", "fifo-latency", "nobody"))


def single(**more: float) -> Values:
    """Return what figures 5 and 6 need, with AMoS on all plans."""
    free = {"fifo": FOUR["fifo"], "latency": {**GOOD, "latency": 1.4}}
    return {**dict.fromkeys(PUBLISHED, asked("latency", "queue", **more)), FREE: free}


def test_figures_5_and_6_as_the_paper_has_them() -> None:
    checks = figure5.check(made(single(**{"time of fifo": 0.25})))
    assert all(held(checks).values())
    assert judge(find("amos-fig6"), checks) == CONFIRMED


def test_figures_5_and_6_contradicted() -> None:
    found = held(figure5.check(made(single(latency=1.1, queue=8.5, calls=110.0, **{"time of fifo": 0.25}))))
    wrong = {"interaction", "queue-others-1", "queue-others-2"}
    wrong |= {f"{key}-{tag}" for key in ("latency", "queue") for tag in ("1", "2", "selective")}
    assert {key for key, holds in found.items() if not holds} == wrong
    free = {**single(), FREE: {"fifo": FOUR["fifo"], "latency": GOOD}}
    assert not held(figure5.check(made(free)))["latency-free"]
    far = held(figure5.check(made(single(queue=11.0))))
    assert not far["queue-near"]


def two(**more: float) -> Values:
    """Return what figures 7 and 8 need; the output rate is higher where more is on it."""
    found = asked("70/30", "30/70", **more)
    rises = {name for name in found if name.startswith("30/70")}
    for name in rises:
        found[name] = {**found[name], "throughput": 1.02 * found[name]["throughput"]}
    return dict.fromkeys(PUBLISHED, found)


def test_figures_7_and_8_as_the_paper_has_them() -> None:
    found = held(weighted.check_two(made(two())))
    # FIFO for most of the time, as the paper says, and even slices, which explain why not, exclude each other.
    assert {key for key, holds in found.items() if not holds} == {"wheel"}


def test_figures_7_and_8_contradicted() -> None:
    worse = two(latency=1.5, throughput=5.0, **{"time of fifo": 0.25})
    worse["plan 1"]["30/70"]["throughput"] = worse["plan 1"]["70/30"]["throughput"]  # type: ignore[index]
    checks = weighted.check_two(made(worse))
    found = held(checks)
    for number in (1, 2):
        assert not any(found[f"{key}-{number}"] for key in ("delay", "average", "overall", "still", "improves"))
    assert not found["fifo-most"]
    assert not found["room"]
    assert judge(find("amos-fig8"), checks) == FAILED


def three(**more: float) -> Values:
    """Return what figure 9 needs."""
    every = asked("thirds", **{"time of fifo": 0.25, **more})
    every["chain"] = {**FOUR["chain"], "throughput": 9.75}
    return dict.fromkeys(PUBLISHED, every)


def test_figure_9_as_the_paper_has_it() -> None:
    checks = weighted.check_three(made(three()))
    assert judge(find("amos-fig9"), checks) == CONFIRMED


def test_figure_9_tells_what_ways_of_learning_cost() -> None:
    told = weighted.notes_three(made(three()))
    assert "roulette" in told
    assert "thompson" not in told
    other = {plan: {**values, "thirds, thompson": values["thirds"]} for plan, values in three().items()}
    plan = weighted.notes_three(made(other)).splitlines()[2].split(" | ")
    assert plan[1] == plan[2].removesuffix(" |")


def test_figure_9_with_an_output_rate_that_could_not_be_better() -> None:
    plans = {**three(), "plan 2": three(throughput=9.8)["plan 2"]}
    checks = weighted.check_three(made(plans))
    assert [key for key, holds in held(checks).items() if not holds] == ["well-2"]
    assert judge(find("amos-fig9"), checks) == DIFFERS


@pytest.mark.parametrize(
    ("more", "wrong"),
    [
        ({"throughput": 9.0}, "well"),
        ({"latency": 1.9}, "well"),
        ({"queue": 11.0}, "well"),
        ({"throughput": 15.0}, "most"),
        ({"latency": 1.8, "queue": 13.0}, "overall"),
    ],
)
def test_figure_9_contradicted(more: dict[str, float], wrong: str) -> None:
    checks = weighted.check_three(made(three(**more)))
    assert not held(checks)[f"{wrong}-2"]
    assert judge(find("amos-fig9"), checks) == FAILED


@pytest.mark.parametrize(
    ("name", "values"),
    [("amos-fig2", SINGLES), ("amos-fig5", single()), ("amos-fig7", two()), ("amos-fig9", three())],
)
def test_plots_have_labels(name: str, values: Values) -> None:
    experiment = find(name)
    figure = new_figure(experiment.size)
    experiment.draw(made(values), figure)
    assert all(axes.get_title() for axes in figure.axes)
    assert figure.axes[0].get_ylabel()


@pytest.mark.parametrize(
    ("name", "check", "values"),
    [
        ("amos-fig5", figure5.check, single(**{"time of fifo": 0.25})),
        ("amos-fig7", weighted.check_two, two(**{"time of fifo": 0.25})),
        ("amos-fig9", weighted.check_three, three()),
    ],
)
def test_learning_must_beat_a_coin_and_an_inverted_wheel(
    name: str, check: Callable[[Rows], list[Check]], values: Values
) -> None:
    for control, key in ((COIN, "coin"), (INVERTED, "inverted")):
        plan = dict(values["plan 1"])
        for policy, given in values["plan 1"].items():
            if f"{policy}, {control}" in plan:  # then the control is a little better than the wheel
                plan[f"{policy}, {control}"] = {
                    **given,
                    "latency": 0.98 * given["latency"],
                    "queue": 0.98 * given["queue"],
                }
        other = {**values, "plan 1": plan}
        found = held(check(made(other)))
        assert not found[f"{key}-1"]
        assert found[f"{key}-2"]
        assert judge(find(name), check(made(other))) == DIFFERS


def test_a_coin_that_is_far_worse_contradicts_the_explanation() -> None:
    values = {
        plan: {name: {**one, "latency": 2.0} if name.endswith(COIN) else one for name, one in policies.items()}
        for plan, policies in three().items()
    }
    assert not held(weighted.check_three(made(values)))["like-coin"]
