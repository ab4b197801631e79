"""Spells of a run on Spark: planned, drawn, told from each other; nothing here starts Spark."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest

from headway.adaptive.layer import Switch
from headway.clock import SECOND
from headway.columns import NEVER
from headway.runner import run
from headway.totals import Totals
from headway_experiments.scheduling.spark_networks import (
    DEPTH,
    WORK,
    InTurn,
    Spell,
    applications,
    arrivals,
    cost_in_run,
    plan_spells,
    split,
)

SPELLS = (
    Spell(0.0, "fifo", 0, 0.0, 0.5, 1),
    Spell(0.5, "fifo", 1, 2.0, 1.0, 3),
    Spell(0.5, "qos", 1, 5.0, 1.0, 3),
)


def totals(seconds: float, delivered: int, utility: float = 0.0) -> Totals:
    """Return totals of a run with two outputs."""
    halves = np.array([delivered / 2, delivered / 2, delivered])
    nothing = np.zeros(3)
    worth = np.array([utility / 2, utility / 2, utility])
    return Totals(round(seconds * SECOND), halves.astype(np.int64), nothing, worth, nothing, nothing, nothing)


def test_applications_are_chains_over_one_stream() -> None:
    network = applications([None, ((0, 1), (2, 0))])
    assert list(network["sources"]) == ["s"]
    assert len(network["boxes"]) == 2 * DEPTH
    assert "qos" not in network["outputs"]["o0"]
    assert network["outputs"]["o1"]["qos"] == {"latency": [[0, 1], [2, 0]]}
    assert network["boxes"]["b1x0"]["in"] == "s"
    assert network["boxes"]["b1x4"]["in"] == "b1x3"


def test_spells_have_their_loads_and_follow_each_other() -> None:
    spells = plan_spells({0.5: 3.0, 0.25: 1.0}, ["a", "b"], seed=7, seconds=2.0, count=5)
    assert [(one.load, one.policy, one.seed) for one in spells] == [
        (0.0, "a", 0),
        *[(load, policy, 7) for load in (0.25, 0.5) for policy in ("a", "b")],
    ]
    counted = spells[1:]
    assert all(one.tuples * 5 * WORK == pytest.approx(one.load * 2.0) for one in counted)
    gaps = [later.begin - one.begin for one, later in pairwise(counted)]
    assert gaps == [3.0, 3.0, 5.0]


def test_policies_see_the_same_arrivals() -> None:
    chunk = arrivals(SPELLS).read(100)
    assert chunk is not None
    assert chunk.due is not None
    first, second = chunk.due[1:4], chunk.due[4:]
    assert (second - first).tolist() == [3 * SECOND] * 3
    assert np.all((first >= 2 * SECOND) & (first <= 3 * SECOND))


def test_spells_are_told_apart_by_the_number_of_results() -> None:
    seen = [totals(0, 0), totals(1, 2, 2), totals(3, 6, 5), totals(4, 8, 6), totals(6, 10, 6.5), totals(8, 14, 9)]
    first, second = split(seen, SPELLS, count=2)
    assert first.spell.policy == "fifo"
    assert first.seen.utility() == pytest.approx((6 - 2) / 6)
    assert first.late == pytest.approx(4 - 3)
    assert second.seen.utility() == pytest.approx((9 - 6) / 6)
    assert second.late == pytest.approx(8 - 6)


class Two:
    """As much of a topology as the layer looks at."""

    outputs: Sequence[str] = ("a", "b")


def test_what_a_micro_batch_costs_besides_its_work() -> None:
    unit = {"batches": 10, "tuples": 100, "seconds": 3.0}
    apart = {"units": {"a": unit, "b": unit}, "outputs": {"a": {}, "b": {}}}
    assert cost_in_run(apart) == pytest.approx((3.0 - 100 * WORK) / 10)
    together = {"units": {"one": unit}, "outputs": {"a": {}, "b": {}}}
    assert cost_in_run(together) == pytest.approx((3.0 - 2 * 100 * WORK) / 10)


def test_policies_take_turns_at_the_beginning_of_spells() -> None:
    layer, topology = InTurn(SPELLS), Two()
    assert layer.policies == ("fifo", "qos")
    places, memory = layer.start(topology, 100)  # type: ignore[arg-type]
    assert places == (0, 0)
    chosen = []
    while (moment := layer.next(memory)) < NEVER:
        (action,), memory = layer.look(totals(0, 0), memory)
        assert isinstance(action, Switch)
        chosen.append((moment - 100, layer.policies[action.policy]))
    assert chosen == [(2 * SECOND, "fifo"), (5 * SECOND, "qos")]
    assert layer.change({}, memory) == memory


def test_the_network_is_one_that_runs() -> None:
    network = applications([None, None], work=0.0)
    summary = run(network, {"s": arrivals(SPELLS)}, engine="sim", outputs=dict.fromkeys(network["outputs"])).summary
    assert summary["tuples_out"] == 2 * 7
