"""The history of a run: what each look saw, thinned out when it gets long."""

from __future__ import annotations

import numpy as np
import pytest

from headway.clock import SECOND
from headway.engines.monitor import FEW, History, Look


def look(moment: float, *delivered: float) -> Look:
    """Return a look at which so many were delivered, each a second old, and half of them late."""
    counts = np.array(delivered)
    return Look(round(moment * SECOND), 1.5, 0.8, 0.9, 0.1, counts, counts / 2, counts * 1.0)


def test_columns() -> None:
    history = History(2 * SECOND, ["a", "b"])
    history.add(look(2.5, 4, 0))
    history.add(look(3.0, 2, 6))
    told = history.summary()
    assert told["moment"] == [0.5, 1.0]
    assert (told["load"], told["kept"], told["capacity"], told["backlog"]) == (
        [1.5] * 2,
        [0.8] * 2,
        [0.9] * 2,
        [0.1] * 2,
    )
    assert told["delivered"] == {"a": [4, 2], "b": [0, 6]}
    assert told["latency"] == {"a": [1.0, 1.0], "b": [None, 1.0]}
    assert told["outside"] == {"a": [0.5, 0.5], "b": [None, 0.5]}


@pytest.mark.parametrize("outputs", [0, 1])
def test_a_run_without_looks(outputs: int) -> None:
    told = History(0, ["a"][:outputs]).summary()
    assert told["moment"] == []
    assert told["delivered"] == {"a": []} if outputs else told["delivered"] == {}


def test_a_long_one_is_thinned_out() -> None:
    history = History(0, ["a"], most=8)
    for at in range(1000):
        history.add(look(at, 1))
    moments = history.summary()["moment"]
    assert len(moments) <= 8
    assert moments[0] < 300
    assert moments[-1] > 700
    gaps = np.diff(moments)
    assert gaps.max() < 2 * gaps.min()


def test_many_outputs_have_no_history_of_their_own() -> None:
    history = History(0, [f"o{at}" for at in range(FEW + 1)])
    history.add(look(1, *[1.0] * (FEW + 1)))
    told = history.summary()
    assert told["load"] == [1.5]
    assert told["delivered"] == told["latency"] == told["outside"] == {}
