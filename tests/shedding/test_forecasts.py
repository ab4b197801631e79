from __future__ import annotations

import numpy as np
import pytest

from headway.network.qos import Graph, QoS
from headway.shedding.forecasts import MARGIN, Outlook, Scenario, losses_of
from headway.shedding.losses import LINEAR

LATE = Graph(((0.0, 1.0), (1.0, 1.0), (2.0, 0.0)))
CHEAP = Graph(((0.0, 0.8), (100.0, 1.0)))


def outlook(
    backlog: float, load: float = 2.0, age: float | None = None, loss: Graph = CHEAP, past: float = 5.0
) -> Outlook:
    in_turn = backlog * min(1.0, 1.0 / load)
    ages = np.array([in_turn if age is None else age])
    one = np.ones(1)
    return Outlook((QoS(latency=LATE),), (loss,), 1.0, load, backlog, ages, 0 * one, past, one, one, 1.0)


def gain(found: Outlook, keep: float) -> float:
    nothing = Scenario(found.load, found.backlog, np.ones(1))
    return found.gain(Scenario(found.load * keep, found.backlog * keep, np.array([keep])), nothing, MARGIN)


def test_while_results_are_in_time_dropping_only_costs() -> None:
    found = outlook(0.0, 0.8)
    assert found.worth(Scenario(0.8, 0.0, np.ones(1))) == pytest.approx(1.0)
    assert gain(found, 0.5) < 0


def test_when_lateness_is_near_it_pays() -> None:
    assert gain(outlook(1.5), 0.5) > 0


def test_not_if_what_is_lost_is_worth_more() -> None:
    steep = Graph(((0.0, 0.0), (98.0, 0.1), (100.0, 1.0)))
    assert gain(outlook(1.2, 1.2, loss=steep), 0.8) < 0


def test_an_output_that_a_policy_serves_first_is_not_late() -> None:
    assert gain(outlook(1.5, age=0.0), 0.5) < 0


def test_without_outputs_or_capacity_there_is_nothing_to_tell() -> None:
    nobody = Outlook((), (), 1.0, 1.0, 0.0, *(np.zeros(0),) * 2, 1.0, *(np.zeros(0),) * 2, 1.0)
    assert nobody.worth(Scenario(1.0, 0.0, np.zeros(0))) == 0.0


def test_what_a_share_is_worth() -> None:
    assert losses_of([QoS(), QoS(loss=CHEAP), QoS(loss=CHEAP)], {2: LATE}) == (LINEAR, CHEAP, LATE)
