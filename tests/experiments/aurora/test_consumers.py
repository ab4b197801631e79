"""The forty boxes: as many as there should be, and what passes them."""

from __future__ import annotations

import pytest

from headway.checking import check
from headway_experiments.aurora.consumers import ALONE, BOTH, TRAINS, make_network, make_reports, policy, run_reports


def test_forty_boxes_four_deep() -> None:
    network = make_network()
    assert len(network.boxes) == 40
    assert len(network.outputs) == 10
    assert check(network) is not None
    assert len({output.qos.latency for output in network.outputs}) == 10


def test_reports_are_the_same_for_the_same_seed() -> None:
    assert make_reports(50, 1).equals(make_reports(50, 1))
    assert not make_reports(50, 1).equals(make_reports(50, 2))


def test_schedules() -> None:
    assert policy(ALONE) == "round-robin/box/1/plan:1"
    assert policy(TRAINS, 8) == "round-robin/box/8/plan:1"
    assert policy(BOTH, plans="") == "round-robin/superbox/mc/4"


def test_decisions_fall_as_claimed() -> None:
    """Decisions, not seconds: they are the same on every machine."""
    alone, trains, both = (run_reports(policy(one), 200, 1) for one in (ALONE, TRAINS, BOTH))
    assert alone["results"] == trains["results"] == both["results"]
    assert alone["results"] / (10 * 200) == pytest.approx(0.25, rel=0.2)
    assert trains["decisions"] < 0.48 * alone["decisions"]
    assert both["decisions"] < 0.43 * trains["decisions"]
    assert both["results_per_call"] == pytest.approx(0.25, rel=0.2)
