"""The decision table: tables 1 to 5 of the paper to the digit, and equation 1."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.adaptive.decisions import STRATEGIES, DecisionTable
from headway.adaptive.goals import MEASURES, priorities
from headway.errors import PolicyError

TABLE = DecisionTable()
PAPER = ("latency", "memory", "throughput")


def test_table_1() -> None:
    assert STRATEGIES == ("round-robin", "path-capacity", "segment", "simplified-segment")
    assert TABLE.row("latency", STRATEGIES) == (2, 4, 1, 3)
    assert TABLE.row("memory", STRATEGIES) == (2, 1, 4, 3)
    assert TABLE.row("throughput", STRATEGIES) == (2, 4, 1, 3)
    assert set(TABLE.ranks) == set(MEASURES)


def test_table_2_memory_violated() -> None:
    # The paper prints 0.66 for the last; its formula gives 3/4.
    assert TABLE.scores(STRATEGIES, {"memory": 1}) == (0.5, 0.25, 1, 0.75)


def test_table_3_all_violated() -> None:
    assert TABLE.scores(STRATEGIES, dict.fromkeys(PAPER, 1)) == (1.5, 2.25, 1.5, 2.25)


def test_tables_4_and_5_latency_satisfied_and_memory_violated() -> None:
    classes = priorities()
    latency, memory, throughput = classes["must-satisfy"], classes["best-effort"], classes["dont-care"]
    assert (latency.weight, memory.weight, throughput.weight) == (1, 0.5, 0.01)
    reduced = latency.reduced(MEASURES["latency"].spare(1, 2))
    assert reduced == 0.75
    scores = TABLE.scores(STRATEGIES, {"latency": reduced, "memory": memory.weight})
    assert scores == (0.625, 0.875, 0.6875, 0.9375)


def test_a_strategy_is_added_or_ranked_anew() -> None:
    made = TABLE.extended({"latency": {"slope-slack": 5, "segment": 0}})
    assert made.row("latency", (*STRATEGIES, "slope-slack")) == (2, 4, 0, 3, 5)
    assert TABLE.row("latency", ("segment",)) == (1,)  # the one before stays as it was
    assert made.row("memory", STRATEGIES) == TABLE.row("memory", STRATEGIES)


def test_an_argument_may_have_a_rank_of_its_own() -> None:
    made = TABLE.extended({"latency": {"slope-slack": 5, "slope-slack:8": 6}})
    assert made.row("latency", ("slope-slack:8", "slope-slack:4", "round-robin:1ms")) == (6, 5, 2)


def test_strategies_without_a_rank_are_listed() -> None:
    with pytest.raises(PolicyError, match=r"no rank for memory of: chain, fifo; it has round-robin \(2\).*chain: RANK"):
        TABLE.row("memory", ("chain", "segment", "fifo"))
    with pytest.raises(PolicyError, match=r"no rank for jitter of: segment; it has \(none\)"):
        TABLE.row("jitter", ("segment",))


@pytest.mark.parametrize("rank", [-1, "high", True, float("nan"), float("inf")])
def test_bad_ranks_are_refused(rank: float) -> None:
    with pytest.raises(PolicyError, match="latency: the rank of 'fifo' is a number, 0 or more"):
        TABLE.extended({"latency": {"fifo": rank}})


weights = st.floats(0.001, 10)
ranks = st.integers(0, 9)


@settings(deadline=None)
@given(
    st.dictionaries(st.sampled_from(PAPER), weights, min_size=1), st.lists(st.tuples(ranks, ranks, ranks), min_size=1)
)
def test_equation_1(given_weights: dict[str, float], columns: list[tuple[int, int, int]]) -> None:
    names = [f"s{at}" for at in range(len(columns))]
    table = DecisionTable(
        {
            measure: {name: column[row] for name, column in zip(names, columns, strict=True)}
            for row, measure in enumerate(PAPER)
        }
    )
    scores = table.scores(names, given_weights)
    for score, column in zip(scores, columns, strict=True):
        wanted = sum(weight * column[PAPER.index(one)] for one, weight in given_weights.items()) / len(names)
        assert score == pytest.approx(wanted)


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(PAPER), weights, min_size=1))
def test_scores_add_up_over_measures(given_weights: dict[str, float]) -> None:
    parts = [TABLE.scores(STRATEGIES, {one: weight}) for one, weight in given_weights.items()]
    assert TABLE.scores(STRATEGIES, given_weights) == pytest.approx([sum(each) for each in zip(*parts, strict=True)])
